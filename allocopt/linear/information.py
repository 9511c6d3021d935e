"""||t||² in the inverse of an information matrix G, also where G is singular or some arms are played without end.

G is given by arms and how often each was played: forming G would square the condition number. A direction outside the range
of G has the norm ∞, never the finite one of a pseudo-inverse; whether it is outside is decided by the package's one rule for
that (`linear.span`): exactly, or up to the rounding of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.validation import Array, IntArray, matrix
from allocopt.linear import dense
from allocopt.linear.assumptions import ROUNDING_LEVEL
from allocopt.linear.span import Span, column_units, free_span, outside_span, span_of

__all__ = ["Directions", "gram_norms", "squared_norms", "whitening"]

_SYMMETRIC = 1e-10  # relative asymmetry and negative eigenvalues that a Gram matrix summed in doubles may have


def squared_norms(arms: Array, counts: Array, targets: Array) -> Array:
    """||t||²_{G^-1} of every row of ``targets``, G = Σ counts · x xᵀ over the rows x of ``arms``; ∞ outside its range.

    Examples
    --------
    >>> arms = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> squared_norms(arms, np.array([1.0, 0.0]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    array([0.25,  inf, 0.  ])
    """
    norms = np.zeros(len(targets))
    asked = np.flatnonzero(targets.any(axis=1))
    white, outside = whitening(arms, counts)
    far = outside(targets[asked])
    norms[asked[far]] = np.inf
    images = white(targets[asked[~far]])
    norms[asked[~far]] = np.einsum("ij,ij->i", images, images)
    return norms


def whitening(arms: Array, counts: Array) -> tuple[Callable[[Array], Array], Callable[[Array], NDArray[np.bool_]]]:
    """A linear map under which ||t||²_{G^-1} is the plain length for t in the range of G = Σ counts · x xᵀ.

    With it, which rows are outside that range.
    """
    used = np.flatnonzero((counts > 0) & arms.any(axis=1))
    rows = arms[used]
    units = column_units(rows) if len(rows) else np.ones(arms.shape[1])
    span = _span(rows * units)
    columns = list(span.columns)
    small = (rows * units)[:, columns] * np.sqrt(counts[used])[:, None]
    regular, basis = dense.whitener(small.T, np.ones(len(small)), None) if columns else (True, np.zeros((0, 0)))
    if not regular:
        raise InvalidInstance("pulls: the information matrix is singular in double precision; use other units")

    def white(targets: Array) -> Array:
        images: Array = (targets * units)[:, columns] @ basis
        return images

    def outside(targets: Array) -> NDArray[np.bool_]:
        return _outside(span, targets * units)

    return white, outside


def _span(rows: Array) -> Span:
    """What rows span, their columns in `column_units`."""
    everything = np.arange(len(rows))
    try:
        return span_of(rows, everything, free_span(rows, everything[:0]), rows)
    except SolverFailed as error:
        raise InvalidInstance(f"arms: {error}") from None


def _outside(span: Span, targets: Array) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = outside_span(span, targets) > float(ROUNDING_LEVEL)
    return result


def gram_norms(gram: Any, targets: Array) -> Array:
    """||t||²_{G^-1} for a symmetric positive semidefinite matrix G, which is checked to be one; ∞ outside its range.

    Its rows span its range, and t_P G_PP^-1 t_P is the norm for any coordinates P that determine the others there.
    """
    g = matrix("gram", gram, InvalidInstance)
    dim = targets.shape[1]
    if g.shape != (dim, dim):
        raise InvalidInstance(
            f"gram: expected shape ({dim}, {dim}), as the directions have {dim} columns, got {g.shape}"
        )
    units = column_units(np.sqrt(np.abs(np.diag(g)))[None])
    balanced = g * units * units[:, None]
    size = np.sqrt(np.abs(np.diag(balanced)))
    size[size == 0] = 1.0
    scaled = balanced / size / size[:, None]
    if np.abs(scaled - scaled.T).max() > _SYMMETRIC:
        raise InvalidInstance("gram: expected a symmetric matrix, got one that differs from its transpose")
    values = np.linalg.eigvalsh((scaled + scaled.T) / 2)
    if values[0] < -_SYMMETRIC * max(values[-1], 1.0):
        raise InvalidInstance(
            f"gram: expected a positive semidefinite matrix, but after scaling it has the eigenvalue {values[0]:.3g}"
        )
    span = _span(balanced[balanced.any(axis=1)])
    own = targets * units
    norms = np.zeros(len(targets))
    asked = np.flatnonzero(targets.any(axis=1))
    far = _outside(span, own[asked])
    norms[asked[far]] = np.inf
    columns = list(span.columns)
    if columns and not far.all():
        block = scaled[np.ix_(columns, columns)]
        factor, failed = dpotrf((block + block.T) / 2, lower=1, clean=1)
        if failed:
            raise InvalidInstance("gram: the matrix is singular in double precision; use other units")
        images = np.linalg.solve(factor, (own[asked[~far]][:, columns] / size[columns]).T)
        norms[asked[~far]] = np.einsum("ij,ij->j", images, images)
    return norms


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
        units = column_units(arms, targets)
        try:
            modulo = free_span(arms * units, free).modulo
        except SolverFailed as error:
            raise InvalidInstance(f"arms: {error}") from None

        def quotient(rows: Array) -> Array:
            image, terms = modulo.with_terms(rows)  # what may be rounding decides no rank
            return np.where(modulo.noise(image, terms), 0.0, image)

        return cls(arms, targets, quotient(arms * units), quotient(targets * units))

    def norms(self, counts: Array) -> Array:
        """||t||²_{G^-1} with G = Σ counts · x xᵀ."""
        return squared_norms(self.arms, counts, self.targets)

    def quotient_norms(self, counts: Array) -> Array:
        """The same in the limit of endless plays of the free arms; never larger."""
        if not self.quotient_arms.shape[1]:  # the free arms span everything
            return np.zeros(len(self.targets))
        return squared_norms(self.quotient_arms, counts, self.quotient_targets)
