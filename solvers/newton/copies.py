"""Rows that are copies of each other, to the bit: of very many of these a pool needs one each.

A pool of copies is worse than none: it is full before it spans what matters, and its Newton matrices are singular.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocopt.base.validation import Array, IntArray

__all__ = ["one_of_each"]

_SAMPLED = 2000  # rows that are looked at first
_FEW = 0.9  # of these, if so many differ, copies are too few to matter
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def one_of_each(rows: Array) -> IntArray:
    """The first row of every class of copies, in order; all rows where copies are few.

    Examples
    --------
    >>> one_of_each(np.array([[1.0, 0.0], [2.0, 1.0], [1.0, -0.0], [1.0, 0.0]]))
    array([0, 1])
    """
    everything = np.arange(len(rows))
    some = rows if len(rows) <= _SAMPLED else rows[np.random.default_rng(0).choice(len(rows), _SAMPLED, replace=False)]
    if len(np.unique(_keys(some))) >= _FEW * len(some):
        return everything
    _, first, whose = np.unique(_keys(rows), return_index=True, return_inverse=True)
    different = everything[(rows != rows[first[whose]]).any(axis=1)]  # whose keys are equal by chance
    return np.union1d(first, different)


def _keys(rows: Array) -> NDArray[np.uint64]:
    """A number for each row, the same for copies; others have the same by chance, in 2^-64 of all cases."""
    mixed = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # −0 is 0
    for shift in (31, 29):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * _FACTOR
    weights = np.random.default_rng(1).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys: NDArray[np.uint64] = mixed @ weights
    return keys
