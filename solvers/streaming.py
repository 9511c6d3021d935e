"""The active-set method, and optimal designs, over arms that are looked at block by block.

Outside, a pool of some thousand arms; inside, `active_set` (or `design`) on the pool, which is an ordinary problem in memory.
Only the pass that prices the pool's answer against all arms touches them all. Since the pool is solved to the end between
passes, a handful of passes is enough, however many arms there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import MethodUnavailable, SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate, tidy
from allocopt.solvers import active_set, design, frank_wolfe
from allocopt.solvers.monitor import Monitor, OutOfTime
from allocopt.solvers.settings import StreamingSettings

__all__ = ["DEFAULT", "solve"]

DEFAULT = StreamingSettings()
_WIDER = 2  # times as many arms in a pool that failed, each time


class Streamed(Protocol):
    """What this method needs of a problem whose arms are read block by block."""

    rank: int
    fixes_something: bool
    sums: int
    """Passes that summed what is fixed."""

    def first_pool(self) -> IntArray:
        """Arms to begin with."""

    def candidates(self, indices: IntArray) -> IntArray:
        """Those of some arms that can be in a pool, without copies."""

    def spanning_arms(self) -> IntArray:
        """Some arms that span as much as all."""

    def spread(self, count: int) -> IntArray:
        """About so many arms, evenly spread over all."""

    def part(self, pool: IntArray) -> Canonical:
        """The problem of a pool alone."""

    def price(self, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array, last: bool = False) -> Any:
        """Certified bounds for all arms, and the arms that violate most."""


@dataclass(frozen=True, eq=False)
class _Pool:
    """Arms that are solved together, the pair (α, λ) to begin from, and the gap to aim at."""

    arms: IntArray
    pair: tuple[Array, Array] | None
    tol: float


@dataclass(frozen=True, eq=False)
class _Answer:
    """The result of a pool's own method."""

    part: Canonical
    bounds: Bounds
    steps: int
    out_of_time: bool


def solve(
    problem: Streamed,
    monitor: Monitor,
    settings: StreamingSettings | None = None,
    start: tuple[IntArray, Array, Array] | None = None,
) -> dict[str, float]:
    """Alternate pools and pricing passes until the gap over all arms is certified or nothing enters any more.

    ``start`` is the solution of a similar problem: the arms in use, and α and λ of these.
    """
    how = DEFAULT if settings is None else settings
    sharp = how.tol_share * monitor.tol
    pool = _first_pool(problem, how.rough_gap, sharp, start)
    steps = passes = 0
    widened = 0
    if problem.fixes_something:
        passes += _price_nothing_more(problem, pool.arms, monitor)
    while passes < how.max_passes and not monitor.done:
        if passes:
            monitor.tick()
        answer = _solved(problem, pool, monitor, how, first=not passes, again=widened < how.widenings)
        if (
            answer is None
        ):  # the pool is numerically dependent, or cannot do it within its bounds: look for arms that can
            widened += 1
            more = problem.spanning_arms() if widened == 1 else problem.spread(_WIDER**widened * len(pool.arms))
            pool = _Pool(np.union1d(pool.arms, more), None, pool.tol)
            continue
        steps += answer.steps
        best = answer.bounds
        found = problem.price(pool.arms, answer.part, best.alpha, best.multipliers)
        passes += found.looks
        entering = _entering(problem, found, how.entering)
        stuck = not len(entering) and pool.tol <= sharp
        final = found.bounds.gap <= monitor.tol or stuck or passes >= how.max_passes
        if final and not found.complete:  # a last pass that also prices the arms which were screened out
            found = problem.price(pool.arms, answer.part, best.alpha, best.multipliers, last=True)
            passes += 1
            entering = _entering(problem, found, how.entering)
            stuck = stuck and not len(entering)
        if found.complete:
            monitor.record(found.bounds, passes)
        if answer.out_of_time:
            raise OutOfTime
        if stuck:
            break  # rounding does not let the pool improve any further
        tol = sharp if found.bounds.gap < how.close_gap or not len(entering) else how.rough_gap
        stay = _staying(best, monitor.method)
        pool = _Pool(*_extended(pool.arms[stay], entering, best.alpha[stay], best.multipliers[stay]), tol)
        del answer, best, found, stay  # before the arrays of the next pool are made
    return {"iterations": steps, "passes": passes + problem.sums, "arms_in_pool": len(pool.arms)}


