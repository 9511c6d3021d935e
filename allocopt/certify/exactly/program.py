"""A program in exact rationals, from the doubles that the user passed: gaps, radii and the quotient included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq, fmpq_mat

from allocopt.base.errors import InvalidProof
from allocopt.base.validation import Array
from allocopt.certify.reduction import Quotient
from allocopt.linear.span import column_units
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram

Row = list[fmpq]

__all__ = ["ExactProgram", "exact_program", "rational"]


def rational(number: float) -> fmpq:
    """A double as the rational it is."""
    return fmpq(*float(number).as_integer_ratio())


@dataclass(eq=False)
class ExactProgram:
    """The program modulo the free arms, in the coordinates of the quotient. ``None`` in ``upper`` is ∞."""

    arms: list[int]
    """The arms that are not free."""
    features: list[Row]
    costs: Row
    lower: Row
    upper: list[fmpq | None]
    targets: list[Row]
    radii: Row


def exact_program(program: AllocationProgram, quotient: Quotient) -> ExactProgram:
    """Redo the construction and the quotient of a program in rational arithmetic.

    That the other coordinates depend on those of the quotient, and the other free arms on the pivots, is what `reduce` has
    checked or assumed.
    """
    bandit = program.origin.bandit
    gaps: Row = []
    if bandit is not None:
        gaps = _exact_gaps(bandit)
    elif program.kind == "horizon":
        gaps = [rational(g) for g in program.costs]
    units = column_units(program.features, program.targets)  # so that no bit of a ball depends on the units of a column
    features = _rows(program.features * units)
    targets = _exact_targets(program, features, units)
    costs, radii = _exact_costs(program, gaps)
    lower, upper = _exact_bounds(program, gaps)
    free = set(program.free.tolist())
    pivots = [features[i] for i in quotient.pivot_arms]
    features, targets = (_quotient(rows, pivots, quotient) for rows in (features, targets))
    arms = [i for i in range(program.n_arms) if i not in free]
    for i in arms:
        if upper[i] is None and costs[i] <= 0:
            raise InvalidProof(f"arm {i} has exact cost {costs[i]} but was not taken as optimal; nothing is proven")
    for j, radius in enumerate(radii):
        if radius <= 0:
            raise InvalidProof(f"target {j} has exact radius {radius}; nothing is proven")
    return ExactProgram(
        arms, [features[i] for i in arms], [costs[i] for i in arms], [lower[i] for i in arms], [upper[i] for i in arms],
        targets, radii,
    )  # fmt: skip


def _quotient(rows: list[Row], pivots: list[Row], quotient: Quotient) -> list[Row]:
    """x_K − x_P F_P^-1 F_K for every row, in the coordinates of the quotient."""
    kept, columns = quotient.coordinates, quotient.pivot_columns
    if not pivots or not kept or not rows:
        return [[row[c] for c in kept] for row in rows]
    block = fmpq_mat([[row[c] for c in columns] for row in pivots])
    rule = block.solve(fmpq_mat([[row[c] for c in kept] for row in pivots]))
    image = fmpq_mat([[row[c] for c in columns] for row in rows]) * rule
    return [[row[c] - image[i, n] for n, c in enumerate(kept)] for i, row in enumerate(rows)]


def _rows(matrix: Array) -> list[Row]:
    return [[rational(x) for x in row] for row in matrix.tolist()]


def _dot(row: Sequence[fmpq], other: Sequence[fmpq]) -> fmpq:
    return sum((x * y for x, y in zip(row, other, strict=True)), fmpq(0))


def _exact_gaps(bandit: LinearBandit) -> Row:
    """Exact gaps, zero on the arms that were taken as optimal (`LinearBandit.assumptions` says what these gaps really are)."""
    theta = [rational(x) for x in bandit.theta]
    means = [_dot(row, theta) for row in _rows(bandit.arms_in_memory)]
    best = max(means)
    gaps = [best - mean for mean in means]
    for i in bandit.optimal_arms.tolist():
        gaps[i] = fmpq(0)
    return gaps


def _exact_targets(program: AllocationProgram, features: list[Row], units: Array) -> list[Row]:
    if program.kind == "best_arm":
        assert program.origin.bandit is not None and program.target_arms is not None
        best = features[int(program.origin.bandit.optimal_arms[0])]
        return [[x - y for x, y in zip(features[i], best, strict=True)] for i in program.target_arms]
    if program.target_arms is not None:
        return [features[i] for i in program.target_arms]
    return _rows(program.targets * units)


def _exact_costs(program: AllocationProgram, gaps: Row) -> tuple[Row, Row]:
    """Costs and radii."""
    kind, origin = program.kind, program.origin
    if kind == "general":
        return [rational(x) for x in program.costs], [rational(x) for x in program.radii]
    if kind == "g_optimal":
        return [fmpq(1)] * program.n_arms, [fmpq(1)] * program.n_targets
    assert program.target_arms is not None
    squares = [gaps[i] * gaps[i] for i in program.target_arms]
    if kind == "horizon":
        assert origin.number is not None
        return gaps, [s / rational(origin.number) for s in squares]
    assert origin.bandit is not None
    noise = rational(origin.bandit.noise_variance)
    return [fmpq(1)] * program.n_arms if kind == "best_arm" else gaps, [s / (2 * noise) for s in squares]


def _exact_bounds(program: AllocationProgram, gaps: Row) -> tuple[Row, list[fmpq | None]]:
    """Lower and upper bounds of α."""
    kind, origin = program.kind, program.origin
    zero: Row = [fmpq(0)] * program.n_arms
    infinite: list[fmpq | None] = [None] * program.n_arms
    if kind == "optimism":
        assert origin.bandit is not None and origin.number is not None
        most = 4 * rational(origin.number) * rational(origin.bandit.noise_variance)
        return zero, [most / (g * g) if g != 0 else None for g in gaps]
    if kind == "remaining":
        assert origin.pulls is not None and origin.number is not None
        log_n = rational(origin.number)
        return [rational(x) / log_n for x in origin.pulls], infinite
    if kind == "general":
        return [rational(x) for x in program.lower], [None if np.isinf(x) else rational(x) for x in program.upper]
    return zero, infinite
