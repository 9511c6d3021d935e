r"""One look at the estimates: who leads, what the information of every near arm is worth, and which arm saves most per regret.

Shared by `OptimalTracking`, which plays that arm, and `AllocationTracking`, which asks the solved allocation where to explore.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import compiled
from allocopt.policies.tracking.directions import Rivals, weigh
from allocopt.policies.tracking.estimate import Estimate, bring_up_to_date, noise_ratio
from allocopt.policies.tracking.near_arms import NearArms, anchor, gaps_and_distances, still_near

__all__ = ["View", "look"]

_FEW_ARMS = 30  # up to which all are always looked at
_LEAST_ROUNDS = 16  # and a sixteenth of all rounds, before it is looked for far arms again where there were none


class View(NamedTuple):
    """What is known, and scratch for looking at it."""

    estimate: Estimate
    near: NearArms
    rivals: Rivals
    savings: Array
    """b of the near arms, as of the last look."""
    expected: Array
    """Length 1: Σ ν_x L_x, as of the last look."""
    next_anchor: IntArray
    """Length 1, while all arms are near: the round from which on it is looked for far ones."""
    estimated_noise: bool
    patience: float

    @classmethod
    def blank(cls, estimate: Estimate, estimated_noise: bool, patience: float) -> View:
        """Before the first round."""
        r, k = estimate.features.shape
        return cls(
            estimate,
            NearArms.blank(estimate.features),
            Rivals.blank(r, k),
            np.zeros(k),
            np.zeros(1),
            np.full(1, 0 if k > _FEW_ARMS else np.iinfo(np.int64).max),
            estimated_noise,
            patience,
        )


@compiled
def _compute_savings(sight: Any) -> None:
    """b(y) of the near arms: what one pull is expected to save in the rounds to come."""
    near, prices, savings, weights = sight.near, sight.rivals.prices, sight.savings, sight.estimate.weights
    r, size = len(prices), near.size[0]
    for i in range(size):
        savings[i] = 0.0
    for a in range(r):
        for b in range(a + 1):
            x = prices[a, b] if a == b else 2.0 * prices[a, b]
            for i in range(size):
                savings[i] += x * near.features[a, i] * near.features[b, i]
    for i in range(size):
        weight = weights[near.arms[i]]
        savings[i] = weight * savings[i] / (1.0 + weight * max(near.widths[i], 0.0))


@compiled
def _weigh(sight: Any, place: Any, noise: Any, scale: Any) -> Any:
    """P, Σ ν_x L_x and Σ λ_x||x − x̂||² from the near arms as they are."""
    near, patience = sight.near, sight.patience
    inverse, features, size = sight.estimate.inverse, near.features, near.size[0]
    return weigh(
        sight.rivals, inverse, features, size, place, near.gaps, near.squares, near.widths, noise, scale, patience
    )


@compiled
def look(sight: Any, t: Any, scale: Any) -> Any:
    """The places, among the near arms, of the leader and of the arm to play before round t; ``scale`` is prudence times rounds."""
    est, near, savings = sight.estimate, sight.near, sight.savings
    bring_up_to_date(est)
    noise = est.noise * noise_ratio(est) if sight.estimated_noise else est.noise
    place = gaps_and_distances(near, est.theta, est.inverse)
    expected, bound = _weigh(sight, place, noise, scale)
    complete = near.size[0] == len(near.arms)
    if (
        t >= sight.next_anchor[0]
        if complete
        else not still_near(near, est.theta, noise, bound, sight.rivals.extremes, t)
    ):
        place = anchor(near, est, noise, bound, sight.rivals.prices, expected, t)
        sight.next_anchor[0] = t + max(_LEAST_ROUNDS, t // _LEAST_ROUNDS)
        if not complete:
            expected, bound = _weigh(sight, place, noise, scale)
    _compute_savings(sight)
    sight.expected[0] = expected
    best = place
    top = savings[place] / expected if expected > 0.0 else 0.0
    for i in range(near.size[0]):
        gap = near.gaps[i]
        if i != place and savings[i] > gap and savings[i] > top * (gap + expected):
            best, top = i, savings[i] / (gap + expected)
    return place, best
