"""Input files: one reader a format."""
