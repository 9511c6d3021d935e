"""Arms modulo the one of gap 0, compiled: what `linear.modulo` does, in double-double arithmetic throughout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.compiling import kept_on_disk
from allocopt.linear.floating import ENTRY_ERROR, NOISE, PAIR_ERROR, TINY
from allocopt.linear.loops import ENTRY, inside
from allocopt.solving.kernel_codes import NEEDS_ORDINARY_PATH, NOTHING_TO_EXPLORE, SEVERAL_FREE_ARMS

__all__ = ["quotient", "units"]

_EXACT_PRODUCT = 1e-270  # above it the rounding error of a product is a double
_SPLITTER = 134217729.0  # 2^27 + 1, see allocopt.linear.double_double


# Double-double numbers, as in allocopt.linear.double_double: no fused multiply-add is assumed, and none is allowed to appear


@inside
def _product(a: Any, b: Any) -> Any:
    """a·b as an unevaluated sum."""
    high = a * b
    a_high = _SPLITTER * a
    a_high = a_high - (a_high - a)
    a_low = a - a_high
    b_high = _SPLITTER * b
    b_high = b_high - (b_high - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


@inside
def _minus_multiple(x: Any, x_low: Any, f: Any, f_low: Any, y: Any, y_low: Any) -> Any:
    """x − f·y for double-doubles."""
    product, error = _product(f, y)
    error += f * y_low + f_low * y
    difference = x - product
    t = difference - x
    rest = ((x - (difference - t)) + (-product - t)) + (x_low - error)
    high = difference + rest
    return high, rest - (high - difference)


@inside
def _ratio(x: Any, x_low: Any, y: Any, y_low: Any) -> Any:
    """x/y for double-doubles."""
    quotient = x / y
    rest, _ = _minus_multiple(x, x_low, quotient, 0.0, y, y_low)
    low = rest / y
    high = quotient + low
    return high, low - (high - quotient)


# The quotient


@inside
def _free_arm(arms: Any, gaps: Any) -> Any:
    """The index of the one nonzero arm of gap 0, −1 if there is none, or minus a code of `kernel_codes`."""
    k, d = arms.shape
    free = -1
    for i in range(k):
        nonzero = False
        for c in range(d):
            if not abs(arms[i, c]) <= 1.0:  # also true of nan
                return -NEEDS_ORDINARY_PATH
            nonzero = nonzero or arms[i, c] != 0.0
        if gaps[i] == 0.0 and nonzero:
            if free >= 0:
                return -SEVERAL_FREE_ARMS
            free = i
    return free


@inside
def _entry_modulo(arm: Any, free: Any, c: Any, pivot: Any) -> Any:
    """Entry c of an arm modulo the free one, x_c − x_P f_c/f_P with P the column ``pivot``; and whether it is accurate."""
    slope, slope_low = _ratio(free[c], 0.0, free[pivot], 0.0)
    terms = abs(arm[c]) + abs(arm[pivot] * slope)
    entry, _ = _minus_multiple(arm[c], 0.0, arm[pivot], 0.0, slope, slope_low)
    if not 3.0 * PAIR_ERROR * terms + TINY <= 0.5 * ENTRY_ERROR * abs(entry):
        # most often all of it cancels, and products of doubles are exact as pairs
        high, low = _product(arm[c], free[pivot])
        other_high, other_low = _product(arm[pivot], free[c])
        return 0.0, high == other_high and low == other_low and abs(high) > _EXACT_PRODUCT
    # an entry that is tiny beside its terms may be rounding of the input; the ordinary path decides
    return entry, not (entry != 0.0 and abs(entry) <= NOISE * terms)


@inside
def _without_zero_columns(rows: Any, r: Any) -> Any:
    """Bring the first r columns into units, one after the other, without those of zeros; how many there are, or minus a code.

    A column of zeros depends on the others exactly.
    """
    k = len(rows)
    kept = 0
    for c in range(r):
        top = 0.0
        for i in range(k):
            top = max(top, abs(rows[i, c]))
        if not top < np.inf:
            return -NEEDS_ORDINARY_PATH
        if top > 0.0:
            factor = math.ldexp(1.0, -math.frexp(top)[1])
            for i in range(k):
                rows[i, kept] = rows[i, c] * factor
            kept += 1
    return kept


def _quotient(arms: Any, gaps: Any, rows: Any) -> Any:
    """Arms modulo the one of gap 0, into the first r columns of ``rows``, as accurately as `linear.modulo` makes them.

    Returns r, or minus a code. Columns of the arms are in `column_units`, those of the result too; rows of gap 0 become zero.
    """
    k, d = arms.shape
    free = _free_arm(arms, gaps)
    if free < -1:
        return free
    pivot = -1  # the column of the free arm's largest entry
    for c in range(d):
        if free >= 0 and (pivot < 0 or abs(arms[free, c]) > abs(arms[free, pivot])):
            pivot = c
    r = d - (1 if free >= 0 else 0)
    if r == 0:
        return -NOTHING_TO_EXPLORE
    found = False
    for i in range(k):
        column = 0  # of the result
        for c in range(d):
            if c == pivot:
                continue
            entry, certain = arms[i, c], True
            if free >= 0 and gaps[i] != 0.0 and arms[i, pivot] != 0.0 and arms[free, c] != 0.0:
                entry, certain = _entry_modulo(arms[i], arms[free], c, pivot)
            if not certain:
                return -NEEDS_ORDINARY_PATH
            rows[i, column] = 0.0 if gaps[i] == 0.0 else entry
            found = found or rows[i, column] != 0.0
            column += 1
    return _without_zero_columns(rows, r) if found else -NOTHING_TO_EXPLORE


def _units(arms: Any, rows: Any) -> None:
    """`compiled_rows.in_units` of arms that are in the promised range, into ``rows``: columns in units, copies of columns zero."""
    k, d = arms.shape
    for c in range(d):
        top = 0.0
        for i in range(k):
            top = max(top, abs(arms[i, c]))
        factor = math.ldexp(1.0, -math.frexp(top)[1]) if top > 0.0 else 1.0
        for i in range(k):
            rows[i, c] = arms[i, c] * factor + 0.0  # −0.0 becomes 0.0
        copy = False
        for e in range(c):
            same = opposite = True
            for i in range(k):
                same = same and rows[i, c] == rows[i, e]
                opposite = opposite and rows[i, c] == -rows[i, e]
            copy = copy or same or opposite
        for i in range(k):
            if copy:
                rows[i, c] = 0.0


units = kept_on_disk(_units, **ENTRY)
quotient = kept_on_disk(_quotient, **ENTRY)
