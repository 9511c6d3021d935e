"""ListedArms: arms in an array, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from allocopt.base.conversion import as_doubles, unchanging
from allocopt.base.errors import InvalidInstance
from allocopt.base.machine import available_cores, single_threaded
from allocopt.base.validation import Array, IntArray
from allocopt.model.arms import blocks
from allocopt.model.arms.fingerprints import Fingerprints, fingerprint
from allocopt.model.arms.store import Task

__all__ = ["ListedArms"]


class ListedArms:
    """Arms in an array: in memory, or mapped from a file. The array is used where it is, never copied."""

    def __init__(self, array: Any, workers: int | None = None) -> None:
        self.listed = self._array = array
        self._step = blocks.block_rows(*array.shape)
        self._workers = workers
        self._prints = None if unchanging(array) else Fingerprints()

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        k, d = self._array.shape
        return int(k), int(d)

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64."""
        return blocks.rows_as_doubles(np.asarray(self._array[indices]), indices)

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Blocks are handed to threads, each with one BLAS thread; what comes back does not depend on how many."""
        k = len(self._array)
        starts = range(0, k, self._step)
        prints = self._prints if blocks.looks_at_all(aligned) else None

        def run(start: int) -> Any:
            stop = min(start + self._step, k)
            result, found = blocks.scan_rows(task, 0, self._array, aligned, start, stop, prints is not None)
            if prints is not None:
                prints.check(start, found)
            return result

        workers = min(self._workers or available_cores(), len(starts))
        if workers == 1:
            yield from map(run, starts)
            return
        with single_threaded(), ThreadPoolExecutor(workers) as pool:
            try:
                yield from pool.map(run, starts)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def array(self) -> Array:
        """All arms as one float64 array; `InvalidInstance` if they have changed since they were first looked at."""
        self.check_unchanged()
        return as_doubles("arms", np.asarray(self._array), InvalidInstance)

    def check_unchanged(self) -> None:
        """`InvalidInstance` if any arm differs from what it was when it was first looked at; one pass over all of them."""
        if self._prints is not None:
            for start, found in self._fingerprints():
                self._prints.check(start, found)

    def changed(self) -> bool:
        """Whether any arm differs from what it was when it was first looked at."""
        prints = self._prints
        return prints is not None and not all(prints.same(start, found) for start, found in self._fingerprints())

    def _fingerprints(self) -> Iterator[tuple[int, int]]:
        for start in range(0, len(self._array), self._step):
            yield start, fingerprint(self._array[start : start + self._step])
