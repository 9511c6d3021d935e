"""Column and constraint generation around the interior point: a few arms and constraints at a time, priced against all.

The small subproblem of these arms and constraints is the *master problem*, here `_Master`; arms and constraints in it are its members.

Only the pricing pass (`allocopt.certify.certificate.evaluate`) touches every arm; it costs one product of k×r by r×r for the
constraints and one for the prices, and the certified bounds of the whole program come out of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from allocopt.base.errors import SolverFailed
from allocopt.base.machine import single_threaded, threads_of_numpy
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import evaluate
from allocopt.linear.dense import squared_row_lengths
from allocopt.solvers import interior_point, multiplicative
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.newton import pooled, within_limits
from allocopt.solvers.newton.pooled import largest
from allocopt.solvers.settings import ActiveSetSettings

__all__ = ["solve"]

_DEFAULT = ActiveSetSettings()
_MOST_WITHIN_BOUNDS = 20_000  # arms with upper bounds that are tried once more without pools, where these fail


@dataclass(frozen=True, eq=False)
class _Master:
    """The arms and constraints that the interior point sees next, the gap to aim at, and the pair (α, λ) to begin from."""

    features: IntArray
    targets: IntArray
    tol: float
    warm: tuple[Array, Array] | None


def solve(
    problem: Canonical,
    monitor: Monitor,
    settings: ActiveSetSettings = _DEFAULT,
    start: Bounds | None = None,
) -> dict[str, float]:
    """Alternate masters and pricing passes until the gap over all arms is certified or nothing enters any more.

    ``start`` is what the solution of a similar program proves for this one.
    """
    if problem.limits is not None:
        return within_limits.generate(problem, monitor, settings)
    if pooled.is_large(problem, settings):
        try:
            return pooled.solve(problem, monitor, settings, start, _by_masters)
        except SolverFailed:
            if monitor.best is not None and np.isfinite(monitor.best.upper):
                raise
            if problem.upper is not None and problem.n_variables > _MOST_WITHIN_BOUNDS:
                raise  # masters that are feasible could need more memory than there is
    return _by_masters(problem, monitor, settings, start)


def _by_masters(
    problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, start: Bounds | None
) -> dict[str, float]:
    """`solve` where looks at all arms are cheap."""
    master = (
        _first_master(problem, monitor, settings) if start is None else _known_master(problem, monitor, settings, start)
    )
    best_gap, steps, passes = np.inf, 0, 1
    while passes <= settings.max_passes and not monitor.done:
        monitor.tick()
        result = _solved(problem, master, monitor, settings)
        if result is None:
            break
        steps += result.steps
        alpha, multipliers = np.zeros(problem.n_variables), np.zeros(len(problem.targets))
        alpha[master.features], multipliers[master.targets] = result.alpha, result.multipliers
        bounds = monitor.report(alpha, multipliers, passes)  # the pricing pass
        passes += 1
        if np.isfinite(bounds.constraints).all():  # (an infinite upper bound only says that constraints are missing)
            improved = bounds.gap < settings.progress * best_gap
            best_gap = min(best_gap, bounds.gap)
            following = _next_master(problem, monitor, settings, master, (alpha, multipliers), bounds, improved)
        else:
            following = _wider_master(problem, monitor, settings, master, passes)
        if following is None:
            break
        master = following
    members = {"arms_in_master": len(master.features), "targets_in_master": len(master.targets)}
    return {"iterations": steps, "passes": passes, **members}


def _first_master(problem: Canonical, monitor: Monitor, settings: ActiveSetSettings) -> _Master:
    """The master to begin with where no solution is known."""
    pair = multiplicative.first_pair(
        problem, settings.first_steps, settings.first_power, settings.first_growth, lambda: monitor.seconds_left <= 0.0
    )
    if pair is not None:
        known = evaluate(problem, *pair)
        if np.isfinite(known.upper):
            return _played_master(problem, monitor, settings, pair, known)
    features, targets, first = _first_sets(problem, settings)
    monitor.record(first, 0)
    return _Master(features, targets, settings.rough_gap, None)


def _played_master(
    problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, pair: tuple[Array, Array], known: Bounds
) -> _Master:
    """The arms that a first allocation plays most, those that are worth most, and the constraints that are tightest."""
    monitor.record(known, 0)
    count = settings.first_members * problem.rank
    played = largest(pair[0], settings.first_played * problem.rank)
    features = np.union1d(played, _spanning(problem, pair[0], settings.sample * problem.rank))
    targets = largest(known.constraints, count)
    warm = (pair[0][features], pair[1][targets]) if known.gap < settings.warm_gap else None
    return _Master(features, targets, settings.rough_gap, warm)


def _known_master(problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, start: Bounds) -> _Master:
    """The arms and constraints that a known solution uses, and those that it misses most."""
    monitor.record(start, 0)
    count = settings.first_members * problem.rank
    features = np.union1d(np.flatnonzero(start.alpha), largest(start.prices, count))
    targets = np.union1d(np.flatnonzero(start.multipliers), largest(start.constraints, count))
    warm = (start.alpha[features], start.multipliers[targets]) if start.gap < settings.warm_gap else None
    return _Master(features, targets, monitor.tol if start.gap < settings.close_gap else settings.rough_gap, warm)


def _solved(
    problem: Canonical, master: _Master, monitor: Monitor, settings: ActiveSetSettings
) -> interior_point.Iterate | None:
    """The master's solution; None where it fails and something is proven already."""
    part = _part(problem, master.features, master.targets).problem
    # a small master is solved faster on one core; a large one on as many as the process has for BLAS
    with single_threaded() if _work(part) < settings.threads_from else threads_of_numpy():
        try:
            return interior_point.minimise(part, master.tol, monitor.tick, warm=master.warm)
        except SolverFailed:
            if monitor.best is None or not np.isfinite(monitor.best.upper):
                raise
            return None


