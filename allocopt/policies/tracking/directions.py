r"""What information is worth, counted by directions and not by arms.

If the leader x̂ is played from now on, the expected loss per round to arm x alone is L_x = s_x (φ(z_x) − z_x Φ(−z_x)), with
s_x = σ||x − x̂||_{G^-1} and z_x = Δ̂_x/s_x. The loss to the best of all arms is less than the sum of these, and much less where
many arms are nearly the same: copies of a rival would be paid for again and again. So every rival counts only as far as it is *new*.

Rivals are taken in the order of what is left of their worth, v_x = s_x φ(z_x)(1 + z_x²/2), and the one that is taken, x',
reduces what is left of the others: of the squared length of a rival's x − x̂ that part is dropped which lies along what was
new in x' − x̂, if it points the same way, times h = exp(−(log(s_x²/s_x'²)/1.5)⁴), which is 1 for arms of about the same distance
and 0 beyond a factor of three. (Arms in one direction at quite different distances are different alternatives.) Lengths and
angles are those of G^-1 as it would be after a hundred times the information about x̂: the uncertainty of x̂ itself, which all
differences have in common, makes no two rivals alike.

Orthogonal rivals all count fully; a copy counts nothing, a near-copy next to nothing; and on a circle of k arms the sum tends to a
limit as k grows.

*Near ties that can wait.* Where pulls of x itself tell next to nothing about x − x̂ (less than a thousandth of what an arm of the
spanner tells), λ_x is multiplied by the probability that x and x̂ differ by an amount that matters. The prior odds that they do not are
``patience``; if they do, the difference is one of N(0, s₀²), with s₀ the s_x of a single pull of each spanner arm. With
M = s₀²/s_x² the odds are then patience·√M·exp(−(1 − 1/M) z_x²/2): a tie is believed in only after many pulls have not decided it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import compiled

__all__ = ["LEFT_OUT", "Rivals", "weigh", "worth_of"]

LEFT_OUT = 1e-2
"""Of all that was counted: what is left of a rival's worth is then not looked at any more."""
_CUT = 2.0 * math.log(1e6)  # a rival whose z² is larger than the smallest by more than this is left out
_SAME_DISTANCE = 1.0 / 1.5
_NO_TIE = 1e-3  # odds below which it is none
_LITTLE = 1000.0
_KNOWN_LEADER = 0.01  # of the leader's own squared width remains when directions are compared
_ROOT_TWO = math.sqrt(2.0)
_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)  # φ(0)


class Rivals(NamedTuple):
    """Scratch for up to k rivals in r coordinates; all are in the order of the arms that were passed."""

    evidence: Array
    """z² of every arm that was passed; inf for the leader and its duplicates."""
    extremes: Array
    """The smallest of these, and the worth of the worthiest."""
    place: IntArray
    """Where among the arms that were passed."""
    rest: Array
    """What is new of x − x̂, shape (r, k)."""
    length: Array
    """Its squared length, with a well-known leader; and at first:"""
    whole: Array
    logarithm: Array
    """log s²/σ²."""
    rate: Array
    """Worth per squared length, v_x/whole."""
    along: Array
    """What points the way of the one that is taken, and how much of that is dropped."""
    dropped: Array
    metric: Array
    """The comparison's G^-1, shape (r, r)."""
    unit: Array
    dual: Array
    prices: Array
    """P with b(y) = yᵀPy/(1 + ||y||²_{G^-1}), lower triangle."""

    @classmethod
    def blank(cls, r: int, k: int) -> Rivals:
        """Room for so many."""
        return cls(
            evidence=np.zeros(k),
            extremes=np.zeros(2),
            place=np.zeros(k, np.int64),
            rest=np.zeros((r, k)),
            length=np.zeros(k),
            whole=np.zeros(k),
            logarithm=np.zeros(k),
            rate=np.zeros(k),
            along=np.zeros(k),
            dropped=np.zeros(k),
            metric=np.zeros((r, r)),
            unit=np.zeros(r),
            dual=np.zeros(r),
            prices=np.zeros((r, r)),
        )


@compiled
def worth_of(gap: Any, s: Any) -> Any:
    """v = s φ(z)(1 + z²/2), z = gap/s: what R·v/(2s²) of R rounds to come would be saved by knowing s² better."""
    half = 0.5 * gap * gap / (s * s)
    return s * _DENSITY_AT_ZERO * math.exp(-half) * (1.0 + half)


