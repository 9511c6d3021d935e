r"""How h_j(α) = 1/g_j(α) depends on α, to second order: as arrays, or for many variables by the entries of their matrices.

With rows a of the features and targets b in the basis in which M = I, variable i stands for A_i = Σ a aᵀ over its rows and target j
for b_j b_jᵀ. Everything is linear in these: ∂h_j/∂α_i = ⟨b_j b_jᵀ, A_i⟩/g_j², and −Σ ν_j ∂²h_j/∂α_i∂α_l = 2 tr(A_i B A_l)
− 2 Σ ν_j g_j ∂_i h_j ∂_l h_j for B = Σ (ν_j/g_j²) b_j b_jᵀ. A symmetric r×r matrix has s = r(r+1)/2 entries: so this is 𝒜ᵀ C 𝒜 with
an s×k array 𝒜, and neither k×k nor (targets)×k arrays are made.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array

from allocopt.base.errors import InvalidProgram, SolverFailed
from allocopt.base.machine import check_memory
from allocopt.base.validation import Array
from allocopt.certify.canonical import Canonical, Limits
from allocopt.solvers.newton.sparse_plus_few import SparsePlusFew

__all__ = ["ByEntries", "Curvature", "Factor", "Whole", "by_entries"]

_DAMPING = 1e-14  # of the Newton matrix's diagonal, where it is not definite
_FEW = 300  # variables up to which arrays of all pairs are made
_SLOWER = 100.0  # times: a multiplication of sparse matrices, beside one of BLAS
_WORTH = 4.0  # times as many variables as entries, at least, for these to be worth their work


class Factor(Protocol):
    """A factorised Newton matrix."""

    def solve(self, right: Array) -> Array:
        """The solution for a right-hand side."""


class Curvature(Protocol):
    """First and second derivatives of h at a point."""

    def along(self, step: Array) -> Array:
        """∇h · step, for every target."""

    def back(self, nu: Array) -> Array:
        """Σ ν_j ∇h_j."""

    def factorised(self, nu: Array, of_targets: Array, diagonal: Array, rows: csr_array, of_rows: Array) -> Factor:
        """−Σ ν_j ∇²h_j + Σ w_j ∇h_j ∇h_jᵀ + diag(…) + Vᵀ diag(…) V."""


def by_entries(rank: int, limits: Limits) -> bool:
    """Whether a problem of so many variables, and such linear constraints, should not be made of arrays of pairs.

    A row is eliminated, which couples all variables in it, or kept to the end, which adds a column: whichever fills less.
    """
    entries, n_variables = rank * (rank + 1) // 2, limits.n_variables
    in_row = np.bincount(limits.places).astype(np.float64)
    few = np.minimum(in_row**2, n_variables).sum() + n_variables * entries < n_variables**2 / 8
    return n_variables > max(_FEW, _WORTH * entries) and few


class Whole:
    """Arrays of targets × variables, and of pairs of variables."""

    def __init__(self, problem: Canonical, a: Array, b: Array, g: Array) -> None:
        self.problem, self.a, self.g = problem, a, g
        self.products = b @ a.T
        self.slopes = self._by_variable((self.products / g[:, None]) ** 2)

    def _by_variable(self, matrix: Array) -> Array:
        """Sums over the rows of each variable, along the last axis."""
        if self.problem.owners is None:
            return matrix
        sums: Array = np.add.reduceat(matrix, self.problem.starts, axis=-1)
        return sums

    def along(self, step: Array) -> Array:
        result: Array = self.slopes @ step
        return result

    def back(self, nu: Array) -> Array:
        result: Array = self.slopes.T @ nu
        return result

    def factorised(self, nu: Array, of_targets: Array, diagonal: Array, rows: csr_array, of_rows: Array) -> Factor:
        k = len(diagonal)
        check_memory(24.0 * k * k, f"a Newton matrix of {k:,} arms", InvalidProgram)
        matrix = np.zeros((k, k))
        if len(nu):
            second = (self.a @ self.a.T) * (self.products.T @ ((nu / self.g**2)[:, None] * self.products))
            matrix += 2.0 * self._by_variable(self._by_variable(second).T)
            matrix += self.slopes.T @ ((of_targets - 2.0 * nu * self.g)[:, None] * self.slopes)
        matrix += _of_rows(rows, of_rows)
        matrix.flat[:: k + 1] += diagonal
        return _Dense(matrix)


def _of_rows(rows: csr_array, weights: Array) -> Array:
    """Vᵀ diag(w) V as an array, by the entries of V where these are few."""
    in_row = np.diff(rows.indptr).astype(np.float64)
    if (in_row**2).sum() * _SLOWER < rows.shape[0] * float(rows.shape[1]) ** 2:
        sparse: Array = (rows.T @ (diags_array(weights) @ rows)).toarray()
        return sparse
    dense = rows.toarray()
    whole: Array = dense.T @ (weights[:, None] * dense)
    return whole


class _Dense:
    def __init__(self, matrix: Array) -> None:
        if not np.isfinite(matrix).all():
            raise SolverFailed("the Newton matrix left the range of doubles")
        k = len(matrix)
        for damping in (0.0, _DAMPING, 1e3 * _DAMPING, 1e6 * _DAMPING):
            damped = matrix.copy()
            damped.flat[:: k + 1] *= 1.0 + damping
            try:
                self.factor = cho_factor(damped, lower=True, check_finite=False)
                return
            except LinAlgError:
                continue
        raise SolverFailed("the Newton matrix is numerically singular")

    def solve(self, right: Array) -> Array:
        solution: Array = cho_solve(self.factor, right, check_finite=False)
        return solution


class ByEntries:
    """The s entries of the matrices of variables and targets."""

    def __init__(self, problem: Canonical, a: Array, b: Array, g: Array) -> None:
        self.g, self.rank = g, problem.rank
        self.matrices = problem.by_variable(_entries(a)).T
        self.targets = _entries(b) / (g * g)[:, None]
        self.scaled_targets = b / g[:, None]

    def along(self, step: Array) -> Array:
        result: Array = self.targets @ (self.matrices @ step)
        return result

    def back(self, nu: Array) -> Array:
        result: Array = self.matrices.T @ (self.targets.T @ nu)
        return result

    def factorised(self, nu: Array, of_targets: Array, diagonal: Array, rows: csr_array, of_rows: Array) -> Factor:
        weights = self.scaled_targets.T @ (nu[:, None] * self.scaled_targets)
        core = 2.0 * _product_form(weights)
        core += self.targets.T @ ((of_targets - 2.0 * nu * self.g)[:, None] * self.targets)
        return SparsePlusFew(self.matrices, core, diagonal, rows, of_rows)


def _entries(rows: Array) -> Array:
    """The entries of a aᵀ on and above the diagonal, the latter times √2, so that their products are those of the matrices."""
    upper, left = np.triu_indices(rows.shape[1])
    weights = np.where(upper == left, 1.0, np.sqrt(2.0))
    result: Array = rows[:, upper] * rows[:, left] * weights
    return result


def _product_form(b: Array) -> Array:
    """The quadratic form X ↦ tr(X B X) of symmetric matrices, in these entries."""
    r = len(b)
    upper, left = np.triu_indices(r)
    count = len(upper)
    basis = np.zeros((count, r, r))
    size = np.where(upper == left, 1.0, np.sqrt(0.5))
    basis[np.arange(count), upper, left] = size
    basis[np.arange(count), left, upper] = size
    form: Array = (basis @ b).reshape(count, -1) @ basis.transpose(0, 2, 1).reshape(count, -1).T
    return 0.5 * (form + form.T)
