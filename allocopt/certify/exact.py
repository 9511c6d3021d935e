"""A program in exact rationals, from the doubles that the user passed: gaps, radii and the quotient included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import fmpq, fmpq_mat

from allocopt.bandit import LinearBandit
from allocopt.certify.reduction import Quotient
from allocopt.errors import InvalidProof
from allocopt.program import AllocationProgram
from allocopt.validation import Array

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
    tied_gaps: dict[int, fmpq] = field(default_factory=dict)
    """Exact gaps of arms that were taken as optimal though they are not exactly so."""
    notes: list[str] = field(default_factory=list)
    """What was taken as zero besides."""


def exact_program(program: AllocationProgram, quotient: Quotient) -> ExactProgram:
    """Redo the construction and the reduction of a program in rational arithmetic."""
    bandit = program.origin.bandit
    tied: dict[int, fmpq] = {}
    gaps: Row = []
    if bandit is not None:
        gaps, tied = _exact_gaps(bandit)
    elif program.kind == "horizon":
        gaps = [rational(g) for g in program.costs]
    features = _rows(program.features)
    targets = _exact_targets(program, features)
    costs, radii = _exact_costs(program, gaps)
    lower, upper = _exact_bounds(program, gaps)
    free = program.free.tolist()
    notes: list[str] = []
    features, targets, kept = _divide_out(features, targets, free, quotient, notes)
    _drop_negligible(program, features, targets, quotient, notes)
    arms = [i for i in range(program.n_arms) if i not in set(free)]
    features = [features[i] for i in arms]
    playable = [upper[i] is None or upper[i] != 0 for i in arms]
    features, targets = _drop_dependent(features, playable, targets, kept, quotient, notes)
    for i in arms:
        if upper[i] is None and costs[i] <= 0:
            raise InvalidProof(f"arm {i} has exact cost {costs[i]} but was not taken as optimal; nothing is proven")
    for j, radius in enumerate(radii):
        if radius <= 0:
            raise InvalidProof(f"target {j} has exact radius {radius}; nothing is proven")
    return ExactProgram(
        arms, features, [costs[i] for i in arms], [lower[i] for i in arms], [upper[i] for i in arms],
        targets, radii, tied, notes,
    )  # fmt: skip


def _rows(matrix: Array) -> list[Row]:
    return [[rational(x) for x in row] for row in matrix.tolist()]


def _dot(row: Sequence[fmpq], other: Sequence[fmpq]) -> fmpq:
    return sum((x * y for x, y in zip(row, other, strict=True)), fmpq(0))


def _exact_gaps(bandit: LinearBandit) -> tuple[Row, dict[int, fmpq]]:
    """Exact gaps, zero on the arms that were taken as optimal; and what those gaps really are."""
    theta = [rational(x) for x in bandit.theta]
    means = [_dot(row, theta) for row in _rows(bandit.arms)]
    best = max(means)
    gaps = [best - mean for mean in means]
    tied = {}
    scale = np.abs(bandit.arms) @ np.abs(bandit.theta)
    for i in bandit.optimal_arms.tolist():
        if gaps[i] != 0:
            allowed = rational(bandit.tie_tolerance * 2.0 * (scale[i] + scale.max()))
            if gaps[i] > allowed:
                raise InvalidProof(
                    f"arm {i} is taken as optimal, but its exact gap {float(gaps[i]):.6g} is more than a tie of the stated "
                    f"tolerance {bandit.tie_tolerance:g}; nothing is proven"
                )
            tied[i] = gaps[i]
            gaps[i] = fmpq(0)
    return gaps, tied


def _exact_targets(program: AllocationProgram, features: list[Row]) -> list[Row]:
    if program.kind == "best_arm":
        assert program.origin.bandit is not None and program.target_arms is not None
        best = features[int(program.origin.bandit.optimal_arms[0])]
        return [[x - y for x, y in zip(features[i], best, strict=True)] for i in program.target_arms]
    if program.target_arms is not None:
        return [features[i] for i in program.target_arms]
    return _rows(program.targets)


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


def _divide_out(
    features: list[Row], targets: list[Row], free: list[int], quotient: Quotient, notes: list[str]
) -> tuple[list[Row], list[Row], list[int]]:
    """Everything modulo the free arms (Gauss's elimination), without the pivot columns; and the columns that are left."""
    pivots: list[Row] = []
    columns = list(quotient.pivot_columns)
    for arm, column in zip(quotient.pivot_arms, columns, strict=True):
        row = _clear(features[arm], pivots, columns)
        if row[column] == 0:
            raise InvalidProof(f"free arm {arm} is dependent on the others in exact arithmetic; nothing is proven")
        pivots.append(row)
    kept = [c for c in range(len(features[0])) if c not in columns]
    cleared = [[_clear(row, pivots, columns)[c] for c in kept] for row in features] if pivots else features
    if targets and pivots:
        targets = [[_clear(row, pivots, columns)[c] for c in kept] for row in targets]
    residual = max((abs(x) for i in free for x in cleared[i]), default=fmpq(0))
    if residual != 0:
        notes.append(f"free arms depend on each other up to {float(residual):.3g}, taken as 0")
    return cleared, targets, kept


def _drop_negligible(
    program: AllocationProgram, features: list[Row], targets: list[Row], quotient: Quotient, notes: list[str]
) -> None:
    """Rows that are combinations of free arms up to the rounding of their entries are taken as exactly that."""
    worst = 0.0
    for rows, original, which in (
        (features, program.features, quotient.negligible_arms),
        (targets, program.targets, quotient.negligible_targets),
    ):
        for i in which:
            size = max((abs(x) for x in rows[i]), default=fmpq(0))
            if size != 0:
                worst = max(worst, float(size / rational(np.abs(original[i]).max())))
                rows[i] = [fmpq(0)] * len(rows[i])
    if worst:
        notes.append(
            f"arms or targets are combinations of free arms up to {worst:.3g} (relative), taken as exactly that"
        )


def _clear(row: Row, pivots: list[Row], columns: list[int]) -> Row:
    for pivot, column in zip(pivots, columns, strict=False):
        factor = row[column] / pivot[column]
        if factor != 0:
            row = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return row


def _drop_dependent(
    features: list[Row],
    playable: list[bool],
    targets: list[Row],
    kept: list[int],
    quotient: Quotient,
    notes: list[str],
) -> tuple[list[Row], list[Row]]:
    """Keep the coordinates that span; the others must be the same linear function of them on every row."""
    inside = [n for n, c in enumerate(kept) if c in quotient.coordinates]
    outside = [n for n, c in enumerate(kept) if c not in quotient.coordinates]
    if outside and inside:
        useful = [row for row, may in zip(features, playable, strict=True) if may]
        rows = [row for row in useful + targets if any(x != 0 for x in row)]
        floats = np.array([[float(x) for x in row] for row in rows])
        floats /= np.abs(floats).max(axis=1, keepdims=True)
        from scipy.linalg import qr

        basis = qr(floats[:, inside].T, mode="r", pivoting=True)[1][: len(inside)]
        block = fmpq_mat([[rows[i][n] for n in inside] for i in basis])
        rule = block.solve(fmpq_mat([[rows[i][n] for n in outside] for i in basis]))
        worst = 0.0
        for row in rows:
            expected = fmpq_mat([[row[n] for n in inside]]) * rule
            for n, x in enumerate(outside):
                error = abs(row[x] - expected[0, n])
                if error != 0:
                    worst = max(worst, float(error) / float(max(abs(v) for v in row)))
        if worst:
            notes.append(f"the arms span {len(inside)} dimensions up to {worst:.3g} (relative), taken as 0")
    return [[row[n] for n in inside] for row in features], [[row[n] for n in inside] for row in targets]
