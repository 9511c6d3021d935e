r"""Programs over arms that are looked at block by block: the regret, horizon and G-optimal programs without bounds.

`StreamedProgram` is the program as users see it; its arrays are made only if somebody asks for them. `StreamedProblem` is
what the active-set method sees: a part of the program as canonical arrays, and a pricing pass over all arms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import BINDING
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical, Frame, frame, images
from allocopt.certify.pricing import (
    ContenderTask,
    Gaps,
    PriceTask,
    QuotientMap,
    SurveyReport,
    SurveyTask,
    merge_prices,
    merge_surveys,
    smallest,
)
from allocopt.certify.reduction import Quotient, data_error
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption
from allocopt.linear.floating import ENTRY_ERROR, UNIT
from allocopt.linear.modulo import Modulo
from allocopt.linear.span import (
    Span,
    column_units,
    free_span,
    largest_share,
    span_of,
    spanning_coordinates,
    spanning_rows,
)
from allocopt.model.arms import ArmStore
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.solution import Solution, Status

__all__ = [
    "StreamedBounds",
    "StreamedProblem",
    "StreamedProgram",
    "StreamedSolution",
    "store_rank",
    "survey",
    "with_gaps",
]

_SAMPLE = 64  # times d arms are looked at to find the rank and the scales
_GAPS_AT_A_TIME = 100_000  # so that looking for the smallest takes no memory to speak of
_KEEP = 40  # times d arms of the largest means are remembered, and as many violators of each pass


def survey(store: ArmStore, theta: Array | None, tie_tolerance: float = 0.0) -> SurveyReport:
    """One look at all arms: sizes, bad entries, the arms of the largest means."""
    keep = _KEEP * store.shape[1]
    task = SurveyTask(theta, keep, tie_tolerance)
    reports = list(store.scan(task))
    if theta is None:
        return merge_surveys(reports, keep)
    seen = merge_surveys(reports, keep, tie_tolerance * float(np.linalg.norm(theta)))
    if seen.complete:
        return seen
    again = ContenderTask(theta, tie_tolerance, seen.floor, seen.near)
    return replace(seen, contenders=np.concatenate(list(store.scan(again))))


def with_gaps(seen: SurveyReport, gaps: Array, dim: int) -> SurveyReport:
    """A survey of the arms alone, and the arms of the smallest gaps."""
    keep = _KEEP * dim
    parts = range(0, len(gaps), _GAPS_AT_A_TIME)
    few = np.concatenate([start + smallest(gaps[start : start + _GAPS_AT_A_TIME], keep) for start in parts])
    few = few[np.argsort(gaps[few], kind="stable")[:keep]]
    return replace(seen, top=few, top_means=-gaps[few])


def store_rank(store: ArmStore) -> int:
    """The dimension of the span of all arms."""
    k, d = store.shape
    few = store.rows(np.arange(0, k, max(1, k // (_SAMPLE * d))))
    if len(spanning_coordinates(few)) == d:
        return d
    rows = np.concatenate([few, _spanning_rows(store, QuotientMap(np.ones(d), Modulo.of(few[:0], ()), np.ones(d)))[1]])
    return len(spanning_coordinates(rows))


class StreamedProgram(AllocationProgram):
    """An `AllocationProgram` over a store of arms: costs Δ, one target per suboptimal arm with radius Δ²·scale."""

    store: ArmStore
    scale: float
    seen: SurveyReport
    gap_rule: Gaps
    given: Array | None
    free_arms: IntArray

    @classmethod
    def of(
        cls,
        store: ArmStore,
        seen: SurveyReport,
        rule: Gaps,
        given: Array | None,
        free: IntArray,
        scale: float,
        origin: Origin,
    ) -> StreamedProgram:
        """From a store, its survey and the rule for its gaps."""
        self = object.__new__(cls)
        self.__dict__.update(
            store=store, seen=seen, gap_rule=rule, given=given, free_arms=free, scale=scale, origin=origin
        )
        return self

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return self.store.shape[0]

    @property
    def n_targets(self) -> int:
        """m, the number of constraints."""
        return self.n_arms - len(self.free_arms)

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return self.store.shape[1]

    @property
    def free(self) -> IntArray:
        """The arms that cost nothing."""
        return self.free_arms

    @cached_property
    def features(self) -> Array:
        """All arms in memory."""
        return self.store.array()

    @cached_property
    def costs(self) -> Array:
        """The gaps (ones for G-optimal designs)."""
        if self.origin.bandit is not None:
            return self.origin.bandit.gaps
        return np.ones(self.n_arms) if self.given is None else self.given

    @cached_property
    def target_arms(self) -> IntArray:
        """The arms with a positive gap."""
        return np.setdiff1d(np.arange(self.n_arms), self.free_arms, assume_unique=True)

    @cached_property
    def targets(self) -> Array:
        """The rows of these arms."""
        return self.features[self.target_arms]

    @cached_property
    def radii(self) -> Array:
        """Δ²·scale."""
        result: Array = self.costs[self.target_arms] ** 2 * self.scale
        return result

    @property
    def lower(self) -> Array:
        """Zeros."""
        return np.broadcast_to(0.0, self.n_arms)

    @property
    def upper(self) -> Array:
        """Infinite."""
        return np.broadcast_to(np.inf, self.n_arms)

    def gaps_of(self, indices: IntArray, rows: Array) -> Array:
        """Accurate gaps of some arms, whose rows are at hand."""
        return self.gap_rule.careful(rows, None if self.given is None else self.given[indices])

    def __repr__(self) -> str:
        return f"AllocationProgram({self.kind}, n_arms={self.n_arms}, n_targets={self.n_targets}, dim={self.dim}, streamed)"


@dataclass(frozen=True, eq=False)
class StreamedBounds(Bounds):
    """Bounds for all arms; the arrays are for the arms in ``pool``, and everything else is zero."""

    pool: IntArray
    binding: IntArray
    """Arms whose constraint is tight."""
    alive: int
    """Arms that may still matter, as far as is proven."""


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pricing pass over all arms found."""

    bounds: StreamedBounds
    features: IntArray
    """Arms outside the pool of the largest prices, with a price above all in the pool; largest first."""
    targets: IntArray
    """Arms outside the pool whose constraints are violated most."""
    complete: bool
    """Whether every arm was looked at, those screened out included."""


