"""Blocks of rows: how large they are, how a task is applied to one, and memory that is used for one after another."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array, as_doubles, first_changed
from allocopt.base.errors import InvalidInstance
from allocopt.base.validation import Array, IntArray
from allocopt.model.arms.fingerprints import fingerprint
from allocopt.model.arms.store import Task

__all__ = ["block_rows", "first_of_copies", "looks_at_all", "rows_as_doubles", "scan_rows", "scratch"]

_BLOCK_ENTRIES = 160_000  # of a block: it and its image fit into a core's cache, and numpy's overhead stays small
_SMALLER_BLOCKS = (
    4_000_000  # entries of a set below which blocks are half as large: what is made of one is much beside the set
)


def block_rows(rows: int, columns: int) -> int:
    """Rows of a block: a power of two, so that chunks of a cluster can consist of whole blocks."""
    entries = _BLOCK_ENTRIES if rows * columns >= _SMALLER_BLOCKS else _BLOCK_ENTRIES // 2
    return int(2 ** max(8, np.log2(entries / columns).round()))


class _Scratch(threading.local):
    """Memory of a thread that is used for one block after another.

    Workers of a cluster ask malloc to hand freed memory back at once; fresh memory for every block then costs as much as
    the arithmetic.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}


_scratch = _Scratch()


def scratch(name: str, rows: int, columns: int) -> Array:
    """A matrix of this thread with arbitrary content; whoever asks for the same name next gets the same memory."""
    have = _scratch.arrays.get(name)
    if have is None or have.size < rows * columns:
        have = _scratch.arrays[name] = np.empty(rows * columns)
    return have[: rows * columns].reshape(rows, columns)


def _raw_block(rows: Any, start: int, stop: int, offset: int = 0) -> np.ndarray[Any, Any]:
    """Some rows as they are; numbers only, and none of them masked."""
    try:
        block = as_array(rows[start:stop])
    except NotAnArray as problem:
        raise InvalidInstance(f"arms: {problem} (rows {offset + start} to {offset + stop - 1})") from None
    if block.dtype.kind not in "fiub":
        raise InvalidInstance(
            f"arms: expected numbers, got {block.dtype} (rows {offset + start} to {offset + stop - 1})"
        )
    return block


def scan_rows(task: Task, offset: int, rows: Any, aligned: Sequence[Any], start: int, stop: int, watch: bool) -> Any:
    """What a task returns for a block, and the block's fingerprint if it is watched."""
    block = _raw_block(rows, start, stop, offset)
    print_of_block = fingerprint(block) if watch else None
    if block.dtype != np.float64:
        if block.dtype.itemsize >= 8:  # anything shorter is a double
            block = as_doubles("arms", block, InvalidInstance, first_row=offset + start)
        else:
            converted = scratch("block", *block.shape)
            converted[...] = block
            block = converted
    return task(offset + start, block, *(x[start:stop] for x in aligned)), print_of_block


def rows_as_doubles(rows: np.ndarray[Any, Any], indices: IntArray) -> Array:
    """Some rows as float64, where ``indices`` says which ones they are."""
    doubles = np.asarray(rows, dtype=np.float64)
    changed = first_changed(rows, doubles)
    if changed is not None:
        as_doubles("arms", rows[changed[0]][None, :], InvalidInstance, first_row=int(indices[changed[0]]))
    return doubles


def first_of_copies(rows: Array) -> IntArray:
    """Places of rows that are all different, the first of each set of equal ones, in increasing order."""
    if not rows.size:
        return np.arange(min(len(rows), 1))
    plain = np.ascontiguousarray(rows) + 0.0  # −0.0 becomes 0.0
    whole = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    return np.sort(np.unique(whole, return_index=True)[1])


def looks_at_all(aligned: Sequence[Any]) -> bool:
    """Whether a scan looks at all arms: a mask among the aligned arrays says that it does not."""
    return not any(getattr(x, "dtype", None) == np.bool_ for x in aligned)
