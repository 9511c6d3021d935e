"""The methods that solve programs, one in each file; `methods` is the table of them, `settings` has the settings of each."""

from allocopt.solvers.methods import AUTO, METHODS, Method, backend

__all__ = ["AUTO", "METHODS", "Method", "backend"]
