"""The methods, one a file; `methods` is the table of them, `settings` what each can be tuned by."""

from allocopt.solvers.methods import AUTO, METHODS, Method, backend

__all__ = ["AUTO", "METHODS", "Method", "backend"]
