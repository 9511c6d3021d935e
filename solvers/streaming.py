"""The active-set method over arms that are looked at block by block.

Outside, a pool of some thousand arms; inside, `active_set` on the pool, which is an ordinary problem in memory. Only the pass
that prices the pool's answer against all arms touches them all. Since the pool is solved to the end between passes, a
handful of passes is enough, however many arms there are.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate, tidy
from allocopt.certify.monitor import Monitor, OutOfTime
from allocopt.solvers import active_set

__all__ = ["solve"]

_ENTER = 12  # times r arms enter the pool after a pass, for their price and for their constraint each
_ROUGH = 1e-2  # gap to which the first pool is solved: a sample does not deserve more
_SHARE = 0.3  # of the tolerance is what the pool's own gap may take


class Streamed(Protocol):
    """What is asked of a streamed problem."""

    rank: int

    def first_pool(self) -> IntArray:
        """Arms to begin with."""

    def playable(self, indices: IntArray) -> IntArray:
        """Those of some arms that can be in a pool."""

    def spanning_arms(self) -> IntArray:
        """Some arms that span as much as all."""

    def part(self, pool: IntArray) -> Canonical:
        """The problem of a pool alone."""

    def price(self, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array, last: bool = False) -> Any:
        """Certified bounds for all arms, and the arms that violate most."""


def solve(
    problem: Streamed,
    monitor: Monitor,
    *,
    max_passes: int = 200,
    start: tuple[IntArray, Array, Array] | None = None,
) -> dict[str, float]:
    """Alternate pools and pricing passes until the gap over all arms is certified or nothing enters any more.

    ``start`` is the solution of a similar problem: the arms in use, and α and λ of these.
    """
    max_passes = whole_number("max_passes", max_passes, least=1)
    pool = problem.first_pool()
    pair: tuple[Array, Array] | None = None
    tol = _ROUGH
    if start is not None:
        pool, pair = _extended(start[0], pool, start[1], start[2])
        tol = _SHARE * monitor.tol
    if len(pool) < problem.rank:
        pool, pair = np.union1d(pool, problem.spanning_arms()), None
    steps = passes = 0
    spanning = False
    while passes < max_passes and not monitor.done:
        if passes:
            monitor.tick()
        part = problem.part(pool)
        inner = Monitor(part, monitor.method, max(tol, _SHARE * monitor.tol), monitor.seconds_left, None)
        out_of_time = False
        try:
            steps += int(active_set.solve(part, inner, start=_proven(part, pair))["iterations"])
        except OutOfTime:
            if passes or inner.best is None:
                raise
            out_of_time = True  # one pass makes a certified answer of what there is
        except SolverFailed:
            if inner.best is None or not np.isfinite(inner.best.upper):
                if spanning:
                    raise
                spanning = True  # the pool is numerically dependent: look for arms that are not
                pool, pair = np.union1d(pool, problem.spanning_arms()), None
                continue
        best = inner.best
        if best is None or not np.isfinite(best.upper):
            raise SolverFailed("the information matrix of the arms in the pool is numerically singular")
        best = tidy(part, best, inner.tol)
        found = problem.price(pool, part, best.alpha, best.multipliers)
        passes += 1
        entering = _entering(problem, found)
        stuck = not len(entering) and tol <= _SHARE * monitor.tol
        final = found.bounds.gap <= monitor.tol or stuck or passes >= max_passes
        if final and not found.complete:  # arms that were screened out have the last word too
            found = problem.price(pool, part, best.alpha, best.multipliers, last=True)
            passes += 1
            entering = _entering(problem, found)
            stuck = stuck and not len(entering)
        if found.complete:
            monitor.record(found.bounds, passes)
        if out_of_time:
            raise OutOfTime
        if stuck:
            break  # the pool is as good as this arithmetic makes it
        tol = _SHARE * monitor.tol if found.bounds.gap < 0.1 or not len(entering) else _ROUGH
        pool, pair = _extended(pool, entering, best.alpha, best.multipliers)
    return {"iterations": steps, "passes": passes, "arms_in_pool": len(pool)}


def _proven(part: Canonical, pair: tuple[Array, Array] | None) -> Bounds | None:
    """What a known pair (α, λ) proves for the pool; None where that is nothing."""
    bounds = None if pair is None else evaluate(part, *pair)
    return bounds if bounds is not None and np.isfinite(bounds.upper) else None


def _entering(problem: Streamed, found: Any) -> IntArray:
    """The arms that a pass found missing in the pool."""
    count = _ENTER * problem.rank
    return problem.playable(np.union1d(found.features[:count], found.targets[:count]))


def _extended(
    pool: IntArray, entering: IntArray, alpha: Array, multipliers: Array
) -> tuple[IntArray, tuple[Array, Array]]:
    """The pool with the arms that enter, sorted, and the pair (α, λ) carried over."""
    larger = np.union1d(pool, entering)
    at = np.searchsorted(larger, pool)
    pair = np.zeros(len(larger)), np.zeros(len(larger))
    pair[0][at] = alpha
    pair[1][at] = multipliers
    return larger, pair
