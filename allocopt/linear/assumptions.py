"""The assumptions of a certificate, each with its exact size, and as sentences. A certificate without any is unconditional."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = ["ROUNDING_LEVEL", "Assumption", "assuming", "sentences"]

ROUNDING_LEVEL = Fraction(1, 2**40)
"""The largest size, relative to the terms that a number was summed from, that can be put down to rounding of the input."""

_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
_PLURAL = {"tie": "ties", "dependence": "dependences"}


@dataclass(frozen=True)
class Assumption:
    """One thing that is taken as zero though, for the doubles as they are, it is not."""

    kind: str
    """"tie": the gap of an arm that is taken as optimal. "dependence": what is left of rows that are taken as combinations of
    others (``arms`` are the rows with the largest rest)."""
    arms: tuple[int, ...]
    size: Fraction
    """Exactly; relative to the sum of the absolute values of the terms: Σ|x_c θ_c| + Σ|x*_c θ_c| for a tie,
    |x_c| + Σ|coefficient · entry| for a dependence."""
    text: str
    """The assumption as a sentence."""

    @property
    def at_rounding_level(self) -> bool:
        """Whether rounding of the input explains it; a proof that assumes more is refused."""
        return self.size <= ROUNDING_LEVEL

    def as_json(self) -> dict[str, Any]:
        """For ``--json`` and proof files; the size is the exact fraction as text."""
        return {"kind": self.kind, "arms": list(self.arms), "size": str(self.size), "text": self.text}


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
