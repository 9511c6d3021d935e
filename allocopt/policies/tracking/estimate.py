r"""θ̂ and G^-1 alone, O(r²) for every block of equal rounds, whatever the number of arms.

In the coordinates of a barycentric spanner, as `allocopt.policies.linear`, but without the means and widths of all arms: a
policy that looks at few of many arms computes those of the few. Rewards of equal consecutive rounds are held back until the
next look, so that a run is the same round by round and block by block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import Setting, compiled
from allocopt.policies.linear import REFRESH, factorise, invert

__all__ = ["Estimate", "bring_up_to_date", "hold", "noise_ratio"]

_PRIOR_BLOCKS = 20.0  # how many blocks the given variance counts for, where the variance is estimated


class Estimate(NamedTuple):
    """Least squares over r coordinates and k arms."""

    features: Array
    """Shape (r, k)."""
    first: IntArray
    """The spanner: played once at the beginning, and part of G from the beginning."""
    weights: Array
    """σ²/σ_x² of each arm."""
    noise: float
    """σ², as given."""
    pulls: IntArray
    gram: Array
    """G, without the rewards that are held back."""
    inverse: Array
    factor: Array
    """Scratch, shape (r, r)."""
    moment: Array
    """Σ w·reward·x."""
    theta: Array
    image: Array
    """Scratch, shape (r,)."""
    age: IntArray
    """Length 1: updates since G^-1 was computed from G."""
    held: IntArray
    """Length 2: the arm and the number of the rewards that are held back."""
    held_total: Array
    """Length 1: their sum."""
    surprises: Array
    """Length 2: Σ (innovation of a block)²/(its variance if σ² is right), and the number of blocks."""

    @classmethod
    def blank(cls, setting: Setting, weights: Array) -> Estimate:
        """Nothing known; a reward of arm x counts ``weights[x]`` in G."""
        k, r = setting.spanner.coefficients.shape
        first = np.array(setting.spanner.indices, dtype=np.int64)
        size = weights[first]
        return cls(
            features=np.array(setting.spanner.coefficients.T, order="C"),
            first=first,
            weights=np.array(weights, dtype=np.float64),
            noise=setting.noise_variance,
            pulls=np.zeros(k, np.int64),
            gram=np.diag(size),
            inverse=np.diag(1.0 / size),
            factor=np.zeros((r, r)),
            moment=np.zeros(r),
            theta=np.zeros(r),
            image=np.zeros(r),
            age=np.zeros(1, np.int64),
            held=np.zeros(2, np.int64),
            held_total=np.zeros(1),
            surprises=np.zeros(2),
        )


@compiled
def hold(est: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    """So many rounds of one arm, from round t on, with this sum of rewards."""
    est.pulls[arm] += count
    if t <= len(est.first):  # its share of G is there already
        est.moment[t - 1] += est.weights[arm] * total
        est.theta[t - 1] += total
        return
    if est.held[1] > 0 and est.held[0] != arm:
        bring_up_to_date(est)
    est.held[0] = arm
    est.held[1] += count
    est.held_total[0] += total


@compiled
def bring_up_to_date(est: Any) -> None:
    """G, G^-1 and θ̂ with all rewards: a rank-one update (Sherman & Morrison), and now and then a fresh inverse."""
    count = est.held[1]
    if count == 0:
        return
    arm = est.held[0]
    r = len(est.theta)
    image, weight = est.image, est.weights[arm]
    width = mean = 0.0
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += est.inverse[a, b] * est.features[b, arm]
        image[a] = total
        width += total * est.features[a, arm]
        mean += est.theta[a] * est.features[a, arm]
    growth = 1.0 + count * weight * max(width, 0.0)
    innovation = est.held_total[0] - count * mean
    est.surprises[0] += innovation * innovation * weight / (est.noise * count * growth)
    est.surprises[1] += 1.0
    share = count * weight / growth
    for a in range(r):
        x = weight * est.features[a, arm]
        est.moment[a] += est.held_total[0] * x
        for b in range(r):
            est.gram[a, b] += count * x * est.features[b, arm]
            est.inverse[a, b] -= share * image[a] * image[b]
    est.held[1] = 0
    est.held_total[0] = 0.0
    est.age[0] += 1
    if est.age[0] >= REFRESH:
        _fresh_inverse(est)
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += est.inverse[a, b] * est.moment[b]
        est.theta[a] = total


@compiled
def _fresh_inverse(est: Any) -> None:
    """G^-1 from G, by its Cholesky factor, so that the rounding of updates does not add up."""
    r = len(est.theta)
    est.age[0] = 0
    for a in range(r):
        for b in range(a + 1):
            est.factor[a, b] = est.gram[a, b]
    factorise(est.factor)
    invert(est.factor, est.inverse)


@compiled
def noise_ratio(est: Any) -> Any:
    """How much larger than given the variance seems to be, at least 1.

    Innovations of successive blocks are uncorrelated, each with the variance of its block; so their mean square is an
    unbiased estimate, whatever the policy did.
    """
    return max(1.0, (_PRIOR_BLOCKS + est.surprises[0]) / (_PRIOR_BLOCKS + est.surprises[1]))
