"""Algorithms that choose only the issue order."""
