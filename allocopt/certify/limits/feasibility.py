"""Whether any allocation within its bounds meets the constraints: only what is proven is called infeasible.

With every α at its upper bound a target t needs ||t||² <= ρ, where arms without a bound count as known exactly. The proof that
this fails is one direction y that annihilates those arms, with 2⟨t, y⟩ − Σ u_i ⟨f_i, y⟩² > ρ: then the dual is unbounded.
"""

from __future__ import annotations

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.linear.modulo import rational_rows
from allocopt.linear.span import Span, column_units, free_span
from allocopt.model.program import AllocationProgram

__all__ = ["proven_infeasible"]

_SUSPECT = 1.0 - 1e-6  # squared norm over radius, in floating point, from which a proof is tried
_MOST_TRIED = 4  # targets, the worst first


def proven_infeasible(
    program: AllocationProgram, rows: Array, goals: Array, asked: IntArray, bound_error: float
) -> tuple[int, float] | None:
    """A target that no allocation within the bounds can meet, and its squared norm in floating point; None if none is proven.

    ``rows`` and ``goals`` are features and targets with columns in `column_units`; ``bound_error`` is the relative error of the
    program's bounds.
    """
    upper = program.upper[program.row_owners]
    bounded = np.isfinite(upper)
    try:
        known = free_span(rows, np.flatnonzero(~bounded))
    except SolverFailed:
        return None
    if known.assumptions:
        return None
    used = np.flatnonzero(bounded & (upper > 0))  # rows, which are arms where every arm has one
    features, targets = known.modulo(rows[used]), known.modulo(goals[asked])
    if not features.shape[1] or not targets.any():
        return None
    noise = program.noise_variance
    weights = upper[used] if noise is None else upper[used] / noise[used]
    scale = column_units(features, targets)
    root = features * scale * np.sqrt(weights)[:, None]
    with np.errstate(all="ignore"):
        if len(root) > root.shape[1]:  # the same singular values and axes, without a matrix of arms × arms
            root = np.asarray(np.linalg.qr(root, mode="r"))
        values, axes = np.linalg.svd(root, full_matrices=True)[1:]
        full = np.zeros(root.shape[1])
        full[: len(values)] = values
        full = np.maximum(full, 1e-14 * max(float(full.max(initial=0.0)), 1e-300))
        images = (targets * scale) @ axes.T / full
        norms = np.einsum("ij,ij->i", images, images) / program.radii[asked]
        directions = (images / full) @ axes * scale
    order = np.argsort(-np.nan_to_num(norms, nan=np.inf))[:_MOST_TRIED]
    for place in order.tolist():
        if not norms[place] >= _SUSPECT:
            break
        y = directions[place]
        if np.isfinite(y).all() and _proves(program, known, rows, goals, used, int(asked[place]), y, bound_error):
            return int(asked[place]), float(norms[place] * program.radii[asked[place]])
    return None


def _proves(
    program: AllocationProgram, known: Span, rows: Array, goals: Array, used: IntArray, target: int, y: Array, bound_error: float
) -> bool:  # fmt: skip
    """The inequality in rationals: exact rows of the quotient, exact bounds (enlarged where they were rounded)."""
    from flint import fmpq  # only where a proof is tried

    modulo = known.modulo
    width = len(modulo.columns)
    direction = rational_rows(y[None])[0]

    def product(row: Array) -> fmpq:
        exact = [
            modulo.exact_entry(row, c) if modulo.n else rational_rows(row[None, [modulo.columns[c]]])[0][0]
            for c in range(width)
        ]
        return sum((x * z for x, z in zip(exact, direction, strict=True)), fmpq(0))

    def variance(row: int) -> fmpq:
        return fmpq(1) if program.noise_variance is None else rational_rows(program.noise_variance[[row]][None])[0][0]

    slack = 1 + rational_rows(np.array([[4.0 * bound_error]]))[0][0]
    spent = fmpq(0)
    upper = program.upper[program.row_owners]
    for i in used.tolist():
        along = product(rows[i])
        spent += rational_rows(upper[[i]][None])[0][0] * slack * along * along / variance(i)
    radius = rational_rows(program.radii[[target]][None])[0][0] * slack * slack
    gained = product(goals[target])
    # the best multiple of y: s with 2 s gained − s² spent largest
    if spent == 0:
        return bool(gained != 0)
    return bool(gained * gained > radius * spent)
