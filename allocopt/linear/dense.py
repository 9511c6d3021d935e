"""The operations on arrays that Newton's method and its start are written in: numpy, BLAS and LAPACK here, loops in `loops`.

Code in these words runs as it stands, whole arrays at a time, and it can be compiled, one number at a time. The hinge is
`lanes`: here ``for i in lanes(n): z[i] = x[i] * y[i]`` makes a single turn with i = 0:n, compiled it makes n turns. Inside such
a loop nothing may depend on the order, and `choose`, `larger` and `smaller` stand for branches.

Sets of vectors are the *columns* of matrices: r x k, so that compiled inner loops run over the arms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray

__all__ = [
    "DIAGONAL_SHIFT",
    "add_diagonal",
    "add_entries",
    "add_products",
    "back",
    "choose",
    "cross",
    "dot",
    "factorised",
    "fastest",
    "geometric_mean",
    "gram",
    "group_sums",
    "lanes",
    "larger",
    "largest",
    "magnitude",
    "scaled_columns",
    "smaller",
    "smallest",
    "solved",
    "squared_lengths",
    "squared_ratios",
    "times",
    "total",
    "triangular_inverse",
    "weighted",
    "whitener",
]

DIAGONAL_SHIFT = 1e-14  # of a scaled Newton matrix: keeps Cholesky going when the support is degenerate
_ACCURATE = 0.03  # diagonal of the scaled Cholesky factor above which M loses at most three digits


def lanes(n: int) -> Any:
    """What a loop over the entries 0 … n−1 of vectors runs over: all at once."""
    return (slice(0, n),)


def larger(x: Any, y: Any) -> Any:
    """The larger of two numbers."""
    return np.maximum(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two numbers."""
    return np.minimum(x, y)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    return np.where(condition, x, y)


def total(x: Array) -> float:
    """Σ x_i."""
    return float(x.sum())


def dot(x: Array, y: Array) -> float:
    """Σ x_i y_i."""
    return float(x @ y)


def magnitude(x: Array, weights: Array) -> float:
    """Σ w_i |x_i|."""
    return float(np.abs(x) @ weights)


def largest(x: Array) -> float:
    """The largest entry."""
    return float(x.max())


def smallest(x: Array) -> float:
    """The smallest entry."""
    return float(x.min())


def geometric_mean(x: Array) -> float:
    """exp of the mean logarithm."""
    return float(np.exp(np.log(x).mean()))


def fastest(change: Array, value: Array) -> float:
    """The rate at which a positive entry of ``value`` goes to 0 along ``change``: the largest of them, or 0."""
    return -float((change / value).min(initial=0.0))


def cross(left: Array, right: Array) -> Array:
    """LᵀR."""
    result: Array = left.T @ right
    return result


def weighted(columns: Array, weights: Array) -> Array:
    """Σ_i w_i x_i x_iᵀ over the columns."""
    result: Array = (columns * weights) @ columns.T
    return result


def gram(rows: Array, weights: Array) -> Array:
    """Σ_j w_j x_j x_jᵀ over the rows, as two products of a matrix with its own transpose: BLAS does these at half the cost."""
    up, down = weights > 0, weights < 0
    scaled = rows[up] * np.sqrt(weights[up])[:, None]
    result: Array = scaled.T @ scaled
    if down.any():
        scaled = rows[down] * np.sqrt(-weights[down])[:, None]
        result -= scaled.T @ scaled
    return result


def times(matrix: Array, x: Array) -> Array:
    """A x."""
    result: Array = matrix @ x
    return result


def back(matrix: Array, x: Array) -> Array:
    """Aᵀ x."""
    result: Array = x @ matrix
    return result


def scaled_columns(matrix: Array, scale: Array) -> Array:
    """A diag(s)."""
    return matrix * scale


def squared_ratios(matrix: Array, by: Array) -> Array:
    """The squares of A_ji/b_j, in place of A."""
    matrix /= by[:, None]
    matrix *= matrix
    return matrix


def squared_lengths(columns: Array) -> Array:
    """|x_i|² of the columns."""
    result: Array = np.einsum("ij,ij->j", columns, columns)
    return result


