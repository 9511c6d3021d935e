"""c(A,θ) with one arm taken away: certified anew, beginning from the optimum with that arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.validation import IntArray
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.insight.hardness.optimum import Optimum
from allocopt.linear.assumptions import assuming
from allocopt.linear.span import spanning_coordinates
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.model.progress import Callback
from allocopt.model.solution import Solution, Status
from allocopt.model.status_text import caveat
from allocopt.solving.refine import resolved_bounds
from allocopt.solving.solve import solve

__all__ = ["Removal", "removal", "without"]


@dataclass(frozen=True)
class Removal:
    """c without one arm."""

    arm: int
    role: str
    """What the arm was: "informative" (in the support), "confusing" (its constraint is tight), both, or "optimal"."""
    lower: float
    upper: float
    """Certified bounds on c of the remaining arms."""
    change: float
    """``upper`` minus the value of c with all arms."""
    optimal_arms: tuple[int, ...]
    """The optimal arms of what remains, by their indices in the whole instance."""
    note: str
    """What else changed (another best arm, fewer dimensions, nothing left to learn), and what the bounds assume or lack."""

    @property
    def value(self) -> float:
        """c without the arm (the upper bound)."""
        return self.upper


def removal(at: Optimum, arm: int, callback: Callback | None = None) -> Removal:
    """c without one arm, certified; the solve begins from the optimum with it.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
    >>> round(removal(optimum(counter_example(0.01), 1e-8), 1).value, 6)
    200.0
    """
    bandit, solution = at.bandit, at.solution
    rest = np.delete(np.arange(bandit.n_arms), arm)
    roles = [name for name, arms in (("optimal", bandit.optimal_arms), ("informative", solution.support),
                                     ("confusing", solution.binding)) if arm in arms]  # fmt: skip
    role = " and ".join(roles) or "idle"
    kept = np.setdiff1d(bandit.optimal_arms, [arm])

    def result(lower: float, upper: float, optimal: IntArray, note: str = "") -> Removal:
        return Removal(arm, role, lower, upper, upper - solution.value, tuple(optimal.tolist()), note)

    if len(kept) and len(kept) == len(rest):
        return result(0.0, 0.0, kept, "every remaining arm is optimal: there is nothing to learn")
    if len(kept) == len(bandit.optimal_arms):
        bounds = _resolved(at, arm) if bandit._store is None else _resolved_by_block(at, arm)
        if bounds is not None:
            # the same arms are taken as optimal and as dependent as with the arm
            assumed = assuming(solution.assumptions)
            return result(bounds.lower, bounds.upper, kept, f"{Status.CONDITIONAL}: {assumed}" if assumed else "")
    smaller = without(bandit, arm)
    optimal = rest[smaller.optimal_arms]
    if not len(smaller.suboptimal_arms):
        return result(0.0, 0.0, optimal, "every remaining arm is optimal: there is nothing to learn")
    notes = []
    if not len(kept):
        notes.append("another instance: the best arm is gone, and every gap with it")
    if smaller.rank < bandit.rank:
        notes.append(f"the remaining arms span {smaller.rank} dimensions instead of {bandit.rank}")
    cold = solve(regret(smaller), tol=solution.tol, callback=callback)
    if caveat(cold):
        notes.append(caveat(cold))
    return result(cold.lower, cold.upper, optimal, "; ".join(notes))


def without(bandit: LinearBandit, arm: int) -> LinearBandit:
    """The bandit without one arm; the other optimal arms, if there are any, stay the optimal ones.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> without(counter_example(0.01), 1).n_arms
    2
    """
    rest = np.delete(np.arange(bandit.n_arms), arm)
    if not len(rest):
        raise InvalidInstance("arm: expected at least two arms, since nothing is left without the only one")
    kept = np.flatnonzero(np.isin(rest, bandit.optimal_arms))
    labels = None if bandit.labels is None else tuple(bandit.labels[i] for i in rest.tolist())
    return LinearBandit(
        bandit.arms_in_memory[rest], bandit.theta,
        bandit.noise_variance if bandit.variances is None else bandit.variances[rest], bandit.tie_tolerance,
        kept if len(kept) else None, labels,
    )  # fmt: skip


def _resolved(at: Optimum, arm: int) -> Bounds | None:
    """Certified bounds without a suboptimal arm, from the optimum with it; None where a fresh start is needed."""
    position = np.flatnonzero(at.arms == arm)
    full, known = at.reduction.canonical, at.bounds
    if not len(position) or known is None or full.ratios is None or len(at.arms) == 1:
        return None
    problem = Canonical(
        np.delete(full.features, position, 0), np.delete(full.targets, position, 0), full.base,
        ratios=np.delete(full.ratios, position), error=full.error, bound_error=full.bound_error,
    )  # fmt: skip
    if len(spanning_coordinates(problem.features)) < problem.rank:
        return None
    start = np.delete(known.alpha, position), np.delete(known.multipliers, position)
    return resolved_bounds(problem, *start, at.solution.tol)


def _resolved_by_block(at: Optimum, arm: int) -> Solution | None:
    """The same for very many arms, by looks at all of them: with a copy of the best arm in its place, which changes nothing."""
    bandit = at.bandit
    arms = at.vectors.copy()
    arms[arm] = bandit._best_row
    arms.flags.writeable = False  # so that the bandit shares it
    optimal = np.union1d(bandit.optimal_arms, [arm])
    rest = LinearBandit(arms, bandit.theta, bandit.noise_variance, bandit.tie_tolerance, optimal)
    program = regret(rest)
    if program._blocks is None:
        return None
    try:
        found = solve(program, tol=at.solution.tol, start=at.solution)
    except SolverFailed:
        return None
    same = len(found.coordinates) == len(at.reduction.quotient.coordinates)
    return found if same and found.status in (Status.CERTIFIED, Status.CONDITIONAL) else None
