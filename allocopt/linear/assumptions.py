"""What a certificate takes for granted, each with its exact size. A certificate without any is unconditional."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["ROUNDING_LEVEL", "Assumption"]

ROUNDING_LEVEL = Fraction(1, 2**40)
"""The largest size, relative to the terms that a number was summed from, that can be put down to rounding of the input."""


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
