"""Program → canonical form → back: the quotient by the free arms, the span, the bounds and the scaling by costs.

Nothing is capped or regularised: a free arm (cost 0, no upper bound) is known exactly, so its direction is divided
out. The quotient is Gauss's elimination with the free arms as pivot rows; the pivot columns are then dropped. The
norm does not depend on the basis of the quotient, and elimination is what an exact proof can repeat in rationals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla

from allocopt import precise
from allocopt.certify.canonical import Canonical, whitener
from allocopt.errors import Infeasible
from allocopt.program import AllocationProgram
from allocopt.scaling import equilibrated
from allocopt.tolerances import CANCELLATION, EPS, RANK, ZERO_ROW
from allocopt.validation import Array, IntArray

__all__ = ["Quotient", "Reduction", "certainty", "reduce", "spanning_coordinates"]


@dataclass(frozen=True, eq=False)
class Quotient:
    """R^d / span(free arms), then the coordinates that the arms really use."""

    pivot_arms: tuple[int, ...]
    """Free arms that span all free arms."""
    pivot_columns: tuple[int, ...]
    """The coordinate that each of them eliminates."""
    coordinates: tuple[int, ...]
    """The coordinates kept: the others are linear functions of these on the span of the arms."""
    negligible_arms: tuple[int, ...] = ()
    """Arms that are combinations of free arms up to rounding: taken as exactly that."""
    negligible_targets: tuple[int, ...] = ()
    """Targets likewise."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A canonical problem and where its rows come from in the program."""

    program: AllocationProgram
    quotient: Quotient
    canonical: Canonical
    variables: IntArray
    """The arm of each canonical feature."""
    targets: IntArray
    """The program's target behind each canonical target."""
    fixed: Array
    """α of every arm before the variables are added: lower bounds, costless arms at their upper bound, inf if free."""

    @cached_property
    def fixed_norms(self) -> Array:
        """g of every target with nothing but what is fixed already (all variables 0)."""
        return _squared_norms(self.canonical.base, self.canonical.targets)

    def allocation(self, alpha: Array) -> Array:
        """A canonical α in the program's own units, one entry per arm."""
        full = self.fixed.copy()
        full[self.variables] += alpha / self.program.costs[self.variables]
        bounded = np.isfinite(self.program.upper)
        full[bounded] = np.minimum(full[bounded], self.program.upper[bounded])
        return full

    def canonical_allocation(self, allocation: Array) -> Array:
        """The way back of `allocation`."""
        extra = allocation[self.variables] - self.fixed[self.variables]
        result: Array = np.maximum(extra, 0.0) * self.program.costs[self.variables]
        return result

    def multipliers(self, canonical: Array) -> Array:
        """Canonical λ, one entry per arm where targets belong to arms and per target otherwise."""
        arms = self.program.target_arms
        full = np.zeros(self.program.n_targets if arms is None else self.program.n_arms)
        full[self.targets if arms is None else arms[self.targets]] = canonical
        return full

    def canonical_multipliers(self, multipliers: Array) -> Array:
        """The way back of `multipliers`."""
        arms = self.program.target_arms
        result: Array = multipliers[self.targets if arms is None else arms[self.targets]]
        return result


def spanning_coordinates(rows: Array, certainty: Array | None = None) -> tuple[int, ...]:
    """Coordinates that determine all others on the span of ``rows``; as many as the rank.

    Rows and columns are equilibrated (by powers of two), so a tiny arm or a coordinate in other units counts in full, unless
    its ``certainty`` says that it may be rounding. A sample of rows is looked at first: if it spans everything, the others
    cannot change the answer.
    """
    k, d = rows.shape
    weights = np.ones(k) if certainty is None else certainty
    size = 8 * d + 32
    if k > 4 * size:
        sample = np.linspace(0, k - 1, size).astype(np.int64)
        found = _spanning_coordinates(rows[sample], weights[sample])
        if len(found) == d:
            return found
    return _spanning_coordinates(rows, weights)


def certainty(rows: Array, quotient: Array) -> Array:
    """How much a row in the quotient says about rank: less the more of it cancelled, since arms carry rounding themselves."""
    noise = EPS * np.abs(rows).max(axis=1) / np.maximum(np.abs(quotient).max(axis=1, initial=0.0), 1e-300)
    result: Array = np.minimum(1.0, RANK / np.maximum(64.0 * noise, 1e-300))
    return result


def _spanning_coordinates(rows: Array, weights: Array) -> tuple[int, ...]:
    balanced = equilibrated(rows)[0] * weights[:, None]
    if len(balanced) > 4 * balanced.shape[1]:
        balanced = np.asarray(np.linalg.qr(balanced, mode="r"))
    if not balanced.any():
        return ()
    factor, order = sla.qr(balanced, mode="r", pivoting=True, check_finite=False)[-2:]
    diagonal = np.abs(np.diag(factor))
    rank = int((diagonal > RANK * diagonal[0]).sum())
    return tuple(sorted(int(c) for c in order[:rank]))


