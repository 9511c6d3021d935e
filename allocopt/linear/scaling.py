"""Equilibration: rows and columns brought to one size before anything is said about rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocopt.base.validation import Array

__all__ = ["equilibrated"]


def equilibrated(arms: Array) -> tuple[Array, NDArray[np.int32]]:
    """Rows and columns scaled to about 1 by powers of two, so without rounding, and the exponents of the row scales."""
    mantissa, exponent = np.frexp(arms)
    present = mantissa != 0
    exponent -= _column_exponents(present.astype(np.float64), exponent)
    exponent[~present] = -(2**14)  # below all others, so that zeros never set the scale of a row
    rows: NDArray[np.int32] = exponent.max(axis=1)
    exponent -= rows[:, None]
    return np.ldexp(mantissa, exponent, out=mantissa), rows


def _column_exponents(present: Array, exponent: NDArray[np.int32]) -> NDArray[np.int32]:
    """Column scales that, with the best row scales, bring the entries closest to 1 (least squares of the logarithms).

    Unlike sweeps over the largest entries, this undoes any scaling of rows and columns, whatever the pattern of zeros.
    """
    count = np.maximum(present.sum(axis=1), 1.0)
    normal = np.diag(present.sum(axis=0)) - present.T @ (present / count[:, None])
    right = exponent.sum(axis=0) - present.T @ (exponent.sum(axis=1) / count)
    result: NDArray[np.int32] = np.rint(np.linalg.lstsq(normal, right, rcond=None)[0]).astype(np.int32)
    return result
