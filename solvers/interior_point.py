r"""The interior point for programs of any form: `newton` on numpy, BLAS and LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, whole_number
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.monitor import Monitor
from allocopt.linear.dense import squared_lengths, whitener
from allocopt.solvers import newton

__all__ = ["Iterate", "minimise", "solve", "starting_point"]


@dataclass(frozen=True, eq=False)
class Iterate:
    """A pair (α, λ) and the gap that it was seen to have inside the method (not a certificate)."""

    alpha: Array
    multipliers: Array
    gap: float
    steps: int


def solve(
    problem: Canonical, monitor: Monitor, *, max_iterations: int = 100, start: Bounds | None = None
) -> dict[str, float]:
    """Solve the whole program at once; O(k² (m + k)) a step, so for up to a couple of thousand arms.

    ``start`` is what the solution of a similar program proves for this one.
    """
    max_iterations = whole_number("max_iterations", max_iterations, least=1)
    if start is not None and monitor.record(start, 0).gap <= monitor.tol:
        return {"iterations": 0}

    def watch(alpha: Array, multipliers: Array, step: int) -> None:
        if monitor.callback is not None or monitor.max_seconds is not None:
            monitor.report(alpha, multipliers, step)

    warm = None if start is None else (start.alpha, start.multipliers)
    result = minimise(problem, monitor.tol, monitor.tick, warm=warm, max_iterations=max_iterations, watch=watch)
    monitor.report(result.alpha, result.multipliers, result.steps)
    return {"iterations": result.steps}


def starting_point(problem: Canonical) -> Array:
    """An interior α that meets the constraints with room to spare where the bounds allow it.

    Each arm adds a matrix of the same size in the metric of Σ_j b_j b_jᵀ, the information that would meet every constraint
    by itself. (For the regret program that is UCB's allocation 2/Δ²; from a uniform one Newton's method takes twice as long.)
    """
    targets = len(problem.targets)
    norm2 = squared_lengths(problem.features.T)
    # targets need not span: a trace of the features themselves makes the metric definite
    trace = 1e-6 * squared_lengths(problem.targets.T).sum() / len(norm2)
    rows = np.concatenate([problem.targets, problem.features * np.sqrt(trace / norm2)[:, None]])
    regular, metric = whitener(rows.T, np.ones(len(rows)), None)
    if not regular:
        raise SolverFailed("the arms are numerically dependent")
    alike = 1.0 / squared_lengths((problem.features @ metric).T)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x, _ = newton.begin(*_parts(problem), alike, np.zeros(targets), newton.ALIKE)
    alpha: Array = x[targets : targets + len(alike)]
    if not problem.scalable:
        alpha = _enlarged(problem, alpha)
    if not np.isfinite(alpha).all():
        raise SolverFailed("the information matrix is numerically singular")
    return alpha


def _enlarged(problem: Canonical, alpha: Array) -> Array:
    """α moved within its bounds until the constraints hold with room to spare, or the bounds are met."""
    upper = np.full(len(alpha), np.inf) if problem.upper is None else 0.5 * problem.upper
    alpha = np.minimum(alpha, upper)
    for _ in range(60):
        regular, _, _, _, g = newton.white(*_parts(problem)[:4], alpha)
        if not regular:
            raise SolverFailed("the information matrix is numerically singular")
        worst = float(g.max())
        if worst <= newton.ROOM * 1.001 or np.all(alpha >= upper):
            break
        alpha = np.minimum(alpha * min(max(2.0, worst), 1e8), upper)
    return alpha


def minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    *,
    warm: tuple[Array, Array] | None = None,
    max_iterations: int = 100,
    watch: Callable[[Array, Array, int], None] | None = None,
) -> Iterate:
    """Run the method until its own gap is below a quarter of ``tol`` or no longer shrinks.

    ``warm`` is the solution (α, λ) of a similar problem. It can be a trap: where it leads nowhere the method starts afresh.
    """
    if warm is None or not (warm[0].any() and warm[1].any()):  # zeros say nothing
        return _minimise(problem, tol, tick, None, max_iterations, watch)
    try:
        result = _minimise(problem, tol, tick, warm, max_iterations, watch)
    except SolverFailed:
        return _minimise(problem, tol, tick, None, max_iterations, watch)
    if result.gap <= tol or result.steps >= max_iterations:
        return result
    again = _minimise(problem, tol, tick, None, max_iterations - result.steps, watch)
    best = again if again.gap < result.gap else result
    return Iterate(best.alpha, best.multipliers, best.gap, result.steps + again.steps)


def _minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    warm: tuple[Array, Array] | None,
    max_iterations: int,
    watch: Callable[[Array, Array, int], None] | None,
) -> Iterate:
    targets = len(problem.targets)
    alpha, multipliers = (starting_point(problem), np.zeros(targets)) if warm is None else warm
    unit = float(alpha.sum())
    parts = _parts(_in_units(problem, unit))

    def seen(alpha: Array, multipliers: Array, step: int) -> None:
        if watch is not None:
            watch(alpha * unit, multipliers * unit, step)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        known = newton.INTERIOR if warm is None else newton.PAIR
        x, y = newton.begin(*parts, alpha / unit, multipliers / unit, known)
        steps, gap, best, _, multipliers, _ = newton.minimise(*parts, x, y, tol, max_iterations, tick, seen)
    if not gap < np.inf:
        raise SolverFailed("Newton's method left the range of doubles at once")
    return Iterate(best[targets : targets + len(alpha)] * unit, multipliers * unit, gap, steps)


def _in_units(problem: Canonical, unit: float) -> Canonical:
    """The same problem with its costs in another unit."""
    return Canonical(
        problem.features * np.sqrt(unit),
        problem.targets,
        problem.compact_base,
        None if problem.upper is None else problem.upper / unit,
        problem.offset / unit,
        None if problem.ratios is None else problem.ratios / np.sqrt(unit),
    )


def _parts(problem: Canonical) -> tuple[Array, Array | None, Array, Array | None, Array | None, float]:
    """The problem as `newton` takes it: columns, and None for what is not there."""
    return (
        problem.features.T,
        problem.targets.T if problem.ratios is None else None,
        np.zeros(0) if problem.ratios is None else problem.ratios,
        problem.compact_base if len(problem.base) else None,
        problem.upper,
        problem.offset,
    )
