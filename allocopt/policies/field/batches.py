"""Batches: so many pulls of every arm, arm after arm, and no look at a reward before the end; for policies that then drop arms."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play, play_blocks

__all__ = ["Batch", "BatchPolicy", "BatchState", "next_batch"]


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


class BatchState(NamedTuple):
    """A batch, and which arms are left."""

    batch: Batch
    alive: IntArray
    """1 for arms that are left."""
    number: IntArray
    """Length 1: batches begun."""
    starts: IntArray
    """Their first rounds."""
    left: IntArray
    """Arms at the beginning of each."""


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    """The next arm of the batch; `PAUSE` at its end."""
    batch = state.batch
    for i in range(batch.at[0], len(batch.due)):
        if batch.due[i] > 0:
            batch.at[0] = i
            return i
    return PAUSE


@compiled
def _stay(state: Any, t: Any, arm: Any) -> Any:
    return state.batch.due[arm]


@compiled
def _learn(state: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    batch = state.batch
    batch.due[arm] -= count
    batch.pulls[arm] += count
    batch.sums[arm] += total


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    _learn(state, t, arm, 1, reward)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, _stay, _learn, state, ledger, first, last, decisions, noise, rng)


class BatchPolicy(Policy):
    """What policies that play batches share: all but ``plan``, which drops arms and begins the next batch."""

    most_batches: ClassVar[int]
    batch_name: ClassVar[str] = "batch"

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def initial_state(self, setting: Setting) -> BatchState:
        """Before the first batch: nothing is due, so the first round has it planned."""
        k = setting.n_arms
        small = [np.zeros(n, np.int64) for n in (1, self.most_batches, self.most_batches)]
        return BatchState(Batch.blank(k), np.ones(k, np.int64), small[0], small[1], small[2])

    def opening(self, setting: Setting) -> int:
        """It looks at the end of a batch only, when all its rewards are there."""
        return 0

    def phases(self, state: BatchState, horizon: int) -> tuple[Phase, ...]:
        """Each batch with the number of arms that it began with."""
        starts = [int(x) for x in state.starts[: state.number[0]]]
        ends = [*(s - 1 for s in starts[1:]), horizon]
        return tuple(
            Phase(f"{self.batch_name} {i + 1}, {n} arm{'s' if n > 1 else ''}", first, last - first + 1)
            for i, (first, last, n) in enumerate(zip(starts, ends, state.left.tolist(), strict=False))
        )


def next_batch(state: BatchState, t: int) -> tuple[int, IntArray]:
    """Note that a batch begins with round t: its number, from 1, and the arms that are left."""
    survivors = np.flatnonzero(state.alive)
    state.number[0] += 1
    number = int(state.number[0])
    state.starts[number - 1], state.left[number - 1] = t, len(survivors)
    return number, survivors
