"""What a batch is asked, as arrays: refused if they do not fit into memory, announced if they take long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array, as_doubles
from allocopt.base.errors import InvalidInstance, SlowWarning, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.validation import Array, frozen, in_range
from allocopt.model.arms import open_store
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.solving.allocator import MOST_ARMS

__all__ = ["instances", "say_if_long", "variances_of"]

_ARRAYS_LIKE_GAPS, _ARRAYS_LIKE_ARMS = 6, 3  # that are made: their copy, α, λ, variances, what is checked on the way
_LONG = 60.0  # seconds


def instances(arms: Any, gaps: Any, level: float) -> tuple[Any, bool, Array, Array]:
    """Arms as an array (k, d) or a store if they are shared, else as an array (n, k, d); gaps (n, k) and levels (n,)."""
    if isinstance(arms, Sequence) and len(arms) and all(isinstance(b, LinearBandit) for b in arms):
        if gaps is not None:
            raise InvalidInstance("gaps: expected none, as bandits bring their own")
        for i, bandit in enumerate(arms):
            if bandit.arms.shape != arms[0].arms.shape:
                raise InvalidInstance(
                    f"arms: expected bandits of equal shape, but bandit {i} has {bandit.arms.shape[0]} arms of "
                    f"{bandit.arms.shape[1]} coordinates and bandit 0 has {arms[0].arms.shape[0]} of {arms[0].arms.shape[1]}"
                )
        sets = frozen(np.array([b.arms_in_memory for b in arms]))
        levels = [2.0 if b.variances is not None else 2.0 * b.noise_variance for b in arms]
        return sets, False, np.array([b.gaps for b in arms]), np.array(levels)
    if gaps is None:
        raise InvalidInstance("gaps: expected a matrix with one row per instance, got none")
    delta = _numbers("gaps", gaps, (2,), _ARRAYS_LIKE_GAPS)
    store = open_store(arms)
    try:
        dimensions = 2 if store is not None else as_array(arms).ndim
    except NotAnArray:  # `arm_matrix` says why
        dimensions = 2
    shared = dimensions != 3
    own: Any
    shape: tuple[int, ...]
    if store is not None:
        own, shape = store, store.shape
    elif shared:
        own = arm_matrix(arms)
        in_range("arms", own, InvalidInstance)
        shape = own.shape
    else:
        own = frozen(_numbers("arms", arms, (3,), _ARRAYS_LIKE_ARMS))
        if len(own) != len(delta):
            raise InvalidInstance(f"arms: expected {len(delta)} sets of arms, one per row of gaps, got {len(own)}")
        shape = own.shape[1:]
        if not shape[0] or not shape[1]:
            raise InvalidInstance("arms: expected at least one arm with at least one coordinate, got none")
    if delta.shape[1] != shape[0]:
        raise InvalidInstance(f"gaps: expected {shape[0]} columns, one per arm, got {delta.shape[1]}")
    return own, shared, delta, np.full(len(delta), level)


def variances_of(bandits: Sequence[LinearBandit], n: int, k: int) -> Array:
    """σ² of every arm where a bandit's differ, else ones: then σ² is part of the level."""
    found = np.ones((n, k))
    for row, bandit in zip(found, bandits, strict=False):
        if bandit.variances is not None:
            row[:] = bandit.variances
    return found


def say_if_long(n: int, k: int, d: int, threads: int) -> None:
    """Warn before so many rows are solved that it takes minutes."""
    each = 1e-5 + 5e-9 * k * k * (k / 3 + d) if k <= MOST_ARMS else 5e-3 + 1e-7 * d**3 + 2e-8 * k * d  # as measured
    seconds = n * each / threads
    if seconds > _LONG:
        warn_caller(
            f"solve_many: {n:,} rows of {k:,} arms take about {duration_text(seconds)} or more; callback= shows how far it is",
            SlowWarning,
        )


def _numbers(name: str, value: Any, dimensions: tuple[int, ...], arrays: int) -> Array:
    """A fresh float64 array; its entries may be anything, since a bad row fails alone. So many ``arrays`` of its size are to come."""
    try:
        raw = as_array(value)
    except NotAnArray as problem:
        if "inhomogeneous" in str(problem):
            raise InvalidInstance(f"{name}: expected rows of equal length, got ragged ones") from None
        raise InvalidInstance(f"{name}: {problem}") from None
    if raw.dtype.kind not in "fiub" or raw.ndim not in dimensions:
        raise InvalidInstance(
            f"{name}: expected an array of numbers with {dimensions[0]} dimensions, got shape {raw.shape} of type {raw.dtype}"
        )
    check_memory(8.0 * arrays * raw.size, f"{name}: solving for {raw.size:,} entries", InvalidInstance)
    return np.array(as_doubles(name, raw, InvalidInstance, given=value), order="C")
