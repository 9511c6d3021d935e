r"""The arms that can matter now, so that the others need not be looked at.

At an *anchor* all arms are looked at, with leader x0, gaps Δ, s_x = σ||x − x0||_{G^-1} and widths w_x = ||x||²_{G^-1} as they are
then. Later G is larger, so no s and no w has grown, and by Cauchy–Schwarz a gap has shrunk by at most s_x·D,
D = ||θ̂ − θ̂(anchor)||_{G(anchor)}/σ. If the leader has moved to x̂, gaps from it are larger, and distances from it at most
s_x + σ||x̂ − x0||_{G^-1}. So while D <= 1 and σ||x̂ − x0||_{G^-1} <= S, an arm is *far* if

    Δ_x − s_x > z̄ (s_x + S)             it is not the likeliest rival (z_x > z̄ >= the smallest z), nor will it lead
    v(Δ_x − s_x, s_x + S) <= v̲/100       it is worth too little beside the worthiest rival (at least v̲) to be counted
    Δ_x − s_x >= B̄ w_x                   and it costs more than it can tell: b(x) <= (Σ_y λ_y ||y − x̂||²) w_x

(v is a rival's worth, `directions`, which falls with its gap and grows with s)
and it stays far while all these bounds hold: they are checked at every look, and where one does not, there is a new anchor. So
decisions are the same as if all arms were looked at, and a look costs what the near arms cost.

Where more than `MOST` arms are near (in the first rounds of a large set), about half as many of the likeliest rivals and of those
arms that save most per regret are looked at, until a sixteenth has been added to the rounds: there decisions are
not quite those of all arms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import compiled
from allocopt.policies.tracking.directions import LEFT_OUT, worth_of

__all__ = ["MOST", "NearArms", "anchor", "gaps_and_distances", "still_near"]

_SLACK = 6.0  # z² of the most likely rival may grow by this until the next anchor,
_SHRINKING = 0.25  # the worth of the worthiest shrink to this share,
MOST = 2048  # near arms
_BINS = 64
_ROOM = 1.25  # and what information is worth grow by this factor


class NearArms(NamedTuple):
    """Which arms are near, and as of when."""

    size: IntArray
    """Length 1: how many."""
    arms: IntArray
    features: Array
    """Their columns, shape (r, k), of which the first ``size`` are in use."""
    gaps: Array
    squares: Array
    """||x − x̂||²_{G^-1}."""
    widths: Array
    """||x||²_{G^-1}."""
    origin: IntArray
    """Length 1: x0."""
    theta: Array
    gram: Array
    bounds: Array
    """z̄², S², B̄ and v̲, and the round from which on they are too old."""
    bins: IntArray
    """Scratch, shape (2, bins)."""

    @classmethod
    def blank(cls, features: Array) -> NearArms:
        """All arms are near: there is no anchor yet."""
        r, k = features.shape
        return cls(
            np.full(1, k, np.int64),
            np.arange(k, dtype=np.int64),
            features.copy(),
            np.zeros(k),
            np.zeros(k),
            np.zeros(k),
            np.zeros(1, np.int64),
            np.zeros(r),
            np.zeros((r, r)),
            np.zeros(5),
            np.zeros((2, _BINS), np.int64),
        )


@compiled
def gaps_and_distances(near: Any, theta: Any, inverse: Any) -> Any:
    """Δ̂, ||x − x̂||²_{G^-1} and ||x||²_{G^-1} of the near arms; returns the leader's place. Inner loops run over arms."""
    features, gaps, squares, widths = near.features, near.gaps, near.squares, near.widths
    r, size = len(theta), near.size[0]
    for i in range(size):
        gaps[i] = widths[i] = 0.0
    for a in range(r):
        value = theta[a]
        for i in range(size):
            gaps[i] -= value * features[a, i]
        for b in range(a + 1):
            x = inverse[a, b] if a == b else 2.0 * inverse[a, b]
            for i in range(size):
                widths[i] += x * features[a, i] * features[b, i]
    leader = 0
    for i in range(1, size):
        if gaps[i] < gaps[leader]:
            leader = i
    lowest = gaps[leader]
    for i in range(size):
        gaps[i] -= lowest
        squares[i] = 0.0
    for a in range(r):
        for b in range(a + 1):
            x = inverse[a, b] if a == b else 2.0 * inverse[a, b]
            p, q = features[a, leader], features[b, leader]
            for i in range(size):
                squares[i] += x * (features[a, i] - p) * (features[b, i] - q)
    return leader


@compiled
def still_near(near: Any, theta: Any, noise: Any, bound: Any, extremes: Any, t: Any) -> Any:
    """Whether everything holds that the far arms are far by.

    ``bound`` is Σ λ_y||y − x̂||², ``extremes`` the smallest z² and the largest worth of the near arms.
    """
    r = len(theta)
    if near.size[0] == len(near.arms):
        return True
    if extremes[0] > near.bounds[0] or bound > near.bounds[2] or extremes[1] < near.bounds[3] or t >= near.bounds[4]:
        return False
    moved = 0.0
    for a in range(r):
        for b in range(r):
            moved += near.gram[a, b] * (theta[a] - near.theta[a]) * (theta[b] - near.theta[b])
    if moved > noise:
        return False
    return noise * near.squares[near.origin[0]] <= near.bounds[1]


