"""solve(): choose a method, run it, and certify what it found from the program's data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

import numpy as np

from allocopt.base.errors import Infeasible, Interrupted, InvalidOption, InvalidProgram, MethodUnavailable, SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.tolerances import BINDING, DEFAULT_TOL, TIE
from allocopt.base.validation import Array, positive_number
from allocopt.certify.canonical import Bounds, Canonical, evaluate, padding, settle, tidy, violation
from allocopt.certify.monitor import Callback, Monitor, OutOfTime
from allocopt.certify.reduction import Reduction, reduce
from allocopt.certify.streamed import StreamedBounds, StreamedProblem, StreamedProgram, StreamedSolution
from allocopt.linear.assumptions import Assumption
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram, horizon, regret
from allocopt.model.solution import Solution, Status
from allocopt.solvers import AUTO, METHODS, Method, backend

__all__ = ["certified_solution", "optimal_pulls", "regret_constant", "solve"]

_MOST_IN_BALLS = 1e4  # k r² up to which the certificate is repeated in ball arithmetic where doubles do not decide
_REPAIRS = (1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4)  # growth of an allocation until it is feasible for sure
_HALVINGS = 5  # of the growth, once it is enough
_STRICTLY = 1.0 - 2.0**-48  # so that the gap is within tol in exact arithmetic too
_SMALL = 20_000  # entries of the feature matrix up to which one BLAS thread is faster than several


def solve(
    program: AllocationProgram,
    method: str = "auto",
    tol: float = DEFAULT_TOL,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    start: Solution | None = None,
    **options: Any,
) -> Solution:
    r"""Solve an allocation program and certify the answer.

    Parameters
    ----------
    program : AllocationProgram
        From ``allocopt.programs`` or given by its arrays.
    method : str
        "auto", "closed-form", "interior-point", "active-set", "frank-wolfe" or "conic".
    tol : float
        Relative gap (upper − lower)/lower to reach.
    max_seconds : float, optional
        Stop then and return the best certified answer so far.
    callback : callable, optional
        Called with a `Progress` (certified bounds of the moment) after every step.
    start : Solution, optional
        The solution of a similar program with as many arms, to begin from ("interior-point" and "active-set" can). It
        makes the way shorter and is taken for nothing else: the answer is certified as any other.
    **options
        The method's own options, e.g. ``solver="SCS"`` for "conic"; an unknown one raises.

    Returns
    -------
    Solution
        ``status`` is CERTIFIED only if the gap, recomputed from the program, is at most ``tol``.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
    >>> s = ao.solve(ao.programs.regret(bandit))
    >>> round(s.value, 6), s.status.name, s.support.tolist()
    (8.0, 'CERTIFIED', [1])
    """
    if not isinstance(program, AllocationProgram):
        raise InvalidProgram(f"program: expected an AllocationProgram, got a {type(program).__name__}")
    tol = positive_number("tol", tol)
    if max_seconds is not None:
        max_seconds = positive_number("max_seconds", max_seconds, infinite=True)
    if callback is not None and not callable(callback):
        raise InvalidOption(f"callback: expected a function, got a {type(callback).__name__}")
    asked = _named(method, options)
    if start is not None:
        _check_start(start, program, asked)
    if isinstance(program, StreamedProgram) and (asked is None or asked.name == "active-set"):
        return solve_streamed(program, tol, max_seconds, callback, start, **options)
    try:
        reduction = reduce(program)
    except SolverFailed as undecided:
        return _undecided(program, tol, str(undecided))
    problem = reduction.canonical
    if _nothing_left(reduction):
        return _nothing_to_decide(reduction, tol, {"formula": "nothing to explore", "seconds": 0.0})
    chosen = _choose(asked, problem)
    monitor = Monitor(problem, chosen.name, tol, max_seconds, callback)
    stats: dict[str, Any] = {}
    reason = None
    try:
        with single_threaded() if problem.features.size <= _SMALL else nullcontext():
            if start is not None and chosen.starts:
                options["start"] = _proven(reduction, start)
                stats["warm"] = options["start"] is not None
            stats.update(backend(chosen)(problem, monitor, **options))
            bounds = monitor.best
            if bounds is not None and np.isfinite(bounds.upper):
                bounds = tidy(problem, settle(problem, bounds), tol)
    except OutOfTime:
        bounds, reason = monitor.best, f"max_seconds = {max_seconds:g} passed"
    except SolverFailed as failure:
        bounds, reason = monitor.best, str(failure)
    except KeyboardInterrupt:
        best = monitor.best
        stats["seconds"] = monitor.seconds
        raise Interrupted(
            None if best is None else certified_solution(reduction, best, chosen.name, tol, "interrupted", stats)
        ) from None
    if bounds is None:
        bounds = _even_allocation(problem)
    stats["seconds"] = monitor.seconds
    found = certified_solution(reduction, bounds, chosen.name, tol, reason, stats)
    unsolved = found.status in (Status.INACCURATE, Status.FAILED) and reason is None
    if unsolved and asked is None and _fits_balls(reduction):
        from allocopt.solving.second_try import second_try

        found = second_try(reduction, found, monitor)
    return found


def _check_start(start: Any, program: AllocationProgram, asked: Method | None) -> None:
    """Refuse what a solve cannot begin from."""
    if not isinstance(start, Solution):
        raise InvalidOption(f"start: expected a Solution, got a {type(start).__name__}")
    if start.program.n_arms != program.n_arms:
        theirs, ours = start.program.n_arms, program.n_arms
        raise InvalidOption(f"start: expected the solution of a program with {ours} arms, got one with {theirs}")
    if _multipliers(start.program) != _multipliers(program):
        raise InvalidOption(
            f"start: expected the solution of a program with constraints {_multipliers(program)}, "
            f"got one with constraints {_multipliers(start.program)}"
        )
    if asked is not None and not asked.starts:
        able = ", ".join(m.name for m in METHODS.values() if m.starts)
        raise InvalidOption(f"start: method {asked.name!r} cannot begin from a solution; these can: {able}")


def _multipliers(program: AllocationProgram) -> str:
    """What a program's multipliers belong to."""
    if isinstance(program, StreamedProgram) or program.target_arms is not None:
        return "of arms"
    return f"of its own ({program.n_targets})"


