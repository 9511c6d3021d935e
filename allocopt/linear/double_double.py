"""Double-double arithmetic where cancellation would cost digits: gaps of near ties, and the quotient by the free arms.

A number is held as an unevaluated sum hi + lo of two doubles (about 32 digits). Dekker's and Knuth's error-free
transformations, vectorised; no fused multiply-add or extended precision is assumed.
"""

from __future__ import annotations

import math

import numpy as np

from allocopt.base.validation import Array

Pair = tuple[Array, Array]

_SPLITTER = 134217729.0  # 2^27 + 1: splits a 53-bit mantissa into two halves whose products are exact

__all__ = [
    "Pair",
    "add",
    "difference",
    "divide",
    "dot",
    "multiply",
    "negative",
    "summed_differences",
    "two_product",
]


def two_sum(a: Array, b: Array) -> Pair:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> Pair:
    p = a * b
    ah = _SPLITTER * a
    ah = ah - (ah - a)
    al = a - ah
    bh = _SPLITTER * b
    bh = bh - (bh - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def add(x: Pair, y: Pair) -> Pair:
    s, e = two_sum(x[0], y[0])
    f, g = two_sum(x[1], y[1])
    s, e = two_sum(s, e + f)
    return two_sum(s, e + g)


def negative(x: Pair) -> Pair:
    return -x[0], -x[1]


def multiply(x: Pair, y: Pair) -> Pair:
    p, e = two_product(x[0], y[0])
    return two_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def divide(x: Pair, y: Pair) -> Pair:
    q = x[0] / y[0]
    zero = np.zeros_like(q)
    r = add(x, negative(multiply((q, zero), y)))
    return two_sum(q, r[0] / y[0])


def dot(rows: Array, direction: Array) -> Pair:
    """``rows @ direction`` as a double-double vector."""
    hi = np.zeros(len(rows))
    lo = np.zeros(len(rows))
    total: Pair = (hi, lo)
    for j in range(rows.shape[1]):
        total = add(total, two_product(rows[:, j], np.full(len(rows), direction[j])))
    return total


def summed_differences(rows: Array, best_row: Array, direction: Array) -> Array:
    """⟨best_row − x, direction⟩ of every row x, rounded once where no product underflows: for a few rows, one after the other."""
    high, low = two_product(np.concatenate([-rows, best_row[None]]), direction[None])
    *others, best = np.concatenate([high, low], axis=1).tolist()
    return np.array([math.fsum(best + terms) for terms in others])


def difference(x: Pair, y: Pair) -> Array:
    """``x − y`` rounded to double."""
    return add(x, negative(y))[0]