def squared_row_lengths(rows: Array) -> Array:
    """|x_i|² of the rows."""
    result: Array = np.einsum("ij,ij->i", rows, rows)
    return result


def group_sums(groups: IntArray, values: Array, count: int) -> Array:
    """Sums of the values of each group, groups being numbered from 0 to count − 1."""
    sums: Array = np.bincount(groups, values, count).astype(
        np.float64, copy=False
    )  # (whole numbers where there are none)
    return sums


def add_products(matrix: Array, factor: float, left: Array, right: Array) -> None:
    """Add f L∘R, entry by entry; L is not what it was afterwards."""
    left *= right
    left *= factor
    matrix += left


def add_diagonal(matrix: Array, diagonal: Array) -> None:
    """Add diag(d)."""
    matrix.flat[:: len(diagonal) + 1] += diagonal


def add_entries(matrix: Array, where: IntArray, values: Array) -> None:
    """Add to some entries of the diagonal."""
    matrix[where, where] += values


def factorised(matrix: Array) -> tuple[bool, Array]:
    """What `solved` needs of a positive definite matrix; False where it is not definite in doubles.

    Cholesky's factor, by way of the matrix scaled to a diagonal of ones.
    """
    diagonal = matrix.diagonal()
    if not diagonal.min() >= 0.0:
        return False, matrix
    scale = np.sqrt(np.maximum(diagonal, 1e-300))
    shift = DIAGONAL_SHIFT
    while shift < 0.5:  # beyond that it is no longer this matrix
        scaled = matrix / scale
        scaled /= scale[:, None]
        np.fill_diagonal(scaled, 1.0 + shift)
        factor, failed = dpotrf(scaled.T, lower=1, overwrite_a=1)  # its transpose is as LAPACK wants it
        if not failed and np.isfinite(factor.diagonal()).all():
            factor *= scale[:, None]
            return True, factor
        shift *= 100.0
    return False, matrix


def solved(matrix: Array, factor: Array, right: Array) -> Array:
    """A^-1 b, with one step of iterative refinement."""
    solution: Array = dpotrs(factor, right, lower=1)[0]
    solution += dpotrs(factor, right - matrix @ solution, lower=1)[0]
    return solution


def whitener(columns: Array, alpha: Array, base: Array | None) -> tuple[bool, Array]:
    """Upper triangular B with Bᵀ M(α) B = I up to rounding, M = Σ α_i x_i x_iᵀ + baseᵀ base; False where M is singular.

    By Cholesky's factorisation of M where that is accurate, else by QR of the rows √α_i x_i: M has the square of their
    condition number. Rows are then sorted by length, which makes Householder QR stable however different their scales are.
    """
    used = np.flatnonzero(alpha > 0)
    rows = columns.T if len(used) == len(alpha) else columns.T[used]
    weights = alpha if len(used) == len(alpha) else alpha[used]
    r = rows.shape[1]
    matrix = rows.T @ (rows * weights[:, None])
    if base is not None:
        matrix += base.T @ base
    scale = np.sqrt(matrix.diagonal())
    if not scale.min(initial=0.0 if not r else np.inf) > 0:
        return False, np.zeros((r, r))
    factor, failed = dpotrf(matrix / scale / scale[:, None], lower=0, clean=1)
    if not failed and factor.diagonal().min() > _ACCURATE:
        return triangular_inverse(factor * scale)
    rows = rows * np.sqrt(weights)[:, None]
    if base is not None:
        rows = np.concatenate([base, rows])
    if len(rows) < r:
        return False, np.zeros((r, r))
    length = np.einsum("ij,ij->i", rows, rows)
    factor = np.asarray(np.linalg.qr(rows[np.argsort(-length)] / scale, mode="r"))
    diagonal = np.abs(factor.diagonal())
    if not np.all(np.isfinite(diagonal)) or diagonal.min() <= 8 * EPS * EPS * diagonal.max():
        return False, np.zeros((r, r))
    return triangular_inverse(factor * scale)


def triangular_inverse(factor: Array) -> tuple[bool, Array]:
    """The inverse of an upper triangular matrix; False where it has none in doubles."""
    inverse, failed = dtrtri(factor, lower=0)
    return not failed and bool(np.isfinite(inverse).all()), inverse