def _work(problem: Canonical) -> float:
    """Multiplications in one of the products of a Newton step, about."""
    return float(problem.rank) * len(problem.features) ** 2


def _wider_master(
    problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, master: _Master, seed: int
) -> _Master | None:
    """A master with more arms where those of this one are numerically dependent; None where no more can be added."""
    features = _widen(problem, master.features, settings.widening, seed)
    same = len(features) == len(master.features)
    if same and master.warm is None and master.tol <= monitor.tol:
        return None  # nothing more can be proven in doubles; the monitor keeps the best bounds so far
    return _Master(features, master.targets, monitor.tol if same else master.tol, None)


def _next_master(
    problem: Canonical, monitor: Monitor, settings: ActiveSetSettings, master: _Master,
    pair: tuple[Array, Array], bounds: Bounds, improved: bool,
) -> _Master | None:  # fmt: skip
    """The master after a pricing pass of the pair (α, λ): violators enter, idle ones leave. None where it would be the same."""
    features, targets = master.features, master.targets
    alpha, multipliers = pair[0][features], pair[1][targets]
    rate = _going_rate(problem, bounds.prices[features], alpha, features, settings.full_share)
    count = settings.entering * problem.rank
    entering_features = _violators(bounds.prices, features, rate * (1.0 + settings.violation), count)
    tight = float(bounds.constraints[targets].max())
    entering_targets = _violators(bounds.constraints, targets, tight * (1.0 + settings.violation), count)
    nothing_enters = not len(entering_features) and not len(entering_targets)
    if nothing_enters and master.tol <= monitor.tol and not improved:
        return None  # rounding does not let the master improve any further
    # Far from the optimum a rough master tells as well which arms are missing; close to it they hardly change.
    tol = monitor.tol if bounds.gap < settings.close_gap or nothing_enters else settings.rough_gap
    if improved:  # otherwise arms that leave would only enter again
        far = 1.0 - settings.far_from_tight
        busy = _keep(features, alpha, bounds.prices[features] < far * rate, problem.rank, settings)
        level = settings.removal_loss * tight
        if len(busy) < len(features) and _suffice(problem, busy, pair[0][busy], targets, level, settings):
            features = busy
        targets = _keep(targets, multipliers, bounds.constraints[targets] < far * tight, problem.rank, settings)
    features, targets = np.union1d(features, entering_features), np.union1d(targets, entering_targets)
    warm = (pair[0][features], pair[1][targets]) if bounds.gap < settings.warm_gap else None
    return _Master(features, targets, tol, warm)


