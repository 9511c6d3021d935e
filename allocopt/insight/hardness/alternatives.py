r"""Most confusing alternatives: the parameters that are hardest to tell from θ and have another best arm.

They are those of the lower bound's proof (Theorem 1, `thm:lower`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.validation import Array, IntArray, frozen
from allocopt.certify.canonical import Canonical, whitener
from allocopt.insight.hardness.optimum import Optimum
from allocopt.linear.modulo import Modulo

__all__ = ["Alternative", "alternatives", "evidence"]


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


def evidence(at: Optimum) -> Array:
    """½||θ − θ'_x||²_{H(α)}/σ² for the most confusing θ'_x of every arm; inf on arms that no such θ' makes better.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
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
    >>> from allocopt.insight.hardness.optimum import optimum
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
    precision = alpha / bandit.variance_of_each[support]
    basis = whitener(Canonical(played, asked, played[:0]), alpha if bandit.variances is None else precision)
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
        contributions = alpha * (played @ direction) ** 2 / (2.0 * bandit.variance_of_each[support])
        found.append(
            Alternative(
                j, frozen(bandit.theta + shift), frozen(shift), float(contributions.sum()), frozen(contributions)
            )
        )
    return tuple(found)
