"""What a solve can begin from: the solution of a similar program, by a method that knows how."""

from __future__ import annotations

from typing import Any

from allocopt.base.errors import InvalidOption
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution
from allocopt.solvers.methods import METHODS, Method

__all__ = ["check_start"]


def check_start(start: Any, program: AllocationProgram, asked: Method | None) -> None:
    """Refuse what a solve cannot begin from."""
    if not isinstance(start, Solution):
        raise InvalidOption(f"start: expected a Solution, got a {type(start).__name__}")
    if start.program.n_arms != program.n_arms:
        theirs, ours = start.program.n_arms, program.n_arms
        raise InvalidOption(f"start: expected the solution of a program with {ours} arms, got one with {theirs}")
    if _multipliers(start.program) != _multipliers(program):
        raise InvalidOption(
            f"start: expected the solution of a program with constraints {_multipliers(program)}, "
            f"got one with constraints {_multipliers(start.program)}"
        )
    if asked is not None and not asked.starts:
        able = ", ".join(m.name for m in METHODS.values() if m.starts)
        raise InvalidOption(f"start: method {asked.name!r} cannot begin from a solution; these can: {able}")


def _multipliers(program: AllocationProgram) -> str:
    """What a program's multipliers belong to."""
    if program._blocks is not None or program.target_arms is not None:
        return "of arms"
    return f"of its own ({program.n_targets})"
