r"""Orders of play: which arm comes next, how often each was played after t rounds, and the runs of equal arms.

An order is a rule for a never-ending or finite sequence of arms, from how often each *exploring* arm is to be played
(``quota``) and which arms are *free* (zero gap: they take the rest of the rounds). None of them is ever written out:
counts after t rounds are a formula in t, and runs are made while one asks for them.

    explore-first   one run per exploring arm, by index; then one run per free arm, of equal lengths
    interleaved     the paper's success phase: pass after pass, each plays once each, by index, every exploring arm whose
                    quota is not used up and every free arm
    tracking        always the arm that is furthest behind its share: the smallest (N_x + ½)/quota_x, ties by index
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Protocol

import numpy as np

from allocopt.base.validation import Array, IntArray

__all__ = [
    "ORDERS",
    "ExploreFirst",
    "Interleaved",
    "PlayOrder",
    "Tracking",
    "even_split",
    "full_shares",
    "order_of_play",
]

ORDERS = ("interleaved", "explore-first", "tracking")

_CHUNK = 1 << 14
"""Plays of arms other than the most played one that are sorted at a time: small against memory, large against overhead."""


class PlayOrder(Protocol):
    """What an order of play can say. Arms are positions in the arrays it was made from."""

    def pulls_at(self, t: int) -> IntArray:
        """How often each arm was played in the first t rounds."""

    def runs(self) -> Iterator[tuple[int, int]]:
        """(arm, count) of every run, in order; a run may be split in two."""


def even_split(total: int, parts: int) -> IntArray:
    """``total`` as ``parts`` whole numbers that differ by at most 1, the larger ones first."""
    return total // parts + (np.arange(parts) < total % parts).astype(np.int64)


def full_shares(quota: Array, free: IntArray, rounds: int) -> tuple[Array, Array]:
    """What is wanted of the exploring arms; and the same with the rounds that are left divided among the free arms."""
    exploring = np.where(np.isfinite(quota), quota, 0.0)
    exploring[free] = 0.0
    rest = max(rounds - float(exploring.sum()), 0.0)
    full = exploring.copy()
    full[free] = even_split(int(rest), len(free)) if len(free) else 0
    return exploring, full


def order_of_play(order: str, quota: Array, free: IntArray, rounds: int) -> PlayOrder:
    """The order of that name: ``quota`` per arm (whole numbers as doubles; ignored on free arms), ``rounds`` in all."""
    exploring, full = full_shares(quota, free, rounds)
    if order == "interleaved":
        # no arm can be played more often than there are rounds
        return Interleaved(np.minimum(exploring, rounds).astype(np.int64), free)
    if order == "explore-first":
        sequence = np.concatenate([np.flatnonzero(exploring), free])
        return ExploreFirst(sequence.astype(np.int64), np.minimum(full, rounds).astype(np.int64))
    return Tracking(full)


def merged(runs: Iterator[tuple[int, int]], rounds: int) -> Iterator[tuple[int, int]]:
    """The first ``rounds`` rounds of the sequence, with neighbouring runs of one arm joined."""
    current, total = -1, 0
    for arm, length in runs:
        taken = min(length, rounds)
        if arm == current:
            total += taken
        else:
            if total:
                yield current, total
            current, total = arm, taken
        rounds -= taken
        if not rounds:
            break
    if total:
        yield current, total


@dataclass(frozen=True, eq=False)
class ExploreFirst:
    """One run per arm of ``sequence``."""

    sequence: IntArray
    counts: IntArray

    @cached_property
    def _starts(self) -> list[int]:
        """The number of rounds before each run; Python integers, which cannot overflow."""
        starts = [0]
        for length in self.counts[self.sequence].tolist():
            starts.append(starts[-1] + length)
        return starts

    def pulls_at(self, t: int) -> IntArray:
        played = np.zeros(len(self.counts), dtype=np.int64)
        before = np.array([min(t, start) for start in self._starts], dtype=np.int64)
        played[self.sequence] = np.diff(before)
        return played

    def runs(self) -> Iterator[tuple[int, int]]:
        for arm in self.sequence.tolist():
            yield arm, int(self.counts[arm])


@dataclass(frozen=True, eq=False)
class Interleaved:
    """Passes over the arms whose quota is not used up, and over the free arms."""

    quota: IntArray
    free: IntArray

    @cached_property
    def _segments(self) -> list[tuple[int, int, int]]:
        """(first pass, rounds before it, arms per pass) of each stretch of passes that play the same arms."""
        changes, left = np.unique(self.quota[self.quota > 0], return_counts=True)
        segments = []
        first, before, active = 0, 0, int(left.sum()) + len(self.free)
        for change, gone in zip(changes.tolist(), left.tolist(), strict=True):
            segments.append((first, before, active))
            first, before, active = change, before + (change - first) * active, active - gone
        segments.append((first, before, active))
        return segments

    def _active(self, first: int) -> IntArray:
        """The arms of a pass, by index."""
        playing = self.quota > first
        playing[self.free] = True
        return np.flatnonzero(playing)

    def pulls_at(self, t: int) -> IntArray:
        first, before, active = next(s for s in reversed(self._segments) if s[1] <= t)
        passes, extra = divmod(t - before, active) if active else (0, 0)
        played = np.minimum(self.quota, first + passes)
        played[self.free] = first + passes
        played[self._active(first)[:extra]] += 1
        return played

    def runs(self) -> Iterator[tuple[int, int]]:
        last = len(self._segments) - 1
        for i, (first, _, active) in enumerate(self._segments):
            arms = self._active(first).tolist()
            if active == 1:
                yield arms[0], (self._segments[i + 1][0] - first) if i < last else int(np.iinfo(np.int64).max)
                continue
            for _ in range(self._segments[i + 1][0] - first) if i < last else count() if active else ():
                for arm in arms:
                    yield arm, 1


@dataclass(frozen=True, eq=False)
class Tracking:
    """The j-th play (j = 0, 1, …) of arm x is due at (j + ½)/weight_x; plays come in the order of these doubles.

    The comparison is one of doubles, so the order is the same whether it is made play by play or looked up at any t.
    """

    weights: Array

    @cached_property
    def _arms(self) -> IntArray:
        return np.flatnonzero(self.weights > 0)

    @cached_property
    def _total(self) -> float:
        return float(self.weights.sum())

    def _played_by(self, due: float | Array, arms: IntArray, *, including: bool = True) -> IntArray:
        """How many plays of each arm are due by then (with or without those due exactly then)."""
        weight = self.weights[arms]
        played = np.floor(due * weight + 0.5)
        for _ in range(2):  # the formula is at most one off, by rounding
            last = (played - 0.5) / weight
            played = np.where((last > due) if including else (last >= due), played - 1.0, played)
            coming = (played + 0.5) / weight
            played = np.where((coming <= due) if including else (coming < due), played + 1.0, played)
        return np.maximum(played, 0.0).astype(np.int64)

    def _plays(self, first: IntArray, last: IntArray, arms: IntArray) -> tuple[Array, IntArray]:
        """Due times and arms of the plays first <= j < last of each arm, sorted."""
        counts = last - first
        arm = np.repeat(arms, counts)
        start = np.repeat(np.cumsum(counts) - counts, counts)
        j = np.repeat(first, counts) + (np.arange(len(arm)) - start)
        due = (j + 0.5) / self.weights[arm]
        order = np.lexsort((arm, due))
        return due[order], arm[order]

    def pulls_at(self, t: int) -> IntArray:
        played = np.zeros(len(self.weights), dtype=np.int64)
        arms = self._arms
        if not len(arms):
            return played
        # Each count is within ½ of its share, so the t-th play is due within s plays of t/total.
        low = self._played_by(max(0.0, (t - len(arms) - 1) / self._total), arms)
        high = self._played_by((t + len(arms) + 1) / self._total, arms)
        played[arms] = low
        _, next_arms = self._plays(low, high, arms)
        np.add.at(played, next_arms[: t - int(low.sum())], 1)
        return played

    def runs(self) -> Iterator[tuple[int, int]]:
        """The plays of the other arms one by one, and between them runs of the most played arm."""
        if not len(self._arms):
            return
        major = int(self._arms[np.argmax(self.weights[self._arms])])
        others = self._arms[self._arms != major]
        if not len(others):
            yield major, int(np.iinfo(np.int64).max)
            return
        only = np.array([major])
        window = (_CHUNK + len(others)) / float(self.weights[others].sum())
        first, done, end = np.zeros(len(others), dtype=np.int64), 0, 0.0
        while True:
            end += window
            last = self._played_by(end, others)
            due, arms = self._plays(first, last, others)
            first = last
            # plays of the major arm before each of these; at equal times the lower index goes first
            at_or_before = self._before(due, major)
            strictly = self._before(due, major, including=False)
            before = np.where(major < arms, at_or_before, strictly)
            for arm, goal in zip(arms.tolist(), before.tolist(), strict=True):
                if goal > done:
                    yield major, goal - done
                    done = goal
                yield arm, 1
            until = int(self._played_by(end, only)[0])
            if until > done:
                yield major, until - done
                done = until

    def _before(self, due: Array, major: int, *, including: bool = True) -> IntArray:
        return self._played_by(due, np.full(len(due), major), including=including)
