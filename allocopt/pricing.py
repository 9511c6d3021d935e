"""What is asked of every arm of a large set, block by block: a survey once, and a price in every pass.

Tasks are small frozen objects that can travel to wherever the blocks are; what they return is small too. Each arm is
looked at in plain arithmetic first, with a bound on its rounding error that is valid for every arm; the few arms that could
matter are then computed as carefully as those of small problems (double-double where digits cancel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from allocopt import precise
from allocopt.arms import scratch
from allocopt.certify.canonical import Frame, conversion_error
from allocopt.quotient import QuotientMap
from allocopt.tolerances import EPS
from allocopt.validation import Array, IntArray

__all__ = [
    "ContenderTask",
    "Gaps",
    "PriceReport",
    "PriceTask",
    "SurveyReport",
    "SurveyTask",
    "merge_prices",
    "merge_surveys",
    "smallest",
]

_ACCURATE = 1e-11  # relative error up to which a row that matters is taken as it is
_VIOLATION = 1e-12  # relative, below which an arm outside the pool that is above all inside is so by rounding
_WIDER = 4.0  # times the longest arm of a block is how long it takes the best arm to be at most, at first


@dataclass(frozen=True, eq=False)
class SurveyReport:
    """What one look at the arms tells."""

    largest: float
    """The largest absolute entry; nan or inf if there is one."""
    longest: float
    """The largest Euclidean length."""
    top: IntArray
    """Arms of the largest means (or smallest gaps), for first guesses."""
    top_means: Array
    bad: tuple[int, int] | None = None
    """Where the first entry is that is not finite."""
    contenders: IntArray = field(default_factory=lambda: _NONE)
    """Arms that may tie for the best mean."""
    floor: float = -np.inf
    """What the best mean surely reaches."""
    reach: float = -np.inf
    """What no mean surpasses, the tolerance for ties of its own arm included."""
    near: float = 0.0
    """The longest that an arm of the best mean can be."""
    complete: bool = True
    """Whether no contender is missing; one can be where a block's arms are much shorter than the best arm."""


@dataclass(frozen=True, eq=False)
class SurveyTask:
    """Sizes, bad entries, and the arms of the largest means, with all that may tie for the best."""

    theta: Array | None
    keep: int
    tie_tolerance: float = 0.0

    def __call__(self, start: int, block: Array) -> SurveyReport:
        """Look at a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(np.maximum(block.max(), -block.min()))  # nan wins
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
            longest = float(lengths.max())
        if not np.isfinite(largest):
            row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
            return SurveyReport(largest, longest, _NONE, _EMPTY, (start + row, column))
        if not np.isfinite(longest):  # far out of range, which the caller refuses
            return SurveyReport(largest, longest, _NONE, _EMPTY)
        if self.theta is None:
            return SurveyReport(largest, longest, _NONE, _EMPTY)
        means = block @ self.theta
        top = _largest(means, self.keep)
        rounding, tie = _doubts(self.theta, self.tie_tolerance)
        doubt = rounding * lengths
        floor = float((means - doubt).max())
        near = float(lengths[means + doubt >= floor].max())
        most = means + doubt + tie * lengths
        contenders = np.flatnonzero(most >= floor - _WIDER * tie * longest)
        return SurveyReport(
            largest, longest, top + start, means[top], None, contenders + start, floor, float(most.max()), near
        )


def _doubts(theta: Array, tie_tolerance: float) -> tuple[float, float]:
    """What rounding and the tolerance for ties can hide of a mean, per unit of the arm's length: Σ|x_i θ_i| <= |x||θ|."""
    size = float(np.linalg.norm(theta))
    return (len(theta) + 2) * EPS * size, tie_tolerance * size


@dataclass(frozen=True, eq=False)
class ContenderTask:
    """All arms that may tie for the best mean, once it is known what that mean reaches and how long its arm can be."""

    theta: Array
    tie_tolerance: float
    floor: float
    near: float

    def __call__(self, start: int, block: Array) -> IntArray:
        """Their indices."""
        rounding, tie = _doubts(self.theta, self.tie_tolerance)
        most = block @ self.theta + (rounding + tie) * np.sqrt(np.einsum("ij,ij->i", block, block))
        return np.flatnonzero(most >= self.floor - tie * self.near) + start


