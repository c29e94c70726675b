"""A plan as another tool reads it."""
