"""Roles of arms at the optimum: informative ones are played for their information, confusing ones have tight constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.certify.canonical import whitener
from allocopt.insight.hardness.optimum import Optimum

__all__ = ["Confusing", "Informative", "confusing", "informative"]


@dataclass(frozen=True)
class Informative:
    """An arm of the support: it is played for its information, although it is known to be suboptimal."""

    arm: int
    gap: float
    allocation: float
    """α: it is played α·log n times."""
    regret_share: float
    """αΔ/c. Weighted by the multipliers of the confusing arms, this is also its share of the evidence against them."""
    information_share: float
    """α||x||²_{H^-1}/r, its leverage: these add up to 1 over the support (r is the dimension of the quotient)."""


@dataclass(frozen=True)
class Confusing:
    """An arm whose constraint is tight: α is no smaller because this arm could otherwise be the best one."""

    arm: int
    gap: float
    multiplier: float
    """λ; they add up to c."""
    share: float
    """λ/c."""


def informative(at: Optimum) -> tuple[Informative, ...]:
    """The arms of the support, the largest share of the regret first.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
    >>> [(e.arm, round(e.allocation, 6)) for e in informative(optimum(counter_example(0.01), 1e-8))]
    [(1, 8.0)]
    """
    bounds, solution, gaps = at.bounds, at.solution, at.bandit.gaps
    if bounds is None:
        return ()
    problem = at.reduction.canonical
    basis = whitener(problem, bounds.alpha)
    if basis is None:
        raise SolverFailed("the information matrix of the optimal allocation is singular in double precision")
    rows = problem.features @ basis
    leverage = np.zeros(at.bandit.n_arms)
    leverage[at.arms] = bounds.alpha * np.einsum("ij,ij->i", rows, rows) / problem.rank
    cost = gaps[solution.support] * solution.allocation[solution.support]
    order = solution.support[np.argsort(-cost, kind="stable")]
    return tuple(
        Informative(
            i, float(gaps[i]), float(solution.allocation[i]),
            float(gaps[i] * solution.allocation[i] / cost.sum()), float(leverage[i]),
        )
        for i in order.tolist()
    )  # fmt: skip


def confusing(at: Optimum) -> tuple[Confusing, ...]:
    """The arms whose constraints are tight, the largest multiplier first.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
    >>> [(e.arm, round(e.multiplier, 6)) for e in confusing(optimum(counter_example(0.01), 1e-8))]
    [(2, 8.0)]
    """
    lam, binding = at.solution.multipliers, at.solution.binding
    order = binding[np.argsort(-lam[binding], kind="stable")]
    total = float(lam.sum())
    return tuple(Confusing(j, float(at.bandit.gaps[j]), float(lam[j]), float(lam[j]) / total) for j in order.tolist())
