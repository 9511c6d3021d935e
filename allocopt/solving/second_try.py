"""A second try for small programs that missed the tolerance.

With a smaller tolerance: where numbers differ by many orders of magnitude a method may stop because of rounding that the certificate,
in balls, does not have. With α as the method left it: in doubles it is enlarged until it is feasible for sure, in balls by much less.
From exact rows in a better basis: nearly dependent rows make another program when they are rounded. With only
the upper bounds that matter: those that no optimal allocation reaches can be so large that they hide everything else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate, recomputed
from allocopt.certify.reduction import Reduction
from allocopt.certify.verdict import certified_solution, in_balls
from allocopt.model.solution import Solution, Status
from allocopt.solvers import interior_point
from allocopt.solvers.monitor import Monitor, OutOfTime
from allocopt.solvers.newton import within_limits

__all__ = ["second_try"]

_SHARPER = 0.01  # the second try aims at this part of the tolerance
_MOST_ROUNDS = 8  # each adds the upper bounds that the last answer exceeds
_EXCEEDED = 1e-9  # relatively, beyond which an upper bound counts as exceeded


def second_try(reduction: Reduction, first: Solution, monitor: Monitor) -> Solution:
    """The best of the first solution and those of the second tries, all certified alike."""
    best = first
    try:
        for candidates in _bounds_within_limits(reduction, monitor), _bounds_without(reduction, first, monitor):
            for bounds in candidates:
                stats = {**first.stats, "seconds": monitor.seconds, "second_try": True}
                stats.pop("reason", None)
                found = certified_solution(reduction, bounds, first.method, first.tol, None, stats)
                if found.gap < best.gap or (best.status is Status.FAILED and found.status is not Status.FAILED):
                    best = found
                if best.status in (Status.CERTIFIED, Status.CONDITIONAL):
                    return best
    except OutOfTime:
        pass
    return best


def _bounds_without(reduction: Reduction, first: Solution, monitor: Monitor) -> Iterator[Bounds]:
    """What pairs prove where there are no linear constraints."""
    if reduction.canonical.limits is None:
        for alpha, multipliers in _candidates(reduction, first, monitor):
            yield from _bounds_of(reduction.canonical, alpha, multipliers)


def _bounds_within_limits(reduction: Reduction, monitor: Monitor) -> Iterator[Bounds]:
    """Triples (α, λ, μ) within linear constraints, whose α is moved inside by as little as balls ask for.

    Where M is nearly singular, since an arm is hardly played, doubles ask for far more.
    """
    problem, program = reduction.canonical, reduction.program
    if problem.limits is None:
        return
    nothing = np.zeros(program.n_multipliers), None, np.zeros(len(problem.limits.room))

    def feasible(alpha: Array) -> bool:
        return bool(np.isfinite(in_balls(reduction, reduction.allocation(alpha), *nothing)[1]))

    for sharper in (_SHARPER, _SHARPER**2):
        try:
            with single_threaded():
                found = within_limits.mended(problem, monitor, sharper * monitor.tol, feasible)
        except SolverFailed:
            return
        if found is None:
            return
        alpha, multipliers, candidates = found
        for mu in candidates:
            bounds = evaluate(problem, alpha, multipliers, mu)
            yield dataclasses.replace(bounds, upper=np.inf)  # so that balls have the last word


def _bounds_of(problem: Canonical, alpha: Array, multipliers: Array) -> Iterator[Bounds]:
    """What a pair proves with α made feasible in doubles; then with α as it is, which `certified_solution` mends in balls."""
    bounds = evaluate(problem, alpha, multipliers)
    yield recomputed(problem, bounds) if np.isfinite(bounds.upper) else bounds
    if not problem.scalable:
        within = alpha if problem.upper is None else np.minimum(alpha, problem.upper)
        yield dataclasses.replace(bounds, alpha=within, upper=np.inf)


def _candidates(reduction: Reduction, first: Solution, monitor: Monitor) -> Iterator[tuple[Array, Array]]:
    """Pairs (α, λ): of the same problem, of its exact rows in a better basis, then with more and more of its upper bounds."""
    # loads python-flint, which most solves do without
    from allocopt.certify.exact_arithmetic.well_conditioned import well_conditioned

    problem = reduction.canonical
    sharper = _solved(problem, monitor)
    if sharper is not None:
        yield sharper
    alpha = reduction.canonical_allocation(first.allocation) if sharper is None else sharper[0]
    accurate = well_conditioned(reduction, alpha)
    better = None if accurate is None else _solved(accurate, monitor)
    if better is not None:
        yield better
    if problem.upper is None:
        return
    some = np.full(problem.n_variables, np.inf)
    for _ in range(_MOST_ROUNDS):
        part = dataclasses.replace(problem, upper=None if np.isinf(some).all() else some)
        found = _solved(part, monitor)
        if found is None:
            return
        over = (found[0] > problem.upper * (1.0 + _EXCEEDED)) & np.isinf(some)
        if not over.any():
            yield np.minimum(found[0], problem.upper), found[1]
            return
        some[over] = problem.upper[over]


def _solved(problem: Canonical, monitor: Monitor) -> tuple[Array, Array] | None:
    """(α, λ) by the interior point; None where it fails."""
    try:
        with single_threaded():
            result = interior_point.minimise(problem, _SHARPER * monitor.tol, monitor.tick)
    except SolverFailed:
        return None
    return result.alpha, result.multipliers
