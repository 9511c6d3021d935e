"""Program → canonical form → back: the quotient by the free arms, the span, the bounds and the scaling by costs.

Nothing is capped or regularised: a free arm (cost 0, no upper bound) is known exactly, so its direction is divided
out. Columns are first brought to one size by powers of two, so that no decision depends on their units. Which rows and
columns span is proposed in floating point and then checked exactly (`span`); what holds up to rounding only is an assumption.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from allocopt.base.errors import Infeasible, SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, Limits
from allocopt.certify.limits.feasibility import proven_infeasible
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption
from allocopt.linear.differences import differences_lie_in, largest_share_of_differences, span_of_duels
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT
from allocopt.linear.span import Span, column_units, free_span, largest_share, span_of
from allocopt.model.program import AllocationProgram

__all__ = ["Quotient", "Reduction", "bound_error", "comes_from_means", "data_error", "reduce", "within_bounds"]


@dataclass(frozen=True, eq=False)
class Quotient:
    """R^d / span(free arms), then the coordinates that the arms really use: the witness that proof files store.

    Where arms show several things, "arm" means one of the program's rows.
    """

    pivot_arms: tuple[int, ...]
    """Free arms that span all free arms."""
    pivot_columns: tuple[int, ...]
    """The coordinate that each of them eliminates."""
    basis_arms: tuple[int, ...]
    """Arms that span all arms together with the pivots."""
    coordinates: tuple[int, ...]
    """The coordinates kept: the others are linear functions of these on the span of the arms."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A canonical problem, where its rows come from in the program, and what was taken for granted on the way."""

    program: AllocationProgram
    quotient: Quotient
    canonical: Canonical
    variables: IntArray
    """The arm of each canonical variable."""
    targets: IntArray
    """The program's target behind each canonical target."""
    fixed: Array
    """α of every arm before the variables are added: lower bounds, costless arms at their upper bound, inf if free."""
    least: Array
    most: Array
    """What α can be at least and at most; where these are rounded themselves, α at a bound means the exact one."""
    assumptions: tuple[Assumption, ...]
    units: Array
    """What one pull of each variable is in canonical units: its cost, or any number where it costs nothing."""

    def allocation(self, alpha: Array) -> Array:
        """A canonical α in the program's own units, one entry per arm."""
        full = self.fixed.copy()
        full[self.variables] += alpha / self.units
        bounded = np.isfinite(self.most)
        full[bounded] = np.minimum(full[bounded], self.most[bounded])
        return full

    def canonical_allocation(self, allocation: Array) -> Array:
        """The way back of `allocation`."""
        with np.errstate(over="ignore"):
            extra = allocation[self.variables] - self.fixed[self.variables]
            result: Array = np.maximum(extra, 0.0) * self.units
        return result

    def multipliers(self, canonical: Array) -> Array:
        """Canonical λ, one entry per arm where targets belong to arms and per target otherwise."""
        arms = self.program.target_arms
        full = np.zeros(self.program.n_targets if arms is None else self.program.n_arms)
        full[self.targets if arms is None else arms[self.targets]] = canonical
        return full

    def canonical_multipliers(self, multipliers: Array) -> Array:
        """The way back of `multipliers`."""
        arms = self.program.target_arms
        result: Array = multipliers[self.targets if arms is None else arms[self.targets]]
        return result


def within_bounds(program: AllocationProgram, lower: Array, upper: Array) -> AllocationProgram:
    """The same program, of the same origin, within other bounds."""
    return replace(program, lower=lower, upper=upper, origin=replace(program.origin))


def data_error(program: AllocationProgram) -> float:
    """Relative error of costs and of the roots of radii, as the program has them in doubles."""
    return (GAP_ERROR if comes_from_means(program) else 0.0) + 8.0 * UNIT


def comes_from_means(program: AllocationProgram) -> bool:
    """Whether costs and radii were computed from means, with `GAP_ERROR`, rather than given."""
    return program.origin.bandit is not None or program.origin.items is not None


def bound_error(program: AllocationProgram) -> float:
    """Relative error of the bounds l and u of a program: 0 where they are the user's own numbers."""
    return {"optimism": 4.0 * GAP_ERROR, "remaining": 4.0 * UNIT}.get(program.kind, 0.0)


