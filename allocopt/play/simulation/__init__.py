"""Policies at play, many runs at a time."""