@compiled
def weigh(
    rivals: Any,
    inverse: Any,
    features: Any,
    size: Any,
    leader: Any,
    gaps: Any,
    squares: Any,
    widths: Any,
    noise: Any,
    scale: Any,
    patience: Any,
) -> Any:
    """P into ``rivals.prices``, from the first ``size`` columns of ``features``; Σ L_x and Σ λ_x||x − x̂||² of what counts.

    ``leader`` is a column, ``gaps`` and ``squares`` are Δ̂ and ||x − x̂||²_{G^-1}; ``scale`` is prudence times rounds.
    """
    prices = rivals.prices
    r = len(prices)
    for a in range(r):
        for b in range(r):
            prices[a, b] = 0.0
    left, best = _list_rivals(rivals, inverse, features, size, leader, gaps, squares, noise)
    expected = counted = bound = 0.0
    while left > 0:
        top = rivals.rate[best] * rivals.length[best]
        if top <= LEFT_OUT * counted:
            break
        counted += top
        i = rivals.place[best]
        new = rivals.length[best] / rivals.whole[best]
        s = math.sqrt(noise * squares[i])
        z = gaps[i] / s
        density = _DENSITY_AT_ZERO * math.exp(-0.5 * z * z)
        expected += new * s * max(density - 0.5 * z * math.erfc(z / _ROOT_TWO), 0.0)
        weight = scale * noise * top / (2.0 * s * s)
        bound += weight * squares[i]
        _difference_image(rivals.dual, inverse, features, i, leader)
        odds = patience * _odds_of_a_tie(features, i, leader, squares[i], z) if patience > 0.0 else 0.0
        if odds > _NO_TIE:
            weight *= 1.0 - odds / (1.0 + odds) * _needs_others(rivals.dual, inverse, features, i, widths[i])
        for a in range(r):
            for b in range(a + 1):
                prices[a, b] += weight * rivals.dual[a] * rivals.dual[b]
        left, best = _drop_what_is_known(rivals, left, best, LEFT_OUT * counted)
    return expected, bound


@compiled
def _compare_as_if_known(rivals: Any, inverse: Any, features: Any, leader: Any) -> None:
    """The metric in which rivals are compared: G^-1 after a hundred times the information about x̂."""
    r = len(inverse)
    metric, dual = rivals.metric, rivals.dual
    width = 0.0
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += inverse[a, b] * features[b, leader]
        dual[a] = total
        width += total * features[a, leader]
    share = (1.0 - _KNOWN_LEADER) / width if width > 0.0 else 0.0
    for a in range(r):
        for b in range(r):
            metric[a, b] = inverse[a, b] - share * dual[a] * dual[b]


@compiled
def _pick_out(rivals: Any, features: Any, size: Any, leader: Any, gaps: Any, squares: Any, noise: Any) -> Any:
    """Place, x − x̂, z² (into ``rate``) and ||x − x̂||²_{G^-1} (into ``whole``) of those whose z² is near the least; how many."""
    evidence, rest = rivals.evidence, rivals.rest
    for i in range(size):
        evidence[i] = gaps[i] * gaps[i] / (noise * squares[i]) if squares[i] > 0.0 else math.inf
    least = math.inf
    for i in range(size):
        least = min(least, evidence[i])
    rivals.extremes[0] = least
    left = 0
    for i in range(size):
        if evidence[i] > least + _CUT or not squares[i] > 0.0:  # the leader itself has 0, and its duplicates
            continue
        rivals.place[left] = i
        rivals.rate[left] = evidence[i]
        rivals.whole[left] = squares[i]
        for a in range(len(rest)):
            rest[a, left] = features[a, i] - features[a, leader]
        left += 1
    return left


@compiled
def _list_rivals(
    rivals: Any,
    inverse: Any,
    features: Any,
    size: Any,
    leader: Any,
    gaps: Any,
    squares: Any,
    noise: Any,
) -> Any:
    """All rivals that can count, with their worth and their lengths; how many, and the place of the worthiest."""
    _compare_as_if_known(rivals, inverse, features, leader)
    left = _pick_out(rivals, features, size, leader, gaps, squares, noise)
    rate, whole, length, rest = rivals.rate, rivals.whole, rivals.length, rivals.rest
    least = rivals.extremes[0]
    common = _DENSITY_AT_ZERO * math.exp(-0.5 * least)
    for j in range(left):
        density = common * _decay(0.5 * (rate[j] - least))
        rate[j] = math.sqrt(noise * whole[j]) * density * (1.0 + 0.5 * rate[j])
        length[j] = 0.0
    for a in range(len(rest)):
        for b in range(a + 1):
            x = rivals.metric[a, b] if a == b else 2.0 * rivals.metric[a, b]
            for j in range(left):
                length[j] += x * rest[a, j] * rest[b, j]
    best = 0
    most = 0.0
    for j in range(left):
        if length[j] > 0.0 and rate[j] > most:
            best, most = j, rate[j]
    rivals.extremes[1] = most
    for j in range(left):
        counts = length[j] > 0.0 and rate[j] > LEFT_OUT * most  # if not, it never will, whatever is taken before it
        rivals.logarithm[j] = math.log(whole[j]) if counts else 0.0
        rate[j] = rate[j] / length[j] if counts else 0.0
        whole[j] = length[j]
    return left if most > 0.0 else 0, best


