"""Algorithms that choose streams and order together."""
