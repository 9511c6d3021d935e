r"""The lower bound of an optimal design: c >= (tr (S^½ Σ_j λ_j b_j b_jᵀ S^½)^½)² where uᵀSu <= Δ_x for all arms.

λ are any weights of targets that sum to 1, b_j = √2 q(x_j)/Δ_j (`allocopt.actions.oracle_allocation` says why it holds).
"""

from __future__ import annotations

import numpy as np

from allocopt.actions.oracle_answers import Explored
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array

__all__ = ["design_bound", "matrix_power", "targets_seen"]

_ZERO_EIGENVALUE = 1e-13
"""Eigenvalues below this share of the largest are rounding, which `eigh` makes up to about r · 1e-16 of it."""


def targets_seen(arms: Explored, functionals: Array) -> Array:
    """b_j of the arms seen so far."""
    x, _, gaps = arms.others()
    return np.asarray(np.sqrt(2.0) * (x @ functionals.T) / gaps[:, None])


def matrix_power(matrix: Array, power: float) -> Array:
    """A power of a positive semidefinite matrix; eigenvalues that are rounding count as zero, which lowers lower bounds."""
    values, vectors = np.linalg.eigh(matrix)
    big = values > _ZERO_EIGENVALUE * max(values[-1], NOT_ZERO)
    result: Array = (vectors[:, big] * values[big] ** power) @ vectors[:, big].T
    return result


def design_bound(S: Array, b: Array, steps: int) -> tuple[float, Array]:
    """(tr (S^½ Σ λ_j b_j b_jᵀ S^½)^½)² after some multiplicative steps on λ, and the H with tr(S H) equal to it."""
    half, back = matrix_power(S, 0.5), matrix_power(S, -0.5)
    rows = b @ half
    lam = np.full(len(b), 1.0 / len(b))
    for _ in range(steps):
        inverse = matrix_power((rows * lam[:, None]).T @ rows, -0.5)
        lam = lam * np.einsum("ij,ij->i", rows @ inverse, rows)
        lam /= lam.sum()
    root = matrix_power((rows * lam[:, None]).T @ rows, 0.5)
    trace = float(np.trace(root))
    return trace**2, trace * (back @ root @ back)
