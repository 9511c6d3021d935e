"""What Newton's method works on: the problem as columns, the numbers that tune it, the basis in which M(α) = I, and its own gap.

Part of `newton`, where the way it is written is explained.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.certify.certificate import best_scale
from allocopt.linear.dense import (
    add_products,
    cross,
    dot,
    largest,
    scaled_columns,
    squared_lengths,
    total,
    weighted,
    whitener,
)
from allocopt.solvers.settings import InteriorPointSettings

__all__ = [
    "DEFAULT",
    "Problem",
    "Tuning",
    "add_curvature",
    "bounded_gap",
    "by_arm",
    "by_column",
    "images",
    "in_basis",
    "n_arms",
    "relative_gap",
    "rows_in_basis",
    "tuning_of",
    "white",
]


class Problem(NamedTuple):
    """The canonical program as this method takes it: vectors are columns, and None stands for what is not there.

    Compiled code is given a plain tuple of the same things, which numba takes three times as fast.
    """

    features: Array
    """a_i, shape (r, k)."""
    targets: Array | None
    """b_j, shape (r, m); None where target j is ``ratios[j]`` times feature j."""
    ratios: Array
    """Used where ``targets`` is None."""
    base: Array | None
    """Rows B of what is known already, M(α) = BᵀB + Σ α_i a_i a_iᵀ."""
    upper: Array | None
    """u: the most that α may be; inf where there is no limit."""
    offset: float
    """Cost of the lower bounds."""
    owners: IntArray | None
    """The arm of each column of ``features``, in increasing order; None where every arm has one."""


class Tuning(NamedTuple):
    """The numbers of the method, as `allocopt.solvers.settings.InteriorPointSettings` explains them."""

    step_fraction: float
    growth: float
    least_sigma: float
    stalled_sigma: float
    stalled_after: int
    least_centring: float
    gap_fraction: float
    bounded_gap_fraction: float
    stall_steps: int
    stall_gap: float
    negligible_constraint: float
    cold_distance: float
    start_slack: float
    start_level: float
    cheaper_start: float
    warm_shift: float
    least_warm_shift: float
    trace: float


def tuning_of(settings: InteriorPointSettings) -> Tuning:
    """The numbers of a settings record that reach the method itself."""
    return Tuning(*(getattr(settings, name) for name in Tuning._fields))


DEFAULT = tuning_of(InteriorPointSettings())  # what ``tuning`` None means: constants to the compiler

# The problem in a basis


def in_basis(columns: Array | None, basis: Array) -> Any:
    """Columns in another basis."""
    return None if columns is None else cross(basis, columns)


def rows_in_basis(rows: Array | None, basis: Array) -> Any:
    """Rows in another basis."""
    return None if rows is None else rows @ basis


def images(a: Array, targets: Array | None, ratios: Array, basis: Array) -> Array:
    """The targets in a basis, given the features a in it."""
    return scaled_columns(a, ratios) if targets is None else cross(basis, targets)


def white(features: Array, targets: Array | None, ratios: Array, base: Array | None, alpha: Array) -> Any:
    """Whether M(α) is regular, the basis in which it is I, features a and targets b in it, and g."""
    regular, basis = whitener(features, alpha, base)
    a = cross(basis, features)
    b = scaled_columns(a, ratios) if targets is None else cross(basis, targets)
    return regular, basis, a, b, squared_lengths(b)


# Arms with several columns: sums over the columns of each


def n_arms(features: Array, owners: IntArray | None) -> int:
    """The number of α."""
    return features.shape[1] if owners is None else int(owners[-1]) + 1


def by_column(alpha: Array, owners: IntArray | None) -> Array:
    """α of the arm of each column."""
    return alpha if owners is None else alpha[owners]


def by_arm(matrix: Array, owners: IntArray | None) -> Array:
    """Sums over the columns (of a vector: the entries) of each arm."""
    if owners is None:
        return matrix
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    sums: Array = np.add.reduceat(matrix, starts, axis=-1)
    return sums


def add_curvature(matrix: Array, left: Array, right: Array, owners: IntArray | None) -> None:
    """Add 2 L∘R, which are over columns, summed over those of each arm."""
    if owners is None:
        add_products(matrix, 2.0, left, right)
    else:
        left *= right
        matrix += 2.0 * by_arm(by_arm(left, owners).T, owners)


# The gap that the method itself looks at


def relative_gap(
    cost: float, g: Array, lam: Array, prices: Array,
    b: Array, base: Array | None, basis: Array, upper: Array | None, offset: float,
) -> float:  # fmt: skip
    """The gap of (α, λ), given the prices for λ: the certificate's formulas without its margins for rounding."""
    if base is None and upper is None:
        strength = dot(lam, g)
        if not strength > 0.0:
            return np.inf
        return cost * largest(g) * total(lam) * largest(prices) / (strength * strength) - 1.0
    return bounded_gap(cost, g, lam, prices, b, base, basis, upper, offset)


def bounded_gap(
    cost: float, g: Array, lam: Array, prices: Array,
    b: Array, base: Array | None, basis: Array, upper: Array | None, offset: float,
) -> float:  # fmt: skip
    """The gap where α cannot be scaled at will; the last five arguments matter here alone."""
    strength, worst = dot(lam, g), largest(g)
    if not strength > 0.0:
        return np.inf
    known_rows = np.zeros((0, len(b))) if base is None else base @ basis
    known = float(np.einsum("ij,ij->", known_rows @ weighted(b, lam), known_rows))
    # prices scale with λ, so the slope for λ itself (not λ/Σλ) is strength²/Σλ − known
    lower = best_scale(strength * strength / total(lam) - known, prices, upper)[1] + offset
    value = cost * max(worst, 1.0) + offset
    return abs(value - lower) / max(lower, NOT_ZERO) + max(worst - 1.0, 0.0)
