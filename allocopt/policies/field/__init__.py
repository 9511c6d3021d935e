"""Policies of other papers, one a file, each from its own pseudo-code."""
