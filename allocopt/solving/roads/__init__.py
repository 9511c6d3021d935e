"""The two roads of a solve, numpy and machine code: which is taken, and the one by machine code."""
