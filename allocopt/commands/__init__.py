"""One command of the command line a file; `allocopt.cli` loads them all."""
