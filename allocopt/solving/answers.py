"""Programs with several correct answers: the value is the least over them, and each is a program of its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import best_arm
from allocopt.model.solution import Solution, Status

__all__ = ["answer_programs", "best_answer"]

_STRICTLY = 1.0 - 2.0**-48  # so that the gap is within tol in exact arithmetic too


def answer_programs(program: AllocationProgram) -> Iterator[tuple[int, AllocationProgram]]:
    """Each correct answer of an ε-best-arm program with its own program."""
    bandit, epsilon = program.origin.bandit, program.origin.number
    assert isinstance(bandit, LinearBandit) and epsilon is not None
    for answer in program.origin.answers:
        yield answer, best_arm(bandit, epsilon, answer)


def best_answer(program: AllocationProgram, tol: float, found: Sequence[tuple[int, Solution]]) -> Solution:
    """The solution for the cheapest answer, with bounds for the least value over all of them.

    Its upper bound is that of a feasible allocation; its lower bound is the least of all, and so one for its own program, too.
    """
    best = min((s for _, s in found), key=lambda s: s.upper)
    lower = min(s.lower for _, s in found)
    assumptions = tuple(dict.fromkeys(a for _, s in found for a in s.assumptions))
    stats: dict[str, Any] = {
        **best.stats,
        "answers": {answer: (s.lower, s.upper) for answer, s in found},
        "seconds": sum(s.stats.get("seconds", 0.0) for _, s in found),
    }
    status = best.status
    if math.isfinite(best.upper) and best.upper - lower <= tol * lower * _STRICTLY:
        status = Status.CONDITIONAL if assumptions else Status.CERTIFIED
    elif math.isfinite(best.upper):
        status = Status.INACCURATE
        stats.setdefault("reason", "the bounds for another answer are too wide to say which is the cheapest")
    return dataclasses.replace(best, lower=lower, status=status, stats=stats, assumptions=assumptions)
