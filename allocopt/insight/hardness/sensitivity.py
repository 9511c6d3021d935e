r"""How c(A,θ) changes with its data: derivatives by the envelope theorem, and whether they are the only ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array, frozen
from allocopt.certify.canonical import Bounds, whitener
from allocopt.insight.hardness.optimum import Optimum

__all__ = ["Sensitivity", "sensitivity"]

_ZERO_EIGENVALUE = 1e-9  # eigenvalue, of a matrix with unit diagonal, below which a direction changes nothing
_LEAST_CHANGE = 1e-6  # relative change of the gradient along such a direction that counts
_MOST_TIED = 2000  # arms at the price 1 up to which uniqueness is examined (one eigenvalue problem of this order)


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


def sensitivity(at: Optimum) -> Sensitivity:
    """Derivatives of c with respect to the gaps and to θ, and whether they are the only ones.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
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
        moves += [what] if (change > _LEAST_CHANGE * size).any() else []
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
    kernel: Array = scale[:, None] * directions[:, values <= _ZERO_EIGENVALUE]
    return kernel
