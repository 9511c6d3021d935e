"""Column and constraint generation around the interior point: a few arms and constraints at a time, priced against all.

Only the pricing pass (`allocopt.canonical.evaluate`) touches every arm; it costs one product of k×r by r×r for the
constraints and one for the prices, and the certified bounds of the whole program come out of it.
"""

from __future__ import annotations

import numpy as np

from allocopt.canonical import Bounds, Canonical, evaluate, whitener
from allocopt.errors import SolverFailed
from allocopt.progress import Monitor
from allocopt.solvers import interior_point
from allocopt.threads import single_threaded
from allocopt.validation import Array, IntArray, whole_number

__all__ = ["solve"]

_FIRST = 2  # times r arms and constraints in the first master
_ENTER = 2  # times r of them enter after each pricing pass
_SPARE = 3  # times r may stay in the master before idle ones leave
_WARM = 10.0  # gap above which the last master says too little about the next
_ROUGH = 0.03  # gap to which masters are solved at first
_CLOSE = 0.3  # gap below which they are solved to the end
_IDLE = 1e-7  # share of the largest α or λ below which one is idle
_VIOLATION = 1e-12  # relative, below which a violated constraint or price is rounding


def solve(problem: Canonical, monitor: Monitor, *, max_passes: int = 200) -> dict[str, float]:
    """Alternate masters and pricing passes until the gap over all arms is certified or nothing enters any more."""
    max_passes = whole_number("max_passes", max_passes, least=1)
    features, targets, first = _first_sets(problem)
    monitor.record(first, 0)
    gap = 1.0
    steps = 0
    master_tol = _ROUGH
    passes = 1
    warm = None
    while passes <= max_passes and not monitor.done:
        monitor.tick()
        master = Canonical(
            problem.features[features],
            problem.targets[targets],
            problem.base,
            None if problem.upper is None else problem.upper[features],
            problem.offset,
        )
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
        if not np.isfinite(bounds.upper):
            features = _widen(problem, features, passes)
            continue
        entering_features = _violators(bounds.prices, features, _ENTER * problem.rank)
        entering_targets = _violators(bounds.constraints, targets, _ENTER * problem.rank)
        improved = bounds.gap < 0.9 * gap
        gap = min(gap, bounds.gap)
        if not len(entering_features) and not len(entering_targets) and master_tol <= monitor.tol and not improved:
            break  # the master is as good as this arithmetic makes it
        # Far from the optimum a rough master tells as well which arms are missing; close to it they hardly change.
        master_tol = monitor.tol if bounds.gap < _CLOSE else _ROUGH
        features = np.union1d(_keep(features, result.alpha, _SPARE * problem.rank), entering_features)
        targets = np.union1d(_keep(targets, result.multipliers, _SPARE * problem.rank), entering_targets)
        warm = (alpha[features], multipliers[targets], bounds.gap) if bounds.gap < _WARM else None
    return {"iterations": steps, "passes": passes, "arms_in_master": len(features), "targets_in_master": len(targets)}


def _first_sets(problem: Canonical) -> tuple[IntArray, IntArray, Bounds]:
    """Arms and constraints that matter for an even allocation, and what that allocation proves."""
    alpha = interior_point.starting_point(problem)
    count = _FIRST * problem.rank
    flat = evaluate(problem, alpha, np.ones(len(problem.targets)))
    if not np.isfinite(flat.upper):
        raise SolverFailed("the information matrix of an even allocation is numerically singular")
    weights = (flat.constraints / flat.constraints.max()) ** 5
    bounds = evaluate(problem, alpha, weights)
    features = np.union1d(_largest(bounds.prices, count), _spanning(problem, bounds.prices))
    if problem.upper is not None:
        features = _feasible(problem, features, bounds.prices)
    return features, _largest(bounds.constraints, count), bounds


def _feasible(problem: Canonical, features: IntArray, prices: Array) -> IntArray:
    """Enough arms, the best-priced first, that the constraints can be met within their upper bounds."""
    order = np.argsort(-prices)
    all_arms = np.arange(len(prices))
    wanted = max(0.8, 0.5 * (1.0 + _least_constraint(problem, all_arms)))
    size = len(features)
    while len(features) < len(prices) and not _least_constraint(problem, features) <= wanted:
        size *= 2
        features = np.union1d(features, order[:size])
    return features


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
    """Arms of high price that span everything: the best ones in groups, until a triangular factor has full rank."""
    order = np.argsort(-prices)
    rows = problem.features / np.sqrt(np.einsum("ij,ij->i", problem.features, problem.features))[:, None]
    chosen: list[int] = []
    basis = np.zeros((0, problem.rank))
    for threshold in (0.3, 0.03, 1e-4, 1e-8, 0.0):  # take an arm if this much of it is new
        for i in order:
            rest = rows[i] - (rows[i] @ basis.T) @ basis
            rest -= (rest @ basis.T) @ basis
            length = float(np.sqrt(rest @ rest))
            if length > threshold:
                basis = np.vstack([basis, rest / length])
                chosen.append(int(i))
                if len(chosen) == problem.rank:
                    return np.array(sorted(chosen))
    return np.array(sorted(chosen), dtype=np.int64)


def _largest(values: Array, count: int) -> IntArray:
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count)[:count])


def _violators(values: Array, inside: IntArray, count: int) -> IntArray:
    """The ``count`` largest values that exceed every value inside the master."""
    limit = float(values[inside].max()) * (1.0 + _VIOLATION)
    above = np.flatnonzero(values > limit)
    if len(above) > count:
        above = above[np.argpartition(-values[above], count)[:count]]
    return above


def _keep(indices: IntArray, values: Array, spare: int) -> IntArray:
    """Drop idle members once there are more than ``spare``; dropping earlier only makes them come back."""
    if len(indices) <= spare:
        return indices
    busy: IntArray = indices[values > _IDLE * values.max()]
    return busy


def _widen(problem: Canonical, features: IntArray, seed: int) -> IntArray:
    """More arms when those in the master are numerically dependent."""
    rng = np.random.default_rng(seed)
    extra = rng.choice(len(problem.features), min(4 * problem.rank, len(problem.features)), replace=False)
    return np.union1d(features, extra)
