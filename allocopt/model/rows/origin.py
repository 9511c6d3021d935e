"""The user's own numbers behind the rows of an AllocationProgram: proofs start from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from allocopt.base.validation import Array, IntArray
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.rows.sightings import Sightings

__all__ = ["Origin"]


@dataclass(frozen=True, eq=False)
class Origin:
    """What a program was made from, so that a proof can start from the user's own numbers instead of rounded ones."""

    kind: str = "general"
    bandit: LinearBandit | ContextualBandit | None = None
    gaps: Array | None = None
    pulls: Array | None = None
    number: float | None = None
    """f_n for horizon, log n for remaining, the width a for optimism, τ for threshold, ε for best_arm: the double that the
    program was built with."""
    horizon: int | None = None
    constant: float | None = None
    """The universal constant of f_n, where the level was computed from n."""
    items: LinearBandit | None = None
    """The items of a transductive program, with θ and the noise; the arms are the program's features."""
    count: int | None = None
    """m of top_m."""
    answer: int | None = None
    """The arm that is to be shown to be good enough, for best_arm with an ε."""
    answers: tuple[int, ...] = ()
    """The other arms that would do, where the value asked for is the least over all of them."""
    compared: IntArray | None = None
    """Targets that are differences x_i − x_j of arms (or items): (i, j) for each. They are exact, the program's rows rounded."""
    duels: IntArray | None = None
    """Features that are differences x_i − x_j of arms: (i, j) for each."""
    labels: tuple[str, ...] | None = None
    """The names of the features, where these are not the bandit's arms."""
    sightings: Sightings | None = None
    """Who shows whom, of side observations."""
    made: Any = field(default=None, init=False, repr=False)
    """The arrays of the program that was made from this, or its blocks: with other arrays it is a program of another origin."""
