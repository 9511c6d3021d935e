"""Arms modulo the one of gap 0, compiled: what `certify.modulo` does, in double-double arithmetic throughout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.compiling import kept_on_disk
from allocopt.linear.floating import ENTRY_ERROR, NOISE, PAIR_ERROR, TINY
from allocopt.linear.loops import ENTRY, inside

__all__ = ["NOTHING", "SEVERAL", "UNUSUAL", "quotient"]

NOTHING = 2  # codes of `kernel.REASONS`
UNUSUAL = 3
SEVERAL = 6
_SPLITTER = 134217729.0  # 2^27 + 1, see allocopt.base.double_double


# Double-double numbers, as in allocopt.base.double_double: no fused multiply-add is assumed, and none is allowed to appear


@inside
def _product(a: Any, b: Any) -> Any:
    """a·b as an unevaluated sum."""
    p = a * b
    ah = _SPLITTER * a
    ah = ah - (ah - a)
    al = a - ah
    bh = _SPLITTER * b
    bh = bh - (bh - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@inside
def _minus_multiple(x: Any, xl: Any, f: Any, fl: Any, y: Any, yl: Any) -> Any:
    """x − f·y for double-doubles."""
    p, e = _product(f, y)
    e += f * yl + fl * y
    s = x - p
    t = s - x
    e = ((x - (s - t)) + (-p - t)) + (xl - e)
    high = s + e
    return high, e - (high - s)


@inside
def _ratio(x: Any, xl: Any, y: Any, yl: Any) -> Any:
    """x/y for double-doubles."""
    q = x / y
    rest, _ = _minus_multiple(x, xl, q, 0.0, y, yl)
    low = rest / y
    high = q + low
    return high, low - (high - q)


def _quotient(arms: Any, gaps: Any, rows: Any) -> Any:
    """Arms modulo the one of gap 0, into the first r columns of ``rows``, as accurately as `certify.modulo` makes them.

    Returns r, or minus a code. Columns of the arms are in `column_units`, those of the result too; rows of gap 0 become zero.
    """
    k, d = arms.shape
    pivot = -1
    for i in range(k):
        something = False
        for c in range(d):
            if not abs(arms[i, c]) <= 1.0:  # nor a number at all, perhaps
                return -UNUSUAL
            something = something or arms[i, c] != 0.0
        if gaps[i] == 0.0 and something:
            if pivot >= 0:
                return -SEVERAL
            pivot = i
    column = -1  # of the pivot: the largest entry of the free arm
    for c in range(d):
        if pivot >= 0 and (column < 0 or abs(arms[pivot, c]) > abs(arms[pivot, column])):
            column = c
    r = d - (1 if pivot >= 0 else 0)
    if r == 0:
        return -NOTHING
    found = False
    for i in range(k):
        out = 0
        for c in range(d):
            if c == column:
                continue
            x = arms[i, c]
            if pivot >= 0 and gaps[i] != 0.0 and arms[i, column] != 0.0 and arms[pivot, c] != 0.0:
                f, fl = _ratio(arms[pivot, c], 0.0, arms[pivot, column], 0.0)
                terms = abs(x) + abs(arms[i, column] * f)
                x, _ = _minus_multiple(x, 0.0, arms[i, column], 0.0, f, fl)
                if not 3.0 * PAIR_ERROR * terms + TINY <= 0.5 * ENTRY_ERROR * abs(x):
                    # most often all of it cancels, and products of doubles are exact as pairs
                    p, e = _product(arms[i, c], arms[pivot, column])
                    q, f = _product(arms[i, column], arms[pivot, c])
                    if not (p == q and e == f and abs(p) > 1e-270):
                        return -UNUSUAL
                    x = 0.0
                if x != 0.0 and abs(x) <= NOISE * terms:  # it may be rounding of the input: a matter of judgement
                    return -UNUSUAL
            rows[i, out] = 0.0 if gaps[i] == 0.0 else x
            found = found or rows[i, out] != 0.0
            out += 1
    if not found:
        return -NOTHING
    # a column of zeros depends on the others exactly: it is left out
    kept = 0
    for c in range(r):
        top = 0.0
        for i in range(k):
            top = max(top, abs(rows[i, c]))
        if not top < np.inf:
            return -UNUSUAL
        if top > 0.0:
            factor = math.ldexp(1.0, -math.frexp(top)[1])
            for i in range(k):
                rows[i, kept] = rows[i, c] * factor
            kept += 1
    return kept


quotient = kept_on_disk(_quotient, **ENTRY)
