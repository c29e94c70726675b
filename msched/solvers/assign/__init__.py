"""Algorithms that choose only streams."""