def _proven(reduction: Reduction, start: Solution) -> Bounds | None:
    """What the allocation and multipliers of a similar program prove for this one; None where that is nothing."""
    alpha = reduction.canonical_allocation(start.allocation)
    lam = np.maximum(reduction.canonical_multipliers(start.multipliers), 0.0)
    alpha = np.where(np.isfinite(alpha), alpha, 0.0)  # arms that cost nothing there
    if not np.isfinite(lam).all():
        return None
    bounds = evaluate(reduction.canonical, alpha, lam)
    return bounds if np.isfinite(bounds.upper) else None


def _named(method: str, options: Mapping[str, Any]) -> Method | None:
    """The method asked for (None for "auto"), once its name and options are known to be right."""
    if method == "auto":
        if options:
            raise InvalidOption(
                f"{next(iter(options))}: method 'auto' takes no options of its own; name the method it belongs to"
            )
        return None
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOption(f"method: expected 'auto' or one of {', '.join(METHODS)}, got {method!r}")
    chosen = METHODS[method]
    unknown = [name for name in options if name not in chosen.options]
    if unknown:
        known = ", ".join(chosen.options) or "none"
        raise InvalidOption(f"{unknown[0]}: not an option of method {method!r} (it has: {known})")
    return chosen


def _choose(asked: Method | None, problem: Canonical) -> Method:
    if asked is not None:
        lack = asked.lacks(problem)
        if lack:
            able = [m.name for m in METHODS.values() if m.lacks(problem) is None]
            raise MethodUnavailable(f"method {asked.name!r} {lack}; these can solve it: {', '.join(able)}")
        return asked
    for name, most in AUTO:
        if (most is None or len(problem.features) <= most) and METHODS[name].lacks(problem) is None:
            return METHODS[name]
    raise AssertionError("the last method of AUTO solves everything")


