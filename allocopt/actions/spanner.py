"""Barycentric spanners: the few arms that every other arm is a small combination of (Awerbuch & Kleinberg, 2008).

Coefficients do not change when the columns of the arms are mixed, but they do when the rows are scaled. So rank is
decided on equilibrated rows, volume on the rows as they are.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu, qr, solve_triangular
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dgetrf, dgetrs

from allocopt.actions.oracle_spanner import OracleSpanner, oracle_spanner
from allocopt.actions.oracles import Oracle
from allocopt.base.errors import InvalidInstance, InvalidOption, SlowWarning, warn_caller
from allocopt.base.machine import duration_text, single_threaded
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import RANK
from allocopt.base.validation import Array, ArrayLike, IntArray, matrix, positive_number
from allocopt.linear.scaling import equilibrated
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["Spanner", "barycentric_spanner"]

_SLACK = 1e-11
"""A swap must enlarge the volume by more than this beyond C. Fresh coefficients are right to about r · 1e-16, so ties
at exactly C (the hypercube has thousands) are never swapped back and forth, and C = 1 is met to eleven digits."""

_REFRESH = 32.0
"""Sum of the swap factors after which the updated coefficients are computed afresh: an update rounds by about 1e-16
times its factor and these errors add up, so 32 keeps them near 1e-14, far below the slack."""

_SECONDS_A_STEP, _LONG = 1.5e-9, 10.0  # of each arm, direction and coordinate, as measured; what is announced
_MOST_SHOWN = 12  # of its arms in a text


@dataclass(frozen=True, eq=False)
class Spanner(Tabular):
    """Arms that span all arms with coefficients of at most ``C`` in absolute value.

    Attributes
    ----------
    indices : array of int, shape (r,)
        The arms of the spanner; r is the rank of the arms.
    coefficients : array, shape (k, r)
        ``arms[i] = coefficients[i] @ arms[indices]``.
    C : float
        The largest absolute coefficient: what was reached, which can be less than what was asked for.
    swaps : int
        How many times an arm replaced one of the first spanner.
    """

    indices: IntArray
    coefficients: Array
    C: float
    swaps: int

    def __post_init__(self) -> None:
        self.indices.flags.writeable = False
        self.coefficients.flags.writeable = False

    @property
    def dim(self) -> int:
        """r, the dimension of the span of the arms."""
        return len(self.indices)

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.spanner_coefficients`: those of all arms, between −C and C. Returns a matplotlib Figure."""
        return drawn("spanner_coefficients", self, **options)

    def _table(self) -> Table:
        facts = {"arms": self.dim, "largest coefficient": self.C, "swaps": self.swaps}
        largest = np.abs(self.coefficients).max(axis=0, initial=0.0)
        return Table("Barycentric spanner", facts, {"arm": self.indices, "largest coefficient": largest})

    def __repr__(self) -> str:
        few = ", ".join(map(str, self.indices[:_MOST_SHOWN].tolist())) + ", …" * (self.dim > _MOST_SHOWN)
        return f"Spanner(indices=[{few}], C={self.C:.6g}, n_arms={len(self.coefficients)}, swaps={self.swaps})"