def _first_sets(problem: Canonical, settings: ActiveSetSettings) -> tuple[IntArray, IntArray, Bounds]:
    """Arms and constraints that matter for an even allocation over a sample, and what that allocation proves."""
    size = settings.sample * problem.rank
    few = _sample(problem, size)
    alpha = np.zeros(problem.n_variables)
    alpha[few.features] = interior_point.starting_point(few.problem)
    point = evaluate(few.problem, alpha[few.features], np.ones(len(few.targets)))
    if not np.isfinite(point.upper):
        raise SolverFailed("the information matrix of an even allocation is numerically singular")
    multipliers = np.zeros(len(problem.targets))
    multipliers[few.targets] = (point.constraints / point.constraints.max()) ** 5  # a smoothed maximum
    bounds = evaluate(problem, alpha, multipliers)
    count = settings.first_members * problem.rank
    features = np.union1d(largest(bounds.prices, count), _spanning(problem, bounds.prices, size))
    if problem.upper is not None:
        features = _feasible(problem, features, bounds.prices, settings.room_within_bounds)
    return features, largest(bounds.constraints, count), bounds


@dataclass(frozen=True, eq=False)
class _Part:
    """Some arms and constraints of a problem."""

    problem: Canonical
    features: IntArray
    targets: IntArray


def _part(problem: Canonical, features: IntArray, targets: IntArray) -> _Part:
    """The problem of some arms and constraints alone."""
    same = problem.ratios is not None and np.array_equal(features, targets)
    part = Canonical(
        problem.features[problem.rows_of(features)],
        problem.targets[targets],
        problem.compact_base,
        None if problem.upper is None else problem.upper[features],
        problem.offset,
        problem.ratios[features] if same and problem.ratios is not None else None,
        owners=problem.owners_within(features),
    )
    return _Part(part, features, targets)


def _sample(problem: Canonical, size: int) -> _Part:
    """Everything, or an even sample of a large problem that spans as much."""
    features = np.arange(problem.n_variables)
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
    longest = _spanning(problem, problem.by_variable(problem.feature_lengths), size)
    return _part(problem, np.union1d(features, longest), targets)


def _feasible(problem: Canonical, features: IntArray, prices: Array, room: float) -> IntArray:
    """Enough arms that the constraints can be met within their upper bounds: those that tell most where all are played fully."""
    wanted = _wanted(problem, room)
    size = problem.rank
    order = None
    while len(features) < len(prices) and not _least_constraint(problem, features) <= wanted:
        if order is None:
            order = np.argsort(-_share_of_information(problem, prices), kind="stable")
        features = np.union1d(features, order[:size])
        size *= 2
    return features


def _share_of_information(problem: Canonical, prices: Array) -> Array:
    """u_i|a_i|² in the metric of all arms at their upper bounds, r in all; the prices where that cannot be computed.

    Arms of high price alone would be many more: those of one direction have high prices together, and bring no other down.
    """
    most = _most(problem, np.arange(problem.n_variables))
    basis = whitener(problem, most)
    return prices if basis is None else problem.by_variable(squared_row_lengths(problem.features @ basis)) * most


def _wanted(problem: Canonical, room: float) -> float:
    """What the arms of a master should be able to bring every constraint down to within their upper bounds."""
    return max(room, 0.5 * (1.0 + _least_constraint(problem, np.arange(problem.n_variables))))


