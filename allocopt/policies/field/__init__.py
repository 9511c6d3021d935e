"""Policies of other papers, one a file, each after its paper as we know it; the text at its head names what differs."""
