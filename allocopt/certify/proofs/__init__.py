"""Proof files: written from a solution, and read as somebody else's claim."""