def _power_of_two(values: Array) -> Array:
    result: Array = np.ldexp(1.0, np.frexp(np.where(values > 0, values, 1.0))[1])
    return result


def free_pivots(free_rows: Array) -> tuple[list[int], list[int]]:
    """Rows of ``free_rows`` that span them all, with a pivot column each (complete pivoting on equilibrated rows)."""
    work = free_rows / np.maximum(np.abs(free_rows).max(axis=1, keepdims=True), 1e-300)
    rows: list[int] = []
    columns: list[int] = []
    for _ in range(min(work.shape)):
        i, j = np.unravel_index(int(np.argmax(np.abs(work))), work.shape)
        if abs(work[i, j]) <= RANK:
            break
        rows.append(int(i))
        columns.append(int(j))
        work = work - np.outer(work[:, j] / work[i, j], work[i])
        work[:, j] = 0.0
        work[i] = 0.0
    return rows, columns


def divide_out(rows: Array, pivot_rows: Array, pivot_columns: list[int]) -> Array:
    """Rows modulo the pivot rows, in the other coordinates; rows that are multiples of pivots become exactly zero."""
    if not len(rows) or not pivot_columns:
        return rows
    keep = np.setdiff1d(np.arange(rows.shape[1]), pivot_columns)
    if not len(keep):  # the free arms span everything
        return np.zeros((len(rows), 0))
    block = pivot_rows[:, pivot_columns]
    factors = np.linalg.solve(block.T, rows[:, pivot_columns].T).T
    terms = np.abs(factors) @ np.abs(pivot_rows[:, keep])
    quotient = rows[:, keep] - factors @ pivot_rows[:, keep]
    # Where an entry is much smaller than what it is the difference of, its digits are gone: subtract again, precisely.
    cancelled = np.abs(quotient) < CANCELLATION * terms
    if len(pivot_columns) == 1:
        i, j = np.nonzero(cancelled)
        column = pivot_columns[0]
        quotient[i, j] = precise.subtract_multiple(
            rows[i, keep[j]], rows[i, column], float(pivot_rows[0, column]), pivot_rows[0, keep[j]]
        )
    else:
        again = np.flatnonzero(cancelled.any(axis=1))
        quotient[again] = precise.eliminate(rows[again], pivot_rows, pivot_columns)[:, keep]
    noise = np.abs(quotient).max(axis=1, initial=0.0) <= ZERO_ROW * np.abs(rows).max(axis=1)
    quotient[noise] = 0.0
    return quotient


def reduce(program: AllocationProgram) -> Reduction:
    """The canonical problem of a program. Raises `Infeasible` when some target can never be met."""
    free = program.free
    pivots, pivot_columns = free_pivots(program.features[free]) if len(free) else ([], [])
    pivot_arms = free[pivots]
    pivot_rows = program.features[pivot_arms]
    shared = program.target_arms is not None and program.kind != "best_arm"
    features = divide_out(program.features, pivot_rows, pivot_columns)
    targets = features[program.target_arms] if shared else divide_out(program.targets, pivot_rows, pivot_columns)
    kept_columns = np.setdiff1d(np.arange(program.dim), pivot_columns)

    nonzero = features.any(axis=1)
    bounded = np.isfinite(program.upper)
    costless = (program.costs == 0) & bounded
    fixed = np.where(costless, program.upper, program.lower)
    fixed[free] = np.inf
    known = np.flatnonzero((fixed > 0) & np.isfinite(fixed) & nonzero)
    variables = np.flatnonzero((program.costs > 0) & (program.upper > program.lower) & nonzero)
    asked = np.flatnonzero(targets.any(axis=1))

    informative = np.union1d(known, variables) if len(known) else variables
    local: tuple[int, ...] = ()
    if len(informative):
        rows = features[informative]
        local = spanning_coordinates(rows, certainty(program.features[informative], rows))
    _check_span(program, features[informative], targets[asked], asked, local)
    coordinates = np.array(local, dtype=np.int64)
    unit = np.sqrt(program.costs[variables])
    a = features[np.ix_(variables, coordinates)] / unit[:, None]
    b = targets[np.ix_(asked, coordinates)] / np.sqrt(program.radii[asked])[:, None]
    base = features[np.ix_(known, coordinates)] * np.sqrt(fixed[known])[:, None]
    scale = 1.0 / _power_of_two(np.abs(np.concatenate([a, base])).max(axis=0, initial=0.0))
    if len(base) > len(coordinates):
        base = np.linalg.qr(base * scale, mode="r") / scale
    upper = (program.upper - program.lower)[variables] * program.costs[variables]
    canonical = Canonical(
        np.ascontiguousarray(a * scale),
        np.ascontiguousarray(b * scale),
        np.ascontiguousarray(base * scale),
        upper if np.isfinite(upper).any() else None,
        float(program.costs @ program.lower),
        _ratios(program, variables, asked) if shared else None,
    )
    quotient = Quotient(
        tuple(int(i) for i in pivot_arms),
        tuple(pivot_columns),
        tuple(int(c) for c in kept_columns[coordinates]),
        tuple(np.flatnonzero(~nonzero).tolist()),
        tuple(np.flatnonzero(~targets.any(axis=1)).tolist()),
    )
    reduction = Reduction(program, quotient, canonical, variables, asked, fixed)
    if len(asked):
        _check_feasible(reduction)
    return reduction


