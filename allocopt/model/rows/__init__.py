"""Rows of a program: what arms show, and the linear constraints on how often they are played."""
