"""How a plan runs: the score of every solver."""
