r"""How c(A,θ) answers to its data: most confusing alternatives, derivatives, what optimism would pay.

Everything here starts from an `Optimum`: a certified pair (α, λ) of the regret program, in the quotient by the optimal arms,
where α(x*) = ∞ is exact. The alternatives are those of the lower bound's proof (Theorem 1, `thm:lower`), the
derivatives are the envelope theorem's.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.tolerances import BINDING, SUPPORT
from allocopt.base.validation import Array, IntArray, frozen
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.certificate import evaluate, settle
from allocopt.certify.monitor import Callback
from allocopt.certify.reduction import Reduction, reduce
from allocopt.certify.verdict import certified_solution
from allocopt.linear.modulo import Modulo
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import optimism, regret
from allocopt.model.solution import Solution, Status
from allocopt.model.standing import why_not
from allocopt.solving.solve import solve

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Alternative", "Optimum", "Sensitivity", "alternatives", "evidence", "optimistic", "optimum", "sensitivity"]

_SHARP = 1e-11  # gap to aim at: derivatives and alternatives have the accuracy of (α, λ), not that of the value
_NEARLY_TIGHT = 1e-2  # room of a constraint that might become tight when idle arms are left out
_FLAT = 1e-9  # eigenvalue, of a matrix with unit diagonal, below which a direction changes nothing
_MOVES = 1e-6  # relative change of the gradient along such a direction that counts
_MOST_TIED = 2000  # arms at the price 1 up to which uniqueness is examined (one eigenvalue problem of this order)


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


@dataclass(frozen=True, eq=False)
class Alternative:
    r"""The parameter that is hardest to tell from θ among those under which ``arm`` is as good as the best arm.

    It minimises ½||θ − θ'||²_{H(α)}/σ² subject to ⟨arm − x*, θ'⟩ >= 0, where H has infinite weight on the optimal arms, so that
    their means stay as they are. A little further along ``shift``, ``arm`` is better than all arms that were optimal.
    """

    arm: int
    theta: Array
    """θ'."""
    shift: Array
    """θ' − θ. Where the arms do not span R^d it is one of several with the same means."""
    evidence: float
    """½||θ − θ'||²_{H(α)}/σ²: 1 for arms whose constraint is tight, more for the others."""
    contributions: Array
    """What each arm of the support adds to ``evidence``: α_i⟨x_i, θ' − θ⟩²/(2σ²), in the order of ``solution.support``."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    r"""First-order effects on c: ∂c/∂Δ_j = α_j − 2λ_j/Δ_j and ∇_θ c = Σ_j ∂c/∂Δ_j (x* − x_j)."""

    gap_derivatives: Array
    """∂c/∂Δ, with the set of optimal arms held fixed; nan on those arms, where c jumps."""
    gradient: Array | None
    """∇_θ c; None where different arms tie for the best, since c is not continuous there."""
    unique: bool | None
    """Whether the optimal (α, λ) leave the gradient no choice, to rounding; None if there is none or it was not examined."""
    gaps_unique: bool | None
    """Likewise for ``gap_derivatives``. Duplicated arms are played interchangeably: the gradient is unique, these are not."""
    note: str
    """What holds instead, where a derivative is missing or not unique; else empty."""


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
    bounds = _tidied(problem, evaluate(
        problem, reduction.canonical_allocation(found.allocation), reduction.canonical_multipliers(found.multipliers)
    ), tol)  # fmt: skip
    stats = {name: value for name, value in found.stats.items() if name not in ("reason", "rounding")}
    solution = certified_solution(reduction, bounds, found.method, tol, None, stats)
    return Optimum(bandit, solution, reduction, _in_scale(bounds, 0.5 * (solution.lower + solution.upper)))


def _in_scale(bounds: Bounds, value: float) -> Bounds:
    """With Σα and Σλ as they are at the optimum, namely its value: sensitivities are estimates, without margins."""
    alpha, lam = bounds.alpha, bounds.multipliers
    if not np.isfinite(value) or not alpha.any() or not lam.any():
        return bounds
    return dataclasses.replace(bounds, alpha=alpha * (value / alpha.sum()), multipliers=lam * (value / lam.sum()))


def _tidied(problem: Canonical, bounds: Bounds, tol: float) -> Bounds:
    """Without the dust that an interior point leaves on idle arms, as long as the certificate stays within ``tol``."""
    alpha, lam = bounds.alpha, bounds.multipliers
    idle = (alpha < SUPPORT * alpha.max()) & (bounds.prices < 1.0 - SUPPORT)
    slack = (lam < SUPPORT * lam.max()) & (bounds.constraints < (1.0 - SUPPORT) * bounds.constraints.max())
    clean = evaluate(problem, np.where(idle, 0.0, alpha), np.where(slack, 0.0, lam))
    return _undusted(problem, clean if clean.gap <= max(bounds.gap, tol) else bounds)


def _undusted(problem: Canonical, bounds: Bounds) -> Bounds:
    """Without dust on arms whose price is 1 as well: those in use are solved for alone, if that is as sharp for all arms.

    Such arms are many where arms depend on each other, as the paths of a graph do.
    """
    from allocopt.solvers import interior_point

    alpha, lam, g = bounds.alpha, bounds.multipliers, bounds.constraints
    used = alpha >= SUPPORT * alpha.max()
    if (used | (alpha == 0)).all():
        return bounds
    asked = (lam > 0) | (g >= (1.0 - _NEARLY_TIGHT) * g.max())
    part = Canonical(problem.features[used], problem.targets[asked], problem.base)
    if whitener(part, alpha[used]) is None:
        return bounds
    try:
        with single_threaded():
            found = interior_point.minimise(part, _SHARP, lambda: None)
    except SolverFailed:
        return bounds
    less, weights = np.zeros(len(alpha)), np.zeros(len(lam))
    less[used], weights[asked] = found.alpha, found.multipliers
    clean = evaluate(problem, less, weights)
    return clean if clean.gap <= max(bounds.gap, _SHARP) else bounds


def evidence(at: Optimum) -> Array:
    """½||θ − θ'_x||²_{H(α)}/σ² for the most confusing θ'_x of every arm; inf on arms that no such θ' makes better.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> evidence(optimum(counter_example(0.01), 1e-8)).round(6)
    array([inf,  4.,  1.])
    """
    result = np.full(at.bandit.n_arms, np.inf)
    if at.bounds is not None:
        g = at.bounds.constraints  # of α before it was scaled to feasibility, by the largest of them
        result[at.arms] = g.max() / g
    return frozen(result)


def alternatives(at: Optimum, arms: Iterable[int]) -> tuple[Alternative, ...]:
    """The most confusing alternatives that make these arms as good as the best one.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> at = optimum(counter_example(0.01), 1e-8)
    >>> [a.theta.round(6).tolist() for a in alternatives(at, [1, 2])]
    [[1.0, 1.0], [1.0, 0.5]]
    """
    wanted = [int(j) for j in arms]
    bandit, quotient, support = at.bandit, at.reduction.quotient, at.solution.support
    away = sorted(set(wanted) - set(at.arms.tolist()))
    if away:
        raise InvalidInstance(
            f"arm: expected a suboptimal arm that some parameter with the same optimal means makes better, but arm {away[0]} "
            + ("is optimal" if bandit.gaps[away[0]] == 0 else "is a combination of optimal arms")
        )
    if not wanted:
        return ()
    columns, coordinates = list(quotient.pivot_columns), np.array(quotient.coordinates, dtype=np.int64)
    pivots = at.vectors[list(quotient.pivot_arms)].reshape(len(columns), bandit.dim)
    quotient_map = Modulo.of(pivots, columns, coordinates)

    def modulo_optimal(rows: IntArray) -> Array:
        return quotient_map(at.vectors[rows])

    played, asked = modulo_optimal(support), modulo_optimal(np.array(wanted))
    alpha = at.solution.allocation[support]
    basis = whitener(Canonical(played, asked, played[:0]), alpha)
    if basis is None:
        raise SolverFailed("the information matrix of the optimal allocation is singular in double precision")
    found = []
    for j, row in zip(wanted, asked, strict=True):
        white = row @ basis
        gap = bandit.gaps[j]
        direction = basis @ white * (gap / float(white @ white))
        shift = np.zeros(bandit.dim)
        shift[coordinates] = direction
        if columns:  # the means of the optimal arms stay as they are
            shift[columns] = -np.linalg.solve(pivots[:, columns], pivots[:, coordinates] @ direction)
        contributions = alpha * (played @ direction) ** 2 / (2.0 * bandit.noise_variance)
        found.append(
            Alternative(
                j, frozen(bandit.theta + shift), frozen(shift), float(contributions.sum()), frozen(contributions)
            )
        )
    return tuple(found)


def sensitivity(at: Optimum) -> Sensitivity:
    """Derivatives of c with respect to the gaps and to θ, and whether they are the only ones.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> s = sensitivity(optimum(counter_example(0.01), 1e-8))
    >>> s.gap_derivatives.round(6), s.gradient.round(6), s.unique
    (array([   nan,     8., -1600.]), array([-8., 24.]), True)
    """
    bandit, solution = at.bandit, at.solution
    suboptimal = bandit.suboptimal_arms
    derivatives = np.full(bandit.n_arms, np.nan)
    derivatives[suboptimal] = (
        solution.allocation[suboptimal] - 2.0 * solution.multipliers[suboptimal] / bandit.gaps[suboptimal]
    )
    best = at.vectors[bandit.optimal_arms[0]]
    unique, gaps_unique, note = (True, True, "") if at.bounds is None else _uniqueness(at, at.bounds, best)
    if not (at.vectors[bandit.optimal_arms] == best).all():
        tie = (
            f"{len(bandit.optimal_arms)} different arms tie for the best: c jumps when θ breaks the tie, so it has no "
            "gradient; the derivatives with respect to the gaps hold as long as these arms stay tied"
        )
        aside = "" if gaps_unique else "; they are one-sided, since the optimum is not unique"
        return Sensitivity(frozen(derivatives), None, None, gaps_unique, tie + aside)
    moving = suboptimal[derivatives[suboptimal] != 0]
    gradient = derivatives[moving] @ (best - at.vectors[moving])
    return Sensitivity(frozen(derivatives), frozen(gradient), unique, gaps_unique, note)


def _uniqueness(at: Optimum, bounds: Bounds, best: Array) -> tuple[bool | None, bool | None, str]:
    """Whether every optimal (α, λ) gives the same gradient, and the same derivatives with respect to each gap.

    Optimal α differ by directions δ with M(δ) M^-1 b_j = 0 for all λ_j > 0: the kernel of the Lagrangian's Hessian
    W_il = K_il Σ_j λ_j T_ji T_jl over the arms of price 1. Optimal λ differ by directions with Σ_j δ_j T_ji² = 0 on the support.
    """
    problem, gaps = at.reduction.canonical, at.bandit.gaps[at.arms]
    g = bounds.constraints / bounds.constraints.max()
    entering = np.flatnonzero((bounds.alpha > 0) | (bounds.prices >= 1.0 - BINDING))
    tight = np.flatnonzero((bounds.multipliers > 0) | (g >= 1.0 - BINDING))
    basis = whitener(problem, bounds.alpha)
    if basis is None or max(len(entering), len(tight)) > _MOST_TIED:
        singular = "the information matrix is numerically singular"
        reason = singular if basis is None else f"over {_MOST_TIED} arms are at the optimum's price"
        return None, None, f"whether the derivatives are unique was not examined: {reason}"
    a, b = problem.features[entering] @ basis, problem.targets[tight] @ basis
    products = b @ a.T
    hessian = (a @ a.T) * (products.T @ (bounds.multipliers[tight, None] * products))
    squares = products[:, bounds.alpha[entering] > 0] ** 2
    several, moves = [], []
    for what, gram, arms in (("allocation", hessian, entering), ("multipliers", squares @ squares.T, tight)):
        kernel = _kernel(gram)
        effects = (best - at.vectors[at.arms[arms]]) / gaps[arms, None]
        change = np.linalg.norm(kernel.T @ effects, axis=1)
        size = np.abs(kernel).T @ np.linalg.norm(effects, axis=1)
        several += [what] if kernel.shape[1] else []
        moves += [what] if (change > _MOVES * size).any() else []
    if moves:
        named = f"the optimal {moves[0]} {'is' if moves[0] == 'allocation' else 'are'}"
        return False, False, (
            f"{named} not unique: c has one-sided derivatives only, and those given belong to the {moves[0]} that "
            f"{'was' if moves[0] == 'allocation' else 'were'} found"
        )  # fmt: skip
    if several:
        return True, False, (
            f"the optimal {several[0]} can be chosen in several ways that agree on the gradient; the derivatives with "
            "respect to single gaps are one-sided"
        )  # fmt: skip
    return True, True, ""


def _kernel(gram: Array) -> Array:
    """Directions, as columns, that a positive semidefinite matrix maps to nothing, whatever the scales of its rows."""
    scale = 1.0 / np.sqrt(gram.diagonal())
    values, directions = np.linalg.eigh(gram * scale * scale[:, None])
    kernel: Array = scale[:, None] * directions[:, values <= _FLAT]
    return kernel


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
    if at.bounds is not None and (at.solution.allocation <= program.upper).all():
        reduction = reduce(program)
        bounds = settle(reduction.canonical, evaluate(reduction.canonical, at.bounds.alpha, at.bounds.multipliers))
        if bounds.gap <= tol:
            return certified_solution(reduction, bounds, at.solution.method, tol, None, {})
    return solve(program, tol=tol)