def merge_surveys(reports: Sequence[SurveyReport], keep: int, tie: float = 0.0) -> SurveyReport:
    """The survey of all blocks together; ``tie`` is what the tolerance for ties amounts to per unit of an arm's length."""
    for report in reports:
        if report.bad is not None:
            return report
    top = np.concatenate([r.top for r in reports])
    means = np.concatenate([r.top_means for r in reports])
    order = np.argsort(-means, kind="stable")[:keep]
    floor = max(r.floor for r in reports)
    near = max(r.near for r in reports if r.reach >= floor)
    close = [r for r in reports if r.reach + tie * near >= floor]
    return SurveyReport(
        max(r.largest for r in reports), max(r.longest for r in reports), top[order], means[order], None,
        np.concatenate([r.contenders for r in close]), floor, max(r.reach for r in reports), near,
        all(near <= _WIDER * r.longest for r in close),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Gaps:
    """The cost of every arm: from θ, from a given vector (which then comes with each block), or 1."""

    theta: Array | None = None
    best: tuple[float, float] = (0.0, 0.0)
    """The best mean, as a double-double number."""
    given: bool = False

    def careful(self, rows: Array, given: Array | None) -> Array:
        """Gaps of some rows that are right to the last digits."""
        if self.theta is None:
            return np.ones(len(rows)) if given is None else given
        ones = np.ones(len(rows))
        top = (self.best[0] * ones, self.best[1] * ones)
        return np.maximum(precise.difference(top, precise.dot(rows, self.theta)), 0.0)


@dataclass(frozen=True, eq=False)
class PriceReport:
    """The two maxima over some arms, and the arms that violate most."""

    constraint: float
    """max_j g_j, padded for rounding."""
    price: float
    """max_i p_i, padded for rounding."""
    targets: IntArray
    constraints: Array
    features: IntArray
    prices: Array
    alive: int
    """Arms that may still matter; the others provably do not."""
    mask: NDArray[np.bool_] | None
    """Which ones, where screening was asked for."""


@dataclass(frozen=True, eq=False)
class PriceTask:
    """One pricing pass: g and p of every arm for an allocation and multipliers that define the frame."""

    quotient: QuotientMap
    frame: Frame
    gaps: Gaps
    scale: float
    """The radius of an arm's constraint is scale·Δ²."""
    image: Array
    """The quotient and the frame's basis as one matrix; then θ as one more column, where gaps come from it."""
    rough: float
    """Bound on the error of a row's image."""
    longest: float
    free: IntArray
    inside_constraint: float
    """g that is reached anyway by the arms in the master: below it an arm is of no interest, and likewise for prices."""
    inside_price: float
    keep: int
    screen: tuple[float, float] | None = None
    """What g and |a|² are multiplied with before they are compared with 1 (see `StreamedProblem.screening`)."""

    def __call__(self, start: int, block: Array, *aligned: Array) -> PriceReport:
        """Price a block. ``aligned`` is the block's part of given gaps and then of the mask of arms alive, if any."""
        rest = list(aligned)
        given = rest.pop(0) if self.gaps.given else None
        alive = np.flatnonzero(rest.pop(0)) if rest else None
        if alive is not None and 2 * len(alive) < len(block):
            if not len(alive):
                return PriceReport(0.0, 0.0, _NONE, _EMPTY, _NONE, _EMPTY, 0, np.zeros(len(block), dtype=np.bool_))
            report = self._price(
                block[alive], None if given is None else given[alive], self._free(start, len(block), alive)
            )
            mask = np.zeros(len(block), dtype=np.bool_)
            mask[alive] = True if report.mask is None else report.mask
            places = alive + start
            return PriceReport(report.constraint, report.price, places[report.targets], report.constraints,
                               places[report.features], report.prices, report.alive, mask)  # fmt: skip
        report = self._price(block, given, self._free(start, len(block), None))
        return PriceReport(report.constraint, report.price, report.targets + start, report.constraints,
                           report.features + start, report.prices, report.alive, report.mask)  # fmt: skip

    def _free(self, start: int, length: int, alive: IntArray | None) -> IntArray:
        """The places in a block of the arms that cost nothing."""
        low, high = np.searchsorted(self.free, (start, start + length))
        places = self.free[low:high] - start
        return places if alive is None or not len(places) else np.flatnonzero(np.isin(alive, places))

    def _price(self, block: Array, given: Array | None, free: IntArray) -> PriceReport:
        theta, rough = self.gaps.theta, self.rough
        squares = np.matmul(block, self.image, out=scratch("image", len(block), self.image.shape[1]))
        hidden = 0.0
        if theta is None:
            gaps = np.ones(len(block)) if given is None else given.copy()
        else:
            gaps = self.gaps.best[0] - squares[:, -1]
            squares = squares[:, :-1]
            hidden = 2.0 * (len(theta) + 2) * EPS * self.longest * float(np.linalg.norm(theta))
        squares *= squares
        sums = squares @ np.column_stack([np.ones(len(self.frame.spectrum)), self.frame.spectrum])
        norm2, prices = sums[:, 0], sums[:, 1]
        gaps[free] = np.inf
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # what the arm can be at most, given the rounding of this cheap look at it
            sure = np.maximum(gaps - hidden, 0.0)
            lengths = np.sqrt(norm2)
            most = (lengths + rough) ** 2
            top_constraint = most / (sure * sure * self.scale)
            dearest = (np.sqrt(prices) + np.sqrt(self._steepest) * (rough + self._summation * lengths)) ** 2
            top_price = dearest / sure
        top_constraint[free] = top_price[free] = 0.0
        # written so that nan, where nothing is known, counts as relevant
        relevant = np.flatnonzero(~((top_constraint <= self.inside_constraint) & (top_price <= self.inside_price)))
        mask = None
        alive = len(block) - len(free)
        if self.screen is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                mask = ~((top_constraint * self.screen[0] < 1.0) & (most / sure * self.screen[1] < 1.0))
            mask[free] = False
            alive = int(mask.sum())
        return self._careful(block, given, gaps, norm2, prices, relevant, rough, hidden, alive, mask)

    @property
    def _steepest(self) -> float:
        return float(self.frame.spectrum.max(initial=0.0))

    @property
    def _summation(self) -> float:
        return 8.0 * EPS * len(self.frame.spectrum)  # as in `Frame.summation_error`

    def _careful(
        self, block: Array, given: Array | None, gaps: Array, norm2: Array, prices: Array, relevant: IntArray,
        rough: float, hidden: float, alive: int, mask: NDArray[np.bool_] | None,
    ) -> PriceReport:  # fmt: skip
        """The arms that could matter, computed again where the cheap look was not accurate enough."""
        if not len(relevant):
            return PriceReport(0.0, 0.0, _NONE, _EMPTY, _NONE, _EMPTY, alive, mask)
        delta, norm2, prices = gaps[relevant], norm2[relevant], prices[relevant]
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = rough / np.sqrt(norm2) + hidden / delta
        poor = np.flatnonzero(~(errors <= _ACCURATE) | ~(delta > 0))
        if len(poor):
            rows = block[relevant[poor]]
            delta[poor] = self.gaps.careful(rows, None if given is None else given[relevant[poor]])
            exact = self.quotient(rows)
            squares = exact @ self.frame.basis
            squares *= squares
            norm2[poor], prices[poor] = squares.sum(axis=1), squares @ self.frame.spectrum
            errors[poor] = conversion_error(exact, self.frame.basis, norm2[poor])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            g = np.where(norm2 > 0, norm2 / (delta * delta * self.scale), 0.0)
            a2 = np.where(norm2 > 0, norm2 / delta, 0.0)
            p = np.where(norm2 > 0, prices / delta, 0.0)
        g_padded = np.where(norm2 > 0, self.frame.padded_constraints(g, errors), 0.0)
        p_padded = np.where(norm2 > 0, self.frame.padded_prices(p, a2, errors), 0.0)
        targets = _above(g, self.inside_constraint * (1.0 + _VIOLATION), self.keep)
        features = _above(p, self.inside_price * (1.0 + _VIOLATION), self.keep)
        return PriceReport(
            float(g_padded.max(initial=0.0)), float(p_padded.max(initial=0.0)), relevant[targets], g[targets],
            relevant[features], p[features], alive, mask,
        )  # fmt: skip


def merge_prices(reports: Sequence[PriceReport], keep: int) -> PriceReport:
    """The report of all blocks together."""
    targets, constraints = _best([(r.targets, r.constraints) for r in reports], keep)
    features, prices = _best([(r.features, r.prices) for r in reports], keep)
    masks = [r.mask for r in reports if r.mask is not None]
    mask: NDArray[np.bool_] | None = np.concatenate(masks) if len(masks) == len(reports) else None
    return PriceReport(
        max(r.constraint for r in reports), max(r.price for r in reports), targets, constraints, features, prices,
        sum(r.alive for r in reports), mask,
    )  # fmt: skip


_NONE: IntArray = np.zeros(0, dtype=np.int64)
_EMPTY: Array = np.zeros(0)


def _best(parts: Sequence[tuple[IntArray, Array]], keep: int) -> tuple[IntArray, Array]:
    indices = np.concatenate([p[0] for p in parts])
    values = np.concatenate([p[1] for p in parts])
    order = np.argsort(-values, kind="stable")[:keep]
    return indices[order], values[order]


def _largest(values: Array, count: int) -> IntArray:
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count)[:count])


def smallest(values: Array, count: int) -> IntArray:
    """Places of the ``count`` smallest values."""
    return _largest(-values, count)


def _above(values: Array, limit: float, count: int) -> IntArray:
    """Places of the ``count`` largest values above a limit."""
    above = np.flatnonzero(values > limit)
    return above[_largest(values[above], count)]
