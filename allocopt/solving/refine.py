"""What the rooms above ask of the methods without importing any of them: sharp pairs (α, λ), re-solves, and the names.

Nothing here is trusted: whoever asks has the answer judged by `allocopt.certify.certificate.evaluate`.
"""

from __future__ import annotations

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate
from allocopt.solvers import METHODS, active_set, interior_point
from allocopt.solvers.monitor import Monitor

__all__ = ["method_names", "refined_pair", "resolved_bounds"]


def method_names() -> tuple[str, ...]:
    """The names that ``solve(method=…)`` takes besides "auto" for arms in memory.

    Examples
    --------
    >>> "interior-point" in method_names()
    True
    """
    return tuple(name for name, method in METHODS.items() if not method.block_by_block)


def refined_pair(problem: Canonical, tol: float) -> tuple[Array, Array] | None:
    """(α, λ) of a whole canonical problem by the interior point, aimed at the gap ``tol``; None where it fails."""
    try:
        with single_threaded():
            found = interior_point.minimise(problem, tol, lambda: None)
    except SolverFailed:
        return None
    return found.alpha, found.multipliers


def resolved_bounds(problem: Canonical, alpha: Array, multipliers: Array, tol: float) -> Bounds | None:
    """Certified bounds by the active-set method, begun from the solution (α, λ) of a similar problem.

    None where the method does not reach the gap ``tol``.
    """
    start = evaluate(problem, alpha, multipliers)
    monitor = Monitor(problem, "active-set", tol, None, None)
    try:
        # a pair that proves nothing here is no start: α need not span what is to be estimated any more
        active_set.solve(problem, monitor, start=start if np.isfinite(start.upper) else None)
    except SolverFailed:
        return None
    return monitor.best if monitor.done else None
