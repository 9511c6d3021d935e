r"""The Newton system of very many variables: N = 𝒜ᵀC𝒜 + D + VᵀWV, with few entries (rows of 𝒜) and a sparse V.

With 𝒜ᵀC𝒜 = UUᵀ the system is that of α, y = √W V α and u = Uᵀα. Without u it is sparse, and s right-hand sides of it, products of
dense arrays and a matrix of s×s are all that is left: k·s² multiplications of BLAS. Where α's own weights D span many orders of
magnitude that order of elimination may lose digits. What is solved is therefore refined by N itself, and where that does not help,
everything is factorised together, with pivots, which takes some thirty times as long.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import block_array, csr_array, diags_array, eye_array, vstack
from scipy.sparse.linalg import splu

from allocopt.base.errors import InvalidProgram, SolverFailed
from allocopt.base.machine import check_memory
from allocopt.base.validation import Array

__all__ = ["SparsePlusFew"]

_ROUNDS = 3  # of refinement
_REFINED = 1e-12  # relative residual below which there is nothing to refine
_GOOD = 1e-9  # and above which what was refined is not good enough
_NO_PART = 1e-15  # of the largest eigenvalue: smaller ones are rounding
_BYTES = 100.0  # for each entry of a sparse system below its diagonal: the system, its two factors and what is made on the way
_BYTES_FEW = 32.0  # for each entry of U: itself, its scaled copy, the solutions of its columns and their product


class _Factor(Protocol):
    def solve(self, right: Array) -> Array:
        """The solution for a right-hand side."""


class SparsePlusFew:
    """N, factorised."""

    def __init__(self, matrices: Array, core: Array, diagonal: Array, rows: csr_array, of_rows: Array) -> None:
        if not (np.isfinite(core).all() and np.isfinite(diagonal).all() and np.isfinite(of_rows).all()):
            raise SolverFailed("the Newton matrix left the range of doubles")
        values, vectors = np.linalg.eigh(core) if len(core) else (np.zeros(0), np.zeros((0, 0)))
        kept = values > _NO_PART * values.max(initial=0.0)
        check_memory(_BYTES_FEW * len(diagonal) * int(kept.sum()), _named(diagonal), InvalidProgram)
        self.u = matrices.T @ (vectors[:, kept] * np.sqrt(values[kept]))
        self.rows = diags_array(np.sqrt(of_rows)) @ rows
        self.diagonal = diagonal
        on_diagonal = (
            diagonal + (self.u * self.u).sum(axis=1) + np.asarray(self.rows.multiply(self.rows).sum(axis=0)).ravel()
        )
        if not (on_diagonal > 0).all():
            raise SolverFailed("the Newton matrix is numerically singular")
        self.unit = 1.0 / np.sqrt(on_diagonal)
        self.narrow = self.u * self.unit[:, None]
        self.scaled_rows = csr_array(self.rows @ diags_array(self.unit))
        self.by_parts: _Factor | None = None
        try:
            self.by_parts = _ByParts(diagonal * self.unit**2, self.scaled_rows, self.narrow)
        except LinAlgError:
            assert self.whole is not None

    @cached_property
    def whole(self) -> _Factor:
        """Everything together, with pivots."""
        return _Whole(self.diagonal * self.unit**2, self.scaled_rows, self.narrow)

    def solve(self, right: Array) -> Array:
        size = float(np.abs(right * self.unit).max(initial=0.0))
        if self.by_parts is not None:
            solution, residual = self._refined(self.by_parts, right, size)
            if residual <= _GOOD * size:
                return solution
            self.by_parts = None  # nor for the next right-hand side
        return self._refined(self.whole, right, size)[0]

    def _refined(self, factor: _Factor, right: Array, size: float) -> tuple[Array, float]:
        """The solution, refined by N, and what is left of the right-hand side."""
        solution = factor.solve(right * self.unit) * self.unit
        for again in range(_ROUNDS + 1):
            residual = right - self._times(solution)
            left = float(np.abs(residual * self.unit).max(initial=0.0))
            if not left > _REFINED * size or again == _ROUNDS:
                break
            solution = solution + factor.solve(residual * self.unit) * self.unit
        return solution, left

    def _times(self, x: Array) -> Array:
        result: Array = self.diagonal * x + self.u @ (self.u.T @ x) + self.rows.T @ (self.rows @ x)
        return result


class _ByParts:
    """The sparse part first, then the few."""

    def __init__(self, diagonal: Array, rows: csr_array, narrow: Array) -> None:
        self.count = len(diagonal)
        system: Any = block_array([[diags_array(diagonal), rows.T], [rows, -eye_array(rows.shape[0])]], format="csc")
        try:
            self.sparse = splu(
                system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
        except (RuntimeError, MemoryError, SystemError):
            raise LinAlgError("the sparse part is singular") from None
        self.columns = self._sparse_solve(narrow)
        among = narrow.T @ self.columns
        among.flat[:: len(among) + 1] += 1.0
        self.narrow = narrow
        if not np.isfinite(among).all():
            raise LinAlgError("the sparse part is nearly singular")
        self.few = cho_factor(0.5 * (among + among.T), lower=True, check_finite=False)

    def _sparse_solve(self, right: Array) -> Array:
        whole = np.zeros((self.sparse.shape[0], *right.shape[1:]))
        whole[: self.count] = right
        result: Array = self.sparse.solve(whole)[: self.count]
        return result

    def solve(self, right: Array) -> Array:
        """As `_Factor`."""
        first = self._sparse_solve(right)
        if not self.narrow.shape[1]:
            return first
        result: Array = first - self.columns @ cho_solve(self.few, self.narrow.T @ first, check_finite=False)
        return result


class _Whole:
    """The system of α, y and u together."""

    def __init__(self, diagonal: Array, rows: csr_array, narrow: Array) -> None:
        self.count = len(diagonal)
        below: Any = vstack([rows, csr_array(narrow.T)])
        check_memory(_BYTES * below.nnz, _named(diagonal), InvalidProgram)
        system: Any = block_array([[diags_array(diagonal), below.T], [below, -eye_array(below.shape[0])]], format="csc")
        try:
            self.factor = splu(system)
        except RuntimeError:
            raise SolverFailed("the Newton matrix is numerically singular") from None
        except (MemoryError, SystemError):  # SuperLU's words where it could not get the memory
            raise InvalidProgram(f"{_named(diagonal)} does not fit into memory") from None

    def solve(self, right: Array) -> Array:
        """As `_Factor`."""
        whole = np.zeros(self.factor.shape[0])
        whole[: self.count] = right
        result: Array = self.factor.solve(whole)[: self.count]
        return result


def _named(diagonal: Array) -> str:
    return f"a Newton matrix of {len(diagonal):,} arms"