def _undecided(program: AllocationProgram, tol: float, why: str) -> Solution:
    """Nothing is proven but that costs are not negative."""
    allocation = np.where((program.costs == 0) & np.isinf(program.upper), np.inf, program.lower)
    multipliers = np.zeros(program.n_targets if program.target_arms is None else program.n_arms)
    none = np.zeros(0, dtype=np.int64)
    return Solution(
        program, allocation, multipliers, 0.0, np.inf, Status.FAILED, "closed-form", tol, none, (), {"reason": why, "seconds": 0.0}
    )  # fmt: skip


def _nothing_left(reduction: Reduction) -> bool:
    """Whether the answer is what is fixed already: no targets, no variables, or targets that are surely met without any."""
    if not len(reduction.targets) or not len(reduction.variables):
        return True
    return bool(len(reduction.canonical.base)) and _met(reduction)


def _met(reduction: Reduction) -> bool:
    """Whether what is fixed meets every constraint for sure."""
    problem, program = reduction.canonical, reduction.program
    if not len(reduction.targets) or violation(problem, np.zeros(len(problem.features))) <= 1.0:
        return True
    if program.kind != "general" or not len(problem.base) or not len(reduction.variables):
        return False
    # what is fixed may span less than all arms do: the program of what is fixed alone
    upper = np.where(np.isfinite(reduction.fixed), reduction.fixed, np.inf)
    try:
        fixed = reduce(dataclasses.replace(program, lower=np.minimum(program.lower, upper), upper=upper))
    except (Infeasible, SolverFailed):
        return False
    return not fixed.assumptions and _met(fixed)


def _nothing_to_decide(reduction: Reduction, tol: float, stats: dict[str, Any]) -> Solution:
    """The lower bounds are optimal if they are feasible, and nothing else is possible if they are not."""
    problem = reduction.canonical
    k, m = len(reduction.variables), len(reduction.targets)
    doubt = padding(problem.rank + reduction.program.n_arms) + 4.0 * problem.bound_error
    upper = problem.offset * doubt if _met(reduction) else np.inf
    bounds = Bounds(upper, problem.offset / doubt, np.zeros(k), np.zeros(m), np.zeros(m), np.zeros(k), 0.0)
    return certified_solution(reduction, bounds, "closed-form", tol, None, stats)


def _even_allocation(problem: Canonical) -> Bounds:
    """What a method that never reported anything leaves us with: every arm alike."""
    alpha = 1.0 / np.einsum("ij,ij->i", problem.features, problem.features)
    if problem.upper is not None:
        alpha = np.minimum(alpha, problem.upper)
    return evaluate(problem, alpha, np.ones(len(problem.targets)))


def certified_solution(
    reduction: Reduction, bounds: Bounds, method: str, tol: float, reason: str | None, stats: dict[str, Any]
) -> Solution:
    """A Solution from certified canonical bounds; the status follows from their gap and from what they assume."""
    allocation, multipliers = reduction.allocation(bounds.alpha), reduction.multipliers(bounds.multipliers)
    if not bounds.gap <= tol:
        bounds, allocation, multipliers = _sharper(reduction, bounds, allocation, multipliers)
    else:
        bounds = _with_room(bounds, tol)
    return _solution(reduction, bounds, allocation, multipliers, method, tol, reason, stats)


def _solution(
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
        tol, np.sort(binding), reduction.quotient.coordinates, stats, reduction.assumptions,
    )  # fmt: skip


def _with_room(bounds: Bounds, tol: float) -> Bounds:
    """Bounds that are a little wider than they need be, if tol allows it: so that they hold when they are computed again."""
    room = 0.5 * bounds.rounding + 4e-13
    wider = dataclasses.replace(bounds, lower=bounds.lower * (1.0 - room), upper=bounds.upper * (1.0 + room))
    return wider if wider.gap <= tol * _STRICTLY else bounds


