r"""The interior point for programs of any form: `newton` on numpy, BLAS and LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.linear.dense import squared_lengths, whitener
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.newton import iteration as newton
from allocopt.solvers.newton import start as newton_start
from allocopt.solvers.newton import within_limits
from allocopt.solvers.newton.problem import Problem, tuning_of, white
from allocopt.solvers.settings import InteriorPointSettings

__all__ = ["Iterate", "minimise", "solve", "starting_point"]

_DEFAULT = InteriorPointSettings()
_MOST_ENLARGEMENTS = 60  # of α; a guard, since each at least doubles α or meets a bound
_MOST_GROWTH = 1e8  # of α in one enlargement


@dataclass(frozen=True, eq=False)
class Iterate:
    """A pair (α, λ) and the gap that it was seen to have inside the method (not a certificate)."""

    alpha: Array
    multipliers: Array
    gap: float
    steps: int


def solve(
    problem: Canonical,
    monitor: Monitor,
    settings: InteriorPointSettings = _DEFAULT,
    start: Bounds | None = None,
) -> dict[str, float]:
    """Solve the whole program at once; O(k² (m + k)) a step, so for up to a couple of thousand arms.

    ``start`` is what the solution of a similar program proves for this one.
    """
    if start is not None and monitor.record(start, 0).gap <= monitor.tol:
        return {"iterations": 0}
    if problem.limits is not None:
        return within_limits.solve(problem, monitor, settings)

    def watch(alpha: Array, multipliers: Array, step: int) -> None:
        if monitor.callback is not None or monitor.max_seconds is not None:
            monitor.report(alpha, multipliers, step)

    warm = None if start is None else (start.alpha, start.multipliers)
    result = minimise(problem, monitor.tol, monitor.tick, warm=warm, settings=settings, watch=watch)
    monitor.report(result.alpha, result.multipliers, result.steps)
    return {"iterations": result.steps}


def starting_point(problem: Canonical, settings: InteriorPointSettings = _DEFAULT) -> Array:
    """An interior α that meets the constraints with room to spare where the bounds allow it.

    Each arm adds a matrix of the same size in the metric of Σ_j b_j b_jᵀ, the information that would meet every constraint
    by itself. (For the regret program that is UCB's allocation 2/Δ²; from a uniform one Newton's method takes twice as long.)
    """
    norm2 = squared_lengths(problem.features.T)
    # targets need not span: a trace of the features themselves makes the metric definite
    trace = settings.metric_trace * squared_lengths(problem.targets.T).sum() / len(norm2)
    rows = np.concatenate([problem.targets, problem.features * np.sqrt(trace / norm2)[:, None]])
    regular, metric = whitener(rows.T, np.ones(len(rows)), None)
    if not regular:
        raise SolverFailed("the arms are numerically dependent")
    alike = 1.0 / problem.by_variable(squared_lengths((problem.features @ metric).T))
    columns, tuning = _columns(problem), tuning_of(settings)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        alpha = newton_start.cold_allocation(*columns[:5], columns.owners, alike, tuning)
    if not problem.scalable:
        alpha = _enlarged(problem, alpha, settings)
    if not np.isfinite(alpha).all():
        raise SolverFailed("the information matrix is numerically singular")
    return alpha


def _enlarged(problem: Canonical, alpha: Array, settings: InteriorPointSettings) -> Array:
    """α moved within its bounds until the constraints hold with room to spare, or the bounds are met."""
    columns = _columns(problem)
    upper = np.full(len(alpha), np.inf) if problem.upper is None else 0.5 * problem.upper
    alpha = np.minimum(alpha, upper)
    for _ in range(_MOST_ENLARGEMENTS):
        regular, _, _, _, g = white(*columns[:4], problem.by_row(alpha))
        if not regular:
            raise SolverFailed("the information matrix is numerically singular")
        worst = float(g.max())
        if worst <= settings.start_level * 1.001 or np.all(alpha >= upper):
            break
        alpha = np.minimum(alpha * min(max(2.0, worst), _MOST_GROWTH), upper)
    return alpha


def minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    *,
    warm: tuple[Array, Array] | None = None,
    settings: InteriorPointSettings = _DEFAULT,
    watch: Callable[[Array, Array, int], None] | None = None,
) -> Iterate:
    """Run the method until its own gap is below a quarter of ``tol`` or no longer shrinks.

    ``warm`` is the solution (α, λ) of a similar problem. Where it is a bad starting point the method starts afresh. Where
    that fails too, it starts once more with steps that stay in the middle: long ones can run into a corner of the constraints,
    which are curved, and never come out.
    """
    cautious = replace(
        settings, step_fraction=settings.cautious_step_fraction, least_sigma=settings.cautious_sigma,
        stalled_sigma=settings.cautious_sigma,
    )  # fmt: skip
    known = warm is not None and warm[0].any() and warm[1].any()  # zeros are no start
    starts = [(warm, settings)] if known else []
    best: Iterate | None = None
    failure, steps = SolverFailed("no step was taken"), 0
    for start, tuned in [*starts, (None, settings), (None, cautious)]:
        left = settings.max_iterations - steps
        if left <= 0 and best is not None:
            break
        try:
            result = _minimise(problem, tol, tick, start, left, tuned, watch)
        except SolverFailed as error:
            failure = error
            continue
        steps += result.steps
        if best is None or result.gap < best.gap:
            best = result
        if best.gap <= tol:
            break
    if best is None:
        raise failure
    return Iterate(best.alpha, best.multipliers, best.gap, steps)


def _minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    warm: tuple[Array, Array] | None,
    max_steps: int,
    settings: InteriorPointSettings,
    watch: Callable[[Array, Array, int], None] | None,
) -> Iterate:
    """One run of `newton`, in units in which the start costs 1."""
    m = len(problem.targets)
    alpha, lam = (starting_point(problem, settings), np.zeros(m)) if warm is None else warm
    unit = float(alpha.sum())
    columns, tuning = _columns(_in_units(problem, unit)), tuning_of(settings)

    def seen(alpha: Array, lam: Array, step: int) -> None:
        if watch is not None:
            watch(alpha * unit, lam * unit, step)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        start, lam, distance = alpha / unit, lam / unit, tuning.cold_distance
        if warm is not None:
            distance, start = newton_start.warm_allocation(*columns, start, lam, tuning)
        x, y = newton_start.near_central_path(
            *columns[:5], columns.owners, start, lam, warm is not None, distance, tuning
        )
        steps, gap, (best_x, _, lam, _) = newton.minimise(columns, x, y, tol, max_steps, tuning, tick, seen)
    if not gap < np.inf:
        raise SolverFailed("Newton's method left the range of doubles at once")
    return Iterate(best_x[m : m + len(alpha)] * unit, lam * unit, gap, steps)


def _in_units(problem: Canonical, unit: float) -> Canonical:
    """The same problem with its costs in another unit."""
    return Canonical(
        problem.features * np.sqrt(unit),
        problem.targets,
        problem.compact_base,
        None if problem.upper is None else problem.upper / unit,
        problem.offset / unit,
        None if problem.ratios is None else problem.ratios / np.sqrt(unit),
        owners=problem.owners,
    )


def _columns(problem: Canonical) -> Problem:
    """The problem as `newton` takes it: columns, and None for what is not there."""
    return Problem(
        problem.features.T,
        problem.targets.T if problem.ratios is None else None,
        np.zeros(0) if problem.ratios is None else problem.ratios,
        problem.compact_base if len(problem.base) else None,
        problem.upper,
        problem.offset,
        problem.owners,
    )
