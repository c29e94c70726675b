"""`python -m msched` is the command `msched`."""

from msched.cli import main

main()
