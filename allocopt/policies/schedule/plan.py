"""From a solution to pulls that are wanted: the factor for the program that was solved, and the fixed number of rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array, IntArray, positive_number, whole_number
from allocopt.linear.span import spanning_coordinates
from allocopt.model.levels import f_n
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution, Status
from allocopt.policies.schedule.play_order import ORDERS
from allocopt.policies.schedule.rounding import LONGEST, efficient_apportionment, whole_pulls

__all__ = ["apportioned", "check_choices", "fixed_number_of_rounds", "planned_pulls", "planned_scale", "pulls_so_far"]

ROUNDINGS = ("ceiling", "efficient", "listing")


def check_choices(solution: Any, order: Any, rounding: Any) -> None:
    """Refuse a solution without an allocation, and names that no order or rounding has."""
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: expected a Solution, got a {type(solution).__name__}")
    if solution.status is Status.FAILED:
        reason = solution.stats.get("reason", "no reason given")
        raise InvalidOption(f"solution: expected one with an allocation, got a FAILED one ({reason})")
    if solution.program.kind in ("contextual", "duelling"):
        raise InvalidOption(
            f"solution: expected the allocation of arms that can be played in any order, got that of a {solution.program.kind} program"
        )
    for name, value, known in (("order", order, ORDERS), ("rounding", rounding, (*ROUNDINGS, None))):
        if value not in known:
            raise InvalidOption(f"{name}: expected {', '.join(repr(x) for x in known if x)}, got {value!r}")


def pulls_so_far(solution: Solution, played: Any) -> IntArray:
    """Pulls so far: the user's, or those that a remaining solution was made with, or none."""
    if played is None:
        pulls = solution.program.origin.pulls  # of a remaining program
        played = np.zeros(solution.program.n_arms) if pulls is None else pulls
    return whole_pulls("played", played, solution.program.n_arms)


def fixed_number_of_rounds(program: AllocationProgram) -> bool:
    """Designs (best arm, G-optimal, general without free arms): proportions of n rounds rather than numbers of pulls."""
    designs = ("best_arm", "top_m", "threshold", "transductive", "g_optimal")
    return program.kind in designs or (program.kind == "general" and not len(program.free))


def planned_scale(solution: Solution, n: int, level: Any, constant: float) -> float:
    """T/α for a horizon of n rounds.

    The level f stands for constraints ||x||² <= Δ²/(f σ²); a regret solution has f = 2, so T = α f/2.
    """
    program = solution.program
    origin = program.origin
    kind = program.kind
    if level is not None and not isinstance(level, str):
        level = positive_number("level", level, InvalidOption)
    if origin.horizon is not None and origin.horizon != n:
        raise InvalidOption(f"horizon: expected {origin.horizon}, the n that the {kind} solution was made for, got {n}")
    if fixed_number_of_rounds(program):
        _no_level(level, f"{kind} programs, whose schedule has a fixed number of rounds")
        total = float(solution.allocation.sum())
        return n / total if total > 0 else 1.0
    if kind == "general":
        _no_level(level, "general programs, whose allocation is taken as pulls")
        return 1.0
    if kind == "horizon" and origin.horizon is not None:
        _no_level(level, f"this horizon solution, which has its own (f_n = {origin.number:.6g})")
        return 1.0
    if kind == "remaining":
        if level not in (None, "log"):
            raise InvalidOption(
                f'level: expected "log" for a remaining solution (its bounds are pulls/log n), got {level!r}'
            )
        assert origin.number is not None
        return origin.number  # log n, as the program was made with
    own = 2.0 if kind != "horizon" or origin.number is None else origin.number
    if level is None:
        level = "log" if kind == "optimism" else "f_n"
    return _level(program, n, level, constant) / own


def planned_pulls(solution: Solution, scale: float) -> Array:
    """T, the allocation as real-valued pulls."""
    pulls: Array = solution.allocation * scale
    known = solution.program.origin.pulls
    if known is not None:
        # α·log n of an arm at its lower bound pulls/log n must be the pulls themselves, or the ceiling is one too many
        at_bound = solution.allocation == solution.program.lower
        pulls[at_bound] = known[at_bound]
    return pulls


def _no_level(level: Any, what: str) -> None:
    if level is not None:
        raise InvalidOption(f"level: not for {what}; leave it out")


def _level(program: AllocationProgram, n: int, level: Any, constant: float) -> float:
    if level == "log":
        return 2.0 * math.log(n)
    if level == "f_n":
        return f_n(n, _rank(program), constant)
    if isinstance(level, str):
        raise InvalidOption(f"level: expected 'f_n', 'log' or a positive number, got {level!r}")
    return float(level)


def _rank(program: AllocationProgram) -> int:
    bandit = program.origin.bandit
    if program._sightings is not None:  # whose arms are unit vectors
        return program.dim
    return len(spanning_coordinates(program.features)) if bandit is None else bandit.rank


def apportioned(allocation: Array, played: IntArray, rounds: float | None, fixed: bool) -> Array:
    """Required pulls by efficient apportionment: of all rounds, or of so many pulls of arms that are not free."""
    support = np.flatnonzero((allocation > 0) & np.isfinite(allocation))
    required = np.where(np.isinf(allocation), np.inf, played.astype(np.float64))
    if not len(support):
        return required
    wanted = math.ceil(allocation[support].sum()) if rounds is None else rounds
    name = "horizon" if fixed else "exploration"
    total = whole_number(name, wanted, InvalidOption, least=1)
    if total > LONGEST:
        raise InvalidOption(f"{name}: expected at most {LONGEST} pulls, got {total:.6g}; give fewer or use ceilings")
    if total < len(support):
        raise InvalidOption(
            f"{name}: expected at least {len(support)}, a round for each arm of the support, got {total}"
        )
    spent = played[support]
    budget = max(total - int(played.sum() - spent.sum()) if fixed else total, int(spent.sum()))
    required[support] = efficient_apportionment(allocation[support], budget, spent)
    return required
