"""What to write for what is no bandit or no program: its .bandit(), the other order of two arguments, another function."""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.solution import Solution

__all__ = ["constant_without_theta", "no_bandit", "program_instead"]


def no_bandit(given: Any, other: Any = None, order: str = "", *, wanted: str = "a LinearBandit") -> InvalidInstance:
    """The error for what was given for a bandit; if ``other``, a further argument, is one, the ``order`` to write them in."""
    if order and isinstance(other, LinearBandit | ContextualBandit):
        hint = f"; two arguments are swapped: write {order}"
    elif _makes_bandit(given):
        hint = "; write its .bandit(), or .bandit(theta) where it has no weights"
    elif isinstance(getattr(given, "bandit", None), LinearBandit | ContextualBandit):
        hint = "; write its .bandit"
    else:
        hint = "; write LinearBandit(arms, theta)"
    return InvalidInstance(f"bandit: expected {wanted}, got a {type(given).__name__}{hint}")


def program_instead(given: Any) -> str:
    """What to write for what is no program."""
    if isinstance(given, ContextualBandit):
        return "; write solve(programs.contextual(bandit))"
    if isinstance(given, LinearBandit):
        return "; write solve(programs.regret(bandit)) for c(A,θ), programs.best_arm(bandit) for identification"
    if _makes_bandit(given):
        return "; write solve(programs.regret(arms.bandit())), with theta in .bandit(theta) where it has no weights"
    if isinstance(given, list | tuple | np.ndarray):
        return "; write regret_constant(arms, theta)"
    if isinstance(given, Solution):
        return "; write solve(solution.program), or solution.verify() to prove it again"
    return "; allocopt.programs makes them"


def constant_without_theta(arms: Any) -> InvalidInstance:
    """The error for a regret constant of arms alone."""
    if isinstance(arms, LinearBandit | ContextualBandit) or _makes_bandit(arms):
        return InvalidInstance(
            f"arms: expected a matrix of numbers and theta beside it, got a {type(arms).__name__}{program_instead(arms)}"
        )
    return InvalidInstance("theta: expected a vector of numbers, got None; write regret_constant(arms, theta)")


def _makes_bandit(given: Any) -> bool:
    """Whether it has a method bandit(), as the arms of a graph have."""
    return not isinstance(given, type) and callable(getattr(given, "bandit", None))
