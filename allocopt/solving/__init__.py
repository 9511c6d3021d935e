"""From a program to a certified solution: one, the same arms again, or thousands."""
