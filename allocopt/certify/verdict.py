"""From bounds to a `Solution`: its status, ball arithmetic where doubles do not decide it, and programs that need no bounds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from allocopt.base.errors import Infeasible, SolverFailed
from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array
from allocopt.certify.by_block.findings import BoundsOverAll
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.canonical import Bounds
from allocopt.certify.certificate import evaluate, violation
from allocopt.certify.frame import padding
from allocopt.certify.limits.evaluation import most_excess
from allocopt.certify.reduction import Reduction, reduce, within_bounds
from allocopt.linear.assumptions import Assumption
from allocopt.model.program import AllocationProgram
from allocopt.model.rows.sightings import Sightings
from allocopt.model.solution import Solution, SparseVector, Status
from allocopt.model.streamed_program import BlockArray

if TYPE_CHECKING:
    from allocopt.certify.exact_arithmetic.sightings import ProvenBySight

_Bounds = TypeVar("_Bounds", bound=Bounds)

__all__ = [
    "by_sight",
    "certified_by_sight",
    "certified_over_all",
    "certified_solution",
    "fits_balls",
    "in_balls",
    "nothing_left",
    "nothing_to_decide",
    "recertify",
    "solution_as_given",
    "undecided",
    "widened",
]

_MOST_IN_BALLS = 1e4  # k r² up to which the certificate is repeated in ball arithmetic where doubles do not decide
_REPAIRS = (1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4)  # growth of an allocation until it is feasible for sure
_HALVINGS = 5  # of the interval between a growth that is too small and one that is enough
_STRICTLY = 1.0 - 2.0**-48  # so that the gap is within tol in exact arithmetic too


def certified_solution(
    reduction: Reduction, bounds: Bounds, method: str, tol: float, reason: str | None, stats: dict[str, Any]
) -> Solution:
    """A Solution from certified canonical bounds; the status follows from their gap and from what they assume."""
    allocation, multipliers = reduction.allocation(bounds.alpha), reduction.multipliers(bounds.multipliers)
    if not bounds.gap <= tol:
        bounds, allocation, multipliers = _sharper(reduction, bounds, allocation, multipliers)
    else:
        bounds = _slightly_wider(bounds, tol)
    limited = reduction.program.constraints
    if limited is not None and not limited.met_by(allocation):  # the last word is that of the doubles handed out
        bounds = dataclasses.replace(bounds, upper=float("inf"))
    return solution_as_given(reduction, bounds, allocation, multipliers, method, tol, reason, stats)


def solution_as_given(
    reduction: Reduction, bounds: Bounds, allocation: Array, multipliers: Array, method: str, tol: float,
    reason: str | None, stats: dict[str, Any],
) -> Solution:  # fmt: skip
    """A Solution from an allocation and multipliers and what they prove."""
    program = reduction.program
    lam = bounds.multipliers
    tight = (lam > BINDING * lam.max(initial=0.0)) | (bounds.constraints >= (1.0 - BINDING) * _level(reduction, bounds))
    tight &= bounds.constraints > 0
    targets = reduction.targets[tight]
    binding = targets if program.target_arms is None else program.target_arms[targets]
    status, stats = _status(bounds, tol, reason, reduction.canonical.scalable, stats, reduction.assumptions)
    return Solution(
        program, allocation, multipliers, bounds.lower, bounds.upper, status, method,
        tol, np.sort(binding), reduction.quotient.coordinates, stats, reduction.assumptions, bounds.row_multipliers,
    )  # fmt: skip


def _slightly_wider(bounds: _Bounds, tol: float) -> _Bounds:
    """Bounds that are a little wider than they need be, if tol allows it: so that they hold when they are computed again."""
    lower, upper = widened(bounds.lower, bounds.upper, bounds.rounding, tol)
    unchanged = lower == bounds.lower and upper == bounds.upper
    return bounds if unchanged else dataclasses.replace(bounds, lower=lower, upper=upper)


def widened(lower: float, upper: float, rounding: float, tol: float) -> tuple[float, float]:
    """`_slightly_wider`, of the numbers themselves."""
    widening = 0.5 * rounding + 4e-13
    low, high = lower * (1.0 - widening), upper * (1.0 + widening)
    return (low, high) if high - low <= tol * _STRICTLY * low or high == low else (lower, upper)


def in_balls(
    reduction: Reduction, allocation: Array, multipliers: Array, precision: int | None = None,
    row_multipliers: Array | None = None,
) -> tuple[float, float, int]:  # fmt: skip
    """Both bounds in ball arithmetic, and its bits."""
    # loads python-flint, which most solves do without
    from allocopt.certify.exact_arithmetic.balls import interval_in_balls

    return interval_in_balls(reduction, allocation, multipliers, precision, row_multipliers)


def fits_balls(reduction: Reduction) -> bool:
    """Whether a program is small enough for ball arithmetic."""
    return bool(reduction.program.n_rows * reduction.canonical.rank**2 <= _MOST_IN_BALLS)


def _sharper(
    reduction: Reduction, bounds: Bounds, allocation: Array, multipliers: Array
) -> tuple[Bounds, Array, Array]:
    """The bounds in ball arithmetic, if the program is small enough for that, and the pair that they hold for."""
    problem = reduction.canonical
    finite = np.where(np.isfinite(allocation), allocation, 0.0)
    mu = bounds.row_multipliers
    if not fits_balls(reduction) or not finite.any() or not (multipliers.any() or (mu is not None and mu.any())):
        return bounds, allocation, multipliers
    lower, upper, _ = in_balls(reduction, allocation, multipliers, None, mu)
    cost = float(reduction.program.costs @ finite)
    if problem.scalable and np.isfinite(upper) and cost > 0:
        # what may be scaled is feasible once it costs the upper bound, or a little more, as it is rounded; then both bounds anew
        margin = upper / cost * (2.0 * padding(len(finite)) - 1.0 + 2.0 * problem.bound_error)
        allocation = np.where(np.isfinite(allocation), allocation * margin, allocation)
        if lower > 0:  # at the optimum the multipliers sum to the value
            multipliers = multipliers * (lower / float(multipliers.sum()))
        lower, upper, _ = in_balls(reduction, allocation, multipliers)
        upper *= 2.0 * padding(len(finite)) - 1.0 + 4.0 * problem.bound_error
    elif not problem.scalable and not np.isfinite(upper):
        lower, upper, allocation = _repaired(reduction, allocation, multipliers, lower, mu)
    return dataclasses.replace(bounds, lower=lower, upper=upper), allocation, multipliers


def _repaired(
    reduction: Reduction, allocation: Array, multipliers: Array, lower: float, row_multipliers: Array | None = None
) -> tuple[float, float, Array]:
    """An allocation within its bounds, enlarged by as little as makes it feasible for sure; and both bounds for it."""
    finite = np.isfinite(allocation)

    def enlarged(growth: float) -> tuple[float, float, Array]:
        larger = allocation.copy()
        larger[finite] = np.minimum(allocation[finite] * (1.0 + growth), reduction.most[finite])
        low, high, _ = in_balls(reduction, larger, multipliers, None, row_multipliers)
        return low, high, larger

    least = 0.0
    for growth in _REPAIRS:
        found = enlarged(growth)
        if np.isfinite(found[1]):
            for _ in range(_HALVINGS):  # between what is too little and what is enough
                middle = 0.5 * (least + growth)
                better = enlarged(middle)
                if np.isfinite(better[1]):
                    found, growth = better, middle
                else:
                    least = middle
            return found
        least = growth
    return lower, float("inf"), allocation


def _status(
    bounds: Bounds,
    tol: float,
    reason: str | None,
    scalable: bool,
    stats: dict[str, Any],
    assumptions: tuple[Assumption, ...],
) -> tuple[Status, dict[str, Any]]:
    """The status that bounds deserve, and the statistics with the reason where it is none of the good ones."""
    gap = bounds.gap
    stats = {**stats, "rounding": bounds.rounding}
    if not np.isfinite(bounds.upper):
        singular = "the information matrix is singular in double precision"
        barely = "no allocation within the bounds could be shown to be feasible: the constraints hold barely, if at all"
        return Status.FAILED, {**stats, "reason": reason or (singular if scalable else barely)}
    if 0 <= gap <= tol * _STRICTLY:
        return Status.CONDITIONAL if assumptions else Status.CERTIFIED, stats
    limit = f"the method stopped at a gap of {gap:.3g} (rounding alone accounts for about {bounds.rounding:.1g})"
    return Status.INACCURATE, {**stats, "reason": reason or limit}


def _level(reduction: Reduction, bounds: Bounds) -> float:
    """The g at which a constraint is tight: 1, or the largest where the allocation was scaled to it."""
    return float(bounds.constraints.max(initial=0.0)) if reduction.canonical.scalable else 1.0


def certified_over_all(
    problem: StreamedProblem, bounds: BoundsOverAll, method: str, tol: float, reason: str | None, stats: dict[str, Any]
) -> Solution:
    """A Solution from bounds that are certified for all arms of a large set, kept as the few arms that matter."""
    bounds = _slightly_wider(bounds, tol)
    blocks, pool = problem.blocks, bounds.pool
    status, stats = _status(bounds, tol, reason, not blocks.bounded, stats, problem.assumptions)
    costs = blocks.gaps_of(pool, blocks.store.rows(pool)) if len(pool) else np.zeros(0)
    allocation = np.minimum(blocks.lower_of(pool) + bounds.alpha / costs, blocks.upper_of(pool, costs))
    others = None if blocks.pulls is None else BlockArray(blocks, "lower")
    lazily: dict[str, Any] = {
        "allocation": SparseVector(problem.n_arms, pool, allocation, blocks.free, others),
        "multipliers": SparseVector(problem.n_arms, pool, bounds.multipliers, pool[:0]),
    }
    return Solution(
        problem.program, **lazily, lower=bounds.lower, upper=bounds.upper, status=status, method=method, tol=tol,
        binding=bounds.binding, coordinates=problem.coordinates, stats=stats,
        assumptions=problem.assumptions,
    )  # fmt: skip


def undecided(program: AllocationProgram, tol: float, why: str) -> Solution:
    """Nothing is proven but that costs are not negative."""
    allocation = program.lower.copy()
    allocation[program.free] = np.inf
    multipliers = np.zeros(program.n_multipliers)
    none = np.zeros(0, dtype=np.int64)
    return Solution(
        program, allocation, multipliers, 0.0, np.inf, Status.FAILED, "closed-form", tol, none, (), {"reason": why, "seconds": 0.0},
        constraint_multipliers=None if program.constraints is None else np.zeros(program.constraints.n_rows),
    )  # fmt: skip


def by_sight(seen: Sightings, allocation: Array, multipliers: Array, precision: int = 128) -> ProvenBySight:
    """Both bounds of side observations in ball arithmetic, over the list of what arms show."""
    # loads python-flint
    from allocopt.certify.exact_arithmetic.sightings import interval_by_sight

    return interval_by_sight(seen, allocation, multipliers, precision)


def certified_by_sight(
    program: AllocationProgram, allocation: Array, multipliers: Array, method: str, tol: float, reason: str | None,
    stats: dict[str, Any],
) -> Solution:  # fmt: skip
    """A Solution of side observations from what an allocation and multipliers prove over the list of what arms show, in balls."""
    seen = program.origin.sightings
    assert seen is not None
    found = by_sight(seen, allocation, multipliers)
    bounds = Bounds(found.upper, found.lower, allocation, multipliers, np.zeros(0), np.zeros(0), 0.0)
    status, stats = _status(bounds, tol, reason, True, stats, ())
    level = (1.0 - BINDING) * max(found.ratios.values(), default=0.0)
    least = BINDING * float(multipliers.max(initial=0.0))
    binding = [j for j, ratio in found.ratios.items() if ratio >= level or multipliers[j] > least]
    return Solution(
        program, allocation, multipliers, found.lower, found.upper, status, method, tol, np.array(binding, dtype=np.int64),
        tuple(np.flatnonzero(~seen.known).tolist()), stats,
    )  # fmt: skip


def nothing_left(reduction: Reduction) -> bool:
    """Whether the answer is what is fixed already: no targets, no variables, or targets that are surely met without any."""
    if not len(reduction.variables):
        return True
    limits = reduction.canonical.limits
    if limits is not None and (most_excess(limits, np.zeros(len(reduction.variables))) > 0).any():
        return False  # something must be played, or may have to be
    if not len(reduction.targets):
        return True
    return bool(len(reduction.canonical.base)) and _met(reduction)


def _met(reduction: Reduction) -> bool:
    """Whether what is fixed meets every constraint for sure."""
    problem, program = reduction.canonical, reduction.program
    if not len(reduction.targets):
        return True
    worst = violation(problem, np.zeros(problem.n_variables))
    if worst <= 1.0:
        return True
    if program.kind != "general" or not len(problem.base) or not len(reduction.variables) or np.isfinite(worst):
        return False  # (a finite number: what is fixed spans as much as all arms do)
    # what is fixed may span less than all arms do: the program of what is fixed alone
    upper = np.where(np.isfinite(reduction.fixed), reduction.fixed, np.inf)
    try:
        fixed = reduce(within_bounds(program, np.minimum(program.lower, upper), upper))
    except (Infeasible, SolverFailed):
        return False
    return not fixed.assumptions and _met(fixed)


def nothing_to_decide(reduction: Reduction, tol: float, stats: dict[str, Any]) -> Solution:
    """The lower bounds are optimal if they are feasible, and nothing else is possible if they are not."""
    problem = reduction.canonical
    k, m = len(reduction.variables), len(reduction.targets)
    inflation = padding(problem.rank + reduction.program.n_arms) + 4.0 * problem.bound_error
    upper = problem.offset * inflation if _met(reduction) else np.inf
    mu = None if problem.limits is None else np.zeros(len(problem.limits.room))
    bounds = Bounds(
        upper, problem.offset / inflation, np.zeros(k), np.zeros(m), np.zeros(m), np.zeros(k), 0.0, row_multipliers=mu
    )
    return certified_solution(reduction, bounds, "closed-form", tol, None, stats)


def recertify(
    program: AllocationProgram, allocation: Array, multipliers: Array, method: str, tol: float, stats: dict[str, Any],
    row_multipliers: Array | None = None,
) -> Solution:  # fmt: skip
    """The Solution that an allocation and multipliers from elsewhere (a proof file) amount to, just as they are."""
    if program._sightings is not None:
        return certified_by_sight(program, allocation, multipliers, method, tol, None, stats)
    reduction = reduce(program)
    if nothing_left(reduction):
        return nothing_to_decide(reduction, tol, stats)
    problem = reduction.canonical
    alpha = reduction.canonical_allocation(allocation)
    bounds = evaluate(problem, alpha, reduction.canonical_multipliers(multipliers), row_multipliers)
    # `evaluate` makes α feasible and knows of no arms that tell nothing: the upper bound of α as it is
    played = np.flatnonzero(np.isfinite(allocation) & (allocation > 0))
    cost = float(program.costs[played] @ allocation[played])
    inflation = padding(problem.rank + len(played)) + problem.bound_error
    # (a bound on an arm that tells nothing leaves the canonical problem without any)
    if problem.scalable and not program.bounded:
        used = float(alpha.sum())
        upper = bounds.upper * max(cost / used, 1.0) * inflation if used > 0 else np.inf
    else:
        within = bool(((allocation >= reduction.least) & (allocation <= reduction.most)).all())
        within = within and (program.constraints is None or program.constraints.met_by(allocation))
        upper = cost * inflation if within and violation(problem, alpha) <= 1.0 else np.inf
    bounds = dataclasses.replace(bounds, upper=upper)
    if not bounds.gap <= tol and fits_balls(reduction):
        lower, upper, _ = in_balls(reduction, allocation, multipliers, None, row_multipliers)
        bounds = dataclasses.replace(bounds, lower=lower, upper=upper)
    return solution_as_given(reduction, bounds, allocation, multipliers, method, tol, None, stats)


def recertify_by_block(
    program: AllocationProgram, allocation: Array, multipliers: Array, method: str, tol: float
) -> Solution | None:
    """`recertify` for arms that are looked at block by block, without arrays of them all.

    None where that says too little: other programs, a pair that is not within the bounds, dependences that hold up to rounding (these
    are judged by a sample of the arms here), or nothing proven.
    """
    blocks = program._blocks
    if blocks is None or program.constraints is not None:
        return None
    problem = StreamedProblem(program)
    least = blocks.lower()
    playable = np.ones(problem.n_arms, dtype=bool)
    playable[blocks.free] = False
    within = (allocation >= least) & (allocation <= blocks.upper()) if blocks.bounded else playable
    if problem.assumptions or (playable & ~within).any() or multipliers[blocks.free].any():
        return None
    arms = np.flatnonzero(playable & ((allocation > least) | (multipliers > 0)))
    pair = allocation[arms], multipliers[arms]
    bounds = problem.proven(arms, *pair)
    if not isinstance(bounds, BoundsOverAll) or not np.isfinite(bounds.upper):
        return None
    status, stats = _status(bounds, tol, None, not blocks.bounded, {}, ())
    others = None if blocks.pulls is None else BlockArray(blocks, "lower")
    lazily: dict[str, Any] = {
        "allocation": SparseVector(problem.n_arms, arms, pair[0], blocks.free, others),
        "multipliers": SparseVector(problem.n_arms, arms, pair[1], arms[:0]),
    }
    return Solution(
        program, **lazily, lower=bounds.lower, upper=bounds.upper, status=status, method=method, tol=tol, binding=bounds.binding,
        coordinates=problem.coordinates, stats=stats, assumptions=(),
    )  # fmt: skip