def reduce(program: AllocationProgram) -> Reduction:
    """The canonical problem of a program. Raises `Infeasible` when it is proven that some target can never be met."""
    columns = column_units(program.features, program.targets)
    # −0.0 becomes 0.0: its sign would decide signs, and so bits, in a factorisation
    rows = program.features * columns + 0.0
    shared = program.target_arms is not None and program.origin.compared is None
    goals = rows[program.target_arms] if shared else program.targets * columns + 0.0
    free, owners = program.free, program.row_owners
    known_exactly = free_span(rows, free if program.owners is None else np.flatnonzero(np.isin(owners, free)))
    features, terms = known_exactly.modulo.with_terms(rows)
    targets = features[program.target_arms] if shared else known_exactly.modulo(goals)

    nonzero = features.any(axis=1)
    least, most = program.lower, program.upper
    # arms in linear constraints stay variables, even if they cost or tell nothing
    constrained = (
        np.zeros(program.n_arms, dtype=bool) if program.constraints is None else program.constraints.constrained
    )
    costless = (program.costs == 0) & np.isfinite(most) & ~constrained
    fixed = np.where(costless, most, least)
    fixed[free] = np.inf
    # from here to ``variables``, numbers of rows; an arm that shows one thing is its row
    known = np.flatnonzero(((fixed > 0) & np.isfinite(fixed))[owners] & nonzero)
    playable = np.flatnonzero((((program.costs > 0) | constrained) & (most > least))[owners] & nonzero)
    asked = np.flatnonzero(targets.any(axis=1))

    informative = np.union1d(known, playable) if len(known) else playable
    informative_rows = features[informative]
    without_noise = np.where(known_exactly.modulo.noise(informative_rows, terms[informative]), 0.0, informative_rows)
    duels = _span_of_duels(program)
    span = span_of(rows, informative, known_exactly, without_noise) if duels is None else duels
    dependence = _check_targets(program, rows[informative], goals, asked, span, columns)
    coordinates = np.searchsorted(known_exactly.modulo.columns, np.array(span.columns, dtype=np.int64))
    # rows that differ from 0 in columns that depend on the others only up to rounding are taken as 0
    known = known[features[np.ix_(known, coordinates)].any(axis=1)]
    playable = playable[features[np.ix_(playable, coordinates)].any(axis=1)]
    if program.constraints is not None:
        playable = np.union1d(playable, np.flatnonzero((constrained & (most > least))[owners]))
    asked = asked[targets[np.ix_(asked, coordinates)].any(axis=1)]
    variables = playable if program.owners is None else np.unique(owners[playable])
    units = program.costs if program.constraints is None else _units(program.costs)
    places = known, playable, asked, coordinates
    canonical = _canonical(program, features, targets, places, fixed, variables, units)
    quotient = Quotient(_indices(known_exactly.rows), known_exactly.columns, _indices(span.rows), span.columns)
    dependent = _of_arms(program, (*known_exactly.assumptions, *span.assumptions))
    assumptions = (*program.assumptions, *dependent, *dependence)
    if len(asked) and np.isfinite(program.upper).any():
        _check_feasible(program, rows, goals, asked)
    worth = units[variables]
    return Reduction(program, quotient, canonical, variables, asked, fixed, least, most, assumptions, worth)


def _canonical(
    program: AllocationProgram, features: Array, targets: Array, places: tuple[IntArray, IntArray, IntArray, IntArray],
    fixed: Array, variables: IntArray, units: Array,
) -> Canonical:  # fmt: skip
    """The canonical arrays, from the rows that are known, may be played and are asked about, and the coordinates kept."""
    known, playable, asked, coordinates = places
    owners = program.row_owners
    noise = 1.0 if program.noise_variance is None else program.noise_variance
    weighted = units[owners] * noise
    shared = program.target_arms is not None and program.origin.compared is None and program.constraints is None
    unit = np.sqrt(weighted[playable])
    a = features[np.ix_(playable, coordinates)] / unit[:, None]
    b = targets[np.ix_(asked, coordinates)] / np.sqrt(program.radii[asked])[:, None]
    pulls = fixed[owners] / noise
    base = features[np.ix_(known, coordinates)] * np.sqrt(pulls[known])[:, None]
    scale = column_units(a, base)
    upper = (program.upper - program.lower)[variables] * units[variables]
    return Canonical(
        np.ascontiguousarray(a * scale),
        np.ascontiguousarray(b * scale),
        np.ascontiguousarray(base * scale),
        upper if np.isfinite(upper).any() else None,
        _total_cost(program.costs, program.lower),
        _ratios(program, weighted, variables, asked) if shared else None,
        ENTRY_ERROR + data_error(program),
        bound_error(program) + data_error(program),
        None if len(variables) == len(playable) else np.searchsorted(variables, owners[playable]),
        _limits(program, variables, units[variables]),
        None if program.constraints is None else _charges(program.costs[variables]),
    )


def _units(costs: Array) -> Array:
    """Costs, and a power of two of about their size for arms that cost nothing."""
    paid = costs[costs > 0]
    usual = 2.0 ** round(float(np.log2(paid).mean())) if len(paid) else 1.0
    return np.where(costs > 0, costs, usual)


def _charges(costs: Array) -> Array | None:
    """What canonical variables cost, 1 or 0; None where all cost something."""
    return None if (costs > 0).all() else np.where(costs > 0, 1.0, 0.0)


