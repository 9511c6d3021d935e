"""From real-valued pulls to whole ones: ceilings, and the efficient apportionment of a fixed number of rounds."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array, IntArray, vector, whole_number

__all__ = ["LONGEST", "as_listed", "ceilings", "efficient_apportionment", "whole_pulls"]

LONGEST = 2**52
"""The longest horizon: up to here whole numbers, and halves of them, are exact in doubles."""


def whole_pulls(name: str, value: Any, n_arms: int) -> IntArray:
    """Pull counts that a user passed: one whole number >= 0 per arm."""
    counts = vector(name, value, InvalidOption, length=n_arms)
    for bad, wanted in ((counts < 0, ">= 0"), (counts != np.floor(counts), "that are whole numbers")):
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InvalidOption(f"{name}: expected entries {wanted}, but entry {i} is {float(counts[i])!r}")
    if math.fsum(counts.tolist()) > LONGEST:
        raise InvalidOption(f"{name}: expected at most {LONGEST} rounds in all, got {counts.sum():.6g}")
    return counts.astype(np.int64)


def ceilings(pulls: Array) -> Array:
    """⌈T⌉, as doubles because T may be ∞ or beyond every integer type.

    Information only grows, so ⌈T⌉ meets every constraint that T meets. No tolerance is applied: 8 + 1e-12 becomes 9,
    since 8 need not be enough.

    Examples
    --------
    >>> ceilings(np.array([0.0, 2.1, 3.0, np.inf]))
    array([ 0.,  3.,  3., inf])
    """
    result: Array = np.ceil(pulls)
    return result


def as_listed(pulls: Array) -> Array:
    """⌊T⌋ + 1: what the paper's listing plays, which goes on while T_x(t) <= T_x. One more than ⌈T⌉ where T is whole, 0 included.

    Examples
    --------
    >>> as_listed(np.array([0.0, 2.1, 3.0, np.inf]))
    array([ 1.,  3.,  4., inf])
    """
    result: Array = np.floor(pulls) + 1.0
    return result


def efficient_apportionment(weights: Any, rounds: float, at_least: Any = None) -> IntArray:
    r"""Whole counts n_i that sum to ``rounds`` and keep min_i n_i/w_i as large as any such counts can.

    This is the apportionment of Pukelsheim and Rieder for experimental designs (Adams' divisor method): hand out the
    rounds one by one, each to the arm with the smallest n_i/w_i. An information matrix loses at most the factor
    min_i n_i/(rounds·w_i) >= 1 − s/rounds, for s positive weights that sum to 1, so every squared norm grows by at most
    its inverse. O(s log s), however many rounds.

    Parameters
    ----------
    weights : array_like, shape (k,)
        w >= 0, any scale; an arm of weight 0 gets nothing new.
    rounds : int
        How many rounds in all, those in ``at_least`` included.
    at_least : array_like of int, shape (k,), optional
        Counts that are already spent.

    Examples
    --------
    >>> efficient_apportionment([0.5, 0.3, 0.2], 7)
    array([3, 2, 2])
    >>> efficient_apportionment([0.5, 0.3, 0.2], 10, at_least=[0, 6, 0])
    array([3, 6, 1])
    """
    w = vector("weights", weights, InvalidOption)
    if (w < 0).any() or not w.any():
        raise InvalidOption("weights: expected numbers >= 0 of which one is positive")
    n = whole_number("rounds", rounds, InvalidOption)
    if n > LONGEST:
        raise InvalidOption(f"rounds: expected at most {LONGEST}, got {n}")
    spent = np.zeros(len(w), dtype=np.int64) if at_least is None else whole_pulls("at_least", at_least, len(w))
    total = int(spent.sum())
    if total > n:
        raise InvalidOption(f"rounds: expected at least the {total} that at_least has, got {n}")
    support = np.flatnonzero(w > 0)
    share = w[support] / w[support].max()
    counts = spent[support]
    available = n - total + int(counts.sum())
    # At the level ν Adams' method has given every arm max(spent, ⌈ν w⌉). Start at one that is surely not too high:
    # where the real-valued counts max(spent, ν w) use up all but s + 1 of the rounds.
    level = _water_level(share, counts, available - len(support) - 1)
    counts = np.maximum(counts, np.ceil(level * share).astype(np.int64))
    # equal ratios (all of them 0 at the start) go to the larger weight, then to the lower index
    heap = [(c / s, -s, i) for i, (c, s) in enumerate(zip(counts.tolist(), share.tolist(), strict=True))]
    heapq.heapify(heap)
    for _ in range(available - int(counts.sum())):
        _, negative, i = heap[0]
        counts[i] += 1
        heapq.heapreplace(heap, (int(counts[i]) / -negative, negative, i))
    result = spent.copy()
    result[support] = counts
    return result


def _water_level(weights: Array, floor: IntArray, total: int) -> float:
    """ν >= 0 with Σ max(floor, ν·weights) = total; 0 where the floors alone are more."""
    if total <= floor.sum():
        return 0.0
    order = np.argsort(floor / weights, kind="stable")
    ratio = (floor / weights)[order]
    above = float(floor.sum()) - np.cumsum(floor[order])  # floors of those that are not reached yet
    levels = (total - above) / np.cumsum(weights[order])
    reached = np.flatnonzero(levels >= ratio)
    return float(levels[reached[-1]])
