"""The certified optimum of the regret program that every part of the hardness report starts from.

It is a pair (α, λ) in the quotient by the optimal arms, where α(x*) = ∞ is exact, as sharp as doubles allow.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import evaluate, recomputed, tidy
from allocopt.certify.reduction import Reduction, reduce
from allocopt.certify.verdict import certified_solution
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import optimism, regret
from allocopt.model.progress import Callback
from allocopt.model.solution import Solution, Status
from allocopt.model.status_text import why_not
from allocopt.solving.refine import refined_pair
from allocopt.solving.solve import solve

__all__ = ["Optimum", "optimistic", "optimum"]

_SHARP = 1e-11  # gap to aim at: derivatives and alternatives have the accuracy of (α, λ), not that of the value
_NEARLY_TIGHT = 1e-2  # room of a constraint that might become tight when idle arms are left out


@dataclass(frozen=True, eq=False)
class Optimum:
    """A certified optimum of the regret program, with the canonical problem that it was certified in."""

    bandit: LinearBandit
    solution: Solution
    reduction: Reduction
    bounds: Bounds | None
    """None where there is nothing to explore (c = 0)."""

    @property
    def vectors(self) -> Array:
        """All arms, in memory and in double precision."""
        return self.reduction.program.features

    @property
    def arms(self) -> IntArray:
        """The arm of each canonical feature, which is also that of each canonical target."""
        return self.reduction.variables


def optimum(bandit: LinearBandit, tol: float, callback: Callback | None = None) -> Optimum:
    """Solve the regret program as sharply as doubles allow, and judge the answer by ``tol``.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> optimum(counter_example(0.01), 1e-8).solution.status.name
    'CERTIFIED'
    """
    program = regret(bandit)
    found = solve(program, tol=min(tol, _SHARP), callback=callback)
    if found.status is Status.FAILED:
        raise SolverFailed(f"the regret program of this bandit could not be solved: {why_not(found)}")
    reduction = reduce(program)
    if not len(reduction.targets):
        return Optimum(bandit, dataclasses.replace(found, tol=tol), reduction, None)
    problem = reduction.canonical
    bounds = evaluate(
        problem, reduction.canonical_allocation(found.allocation), reduction.canonical_multipliers(found.multipliers)
    )
    bounds = _without_traces(problem, tidy(problem, bounds, tol))
    stats = {name: value for name, value in found.stats.items() if name not in ("reason", "rounding")}
    solution = certified_solution(reduction, bounds, found.method, tol, None, stats)
    return Optimum(bandit, solution, reduction, _in_scale(bounds, 0.5 * (solution.lower + solution.upper)))


def _in_scale(bounds: Bounds, value: float) -> Bounds:
    """With Σα and Σλ as they are at the optimum, namely its value: sensitivities are estimates, without margins."""
    alpha, lam = bounds.alpha, bounds.multipliers
    if not np.isfinite(value) or not alpha.any() or not lam.any():
        return bounds
    return dataclasses.replace(bounds, alpha=alpha * (value / alpha.sum()), multipliers=lam * (value / lam.sum()))


def _without_traces(problem: Canonical, bounds: Bounds) -> Bounds:
    """Without the traces that an interior point leaves on arms whose price is 1, which `tidy` has to keep.

    The arms in use are solved for alone, and that is taken if it is as sharp for all arms. Such traces are many where arms
    depend on each other, as the paths of a graph do.
    """
    alpha, lam, g = bounds.alpha, bounds.multipliers, bounds.constraints
    used = alpha >= SUPPORT * alpha.max()
    if (used | (alpha == 0)).all():
        return bounds
    asked = (lam > 0) | (g >= (1.0 - _NEARLY_TIGHT) * g.max())
    part = Canonical(problem.features[used], problem.targets[asked], problem.base)
    if whitener(part, alpha[used]) is None:
        return bounds
    found = refined_pair(part, _SHARP)
    if found is None:
        return bounds
    less, weights = np.zeros(len(alpha)), np.zeros(len(lam))
    less[used], weights[asked] = found
    clean = evaluate(problem, less, weights)
    return clean if clean.gap <= max(bounds.gap, _SHARP) else bounds


def optimistic(at: Optimum, width: float) -> Solution:
    """The certified solution of the optimism program; where its bounds cost nothing, that of the optimum itself.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> round(optimistic(optimum(counter_example(0.01), 1e-8), 1.0).value, 6)
    104.0
    """
    program = optimism(at.bandit, width)
    tol = at.solution.tol
    if program._blocks is not None:  # very many arms: a look at all of them costs less than arrays of them
        return solve(program, tol=tol, start=at.solution)
    if at.bounds is not None and (at.solution.allocation <= program.upper).all():
        reduction = reduce(program)
        bounds = recomputed(reduction.canonical, evaluate(reduction.canonical, at.bounds.alpha, at.bounds.multipliers))
        if bounds.gap <= tol:
            return certified_solution(reduction, bounds, at.solution.method, tol, None, {})
    return solve(program, tol=tol)
