"""Methods where linear constraints Vα <= v hold: the interior point of `newton.limited`, on all variables or on a few at a time.

Nothing here is trusted. What a method finds is moved inside the constraints, by as little as makes them hold for sure, since α cannot
be scaled to feasibility.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import qr

from allocopt.base.errors import SlowWarning, SolverFailed, warn_caller
from allocopt.base.machine import duration_text
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, Limits, whitener
from allocopt.certify.certificate import evaluate
from allocopt.linear.dense import squared_row_lengths
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.newton import limited
from allocopt.solvers.newton.costless import nothing_is_enough
from allocopt.solvers.newton.curvature import by_entries
from allocopt.solvers.settings import ActiveSetSettings, InteriorPointSettings

__all__ = ["generate", "mended", "moved_inside", "restricted", "solve"]

_DEFAULT = InteriorPointSettings()
_TIGHTENINGS = (1e-3, 1e-5, 1e-7, 1e-9)  # of linear constraints and targets, for an allocation that has room to spare
_ROUGH = 1e-2  # the gap of that allocation, relative to the tightening
_SHARPER = (1e-2, 1e-4)  # parts of the tolerance that are aimed at, one after the other
_CENTRED = 0.1  # the complementarity that is kept, as a part of the tolerance
_SLACKS = (1e-14, 1e-12, 1e-11, 1e-10)  # of prices, relative to what they could be at most
_SMALL = 300  # variables up to which all of them are looked at at once
_MANY = 50_000  # and where no array of pairs is made
_SECONDS_A_VARIABLE, _SECONDS_OF_ENTRIES, _SECONDS_OF_PAIRS = (
    1e-4,
    3e-8,
    2e-9,
)  # of each variable, in all steps, as measured
_LONG = 10.0  # seconds that are announced
_LACKING = 1e-5  # relative violation of a row beyond which variables do not suffice


def solve(problem: Canonical, monitor: Monitor, settings: InteriorPointSettings) -> dict[str, float]:
    """The interior point on all variables that may be played at all."""
    playable = _playable(problem)
    if not len(playable):
        raise SolverFailed("the linear constraints leave no arm that may be played")
    if nothing_is_enough(problem, monitor, playable):
        return {"iterations": 0}
    _say_if_long(problem, len(playable))
    part = restricted(problem, playable)

    def whole(alpha: Array) -> Array:
        return _embedded(problem.n_variables, playable, alpha)

    def watch(alpha: Array, multipliers: Array, row_multipliers: Array, step: int) -> None:
        if monitor.callback is not None or monitor.max_seconds is not None:
            monitor.report(whole(alpha), multipliers, step, row_multipliers)

    steps = 0
    centred = replace(settings, least_centring=_CENTRED)
    # arms that are hardly played leave M nearly singular, in the middle least so; limits that hardly bind ask for prices that are
    # next to nothing
    for sharper, tuned in ((1.0, settings), (1.0, centred), *((sharper, settings) for sharper in _SHARPER)):
        found = limited.minimise(part, sharper * monitor.tol, monitor.tick, tuned, watch)
        steps += found.steps
        _report(problem, monitor, part, playable, found)
        best = monitor.best
        if best is None or monitor.done or np.isinf(best.upper) or not best.lower > problem.offset:
            break
    if problem.costs is not None and best is not None and not best.lower > problem.offset * (1.0 + monitor.tol):
        _try_for_nothing(problem, monitor)
    return {"iterations": steps}


def _say_if_long(problem: Canonical, count: int) -> bool:
    """What so many variables take at once, where that is long: then true."""
    limits = problem.limits
    assert limits is not None
    entries = problem.rank * (problem.rank + 1) // 2
    each = (
        _SECONDS_A_VARIABLE + _SECONDS_OF_ENTRIES * entries**2
        if by_entries(problem.rank, limits)
        else _SECONDS_OF_PAIRS * count**2
    )
    seconds = each * count
    if seconds > _LONG:
        warn_caller(
            f"{count:,} arms under {len(limits.room):,} linear constraints: solving takes about {duration_text(seconds)}",
            SlowWarning,
        )
    return seconds > _LONG


def _report(problem: Canonical, monitor: Monitor, part: Canonical, members: IntArray, found: limited.Triple) -> Bounds:
    """Certify what was found for some variables, moved inside the constraints where it has to be."""
    duals = found.multipliers, found.steps, found.row_multipliers
    bounds = monitor.report(_embedded(problem.n_variables, members, found.alpha), *duals)
    if not np.isfinite(bounds.upper):
        inside = moved_inside(problem, monitor, found, part, members)
        if inside is not None:
            bounds = monitor.report(inside, *duals)
    for slack in _SLACKS:
        if np.isinf(bounds.upper) or bounds.gap <= monitor.tol or not found.multipliers.any():
            break
        raised = _covering(problem, bounds.alpha, found, slack)
        bounds = monitor.report(bounds.alpha, found.multipliers, found.steps, raised)
    return bounds


def mended(
    problem: Canonical, monitor: Monitor, tol: float, feasible: Callable[[Array], bool]
) -> tuple[Array, Array, list[Array]] | None:
    """α, λ and some μ that are worth a look, for those who can tell what is feasible without rounding; None where there is no α."""
    playable = _playable(problem)
    if not len(playable):
        return None
    part = restricted(problem, playable)
    found = limited.minimise(part, tol, monitor.tick, _DEFAULT)
    alpha = moved_inside(problem, monitor, found, part, playable, feasible)
    if alpha is None:
        return None
    covering = [_covering(problem, alpha, found, slack) for slack in (0.0, *_SLACKS)] if found.multipliers.any() else []
    return alpha, found.multipliers, [found.row_multipliers, *covering]


def _covering(problem: Canonical, alpha: Array, found: limited.Triple, slack: float) -> Array:
    """μ raised until every variable without bound is charged its price, and what rounding may add to it: in its cheapest row.

    Where limits do not bind, μ is next to nothing, and so should be the price of a variable that costs nothing.
    """
    limits = problem.limits
    assert limits is not None
    basis = whitener(problem, alpha)
    if basis is None:
        return found.row_multipliers
    images, white = problem.targets @ basis, problem.features @ basis
    weight = float(found.multipliers @ squared_row_lengths(images))
    wanted = problem.by_variable(
        _row_prices(white, images, found.multipliers) + slack * weight * squared_row_lengths(white)
    )
    costs = np.ones(problem.n_variables) if problem.costs is None else problem.costs
    mu = found.row_multipliers.copy()
    infinite = np.ones(len(costs), dtype=bool) if problem.upper is None else np.isinf(problem.upper)
    rate = np.where(
        limits.values > 0, limits.room[limits.places] / np.where(limits.values > 0, limits.values, 1.0), np.inf
    )
    by_variable = np.argsort(limits.variables, kind="stable")
    ends = np.searchsorted(limits.variables[by_variable], np.arange(problem.n_variables + 1))
    for i in np.flatnonzero(infinite & (wanted > costs + limits.charged(mu))).tolist():
        own = by_variable[ends[i] : ends[i + 1]]
        lacking = wanted[i] - costs[i] - float(limits.values[own] @ mu[limits.places[own]])
        cheapest = own[np.argmin(rate[own])] if len(own) else -1
        if lacking > 0 and cheapest >= 0 and np.isfinite(rate[cheapest]):
            mu[limits.places[cheapest]] += lacking / limits.values[cheapest]
    return mu


def _try_for_nothing(problem: Canonical, monitor: Monitor) -> None:
    """Whether variables that cost nothing meet all constraints: then nothing is optimal."""
    assert problem.costs is not None and problem.limits is not None
    costless = np.intersect1d(np.flatnonzero(problem.costs == 0), _playable(problem))
    if not len(costless):
        return
    part = replace(restricted(problem, costless), costs=None)
    try:
        found = limited.minimise(part, _ROUGH, monitor.tick, _DEFAULT)
    except SolverFailed:
        return
    found = replace(found, row_multipliers=np.zeros(len(problem.limits.room)))
    _report(problem, monitor, part, costless, found)


def _playable(problem: Canonical) -> IntArray:
    """The variables that may be positive: not those in a row of positive entries only that leaves no room."""
    limits = problem.limits
    assert limits is not None
    least = np.full(len(limits.room), np.inf)
    np.minimum.at(least, limits.places, limits.values)
    full = (limits.room <= 0) & (least > 0) & np.isfinite(least)
    stopped = np.unique(limits.variables[full[limits.places]])
    return np.setdiff1d(np.arange(problem.n_variables), stopped)


def _embedded(count: int, members: IntArray, alpha: Array) -> Array:
    full = np.zeros(count)
    full[members] = alpha
    return full


def _rows_about(limits: Limits, variables: IntArray) -> IntArray:
    """The rows that these variables are in, and those that ask for variables by themselves: all others hold without them."""
    about = limits.room < 0
    about[limits.places[np.isin(limits.variables, variables)]] = True
    return np.flatnonzero(about)


def restricted(
    problem: Canonical, variables: IntArray, targets: IntArray | None = None, rows: IntArray | None = None
) -> Canonical:
    """The problem of some variables, and some targets and rows, alone; the rows are all that these variables are in."""
    limits = problem.limits
    assert limits is not None
    if len(variables) == problem.n_variables and targets is None and rows is None:
        return problem
    kept = np.flatnonzero(np.isin(limits.variables, variables))
    own = replace(
        limits, places=limits.places[kept], variables=np.searchsorted(variables, limits.variables[kept]),
        values=limits.values[kept], n_variables=len(variables),
    )  # fmt: skip
    if rows is not None:
        own = replace(own, places=np.searchsorted(rows, own.places), room=limits.room[rows], sizes=limits.sizes[rows])
    return replace(
        problem,
        features=problem.features[problem.rows_of(variables)],
        targets=problem.targets if targets is None else problem.targets[targets],
        upper=None if problem.upper is None else problem.upper[variables],
        owners=problem.owners_within(variables),
        limits=own,
        costs=None if problem.costs is None else problem.costs[variables],
    )


def moved_inside(
    problem: Canonical,
    monitor: Monitor,
    found: limited.Triple,
    part: Canonical | None = None,
    members: IntArray | None = None,
    feasible: Callable[[Array], bool] | None = None,
) -> Array | None:
    """An allocation that meets all constraints for sure, as close to a triple's as one that has room to spare allows.

    None where none was found: there may be none. ``part`` is the problem of some variables, ``members``, that the triple solves.
    ``feasible`` says of an allocation whether it does; by default the certificate in doubles.
    """
    part = problem if part is None else part
    if _lacks_room(part, found):
        return None
    members = np.arange(problem.n_variables) if members is None else members

    def whole(alpha: Array) -> Array:
        return _embedded(problem.n_variables, members, alpha)

    duals = (
        found.multipliers,
        found.row_multipliers,
    )  # with which it will be reported: the certificate's basis depends on them

    def within(alpha: Array) -> bool:
        if feasible is not None:
            return feasible(whole(alpha))
        return bool(np.isfinite(evaluate(problem, whole(alpha), *duals).upper))

    for by in _TIGHTENINGS:
        try:
            narrower = limited.tightened(part, found.alpha, by)
            inside = limited.minimise(narrower, _ROUGH * by, monitor.tick, _DEFAULT)
        except SolverFailed:
            continue
        moved = limited.blended(within, found.alpha, inside.alpha)
        if moved is not None:
            return whole(moved)
    return None


def generate(problem: Canonical, monitor: Monitor, settings: ActiveSetSettings) -> dict[str, float]:
    """Column and constraint generation: few variables and targets at a time, priced against all."""
    playable = _playable(problem)
    few = len(playable) <= _SMALL and len(problem.targets) <= _SMALL
    assert problem.limits is not None
    if not few and nothing_is_enough(problem, monitor, playable):
        return {"iterations": 0, "passes": 1}
    if few or (len(playable) <= _MANY and by_entries(problem.rank, problem.limits)):
        return {**solve(problem, monitor, _DEFAULT), "passes": 1}
    members, asked = _first_members(problem, playable, settings)
    steps, passes, tol, said = 0, 0, settings.rough_gap, False
    while passes < settings.max_passes and not monitor.done:
        monitor.tick()
        rows = _rows_about(problem.limits, members)
        part = restricted(problem, members, asked, rows)
        said = said or _say_if_long(part, len(members))
        found = limited.minimise(part, tol, monitor.tick, _DEFAULT)
        steps, passes = steps + found.steps, passes + 1
        full = replace(
            found,
            multipliers=_embedded(len(problem.targets), asked, found.multipliers),
            row_multipliers=_embedded(len(problem.limits.room), rows, found.row_multipliers),
        )
        prices, constraints = _priced(problem, members, full)
        lacking = _lacks_room(part, found)
        # where limits ask for many arms, by factors
        count = max(settings.entering * max(problem.rank, 1) * (1 + passes // 4), len(members) // (1 if lacking else 4))
        new = _most_violated(prices, 1.0 + settings.violation, playable, members, count)
        missing = _most_violated(constraints, 1.0 + settings.violation, np.arange(len(constraints)), asked, count)
        if lacking and not len(new):
            new = _most_violated(prices, 0.0, playable, members, 4 * count)
        if not len(new) and not len(missing):
            if tol <= monitor.tol or lacking:
                _report(problem, monitor, part, members, full)
                break
            tol = monitor.tol
            continue
        monitor.report(
            _embedded(problem.n_variables, members, found.alpha), full.multipliers, passes, full.row_multipliers
        )
        members, asked = np.union1d(members, new), np.union1d(asked, missing)
        tol = monitor.tol if found.gap < settings.close_gap and len(new) + len(missing) < count else settings.rough_gap
    return {
        "iterations": steps, "passes": passes, "arms_in_master": len(members), "targets_in_master": len(asked),
    }  # fmt: skip


def _first_members(problem: Canonical, playable: IntArray, settings: ActiveSetSettings) -> tuple[IntArray, IntArray]:
    """Variables that cost nothing, those that rows ask for, and what an even allocation wants most; and its worst targets."""
    limits = problem.limits
    assert limits is not None
    even = _embedded(problem.n_variables, playable, limited.starting_point(restricted(problem, playable)))
    everyone = np.arange(problem.n_variables)
    start = limited.Triple(even, np.ones(len(problem.targets)), np.zeros(len(limits.room)), np.inf, 0)
    prices, constraints = _priced(problem, everyone, start)
    count = settings.first_members * max(problem.rank, 1)
    wanted = np.unique(limits.variables[limits.values < 0])
    costless = np.zeros(0, dtype=np.int64) if problem.costs is None else np.flatnonzero(problem.costs == 0)
    dearest = np.argsort(-prices, kind="stable")[:count]
    members = np.unique(np.concatenate([wanted, costless, dearest, _spanning(problem, even)]))
    asked = np.sort(np.argsort(-constraints, kind="stable")[:count])
    return np.intersect1d(members, playable), asked


def _spanning(problem: Canonical, alpha: Array) -> IntArray:
    """A few variables whose rows span R^r, found where α gives much: what is priced high may lie in few directions."""
    rows = problem.features * np.sqrt(problem.by_row(alpha))[:, None]
    places = qr(rows.T, mode="r", pivoting=True, check_finite=False)[1][: problem.rank]
    return np.unique(places if problem.owners is None else problem.owners[places])


def _priced(problem: Canonical, members: IntArray, found: limited.Triple) -> tuple[Array, Array]:
    """Of every variable its price over its charge, of every target its g, for a triple whose α is that of ``members``."""
    limits = problem.limits
    assert limits is not None
    alpha = (
        found.alpha if len(found.alpha) == problem.n_variables else _embedded(problem.n_variables, members, found.alpha)
    )
    basis = whitener(problem, alpha)
    if basis is None:
        raise SolverFailed("the information matrix is numerically singular")
    images = problem.targets @ basis
    prices = problem.by_variable(_row_prices(problem.features @ basis, images, found.multipliers))
    costs = np.ones(problem.n_variables) if problem.costs is None else problem.costs
    charges = costs + limits.charged(found.row_multipliers)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(charges > 0, prices / np.maximum(charges, 1e-300), np.where(prices > 0, np.inf, 0.0))
    return ratios, squared_row_lengths(images)


def _row_prices(features: Array, targets: Array, multipliers: Array) -> Array:
    """Σ λ_j ⟨t_j, f⟩² of every feature, without an array of features × targets."""
    on = np.flatnonzero(multipliers > 0)
    values, vectors = np.linalg.eigh(targets[on].T @ (multipliers[on, None] * targets[on]))
    return squared_row_lengths(features @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _most_violated(values: Array, limit: float, among: IntArray, inside: IntArray, count: int) -> IntArray:
    """The largest values above a limit of those that are not inside yet."""
    outside = np.setdiff1d(among, inside)
    above = outside[values[outside] > limit]
    return np.sort(above[np.argsort(-values[above], kind="stable")[:count]])


def _lacks_room(part: Canonical, found: limited.Triple) -> bool:
    """Whether the variables of a problem do not seem to meet its linear constraints at all, beside what rounding may have done."""
    limits = part.limits
    assert limits is not None
    excess = limits.used(found.alpha) - limits.room
    terms = limits.terms(found.alpha) + limits.sizes
    return bool((excess > _LACKING * terms).any())
