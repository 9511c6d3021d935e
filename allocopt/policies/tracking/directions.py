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

*Near ties that can wait.* Where z_x is small and pulls of x itself tell next to nothing about x − x̂ (less than a thousandth of
what another arm tells), λ_x is multiplied by 1 − patience·exp(−2z_x²).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import compiled

__all__ = ["CUT", "Rivals", "weigh"]

CUT = 2.0 * math.log(1e6)
"""A rival whose z² is larger than the smallest by more than this is left out: it counts less than a millionth."""
_LEFT_OUT = 1e-2  # of all that was counted: what is left of a rival's worth is then not looked at any more
_SAME_DISTANCE = 1.0 / 1.5
_NEAR_TIE = 1.5  # z beyond which it is none
_LITTLE = 1000.0
_KNOWN_LEADER = 0.01  # of the leader's own squared width remains when directions are compared
_ROOT_TWO = math.sqrt(2.0)
_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)  # φ(0)


class Rivals(NamedTuple):
    """Scratch for up to k rivals in r coordinates; all are in the order of the arms that were passed."""

    place: IntArray
    """Where among the arms that were passed."""
    rest: Array
    """What is new of x − x̂, shape (r, k)."""
    length: Array
    """Its squared length, with a well-known leader; and at first:"""
    whole: Array
    logarithm: Array
    """log s²/σ²."""
    worth: Array
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
            place=np.zeros(k, np.int64),
            rest=np.zeros((r, k)),
            length=np.zeros(k),
            whole=np.zeros(k),
            logarithm=np.zeros(k),
            worth=np.zeros(k),
            metric=np.zeros((r, r)),
            unit=np.zeros(r),
            dual=np.zeros(r),
            prices=np.zeros((r, r)),
        )


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
    left = _list_rivals(rivals, inverse, features, size, leader, gaps, squares, noise)
    expected = counted = bound = 0.0
    while left > 0:
        best, top = 0, -1.0
        for j in range(left):
            value = rivals.worth[j] * rivals.length[j] / rivals.whole[j]
            if value > top:
                best, top = j, value
        if top <= _LEFT_OUT * counted:
            break
        counted += top
        i = rivals.place[best]
        new = rivals.length[best] / rivals.whole[best]
        s = math.sqrt(noise * squares[i])
        z = gaps[i] / s
        density = _DENSITY_AT_ZERO * math.exp(-0.5 * z * z)
        expected += new * s * max(density - 0.5 * z * math.erfc(z / _ROOT_TWO), 0.0)
        weight = scale * noise * new * rivals.worth[best] / (2.0 * s * s)
        bound += weight * squares[i]
        _difference_image(rivals.dual, inverse, features, i, leader)
        if patience > 0.0 and z < _NEAR_TIE:
            weight *= 1.0 - patience * math.exp(-2.0 * z * z) * _needs_others(rivals.dual, features, size, i, widths)
        for a in range(r):
            for b in range(a + 1):
                prices[a, b] += weight * rivals.dual[a] * rivals.dual[b]
        left = _drop_what_is_known(rivals, left, best, _LEFT_OUT * counted)
    return expected, bound


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
    """All rivals that can count, with their worth and their lengths; how many."""
    r = len(inverse)
    metric, dual, rest = rivals.metric, rivals.dual, rivals.rest
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
    least = math.inf
    for i in range(size):
        if squares[i] > 0.0:
            least = min(least, gaps[i] * gaps[i] / (noise * squares[i]))
    left = 0
    for i in range(size):
        if not squares[i] > 0.0:  # the leader itself, and its duplicates
            continue
        square = gaps[i] * gaps[i] / (noise * squares[i])
        if square > least + CUT:
            continue
        density = _DENSITY_AT_ZERO * math.exp(-0.5 * square)
        rivals.worth[left] = math.sqrt(noise * squares[i]) * density * (1.0 + 0.5 * square)
        rivals.place[left] = i
        rivals.logarithm[left] = math.log(squares[i])
        length = 0.0
        for a in range(r):
            rest[a, left] = features[a, i] - features[a, leader]
        for a in range(r):
            total = 0.0
            for b in range(r):
                total += metric[a, b] * rest[b, left]
            length += total * rest[a, left]
        rivals.length[left] = rivals.whole[left] = length
        if length > 0.0 and rivals.worth[left] > 0.0:
            left += 1
    return left


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
def _needs_others(image: Any, features: Any, size: Any, i: Any, widths: Any) -> Any:
    """Near 1 where pulls of x itself tell less than a thousandth of what another arm tells about x − x̂; else near 0."""
    r = len(image)
    most = own = 0.0
    for j in range(size):
        along = 0.0
        for a in range(r):
            along += image[a] * features[a, j]
        told = along * along / (1.0 + max(widths[j], 0.0))
        most = max(most, told)
        if j == i:
            own = told
    return math.exp(-_LITTLE * own / most) if most > 0.0 else 0.0


@compiled
def _drop_what_is_known(rivals: Any, left: Any, best: Any, least: Any) -> Any:
    """Less of the others is new once ``best`` counts; it, and those with less than ``least`` left, leave the list."""
    unit, dual, rest = rivals.unit, rivals.dual, rivals.rest
    r = len(unit)
    norm = math.sqrt(rivals.length[best])
    distance = rivals.logarithm[best]
    for a in range(r):
        unit[a] = rest[a, best] / norm
    for a in range(r):
        total = 0.0
        for b in range(r):
            total += rivals.metric[a, b] * unit[b]
        dual[a] = total
    kept = 0
    for j in range(left):
        if j == best:
            continue
        length = rivals.length[j]
        along = 0.0
        for a in range(r):
            along += dual[a] * rest[a, j]
        step = 0.0
        if along > 0.0:
            q = (rivals.logarithm[j] - distance) * _SAME_DISTANCE
            if abs(q) < 0.1:
                same, step = 1.0, along
            elif abs(q) < 2.0:
                same = math.exp(-(q * q * q * q))
                step = along * (1.0 - math.sqrt(1.0 - same))
            else:
                same = 0.0
            length -= same * along * along
        if not rivals.worth[j] * length > least * rivals.whole[j] or length <= 1e-12 * rivals.whole[j]:
            continue
        for a in range(r):
            rest[a, kept] = rest[a, j] - step * unit[a]
        rivals.length[kept] = length
        rivals.whole[kept] = rivals.whole[j]
        rivals.worth[kept] = rivals.worth[j]
        rivals.place[kept] = rivals.place[j]
        rivals.logarithm[kept] = rivals.logarithm[j]
        kept += 1
    return kept
