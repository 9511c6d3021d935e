r"""Very many arms in memory: a pool of those that matter, solved to the end between looks at all of them.

Without upper bounds few arms are played, and the pool holds those and the likeliest others. Upper bounds may ask for any number of
arms, each played as much as it may: those whose price is well above the going rate are one variable together, t Σ u_i a_i a_iᵀ with
t <= 1, which has as many rows as the rank, and so are those that are played although their price is below it. Only arms near
the going rate, where it is open how much they should be played, are variables of their own. At the optimum those between their
bounds have the going rate itself, so classes become pure as prices become accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import best_scale, evaluate, tidy
from allocopt.linear.dense import squared_row_lengths
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.newton.copies import one_of_each
from allocopt.solvers.settings import ActiveSetSettings

__all__ = ["is_large", "largest", "solve"]

_CLASSES = (1.1, 1.5, 3.0)  # prices, relative to the going rate, between which arms that may be full are one variable
_STALLED = 2  # times as many arms that are variables of their own, after a pass that brought nothing
_MOST = 8  # times the first number of these, at most
_COPIES = 2000  # arms from which copies are looked for
_SHARPER = 0.25  # part of the tolerance to which pools are solved in the end


@dataclass(frozen=True, eq=False)
class _Pool:
    """Arms that are variables of their own, classes of arms that are one variable each, and targets."""

    arms: IntArray
    classes: tuple[IntArray, ...]
    targets: IntArray


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Arms and targets that pools are chosen from: of copies one each. Copies that are bounded may all be needed."""

    arms: IntArray
    targets: IntArray

    @classmethod
    def of(cls, problem: Canonical) -> _Candidates:
        several = problem.upper is not None or problem.owners is not None
        arms = np.arange(problem.n_variables) if several else one_of_each(problem.features)
        return cls(arms, one_of_each(problem.targets))


@dataclass(frozen=True, eq=False)
class _Look:
    """Prices and constraints of everything for a pair (α, λ), in plain arithmetic, and the gap that they amount to."""

    alpha: Array
    multipliers: Array
    prices: Array
    constraints: Array
    gap: float


def is_large(problem: Canonical, settings: ActiveSetSettings) -> bool:
    """Whether looks at all arms cost so much more than those at a pool that there should be few; or most arms are copies."""
    k = problem.n_variables
    if k > settings.pool_from * settings.pool * max(problem.rank, 1):
        return True
    return k > _COPIES and problem.upper is None and 2 * len(_Candidates.of(problem).arms) < k


def solve(
    problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, start: Bounds | None, inner: Callable[..., Any]
) -> dict[str, float]:
    """Alternate pools, solved by ``inner``, and looks at all arms, until the gap is certified or does not shrink any more."""
    count, candidates = settings.pool * problem.rank, _Candidates.of(problem)
    if start is not None:
        monitor.record(start, 0)
    look = _first_look(problem) if start is None else _looked_at(problem, start.alpha, start.multipliers)
    steps, passes, best_gap, own = 0, 1, np.inf, count
    tol, sharp, pool = settings.rough_gap, _SHARPER * monitor.tol, None
    while passes <= settings.max_passes and not monitor.done:
        monitor.tick()
        pool = _pool_of(problem, look, own, count, pool, candidates)
        known = look if start is not None or passes > 1 else None
        answer = _solved(problem, pool, known, tol, monitor, settings, inner)
        if answer is None:  # the arms of the pool do not suffice within their bounds
            pool = _with_all_others(problem, pool)
            answer = _solved(problem, pool, None, tol, monitor, settings, inner)
        if answer is None:
            raise SolverFailed("no allocation of the arms in the pool could be shown to be feasible")
        look = _looked_at(problem, *_expanded(problem, pool, answer[0]))
        steps, passes = steps + answer[1], passes + 1
        improved = look.gap < settings.progress * best_gap
        best_gap = min(best_gap, look.gap)
        if look.gap <= monitor.tol or monitor.best is None or monitor.callback is not None or not improved:
            monitor.report(look.alpha, look.multipliers, passes)
        if not improved and tol <= sharp:
            own *= _STALLED
            if own > _MOST * count:
                break
        tol = sharp if look.gap < settings.close_gap or not improved else settings.rough_gap
    sizes = {} if pool is None else {"arms_in_pool": len(pool.arms), "targets_in_pool": len(pool.targets)}
    return {"iterations": steps, "passes": passes, **sizes}