def _fits_balls(reduction: Reduction) -> bool:
    """Whether a program is small enough for ball arithmetic."""
    return bool(reduction.program.n_arms * reduction.canonical.rank**2 <= _MOST_IN_BALLS)


def _sharper(
    reduction: Reduction, bounds: Bounds, allocation: Array, multipliers: Array
) -> tuple[Bounds, Array, Array]:
    """The bounds in ball arithmetic, if the program is small enough for that, and the pair that they hold for."""
    problem = reduction.canonical
    finite = np.where(np.isfinite(allocation), allocation, 0.0)
    if not _fits_balls(reduction) or not finite.any() or not multipliers.any():
        return bounds, allocation, multipliers
    from allocopt.certify.balls import interval_in_balls

    lower, upper, _ = interval_in_balls(reduction, allocation, multipliers)
    cost = float(reduction.program.costs @ finite)
    if problem.scalable and np.isfinite(upper) and cost > 0:
        # what may be scaled is feasible once it costs the upper bound, or a little more, as it is rounded; then both bounds anew
        margin = upper / cost * (2.0 * padding(len(finite)) - 1.0 + 2.0 * problem.bound_error)
        allocation = np.where(np.isfinite(allocation), allocation * margin, allocation)
        if lower > 0:  # at the optimum the multipliers sum to the value
            multipliers = multipliers * (lower / float(multipliers.sum()))
        lower, upper, _ = interval_in_balls(reduction, allocation, multipliers)
        upper *= 2.0 * padding(len(finite)) - 1.0 + 4.0 * problem.bound_error
    elif not problem.scalable and not np.isfinite(upper):
        lower, upper, allocation = _repaired(reduction, allocation, multipliers, lower)
    return dataclasses.replace(bounds, lower=lower, upper=upper), allocation, multipliers


def _repaired(reduction: Reduction, allocation: Array, multipliers: Array, lower: float) -> tuple[float, float, Array]:
    """An allocation within its bounds, enlarged by as little as makes it feasible for sure; and both bounds for it."""
    from allocopt.certify.balls import interval_in_balls

    finite = np.isfinite(allocation)

    def enlarged(growth: float) -> tuple[float, float, Array]:
        larger = allocation.copy()
        larger[finite] = np.minimum(allocation[finite] * (1.0 + growth), reduction.most[finite])
        low, high, _ = interval_in_balls(reduction, larger, multipliers)
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


def solve_streamed(
    program: StreamedProgram,
    tol: float,
    max_seconds: float | None,
    callback: Callback | None,
    start: Solution | None = None,
    **options: Any,
) -> Solution:
    """`solve` for arms that are looked at block by block."""
    from allocopt.solvers import streaming

    monitor = Monitor(None, "active-set", tol, max_seconds, callback)
    problem = StreamedProblem(program)
    stats: dict[str, Any] = {}
    reason = None

    def answer(why: str | None) -> Solution:
        best = monitor.best
        stats["seconds"] = monitor.seconds
        if not isinstance(best, StreamedBounds):
            raise SolverFailed(f"{why or 'the method stopped'} before any allocation was certified for all arms")
        best = cast(StreamedBounds, _with_room(best, tol))
        status, full = _status(best, tol, why, True, stats, problem.assumptions)
        return StreamedSolution.of(program, problem, best, status, tol, full)

    if not problem.rank:
        pool = np.zeros(0, dtype=np.int64)
        none = np.zeros(0)
        monitor.record(StreamedBounds(0.0, 0.0, none, none, none, none, 0.0, pool, pool, 0), 0)
        return answer(None)
    try:
        known = None if start is None else problem.pair(*start.in_use)
        if start is not None:
            stats["warm"] = known is not None
        stats.update(streaming.solve(problem, monitor, start=known, **options))
    except OutOfTime:
        reason = f"max_seconds = {max_seconds:g} passed"
    except SolverFailed as failure:
        reason = str(failure)
    except KeyboardInterrupt:
        raise Interrupted(None if monitor.best is None else answer("interrupted")) from None
    return answer(reason)


