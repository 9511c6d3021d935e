"""Bounds on rounding errors: the few numbers by which every bound of `allocopt.certify` is widened (docs/certificates.md).

IEEE doubles, rounding to nearest, any order of summation, with or without fused multiply-add.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ENTRY_ERROR", "GAP_ERROR", "NOISE", "PAIR_ERROR", "TINY", "UNIT", "gamma"]

UNIT: Final = 2.0**-53
"""u: the relative error of one rounding."""

ENTRY_ERROR: Final = 2.0**-47
"""Relative error of every entry of a row in the quotient, as `Modulo` makes them; entries that are 0 are exactly 0."""

GAP_ERROR: Final = 2.0**-46
"""Relative error of a gap that was computed from arms and θ, as `LinearBandit` makes them; gaps that are 0 are exactly 0."""

PAIR_ERROR: Final = 2.0**-98
"""Relative to the terms and per term, the error of a sum of products in double-double arithmetic."""

TINY: Final = 2.0**-1000
"""More than underflow can do to a sum of products of numbers in the promised range."""

NOISE: Final = 2.0**-42
"""An entry that is smaller than this, relative to the terms it was summed from, may be rounding of the input: rank is not
decided by it. Decisions below this level are assumptions, with their exact size."""


def gamma(n: int) -> float:
    """γ_n = n u/(1 − n u), rounded up: the relative error of n roundings in a row."""
    return n * UNIT / (1.0 - n * UNIT) * (1.0 + 4.0 * UNIT)
