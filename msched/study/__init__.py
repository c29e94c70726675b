"""One run and its record; a sweep of them."""
