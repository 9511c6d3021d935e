"""Rounds that are played: simulations, audits."""