def _level(reduction: Reduction, bounds: Bounds) -> float:
    """The g at which a constraint is tight: 1, or the largest where the allocation was scaled to it."""
    return float(bounds.constraints.max(initial=0.0)) if reduction.canonical.scalable else 1.0


def regret_constant(
    arms: Any, theta: Any, noise_variance: float = 1.0, *, tie_tolerance: float = TIE, **how: Any
) -> Solution:
    """c(A,θ): the constant of the best possible asymptotic regret, with its certificate.

    ``how`` is passed to `solve` (method, tol, max_seconds, callback and the method's options).

    Examples
    --------
    >>> import allocopt as ao
    >>> round(ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0]).value, 6)
    8.0
    """
    return solve(regret(LinearBandit(arms, theta, noise_variance, tie_tolerance)), **how)


def optimal_pulls(arms: Any, gaps: Any, n: float, *, constant: float = 1.0, **how: Any) -> Solution:
    """T_n(Δ) of Definition 9 (`def:opt`): how often to play each arm within n rounds (inf on zero-gap arms).

    Examples
    --------
    >>> import allocopt as ao
    >>> ao.optimal_pulls([[1, 0], [0, 1]], [0, 0.5], 1000).allocation.round(3)
    array([   inf, 84.268])
    """
    return solve(horizon(arms, gaps, n, constant=constant), **how)


def recertify(
    program: AllocationProgram, allocation: Array, multipliers: Array, method: str, tol: float, stats: dict[str, Any]
) -> Solution:
    """The Solution that an allocation and multipliers from elsewhere (a proof file) amount to, just as they are."""
    reduction = reduce(program)
    if _nothing_left(reduction):
        return _nothing_to_decide(reduction, tol, stats)
    problem = reduction.canonical
    alpha = reduction.canonical_allocation(allocation)
    bounds = evaluate(problem, alpha, reduction.canonical_multipliers(multipliers))
    # `evaluate` makes α feasible and knows of no arms that tell nothing: the upper bound of α as it is
    played = np.flatnonzero(np.isfinite(allocation) & (allocation > 0))
    cost = float(program.costs[played] @ allocation[played])
    up = padding(problem.rank + len(played)) + problem.bound_error
    if problem.scalable and not program.bounded:  # a bound on an arm that tells nothing leaves the canonical problem without any
        used = float(alpha.sum())
        upper = bounds.upper * max(cost / used, 1.0) * up if used > 0 else np.inf
    else:
        within = (allocation >= reduction.least) & (allocation <= reduction.most)
        upper = cost * up if within.all() and violation(problem, alpha) <= 1.0 else np.inf
    bounds = dataclasses.replace(bounds, upper=upper)
    if not bounds.gap <= tol and _fits_balls(reduction):
        from allocopt.certify.balls import interval_in_balls

        lower, upper, _ = interval_in_balls(reduction, allocation, multipliers)
        bounds = dataclasses.replace(bounds, lower=lower, upper=upper)
    return _solution(reduction, bounds, allocation, multipliers, method, tol, None, stats)


def proven(solution: Solution, precision: int | None) -> tuple[float, float, tuple[Assumption, ...], int]:
    """What a solution's allocation and multipliers prove, anew: lower and upper bound, assumptions, bits of the arithmetic."""
    program = solution.program
    if precision is None and isinstance(program, StreamedProgram):
        problem = StreamedProblem(program)
        bounds = problem.proven(*solution.in_use)
        return bounds.lower, bounds.upper, problem.assumptions, 53
    if precision is None:
        again = recertify(program, solution.allocation, solution.multipliers, solution.method, solution.tol, {})
        within = solution.lower <= again.lower and again.upper <= solution.upper
        if within or solution.gap == math.inf or not _fits_balls(reduce(program)):
            return again.lower, again.upper, again.assumptions, 53
    from allocopt.certify.balls import interval_in_balls

    reduction = reduce(program)
    lower, upper, bits = interval_in_balls(reduction, solution.allocation, solution.multipliers, precision)
    return lower, upper, reduction.assumptions, bits
