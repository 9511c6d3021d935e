"""The rows that compiled solves work on: arms in units, modulo those of gap 0, or a code that sends the caller to `allocopt.solve`."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import LARGEST, SMALLEST_ENTRY
from allocopt.base.validation import Array
from allocopt.linear.span import column_units, free_span

__all__ = ["in_units", "quotient_rows"]

_MOST_COMPARED = 64  # columns up to which copies are looked for


def in_units(sets: Array) -> Array:
    """Sets of arms, shape (n, k, d), with columns in `column_units` and without copies of columns.

    nan all over where a set is out of the promised range.
    """
    size = np.abs(sets)
    top = size.max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        units = np.ldexp(1.0, -np.frexp(np.where((top > 0) & np.isfinite(top), top, 0.5))[1])
        whole = top.max(axis=(1, 2))
        least = np.where(size > 0, size, 1.0).min(axis=(1, 2), initial=1.0)
        fine = (whole >= 1.0 / LARGEST) & (whole <= LARGEST) & (least >= SMALLEST_ENTRY)
        result: Array = np.ascontiguousarray(sets * units + 0.0)  # −0.0 becomes 0.0
    result[~fine] = np.nan
    return _without_copies(result)


def _without_copies(sets: Array) -> Array:
    """Zeros for columns that equal an earlier one, or its negative: they depend on it exactly, and change nothing."""
    d = sets.shape[2]
    if d > _MOST_COMPARED:
        return sets
    for c in range(1, d):
        column = sets[:, :, c]
        for e in range(c):
            same = (column == sets[:, :, e]).all(axis=1) | (column == -sets[:, :, e]).all(axis=1)
            if same.any():
                sets[same, :, c] = 0.0
    return sets


def quotient_rows(kernel: ModuleType, arms: Array, gaps: Array, rows: Array) -> int:
    """Arms in units modulo those of gap 0, into the first r columns of ``rows``; r, or minus a code of ``kernel.REASONS``."""
    rank = int(kernel.quotient(arms, gaps, rows))
    return rank if rank != -kernel.SEVERAL_FREE_ARMS else _modulo_several(kernel, arms, gaps, rows)


def _modulo_several(kernel: ModuleType, arms: Array, gaps: Array, rows: Array) -> int:
    """`quotient_rows` where several arms have gap 0: not compiled; a code where the quotient needs an assumption or a decision."""
    try:
        known = free_span(arms, np.flatnonzero(gaps == 0.0))
    except SolverFailed:
        return -int(kernel.NEEDS_ORDINARY_PATH)
    if known.assumptions:
        return -int(kernel.NEEDS_ORDINARY_PATH)
    quotient, terms = known.modulo.with_terms(arms)
    quotient[gaps == 0.0] = 0.0
    if not quotient.any():
        return -int(kernel.NOTHING_TO_EXPLORE)
    if known.modulo.noise(quotient, terms).any():
        return -int(kernel.NEEDS_ORDINARY_PATH)
    quotient = quotient[:, quotient.any(axis=0)]
    rank = int(quotient.shape[1])
    rows[:, :rank] = quotient * column_units(quotient)
    return rank