@compiled
def anchor(near: Any, est: Any, noise: Any, bound: Any, prices: Any, expected: Any, t: Any) -> Any:
    """Look at all arms, and keep those that are not far; returns the leader's place."""
    r, k = est.features.shape
    near.size[0] = k
    for i in range(k):
        near.arms[i] = i
    for a in range(r):
        for i in range(k):
            near.features[a, i] = est.features[a, i]
    leader = gaps_and_distances(near, est.theta, est.inverse)
    least, reach, most = math.inf, 0.0, 0.0
    for i in range(k):
        if near.squares[i] > 0.0:
            square = near.gaps[i] * near.gaps[i] / (noise * near.squares[i])
            least = min(least, square)
            most = max(most, worth_of(near.gaps[i], math.sqrt(noise * near.squares[i])))
            if square <= 1.0:
                reach = max(reach, noise * near.squares[i])
    near.bounds[0], near.bounds[1], near.bounds[2] = least + _SLACK, reach, _ROOM * bound
    near.bounds[3], near.bounds[4] = _SHRINKING * most, math.inf
    limit, shift = math.sqrt(near.bounds[0]), math.sqrt(reach)
    kept, place = 0, 0
    for i in range(k):
        s = math.sqrt(noise * max(near.squares[i], 0.0))
        closest = near.gaps[i] - s
        unlikely = closest > limit * (s + shift) and worth_of(closest, s + shift) <= LEFT_OUT * near.bounds[3]
        if i == leader:
            place = kept
        elif unlikely and closest >= near.bounds[2] * est.weights[i] * near.widths[i]:
            continue
        _move(near, i, kept)
        kept += 1
    near.size[0] = kept
    if kept > MOST:
        place = _thin_out(near, place, noise, least, prices, expected)
        near.bounds[4] = t + max(4, t // 16)
    near.origin[0] = place
    for a in range(r):
        near.theta[a] = est.theta[a]
        for b in range(r):
            near.gram[a, b] = est.gram[a, b]
    return place


@compiled
def _move(near: Any, i: Any, j: Any) -> None:
    """What is known of the i-th near arm to place j <= i."""
    near.arms[j] = near.arms[i]
    near.gaps[j], near.squares[j], near.widths[j] = near.gaps[i], near.squares[i], near.widths[i]
    for a in range(len(near.features)):
        near.features[a, j] = near.features[a, i]


@compiled
def _saving_rate(near: Any, i: Any, prices: Any, expected: Any) -> Any:
    """b(y)/(Δ̂_y + expected)."""
    saved = 0.0
    for a in range(len(prices)):
        for b in range(a + 1):
            x = prices[a, b] if a == b else 2.0 * prices[a, b]
            saved += x * near.features[a, i] * near.features[b, i]
    return saved / (1.0 + max(near.widths[i], 0.0)) / (near.gaps[i] + expected)


@compiled
def _bins_of(near: Any, i: Any, noise: Any, least: Any, rate: Any, top: Any) -> Any:
    """How far an arm is from the likeliest rival, in halves of z², and from the best saving, in sixteenths of a factor e."""
    rival = saver = _BINS - 1
    if near.squares[i] > 0.0:
        rival = int(min(2.0 * (near.gaps[i] * near.gaps[i] / (noise * near.squares[i]) - least), _BINS - 1.0))
    if rate > 0.0:
        saver = int(min(16.0 * math.log(top / rate), _BINS - 1.0))
    return rival, saver


@compiled
def _thin_out(near: Any, leader: Any, noise: Any, least: Any, prices: Any, expected: Any) -> Any:
    """Keep at most `MOST` near arms, the leader among them; returns its place."""
    size, bins = near.size[0], near.bins
    top = 0.0
    for i in range(size):
        top = max(top, _saving_rate(near, i, prices, expected))
    for b in range(_BINS):
        bins[0, b] = bins[1, b] = 0
    for i in range(size):
        rival, saver = _bins_of(near, i, noise, least, _saving_rate(near, i, prices, expected), top)
        bins[0, rival] += 1
        bins[1, saver] += 1
    last_rival = last_saver = 0
    rivals, savers = bins[0, 0], bins[1, 0]
    while last_rival < _BINS - 1 and rivals + bins[0, last_rival + 1] <= MOST // 2:
        last_rival += 1
        rivals += bins[0, last_rival]
    while last_saver < _BINS - 1 and savers + bins[1, last_saver + 1] <= MOST // 2:
        last_saver += 1
        savers += bins[1, last_saver]
    kept, place = 0, 0
    for i in range(size):
        rival, saver = _bins_of(near, i, noise, least, _saving_rate(near, i, prices, expected), top)
        if i == leader:
            place = kept
        elif (rival > last_rival and saver > last_saver) or kept >= MOST - (i < leader):
            continue
        _move(near, i, kept)
        kept += 1
    near.size[0] = kept
    return place
