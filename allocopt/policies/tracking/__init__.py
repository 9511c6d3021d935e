"""Policies that play the optimal allocation: the paper's own, and those that track it."""
