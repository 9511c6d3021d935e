"""Where what costs nothing may be enough: the first thing to look at under linear constraints, before any Newton step.

Contexts whose optimal arms span cost nothing once budgets are generous. An interior point would creep towards that corner for
hundreds of steps, each with a matrix of all arms.
"""

from __future__ import annotations

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, Limits
from allocopt.linear.dense import group_sums
from allocopt.solvers.monitor import Monitor

__all__ = ["nothing_is_enough"]

_INSIDE = 1.0 - 1e-9  # of a row's room that is shared out: what rounding adds stays within it


def nothing_is_enough(problem: Canonical, monitor: Monitor, playable: IntArray) -> bool:
    """Whether every row's room, shared evenly among the variables in it that cost nothing, meets all targets: certified, if so."""
    if problem.costs is None or not len(problem.targets):
        return False
    costless = np.intersect1d(np.flatnonzero(problem.costs == 0), playable)
    if not len(costless):
        return False
    assert problem.limits is not None
    alpha = _shared_evenly(problem.limits, costless)
    if problem.upper is not None:
        alpha = np.minimum(alpha, problem.upper)
    if not np.isfinite(alpha).all() or not alpha.any():
        return False
    none = np.zeros(len(problem.targets)), 0, np.zeros(len(problem.limits.room))
    bounds = monitor.report(alpha, *none)
    return bool(np.isfinite(bounds.upper)) and monitor.done


def _shared_evenly(limits: Limits, costless: IntArray) -> Array:
    """For each of these variables the least that its rows leave it, 0 for all others; infinite where no row limits it."""
    kept = np.flatnonzero(np.isin(limits.variables, costless) & (limits.values > 0))
    places, variables, values = limits.places[kept], limits.variables[kept], limits.values[kept]
    in_row = group_sums(places, np.ones(len(kept)), len(limits.room))
    with np.errstate(over="ignore"):
        share = _INSIDE * np.maximum(limits.room[places], 0.0) / (in_row[places] * values)
    alpha = np.zeros(limits.n_variables)
    alpha[costless] = np.inf
    np.minimum.at(alpha, variables, share)
    return alpha
