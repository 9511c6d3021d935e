"""Rows, means and distances of a named program in exact rationals: features and targets that are differences are formed here."""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq

from allocopt.base.validation import Array
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import AllocationProgram

Row = list[fmpq]

DISTANCES = ("best_arm", "top_m", "threshold", "transductive", "duelling")
"""Programs whose radii are those of distances between means, not of gaps that ties may have set to 0."""

__all__ = ["DISTANCES", "Row", "common_variance", "exact_distances", "exact_duel_costs", "exact_features"]
__all__ += ["exact_means", "exact_targets", "rational"]


def rational(number: float) -> fmpq:
    """A double as the rational it is."""
    return fmpq(*float(number).as_integer_ratio())


def _rows(matrix: Array) -> list[Row]:
    return [[rational(x) for x in row] for row in matrix.tolist()]


def _minus(row: Row, other: Row) -> Row:
    return [x - y for x, y in zip(row, other, strict=True)]


def _dot(row: Sequence[fmpq], other: Sequence[fmpq]) -> fmpq:
    return sum((x * y for x, y in zip(row, other, strict=True)), fmpq(0))


def exact_features(program: AllocationProgram, units: Array) -> list[Row]:
    """The features, in units of the columns that are powers of two."""
    duels = program.origin.duels
    if duels is None:
        return _rows(program.features * units)
    arms = _rows(_named(program).arms_in_memory * units)
    return [_minus(arms[i], arms[j]) for i, j in duels.tolist()]


def exact_targets(program: AllocationProgram, units: Array) -> list[Row]:
    """The targets, likewise."""
    compared = program.origin.compared
    if compared is not None:
        rows = _rows(_named(program).arms_in_memory * units)
        return [_minus(rows[j], rows[i]) for j, i in compared.tolist()]
    return _rows(program.targets * units)


def exact_means(bandit: LinearBandit | ContextualBandit) -> Row:
    """⟨x, θ⟩ of every arm."""
    theta = [rational(x) for x in bandit.theta]
    return [_dot(row, theta) for row in _rows(bandit.arms_in_memory)]


def exact_distances(program: AllocationProgram) -> Row:
    """How far means are apart, or from τ, for each target: what has to change for an answer to become wrong."""
    means, origin = exact_means(_named(program)), program.origin
    shift = fmpq(0) if origin.number is None else rational(origin.number)
    if origin.compared is not None:
        return [means[i] - means[j] + shift for j, i in origin.compared.tolist()]
    assert program.target_arms is not None
    return [abs(means[i] - shift) for i in program.target_arms]


def exact_duel_costs(program: AllocationProgram) -> Row | None:
    """(Δ_i + Δ_j)/2 of every duel; None where there are none."""
    if program.origin.duels is None:
        return None
    means = exact_means(_named(program))
    best = max(means)
    return [best - (means[i] + means[j]) / 2 for i, j in program.origin.duels.tolist()]


def common_variance(program: AllocationProgram) -> fmpq:
    """σ² of all arms; 1 where each has its own, which the change of variables takes care of."""
    noise = _named(program).noise_variance
    return rational(noise) if isinstance(noise, float) else fmpq(1)


def _named(program: AllocationProgram) -> LinearBandit | ContextualBandit:
    """The bandit whose rows, means and noise a named program is about."""
    found = program.origin.bandit if program.origin.items is None else program.origin.items
    assert found is not None
    return found
