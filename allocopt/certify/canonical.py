r"""The canonical program that every solver sees, and what a pair (α, λ) proves for it.

    minimise  Σ α_i   s.t.   g_j(α) = b_jᵀ M(α)^-1 b_j <= 1,   0 <= α <= u,   M(α) = BᵀB + Σ α_i a_i a_iᵀ

a are the rows of ``features``, b those of ``targets``, B those of ``base`` (what is already known: lower bounds and
arms that cost nothing). u is infinite unless ``upper`` is given. ``offset`` is the cost of the lower bounds.

A variable whose arm shows several things has several rows a, and a_i a_iᵀ stands for the sum of a aᵀ over them. ``owners`` says which
variable a row belongs to: quantities of rows become those of variables by sums (``by_variable``), α goes to rows by ``by_row``.

Linear constraints are ``limits``: Vα <= v. Only then variables may cost nothing (``costs``) or have rows of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.linear import dense
from allocopt.linear.dense import group_sums, squared_row_lengths
from allocopt.linear.floating import gamma

__all__ = ["Bounds", "Canonical", "Limits", "SumError", "whitener"]

_LARGEST_RESIDUAL = 0.5  # of an approximate inverse, beyond which nothing is claimed


@dataclass(frozen=True, eq=False)
class SumError:
    """How far BᵀB can be from the sum M_0 that it stands for, where a few rows B are in the place of very many."""

    coordinates: Array
    """C: columns in which the sum was made."""
    inverse: Array
    """Y, about C^-1; nothing rests on its quality."""
    size: float
    """A bound on ||Cᵀ(M_0 − BᵀB)C||."""

    @cached_property
    def residual(self) -> float:
        """A bound on ||I − YC||."""
        r = len(self.inverse)
        product = self.inverse @ self.coordinates
        product.flat[:: r + 1] -= 1.0
        rounding = gamma(r + 2) * (self._lengths(self.coordinates) + 1.0)
        return (float(np.linalg.norm(product)) + rounding) * (1.0 + gamma(r * r + 8))

    def within(self, basis: Array) -> float:
        """A bound on ||Vᵀ(M_0 − BᵀB)V|| for a basis V: C^-1 V = (YC)^-1 Y V, and ||(YC)^-1|| <= 1/(1 − ||I − YC||)."""
        if not self.residual <= _LARGEST_RESIDUAL:
            return float("inf")
        r = len(self.inverse)
        image = self.inverse @ basis
        squares = float((image * image).sum())
        # the largest sum of a row of XᵀX bounds its norm, and so does the sum of squares of X
        rows = float(np.abs(image.T @ image).sum(axis=1).max(initial=0.0)) + r * gamma(r + 2) * squares
        length = float(np.sqrt(min(squares, rows))) + gamma(r + 2) * self._lengths(basis)
        return self.size * (length / (1.0 - self.residual)) ** 2 * (1.0 + gamma(r * r + 16))

    def _lengths(self, basis: Array) -> float:
        return float(np.linalg.norm(self.inverse)) * float(np.linalg.norm(basis))


@dataclass(frozen=True, eq=False)
class Limits:
    """Linear constraints Vα <= v on a canonical α, by the entries of V that are not 0."""

    places: IntArray
    """The row of each entry."""
    variables: IntArray
    """Its variable."""
    values: Array
    room: Array
    """v: what is left of b once everything fixed is played."""
    sizes: Array
    """What the rounding of ``room`` is relative to: |b| + |B|l."""
    error: float
    """Relative error of ``values``."""
    n_variables: int

    def used(self, alpha: Array) -> Array:
        """Vα, rounded."""
        return group_sums(self.places, self.values * alpha[self.variables], len(self.room))

    def terms(self, alpha: Array) -> Array:
        """|V|α for α >= 0."""
        return group_sums(self.places, np.abs(self.values) * alpha[self.variables], len(self.room))

    def charged(self, multipliers: Array) -> Array:
        """Vᵀμ: what the rows charge for a unit of each variable, rounded."""
        return group_sums(self.variables, self.values * multipliers[self.places], self.n_variables)

    def charged_terms(self, multipliers: Array) -> Array:
        """|V|ᵀμ for μ >= 0."""
        return group_sums(self.variables, np.abs(self.values) * multipliers[self.places], self.n_variables)

    def dense(self) -> Array:
        """V as an array."""
        matrix = np.zeros((len(self.room), self.n_variables))
        matrix[self.places, self.variables] = self.values
        return matrix


@dataclass(frozen=True, eq=False)
class Canonical:
    """Canonical arrays; see the module's text. Rows of ``features`` and ``targets`` are non-zero and span R^r."""

    features: Array
    targets: Array
    base: Array
    upper: Array | None = None
    offset: float = 0.0
    ratios: Array | None = None
    """Where target j is ratios[j] times feature j: products with the targets then follow from those with the features."""
    error: float = 0.0
    """ρ: relative error of every entry of ``features``, ``targets`` and ``base`` (docs/certificates.md)."""
    bound_error: float = 0.0
    """Relative error of ``upper`` and ``offset``, and of costs."""
    owners: IntArray | None = None
    """The variable of each row of ``features``, in increasing order, every variable with a row; None where each has one."""
    limits: Limits | None = None
    costs: Array | None = None
    """1 for variables that cost something and 0 for the others; None where all do."""
    sum_error: SumError | None = None
    """Where ``base`` stands for very many rows: how far their sum can be from BᵀB."""

    @property
    def rank(self) -> int:
        """r, the dimension of the quotient."""
        return int(self.features.shape[1])

    @property
    def n_variables(self) -> int:
        """The number of α."""
        return len(self.features) if self.owners is None else int(self.owners[-1]) + 1

    @cached_property
    def starts(self) -> IntArray:
        """The first row of each variable."""
        if self.owners is None:
            return np.arange(len(self.features))
        return np.flatnonzero(np.diff(self.owners, prepend=-1))

    @cached_property
    def most_rows(self) -> int:
        """The largest number of rows of a variable."""
        return 1 if self.owners is None else int(np.diff(self.starts, append=len(self.owners)).max())

    def by_row(self, alpha: Array) -> Array:
        """α of the variable of each row."""
        return alpha if self.owners is None else alpha[self.owners]

    def by_variable(self, values: Array) -> Array:
        """Sums over the rows of each variable."""
        if self.owners is None:
            return values
        sums: Array = np.add.reduceat(values, self.starts)
        return sums

    def rows_of(self, variables: IntArray) -> IntArray:
        """The rows of some variables, which are in increasing order."""
        if self.owners is None:
            return variables
        return np.flatnonzero(np.isin(self.owners, variables))

    def owners_within(self, variables: IntArray) -> IntArray | None:
        """``owners`` for the rows of some variables alone, numbered anew."""
        if self.owners is None:
            return None
        own = np.searchsorted(variables, self.owners[self.rows_of(variables)])
        return None if len(own) == len(variables) else own

    @cached_property
    def compact_base(self) -> Array:
        """At most r rows with the same BᵀB up to rounding: for proposals."""
        base = self.base
        return np.asarray(np.linalg.qr(base, mode="r")) if len(base) > self.rank else base

    @cached_property
    def feature_lengths(self) -> Array:
        """Euclidean lengths of the features."""
        return np.sqrt(squared_row_lengths(self.features))

    @property
    def scalable(self) -> bool:
        """Whether α may be multiplied by any factor: no upper bounds, no linear constraints and nothing known beforehand."""
        return self.upper is None and not len(self.base) and self.limits is None


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a pair (α, λ) proves; ``rounding`` is the relative width that is due to rounding."""

    upper: float
    lower: float
    alpha: Array
    """The feasible allocation that ``upper`` is the cost of (without ``offset``)."""
    multipliers: Array
    """λ scaled so that it is dual feasible; its sum is the value when nothing is bounded."""
    constraints: Array
    """g_j at the α that was passed."""
    prices: Array
    """p_i = Σ_j λ_j (a_iᵀ M^-1 b_j)² (summed over the rows of i) with the scaled λ: at most 1 for arms without upper bound."""
    rounding: float
    row_multipliers: Array | None = field(default=None, kw_only=True)
    """μ of the linear constraints, where there are any."""

    @property
    def gap(self) -> float:
        """(upper − lower)/lower; 0 when both are 0, inf when nothing is proven."""
        if not (np.isfinite(self.upper) and self.lower > 0):
            return 0.0 if self.upper == self.lower == 0 else float("inf")
        return (self.upper - self.lower) / self.lower


def whitener(problem: Canonical, alpha: Array) -> Array | None:
    """Upper triangular B with Bᵀ M(α) B = I up to rounding, or None where M(α) is singular."""
    base = problem.compact_base if len(problem.base) else None
    regular, basis = dense.whitener(problem.features.T, problem.by_row(alpha), base)
    return basis if regular else None