def _solved(
    problem: Canonical, pool: _Pool, known: _Look | None, tol: float, monitor: Monitor, settings: ActiveSetSettings,
    inner: Callable[..., Any],
) -> tuple[Bounds, int] | None:  # fmt: skip
    """What the pool's own problem is solved to, and the steps; None where no allocation of its arms could be shown to be feasible."""
    part = _part(problem, pool)
    watch = Monitor(part, monitor.method, tol, monitor.seconds_left, None)
    try:
        steps = int(inner(part, watch, settings, _known(part, pool, known))["iterations"])
    except SolverFailed:
        steps = 0
    best = watch.best
    return None if best is None or not np.isfinite(best.upper) else (tidy(part, best, tol), steps)


def _first_look(problem: Canonical) -> _Look:
    """Prices and constraints for arms that are alike, with multipliers that are a smoothed maximum.

    Without bounds their scale does not matter; with upper bounds the arms are all played alike, so far as they may.
    """
    lengths = problem.by_variable(squared_row_lengths(problem.features))
    alpha = 1.0 / lengths
    if problem.upper is not None:
        alpha = np.where(np.isfinite(problem.upper), 0.5 * problem.upper, alpha)
    basis = whitener(problem, alpha)
    if basis is None:
        raise SolverFailed("the information matrix of an even allocation is numerically singular")
    g = squared_row_lengths(problem.targets @ basis)
    return _looked_at(problem, alpha, (g / g.max()) ** 5)


def _looked_at(problem: Canonical, alpha: Array, multipliers: Array) -> _Look:
    """One look at everything: two products of all rows with r×r."""
    basis = whitener(problem, alpha)
    if basis is None:
        raise SolverFailed("the information matrix is numerically singular")
    a = problem.features @ basis
    on = np.flatnonzero(multipliers)
    if problem.ratios is None:
        g = squared_row_lengths(problem.targets @ basis)
        weighted = (problem.targets[on] @ basis) * np.sqrt(multipliers[on])[:, None]
    else:
        g = squared_row_lengths(a) * problem.ratios**2
        weighted = a[on] * (problem.ratios[on] * np.sqrt(multipliers[on]))[:, None]
    prices = problem.by_variable(np.einsum("ij,ij->i", a @ (weighted.T @ weighted), a))
    known = problem.compact_base @ basis
    strength, total = float(multipliers @ g), max(float(multipliers.sum()), 1e-300)
    slope = strength * strength / total - float(np.einsum("ij,ij->", known @ (weighted.T @ weighted), known))
    q, lower = best_scale(slope, prices, problem.upper)
    worst, cost = float(g.max()), float(alpha.sum())
    upper = cost * (worst if problem.scalable else max(worst, 1.0)) + problem.offset
    lower += problem.offset
    excess = 0.0 if problem.scalable else max(worst - 1.0, 0.0)
    gap = (upper - lower) / lower + excess if lower > 0 else np.inf
    return _Look(alpha, multipliers, prices * q if q > 0 else prices / max(float(prices.max()), 1e-300), g, gap)


