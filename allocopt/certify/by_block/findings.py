"""What passes over all arms find: bounds for all of them, and the arms that violate most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import IntArray
from allocopt.certify.canonical import Bounds

__all__ = ["BoundsOverAll", "Pass"]


@dataclass(frozen=True, eq=False)
class BoundsOverAll(Bounds):
    """Bounds for all arms; the arrays are for the arms in ``pool``, and everything else is zero."""

    pool: IntArray
    binding: IntArray
    """Arms whose constraint is tight."""
    alive: int
    """Arms that may still matter, as far as is proven."""

    @classmethod
    def nothing_to_explore(cls, cost: float = 0.0, cost_error: float = 0.0) -> BoundsOverAll:
        """Every arm is a multiple of free ones: what is fixed is all, and its cost is known up to a relative error."""
        none, nobody = np.zeros(0), np.zeros(0, dtype=np.int64)
        margin = 2.0 * cost_error
        return cls(cost * (1.0 + margin), cost * (1.0 - margin), none, none, none, none, margin, nobody, nobody, 0)


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pricing pass over all arms found."""

    bounds: BoundsOverAll
    features: IntArray
    """Arms outside the pool of the largest prices, with a price above all in the pool; largest first."""
    targets: IntArray
    """Arms outside the pool whose constraints are violated most."""
    complete: bool
    """Whether every arm was looked at, those screened out included."""
    looks: int = 1
    """How often all arms were looked at."""
