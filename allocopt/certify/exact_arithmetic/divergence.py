"""kl(1 − u, q), the relative entropy of two coins, where u and q may be as small as 1e-100: in doubles and in balls."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, fmpq

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array

__all__ = ["divergence", "divergence_in_balls"]


def divergence(missed: Any, log_share: Any) -> Array:
    r"""kl(1 − u, q) in doubles, from u = ``missed`` and log q = ``log_share``; 0 where 1 − u <= q.

    Logarithms of q are asked for since q itself may leave the range of doubles.

    Examples
    --------
    >>> divergence([0.0, 0.5, 0.5, 2.0], [np.log(0.1), np.log(0.1), np.log(0.6), np.log(0.1)]).round(6)
    array([2.302585, 0.510826, 0.      , 0.      ])
    """
    u, log_q = np.broadcast_arrays(np.asarray(missed, dtype=np.float64), np.asarray(log_share, dtype=np.float64))
    inside = (u < 1.0) & (log_q < np.log1p(-np.minimum(u, 0.5)))  # enough that every logarithm below exists
    u, log_q = np.where(inside, u, 0.5), np.where(inside, log_q, -1.0)
    q = np.exp(log_q)
    value = (1.0 - u) * (np.log1p(-u) - log_q) + u * (np.log(np.maximum(u, NOT_ZERO)) - np.log1p(-q))
    result: Array = np.where(inside & (1.0 - u > q), np.maximum(value, 0.0), 0.0)
    return result


def divergence_in_balls(missed: fmpq, share: fmpq) -> arb:
    """kl(1 − u, q) for rationals u >= 0 and q > 0, as a ball that contains it; exactly 0 where 1 − u <= q.

    Examples
    --------
    >>> 2.30258 < divergence_in_balls(fmpq(0), fmpq(1, 10)) < 2.30259
    True
    """
    kept = 1 - missed
    if kept <= share:
        return arb(0)
    value = arb(kept) * (arb(kept) / arb(share)).log()
    if missed > 0:  # then 1 − q > u > 0
        value += arb(missed) * (arb(missed) / arb(1 - share)).log()
    return value
