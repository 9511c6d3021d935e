"""Which arms of an allocation count as played: not those whose α is what a solver left of a zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array, IntArray
from allocopt.linear.information import Directions

if TYPE_CHECKING:
    from allocopt.model.solution import Solution

__all__ = ["costs_of", "without_leftovers"]

_FEW_PULLS = 1e-3  # of the most that any arm has; what is above is no leftover
_MOST_ROWS = 10_000  # of arms in use; so many are in use only where lower bounds ask for it


def without_leftovers(solution: Solution, arms: IntArray, pulls: Array) -> IntArray:
    """``arms``, which are all that have 0 < α < inf, without those that together bring less than `SUPPORT` of anything.

    α_i ||x_i||²_{M^-1} is the share of arm i in what is known of its own direction, M = Σ α_i x_i x_iᵀ modulo the free arms. Arms
    whose shares sum to s can be left out, and no constraint grows by more than the factor 1/(1 − s).
    """
    few = np.flatnonzero(pulls <= _FEW_PULLS * pulls.max(initial=0.0))
    if not len(few):
        return arms
    shares = _shares(solution, arms, pulls, few)
    paid = pulls[few] * costs_of(solution, arms[few])
    order = np.argsort(shares, kind="stable")
    nothing = np.cumsum(shares[order]) <= SUPPORT
    nothing &= np.cumsum(paid[order]) <= SUPPORT * abs(solution.upper)
    return np.delete(arms, few[order[nothing]])


def costs_of(solution: Solution, arms: IntArray) -> Array:
    """What one pull of each of these arms costs."""
    blocks = solution.program._blocks
    return solution.program.costs[arms] if blocks is None else blocks.gaps_of(arms, blocks.store.rows(arms))


def _shares(solution: Solution, arms: IntArray, pulls: Array, few: IntArray) -> Array:
    """α_i ||x_i||²_{M^-1} of the ``few`` (of all rows of an arm together); inf where that would take long or doubles cannot tell."""
    program, blocks = solution.program, solution.program._blocks
    nobody_knows = np.full(len(few), np.inf)
    if program._sightings is not None:  # solved by linear programs, which leave nothing of a zero
        return nobody_knows
    free = program.free
    known = np.concatenate([arms, free])
    if blocks is not None:
        owners = np.arange(len(known))
        variances = None if blocks.variances is None else blocks.variances[known]
        rows = blocks.store.rows(known) if len(known) <= _MOST_ROWS else None
    else:
        place = np.full(program.n_arms, -1)
        place[known] = np.arange(len(known))
        shown = np.flatnonzero(place[program.row_owners] >= 0)
        owners = place[program.row_owners[shown]]
        variances = None if program.noise_variance is None else program.noise_variance[shown]
        rows = program.features[shown] if len(shown) <= _MOST_ROWS else None
    if rows is None:
        return nobody_knows
    weights = np.concatenate([pulls, np.zeros(len(free))])[owners] / (1.0 if variances is None else variances)
    asked = np.flatnonzero(np.isin(owners, few))
    try:
        norms = Directions.of(rows, rows[asked], np.flatnonzero(owners >= len(arms))).quotient_norms(weights)
    except InvalidInstance:
        return nobody_knows
    shares = np.zeros(len(arms))
    np.add.at(shares, owners[asked], weights[asked] * norms)
    result: Array = shares[few]
    return result
