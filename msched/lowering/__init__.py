"""OpGraph and Device to Problem."""
