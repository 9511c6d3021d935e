"""The pricing pass: both bounds of the certificate over all arms of a large set, block by block.

Tasks are small frozen objects that can travel to wherever the blocks are; what they return is small too. Each arm is
looked at in plain arithmetic first, with a bound on its rounding error that is valid for every arm; the few arms that could
matter are then computed as accurately as those of small problems (double-double where digits cancel).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from allocopt.base.validation import Array, IntArray
from allocopt.certify.frame import Frame
from allocopt.linear.floating import UNIT
from allocopt.linear.quotient_map import QuotientMap
from allocopt.model.arms.blocks import first_of_copies, scratch
from allocopt.model.arms.survey import largest_entries
from allocopt.model.streamed_program import GapRule

__all__ = ["VIOLATION", "PriceReport", "PriceTask", "merge_prices", "merged_prices"]

_IMAGE_ENTRIES = 20_000  # of the images that are made at a time: few, since every thread has its own
_LEAST_ROWS = 256
_AT_A_TIME = 1024  # arms that are computed accurately at a time: in the first pass of bounded programs that may be all of a block
VIOLATION = 1e-12  # relative: an arm outside the pool that exceeds all inside by less than this does so by rounding


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
    rest_constraint: float = 0.0
    """max_j g_j over the arms that are not among ``targets`` and not below what is reached anyway, padded for rounding."""
    rest_price: float = 0.0
    """Likewise for prices and ``features``."""


@dataclass(frozen=True, eq=False)
class PriceTask:
    """One pricing pass: g and p of every arm for an allocation and multipliers that define the frame."""

    quotient: QuotientMap
    frame: Frame
    gaps: GapRule
    scale: float
    """The radius of an arm's constraint is scale·Δ²."""
    image: Array
    """The quotient and the frame's basis as one matrix; then θ as one more column, where gaps come from it."""
    image_error: float
    """Bound on the error of a row's image."""
    gap_error: float
    """Bound on the error of a gap in plain arithmetic."""
    free: IntArray
    inside_constraint: float
    """g that is reached anyway by the arms in the master: below it an arm is of no interest, and likewise for prices."""
    inside_price: float
    keep: int
    screen: tuple[float, float] | None = None
    """What g and |a|² are multiplied with before they are compared with 1 (see `StreamedProblem.screening`)."""
    with_variances: bool = False
    """Whether every arm has a variance of its own, which then comes with each block."""
    bounded: bool = False
    """Whether α has bounds: then every arm counts, copies too, and all that could matter are listed."""

    def __call__(self, start: int, block: Array, *aligned: Array) -> PriceReport:
        """Price a block. ``aligned`` is the block's part of given gaps, of variances and of the mask of arms alive, if any."""
        rest = list(aligned)
        given = rest.pop(0) if self.gaps.given else None
        noise = rest.pop(0) if self.with_variances else None
        alive = np.flatnonzero(rest.pop(0)) if rest else None
        if alive is not None and 2 * len(alive) < len(block):
            if not len(alive):
                return PriceReport(0.0, 0.0, _NONE, _EMPTY, _NONE, _EMPTY, 0, np.zeros(len(block), dtype=np.bool_))
            own_gaps, own_noise = (None if array is None else array[alive] for array in (given, noise))
            report = self._price(block[alive], own_gaps, own_noise, self._free(start, len(block), alive))
            mask = np.zeros(len(block), dtype=np.bool_)
            mask[alive] = True if report.mask is None else report.mask
            places = alive + start
            return PriceReport(report.constraint, report.price, places[report.targets], report.constraints,
                               places[report.features], report.prices, report.alive, mask,
                               report.rest_constraint, report.rest_price)  # fmt: skip
        report = self._price(block, given, noise, self._free(start, len(block), None))
        return PriceReport(report.constraint, report.price, report.targets + start, report.constraints,
                           report.features + start, report.prices, report.alive, report.mask,
                           report.rest_constraint, report.rest_price)  # fmt: skip

    def _free(self, start: int, length: int, alive: IntArray | None) -> IntArray:
        """The places in a block of the arms that cost nothing."""
        low, high = np.searchsorted(self.free, (start, start + length))
        places = self.free[low:high] - start
        return places if alive is None or not len(places) else np.flatnonzero(np.isin(alive, places))

    def _price(self, block: Array, given: Array | None, noise: Array | None, free: IntArray) -> PriceReport:
        frame, image_error = self.frame, self.image_error
        means, norm2, prices = self._plain(block)
        gaps = np.ones(len(block)) if given is None else given.copy()
        if means is not None:
            gaps = self.gaps.best - means
        gaps[free] = np.inf
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # what the arm can be at most, given the rounding of this cheap look at it
            least_gap = np.maximum(gaps - self.gap_error, 0.0) * (1.0 - 8.0 * UNIT)
            errors = np.broadcast_to(image_error, norm2.shape)
            most = frame.most_constraint(norm2, errors)
            top_constraint = most / (least_gap * least_gap * self.scale)
            least_weight = (
                least_gap if noise is None else least_gap * noise * (1.0 - 4.0 * UNIT)
            )  # Δσ², the cost of 1/σ²
            top_price = frame.most_price(prices, norm2, errors) / least_weight
        top_constraint[free] = top_price[free] = 0.0
        # written so that nan, where nothing is known, counts as relevant
        relevant = np.flatnonzero(~((top_constraint <= self.inside_constraint) & (top_price <= self.inside_price)))
        mask = None
        alive = len(block) - len(free)
        if self.screen is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                mask = ~((top_constraint * self.screen[0] < 1.0) & (most / least_weight * self.screen[1] < 1.0))
            mask[free] = False
            alive = int(mask.sum())
        return self._accurately_priced(block, given, noise, relevant[~np.isin(relevant, free)], alive, mask)

    def _plain(self, block: Array) -> tuple[Array | None, Array, Array]:
        """⟨x, θ⟩, where gaps come from it, |ŵ|² and Σ_c D_c ŵ_c² of every arm, from images that are made a few at a time."""
        spectrum = self.frame.spectrum
        columns = self.image.shape[1]
        weights = np.column_stack([np.ones(len(spectrum)), spectrum])
        means = None if self.gaps.theta is None else np.empty(len(block))
        sums = np.empty((len(block), 2))
        step = max(_LEAST_ROWS, _IMAGE_ENTRIES // columns)
        for first in range(0, len(block), step):
            rows = block[first : first + step]
            squares = np.matmul(rows, self.image, out=scratch("image", len(rows), columns))
            if means is not None:
                means[first : first + step] = squares[:, -1]
                squares = squares[:, :-1]
            squares *= squares
            np.matmul(squares, weights, out=sums[first : first + step])
        return means, sums[:, 0], sums[:, 1]

    def _accurately_priced(
        self, block: Array, given: Array | None, noise: Array | None, relevant: IntArray, alive: int,
        mask: NDArray[np.bool_] | None,
    ) -> PriceReport:  # fmt: skip
        """The arms that could matter, computed again as those of small programs are."""
        if not len(relevant):
            return PriceReport(0.0, 0.0, _NONE, _EMPTY, _NONE, _EMPTY, alive, mask)
        frame = self.frame
        if len(relevant) > len(frame.spectrum) and not self.bounded:
            # of copies, in all that an arm has, one stands for all, and leaves the places of the others to other arms
            known = [x[relevant] for x in (block, given, noise) if x is not None]
            relevant = relevant[first_of_copies(np.column_stack(known))]
        rows = block[relevant]
        gaps = self.gaps.careful(rows, None if given is None else given[relevant])
        own = None if noise is None else noise[relevant]
        g, most_g, p, most_p = np.empty((4, len(relevant)))
        for first in range(0, len(relevant), _AT_A_TIME):
            some = slice(first, first + _AT_A_TIME)
            g[some], most_g[some], p[some], most_p[some] = self._carefully(
                rows[some], gaps[some], None if own is None else own[some]
            )
        if self.bounded:
            targets, prices = (
                _above(most_g, self.inside_constraint, self.keep),
                _above(most_p, self.inside_price, self.keep),
            )
        else:
            targets = _above(g, self.inside_constraint * (1.0 + VIOLATION), self.keep)
            prices = _above(p, self.inside_price * (1.0 + VIOLATION), self.keep)
        return PriceReport(
            float(most_g.max(initial=0.0)), float(most_p.max(initial=0.0)), relevant[targets], g[targets],
            relevant[prices], p[prices], alive, mask,
            float(np.delete(most_g, targets).max(initial=0.0)), float(np.delete(most_p, prices).max(initial=0.0)),
        )  # fmt: skip

    def _carefully(self, rows: Array, gaps: Array, noise: Array | None) -> tuple[Array, Array, Array, Array]:
        """g and p of some arms, each without margins and at most."""
        frame = self.frame
        weights = gaps if noise is None else gaps * noise
        features = self.quotient(rows) / np.sqrt(weights)[:, None]
        squares = features @ frame.basis
        squares *= squares
        norm2, p = squares.sum(axis=1), squares @ frame.spectrum
        errors = frame.errors(features, norm2)
        ratios = 1.0 / (gaps * self.scale) if noise is None else noise / (gaps * self.scale)
        most_g = frame.most_constraint(norm2, errors) * ratios * (1.0 + 16.0 * UNIT)
        return norm2 * ratios, most_g, p, frame.most_price(p, norm2, errors)


def merged_prices(reports: Iterable[PriceReport], keep: int) -> PriceReport:
    """The report of all blocks together, which are merged as they come: their lists may be as long as the blocks."""
    masks: list[NDArray[np.bool_] | None] = []
    waiting: list[PriceReport] = []
    listed = 0
    for report in reports:
        masks.append(report.mask)
        waiting.append(replace(report, mask=None))
        listed += len(report.targets) + len(report.features)
        if listed > 4 * keep:
            waiting = [merge_prices(waiting, keep)]
            listed = len(waiting[0].targets) + len(waiting[0].features)
    known = [mask for mask in masks if mask is not None]
    return replace(merge_prices(waiting, keep), mask=np.concatenate(known) if len(known) == len(masks) else None)


def merge_prices(reports: Sequence[PriceReport], keep: int) -> PriceReport:
    """The report of some blocks together."""
    targets, constraints = _best([(r.targets, r.constraints) for r in reports], keep)
    features, prices = _best([(r.features, r.prices) for r in reports], keep)
    constraint, price = _most(reports, "constraint"), _most(reports, "price")
    # what is left out of a list counts as the rest
    rest_constraint = constraint if sum(len(r.targets) for r in reports) > keep else _most(reports, "rest_constraint")
    rest_price = price if sum(len(r.features) for r in reports) > keep else _most(reports, "rest_price")
    masks = [r.mask for r in reports if r.mask is not None]
    mask: NDArray[np.bool_] | None = np.concatenate(masks) if len(masks) == len(reports) else None
    return PriceReport(
        constraint, price, targets, constraints, features, prices, sum(r.alive for r in reports), mask,
        rest_constraint, rest_price,
    )  # fmt: skip


_NONE: IntArray = np.zeros(0, dtype=np.int64)
_EMPTY: Array = np.zeros(0)


def _most(reports: Sequence[PriceReport], name: str) -> float:
    """The largest of a number over all reports; nan where one is."""
    return float(np.max([getattr(r, name) for r in reports]))


def _best(parts: Sequence[tuple[IntArray, Array]], keep: int) -> tuple[IntArray, Array]:
    indices = np.concatenate([p[0] for p in parts])
    values = np.concatenate([p[1] for p in parts])
    order = np.argsort(-values, kind="stable")[:keep]
    return indices[order], values[order]


def _above(values: Array, limit: float, count: int) -> IntArray:
    """Places of the ``count`` largest values above a limit."""
    above = np.flatnonzero(values > limit)
    return above[largest_entries(values[above], count)]
