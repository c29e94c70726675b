"""The constraint-programming model and its search."""
