"""Speed, measured on this machine beside a stated target or another way to the same figure; run `make bench`."""
