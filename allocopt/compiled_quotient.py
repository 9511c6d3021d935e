"""Arms modulo those of gap 0, compiled: what `reduction.divide_out` does, in double-double arithmetic throughout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.compiling import kept_on_disk
from allocopt.loops import ENTRY, inside
from allocopt.tolerances import LARGEST, RANK, ZERO_ROW

__all__ = ["NOTHING", "UNUSUAL", "quotient"]

NOTHING = 2  # codes of `kernel.REASONS`
UNUSUAL = 3
_LEAST_PIVOT = 1e-7  # of equilibrated rows: below it, rank is a matter of judgement, which is `reduction.reduce`'s
_SPLITTER = 134217729.0  # 2^27 + 1, see allocopt.precise


# Double-double numbers, as in allocopt.precise: no fused multiply-add is assumed, and none is allowed to appear


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
    """Arms modulo those of gap 0, in double-double, into the first r columns of ``rows``; r, or minus a code.

    Columns are brought to about 1 by powers of two; rows of gap 0 and multiples of free directions become zero.
    """
    k, d = arms.shape
    # which free arms span all of them, and the column that each eliminates: complete pivoting on equilibrated rows
    work = np.empty((k, d))
    size = 0.0
    for i in range(k):
        top = 1e-300
        for c in range(d):
            if not abs(arms[i, c]) <= LARGEST:  # nor a number at all, perhaps
                return -UNUSUAL
            top = max(top, abs(arms[i, c]))
        size = max(size, top)
        for c in range(d):
            work[i, c] = arms[i, c] / top if gaps[i] == 0.0 else 0.0
    if size < 1.0 / LARGEST:
        return -UNUSUAL
    pivot_arm = np.empty(d, np.int64)
    pivot_column = np.empty(d, np.int64)
    kept = np.empty(d, np.bool_)
    for c in range(d):
        kept[c] = True
    found = 0
    while found < d:
        top = 0.0
        bi = bj = 0
        for i in range(k):
            for c in range(d):
                if abs(work[i, c]) > top:
                    top = abs(work[i, c])
                    bi = i
                    bj = c
        if top <= RANK:
            break
        if top < _LEAST_PIVOT:  # neither clearly zero nor clearly not
            return -UNUSUAL
        for i in range(k):
            f = work[i, bj] / work[bi, bj]
            if i != bi and f != 0.0:
                for c in range(d):
                    work[i, c] -= f * work[bi, c]
                work[i, bj] = 0.0
        for c in range(d):
            work[bi, c] = 0.0
        pivot_arm[found] = bi
        pivot_column[found] = bj
        kept[bj] = False
        found += 1
    r = d - found
    if r == 0:
        return -NOTHING
    high = np.empty((found + 1, d))
    low = np.empty((found + 1, d))
    something = False
    for n in range(found + k):
        i = pivot_arm[n] if n < found else n - found
        at = min(n, found)
        size = 0.0
        for c in range(d):
            high[at, c] = arms[i, c]
            low[at, c] = 0.0
            size = max(size, abs(arms[i, c]))
        for p in range(at):
            column = pivot_column[p]
            f, fl = _ratio(high[at, column], low[at, column], high[p, column], low[p, column])
            for c in range(d):
                high[at, c], low[at, c] = _minus_multiple(high[at, c], low[at, c], f, fl, high[p, c], low[p, c])
            high[at, column] = 0.0
            low[at, column] = 0.0
        if n >= found:
            left = 0.0
            out = 0
            for c in range(d):
                if kept[c]:
                    rows[i, out] = high[at, c]
                    left = max(left, abs(high[at, c]))
                    out += 1
            if left <= ZERO_ROW * size or gaps[i] == 0.0:
                for c in range(r):
                    rows[i, c] = 0.0
            else:
                something = True
    if not something:
        return -NOTHING
    for c in range(r):
        top = 0.0
        for i in range(k):
            top = max(top, abs(rows[i, c]))
        if not 0.0 < top < np.inf:
            return -UNUSUAL
        factor = math.ldexp(1.0, -math.frexp(top)[1])
        for i in range(k):
            rows[i, c] *= factor
    return r


quotient = kept_on_disk(_quotient, **ENTRY)
