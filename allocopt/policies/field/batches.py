"""Batches: so many pulls of every arm, arm after arm, and no look at a reward before the end; for policies that plan in between."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.compiling import compiled
from allocopt.base.validation import Array, IntArray
from allocopt.policies.rounds import PAUSE

__all__ = ["Batch", "learn_sum", "next_due", "rounds_due"]


class Batch(NamedTuple):
    """What is to be played, and what came of it."""

    due: IntArray
    """Pulls that are still to be made."""
    pulls: IntArray
    """Of this batch, or of all since they were set to 0."""
    sums: Array
    """Of their rewards."""
    at: IntArray
    """Length 1: arms before this one have had their pulls."""

    @classmethod
    def blank(cls, n_arms: int) -> Batch:
        """Nothing due, nothing played."""
        return cls(np.zeros(n_arms, np.int64), np.zeros(n_arms, np.int64), np.zeros(n_arms), np.zeros(1, np.int64))

    def begin(self, due: IntArray) -> None:
        """A new batch; pulls and sums stay."""
        self.due[:] = due
        self.at[0] = 0

    def forget(self) -> None:
        """Pulls and sums so far do not count."""
        self.pulls[:] = 0
        self.sums[:] = 0.0


@compiled
def next_due(batch: Any) -> Any:
    """The next arm of the batch; `PAUSE` at its end."""
    for i in range(batch.at[0], len(batch.due)):
        if batch.due[i] > 0:
            batch.at[0] = i
            return i
    return PAUSE


@compiled
def rounds_due(batch: Any, arm: Any) -> Any:
    """For how many rounds this arm is played without a look."""
    return batch.due[arm]


@compiled
def learn_sum(batch: Any, arm: Any, count: Any, total: Any) -> None:
    """So many rounds of an arm, with this sum of rewards."""
    batch.due[arm] -= count
    batch.pulls[arm] += count
    batch.sums[arm] += total
