r"""The pricing pass where α has bounds l <= α <= u: every arm that could matter is listed, and both bounds are those of the lists.

The lower bound is the one of section 1 of docs/certificates.md: an arm whose price is at most 1/q adds nothing to it, so the arms
above the 1/q that suits the pool are all that is needed for any smaller q. Upper bounds need an α that is feasible itself:
constraints that hold at α hold at every larger one, so only those that do not are looked at while it grows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array, IntArray
from allocopt.certify.by_block.findings import BoundsOverAll, Pass
from allocopt.certify.by_block.pricing import VIOLATION, PriceReport
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import base_price, best_scale, largest_upper, make_feasible
from allocopt.certify.frame import Frame, frame_of, images
from allocopt.linear.floating import gamma

__all__ = ["price_within_bounds"]

_HOLDS = 1.0 - 1e-11  # a constraint up to which nothing is done about it
_REACHED = (
    1.0 - 2e-11
)  # what others are brought down to: then the same α is feasible in other proofs too, with other margins
_FAR = 4.0  # times the error of the sum of what is fixed that it may grow to in another basis before it is summed anew


class _Arms(Protocol):
    """What is asked of the arms of a large set."""

    def part(self, pool: IntArray) -> Canonical:
        """The problem of some arms."""

    def scan_bounded(self, frame: Frame, inside_constraint: float, inside_price: float, pool: int) -> PriceReport:
        """A look at all arms, which lists all that are above what is reached inside."""

    def sum_fixed(self, basis: Array) -> None:
        """Sum what is fixed anew, in another basis."""


@dataclass(frozen=True, eq=False)
class _Priced:
    """Some arms in a frame, in both roles, without margins and at most."""

    constraint: Array
    most_constraint: Array
    price: Array
    most_price: Array
    upper: Array

    @classmethod
    def of(cls, frame: Frame, part: Canonical) -> _Priced:
        """The arms of a part."""
        assert part.ratios is not None
        norm2, price, errors = images(frame, part.features)
        squares = part.ratios**2
        upper = largest_upper(part)
        return cls(
            norm2 * squares, frame.most_constraint(norm2, errors) * squares * frame.inflation, price,
            frame.most_price(price, norm2, errors), np.full(len(price), np.inf) if upper is None else upper,
        )  # fmt: skip


def price_within_bounds(arms: _Arms, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array) -> Pass:
    """Certify (α, λ), given on a pool of arms, for all arms; find the arms that violate most.

    α is first enlarged until the pool's own constraints hold: then copies of its arms are not listed. Where that is not enough
    for all arms, both bounds are computed once more, from what is kept.
    """
    alpha = _enlarged_for_pool(part, alpha)
    first = _priced(arms, pool, part, alpha, multipliers)
    feasible = first.bounds.alpha
    if not np.isfinite(first.bounds.upper) or np.array_equal(feasible, alpha):
        return first
    return replace(first, bounds=_priced(arms, pool, part, feasible, multipliers).bounds, looks=2)


def _enlarged_for_pool(part: Canonical, alpha: Array) -> Array:
    """α within its upper bounds, and such that the constraints of the pool hold, where that is possible."""
    if part.upper is not None:
        alpha = np.minimum(alpha, part.upper)
    frame = frame_of(part, alpha, np.zeros(len(part.targets)))
    if frame is None:
        return alpha
    none = np.zeros(0)
    enough, cost = _feasible(frame, part, alpha, _Priced.of(frame, part), part.targets[:0], _Priced(*[none] * 5), 0.0)
    return enough if np.isfinite(cost) else alpha


def _priced(arms: _Arms, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array) -> Pass:
    """One look at all arms."""
    frame = frame_of(part, alpha, multipliers)
    if frame is None:
        raise SolverFailed("the information matrix is numerically singular")
    own = _Priced.of(frame, part)
    slope = frame.slope - base_price(part, frame) if frame.strength > 0 else 0.0
    q = best_scale(slope, own.most_price, own.upper)[0]
    inside = 1.0 / q if q > 0 else float(own.most_price.max(initial=0.0))
    found = arms.scan_bounded(frame, _HOLDS, inside, len(pool))
    dear, asked = (x[~np.isin(x, pool)] for x in (found.features, found.targets))
    others, goals = _Priced.of(frame, arms.part(dear)), arms.part(asked)
    goal = _Priced.of(frame, goals)
    # the last price stands for all arms that are not listed
    prices = np.concatenate([own.most_price, others.most_price, [np.maximum(inside, found.rest_price)]])
    if not np.isfinite(prices).all():
        raise SolverFailed("the information matrix is numerically singular")
    q, lower = best_scale(slope, prices, np.concatenate([own.upper, others.upper, [np.inf]]))
    feasible, cost = _feasible(frame, part, alpha, own, goals.targets, goal, found.rest_constraint)
    bounds = BoundsOverAll(
        (cost + part.offset * (1.0 + gamma(8))) * (1.0 + part.bound_error) * frame.inflation,
        max(lower + part.offset * (1.0 - 2.0 * part.bound_error - gamma(8)), 0.0) / frame.inflation,
        feasible, _scaled(multipliers, own.constraint, q), own.constraint, own.price * q, 2.0 * frame.drift,
        pool, _binding(pool, own, multipliers, asked, goal), found.alive,
    )  # fmt: skip
    if part.sum_error is not None and part.sum_error.within(frame.basis) > _FAR * part.sum_error.size:
        arms.sum_fixed(frame.basis)
    limit = 1.0 + VIOLATION
    return Pass(bounds, dear[others.price > inside * limit], asked[goal.constraint > limit], True)


def _feasible(
    frame: Frame, part: Canonical, alpha: Array, own: _Priced, goals: Array, goal: _Priced, rest: float
) -> tuple[Array, float]:
    """α enlarged until all constraints hold for sure, and its cost; ``rest`` is the largest of those that are not listed."""
    if not rest <= 1.0:
        return alpha, float("inf")
    near = ~(own.most_constraint <= _HOLDS)
    most = np.concatenate([own.most_constraint[near], goal.most_constraint]) / _REACHED
    if not len(most):
        return alpha, frame.cost
    targets = np.concatenate([part.targets[near], goals]) / np.sqrt(_REACHED)
    return make_feasible(replace(part, targets=targets, ratios=None), alpha, most, frame.cost)


def _scaled(multipliers: Array, constraints: Array, q: float) -> Array:
    """λ in the scale of the dual; the bounds do not depend on it."""
    total = max(float(multipliers.sum()), 1e-300)
    result: Array = multipliers / total * (q * (float(multipliers @ constraints) / total) ** 2)
    return result


def _binding(pool: IntArray, own: _Priced, multipliers: Array, asked: IntArray, goal: _Priced) -> IntArray:
    """The arms whose constraint is tight."""
    inside = (own.constraint >= 1.0 - BINDING) | (multipliers > BINDING * multipliers.max(initial=0.0))
    return np.union1d(pool[inside], asked[goal.constraint >= 1.0 - BINDING])