def _limits(program: AllocationProgram, variables: IntArray, units: Array) -> Limits | None:
    """The linear constraints in canonical units, for what is played beyond the lower bounds."""
    given = program.constraints
    if given is None:
        return None
    # only entries of arms that are variables: the others are at their lower bounds
    place = np.full(program.n_arms, -1)
    place[variables] = np.arange(len(variables))
    kept = np.flatnonzero(place[given.arms] >= 0)
    own = place[given.arms[kept]]
    return Limits(
        given.places[kept],
        own,
        given.values[kept] / units[own],
        given.limits - given.used(program.lower),
        np.abs(given.limits) + given.terms(program.lower),
        data_error(program),
        len(variables),
    )


def _indices(rows: IntArray) -> tuple[int, ...]:
    return tuple(int(n) for n in rows)


def _of_arms(program: AllocationProgram, dependent: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
    """Assumptions about rows as those of their arms."""
    if program.owners is None:
        return dependent
    owners = program.owners
    return tuple(replace(a, arms=tuple(int(owners[n]) for n in a.arms)) for a in dependent)


def _span_of_duels(program: AllocationProgram) -> Span | None:
    """What features that are differences of arms span, exactly; None where they are no differences."""
    if program.origin.duels is None:
        return None
    assert program.origin.bandit is not None
    return span_of_duels(program.origin.bandit.arms_in_memory, program.origin.duels)


def _check_feasible(program: AllocationProgram, rows: Array, goals: Array, asked: IntArray) -> None:
    """Raise `Infeasible` where it is proven that upper bounds leave no room."""
    unmet = proven_infeasible(program, rows, goals, asked, bound_error(program))
    if unmet is not None:
        j, norm = unmet
        raise Infeasible(
            f"{program.target_name(j)} cannot be met: even with every arm at its upper bound its squared norm is "
            f"about {norm:.6g}, provably above the radius {program.radii[j]:.6g}"
        )


def _total_cost(costs: Array, allocation: Array) -> float:
    """Σ κ_i α_i with two roundings, however many arms there are: the certificate allows for no more."""
    some = np.flatnonzero(allocation)
    return math.fsum((costs[some] * allocation[some]).tolist())


def _ratios(program: AllocationProgram, weighted: Array, variables: IntArray, asked: IntArray) -> Array | None:
    """Length of each target over that of its own arm, where the arms asked about are just those that may be played."""
    assert program.target_arms is not None
    if not np.array_equal(program.target_arms[asked], variables):
        return None
    ratios: Array = np.sqrt(weighted[variables] / program.radii[asked])
    return ratios


def _check_targets(
    program: AllocationProgram, playable: Array, goals: Array, asked: IntArray, span: Span, units: Array
) -> tuple[Assumption, ...]:
    """Every target must lie in the span of the arms that may be played: exactly, or up to rounding, which is an assumption."""
    if not len(span.modulo.columns) or not len(asked):
        return ()
    if program.origin.compared is None:
        size, where = largest_share(span.modulo, goals[asked])
        column = None
    else:
        size, where, column = _share_of_differences(program, asked, span, units)
    if not size:
        return ()
    if size <= ROUNDING_LEVEL:
        text = (
            f"{program.target_name(int(asked[where]))} and others lie in the span of the arms only up to {float(size):.3g}, relative "
            "to the terms of the combination; they are taken as lying in it"
        )
        return (Assumption("dependence", _owner(program, int(asked[where])), size, text),)
    share = span.modulo.shares(goals[asked])
    rests = span.modulo(playable)
    column = int(np.argmax(share.max(axis=0))) if column is None else column
    if rests[:, column].any():
        raise SolverFailed(
            f"{program.target_name(int(asked[where]))} is outside the span of the arms that may be played, but these arms are "
            "dependent up to rounding only: whether it can ever be estimated cannot be decided"
        )
    j = int(asked[int(np.argmax(share[:, column]))])
    raise Infeasible(
        f"{program.target_name(j)} is not in the span of the arms that may be played, so it can never be estimated"
    )


def _share_of_differences(
    program: AllocationProgram, asked: IntArray, span: Span, units: Array
) -> tuple[Fraction, int, int]:
    """How far targets that are differences are from the span, the farthest of them and its column; exactly, not as rounded."""
    origin = program.origin
    assert origin.compared is not None
    compared = origin.bandit if origin.items is None else origin.items
    assert compared is not None
    if program.plays_what_it_compares and not span.assumptions:  # all arms lie in the span, and so do their differences
        return Fraction(0), 0, 0
    rows = compared.arms_in_memory * units
    if not program.plays_what_it_compares and differences_lie_in(span, rows, int(compared.optimal_arms[0])):
        return Fraction(0), 0, 0
    return largest_share_of_differences(span.modulo, rows, origin.compared[asked])


def _owner(program: AllocationProgram, target: int) -> tuple[int, ...]:
    """The arm that a target belongs to, where it does."""
    if program.target_arms is not None:
        return (int(program.target_arms[target]),)
    if program.origin.compared is None:
        return (target,)
    return () if program.origin.items is not None else (int(program.origin.compared[target, 0]),)
