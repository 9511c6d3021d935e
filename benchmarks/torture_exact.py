"""What torture knows without any solver, in exact rationals: ranks, feasibility, values that have a formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from allocopt.model.program import AllocationProgram

Row = list[Fraction]

_BARELY = Fraction(1, 10**12)
"""Constraints that hold or fail by less, relatively, decide nothing: radii and bounds of named programs are rounded."""


def rationals(rows: Any) -> list[Row]:
    """A matrix of doubles as what it is exactly."""
    return [[Fraction(x) for x in row] for row in rows.tolist()]


def echelon(rows: Sequence[Row]) -> tuple[list[Row], list[int]]:
    """Rows that span the same, each with a 1 in a pivot column in which all others are 0; and these columns."""
    basis: list[Row] = []
    pivots: list[int] = []
    for row in rows:
        rest = without(row, basis, pivots)
        pivot = next((c for c, x in enumerate(rest) if x), None)
        if pivot is None:
            continue
        new = [x / rest[pivot] for x in rest]
        basis = [[x - old[pivot] * y for x, y in zip(old, new, strict=True)] for old in basis]
        basis.append(new)
        pivots.append(pivot)
    return basis, pivots


def without(row: Row, basis: Sequence[Row], pivots: Sequence[int]) -> Row:
    """What is left of a row once its part in the span of the basis is taken away."""
    rest = list(row)
    for known, pivot in zip(basis, pivots, strict=True):
        if rest[pivot]:
            factor = rest[pivot]
            rest = [x - factor * y for x, y in zip(rest, known, strict=True)]
    return rest


def exact_rank(matrix: Any) -> int:
    """The dimension of the span of the rows."""
    return len(echelon(rationals(matrix))[1])


def exact_gaps(arms: Any, theta: Any) -> Row:
    """Δ of every arm."""
    weights = [Fraction(x) for x in theta.tolist()]
    means = [sum((x * w for x, w in zip(row, weights, strict=True)), Fraction(0)) for row in rationals(arms)]
    return [max(means) - mean for mean in means]


def independent_value(arms: Any, theta: Any) -> Fraction | None:
    """c = Σ 2/Δ where the arms are linearly independent (a change of basis makes them orthogonal); None elsewhere."""
    if exact_rank(arms) < len(arms):
        return None
    return sum((2 / gap for gap in exact_gaps(arms, theta) if gap), Fraction(0))


def even_allocation(features: Any, owners: Any, noise: Any, targets: Any, radii: Any) -> float:
    """So many plays of every arm meet all targets twice over, as far as doubles can say; 1 where they do not span."""
    rows = features if noise is None else features / np.sqrt(noise)[:, None]
    inverse = np.linalg.pinv(rows.T @ rows)
    norms = np.einsum("ij,jl,il->i", targets, inverse, targets)
    return float(2.0 * max(float((norms / radii).max()), 1e-6))


def _feasible_within(program: AllocationProgram) -> bool | None:
    """The same with linear constraints: False where bounds alone rule it out, True where an even allocation is feasible."""
    given = program.constraints
    assert given is not None
    if feasible(replace(program, constraints=None)) is False:
        return False
    even = even_allocation(program.features, program.owners, program.noise_variance, program.targets, program.radii)
    alpha = np.clip(np.full(program.n_arms, even), program.lower, program.upper)
    if not given.met_by(alpha):
        return None
    weights = alpha[program.row_owners] / (1.0 if program.noise_variance is None else program.noise_variance)
    information = program.features.T @ (weights[:, None] * program.features)
    norms = np.einsum("ij,jl,il->i", program.targets, np.linalg.pinv(information), program.targets)
    return True if (norms <= 0.9 * program.radii).all() and np.linalg.matrix_rank(information) == program.dim else None


def feasible(program: AllocationProgram) -> bool | None:
    """Whether some allocation meets the constraints; None where they hold or fail barely.

    More of an arm never hurts, so the question is what happens with every α at its upper bound: arms without one can be
    played until their directions are known exactly, the others give H = Σ u_i f_i f_iᵀ on what is left.
    """
    if program.constraints is not None:
        return _feasible_within(program)
    if program.kind not in ("general", "optimism", "transductive", "side_observations"):
        return True  # every target is an arm, or a difference of arms, and there is no upper bound
    features, targets = rationals(program.features), rationals(program.targets)
    if program.origin.items is not None and program.origin.compared is not None:
        items = rationals(program.origin.items.arms)
        targets = [
            [x - y for x, y in zip(items[j], items[i], strict=True)] for j, i in program.origin.compared.tolist()
        ]
    noise = [1.0] * len(features) if program.noise_variance is None else program.noise_variance.tolist()
    upper = program.upper[program.row_owners].tolist()  # of each row
    unlimited = [row for row, u in zip(features, upper, strict=True) if u == float("inf")]
    known, pivots = echelon(unlimited)
    limited = [
        (Fraction(u) / Fraction(v), without(row, known, pivots))
        for row, u, v in zip(features, upper, noise, strict=True)
        if 0 < u < float("inf")
    ]
    spanning, columns = echelon([row for _, row in limited])
    size = len(columns)
    # in the coordinates of `columns` every row of the span is its own list of coefficients, and H is invertible
    information = [[sum((u * row[a] * row[b] for u, row in limited), Fraction(0)) for b in columns] for a in columns]
    inverse = [
        row[size:] for row in _solved([row + _unit(i, size) for i, row in enumerate(information)], size)
    ]  # fmt: skip
    answer: bool | None = True
    for target, radius in zip(targets, program.radii.tolist(), strict=True):
        rest = without(target, known, pivots)
        if any(without(rest, spanning, columns)):
            return False
        x = [rest[c] for c in columns]
        norm = sum((x[a] * inverse[a][b] * x[b] for a in range(size) for b in range(size)), Fraction(0))
        if norm > Fraction(radius) * (1 + _BARELY):
            return False
        if norm > Fraction(radius) * (1 - _BARELY):
            answer = None
    return answer


def _unit(i: int, size: int) -> Row:
    return [Fraction(int(i == j)) for j in range(size)]


def _solved(system: list[Row], size: int) -> list[Row]:
    """Gauss–Jordan on a matrix [A | B] with A invertible: [I | A^-1 B]."""
    for c in range(size):
        at = next(i for i in range(c, size) if system[i][c])
        system[c], system[at] = system[at], system[c]
        system[c] = [x / system[c][c] for x in system[c]]
        for i in range(size):
            if i != c and system[i][c]:
                factor = system[i][c]
                system[i] = [x - factor * y for x, y in zip(system[i], system[c], strict=True)]
    return system
