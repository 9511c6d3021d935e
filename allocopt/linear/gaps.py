"""Gaps from arms and θ, every one proven to a few units in the last place, zeros proven to be zeros.

``max(means) − means`` loses all digits of a small gap. Gaps are differences of doubles where the bound on their rounding
error says that this is enough, else sums in double-double arithmetic, else rationals: a gap of 1e-30 is as accurate as one
of 1, and one that is 0 belongs to an arm that is exactly as good as the best.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from allocopt.base.validation import Array
from allocopt.linear import double_double as precise
from allocopt.linear.floating import GAP_ERROR, PAIR_ERROR, TINY, UNIT

__all__ = ["best_of", "error_of_mean", "exact_gap", "magnitudes", "plain_mean_error", "refined_gaps", "tie_share"]


_FEW = 2000  # entries up to which exact sums, one row after the other, are the faster way


def magnitudes(rows: Array, theta: Array) -> Array:
    """Σ_c |x_c θ_c| of every row."""
    result: Array = np.abs(rows) @ np.abs(theta)
    return result


def plain_mean_error(rows: Array, theta: Array) -> Array:
    """What rounding can do to a mean that is computed in doubles, in any order of summation."""
    return error_of_mean(magnitudes(rows, theta), len(theta))


def error_of_mean(size: Array, dim: int) -> Array:
    """`plain_mean_error` of rows whose `magnitudes` are known."""
    result: Array = (2 * (dim + 4) * UNIT) * size + TINY
    return result


def best_of(rows: Array, theta: Array, means: Array, plain_error: Array | None = None) -> int:
    """The row of the largest mean, in exact arithmetic (the first of them where they tie)."""
    plain_error = plain_mean_error(rows, theta) if plain_error is None else plain_error
    contenders = np.flatnonzero(means + plain_error >= float((means - plain_error).max()))
    if len(contenders) == 1:
        return int(contenders[0])
    high, low = precise.dot(rows[contenders], theta)
    error = (len(theta) + 2) * PAIR_ERROR * magnitudes(rows[contenders], theta) + TINY
    top = int(np.lexsort((low, high))[-1])
    behind = precise.difference((np.full_like(high, high[top]), np.full_like(low, low[top])), (high, low))
    contenders = contenders[behind <= 2.0 * (error + error[top])]
    different, first = np.unique(rows[contenders], axis=0, return_index=True)
    if len(different) == 1:
        return int(contenders[0])
    exact = [_exact_mean(row, theta) for row in different]
    best = max(exact)
    return int(min(contenders[first[i]] for i in range(len(exact)) if exact[i] == best))


def refined_gaps(
    rows: Array, theta: Array, best_row: Array, gaps: Array, plain_error: Array, best: int | None = None
) -> Array:
    """Gaps to the mean of ``best_row``, given those in plain arithmetic with ``plain_error``, to `GAP_ERROR` each.

    ``best``: the place of ``best_row`` among the rows, where it is known; its gap is 0.
    """
    certain = plain_error <= 0.5 * GAP_ERROR * np.abs(gaps)
    if best is not None:
        gaps[best] = 0.0
        certain[best] = True
    uncertain = np.flatnonzero(~certain)
    if len(uncertain):
        some = rows[uncertain]
        accurate = _accurate(some, theta, best_row)
        error = (len(theta) + 4) * PAIR_ERROR * (magnitudes(some, theta) + magnitudes(best_row[None], theta)) + TINY
        undecided = np.flatnonzero(~(error <= 0.25 * GAP_ERROR * accurate))
        for i in undecided.tolist():
            same = np.array_equal(some[i], best_row)
            accurate[i] = 0.0 if same else _nearest(exact_gap(some[i], theta, best_row))
        gaps[uncertain] = accurate
    return gaps


def _accurate(rows: Array, theta: Array, best_row: Array) -> Array:
    """Gaps with an error of `PAIR_ERROR` per term: few by exact sums, many in double-double arithmetic, a column at a time."""
    if rows.size <= _FEW:
        return precise.summed_differences(rows, best_row, theta)
    best = precise.dot(best_row[None], theta)
    ones = np.ones(len(rows))
    return precise.difference((best[0] * ones, best[1] * ones), precise.dot(rows, theta))


def exact_gap(row: Array, theta: Array, best_row: Array) -> Any:
    """The gap of one row as a rational."""
    return _exact_mean(best_row, theta) - _exact_mean(row, theta)


def tie_share(row: Array, theta: Array, best_row: Array) -> Fraction:
    """The gap of one row relative to Σ|x_c θ_c| + Σ|x*_c θ_c|, exactly."""
    from flint import fmpq

    gap = exact_gap(row, theta, best_row)
    if gap == 0:
        return Fraction(0)
    terms = sum((abs(x * t) for r in (row, best_row) for x, t in _pairs(r, theta)), fmpq(0))
    share = gap / terms
    return Fraction(int(share.p), int(share.q))


def _pairs(row: Array, theta: Array) -> list[tuple[Any, Any]]:
    from flint import fmpq

    return [
        (fmpq(*x.as_integer_ratio()), fmpq(*t.as_integer_ratio()))
        for x, t in zip(row.tolist(), theta.tolist(), strict=True)
        if x != 0.0 and t != 0.0
    ]


def _exact_mean(row: Array, theta: Array) -> Any:
    from flint import fmpq

    return sum((x * t for x, t in _pairs(row, theta)), fmpq(0))


def _nearest(number: Any) -> float:
    return max(int(number.p) / int(number.q), 0.0)
