"""Confidence levels of the paper's Theorem `thm:conc`."""

from __future__ import annotations

import math

from allocopt.errors import InvalidOption
from allocopt.validation import positive_number, whole_number

__all__ = ["f_n"]


def f_n(n: float, dim: int, constant: float = 1.0) -> float:
    r"""f_n = 2(1 + 1/log n) log n + c d log(d log n), the level at confidence 1 − 1/n.

    The paper leaves the universal ``constant`` c open; it is 1 unless you say otherwise.

    Examples
    --------
    >>> round(f_n(10**6, 2), 6)
    36.268899
    """
    horizon = whole_number("n", n, InvalidOption, least=3)
    dimension = whole_number("dim", dim, InvalidOption, least=1)
    c = positive_number("constant", constant, InvalidOption, zero=True)
    log_n = math.log(horizon)
    return 2.0 * (1.0 + 1.0 / log_n) * log_n + c * dimension * math.log(dimension * log_n)
