r"""Programs over arms that are looked at block by block: a part of them as canonical arrays, and a pricing pass over all.

What `reduction` is for arrays in memory, `StreamedProblem` is for large sets: the quotient, the span with its assumptions, and
the certificate of a pair (α, λ) that is given on a few arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array, IntArray
from allocopt.certify.by_block.pricing import PriceTask, merge_prices
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.frame import Frame, frame, images
from allocopt.certify.reduction import Quotient, data_error
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption
from allocopt.linear.floating import ENTRY_ERROR, UNIT
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.linear.span import Span, column_units, free_span, largest_share, span_of
from allocopt.model.arms import spanning, survey
from allocopt.model.program import AllocationProgram

__all__ = ["BoundsOverAll", "Pass", "StreamedProblem"]

_MOST_OUTSIDE = 40  # arms of a block outside a span, those that seem farthest, whose distances are compared exactly


@dataclass(frozen=True, eq=False)
class BoundsOverAll(Bounds):
    """Bounds for all arms; the arrays are for the arms in ``pool``, and everything else is zero."""

    pool: IntArray
    binding: IntArray
    """Arms whose constraint is tight."""
    alive: int
    """Arms that may still matter, as far as is proven."""

    @classmethod
    def nothing_to_explore(cls) -> BoundsOverAll:
        """Every arm is a multiple of free ones."""
        none, nobody = np.zeros(0), np.zeros(0, dtype=np.int64)
        return cls(0.0, 0.0, none, none, none, none, 0.0, nobody, nobody, 0)


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pricing pass over all arms found."""

    bounds: BoundsOverAll
    features: IntArray
    """Arms outside the pool of the largest prices, with a price above all in the pool; largest first."""
    targets: IntArray
    """Arms outside the pool whose constraints are violated most."""
    complete: bool
    """Whether every arm was looked at, those screened out included."""