def _pool_of(
    problem: Canonical, look: _Look, own: int, count: int, last: _Pool | None, candidates: _Candidates
) -> _Pool:
    """Who is in the next pool, by the prices and constraints of the last look; arms and targets of the last pool stay in it."""
    prices, alpha = look.prices, look.alpha
    played = alpha > 0
    some = candidates.targets
    targets = np.union1d(
        some[largest(look.constraints[some], count)], some[_most_played(look.multipliers[some], count)]
    )
    if last is not None:
        targets = np.union1d(targets, last.targets)
    if problem.upper is None:
        some = candidates.arms
        arms = np.union1d(some[largest(prices[some], own)], some[_most_played(alpha[some], own)])
        return _Pool(arms if last is None else np.union1d(arms, last.arms), (), targets)
    finite = np.isfinite(problem.upper)
    between = played & (alpha < 0.999 * problem.upper)
    distance = np.abs(np.log(np.maximum(prices, 1e-300)))
    near = largest(-distance, own)
    arms = np.union1d(near, _most_played(np.where(between, alpha, 0.0), own))
    arms = np.union1d(arms, largest(np.where(finite, 0.0, prices), own))
    rest = finite.copy()
    rest[arms] = False
    edges = [1.0, *_CLASSES, np.inf]
    classes = [np.flatnonzero(rest & (prices >= low) & (prices < high)) for low, high in pairwise(edges)]
    classes.append(np.flatnonzero(rest & played & (prices < 1.0)))
    return _Pool(arms, tuple(c for c in classes if len(c)), targets)


def _with_all_others(problem: Canonical, pool: _Pool) -> _Pool:
    """The pool with one more class: all arms with an upper bound that are in none of the others."""
    others = np.zeros(problem.n_variables, dtype=bool) if problem.upper is None else np.isfinite(problem.upper)
    for members in (pool.arms, *pool.classes):
        others[members] = False
    return replace(pool, classes=(*pool.classes, np.flatnonzero(others))) if others.any() else pool


def largest(values: Array, count: int) -> IntArray:
    """Places of the ``count`` largest values, sorted."""
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count)[:count])


def _most_played(alpha: Array, count: int) -> IntArray:
    """The arms that are played most, of those that are played at all."""
    some = np.flatnonzero(alpha)
    return some[largest(alpha[some], count)]


def _part(problem: Canonical, pool: _Pool) -> Canonical:
    """The problem of a pool: its arms, then its classes, as a problem of its own."""
    rows = [problem.features[problem.rows_of(pool.arms)]]
    own = problem.owners_within(pool.arms)
    owners = [np.arange(len(pool.arms)) if own is None else own]
    upper = None if problem.upper is None else [problem.upper[pool.arms]]
    for n, members in enumerate(pool.classes):
        assert problem.upper is not None and upper is not None
        most = problem.upper[members]
        total = float(most.sum())
        weight = problem.by_row(problem.upper)[problem.rows_of(members)] / total
        images = problem.features[problem.rows_of(members)] * np.sqrt(weight)[:, None]
        triangle: Array = np.asarray(np.linalg.qr(images, mode="r"))
        triangle = triangle[triangle.any(axis=1)]
        rows.append(triangle)
        owners.append(np.full(len(triangle), len(pool.arms) + n))
        upper.append(np.array([total]))
    several = bool(pool.classes) or own is not None
    return Canonical(
        np.concatenate(rows), problem.targets[pool.targets], problem.compact_base,
        None if upper is None else np.concatenate(upper), problem.offset,
        owners=np.concatenate(owners) if several else None,
    )  # fmt: skip


def _expanded(problem: Canonical, pool: _Pool, found: Bounds) -> tuple[Array, Array]:
    """α and λ of everything from those of a pool."""
    alpha, multipliers = np.zeros(problem.n_variables), np.zeros(len(problem.targets))
    alpha[pool.arms] = found.alpha[: len(pool.arms)]
    for members, together in zip(pool.classes, found.alpha[len(pool.arms) :], strict=True):
        assert problem.upper is not None
        most = problem.upper[members]
        alpha[members] = np.minimum(together / float(most.sum()), 1.0) * most
    multipliers[pool.targets] = found.multipliers
    return alpha, multipliers


def _known(part: Canonical, pool: _Pool, look: _Look | None) -> Bounds | None:
    """What the last look's pair proves for the next pool, to begin from; None where that is nothing."""
    if look is None:
        return None
    together = np.array([float(look.alpha[c].sum()) for c in pool.classes])
    bounds = evaluate(part, np.concatenate([look.alpha[pool.arms], together]), look.multipliers[pool.targets])
    return bounds if np.isfinite(bounds.upper) else None
