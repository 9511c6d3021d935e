"""Mehrotra's method for the canonical program, as numpy runs it and numba compiles it: its iteration, problem and start."""
