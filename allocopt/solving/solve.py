"""solve(): choose a method, run it, and certify what it found from the program's data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from allocopt.base.errors import (
    Infeasible,
    Interrupted,
    InvalidOption,
    InvalidProgram,
    MethodUnavailable,
    SolverFailed,
)
from allocopt.base.machine import single_threaded, threads_of_numpy
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import DEFAULT_TOL, TIE
from allocopt.base.validation import ArrayLike, did_you_mean, positive_number
from allocopt.certify.by_block.findings import BoundsOverAll
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate, recomputed, tidy
from allocopt.certify.reduction import Reduction, reduce
from allocopt.certify.verdict import (
    certified_over_all,
    certified_solution,
    fits_balls,
    nothing_left,
    nothing_to_decide,
    undecided,
)
from allocopt.model.arms import on_client
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import horizon, regret
from allocopt.model.programs.elastic import elastic_program, shortfall_text, unlimited_arms
from allocopt.model.programs.instead import constant_without_theta, program_instead
from allocopt.model.progress import Callback
from allocopt.model.rows.sightings import sightings_of
from allocopt.model.solution import Solution, Status, arms_in_use, noting
from allocopt.solvers.methods import AUTO, AUTO_BY_BLOCKS, METHODS, Method, backend, checked_settings, say_if_long
from allocopt.solvers.monitor import Monitor, OutOfTime
from allocopt.solvers.settings import Settings
from allocopt.solving.answers import answer_programs, best_answer
from allocopt.solving.roads.compiled_answer import compiled_answer, does_not_fit, targets_are_arms
from allocopt.solving.roads.compiled_targets import answer_of_targets, lacks
from allocopt.solving.roads.machine_code import loaded_or_made, pinned_road, ready, why_no_machine_code
from allocopt.solving.roads.side_observations import answer_by_sight
from allocopt.solving.roads.starts import check_start
from allocopt.solving.second_try import second_try

__all__ = ["optimal_pulls", "regret_constant", "solve"]

_ROUGH = 1e-3  # gap of the program that says whether linear constraints leave any allocation
_SMALL = 20_000  # entries of the feature matrix up to which one BLAS thread is faster than several


@spelled
def solve(
    program: AllocationProgram,
    method: str = "auto",
    tol: float = DEFAULT_TOL,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    start: Solution | None = None,
    settings: Settings | None = None,
    road: str | None = None,
    client: Any = None,
    **options: Any,
) -> Solution:
    r"""Solve an allocation program and certify the answer.

    Parameters
    ----------
    program : AllocationProgram
        From ``allocopt.programs`` or given by its arrays.
    method : str
        "auto", "closed-form", "design", "interior-point", "active-set", "streaming", "frank-wolfe" or "conic"; ``allocopt methods``
        tells them apart.
    tol : float
        Relative gap (upper − lower)/lower to reach.
    max_seconds : float, optional
        Stop then and return the best certified answer so far (a tenth more may go into whether linear constraints leave any).
    callback : callable, optional
        Called with a `Progress` (certified bounds of the moment) after every step.
    start : Solution, optional
        The solution of a similar program with as many arms, to begin from ("interior-point" and "active-set" can). It
        makes the way shorter and is taken for nothing else: the answer is certified as any other.
    settings : Settings, optional
        The method's record of `allocopt.settings`, e.g. ``InteriorPointSettings(max_iterations=50)``.
    road : str, optional
        "numpy", "compiled" or "auto", the default: small programs by machine code where that is on disk, else by numpy. Both roads
        certify alike and differ in last digits; who needs the same bits names one, here or for all calls by the environment
        variable ALLOCOPT_ROAD. "compiled" makes the machine code where there is none, and takes numpy for what it is not made
        for: other methods than "auto", callbacks, time limits, starts, bounds, more than 100 arms, very many targets.
        ``stats["road"]`` says which it was.
    client : dask.distributed.Client, optional
        For arms in a Dask array: the cluster whose workers look at them (by default the one that persisted it, or Dask's default one).
    **options
        Fields of that record instead, e.g. ``max_iterations=50``, or ``solver="SCS"`` for "conic"; an unknown one raises.

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
        raise InvalidProgram(
            f"program: expected an AllocationProgram, got a {type(program).__name__}{program_instead(program)}"
        )
    tol = positive_number("tol", tol)
    if max_seconds is not None:
        max_seconds = positive_number("max_seconds", max_seconds, infinite=True)
    if callback is not None and not callable(callback):
        raise InvalidOption(f"callback: expected a function, got a {type(callback).__name__}")
    if client is not None:
        with on_client(client):
            return solve(program, method, tol, max_seconds, callback, start, settings, road, **options)
    asked, settings = _named(method, settings, options)
    road = pinned_road(road)
    if start is not None:
        check_start(start, program, asked)
    if program.origin.answers:
        again = partial(
            solve, method=method, tol=tol, max_seconds=max_seconds, callback=callback, settings=settings, road=road
        )
        return best_answer(program, tol, [(i, again(p)) for i, p in answer_programs(program)])
    not_compiled = "another method, a callback, a time limit or a start was asked for"
    if asked is None and callback is None and max_seconds is None and start is None:
        answer = _by_machine_code(program, tol, road)
        if isinstance(answer, Solution):
            return answer
        not_compiled = answer
    if sightings_of(program) is not None:
        found = answer_by_sight(program, asked is None and start is None, tol, max_seconds, callback)
        if found is not None:
            return found
    by_blocks = (asked or METHODS[AUTO_BY_BLOCKS]).for_blocks(settings)
    if program._blocks is not None and by_blocks is not None:
        return noting(solve_streamed(program, tol, max_seconds, callback, start, *by_blocks), road="blocks")
    found = _solve_in_memory(program, asked, tol, max_seconds, callback, start, settings, not_compiled)
    if program.constraints is not None and found.status in (Status.INACCURATE, Status.FAILED):
        return _explained(program, found, max_seconds)
    return found


def _explained(program: AllocationProgram, found: Solution, max_seconds: float | None) -> Solution:
    """What was found within linear constraints, and why it is no more; `Infeasible` where it is proven that there is nothing."""
    found = noting(found, **unlimited_arms(program))
    if found.status is Status.INACCURATE:
        return found
    seconds = None if max_seconds is None else max(max_seconds - found.stats["seconds"], 0.1 * max_seconds)
    left = _solve_in_memory(elastic_program(program), None, _ROUGH, seconds, None, None, None, "linear constraints")
    if left.lower > 0:
        raise Infeasible(shortfall_text(left.lower))
    why = f"{found.stats['reason']}; whether the linear constraints leave any allocation could not be decided"
    return noting(found, reason=why)


def _solve_in_memory(
    program: AllocationProgram,
    asked: Method | None,
    tol: float,
    max_seconds: float | None,
    callback: Callback | None,
    start: Solution | None,
    settings: Settings | None,
    not_compiled: str,
) -> Solution:
    """`solve` for arms in memory, once its arguments are known to be right."""
    try:
        reduction = reduce(program)
    except SolverFailed as reason_why:
        return noting(undecided(program, tol, str(reason_why)), road="numpy")
    problem = reduction.canonical
    if nothing_left(reduction):
        return nothing_to_decide(reduction, tol, {"formula": "nothing to explore", "seconds": 0.0, "road": "numpy"})
    chosen = _choose(asked, problem)
    if max_seconds is None:
        say_if_long(chosen, problem.rank, problem)
    monitor = Monitor(problem, chosen.name, tol, max_seconds, callback)
    stats: dict[str, Any] = {"road": "numpy", "not_compiled": not_compiled}
    given: dict[str, Any] = {} if settings is None else {"settings": settings}
    reason = None
    try:
        # the large masters of active-set take more threads by themselves
        one = problem.features.size <= _SMALL or chosen.name == "active-set"
        with single_threaded() if one else threads_of_numpy():
            if start is not None and chosen.starts:
                given["start"] = _proven(reduction, start)
                stats["warm"] = given["start"] is not None
            stats.update(backend(chosen)(problem, monitor, **given))
            bounds = monitor.best
            if bounds is not None and np.isfinite(bounds.upper):
                bounds = tidy(problem, recomputed(problem, bounds), tol)
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
    if unsolved and asked is None and fits_balls(reduction):
        found = second_try(reduction, found, monitor)
    return found


_KEYWORDS = ("method", "tol", "max_seconds", "callback", "start", "settings", "noise_variance", "tie_tolerance")


def _by_machine_code(program: AllocationProgram, tol: float, road: str) -> Solution | str:
    """The answer of the compiled road, or why it is not taken."""
    if road == "numpy":
        return "the road is numpy"
    lack = does_not_fit(program)
    if lack is not None:  # of very many arms this must be known first: the next line makes an array of them
        return lack
    own_targets = not targets_are_arms(program)
    lack = lacks(program) if own_targets else None
    if lack is not None:
        return lack
    form = "targets" if own_targets else "arms"
    kernel = loaded_or_made(form) if road == "compiled" else ready(form)
    if kernel is None:
        why = why_no_machine_code()
        if road == "compiled":
            raise MethodUnavailable(f"road: there is no compiled one here: {why or 'numba does not work'}")
        return why or "no machine code yet: `allocopt precompile` or ao.precompile() makes it"
    return (answer_of_targets if own_targets else compiled_answer)(program, tol, kernel)


def _proven(reduction: Reduction, start: Solution) -> Bounds | None:
    """What the allocation and multipliers of a similar program prove for this one; None where that is nothing."""
    alpha = reduction.canonical_allocation(start.allocation)
    lam, mu = np.maximum(reduction.canonical_multipliers(start.multipliers), 0.0), start.constraint_multipliers
    alpha = np.where(np.isfinite(alpha), alpha, 0.0)  # arms that cost nothing there
    if not np.isfinite(lam).all():
        return None
    limits = reduction.canonical.limits
    if limits is None or mu is None or len(mu) != len(limits.room):
        mu = None
    bounds = evaluate(reduction.canonical, alpha, lam, mu)
    return bounds if np.isfinite(bounds.upper) else None


def _named(method: str, settings: Any, options: Mapping[str, Any]) -> tuple[Method | None, Settings | None]:
    """The method asked for (None for "auto") and its settings (None for the defaults), once both are known to be right."""
    if method == "auto":
        given = "settings" if settings is not None else next(iter(options), None)
        if given is not None:
            owners = [m.name for m in METHODS.values() if given in m.options]
            meant = f"; write method={owners[0]!r} with it" if owners else did_you_mean(given, _KEYWORDS)
            raise InvalidOption(f"{given}: method 'auto' takes no options of its own{meant}")
        return None, None
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOption(
            f"method: expected 'auto' or one of {', '.join(METHODS)}, got {method!r}{did_you_mean(method, METHODS)}"
        )
    return METHODS[method], checked_settings(METHODS[method], settings, options)


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


def _even_allocation(problem: Canonical) -> Bounds:
    """What a method that never reported anything leaves us with: every arm alike."""
    with np.errstate(divide="ignore"):
        alpha = 1.0 / problem.by_variable(np.einsum("ij,ij->i", problem.features, problem.features))
    alpha[np.isinf(alpha)] = 0.0  # tells nothing
    if problem.upper is not None:
        alpha = np.minimum(alpha, problem.upper)
    return evaluate(problem, alpha, np.ones(len(problem.targets)))


def solve_streamed(
    program: AllocationProgram, tol: float, max_seconds: float | None, callback: Callback | None, start: Solution | None,
    method: Method, settings: Settings | None,
) -> Solution:  # fmt: skip
    """`solve` for arms that are looked at block by block."""
    monitor = Monitor(None, "active-set", tol, max_seconds, callback)
    try:
        problem = StreamedProblem(program)
    except KeyboardInterrupt:
        raise Interrupted(None) from None
    stats: dict[str, Any] = {}
    reason = None

    def answer(why: str | None) -> Solution:
        best = monitor.best
        stats["seconds"] = monitor.seconds
        if best is None:
            raise SolverFailed(f"{why or 'the method stopped'} before any allocation was certified for all arms")
        return certified_over_all(problem, cast(BoundsOverAll, best), monitor.method, tol, why, stats)

    if max_seconds is None:
        say_if_long(method, problem.rank)
    if not problem.rank:
        monitor.record(problem.nothing_to_explore(), 0)
        return answer(None)
    try:
        known = None if start is None else problem.pair(*arms_in_use(start))
        if start is not None:
            stats["warm"] = known is not None
        with single_threaded():  # masters that are large enough take more; blocks are looked at by threads of our own
            stats.update(backend(method)(problem, monitor, settings, known))
    except OutOfTime:
        reason = f"max_seconds = {max_seconds:g} passed"
    except SolverFailed as failure:
        reason = str(failure)
    except KeyboardInterrupt:
        raise Interrupted(None if monitor.best is None else answer("interrupted")) from None
    return answer(reason)


@spelled
def regret_constant(
    arms: ArrayLike,
    theta: ArrayLike | None = None,
    noise_variance: ArrayLike = 1.0,
    *,
    tie_tolerance: float = TIE,
    client: Any = None,
    **how: Any,
) -> Solution:
    """c(A,θ): the constant of the best possible asymptotic regret, with its certificate.

    ``client`` is the Dask cluster that looks at arms in a Dask array; ``how`` is passed to `solve` (method, tol, max_seconds,
    callback, road and the method's options).

    Examples
    --------
    >>> import allocopt as ao
    >>> round(ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0]).value, 6)
    8.0
    """
    if theta is None:
        raise constant_without_theta(arms)
    if client is not None:
        with on_client(client):
            return regret_constant(arms, theta, noise_variance, tie_tolerance=tie_tolerance, **how)
    try:
        program = regret(LinearBandit(arms, theta, noise_variance, tie_tolerance))
    except KeyboardInterrupt:
        raise Interrupted(None) from None
    return solve(program, **how)


@spelled
def optimal_pulls(
    arms: ArrayLike, gaps: ArrayLike, n: float, *, constant: float = 1.0, client: Any = None, **how: Any
) -> Solution:
    """T_n(Δ) of Definition 9 (`def:opt`): how often to play each arm within n rounds (inf on zero-gap arms).

    Examples
    --------
    >>> import allocopt as ao
    >>> ao.optimal_pulls([[1, 0], [0, 1]], [0, 0.5], 1000).allocation.round(3)
    array([   inf, 84.268])
    """
    if client is not None:
        with on_client(client):
            return optimal_pulls(arms, gaps, n, constant=constant, **how)
    try:
        program = horizon(arms, gaps, n, constant=constant)
    except KeyboardInterrupt:
        raise Interrupted(None) from None
    return solve(program, **how)
