"""c(A,θ) with one arm taken away: certified anew, from the arms that mattered with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import evaluate
from allocopt.certify.monitor import Callback
from allocopt.insight.hardness.sensitivity import Optimum
from allocopt.linear.assumptions import assuming
from allocopt.linear.span import spanning_coordinates
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.model.solution import Status
from allocopt.model.standing import caveat
from allocopt.solving.solve import solve

__all__ = ["Removal", "removal", "without"]

_NEAR = 4  # times r arms and constraints, besides those in use, that the search starts from
_PASSES = 50  # over all arms, before a search from there gives up its head start


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
    """c without one arm, certified; the search starts from the arms that matter with it.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.sensitivity import optimum
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
        bounds = _resolved(at, arm)
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
        bandit.arms_in_memory[rest], bandit.theta, bandit.noise_variance, bandit.tie_tolerance,
        kept if len(kept) else None, labels,  # type: ignore[arg-type]
    )  # fmt: skip


def _resolved(at: Optimum, arm: int) -> Bounds | None:
    """Certified bounds without a suboptimal arm, from the sets that matter with it; None where a fresh start is needed."""
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
    important = _important(at, known)
    important = important[important != position]
    return _grown(problem, important - (important > position), at.solution.tol)


def _grown(problem: Canonical, inside: IntArray, tol: float) -> Bounds | None:
    """Certified bounds from a program over some arms, grown by what the others lack; None where that leads nowhere.

    An arm brings its constraint along; and since none is ever dropped, the loop ends.
    """
    from allocopt.solvers import interior_point

    ratios = problem.ratios
    assert ratios is not None
    for _ in range(_PASSES):
        part = Canonical(
            problem.features[inside], problem.targets[inside], problem.base, None, problem.offset, ratios[inside]
        )
        try:
            with single_threaded():
                found = interior_point.minimise(part, tol, lambda: None)
        except SolverFailed:
            return None
        alpha, lam = np.zeros(len(problem.features)), np.zeros(len(problem.targets))
        alpha[inside], lam[inside] = found.alpha, found.multipliers
        missing = _missing(problem, ratios, alpha, lam, inside, 0.1 * tol)
        if missing is None:
            return None
        if not len(missing):
            bounds = evaluate(problem, alpha, lam)
            return bounds if bounds.gap <= tol else None
        inside = np.union1d(inside, missing)
    return None


def _missing(
    problem: Canonical, ratios: Array, alpha: Array, lam: Array, inside: IntArray, slack: float
) -> IntArray | None:
    """The arms outside that are worth more than those inside, or whose constraints are violated more; the worst first."""
    basis = whitener(problem, alpha)
    if basis is None:
        return None
    white = problem.features @ basis
    g = np.einsum("ij,ij->i", white, white) * ratios**2
    on = np.flatnonzero(lam > 0)
    images = white @ (white[on] * (ratios[on] * np.sqrt(lam[on]))[:, None]).T
    prices = np.einsum("ij,ij->i", images, images)
    found = []
    for values in (prices, g):
        above = np.setdiff1d(np.flatnonzero(values > values[inside].max() * (1.0 + slack)), inside)
        found.append(above[np.argsort(-values[above])][: 2 * problem.rank])
    return np.union1d(*found)


def _important(at: Optimum, known: Bounds) -> IntArray:
    """What is in use at the optimum, and what would come into use first (positions in ``at.arms``)."""
    used = np.flatnonzero((known.alpha > 0) | (known.multipliers > 0))
    count = min(_NEAR * at.reduction.canonical.rank, len(at.arms))
    first = [np.argpartition(-values, count - 1)[:count] for values in (known.prices, known.constraints)]
    return np.union1d(used, np.concatenate(first))