class StreamedSolution(Solution):
    """A `Solution` that is kept as the few arms that matter; vectors over all arms are made when somebody asks for them."""

    kept: StreamedBounds
    pool_costs: Array

    @classmethod
    def of(
        cls, program: StreamedProgram, problem: StreamedProblem, bounds: StreamedBounds, status: Status, tol: float,
        stats: dict[str, Any],
    ) -> StreamedSolution:  # fmt: skip
        """From certified bounds."""
        self = object.__new__(cls)
        pool = bounds.pool
        costs = program.gaps_of(pool, program.store.rows(pool)) if len(pool) else np.zeros(0)
        self.__dict__.update(
            program=program, kept=bounds, pool_costs=costs, lower=bounds.lower, upper=bounds.upper, status=status,
            method="active-set", tol=tol, binding=bounds.binding,
            coordinates=tuple(int(c) for c in problem.coordinates), stats=MappingProxyType(stats),
            assumptions=problem.assumptions,
        )  # fmt: skip
        return self

    @cached_property
    def allocation(self) -> Array:
        """α, one entry per arm; inf on free arms."""
        full = np.zeros(self.program.n_arms)
        full[self.kept.pool] = self.kept.alpha / self.pool_costs
        full[self.program.free] = np.inf
        full.flags.writeable = False
        return full

    @cached_property
    def multipliers(self) -> Array:
        """λ, one entry per arm."""
        full = np.zeros(self.program.n_arms)
        full[self.kept.pool] = self.kept.multipliers
        full.flags.writeable = False
        return full

    @property
    def in_use(self) -> tuple[IntArray, Array, Array]:
        """The arms with 0 < α < ∞ or λ > 0, and α and λ of these."""
        kept = self.kept
        at = np.flatnonzero((kept.alpha > 0) | (kept.multipliers > 0))
        return kept.pool[at], kept.alpha[at] / self.pool_costs[at], kept.multipliers[at]

    @property
    def support(self) -> IntArray:
        """Arms that are played finitely often."""
        return self.kept.pool[self.kept.alpha > 0]

    @property
    def optimal_arms(self) -> IntArray:
        """Arms that cost nothing."""
        return self.program.free

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with everything worked out, as an ordinary solution."""
        return Solution(
            self.program, self.allocation.copy(), self.multipliers.copy(), self.lower, self.upper, self.status,
            self.method, self.tol, self.binding, self.coordinates, dict(self.stats), self.assumptions,
        ).__reduce__()  # fmt: skip


class StreamedProblem:
    """A streamed program in canonical form, seen part by part."""

    def __init__(self, program: StreamedProgram) -> None:
        self.program = program
        self.store = program.store
        self.n_arms = program.n_arms
        self.store.check_unchanged()
        free = program.free_arms
        sizes = program.seen.sizes
        units = column_units(sizes[None])
        free_rows = self.store.rows(free).reshape(len(free), program.dim) * units
        known = free_span(free_rows, np.arange(len(free)))
        self.pivot_arms = free[known.rows]
        step = max(1, self.n_arms // (_SAMPLE * program.dim))
        self.sample = np.arange(0, self.n_arms, step)
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
                more = _spanning_rows(self.store, QuotientMap(units, known.modulo, np.ones(len(known.modulo.columns))))[
                    0
                ]
            else:
                found = list(self.store.scan(_RestTask(units, span.modulo)))
                shares = np.concatenate([f[1] for f in found])
                worst = np.concatenate([f[0] for f in found])[np.argsort(-shares, kind="stable")[:_KEEP]]
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
        return self.playable(_spanning_rows(self.store, self.quotient)[0])

    def first_pool(self) -> IntArray:
        """A sample of all arms, and those of the smallest gaps."""
        few = self.sample[:: max(1, len(self.sample) // (_KEEP * self.rank))]
        return self.playable(np.union1d(few, self.program.seen.top[: _KEEP * self.rank // 2]))

    def playable(self, indices: IntArray) -> IntArray:
        """Those of some arms that cost something and are not multiples of free ones."""
        indices = np.setdiff1d(indices, self.program.free_arms)
        return indices[self.quotient(self.store.rows(indices)).any(axis=1)]

    def pair(self, arms: IntArray, allocation: Array, multipliers: Array) -> tuple[IntArray, Array, Array] | None:
        """Those of some arms that can be in a pool, with their canonical α and λ; None where nothing is known of any."""
        pool = self.playable(arms)
        at = np.searchsorted(arms, pool)
        alpha = np.maximum(allocation[at], 0.0) * self.program.gaps_of(pool, self.store.rows(pool))
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
        gaps = self.program.gaps_of(pool, rows)
        image = self.quotient(rows)
        ratios = 1.0 / np.sqrt(gaps * self.program.scale)
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
        program, rule = self.program, self.program.gap_rule
        image, rough = self.quotient.rough(seen.basis, program.seen.sizes)
        if rule.theta is not None:
            image = np.column_stack([image, rule.theta])
        assert part.ratios is not None
        norm2, prices, errors = images(seen, part.features)
        g = norm2 * part.ratios**2
        task = PriceTask(
            self.quotient, seen, rule, program.scale, image, rough, rule.doubt(program.seen.sizes), program.free_arms,
            float(g.max()), float(prices.max()), _KEEP * self.rank, self._screen(seen),
        )  # fmt: skip
        aligned = [] if program.given is None else [program.given]
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
        bounds = StreamedBounds(
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

    def _remember(self, bounds: StreamedBounds, seen: Frame, part: Canonical, alpha: Array, top: float) -> None:
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


@dataclass(frozen=True, eq=False)
class _SpanTask:
    """Arms of a block that seem to span it in the quotient, and their rows there without what may be rounding."""

    quotient: QuotientMap

    def __call__(self, start: int, block: Array) -> tuple[IntArray, Array]:
        """At most as many as there are coordinates."""
        modulo = self.quotient.modulo
        rows, terms = modulo.with_terms(block * self.quotient.units)
        rows = np.where(modulo.noise(rows, terms), 0.0, rows)
        chosen = spanning_rows(rows)
        return chosen + start, rows[chosen]


def _spanning_rows(store: ArmStore, quotient: QuotientMap) -> tuple[IntArray, Array]:
    """Arms that seem to span all of them in the quotient, and their rows there."""
    found = list(store.scan(_SpanTask(quotient)))
    indices, rows = (np.concatenate([f[part] for f in found]) for part in range(2))
    chosen = spanning_rows(rows)
    return indices[chosen], rows[chosen]


@dataclass(frozen=True, eq=False)
class _RestTask:
    """The arms of a block that do not lie in a span exactly, those with the largest shares first."""

    units: Array
    modulo: Modulo

    def __call__(self, start: int, block: Array) -> tuple[IntArray, Array]:
        """Their indices and shares; at most a few dozen."""
        shares = self.modulo.shares(block * self.units).max(axis=1, initial=0.0)
        away = np.flatnonzero(shares > 0.0)
        away = away[np.argsort(-shares[away], kind="stable")[:_KEEP]]
        return away + start, shares[away]