@overload
def barycentric_spanner(arms: Oracle, C: float | None = None) -> OracleSpanner: ...
@overload
def barycentric_spanner(arms: ArrayLike, C: float | None = None) -> Spanner: ...
@spelled
def barycentric_spanner(arms: Oracle | ArrayLike, C: float | None = None) -> Spanner | OracleSpanner:
    r"""A C-approximate barycentric spanner of the arms.

    Arms b_1, …, b_r that span the arms, with x = Σ_j w_j b_j and |w_j| ≤ C for every arm x. Swapping x for b_j
    multiplies the volume |det(b_1, …, b_r)| by |w_j|, so swapping while some |w_j| > C comes to an end; with C = 1, at
    a volume that no single swap enlarges.

    Parameters
    ----------
    arms : array_like, shape (k, d)
        One row per arm; duplicates, zeros and rank deficiency are fine. Or an oracle (`allocopt.actions.oracles`) for arms that
        are never listed: then C > 1, and the result is an `OracleSpanner`.
    C : float
        Bound on the coefficients, at least 1 and by default 1 (2 for oracles); met up to a relative 1e-11 unless the
        arms are so close to singular that rounding hides whether a swap enlarges the volume. ``Spanner.C`` is what was reached.

    Examples
    --------
    >>> s = barycentric_spanner([[1, 0], [0, 1], [2, 0], [1, -1]])
    >>> s.indices, s.C
    (array([2, 1]), 1.0)
    >>> s.coefficients[3]
    array([ 0.5, -1. ])
    """
    if isinstance(arms, Oracle):
        return oracle_spanner(arms, 2.0 if C is None else C)
    bound = _bound(1.0 if C is None else C)
    points = matrix("arms", arms, InvalidInstance)
    if not points.any():
        raise InvalidInstance(f"arms: expected at least one arm that is not zero, got none in {len(points)} row(s)")
    _say_if_long(*points.shape)
    with single_threaded():  # all steps are bound by memory; threads would only wait for each other
        rows, exponents = equilibrated(points)
        sizes = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows = _span_coordinates(rows, sizes)
        first = _farthest(rows, sizes, exponents.astype(np.float64))
        start = _first_coefficients(_independent_columns(rows, first), sizes, exponents, first)
        indices, coefficients, swaps = _swap_until(start, first, bound * (1 + _SLACK))
    coefficients[indices] = np.eye(len(indices))
    return Spanner(indices, coefficients, float(max(coefficients.max(), -coefficients.min())), swaps)


def _say_if_long(k: int, d: int) -> None:
    """Warn before it starts where it takes long: every direction is taken out of all arms."""
    seconds = _SECONDS_A_STEP * k * d * d
    if seconds > _LONG:
        warn_caller(
            f"barycentric_spanner: {k:,} arms in {d} dimensions will take about {duration_text(seconds)}", SlowWarning
        )


def _bound(C: object) -> float:
    try:
        bound = positive_number("C", C, InvalidOption, infinite=True)
    except InvalidOption:
        bound = 0.0
    if bound < 1:
        raise InvalidOption(f"C: expected a number >= 1, got {reprlib.repr(C)}")
    return bound


def _span_coordinates(rows: Array, sizes: Array) -> Array:
    """The rows in as many of their columns as they have rank; sizes are divided out when rank is decided."""
    with np.errstate(divide="ignore"):
        weights = -np.log2(sizes)
    some = np.linspace(0, len(rows) - 1, min(len(rows), 8 * rows.shape[1] + 32)).astype(np.int64)
    if len(_farthest(rows[some], sizes[some], weights[some])) == rows.shape[1]:
        return rows  # where a few rows span everything, the others cannot add to it
    return _independent_columns(rows, _farthest(rows, sizes, weights))


def _farthest(rows: Array, sizes: Array, weights: Array) -> IntArray:
    """Greedily the row farthest from the span of those before (distances count 2^weights times) until none is left.

    A distance below RANK times the size of the row is rounding and does not count, however large the row is.
    """
    residual, directions = rows.copy(), np.zeros((0, rows.shape[1]))
    chosen: list[int] = []
    while len(chosen) < min(rows.shape):
        distance = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(distance > RANK * sizes, np.log2(distance) + weights, -np.inf)
        i = int(np.argmax(score))
        if score[i] == -np.inf:
            break
        direction = residual[i] / distance[i]
        # a row that has lost most of its length is no longer orthogonal to the earlier directions: project again
        direction -= directions.T @ (directions @ direction)
        direction /= np.linalg.norm(direction)
        directions = np.vstack([directions, direction])
        chosen.append(i)
        residual = dger(-1.0, direction, residual @ direction, a=residual.T, overwrite_a=True).T
    return np.array(chosen, dtype=np.int64)


def _independent_columns(rows: Array, basis: IntArray) -> Array:
    """As many columns as there are basis rows, which determine a vector of their span: exact coordinates in it."""
    if len(basis) == rows.shape[1]:
        return rows
    pivots = qr(rows[basis], mode="r", pivoting=True)[1]
    return np.ascontiguousarray(rows[:, np.sort(pivots[: len(basis)])])


