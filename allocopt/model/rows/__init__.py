"""Rows of a program: what arms show, the numbers they were made from, and the linear constraints on how often arms are played."""