def _ratios(program: AllocationProgram, variables: IntArray, asked: IntArray) -> Array | None:
    """Length of each target over that of its own arm, where the arms asked about are just those that may be played."""
    assert program.target_arms is not None
    if not np.array_equal(program.target_arms[asked], variables):
        return None
    ratios: Array = np.sqrt(program.costs[variables] / program.radii[asked])
    return ratios


def _check_span(
    program: AllocationProgram, rows: Array, targets: Array, asked: IntArray, local: tuple[int, ...]
) -> None:
    """Every target must lie in the span of the features that may be played."""
    if len(local) == targets.shape[1] or not len(targets):
        return
    dropped = np.setdiff1d(np.arange(targets.shape[1]), local)
    scale = np.abs(targets).max(axis=1)
    if len(local):
        normal = rows / np.abs(rows).max(axis=1, keepdims=True)
        rule = np.linalg.lstsq(normal[:, local], normal[:, dropped], rcond=None)[0]
        residual = targets[:, dropped] - targets[:, local] @ rule
        size = scale + np.abs(targets[:, local]) @ np.abs(rule).max(axis=1, initial=0.0)
    else:
        residual, size = targets[:, dropped], scale
    # what is left of a target that cancelled is known to the rounding of what it was before
    noise = 64.0 * EPS * np.abs(program.targets[asked]).max(axis=1)
    outside = np.flatnonzero(np.abs(residual).max(axis=1) > 1e3 * RANK * size + noise)
    if len(outside):
        j = int(asked[outside[0]])
        raise Infeasible(
            f"{_target_name(program, j)} is not in the span of the arms that may be played, so it can never be estimated"
        )


def _target_name(program: AllocationProgram, target: int) -> str:
    if program.target_arms is None:
        return f"target {target}"
    return f"the target of arm {int(program.target_arms[target])}"


def _squared_norms(rows: Array, targets: Array) -> Array:
    """||t||² in the inverse of rowsᵀrows; inf for targets outside the span of the rows."""
    if not targets.shape[1]:
        return np.zeros(len(targets))
    if not len(rows):
        return np.where(targets.any(axis=1), np.inf, 0.0)
    basis = whitener(Canonical(rows, targets, rows[:0]), np.ones(len(rows)))
    if basis is not None:
        images = targets @ basis
        g: Array = np.einsum("ij,ij->i", images, images)
        return g
    values, axes = np.linalg.svd(rows, full_matrices=False)[1:]
    rank = int((values > RANK * values.max(initial=0.0)).sum())
    images = targets @ axes[:rank].T / values[:rank]
    g = np.einsum("ij,ij->i", images, images)
    rest = targets - (targets @ axes[:rank].T) @ axes[:rank]
    g[np.abs(rest).max(axis=1) > 1e-9 * np.abs(targets).max(axis=1)] = np.inf
    return g


def _check_feasible(reduction: Reduction) -> None:
    """With every α at its upper bound, each constraint must hold; else no allocation will do."""
    problem = reduction.canonical
    if problem.upper is None:
        if not len(problem.base):
            return  # the coordinates were chosen such that the features span them
        unbounded = np.ones(len(problem.features), dtype=bool)
        most = np.zeros(0)
    else:
        unbounded = ~np.isfinite(problem.upper)
        most = problem.upper[~unbounded]
    full = problem.features[~unbounded] * np.sqrt(most)[:, None]
    rows = np.concatenate([problem.base, full])
    targets = problem.targets
    if unbounded.any():  # arbitrarily much of these: their directions can be known exactly
        directions = problem.features[unbounded]
        directions = directions / np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, None]
        _, values, axes = np.linalg.svd(directions, full_matrices=True)
        rank = int((values > RANK * values[0]).sum())
        if rank == problem.rank:
            return
        rows, targets = rows @ axes[rank:].T, targets @ axes[rank:].T
    g = _squared_norms(rows, targets)
    worst = int(np.argmax(g))
    if g[worst] > 1.0 + 1e-12:
        j = int(reduction.targets[worst])
        radius = reduction.program.radii[j]
        raise Infeasible(
            f"{_target_name(reduction.program, j)} cannot be met: even with every arm at its upper bound its squared norm "
            f"is {g[worst] * radius:.6g}, above the radius {radius:.6g}"
        )
