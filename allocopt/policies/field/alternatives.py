r"""Half-space alternatives in closed form, which AO-IDS and SOLID share.

For the leader x̂ and an arm z with estimated gap Δ̂_z, the parameter nearest to θ̂ in ||·||_G under which z is no worse than x̂ is

    ν(z) = θ̂ + Δ̂_z G^-1(z − x̂)/||z − x̂||²_{G^-1},      ||ν(z) − θ̂||²_G = Δ̂_z²/||z − x̂||²_{G^-1}.

The least of these distances is the evidence that x̂ is the best arm: both policies exploit while it exceeds a threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.compiling import compiled
from allocopt.base.validation import Array, IntArray

__all__ = ["Alternatives", "find_alternatives", "image"]


class Alternatives(NamedTuple):
    """As of the last call of `find_alternatives`; r coordinates, k arms."""

    leader: IntArray
    """Length 1."""
    shifts: Array
    """ν(z) − θ̂, shape (r, k)."""
    distances: Array
    """||ν(z) − θ̂||²_G; inf for the leader and its copies."""
    squares: Array
    """||z − x̂||²_{G^-1}."""
    least: Array
    """Length 1: the least distance."""
    nearest: IntArray
    """Length 1: the arm of the least distance; −1 if there is none."""

    @classmethod
    def blank(cls, r: int, k: int) -> Alternatives:
        """Nothing known yet."""
        return cls(
            np.zeros(1, np.int64),
            np.zeros((r, k)),
            np.zeros(k),
            np.zeros(k),
            np.zeros(1),
            np.full(1, -1, np.int64),
        )


@compiled
def image(inverse: Any, features: Any, a: Any, arm: Any, leader: Any) -> Any:
    """Entry a of G^-1(x − x̂)."""
    total = 0.0
    for b in range(len(inverse)):
        total += inverse[a, b] * (features[b, arm] - features[b, leader])
    return total


@compiled
def find_alternatives(found: Any, features: Any, inverse: Any, means: Any) -> None:
    """From the estimated means and the inverse of an information matrix G, which need not be that of the data."""
    r, k = features.shape
    leader = 0
    for i in range(1, k):
        if means[i] > means[leader]:
            leader = i
    found.leader[0] = leader
    found.least[0] = np.inf
    found.nearest[0] = -1
    for i in range(k):
        square = 0.0
        for a in range(r):
            u = image(inverse, features, a, i, leader)
            found.shifts[a, i] = u
            square += u * (features[a, i] - features[a, leader])
        found.squares[i] = max(square, 0.0)
        if i == leader or not square > 0.0:
            found.distances[i] = np.inf
            continue
        gap = means[leader] - means[i]
        for a in range(r):
            found.shifts[a, i] *= gap / square
        found.distances[i] = gap * gap / square
        if found.distances[i] < found.least[0]:
            found.least[0] = found.distances[i]
            found.nearest[0] = i
