r"""What is fixed by lower bounds, summed over all arms block by block: M_0 = Σ l_i q_i q_iᵀ/σ_i² and its cost Σ l_i κ_i.

The sum is made once, in coordinates C in which all that can be played amounts to about I, and kept as r rows B with BᵀB about
M_0 and a bound on ||Cᵀ(M_0 − BᵀB)C|| (`SumError`). Every later frame takes its own share of that bound, so no pass has to
look at what is fixed again. Letters are those of docs/certificates.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import SumError
from allocopt.certify.frame import Frame, padding
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT, gamma
from allocopt.linear.quotient_map import QuotientMap
from allocopt.model.streamed_program import GapRule

__all__ = ["FixedReport", "FixedSum", "FixedTask"]

_AT_A_TIME = 1024  # arms of a block: every thread has their images of its own
_LARGE_ERROR = 1e-12  # of an image or of a gap, relatively, beyond which it is computed accurately


@dataclass(frozen=True, eq=False)
class FixedReport:
    """What is fixed in some blocks."""

    gram: Array
    """Σ l ŵŵᵀ/σ² of the computed images."""
    trace: float
    """Σ l|ŵ|²/σ², rounded up."""
    error2: float
    """Σ l e²/σ², rounded up: e are bounds on the errors of the images."""
    cost: float
    """Σ l κ."""
    cost_error: float
    """Σ l |error of κ|, rounded up."""
    terms: int
    """The longest sum behind any of these."""


@dataclass(frozen=True, eq=False)
class FixedTask:
    """The sums of a block, in the coordinates ``basis`` of the quotient."""

    quotient: QuotientMap
    basis: Array
    gaps: GapRule
    image: Array
    """The quotient and the basis as one matrix; then θ as one more column, where gaps come from it."""
    image_error: float
    gap_error: float
    free: IntArray
    divisor: float
    """What comes with each block is l times this."""
    with_variances: bool = False

    def __call__(self, start: int, block: Array, *aligned: Array) -> FixedReport:
        """``aligned`` is the block's part of given gaps, of variances and of l times the divisor."""
        rest = list(aligned)
        given = rest.pop(0) if self.gaps.given else None
        noise = rest.pop(0) if self.with_variances else None
        low, high = np.searchsorted(self.free, (start, start + len(block)))
        free = self.free[low:high] - start
        r, n = len(self.basis), 0
        gram, sums = np.zeros((r, r)), np.zeros(4)
        for first in range(0, len(block), _AT_A_TIME):
            place = slice(first, first + _AT_A_TIME)
            fixed = rest[0][place] / self.divisor
            fixed[free[(free >= first) & (free < first + _AT_A_TIME)] - first] = 0.0
            some = np.flatnonzero(fixed)
            own = [None if x is None else x[place][some] for x in (given, noise)]
            more, these = self._sums(block[place][some], fixed[some], *own)
            gram += more
            sums += these
            n += len(some)
        margin = padding(r) * (1.0 + gamma(n + 8))
        return FixedReport(
            gram, float(sums[0]) * margin, float(sums[1]) * margin, float(sums[2]), float(sums[3]) * margin, n
        )

    def _sums(
        self, rows: Array, fixed: Array, given: Array | None, noise: Array | None
    ) -> tuple[Array, tuple[float, float, float, float]]:
        """The matrix, the trace, the error, the cost and its error of some arms, without margins."""
        weights = fixed if noise is None else fixed / noise
        images = rows @ self.image
        if self.gaps.theta is None:
            gaps = np.ones(len(rows)) if given is None else given
            gap_errors = np.zeros(len(rows))
        else:
            gaps, images = self.gaps.best - images[:, -1], images[:, :-1]
            gap_errors = np.full(len(rows), self.gap_error)
            rough = np.flatnonzero(~(self.gap_error <= _LARGE_ERROR * gaps))
            gaps[rough] = self.gaps.careful(rows[rough], None)
            gap_errors[rough] = GAP_ERROR * gaps[rough]
        images, errors = self._sharpened(rows, images)
        sums = (
            float(weights @ squared_row_lengths(images)), float(weights @ (errors * errors)), float(fixed @ gaps),
            float(fixed @ gap_errors),
        )  # fmt: skip
        return (images * weights[:, None]).T @ images, sums

    def _sharpened(self, rows: Array, images: Array) -> tuple[Array, Array]:
        """Images and bounds on their errors; those of which plain arithmetic leaves too few digits are computed accurately."""
        errors = np.full(len(rows), self.image_error)
        rough = np.flatnonzero(~(self.image_error <= _LARGE_ERROR * np.sqrt(squared_row_lengths(images))))
        if len(rough):
            r = len(self.basis)
            accurate = self.quotient(rows[rough])
            images[rough] = accurate @ self.basis
            for_errors = Frame(self.basis, np.zeros(r), 0.0, 0.0, 0.0, gamma(r + 2) + ENTRY_ERROR, 0.0)
            errors[rough] = for_errors.errors(accurate, squared_row_lengths(images[rough]))
        return images, errors


@dataclass(frozen=True, eq=False)
class FixedSum:
    """What is fixed, over all arms: a few rows in its place, its cost, and how accurate both are."""

    rows: Array
    error: SumError
    cost: float
    cost_error: float
    """Relative."""

    @classmethod
    def of(cls, reports: Sequence[FixedReport], basis: Array) -> FixedSum:
        """The sums of all blocks together."""
        r = len(basis)
        terms = max(report.terms for report in reports) + len(reports) + 8
        gram = np.sum([report.gram for report in reports], axis=0)
        margin = 1.0 + gamma(len(reports) + 8)
        trace, error2, cost_error = (
            float(np.sum([getattr(report, name) for report in reports])) * margin
            for name in ("trace", "error2", "cost_error")
        )
        # the sum as it was computed; then images that are wrong by e, and weights by a few roundings
        wrong = float(np.sqrt(error2))
        size = gamma(terms) * trace + wrong * (2.0 * float(np.sqrt(trace)) + wrong) + 8.0 * UNIT * trace
        inverse: Array = np.asarray(np.linalg.inv(basis), dtype=np.float64)
        values, axes = np.linalg.eigh(0.5 * (gram + gram.T))
        rows = np.ascontiguousarray((np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T) @ inverse)
        # what the rows amount to in the same coordinates
        images = rows @ basis
        image_error = gamma(r + 2) * float(np.linalg.norm(np.abs(rows) @ np.abs(basis)))
        length = float(np.linalg.norm(images))
        distance = float(np.linalg.norm(images.T @ images - gram)) + gamma(r + 4) * length * length
        size += distance + image_error * (2.0 * length + image_error)
        size *= padding(r * r) * (1.0 + 8.0 * UNIT)
        cost = float(np.sum([report.cost for report in reports]))
        relative = gamma(terms) + (cost_error / cost if cost > 0 else 0.0) + 8.0 * UNIT
        return cls(rows, SumError(basis, inverse, size), cost, relative)
