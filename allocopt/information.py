"""||t||² in the inverse of an information matrix G, also where G is singular or some arms are played without end.

G is always given by rows r_i with G = Σ r_i r_iᵀ (an arm times the root of its count): forming G would square the
condition number. A direction outside the range of G has the norm ∞, never the finite one of a pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocopt.certify.canonical import Canonical, whitener
from allocopt.certify.reduction import divide_out, free_pivots, spanning_coordinates
from allocopt.errors import InvalidInstance
from allocopt.tolerances import RANK
from allocopt.validation import Array, IntArray, matrix

__all__ = ["Directions", "gram_rows", "squared_norms", "whitening"]

_OUTSIDE = 1e3 * RANK  # relative residual beyond which a direction is not in the span of the rows
_SYMMETRIC = 1e-10  # relative asymmetry and negative eigenvalues that a Gram matrix summed in doubles may have


def squared_norms(rows: Array, targets: Array) -> Array:
    """||t||²_{(rowsᵀ rows)^-1} of every row of ``targets``, ∞ outside the span of ``rows``.

    Examples
    --------
    >>> squared_norms(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    array([0.25,  inf, 0.  ])
    """
    norms = np.zeros(len(targets))
    asked = np.flatnonzero(targets.any(axis=1))
    white, local = whitening(rows)
    outside = _outside(rows, targets[asked], list(local))
    norms[asked[outside]] = np.inf
    images = white(targets[asked[~outside]])
    norms[asked[~outside]] = np.einsum("ij,ij->i", images, images)
    return norms


def whitening(rows: Array) -> tuple[Callable[[Array], Array], tuple[int, ...]]:
    """A linear map under which ||t||²_{(rowsᵀ rows)^-1} is the plain length, for t in the span of ``rows``.

    With the coordinates that it looks at: they determine the others on the span.
    """
    rows = rows[rows.any(axis=1)]
    local = spanning_coordinates(rows) if len(rows) else ()
    columns = list(local)
    small = np.ascontiguousarray(rows[:, columns])
    basis = whitener(Canonical(small, small, small[:0]), np.ones(len(small))) if columns else np.zeros((0, 0))
    if basis is None:
        raise InvalidInstance("pulls: the information matrix is singular in double precision; use other units")

    def white(targets: Array) -> Array:
        images: Array = targets[:, columns] @ basis
        return images

    return white, local


def _outside(rows: Array, targets: Array, local: list[int]) -> NDArray[np.bool_]:
    """Which targets are not combinations of the rows: the coordinates in ``local`` determine the others on their span."""
    dropped = np.setdiff1d(np.arange(rows.shape[1]), local)
    if not len(dropped):
        return np.zeros(len(targets), dtype=bool)
    rows = rows[rows.any(axis=1)]
    normal = rows / np.abs(rows).max(axis=1, keepdims=True)
    rule = np.linalg.lstsq(normal[:, local], normal[:, dropped], rcond=None)[0]
    residual = np.abs(targets[:, dropped] - targets[:, local] @ rule)
    size = np.abs(targets[:, dropped]) + np.abs(targets[:, local]) @ np.abs(rule)
    outside: NDArray[np.bool_] = (residual > _OUTSIDE * size).any(axis=1)
    return outside


def gram_rows(gram: Any, dim: int) -> Array:
    """Rows r with Σ r rᵀ equal to a symmetric positive semidefinite matrix, which is checked to be one."""
    g = matrix("gram", gram, InvalidInstance)
    if g.shape != (dim, dim):
        raise InvalidInstance(
            f"gram: expected shape ({dim}, {dim}), as the directions have {dim} columns, got {g.shape}"
        )
    scale = np.sqrt(np.abs(np.diag(g)))
    scale[scale == 0] = 1.0
    balanced = g / scale / scale[:, None]
    if np.abs(balanced - balanced.T).max() > _SYMMETRIC:
        raise InvalidInstance("gram: expected a symmetric matrix, got one that differs from its transpose")
    values, axes = np.linalg.eigh((balanced + balanced.T) / 2)
    if values[0] < -_SYMMETRIC * max(values[-1], 1.0):
        raise InvalidInstance(
            f"gram: expected a positive semidefinite matrix, but after scaling it has the eigenvalue {values[0]:.3g}"
        )
    kept = values > RANK * values[-1]
    rows: Array = np.sqrt(values[kept])[:, None] * axes[:, kept].T * scale
    return rows


@dataclass(frozen=True, eq=False)
class Directions:
    """Arms, targets and the free arms: everything that norms of targets need, for any counts of the arms.

    ``quotient_*`` are modulo the span of the free arms: norms there are those in which free arms are played without end.
    """

    arms: Array
    targets: Array
    quotient_arms: Array
    quotient_targets: Array

    @classmethod
    def of(cls, arms: Array, targets: Array, free: IntArray) -> Directions:
        """Divide the free arms out, exactly as the solver does."""
        rows, columns = free_pivots(arms[free]) if len(free) else ([], [])
        pivots = arms[free[rows]]
        return cls(arms, targets, divide_out(arms, pivots, columns), divide_out(targets, pivots, columns))

    def norms(self, counts: Array) -> Array:
        """||t||²_{G^-1} with G = Σ counts · x xᵀ."""
        return _weighted(self.arms, self.targets, counts)

    def quotient_norms(self, counts: Array) -> Array:
        """The same in the limit of endless plays of the free arms; never larger."""
        return _weighted(self.quotient_arms, self.quotient_targets, counts)


def _weighted(arms: Array, targets: Array, counts: Array) -> Array:
    if not arms.shape[1]:  # the free arms span everything
        return np.zeros(len(targets))
    used = np.flatnonzero(counts > 0)
    return squared_norms(arms[used] * np.sqrt(counts[used])[:, None], targets)
