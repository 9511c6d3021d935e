"""A program in exact rationals, from the doubles that the user passed: gaps, radii and the quotient included."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from flint import fmpq, fmpq_mat

from allocopt.base.errors import InvalidProof
from allocopt.certify.exact_arithmetic.rows import (
    DISTANCES,
    Row,
    common_variance,
    exact_distances,
    exact_duel_costs,
    exact_features,
    exact_means,
    exact_targets,
    rational,
)
from allocopt.certify.reduction import Quotient
from allocopt.linear.span import column_units
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import AllocationProgram

__all__ = ["ExactProgram", "exact_program"]


@dataclass(eq=False)
class ExactProgram:
    """The program modulo the free arms, in the coordinates of the quotient. ``None`` in ``upper`` is ∞.

    In the variables β_i = α_i/σ_i²: costs κ_iσ_i², bounds l_i/σ_i² and u_i/σ_i², and H = Σ β_i f_i f_iᵀ. Where arms show several
    things, each with noise of its own, the variables stay α, and H = Σ α_i Σ_n w_n f_n f_nᵀ over the rows n of i with w_n = 1/σ_n².
    """

    arms: list[int]
    """The arms that are not free."""
    features: list[Row]
    """Their rows."""
    costs: Row
    lower: Row
    upper: list[fmpq | None]
    targets: list[Row]
    radii: Row
    variances: Row
    """σ_i² of these arms (1 where rows have weights)."""
    owners: list[int] | None = None
    """The place in ``arms`` of each row; None where every arm has one row."""
    weights: Row | None = None
    """w_n of each row, where arms have several."""
    limits: list[tuple[list[tuple[int, fmpq]], fmpq]] = field(default_factory=list)
    """Linear constraints: places in ``arms`` with coefficients (for β, where the variables are these), and the limit."""

    def by_row(self, alpha: Row) -> Row:
        """The weights of the rows in H, for variables α (β where every arm has one row)."""
        if self.owners is None or self.weights is None:
            return alpha
        return [alpha[i] * w for i, w in zip(self.owners, self.weights, strict=True)]


def exact_program(program: AllocationProgram, quotient: Quotient) -> ExactProgram:
    """Redo the construction and the quotient of a program in rational arithmetic.

    That the other coordinates depend on those of the quotient, and the other free arms on the pivots, is what `reduce` has
    checked or assumed.
    """
    bandit = program.origin.bandit
    gaps: Row = []
    if program.kind == "horizon":
        gaps = [rational(g) for g in program.costs]
    elif bandit is not None and program.kind not in DISTANCES:
        gaps = _exact_gaps(bandit)
    units = column_units(program.features, program.targets)  # so that no bit of a ball depends on the units of a column
    features, targets = exact_features(program, units), exact_targets(program, units)
    costs, radii = _exact_costs(program, gaps)
    lower, upper = _exact_bounds(program, gaps)
    free = set(program.free.tolist())
    constrained = set() if program.constraints is None else set(program.constraints.arms.tolist())
    pivots = [features[i] for i in quotient.pivot_arms]
    features, targets = (_quotient(rows, pivots, quotient) for rows in (features, targets))
    arms = [i for i in range(program.n_arms) if i not in free]
    for i in arms:
        if upper[i] is None and costs[i] <= 0 and i not in constrained:
            raise InvalidProof(f"arm {i} has exact cost {costs[i]} but was not taken as optimal; nothing is proven")
    for j, radius in enumerate(radii):
        if radius <= 0:
            raise InvalidProof(f"target {j} has exact radius {radius}; nothing is proven")
    noise = program.noise_variance
    if program.owners is not None:
        place = {arm: n for n, arm in enumerate(arms)}
        rows = [n for n, arm in enumerate(program.owners.tolist()) if arm in place]
        return ExactProgram(
            arms, [features[n] for n in rows], [costs[i] for i in arms], [lower[i] for i in arms], [upper[i] for i in arms],
            targets, radii, [fmpq(1)] * len(arms), [place[int(program.owners[n])] for n in rows],
            [fmpq(1) if noise is None else 1 / rational(noise[n]) for n in rows],
            _exact_limits(program, arms, [fmpq(1)] * len(arms)),
        )  # fmt: skip
    variances = [fmpq(1) if noise is None else rational(noise[i]) for i in arms]
    return ExactProgram(
        arms, [features[i] for i in arms], [costs[i] * v for i, v in zip(arms, variances, strict=True)],
        [lower[i] / v for i, v in zip(arms, variances, strict=True)],
        [None if upper[i] is None else upper[i] / v for i, v in zip(arms, variances, strict=True)],
        targets, radii, variances, limits=_exact_limits(program, arms, variances),
    )  # fmt: skip


def _exact_limits(
    program: AllocationProgram, arms: list[int], variances: Row
) -> list[tuple[list[tuple[int, fmpq]], fmpq]]:
    """The linear constraints on the variables α_i/σ_i² of some arms (σ_i² = 1 where these are α)."""
    given = program.constraints
    if given is None:
        return []
    place = {arm: n for n, arm in enumerate(arms)}
    rows: list[list[tuple[int, fmpq]]] = [[] for _ in range(given.n_rows)]
    for row, arm, value in zip(given.places.tolist(), given.arms.tolist(), given.values.tolist(), strict=True):
        rows[row].append((place[arm], rational(value) * variances[place[arm]]))
    return [(row, rational(limit)) for row, limit in zip(rows, given.limits, strict=True)]


def _quotient(rows: list[Row], pivots: list[Row], quotient: Quotient) -> list[Row]:
    """x_K − x_P F_P^-1 F_K for every row, in the coordinates of the quotient."""
    kept, columns = quotient.coordinates, quotient.pivot_columns
    if not pivots or not kept or not rows:
        return [[row[c] for c in kept] for row in rows]
    block = fmpq_mat([[row[c] for c in columns] for row in pivots])
    rule = block.solve(fmpq_mat([[row[c] for c in kept] for row in pivots]))
    image = fmpq_mat([[row[c] for c in columns] for row in rows]) * rule
    return [[row[c] - image[i, n] for n, c in enumerate(kept)] for i, row in enumerate(rows)]


def _exact_gaps(bandit: LinearBandit | ContextualBandit) -> Row:
    """Exact gaps, zero on the arms that were taken as optimal (`LinearBandit.assumptions` says what these gaps really are)."""
    means = exact_means(bandit)
    gaps: Row = []
    for size in bandit.sizes if isinstance(bandit, ContextualBandit) else (len(means),):
        own = means[len(gaps) : len(gaps) + size]
        best = max(own)
        gaps += [best - mean for mean in own]
    for i in bandit.optimal_arms.tolist():
        gaps[i] = fmpq(0)
    return gaps


def _exact_costs(program: AllocationProgram, gaps: Row) -> tuple[Row, Row]:
    """Costs and radii."""
    kind, origin = program.kind, program.origin
    if kind == "general":
        return [rational(x) for x in program.costs], [rational(x) for x in program.radii]
    if kind == "g_optimal":
        return [fmpq(1)] * program.n_arms, [fmpq(1)] * program.n_targets
    if kind in DISTANCES:
        distances, scale = exact_distances(program), 2 * common_variance(program)
        return exact_duel_costs(program) or [fmpq(1)] * program.n_arms, [x * x / scale for x in distances]
    assert program.target_arms is not None
    squares = [gaps[i] * gaps[i] for i in program.target_arms]
    if kind == "horizon":
        assert origin.number is not None
        return gaps, [s / rational(origin.number) for s in squares]
    assert origin.bandit is not None
    noise = common_variance(program)
    return gaps, [s / (2 * noise) for s in squares]


def _exact_bounds(program: AllocationProgram, gaps: Row) -> tuple[Row, list[fmpq | None]]:
    """Lower and upper bounds of α."""
    kind, origin = program.kind, program.origin
    zero: Row = [fmpq(0)] * program.n_arms
    infinite: list[fmpq | None] = [None] * program.n_arms
    if kind == "optimism":
        assert origin.bandit is not None and origin.number is not None
        width, each = 4 * rational(origin.number), [rational(x) for x in origin.bandit.variance_of_each]
        return zero, [width * v / (g * g) if g != 0 else None for g, v in zip(gaps, each, strict=True)]
    if kind == "remaining":
        assert origin.pulls is not None and origin.number is not None
        log_n = rational(origin.number)
        return [rational(x) / log_n for x in origin.pulls], infinite
    if kind == "general":
        return [rational(x) for x in program.lower], [None if np.isinf(x) else rational(x) for x in program.upper]
    return zero, infinite
