"""The regret program at the estimates, which OSSB, OAM and E4 solve while they pause."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.compiling import compiled
from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array
from allocopt.policies.base import Setting
from allocopt.solving.allocator import Allocator

__all__ = ["allocation_at", "gaps_below", "leads_by_far"]

_TOL = 1e-8  # of the regret: then α is good to three or four digits


@compiled
def leads_by_far(means: Any, new: Any, old: Any) -> Any:
    """Whether ``new`` is really better than ``old``, not a copy of it that rounding put first."""
    return means[new] - means[old] > 1e-9 * (abs(means[new]) + abs(means[old]))


def gaps_below(means: Array, leader: int) -> Array:
    """Estimated gaps, exactly 0 for the leader and what ties with it (copies, whatever the order of the sums)."""
    gaps: Array = np.maximum(means[leader] - means, 0.0)
    gaps[gaps <= TIE * (np.abs(means) + abs(means[leader]))] = 0.0
    return gaps


def allocation_at(policy: str, setting: Setting, run: Any, gaps: Array, level: float) -> Array:
    """α of the regret program with constraints ||x||²_{H^-1} <= Δ_x²/level: inf for arms of gap 0, zeros if there are no others.

    ``run`` is an object that every run has of its own: the `Allocator` begins warm from this run's last solution only.
    """
    if not gaps.any():
        return np.where(gaps == 0.0, np.inf, 0.0)
    kept = setting.memo.get((policy, "allocator"))
    if kept is None or kept[0] is not run or kept[1].level != level:
        allocator = Allocator(setting.spanner.coefficients, level=level, tol=_TOL)
        kept = setting.memo[policy, "allocator"] = (run, allocator)
    solution = kept[1].solve(gaps)
    if not math.isfinite(solution.upper):
        reason = solution.stats.get("reason", "no reason given")
        raise SolverFailed(f"{policy}: the program for the estimated gaps could not be solved: {reason}")
    found: Array = np.asarray(solution.allocation)
    return found