class StreamedProblem:
    """A streamed program in canonical form, seen part by part."""

    def __init__(self, program: AllocationProgram) -> None:
        assert program.blocks is not None
        self.program = program
        self.blocks = program.blocks
        self.store = self.blocks.store
        self.n_arms = program.n_arms
        self.store.check_unchanged()
        free = self.blocks.free
        sizes = self.blocks.seen.sizes
        units = column_units(sizes[None])
        free_rows = self.store.rows(free).reshape(len(free), program.dim) * units
        known = free_span(free_rows, np.arange(len(free)))
        self.pivot_arms = free[known.rows]
        self.sample = spanning.sampled_arms(self.store)
        span, checked = self._span(known, free_rows[known.rows], units)
        self.coordinates = np.array(span.columns, dtype=np.int64)
        self.rank = len(self.coordinates)
        modulo = Modulo.of(known.modulo.pivot_rows, known.columns, self.coordinates)
        largest = np.abs(modulo(self.store.rows(self.sample) * units)).max(axis=0, initial=0.0)
        self.quotient = QuotientMap(units, modulo, column_units(largest[None]))
        self.assumptions: tuple[Assumption, ...] = (*program.assumptions, *known.assumptions, *checked)
        self.witness = Quotient(
            tuple(int(i) for i in self.pivot_arms), known.columns, tuple(int(i) for i in self._basis_arms), span.columns
        )
        self.mask: Any = None
        self.screening: tuple[float, float, float, Array] | None = None

    def _span(self, known: Span, pivot_rows: Array, units: Array) -> tuple[Span, tuple[Assumption, ...]]:
        """What all arms span: proposed by a sample, then by arms from all blocks, and checked on all arms."""
        n = len(pivot_rows)
        free = Span(np.arange(n), known.columns, known.modulo)
        which = self.sample
        self._basis_arms: IntArray = which[:0]
        rows = self.store.rows(which) * units
        asked_all = False
        while True:
            small = np.concatenate([pivot_rows, rows])
            seen, terms = known.modulo.with_terms(rows)
            span = span_of(small, np.arange(n, len(small)), free, np.where(known.modulo.noise(seen, terms), 0.0, seen))
            self._basis_arms = which[span.rows - n]
            if not len(span.modulo.columns):
                return span, ()
            if not asked_all:  # the sample may be poor
                asked_all = True
                more = spanning.spanning_arms(
                    self.store, QuotientMap(units, known.modulo, np.ones(len(known.modulo.columns)))
                )[0]
            else:
                found = list(self.store.scan(spanning.OutsideTask(units, span.modulo, _MOST_OUTSIDE)))
                shares = np.concatenate([f[1] for f in found])
                worst = np.concatenate([f[0] for f in found])[np.argsort(-shares, kind="stable")[: survey.KEEP]]
                if not len(worst):
                    return span, ()
                size, place = largest_share(span.modulo, self.store.rows(worst) * units)
                if size <= ROUNDING_LEVEL:
                    text = (
                        f"arms are combinations of {len(span.columns) + n} of them only up to {float(size):.3g}, relative to the "
                        "terms of these combinations; they are taken as exactly that"
                    )
                    return span, (Assumption("dependence", (int(worst[place]),), size, text),)
                more = worst[:1] if place < 0 else worst[[place]]
            which = np.union1d(which, more)
            rows = self.store.rows(which) * units

    def spanning_arms(self) -> IntArray:
        """Some arms that span as much as all of them, found by looking at all."""
        return self.playable(spanning.spanning_arms(self.store, self.quotient)[0])

    def first_pool(self) -> IntArray:
        """A sample of all arms, and those of the smallest gaps."""
        few = self.sample[:: max(1, len(self.sample) // (survey.KEEP * self.rank))]
        return self.playable(np.union1d(few, self.blocks.seen.top[: survey.KEEP * self.rank // 2]))

    def playable(self, indices: IntArray) -> IntArray:
        """Those of some arms that cost something and are not multiples of free ones."""
        indices = np.setdiff1d(indices, self.blocks.free)
        return indices[self.quotient(self.store.rows(indices)).any(axis=1)]

    def pair(self, arms: IntArray, allocation: Array, multipliers: Array) -> tuple[IntArray, Array, Array] | None:
        """Those of some arms that can be in a pool, with their canonical α and λ; None where nothing is known of any."""
        pool = self.playable(arms)
        at = np.searchsorted(arms, pool)
        alpha = np.maximum(allocation[at], 0.0) * self.blocks.gaps_of(pool, self.store.rows(pool))
        lam = np.maximum(multipliers[at], 0.0)
        known = alpha.any() and lam.any() and np.isfinite(alpha).all() and np.isfinite(lam).all()
        return (pool, alpha, lam) if known else None

    def proven(self, arms: IntArray, allocation: Array, multipliers: Array) -> Bounds:
        """What an allocation and multipliers, given on some arms, prove for all arms."""
        nothing = np.zeros(0)
        if not self.rank:
            return Bounds(0.0, 0.0, nothing, nothing, nothing, nothing, 0.0)
        known = self.pair(arms, allocation, multipliers)
        if known is None:
            return Bounds(np.inf, 0.0, nothing, nothing, nothing, nothing, np.inf)
        try:
            return self.price(known[0], self.part(known[0]), known[1], known[2], last=True).bounds
        except SolverFailed:
            return Bounds(np.inf, 0.0, nothing, nothing, nothing, nothing, np.inf)

    def part(self, pool: IntArray) -> Canonical:
        """The canonical problem of some arms, in both roles."""
        rows = self.store.rows(pool)
        gaps = self.blocks.gaps_of(pool, rows)
        image = self.quotient(rows)
        ratios = 1.0 / np.sqrt(gaps * self.blocks.scale)
        features = image / np.sqrt(gaps)[:, None]
        doubt = data_error(self.program)
        return Canonical(
            features, features * ratios[:, None], np.zeros((0, self.rank)), ratios=ratios,
            error=ENTRY_ERROR + doubt, bound_error=doubt,
        )  # fmt: skip

    def price(self, pool: IntArray, part: Canonical, alpha: Array, multipliers: Array, last: bool = False) -> Pass:
        """Certify (α, λ), given on a pool of arms, for all arms; find the arms that violate most.

        Arms that were screened out are skipped, unless this must be the ``last`` word.
        """
        seen = frame(part, alpha, multipliers)
        if seen is None or not seen.strength > 0:
            raise SolverFailed("the information matrix is numerically singular")
        blocks, rule = self.blocks, self.blocks.gap_rule
        image, rough = self.quotient.rough(seen.basis, blocks.seen.sizes)
        if rule.theta is not None:
            image = np.column_stack([image, rule.theta])
        assert part.ratios is not None
        norm2, prices, errors = images(seen, part.features)
        g = norm2 * part.ratios**2
        task = PriceTask(
            self.quotient, seen, rule, blocks.scale, image, rough, rule.doubt(blocks.seen.sizes), blocks.free,
            float(g.max()), float(prices.max()), survey.KEEP * self.rank, self._screen(seen),
        )  # fmt: skip
        aligned = [] if blocks.given is None else [blocks.given]
        complete = last or self.mask is None or 2 * int(self.mask.sum()) > self.n_arms
        if not complete:
            aligned.append(self.mask)
        found = merge_prices(list(self.store.scan(task, aligned)), task.keep)
        self.mask = found.mask
        own = seen.most_constraint(norm2, errors) * part.ratios**2 * seen.up
        worst = max(float(own.max()), found.constraint) * (1.0 + 32.0 * UNIT) * (1.0 + part.bound_error)
        top = max(float(seen.most_price(prices, norm2, errors).max()), found.price)
        if not (np.isfinite(worst) and np.isfinite(top)):
            raise SolverFailed("the information matrix is numerically singular")
        total = max(float(multipliers.sum()), 1e-300)
        scale = (float(multipliers @ g) / total) ** 2 / seen.plain_price(part.features[int(np.argmax(prices))]) / total
        binding = np.union1d(
            pool[(g >= (1.0 - BINDING) * worst) | (multipliers > BINDING * multipliers.max())],
            found.targets[found.constraints >= (1.0 - BINDING) * worst],
        )
        bounds = BoundsOverAll(
            seen.cost * worst * seen.up, seen.slope / top / seen.up, alpha * worst,
            multipliers * scale, g, prices / top, 2.0 * seen.drift, pool, binding, found.alive,
        )  # fmt: skip
        self._remember(bounds, seen, part, alpha, top)
        outside = [x[~np.isin(x, pool)] for x in (found.features, found.targets)]
        return Pass(bounds, outside[0], outside[1], complete)

    # Screening. Take the basis in which M(α) = I, λ that sums to 1, P = Σ λ_j b_j b_jᵀ, and τ the largest price. Let c be
    # the value, L <= c <= U, and M* the matrix of an optimal allocation. Then tr(P M*) <= τ c <= τ U, because every arm's
    # price is at most τ, and tr(P M*^-1) <= 1, because its constraints hold. With s = √(τU), N = M*/s: tr P(N + N^-1 − 2I)
    # <= 2 (s − tr P) =: η, so with π the least eigenvalue of P all eigenvalues of N lie in [1/κ, κ], κ + 1/κ = 2 + η/π.
    # Hence g_j(α*) <= κ/s g_j(α): a constraint for which that is below 1 binds at no optimum.
    # An arm with Σα |a_i|² < 1 lies inside the convex hull of the arms ±a that α plays (Cauchy and Schwarz on
    # a_i = Σ_l α_l ⟨a_l, a_i⟩ a_l), so its price is below 1 at every dual optimum: it is played at none.

    def _remember(self, bounds: BoundsOverAll, seen: Frame, part: Canonical, alpha: Array, top: float) -> None:
        """Keep what screening in the next pass takes, if it is sharper than what there is."""
        scale = float(np.sqrt(top * bounds.upper))
        spread = 2.0 * max(scale - seen.strength, 0.0) / max(float(seen.spectrum.min()), 1e-300)
        kappa = float(1.0 + 0.5 * spread + np.sqrt(0.25 * spread * spread + spread))
        if self.screening is None or kappa < self.screening[0]:
            used = alpha > 0
            root = part.features[used] * np.sqrt(alpha[used])[:, None]
            self.screening = kappa, scale, float(alpha.sum()), root

    def _screen(self, seen: Frame) -> tuple[float, float] | None:
        """The factors of `PriceTask.screen` for another frame: if M_old >= ω M_new then |a|²_old <= |a|²_new/ω."""
        if self.screening is None:
            return None
        kappa, scale, cost, root = self.screening
        images = root @ seen.basis
        least = float(np.linalg.eigvalsh(images.T @ images)[0]) * (1.0 - 1e-9)
        if least <= 0:
            return None
        return kappa / scale / least * (1.0 + 1e-9), cost / least * (1.0 + 1e-9)
