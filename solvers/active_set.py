"""Column and constraint generation around the interior point: a few arms and constraints at a time, priced against all.

Only the pricing pass (`allocopt.certify.canonical.evaluate`) touches every arm; it costs one product of k×r by r×r for the
constraints and one for the prices, and the certified bounds of the whole program come out of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from allocopt.base.errors import SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import evaluate
from allocopt.certify.monitor import Monitor
from allocopt.solvers import interior_point

__all__ = ["solve"]

_FIRST = 2  # times r arms and constraints in the first master
_SAMPLE = 40  # times r arms are looked at for the first allocation of a large problem
_ENTER = 2  # times r of them enter after each pricing pass
_SPARE = 3  # times r may stay in the master before idle ones leave
_WARM = 10.0  # gap above which the last master says too little about the next
_ROUGH = 0.03  # gap to which masters are solved at first
_CLOSE = 0.3  # gap below which they are solved to the end
_IDLE = 1e-7  # share of the largest α or λ below which one is idle
_SMALL = 1e-2  # share below which one is idle if its price or constraint is far from tight: rough masters have no zeros
_FAR = 0.05  # relative distance from tight that is far
_LOSS = 2.0  # factor by which constraints may suffer when idle arms leave
_FULL = 0.9  # share of its upper bound from which an arm counts as played as much as it may
_VIOLATION = 1e-12  # relative, below which a violated constraint or price is rounding


def solve(
    problem: Canonical, monitor: Monitor, *, max_passes: int = 200, start: Bounds | None = None
) -> dict[str, float]:
    """Alternate masters and pricing passes until the gap over all arms is certified or nothing enters any more.

    ``start`` is what the solution of a similar program proves for this one.
    """
    max_passes = whole_number("max_passes", max_passes, least=1)
    warm = None
    if start is None:
        features, targets, first = _first_sets(problem)
        monitor.record(first, 0)
        master_tol = _ROUGH
    else:
        monitor.record(start, 0)
        count = _FIRST * problem.rank
        features = np.union1d(np.flatnonzero(start.alpha), _largest(start.prices, count))
        targets = np.union1d(np.flatnonzero(start.multipliers), _largest(start.constraints, count))
        if start.gap < _WARM:
            warm = (start.alpha[features], start.multipliers[targets])
        master_tol = monitor.tol if start.gap < _CLOSE else _ROUGH
    gap = np.inf
    steps = 0
    passes = 1
    while passes <= max_passes and not monitor.done:
        monitor.tick()
        master = _part(problem, features, targets).problem
        with single_threaded():
            try:
                result = interior_point.minimise(master, master_tol, monitor.tick, warm=warm)
            except SolverFailed:
                if monitor.best is None or not np.isfinite(monitor.best.upper):
                    raise
                break
        steps += result.steps
        alpha = np.zeros(len(problem.features))
        multipliers = np.zeros(len(problem.targets))
        alpha[features] = result.alpha
        multipliers[targets] = result.multipliers
        bounds = monitor.report(alpha, multipliers, passes)
        passes += 1
        if not np.isfinite(
            bounds.constraints
        ).all():  # (an infinite upper bound only says that constraints are missing)
            wider = _widen(problem, features, passes)
            if len(wider) == len(features) and warm is None and master_tol <= monitor.tol:
                break  # nothing can be proven in doubles: the caller has the last iterate
            master_tol = monitor.tol if len(wider) == len(features) else master_tol
            features, warm = wider, None
            continue
        rate = _going_rate(problem, bounds.prices[features], result.alpha, features)
        entering_features = _violators(bounds.prices, features, rate, _ENTER * problem.rank)
        tight = float(bounds.constraints[targets].max())
        entering_targets = _violators(bounds.constraints, targets, tight, _ENTER * problem.rank)
        improved = bounds.gap < 0.9 * gap
        gap = min(gap, bounds.gap)
        nothing_enters = not len(entering_features) and not len(entering_targets)
        if nothing_enters and master_tol <= monitor.tol and not improved:
            break  # the master is as good as this arithmetic makes it
        # Far from the optimum a rough master tells as well which arms are missing; close to it they hardly change.
        master_tol = monitor.tol if bounds.gap < _CLOSE or nothing_enters else _ROUGH
        if improved:  # else what leaves may only come back
            spare = _SPARE * problem.rank
            busy = _keep(features, result.alpha, bounds.prices[features] < (1.0 - _FAR) * rate, spare)
            if len(busy) < len(features) and _suffice(problem, busy, alpha[busy], targets, _LOSS * tight):
                features = busy
            targets = _keep(targets, result.multipliers, bounds.constraints[targets] < (1.0 - _FAR) * tight, spare)
        features, targets = np.union1d(features, entering_features), np.union1d(targets, entering_targets)
        warm = (alpha[features], multipliers[targets]) if bounds.gap < _WARM else None
    return {"iterations": steps, "passes": passes, "arms_in_master": len(features), "targets_in_master": len(targets)}


def _first_sets(problem: Canonical) -> tuple[IntArray, IntArray, Bounds]:
    """Arms and constraints that matter for an even allocation over a sample, and what that allocation proves."""
    few = _sample(problem)
    alpha = np.zeros(len(problem.features))
    alpha[few.features] = interior_point.starting_point(few.problem)
    point = evaluate(few.problem, alpha[few.features], np.ones(len(few.targets)))
    if not np.isfinite(point.upper):
        raise SolverFailed("the information matrix of an even allocation is numerically singular")
    multipliers = np.zeros(len(problem.targets))
    multipliers[few.targets] = (point.constraints / point.constraints.max()) ** 5  # a smoothed maximum
    bounds = evaluate(problem, alpha, multipliers)
    count = _FIRST * problem.rank
    features = np.union1d(_largest(bounds.prices, count), _spanning(problem, bounds.prices))
    if problem.upper is not None:
        features = _feasible(problem, features, bounds.prices)
    return features, _largest(bounds.constraints, count), bounds


@dataclass(frozen=True, eq=False)
class _Part:
    """Some arms and constraints of a problem."""

    problem: Canonical
    features: IntArray
    targets: IntArray


def _part(problem: Canonical, features: IntArray, targets: IntArray) -> _Part:
    same = problem.ratios is not None and np.array_equal(features, targets)
    part = Canonical(
        problem.features[features],
        problem.targets[targets],
        problem.compact_base,
        None if problem.upper is None else problem.upper[features],
        problem.offset,
        problem.ratios[features] if same and problem.ratios is not None else None,
    )
    return _Part(part, features, targets)


def _sample(problem: Canonical) -> _Part:
    """Everything, or an even sample of a large problem that spans as much."""
    size = _SAMPLE * problem.rank
    features = np.arange(len(problem.features))
    targets = np.arange(len(problem.targets))
    if problem.upper is not None or len(features) <= 2 * size:
        return _part(problem, features, targets)
    features = np.linspace(0, len(features) - 1, size).astype(np.int64)
    if problem.ratios is not None:
        targets = features
    elif len(targets) > size:
        targets = np.linspace(0, len(targets) - 1, size).astype(np.int64)
    sample = _part(problem, features, targets)
    if whitener(sample.problem, np.ones(len(features))) is not None:
        return sample
    return _part(problem, np.union1d(features, _spanning(problem, problem.feature_lengths)), targets)


def _feasible(problem: Canonical, features: IntArray, prices: Array) -> IntArray:
    """Enough arms, the best-priced first, that the constraints can be met within their upper bounds."""
    order = np.argsort(-prices)
    wanted = _wanted(problem)
    size = len(features)
    while len(features) < len(prices) and not _least_constraint(problem, features) <= wanted:
        size *= 2
        features = np.union1d(features, order[:size])
    return features


def _wanted(problem: Canonical) -> float:
    """What the arms of a master should be able to bring every constraint down to within their upper bounds."""
    return max(0.8, 0.5 * (1.0 + _least_constraint(problem, np.arange(len(problem.features)))))


def _least_constraint(problem: Canonical, features: IntArray) -> float:
    """max_j g_j with these arms at their upper bounds (practically unlimited where there is none)."""
    assert problem.upper is not None
    upper = problem.upper[features]
    most = np.where(np.isfinite(upper), upper, 1e6 * max(float(upper[np.isfinite(upper)].max(initial=0.0)), 1.0))
    part = Canonical(problem.features[features], problem.targets, problem.base)
    basis = whitener(part, most)
    if basis is None:
        return float("inf")
    white = problem.targets @ basis
    return float(np.einsum("ij,ij->i", white, white).max())


def _spanning(problem: Canonical, prices: Array) -> IntArray:
    """r arms of high price that span everything: pivoted QR over the best and a sample, over all only if those do not."""
    count = _SAMPLE * problem.rank
    everyone = np.arange(len(prices))
    some = np.union1d(
        _largest(prices, count), np.linspace(0, len(prices) - 1, min(count, len(prices))).astype(np.int64)
    )
    for candidates in (some, everyone):
        rows = problem.features[candidates] / problem.feature_lengths[candidates, None]
        weight = np.sqrt(prices[candidates] / max(float(prices.max()), 1e-300)) + 1e-3
        factor, order = qr((rows * weight[:, None]).T, mode="r", pivoting=True, check_finite=False)[-2:]
        full = min(factor.shape) >= problem.rank
        if full and abs(factor[-1, problem.rank - 1]) > 1e-8 * abs(factor[0, 0]):
            break
    return np.sort(candidates[order[: problem.rank]])


def _largest(values: Array, count: int) -> IntArray:
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count)[:count])


def _going_rate(problem: Canonical, prices: Array, alpha: Array, features: IntArray) -> float:
    """The price above which an arm outside the master is wanted: that of the arms which the master can still play more.

    An arm at its upper bound may have any price. (The scale of λ, and with it of all prices, is the certificate's choice.)
    """
    if problem.upper is None:
        return float(prices.max())
    return float(prices[alpha < _FULL * problem.upper[features]].max(initial=0.0)) or 1.0


def _violators(values: Array, inside: IntArray, limit: float, count: int) -> IntArray:
    """The ``count`` largest values outside the master that exceed the limit."""
    above = np.setdiff1d(np.flatnonzero(values > limit * (1.0 + _VIOLATION)), inside)
    if len(above) > count:
        above = above[np.argpartition(-values[above], count)[:count]]
    return above


def _keep(indices: IntArray, values: Array, far: NDArray[np.bool_], spare: int) -> IntArray:
    """Drop idle members once there are more than ``spare``; dropping earlier only makes them come back."""
    if len(indices) <= spare:
        return indices
    busy: IntArray = indices[values > np.where(far, _SMALL, _IDLE) * values.max()]
    return busy


def _suffice(problem: Canonical, features: IntArray, alpha: Array, targets: IntArray, level: float) -> bool:
    """Whether some arms of a master meet its constraints, to a level, without the others, and could meet all there are."""
    if problem.upper is not None and not _least_constraint(problem, features) <= _wanted(problem):
        return False
    basis = whitener(Canonical(problem.features[features], problem.targets[:0], problem.base), alpha)
    if basis is None:
        return False
    images = problem.targets[targets] @ basis
    return bool(np.einsum("ij,ij->i", images, images).max() <= level)


def _widen(problem: Canonical, features: IntArray, seed: int) -> IntArray:
    """More arms when those in the master are numerically dependent."""
    rng = np.random.default_rng(seed)
    extra = rng.choice(len(problem.features), min(4 * problem.rank, len(problem.features)), replace=False)
    return np.union1d(features, extra)
