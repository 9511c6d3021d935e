"""Assumptions in words: what a certificate takes for granted, counted in one phrase or said in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from allocopt.linear.assumptions import Assumption

__all__ = ["assuming", "sentences"]

_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
_PLURAL = {"tie": "ties", "dependence": "dependences"}


def assuming(assumptions: Sequence[Assumption]) -> str:
    """How many of which kind, and the largest size rounded up; empty where nothing is assumed.

    Examples
    --------
    >>> assuming([Assumption("tie", (1,), Fraction(1, 2**53), "arm 1 is taken as optimal")])
    'assuming 1 tie (<= 1.2e-16)'
    """
    if not assumptions:
        return ""
    kinds = Counter(a.kind for a in assumptions)
    counted = [f"{n} {kind if n == 1 else _PLURAL.get(kind, kind)}" for kind, n in kinds.items()]
    return f"assuming {' and '.join(counted)} (<= {_rounded_up(max(a.size for a in assumptions))})"


def _rounded_up(size: Fraction) -> str:
    """Two digits that are not below the exact size, however small that is."""
    return f"{_DIGITS.divide(Decimal(size.numerator), Decimal(size.denominator)):.2g}"


def sentences(assumptions: Sequence[Assumption], most: int = 5) -> list[str]:
    """At most so many of them in full, the largest first, and how many there are besides."""
    largest = sorted(assumptions, key=lambda a: -a.size)
    said = [a.text for a in largest[:most]]
    return said if len(largest) <= most else [*said, f"and {len(largest) - most} more"]