def _price_nothing_more(problem: Streamed, arms: IntArray, monitor: Monitor) -> int:
    """One pass that certifies what is fixed alone, where it may be enough: it is for the pool; the number of passes."""
    nothing, part = np.zeros(len(arms)), problem.part(arms)
    if not evaluate(part, nothing, nothing).gap <= monitor.tol:
        return 0
    try:
        found = problem.price(arms, part, nothing, nothing)
    except SolverFailed:
        return 0  # what is fixed does not span
    if found.bounds.gap <= monitor.tol:
        monitor.record(found.bounds, 1)
    return int(found.looks)


def _pool_solver(part: Canonical, monitor: Monitor, how: StreamingSettings) -> Callable[..., dict[str, Any]]:
    """How a pool is solved; the outer monitor is told the name."""
    chosen = how.pool_method
    if chosen == "auto":
        chosen = "design" if design.common_ratio(part) is not None else "active-set"
    monitor.method = chosen
    if chosen == "design":
        return partial(design.solve, settings=how.design)
    if chosen == "active-set":
        return partial(active_set.solve, settings=how.pool)
    if not part.scalable:
        raise MethodUnavailable(
            "method 'frank-wolfe' cannot handle lower or upper bounds on the allocation; 'active-set' can"
        )

    def afresh(part: Canonical, monitor: Monitor, start: Bounds | None) -> dict[str, Any]:
        """Weights are not carried over: they would have to be moved inwards first."""
        return frank_wolfe.solve(part, monitor, how.frank_wolfe)

    return afresh


def _first_pool(problem: Streamed, rough: float, sharp: float, start: tuple[IntArray, Array, Array] | None) -> _Pool:
    """A sample of arms, with those of a known solution where there is one; they span as much as all arms do."""
    arms = problem.first_pool()
    pair, tol = None, rough
    if start is not None:
        arms, pair = _extended(start[0], arms, start[1], start[2])
        tol = sharp
    if len(arms) < problem.rank:
        arms, pair = np.union1d(arms, problem.spanning_arms()), None
    return _Pool(arms, pair, tol)


def _solved(
    problem: Streamed, pool: _Pool, monitor: Monitor, how: StreamingSettings, *, first: bool, again: bool
) -> _Answer | None:
    """The pool's own problem, solved; None where it fails without proving anything, if one may try ``again``."""
    part = problem.part(pool.arms)
    solver = _pool_solver(part, monitor, how)
    inner = Monitor(part, monitor.method, max(pool.tol, how.tol_share * monitor.tol), monitor.seconds_left, None)
    steps, out_of_time = 0, False
    try:
        steps = int(solver(part, inner, start=_proven(part, pool.pair))["iterations"])
    except OutOfTime:
        if not first or inner.best is None:
            raise
        out_of_time = True  # one pricing pass still certifies the best pair so far
    except SolverFailed:
        if inner.best is None or not np.isfinite(inner.best.upper):
            if again:
                return None
            raise
    best = inner.best
    if best is None or not np.isfinite(best.upper):
        if again:
            return None
        raise SolverFailed("the information matrix of the arms in the pool is numerically singular")
    return _Answer(part, tidy(part, best, inner.tol), steps, out_of_time)


def _proven(part: Canonical, pair: tuple[Array, Array] | None) -> Bounds | None:
    """The bounds that a known pair (α, λ) proves for the pool; None where the upper one is infinite."""
    bounds = None if pair is None else evaluate(part, *pair)
    return bounds if bounds is not None and np.isfinite(bounds.upper) else None


def _staying(best: Bounds, method: str) -> NDArray[np.bool_]:
    """The arms of a pool that stay in it.

    A design is solved over the whole pool at once, and those that it does not play hardly ever come back: they would only be
    work. Active-set looks at a few members at a time anyway, and frank-wolfe gives every target a multiplier.
    """
    used: NDArray[np.bool_] = (best.alpha > 0) | (best.multipliers > 0)
    return used if method == "design" else np.ones_like(used)


def _entering(problem: Streamed, found: Any, entering: int) -> IntArray:
    """The arms that a pass found missing in the pool."""
    count = entering * problem.rank
    return problem.candidates(np.union1d(found.features[:count], found.targets[:count]))


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
