"""What Newton's method works on: the problem as columns, the numbers that tune it, the basis in which M(α) = I, and its own gap.

Part of `newton`, where the way it is written is explained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.certify.certificate import best_scale
from allocopt.linear.dense import (
    add_diagonal,
    add_entries,
    add_products,
    cross,
    dot,
    lanes,
    largest,
    scaled_columns,
    squared_lengths,
    total,
    weighted,
    whitener,
)
from allocopt.solvers.settings import InteriorPointSettings

__all__ = [
    "CHOICES",
    "DEFAULT",
    "Problem",
    "Tuning",
    "add_barrier",
    "add_curvature",
    "add_to_capped",
    "bounded_gap",
    "by_arm",
    "by_column",
    "capped_arms",
    "cut_to",
    "gap_goal",
    "images",
    "in_basis",
    "metric",
    "n_arms",
    "n_capped",
    "relative_gap",
    "room_above",
    "rows_in_basis",
    "scalable",
    "take_capped",
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
    metric_trace: float


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
    b = images(a, targets, ratios, basis)
    return regular, basis, a, b, squared_lengths(b)


def metric(features: Array, targets: Array | None, ratios: Array, base: Array | None, trace: float) -> Array:
    """The basis in which Σ_j b_j b_jᵀ, the information that would meet all constraints by itself, is about I.

    Targets of their own need not span: a trace of the features makes the sum definite.
    """
    k = features.shape[1]
    columns, weights = features, np.empty(k)
    if targets is None:
        for j in lanes(k):
            weights[j] = ratios[j] * ratios[j]
    else:
        columns, weights = np.concatenate((targets, features), axis=1), np.ones(targets.shape[1] + k)
        share = trace * total(squared_lengths(targets)) / k
        lengths, own = squared_lengths(features), weights[targets.shape[1] :]
        for i in lanes(k):
            own[i] = share / lengths[i]
    basis: Array = whitener(columns, weights, base)[1]
    return basis


def scalable(base: Array | None, upper: Array | None) -> bool:
    """Whether α may be multiplied by any factor."""
    return base is None and upper is None


# Arms with a finite upper bound; ``capped`` is None where there are no bounds at all


def capped_arms(upper: Array | None) -> Any:
    """The arms with a finite upper bound."""
    return None if upper is None else np.flatnonzero(np.isfinite(upper))


def n_capped(capped: IntArray | None) -> int:
    """How many they are."""
    return 0 if capped is None else len(capped)


def add_to_capped(x: Array, capped: IntArray | None, values: Array) -> None:
    """Add a value to each of their entries of x."""
    if capped is not None:
        x[capped] += values


def take_capped(values: Array, x: Array, capped: IntArray | None) -> None:
    """Their entries of −x, into ``values``."""
    if capped is not None:
        values[:] = -x[capped]


def cut_to(alpha: Array, upper: Array | None, share: float) -> None:
    """α at most a share of its upper bounds, in place."""
    if upper is not None:
        alpha[:] = np.minimum(alpha, share * upper)


def room_above(x: Array, upper: Array | None, capped: IntArray | None) -> None:
    """u − α of the capped arms, the last entries of x, from α, the entries before them."""
    if capped is not None and upper is not None:
        first = len(x) - len(capped)
        x[first:] = upper[capped] - x[first - len(upper) : first][capped]


def add_barrier(matrix: Array, scaling: Array, m: int, capped: IntArray | None) -> None:
    """What α >= 0 and the upper bounds add to the diagonal of the Newton matrix."""
    k = len(matrix)
    add_diagonal(matrix, scaling[m : m + k])
    if capped is not None:
        add_entries(matrix, capped, scaling[m + k :])


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


def gap_goal(base: Array | None, upper: Array | None, tol: float, fraction: float, bounded: float) -> float:
    """The gap at which the method stops: so far below ``tol`` that the certificate's allowance for rounding has room."""
    goal = fraction * tol
    if base is not None or upper is not None:
        goal *= bounded  # α cannot simply be scaled to feasibility: what is missing costs more than it does here
    return goal


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


CHOICES: tuple[Callable[..., Any], ...] = (
    n_arms,
    by_column,
    by_arm,
    add_curvature,
    in_basis,
    rows_in_basis,
    images,
    metric,
    scalable,
    capped_arms,
    n_capped,
    add_to_capped,
    take_capped,
    cut_to,
    room_above,
    add_barrier,
    gap_goal,
    relative_gap,
)
"""What the steps of `iteration` and `start` leave to small functions because something may be absent (None)."""