@compiled
def _difference_image(image: Any, inverse: Any, features: Any, i: Any, leader: Any) -> None:
    """u = G^-1(x − x̂)."""
    r = len(image)
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += inverse[a, b] * (features[b, i] - features[b, leader])
        image[a] = total


@compiled
def _odds_of_a_tie(features: Any, i: Any, leader: Any, square: Any, z: Any) -> Any:
    """The evidence for a difference of 0 over one of N(0, s₀²): √M exp(−(1 − 1/M) z²/2)."""
    before = 0.0
    for a in range(len(features)):
        difference = features[a, i] - features[a, leader]
        before += difference * difference
    known = max(before / square, 1.0)
    return math.sqrt(known) * math.exp(-0.5 * (1.0 - 1.0 / known) * z * z)


@compiled
def _needs_others(image: Any, inverse: Any, features: Any, i: Any, width: Any) -> Any:
    """Near 1 where pulls of x itself tell less than a thousandth of what a spanner arm tells about x − x̂; else near 0."""
    along = most = 0.0
    for a in range(len(image)):  # the spanner's arms are the unit vectors of these coordinates
        along += image[a] * features[a, i]
        most = max(most, image[a] * image[a] / (1.0 + max(inverse[a, a], 0.0)))
    own = along * along / (1.0 + max(width, 0.0))
    return math.exp(-_LITTLE * own / max(most, own)) if most > 0.0 else 0.0


@compiled
def _decay(x: Any) -> Any:
    """exp(−x) for x from 0 to 16, to fourteen digits: without a call, so that loops with it are compiled for many arms at once."""
    y = x * (-1.0 / 64.0)
    power = 1.0 + y * (
        1.0
        + y
        * (
            0.5
            + y
            * (
                1.0 / 6.0
                + y
                * (
                    1.0 / 24.0
                    + y
                    * (
                        1.0 / 120.0
                        + y * (1.0 / 720.0 + y * (1.0 / 5040.0 + y * (1.0 / 40320.0 + y * (1.0 / 362880.0))))
                    )
                )
            )
        )
    )
    power *= power
    power *= power
    power *= power
    power *= power
    power *= power
    return power * power


@compiled
def _split_off(rivals: Any, left: Any, distance: Any) -> None:
    """How much of each rest points along ``rivals.dual``, how much of that is dropped, and the squared length that remains."""
    along, dropped, dual, length = rivals.along, rivals.dropped, rivals.dual, rivals.length
    for j in range(left):
        along[j] = 0.0
    for a in range(len(dual)):
        x = dual[a]
        for j in range(left):
            along[j] += x * rivals.rest[a, j]
    for j in range(left):
        q = (rivals.logarithm[j] - distance) * _SAME_DISTANCE
        q *= q
        same = _decay(min(q * q, 16.0)) if q >= 0.01 else 1.0
        same = same if q < 4.0 else 0.0
        part = max(along[j], 0.0)
        dropped[j] = part * (1.0 - math.sqrt(1.0 - same))
        length[j] -= same * part * part


@compiled
def _drop_what_is_known(rivals: Any, left: Any, best: Any, least: Any) -> Any:
    """Less of the others is new once ``best`` counts; it, and those with less than ``least`` left, leave the list.

    Returns how many are left, and the place of the worthiest.
    """
    unit, dual, rest, length = rivals.unit, rivals.dual, rivals.rest, rivals.length
    r = len(unit)
    norm = math.sqrt(length[best])
    for a in range(r):
        unit[a] = rest[a, best] / norm
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += rivals.metric[a, b] * unit[b]
        dual[a] = total
    _split_off(rivals, left, rivals.logarithm[best])
    kept = following = 0
    most = -1.0
    for j in range(left):
        value = rivals.rate[j] * length[j]
        if j == best or not value > least or length[j] <= 1e-12 * rivals.whole[j]:
            continue
        for a in range(r):
            rest[a, kept] = rest[a, j] - rivals.dropped[j] * unit[a]
        length[kept] = length[j]
        rivals.whole[kept] = rivals.whole[j]
        rivals.rate[kept] = rivals.rate[j]
        rivals.place[kept] = rivals.place[j]
        rivals.logarithm[kept] = rivals.logarithm[j]
        if value > most:
            following, most = kept, value
        kept += 1
    return kept, following
