r"""Programs over arms that are looked at block by block: a part of them as canonical arrays, and a pricing pass over all.

What `reduction` is for arrays in memory, `StreamedProblem` is for large sets: the quotient, the span with its assumptions, and
the certificate of a pair (α, λ) that is given on a few arms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import SolverFailed
from allocopt.base.long_runs.cluster import ClusterLost
from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array, IntArray
from allocopt.certify.by_block.bounded import price_within_bounds
from allocopt.certify.by_block.findings import BoundsOverAll, Pass
from allocopt.certify.by_block.fixed import FixedSum, FixedTask
from allocopt.certify.by_block.pricing import PriceReport, PriceTask, merged_prices
from allocopt.certify.by_block.screening import Screening
from allocopt.certify.by_block.span import span_of_all
from allocopt.certify.canonical import Bounds, Canonical, whitener
from allocopt.certify.frame import Frame, frame_of, images
from allocopt.certify.reduction import Quotient, bound_error, data_error
from allocopt.linear.assumptions import Assumption
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import ENTRY_ERROR, UNIT
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.linear.span import column_units, free_span
from allocopt.model.arms import spanning, survey
from allocopt.model.arms.blocks import first_of_copies
from allocopt.model.program import AllocationProgram

__all__ = ["StreamedProblem"]


class StreamedProblem:
    """A program over blocks of arms in canonical form, of which a part is looked at at a time."""

    def __init__(self, program: AllocationProgram) -> None:
        assert program._blocks is not None
        self.program = program
        self.blocks = program._blocks
        self.store = self.blocks.store
        self.n_arms = program.n_arms
        self.store.check_unchanged()
        free = self.blocks.free
        units = column_units(self.blocks.survey.sizes[None])
        free_rows = self.store.rows(free).reshape(len(free), program.dim) * units
        known = free_span(free_rows, np.arange(len(free)))
        self.sample = spanning.sampled_arms(self.store)
        span = span_of_all(self.store, known, free_rows[known.rows], units, self.sample)
        self.coordinates = span.columns
        self.rank = len(span.columns)
        modulo = Modulo.of(known.modulo.pivot_rows, known.columns, np.array(span.columns, dtype=np.int64))
        largest = np.abs(modulo(self.store.rows(self.sample) * units)).max(axis=0, initial=0.0)
        self.quotient = QuotientMap(units, modulo, column_units(largest[None]))
        self.assumptions: tuple[Assumption, ...] = (*program.assumptions, *known.assumptions, *span.assumptions)
        pivot_arms, basis_arms = (tuple(int(i) for i in arms) for arms in (free[known.rows], span.basis_arms))
        self.witness = Quotient(pivot_arms, known.columns, basis_arms, span.columns)
        self.alive: NDArray[np.bool_] | None = None
        """Which arms may still matter; None before the first pass."""
        self.screening: Screening | None = None
        self.fixed: FixedSum | None = None
        self.sums = 0
        """Looks at all arms that summed what is fixed."""
        if self.blocks.pulls is not None:
            self.sum_fixed(self._first_coordinates() if self.rank else np.eye(0))

    @property
    def fixes_something(self) -> bool:
        """Whether lower bounds fix a part of the allocation."""
        return self.fixed is not None

    def spanning_arms(self) -> IntArray:
        """Some arms that span as much as all of them, found by looking at all."""
        return self.playable(spanning.spanning_arms(self.store, self.quotient)[0])

    def first_pool(self) -> IntArray:
        """A sample of all arms, and those of the smallest gaps."""
        few = self.sample[:: max(1, len(self.sample) // (survey.KEEP * self.rank))]
        return self.candidates(np.union1d(few, self.blocks.survey.top[: survey.KEEP * self.rank // 2]))

    def spread(self, count: int) -> IntArray:
        """About so many arms, evenly spread over all."""
        return self.candidates(np.unique(np.linspace(0, self.n_arms - 1, min(count, self.n_arms)).astype(np.int64)))

    def playable(self, indices: IntArray) -> IntArray:
        """Those of some arms that cost something and are not multiples of free ones."""
        indices = np.setdiff1d(indices, self.blocks.free)
        return indices[self.quotient(self.store.rows(indices)).any(axis=1)]

    def candidates(self, indices: IntArray) -> IntArray:
        """Those of some arms that can be in a pool, without copies: the first of each set of equal arms stands for all."""
        arms = self.playable(indices)
        if self.blocks.width is not None:  # a copy of an arm may be played as much again
            return arms
        rows = self.store.rows(arms)
        own = [x[arms] for x in (self.blocks.given, self.blocks.variances) if x is not None]
        return arms[first_of_copies(np.column_stack([rows, *own]) if own else rows)]

    def pair(self, arms: IntArray, allocation: Array, multipliers: Array) -> tuple[IntArray, Array, Array] | None:
        """Those of some arms that can be in a pool, with their canonical α and λ; None where nothing is known of any."""
        pool = self.playable(arms)
        at = np.searchsorted(arms, pool)
        extra = allocation[at] - self.blocks.lower_of(pool)
        alpha = np.maximum(extra, 0.0) * self.blocks.gaps_of(pool, self.store.rows(pool))
        lam = np.maximum(multipliers[at], 0.0)
        enough = self.fixed is not None or (alpha.any() and lam.any())
        return (pool, alpha, lam) if enough and np.isfinite(alpha).all() and np.isfinite(lam).all() else None

    def nothing_to_explore(self) -> BoundsOverAll:
        """The bounds where every arm is a multiple of free ones."""
        fixed = self.fixed
        return (
            BoundsOverAll.nothing_to_explore()
            if fixed is None
            else BoundsOverAll.nothing_to_explore(fixed.cost, fixed.cost_error)
        )

    def proven(self, arms: IntArray, allocation: Array, multipliers: Array) -> Bounds:
        """What an allocation and multipliers, given on some arms, prove for all arms."""
        nothing = np.zeros(0)
        if not self.rank:
            return self.nothing_to_explore()
        known = self.pair(arms, allocation, multipliers)
        if known is None:
            return Bounds(np.inf, 0.0, nothing, nothing, nothing, nothing, np.inf)
        try:
            return self.price(known[0], self.part(known[0]), known[1], known[2], last=True).bounds
        except ClusterLost:
            raise  # nothing is wrong with the pair
        except SolverFailed:
            return Bounds(np.inf, 0.0, nothing, nothing, nothing, nothing, np.inf)

    def part(self, pool: IntArray) -> Canonical:
        """The canonical problem of some arms, in both roles."""
        rows = self.store.rows(pool)
        gaps = self.blocks.gaps_of(pool, rows)
        features = self.quotient(rows)
        del rows
        variances = self.blocks.variances
        if variances is None:
            ratios, weighted = 1.0 / np.sqrt(gaps * self.blocks.scale), gaps
        else:
            own = variances[pool]
            ratios, weighted = np.sqrt(own / (gaps * self.blocks.scale)), gaps * own
        features /= np.sqrt(weighted)[:, None]
        relative_error = data_error(self.program)
        fixed = self.fixed
        return Canonical(
            features, features * ratios[:, None], np.zeros((0, self.rank)) if fixed is None else fixed.rows,
            None if self.blocks.width is None else self.blocks.upper_of(pool, gaps) * gaps,
            0.0 if fixed is None else fixed.cost, ratios, ENTRY_ERROR + relative_error,
            relative_error + bound_error(self.program) + (0.0 if fixed is None else fixed.cost_error),
            sum_error=None if fixed is None else fixed.error,
        )  # fmt: skip

    def price(self, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array, last: bool = False) -> Pass:
        """Certify (α, λ), given on a pool of arms, for all arms; find the arms that violate most.

        Arms that were screened out are skipped, unless this must be the ``last`` word.
        """
        if self.blocks.bounded:
            return price_within_bounds(self, pool, part, alpha, multipliers)
        frame = frame_of(part, alpha, multipliers)
        if frame is None or not frame.strength > 0:
            raise SolverFailed("the information matrix is numerically singular")
        assert part.ratios is not None
        norm2, prices, errors = images(frame, part.features)
        g = norm2 * part.ratios**2
        found, complete = self._scan(frame, float(g.max()), float(prices.max()), survey.KEEP * self.rank, last)
        own = frame.most_constraint(norm2, errors) * part.ratios**2 * frame.inflation
        worst = float(np.maximum(own.max(), found.constraint)) * (1.0 + 32.0 * UNIT) * (1.0 + part.bound_error)
        top_price = float(np.maximum(frame.most_price(prices, norm2, errors).max(), found.price))
        if not (np.isfinite(worst) and np.isfinite(top_price)):
            raise SolverFailed("the information matrix is numerically singular")
        total = max(float(multipliers.sum()), 1e-300)
        scale = (float(multipliers @ g) / total) ** 2 / frame.plain_price(part.features[[np.argmax(prices)]]) / total
        binding = np.union1d(
            pool[(g >= (1.0 - BINDING) * worst) | (multipliers > BINDING * multipliers.max())],
            found.targets[found.constraints >= (1.0 - BINDING) * worst],
        )
        bounds = BoundsOverAll(
            frame.cost * worst * frame.inflation, frame.slope / top_price / frame.inflation, alpha * worst,
            multipliers * scale, g, prices / top_price, 2.0 * frame.drift, pool, binding, found.alive,
        )  # fmt: skip
        sharper = Screening.of(frame, part, alpha, top_price, bounds.upper)
        if self.screening is None or sharper.kappa < self.screening.kappa:
            self.screening = sharper
        outside = [x[~np.isin(x, pool)] for x in (found.features, found.targets)]
        return Pass(bounds, outside[0], outside[1], complete)

    def _first_coordinates(self) -> Array:
        """Coordinates in which a sample of the arms and what is fixed amount to about I."""
        self.sum_fixed(np.eye(self.rank))
        assert self.fixed is not None
        part = self.part(self.first_pool())
        lengths = squared_row_lengths(part.features)
        even = whitener(replace(part, base=part.base[:0]), 1.0 / lengths)
        if even is None:
            return np.eye(self.rank)
        enough = float(squared_row_lengths(part.targets @ even).max(initial=0.0))
        basis = whitener(part, enough / lengths)
        return np.eye(self.rank) if basis is None else basis

    def sum_fixed(self, basis: Array) -> None:
        """What is fixed, summed over all arms in these coordinates."""
        blocks = self.blocks
        image, image_error, gap_error = self._image(basis)
        task = FixedTask(
            self.quotient, basis, blocks.gap_rule, image, image_error, gap_error, blocks.free, blocks.pulls_divisor,
            blocks.variances is not None,
        )  # fmt: skip
        aligned = [array for array in (blocks.given, blocks.variances, blocks.pulls) if array is not None]
        self.fixed = FixedSum.of(list(self.store.scan(task, aligned)), basis)
        self.sums += 1

    def _image(self, basis: Array) -> tuple[Array, float, float]:
        """The quotient and a basis as one matrix, with θ as a last column, and bounds on the errors of images and gaps."""
        rule, sizes = self.blocks.gap_rule, self.blocks.survey.sizes
        image, image_error = self.quotient.image_with_error(basis, sizes)
        if rule.theta is not None:
            image = np.column_stack([image, rule.theta])
        return image, image_error, rule.plain_error(sizes)

    def scan_bounded(self, frame: Frame, inside_constraint: float, inside_price: float, pool: int) -> PriceReport:
        """A look at all arms that lists every one above what is reached inside, as far as they are not many more than the pool."""
        return self._scan(frame, inside_constraint, inside_price, survey.KEEP * self.rank + pool, True)[0]

    def _scan(
        self, frame: Frame, inside_constraint: float, inside_price: float, keep: int, last: bool
    ) -> tuple[PriceReport, bool]:
        """The pass itself: what is found in all blocks, and whether every arm was looked at."""
        blocks = self.blocks
        image, image_error, gap_error = self._image(frame.basis)
        task = PriceTask(
            self.quotient, frame, blocks.gap_rule, blocks.scale, image, image_error, gap_error, blocks.free,
            inside_constraint, inside_price, keep, None if self.screening is None else self.screening.factors(frame),
            blocks.variances is not None, blocks.bounded,
        )  # fmt: skip
        aligned: list[Any] = [array for array in (blocks.given, blocks.variances) if array is not None]
        complete = last or self.alive is None or 2 * int(self.alive.sum()) > self.n_arms
        if not complete:
            aligned.append(self.alive)
        found = merged_prices(self.store.scan(task, aligned), task.keep)
        self.alive = found.mask
        return found, complete
