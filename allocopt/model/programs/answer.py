"""What a program is about: the arms that are the right answer, and what its binding targets compare, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allocopt.base.validation import IntArray
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.programs.identification import best_means, leads

__all__ = ["answer_arms", "answer_names", "listed", "target_names"]

_SHOWN = 6  # names in a sentence


def answer_arms(program: AllocationProgram) -> IntArray:
    """The arms that whoever solved the problem would name (items, for transductive programs); empty where none is asked for."""
    origin = program.origin
    bandit = origin.items if origin.items is not None else origin.bandit
    if origin.answer is not None:
        return np.array([origin.answer])
    if isinstance(bandit, ContextualBandit):
        return np.flatnonzero(bandit.gaps == 0.0)
    if isinstance(bandit, LinearBandit):
        if program.kind == "top_m" and origin.count is not None:
            return best_means(bandit, origin.count)
        if program.kind == "threshold" and origin.number is not None:
            nothing = np.zeros(bandit.dim)
            return np.flatnonzero(leads(bandit.arms_in_memory, -bandit.theta, nothing, -origin.number) > 0.0)
        return bandit.optimal_arms
    if origin.gaps is not None:
        return np.flatnonzero(origin.gaps == 0.0)
    if program.kind == "side_observations" and origin.compared is not None:
        return np.unique(origin.compared[:, 1])
    return np.empty(0, dtype=np.int64)


def answer_names(program: AllocationProgram, answers: IntArray) -> tuple[str, ...]:
    """The names of `answer_arms`."""
    origin = program.origin
    bandit = origin.items if origin.items is not None else origin.bandit
    names = program.labels if isinstance(bandit, ContextualBandit) or bandit is None else bandit.labels
    what = "arm" if origin.items is None else "item"
    return tuple(f"{what} {i}" if names is None else names[i] for i in answers.tolist())


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence, and how many more there are."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def target_names(program: AllocationProgram, targets: IntArray) -> tuple[str, ...]:
    """What each of these targets tells apart: an arm's name where targets belong to arms, else "arm 0 over arm 3"."""
    origin = program.origin
    if program.target_arms is not None or program._blocks is not None:
        names = program.labels
        return tuple(f"arm {i}" if names is None else names[i] for i in targets.tolist())
    if origin.compared is None:
        return tuple(f"target {t}" for t in targets.tolist())
    bandit = origin.items if origin.items is not None else origin.bandit
    what, names = "item" if origin.items is not None else "arm", None if bandit is None else bandit.labels
    pairs = origin.compared[targets].tolist()
    if names is None:
        return tuple(f"{what} {i} over {what} {j}" for j, i in pairs)
    return tuple(f"{names[i]} over {names[j]}" for j, i in pairs)
