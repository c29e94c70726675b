"""Generated networks: one builder a family."""
