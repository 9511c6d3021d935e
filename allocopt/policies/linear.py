r"""Least squares that every linear policy shares: estimated means and widths of all arms after every round, O(d² + kd).

Everything is kept in the coordinates of a barycentric spanner (`Setting.spanner`), or in given ones with a ridge. With
the spanner played once G >= I, and entries in [−1, 1] make G <= r·n·I: condition numbers stay below r·n, on every
instance. G^-1, the means μ̂_x and the widths ||x||²_{G^-1} are brought forward by rank-one updates (Sherman & Morrison);
every `REFRESH` rounds they are computed afresh from the pulls and the sums of rewards, so that rounding does not add up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import Setting, compiled

__all__ = ["REFRESH", "LeastSquares", "absorb", "absorb_first", "factorise", "invert", "learn", "refresh"]

REFRESH = 512
"""Rounds between two fresh factorisations. The rounding of an update is about 1e-16 times the shrinking of the widths since
the last one, which is at most this; and the cost, O(kd² + d³), is shared by so many rounds."""

_LEAST_PIVOT = 1e-300  # so that a matrix which is singular by rounding has an inverse


class LeastSquares(NamedTuple):
    """All that is known of the arms' means; r coordinates, k arms."""

    features: Array
    """Shape (r, k): one column per arm, so that inner loops run over arms."""
    first: IntArray
    """Arms to play once at the beginning (the spanner, whose features are the unit vectors; none with a ridge)."""
    ridge: float
    inverse: Array
    """G^-1."""
    factor: Array
    """L with G = L Lᵀ, as of the last refresh."""
    means: Array
    widths: Array
    pulls: IntArray
    sums: Array
    age: IntArray
    """Rounds since the last refresh."""
    log_volume: Array
    """log det G − log det of its beginning."""
    weights: Array
    """What a reward of each arm counts in G: σ²/σ_x² for the common σ² that widths are multiplied with; 1 where all are alike."""
    direction: Array
    """G^-1 x of the last arm, with G before its reward came (scratch after a refresh)."""
    along: Array

    @classmethod
    def on_spanner(cls, setting: Setting) -> LeastSquares:
        """No ridge: the estimate is the plain one of the paper once the spanner has been played.

        With contexts the spanner cannot be played at will: then a ridge of one reward 0 of each of its arms.
        """
        if setting.sizes:
            return cls.of(setting.spanner.coefficients, np.zeros(0, np.int64), 1.0, setting.weights)
        return cls.of(setting.spanner.coefficients, setting.spanner.indices, 0.0, setting.weights)

    @classmethod
    def of(cls, coordinates: Array, first: IntArray, ridge: float, weights: Array) -> LeastSquares:
        """In these coordinates (one row per arm), beginning with G = Σ w x xᵀ of the spanner (I if all weigh 1) or ridge·I."""
        k, r = coordinates.shape
        size = np.full(r, ridge) if ridge > 0 else weights[first]
        features = np.array(coordinates.T, order="C")
        return cls(
            features,
            np.array(first, dtype=np.int64),
            float(ridge),
            np.eye(r) / size,
            np.eye(r) * np.sqrt(size),
            np.zeros(k),
            _widths(features, size),
            np.zeros(k, np.int64),
            np.zeros(k),
            np.zeros(1, np.int64),
            np.zeros(1),
            np.array(weights, dtype=np.float64),
            np.zeros(r),
            np.zeros(k),
        )


def _widths(features: Array, size: Array) -> Array:
    """||x||²_{G^-1} of every arm for G = diag(size)."""
    if (size == size[:1]).all():
        uniform: Array = (features**2).sum(axis=0) / float(size[0])
        return uniform
    weighted: Array = (features**2 / size[:, None]).sum(axis=0)
    return weighted


@compiled
def absorb_first(ls: Any, j: Any, reward: Any) -> None:
    """The first reward of the j-th spanner arm, whose share of G is there from the beginning."""
    ls.pulls[ls.first[j]] += 1
    ls.sums[ls.first[j]] += reward
    for i in range(len(ls.means)):
        ls.means[i] += ls.features[j, i] * reward


@compiled
def absorb(ls: Any, arm: Any, reward: Any) -> None:
    """One more reward: rank-one updates of G^-1, of all means and of all widths."""
    r, k = ls.features.shape
    direction, along = ls.direction, ls.along
    ls.pulls[arm] += 1
    ls.sums[arm] += reward
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += ls.inverse[a, b] * ls.features[b, arm]
        direction[a] = total
    for i in range(k):
        along[i] = 0.0
    for a in range(r):
        u = direction[a]
        for i in range(k):
            along[i] += ls.features[a, i] * u
    growth = 1.0 + ls.weights[arm] * along[arm]
    share = ls.weights[arm] / growth
    for a in range(r):
        u = direction[a] * share
        for b in range(r):
            ls.inverse[a, b] -= u * direction[b]
    correction = (reward - ls.means[arm]) * share
    for i in range(k):
        ls.means[i] += along[i] * correction
        ls.widths[i] -= along[i] * along[i] * share
    ls.age[0] += 1
    if ls.age[0] >= REFRESH:
        refresh(ls)


@compiled
def learn(ls: Any, t: Any, arm: Any, reward: Any) -> None:
    """The reward of round t: those of the spanner come first."""
    if t <= len(ls.first):
        absorb_first(ls, t - 1, reward)
    else:
        absorb(ls, arm, reward)


@compiled
def factorise(factor: Any) -> None:
    """Cholesky, in place: the lower triangle of G becomes that of L, G = L Lᵀ."""
    for a in range(len(factor)):
        for b in range(a + 1):
            total = factor[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            factor[a, b] = math.sqrt(max(total, _LEAST_PIVOT)) if a == b else total / factor[b, b]


@compiled
def invert(factor: Any, inverse: Any) -> None:
    """G^-1 from its factor: its columns by two triangular solves each."""
    r = len(factor)
    for j in range(r):
        for a in range(r):
            total = 1.0 if a == j else 0.0
            for b in range(a):
                total -= factor[a, b] * inverse[b, j]
            inverse[a, j] = total / factor[a, a]
        for a in range(r - 1, -1, -1):
            total = inverse[a, j]
            for b in range(a + 1, r):
                total -= factor[b, a] * inverse[b, j]
            inverse[a, j] = total / factor[a, a]


@compiled
def refresh(ls: Any) -> None:
    """Factor, inverse, means, widths and volume from the pulls and the sums alone."""
    r, k = ls.features.shape
    factor, inverse, direction = ls.factor, ls.inverse, ls.direction
    ls.age[0] = 0
    for a in range(r):
        direction[a] = 0.0
        for b in range(a + 1):
            factor[a, b] = ls.ridge if a == b else 0.0
    for i in range(k):
        if ls.pulls[i] > 0:
            for a in range(r):
                x = ls.weights[i] * ls.features[a, i]
                direction[a] += ls.sums[i] * x
                for b in range(a + 1):
                    factor[a, b] += ls.pulls[i] * x * ls.features[b, i]
    factorise(factor)
    volume = 0.0
    for a in range(r):
        volume += 2.0 * math.log(factor[a, a])
    ls.log_volume[0] = volume - (r * math.log(ls.ridge) if ls.ridge > 0.0 else 0.0)
    invert(factor, inverse)
    for i in range(k):
        mean = width = 0.0
        for a in range(r):
            image = 0.0
            for b in range(r):
                image += inverse[a, b] * ls.features[b, i]
            mean += image * direction[a]
            width += image * ls.features[a, i]
        ls.means[i] = mean
        ls.widths[i] = width