def _least_constraint(problem: Canonical, features: IntArray) -> float:
    """max_j g_j with these arms at their upper bounds."""
    most = _most(problem, features)
    rows, owners = problem.features[problem.rows_of(features)], problem.owners_within(features)
    basis = whitener(Canonical(rows, problem.targets, problem.base, owners=owners), most)
    if basis is None:
        return float("inf")
    white = problem.targets @ basis
    return float(np.einsum("ij,ij->i", white, white).max())


def _most(problem: Canonical, features: IntArray) -> Array:
    """The upper bounds of some arms, practically unlimited where there is none."""
    assert problem.upper is not None
    upper = problem.upper[features]
    return np.where(np.isfinite(upper), upper, 1e6 * max(float(upper[np.isfinite(upper)].max(initial=0.0)), 1.0))


def _spanning(problem: Canonical, prices: Array, count: int) -> IntArray:
    """Arms of high price with r rows that span everything: pivoted QR over the best and a sample, over all only if those do not."""
    everyone = np.arange(len(prices))
    some = np.union1d(largest(prices, count), np.linspace(0, len(prices) - 1, min(count, len(prices))).astype(np.int64))
    for candidates in (some, everyone):
        each = problem.rows_of(candidates)
        rows = problem.features[each] / problem.feature_lengths[each, None]
        weight = np.sqrt(problem.by_row(prices)[each] / max(float(prices.max()), NOT_ZERO)) + 1e-3
        factor, order = qr((rows * weight[:, None]).T, mode="r", pivoting=True, check_finite=False)[-2:]
        full = min(factor.shape) >= problem.rank
        if full and abs(factor[-1, problem.rank - 1]) > 1e-8 * abs(factor[0, 0]):
            break
    chosen = each[order[: problem.rank]]
    return np.sort(chosen) if problem.owners is None else np.unique(problem.owners[chosen])


def _going_rate(problem: Canonical, prices: Array, alpha: Array, features: IntArray, full_share: float) -> float:
    """The price above which an arm outside the master is wanted: that of the arms which the master can still play more.

    An arm at its upper bound may have any price. (The scale of λ, and with it of all prices, is the certificate's choice.)
    """
    if problem.upper is None:
        return float(prices.max())
    return float(prices[alpha < full_share * problem.upper[features]].max(initial=0.0)) or 1.0


def _violators(values: Array, inside: IntArray, limit: float, count: int) -> IntArray:
    """The ``count`` largest values outside the master that exceed the limit."""
    above = np.setdiff1d(np.flatnonzero(values > limit), inside)
    if len(above) > count:
        above = above[np.argpartition(-values[above], count)[:count]]
    return above


def _keep(indices: IntArray, values: Array, far: NDArray[np.bool_], rank: int, settings: ActiveSetSettings) -> IntArray:
    """Drop idle members once there are more than enough; if dropped earlier they would only enter again."""
    if len(indices) <= settings.spare * rank:
        return indices
    busy: IntArray = indices[values > np.where(far, settings.small_share, settings.idle_share) * values.max()]
    return busy


def _suffice(
    problem: Canonical, features: IntArray, alpha: Array, targets: IntArray, level: float, settings: ActiveSetSettings
) -> bool:
    """Whether some arms of a master meet its constraints, to a level, without the others, and could meet all there are."""
    wanted = None if problem.upper is None else _wanted(problem, settings.room_within_bounds)
    if wanted is not None and not _least_constraint(problem, features) <= wanted:
        return False
    rows, owners = problem.features[problem.rows_of(features)], problem.owners_within(features)
    basis = whitener(Canonical(rows, problem.targets[:0], problem.base, owners=owners), alpha)
    if basis is None:
        return False
    images = problem.targets[targets] @ basis
    return bool(np.einsum("ij,ij->i", images, images).max() <= level)


def _widen(problem: Canonical, features: IntArray, count: int, seed: int) -> IntArray:
    """More arms when those in the master are numerically dependent."""
    rng = np.random.default_rng(seed)
    extra = rng.choice(problem.n_variables, min(count * problem.rank, problem.n_variables), replace=False)
    return np.union1d(features, extra)
