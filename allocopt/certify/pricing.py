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

from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray, smallest_entry
from allocopt.certify.canonical import Frame
from allocopt.linear.floating import TINY, UNIT, gamma
from allocopt.linear.gaps import plain_doubt, refined_gaps
from allocopt.linear.modulo import Modulo
from allocopt.model.arms import scratch

__all__ = [
    "ContenderTask",
    "Gaps",
    "PriceReport",
    "PriceTask",
    "QuotientMap",
    "SurveyReport",
    "SurveyTask",
    "merge_prices",
    "merge_surveys",
    "smallest",
]

_VIOLATION = 1e-12  # relative, below which an arm outside the pool that is above all inside is so by rounding
_WIDER = 4.0  # times the longest arm of a block is how long it takes the best arm to be at most, at first


@dataclass(frozen=True, eq=False)
class SurveyReport:
    """What one look at the arms tells."""

    largest: float
    """The largest absolute entry; nan or inf if there is one."""
    longest: float
    """The largest Euclidean length."""
    sizes: Array
    """The largest absolute entry of every column."""
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
    smallest: float = np.inf
    """The smallest absolute entry that is not 0."""


@dataclass(frozen=True, eq=False)
class SurveyTask:
    """Sizes, bad entries, and the arms of the largest means, with all that may tie for the best."""

    theta: Array | None
    keep: int
    tie_tolerance: float = 0.0

    def __call__(self, start: int, block: Array) -> SurveyReport:
        """Look at a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.maximum(block.max(axis=0), -block.min(axis=0))
            largest = float(sizes.max())  # nan wins
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
            longest = float(lengths.max())
        if not np.isfinite(largest):
            row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY, (start + row, column))
        if not np.isfinite(longest):  # far out of range, which the caller refuses
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY)
        smallest = smallest_entry(block)
        if self.theta is None:
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY, smallest=smallest)
        means = block @ self.theta
        top = _largest(means, self.keep)
        rounding, tie = _doubts(self.theta, self.tie_tolerance)
        doubt = rounding * lengths
        floor = float((means - doubt).max())
        near = float(lengths[means + doubt >= floor].max())
        most = means + doubt + tie * lengths
        contenders = np.flatnonzero(most >= floor - _WIDER * tie * longest)
        return SurveyReport(
            largest, longest, sizes, top + start, means[top], None, contenders + start, floor, float(most.max()), near,
            smallest=smallest,
        )  # fmt: skip


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
        max(r.largest for r in reports), max(r.longest for r in reports), np.max([r.sizes for r in reports], axis=0),
        top[order], means[order], None,
        np.concatenate([r.contenders for r in close]), floor, max(r.reach for r in reports), near,
        all(near <= _WIDER * r.longest for r in close), min(r.smallest for r in reports),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Gaps:
    """The cost of every arm: from θ, from a given vector (which then comes with each block), or 1."""

    theta: Array | None = None
    best_row: Array = field(default_factory=lambda: _EMPTY)
    """An arm of the largest mean."""
    given: bool = False

    @property
    def best(self) -> float:
        """The largest mean, in plain arithmetic."""
        assert self.theta is not None
        return float(self.best_row @ self.theta)

    def doubt(self, sizes: Array) -> float:
        """What rounding can do to a gap in plain arithmetic, for arms with entries of at most these sizes."""
        if self.theta is None:
            return 0.0
        bound = plain_doubt(sizes[None], self.theta) + plain_doubt(self.best_row[None], self.theta)
        return float(bound[0]) * (1.0 + 8.0 * UNIT)

    def careful(self, rows: Array, given: Array | None) -> Array:
        """Gaps of some rows, to `GAP_ERROR`."""
        if self.theta is None:
            return np.ones(len(rows)) if given is None else given
        doubt = plain_doubt(rows, self.theta) + float(plain_doubt(self.best_row[None], self.theta)[0])
        return refined_gaps(rows, self.theta, self.best_row, self.best - rows @ self.theta, doubt)


@dataclass(frozen=True, eq=False)
class QuotientMap:
    """R^d → R^d / span(pivot rows), in the coordinates kept, after a power of two for every column and another for every result."""

    units: Array
    modulo: Modulo
    scale: Array

    def __call__(self, rows: Array) -> Array:
        """Some rows in the quotient, to `ENTRY_ERROR`."""
        result: Array = self.modulo(rows * self.units) * self.scale
        return result

    def rough(self, basis: Array, sizes: Array) -> tuple[Array, float]:
        """The map followed by a change of basis as one matrix C, and a bound on the error of x C for rows within these sizes."""
        d, r = len(self.units), len(self.scale)
        small = basis * self.scale[:, None]
        whole, most = np.zeros((d, r)), np.zeros((d, r))
        whole[self.modulo.columns] = small
        most[self.modulo.columns] = np.abs(small)
        if self.modulo.n:
            rule = self.modulo.rule[0]
            pivots = list(self.modulo.pivot_columns)
            whole[pivots] = -(rule @ small)
            most[pivots] = np.abs(rule) @ np.abs(small)
        whole *= self.units[:, None]
        most *= self.units[:, None]
        # rounding of C and of its products with the basis, then of the products with a row and of their sum
        return whole, gamma(d + r + 64) * float(sizes @ np.sqrt(np.einsum("ij,ij->i", most, most))) + TINY


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
    hidden: float
    """Bound on the error of a gap in plain arithmetic."""
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
        frame, rough = self.frame, self.rough
        squares = np.matmul(block, self.image, out=scratch("image", len(block), self.image.shape[1]))
        if self.gaps.theta is None:
            gaps = np.ones(len(block)) if given is None else given.copy()
        else:
            gaps = self.gaps.best - squares[:, -1]
            squares = squares[:, :-1]
        squares *= squares
        sums = squares @ np.column_stack([np.ones(len(frame.spectrum)), frame.spectrum])
        norm2, prices = sums[:, 0], sums[:, 1]
        gaps[free] = np.inf
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # what the arm can be at most, given the rounding of this cheap look at it
            sure = np.maximum(gaps - self.hidden, 0.0) * (1.0 - 8.0 * UNIT)
            errors = np.broadcast_to(rough, norm2.shape)
            most = frame.most_constraint(norm2, errors)
            top_constraint = most / (sure * sure * self.scale)
            top_price = frame.most_price(prices, norm2, errors) / sure
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
        return self._careful(block, given, relevant[~np.isin(relevant, free)], alive, mask)

    def _careful(
        self, block: Array, given: Array | None, relevant: IntArray, alive: int, mask: NDArray[np.bool_] | None
    ) -> PriceReport:
        """The arms that could matter, computed again as those of small programs are."""
        if not len(relevant):
            return PriceReport(0.0, 0.0, _NONE, _EMPTY, _NONE, _EMPTY, alive, mask)
        frame = self.frame
        rows = block[relevant]
        gaps = self.gaps.careful(rows, None if given is None else given[relevant])
        features = self.quotient(rows) / np.sqrt(gaps)[:, None]
        squares = features @ frame.basis
        squares *= squares
        norm2, p = squares.sum(axis=1), squares @ frame.spectrum
        errors = frame.errors(features, norm2)
        ratios = 1.0 / (gaps * self.scale)
        g = norm2 * ratios
        most_g = frame.most_constraint(norm2, errors) * ratios * (1.0 + 16.0 * UNIT)
        most_p = frame.most_price(p, norm2, errors)
        targets = _above(g, self.inside_constraint * (1.0 + _VIOLATION), self.keep)
        prices = _above(p, self.inside_price * (1.0 + _VIOLATION), self.keep)
        return PriceReport(
            float(most_g.max(initial=0.0)), float(most_p.max(initial=0.0)), relevant[targets], g[targets],
            relevant[prices], p[prices], alive, mask,
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
