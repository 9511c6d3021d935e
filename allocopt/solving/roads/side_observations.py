"""The road of side observations: proposals from linear programs over the list of what arms show, proven over that list."""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.base.errors import (
    Infeasible,
    Interrupted,
    InvalidProgram,
    MethodUnavailable,
    SlowWarning,
    SolverFailed,
    warn_caller,
)
from allocopt.base.machine import check_memory, duration_text
from allocopt.certify.canonical import Bounds
from allocopt.certify.verdict import certified_by_sight
from allocopt.model.program import AllocationProgram
from allocopt.model.progress import Callback
from allocopt.model.solution import Solution, noting
from allocopt.solvers.monitor import Monitor, OutOfTime
from allocopt.solving.roads.covering import Covering, proposals

__all__ = ["METHOD", "answer_by_sight", "solve_by_sight"]

METHOD = "linear-program"
_FEW_ROWS = 100  # up to which an interior point is as fast
_BYTES_OF_AN_ENTRY = 1200.0  # measured with a million arms in a ring, who show three each
_SECONDS_OF_AN_ENTRY = 2e-5
_LONG = 10.0  # seconds


def answer_by_sight(
    program: AllocationProgram, any_way: bool, tol: float, max_seconds: float | None, callback: Callback | None
) -> Solution | None:
    """The answer on this road; None where other methods are to solve the program, which then has its arrays.

    These take programs of few rows, those with linear constraints, what is not certified here, and what was asked for with a method
    or a start (not ``any_way``).
    """
    at_hand = program._sightings is None
    if not at_hand and not any_way:
        raise MethodUnavailable("method and start: expected neither for side observations of so many arms")
    if at_hand and (not any_way or program.bounded or program.n_rows <= _FEW_ROWS):
        return None
    found = solve_by_sight(program, tol, max_seconds, callback)
    in_time = max_seconds is None or found.stats["seconds"] < max_seconds
    return None if at_hand and in_time and not found.gap <= tol else found


def solve_by_sight(
    program: AllocationProgram, tol: float, max_seconds: float | None, callback: Callback | None
) -> Solution:
    """`solve` for a program of side observations, without any array of rows."""
    seen = program.origin.sightings
    assert seen is not None
    monitor = Monitor(None, METHOD, tol, max_seconds, callback)
    stats: dict[str, Any] = {"road": "sightings", "iterations": 0}
    if len(seen.unseen):
        j = int(seen.unseen[0])
        whose = f"the difference of arm {j if j != seen.best else int(seen.others[0])} to arm {seen.best}"
        raise Infeasible(f"{whose} can never be estimated: no arm shows arm {j}")
    entries = len(seen.owners)
    what = f"side_observations: {seen.n_arms:,} arms that show {entries:,}"
    check_memory(_BYTES_OF_AN_ENTRY * entries, what, InvalidProgram)
    if entries * _SECONDS_OF_AN_ENTRY > _LONG:
        warn_caller(f"{what}: solving takes about {duration_text(entries * _SECONDS_OF_AN_ENTRY)}", SlowWarning)
    radii = np.ones(seen.n_arms)
    radii[seen.others] = program.radii
    best, reason = _nothing(program, tol, stats), None
    if seen.known.all():
        return best
    try:
        for alpha, lam in proposals(Covering(seen, program.costs, radii), lambda: monitor.seconds_left):
            found = certified_by_sight(program, alpha, lam, METHOD, tol, None, stats)
            stats["iterations"] += 1
            none = np.zeros(0)
            monitor.record(Bounds(found.upper, found.lower, alpha, lam, none, none, 0.0), stats["iterations"])
            best = found if found.gap < best.gap or not np.isfinite(best.upper) else best
            if monitor.done:
                break
            monitor.tick()
    except OutOfTime:
        reason = f"max_seconds = {max_seconds:g} passed"
    except SolverFailed as failure:
        reason = str(failure)
    except KeyboardInterrupt:
        raise Interrupted(best if np.isfinite(best.upper) else None) from None
    more: dict[str, Any] = {"iterations": stats["iterations"], "seconds": monitor.seconds}
    if reason is not None and best.gap > tol:
        more["reason"] = reason
    return noting(best, **more)


def _nothing(program: AllocationProgram, tol: float, stats: dict[str, Any]) -> Solution:
    """What is proven without playing anything: everything, where the best arm shows all others."""
    alpha = np.zeros(program.n_arms)
    alpha[program.free] = np.inf
    found = certified_by_sight(program, alpha, np.zeros(program.n_arms), METHOD, tol, None, stats)
    return noting(found, seconds=0.0)
