"""An instance in numbers: its gaps, and how well its arms can be told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, whitener
from allocopt.insight.hardness.optimum import Optimum
from allocopt.linear.span import spanning_coordinates

__all__ = ["COLLINEAR", "NEAR_TIE", "Geometry", "geometry"]

NEAR_TIE = 1e-3
"""Gaps below this share of the largest are called near ties: their constraints ask for 10⁶ times the precision."""

COLLINEAR = 1e-3
"""Sine of an angle below which two arms are called nearly collinear: what tells them apart is a millionth of H."""

_MOST_TIED = 100  # tied arms that are compared with the others; there may be thousands


@dataclass(frozen=True)
class Geometry:
    """The instance in numbers."""

    n_arms: int
    dim: int
    rank: int
    """Dimension of the span of the arms."""
    quotient_rank: int
    """r, what is left of it modulo the optimal arms: the dimensions to explore."""
    optimal_arms: int
    gap_min: float
    gap_median: float
    """Of the positive gaps."""
    gap_max: float
    near_ties: int
    """Arms with a positive gap below a thousandth of the largest."""
    condition: float
    """Of the matrix of arms, with its columns scaled to length 1."""
    least_sine: float
    """The smallest sine between different directions among the arms that matter (optimal, informative, confusing), in the
    coordinates in which the second moment of all arms is the identity; 1 if there is only one direction."""
    closest_arms: tuple[int, int] | None
    """The two arms with that sine."""


def geometry(at: Optimum) -> Geometry:
    """Gaps and directions of an instance whose optimum is known.

    Examples
    --------
    >>> from allocopt.insight.instances import counter_example
    >>> from allocopt.insight.hardness.optimum import optimum
    >>> found = geometry(optimum(counter_example(0.0001), 1e-8))
    >>> found.n_arms, found.near_ties, found.closest_arms
    (3, 1, (0, 2))
    """
    b, solution = at.bandit, at.solution
    positive = b.gaps[b.suboptimal_arms]
    condition, sine, pair = _directions(at.vectors, np.unique(np.concatenate(
        [b.optimal_arms[:_MOST_TIED], solution.support, solution.binding]
    )))  # fmt: skip
    near = int((positive < NEAR_TIE * b.gap_max).sum())
    return Geometry(
        b.n_arms, b.dim, b.rank, len(at.reduction.quotient.coordinates), len(b.optimal_arms), b.gap_min,
        float(np.median(positive)) if len(positive) else math.inf, b.gap_max, near, condition, sine, pair,
    )  # fmt: skip


def _directions(arms: Array, some: IntArray) -> tuple[float, float, tuple[int, int] | None]:
    """The condition number of all arms, and the smallest sine between different directions among some of them."""
    coordinates = list(spanning_coordinates(arms))
    rows = arms[:, coordinates]
    basis = whitener(Canonical(rows, rows, rows[:0]), np.ones(len(rows)))
    if basis is None:
        return float("inf"), 0.0, None
    stretch = np.linalg.svd(basis * np.linalg.norm(rows, axis=0)[:, None], compute_uv=False)
    white = rows[some] @ basis
    length = np.linalg.norm(white, axis=1)
    index, unit = some[length > 0], white[length > 0] / length[length > 0, None]
    best, pair = 1.0, None
    for i in range(len(unit) - 1):
        # the rest of each vector after projection: accurate for small angles, where 1 − cos² is not
        cosine = unit[i + 1 :] @ unit[i]
        sine = np.linalg.norm(unit[i + 1 :] - cosine[:, None] * unit[i], axis=1)
        sine[sine <= 1e-15 * len(coordinates)] = np.inf  # the same direction: duplicates and multiples
        j = int(np.argmin(sine))
        if sine[j] < best:
            best, pair = float(sine[j]), (int(index[i]), int(index[i + 1 + j]))
    return float(stretch[0] / stretch[-1]), best, pair
