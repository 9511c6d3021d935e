"""What every named program checks before it is made: a bandit, and something to learn in it."""

from __future__ import annotations

from typing import Any

from allocopt.base.errors import InvalidInstance
from allocopt.base.validation import Array
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs.instead import no_bandit

__all__ = ["check_bandit", "check_different", "check_learnable", "check_some_gap", "half_precision"]


def check_bandit(bandit: Any) -> LinearBandit:
    """The bandit, if it is one."""
    if not isinstance(bandit, LinearBandit):
        raise no_bandit(bandit)
    return bandit


def check_learnable(arms: Array, gaps: Array) -> None:
    """Refuse instances in which there is nothing to learn, each with its own reason."""
    check_different(arms)
    check_some_gap(bool(gaps.any()), len(gaps))


def check_different(arms: Array, name: str = "arms") -> None:
    """Refuse sets of which all are alike."""
    if not arms.any():
        raise InvalidInstance(f"{name}: expected arms that span something, but every arm is the zero vector")
    if len(arms) == 1:
        raise InvalidInstance(f"{name}: expected at least two arms, got one; with one arm there is nothing to choose")
    if (arms == arms[0]).all():
        raise InvalidInstance(f"{name}: expected different arms, but all {len(arms)} are equal")


def check_some_gap(some: bool, n_arms: int) -> None:
    """Refuse instances in which every arm is optimal."""
    if not some:
        raise InvalidInstance(
            f"gaps: expected a positive gap, but all {n_arms} are zero: every arm is optimal, and none is the best one to find"
        )


def half_precision(noise_variance: float | Array) -> float:
    """1/(2σ²); where every arm has its own σ², which the program then weighs pulls with, 1/2."""
    return 0.5 / noise_variance if isinstance(noise_variance, float) else 0.5