def _first_coefficients(rows: Array, sizes: Array, exponents: NDArray[np.int32], basis: IntArray) -> Array:
    """Coefficients of the unscaled arms in the arms of the greedy basis.

    All later work is done in these coordinates: however close to parallel the arms are, their coefficients in a basis
    of nearly the largest volume are moderate, and so are the condition numbers of better bases.
    """
    permutation, lower, upper = lu(rows[basis].T, p_indices=True)
    # L solves for what is left of an arm along each basis arm in turn, U for the coefficients
    left = solve_triangular(lower, rows[:, np.argsort(permutation)].T, lower=True, unit_diagonal=True)
    shift = exponents[:, None] - exponents[basis]
    if np.ptp(exponents[sizes > 0]) > -np.log2(RANK):
        # the rounding of a huge arm can be as long as a whole tiny arm; it must not count as a coefficient of that one
        # (8 because what elimination leaves of an arm is up to a few times the distance that _farthest measured)
        with np.errstate(over="ignore"):
            excess = np.ldexp(np.abs(left.T), shift) > np.abs(np.diag(upper))
        left.T[excess & (np.abs(left.T) <= 8 * RANK * sizes[:, None])] = 0.0
    result: Array = np.ldexp(solve_triangular(upper, left, overwrite_b=True).T, shift)
    result[basis] = np.eye(len(basis))
    return result


def _swap_until(points: Array, first: IntArray, bound: float) -> tuple[IntArray, Array, int]:
    """Swap in the arm with the largest coefficient until none exceeds the bound.

    ``points`` are the coefficients of the arms in the arms ``first``. Returns the basis, the coefficients in it, fresh
    from a factorisation, and the number of swaps. A basis is kept only if its recomputed volume is larger than that of
    the last one kept, so no basis comes back and the loop ends on every input.
    """
    basis, swaps, coefficients = first.copy(), 0, points.copy()
    kept, kept_swaps, volume = first.copy(), 0, 0.0
    growth, allowed = 0.0, _REFRESH
    while True:
        i, j = _largest(coefficients)
        factor = abs(float(coefficients[i, j]))
        if factor > bound and allowed >= 0:
            coefficients = _exchange(coefficients, i, j)
            basis[j] = i
            swaps, growth = swaps + 1, growth + factor
            if growth < allowed:
                continue
        elif growth == 0:
            return basis, coefficients, swaps
        factors, pivots, new_volume = _factorised(points[basis])
        if new_volume > volume:
            kept, kept_swaps, volume = basis.copy(), swaps, new_volume
        else:
            # the swaps only seemed to enlarge the volume, by rounding: go back, compute afresh after every swap from now on,
            # and stop if that does not help either
            basis, swaps = kept.copy(), kept_swaps
            allowed = 0.0 if allowed > 0 else -1.0
            factors, pivots, _ = _factorised(points[basis])
        coefficients, growth = dgetrs(factors, pivots, points.T)[0].T, 0.0


def _largest(coefficients: Array) -> tuple[int, int]:
    """Where the largest absolute coefficient is (two passes, but no copy)."""
    top, bottom = int(coefficients.argmax()), int(coefficients.argmin())
    return divmod(top if coefficients.flat[top] >= -coefficients.flat[bottom] else bottom, int(coefficients.shape[1]))


def _exchange(coefficients: Array, i: int, j: int) -> Array:
    """Coefficients after arm i has replaced the j-th basis arm: a rank-one update, in place."""
    change = coefficients[i] / coefficients[i, j]
    change[j] -= 1.0 / coefficients[i, j]
    return dger(-1.0, change, coefficients[:, j].copy(), a=coefficients.T, overwrite_a=True).T


def _factorised(basis: Array) -> tuple[Array, IntArray, float]:
    """LU factors and pivots of the transposed basis, and the logarithm of its volume."""
    factors, pivots, _ = dgetrf(basis.T)
    with np.errstate(divide="ignore"):
        return factors, pivots, float(np.log(np.abs(np.diag(factors))).sum())
