"""Where arms live: in memory, in a memory-mapped file, or on a Dask cluster.

Large sets of arms are seen through a small protocol only: their shape, some rows by index, and a scan that applies a task
to every block of rows, wherever that block is, and brings back what the tasks return. Nothing here knows what is computed.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from allocopt.errors import InvalidFile, InvalidInstance, MethodUnavailable, SolverFailed
from allocopt.threads import single_threaded
from allocopt.validation import Array, IntArray, whole_number

__all__ = ["ArmStore", "DaskArms", "ListedArms", "dask_npy", "open_store"]

LARGE = 400_000
"""Entries from which a set of arms is seen through a store: below, everything fits in a cache or nearly so."""
SHARED = 2_000_000
"""Entries from which an array is used where it is; smaller ones are copied, so that users may change theirs."""
_MANY = 10_000  # arms that such a set has at least: a few arms of very many coordinates are another problem
_BLOCK_ENTRIES = 160_000  # of a block: it and its image fit into a core's cache, and numpy's overhead stays small

Task = Callable[..., Any]
"""Called with the index of a block's first row, the block as float64, and the block's part of each aligned array.

The block is valid during the call only; the next one may be written over it.
"""


class ArmStore(Protocol):
    """A set of arms, one row each, that need not be in memory."""

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64."""

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """What ``task`` returns for every block, in the order of the rows; ``aligned`` arrays have one entry per arm."""

    def array(self) -> Array:
        """All arms as one float64 array, where that is possible."""


def block_rows(columns: int) -> int:
    """Rows of a block: a power of two, so that chunks of a cluster can consist of whole blocks."""
    return int(2 ** max(8, np.log2(_BLOCK_ENTRIES / columns).round()))


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


def _scan_rows(task: Task, offset: int, rows: Any, aligned: Sequence[Any], start: int, stop: int) -> Any:
    block = np.asarray(rows[start:stop])
    if block.dtype != np.float64:
        converted = scratch("block", *block.shape)
        converted[...] = block
        block = converted
    return task(offset + start, block, *(x[start:stop] for x in aligned))


class ListedArms:
    """Arms in an array: in memory, or mapped from a file. The array is used where it is, never copied."""

    def __init__(self, array: Any, workers: int | None = None) -> None:
        self.listed = self._array = array
        self._step = block_rows(array.shape[1])
        self._workers = workers

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        k, d = self._array.shape
        return int(k), int(d)

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64."""
        return np.asarray(self._array[indices], dtype=np.float64)

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Blocks are handed to threads, each with one BLAS thread; what comes back does not depend on how many."""
        k = len(self._array)
        starts = range(0, k, self._step)

        def run(start: int) -> Any:
            return _scan_rows(task, 0, self._array, aligned, start, min(start + self._step, k))

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
        """All arms as one float64 array."""
        return np.asarray(self._array, dtype=np.float64)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class DaskArms:
    """Arms in a Dask array; each worker looks at its own chunks, and only what the tasks return travels.

    A lost worker costs the chunks it held: the scheduler makes them again from the array's graph and repeats their tasks.
    Without a ``distributed`` client the tasks run on Dask's threads in this process. ``persist()`` the array to keep it in
    the workers' memory; otherwise every pass reads it anew, which is right for files that are memory-mapped.
    """

    def __init__(self, array: Any) -> None:
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise InvalidInstance(
                f"arms: expected a Dask array of numbers with 2 dimensions, got {array.ndim} of type {array.dtype}"
            )
        if any(np.isnan(n) for n in array.shape):
            raise InvalidInstance(
                "arms: expected a Dask array with known chunk sizes; call compute_chunk_sizes() first"
            )
        if not array.size:
            raise InvalidInstance("arms: expected at least one arm with at least one coordinate, got none")
        if len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        self._array = array
        self._chunks = array.to_delayed().ravel()
        self._offsets = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.int64)
        self._step = block_rows(array.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        return int(self._array.shape[0]), int(self._array.shape[1])

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64, fetched from the chunks that hold them."""
        wanted = np.asarray(indices, dtype=np.int64)
        chunk = np.searchsorted(self._offsets, wanted, side="right") - 1
        found = np.empty((len(wanted), self.shape[1]))
        which = np.unique(chunk).tolist()
        places = [np.flatnonzero(chunk == c) for c in which]
        calls = [(self._chunks[c], wanted[at] - self._offsets[c]) for c, at in zip(which, places, strict=True)]
        for at, rows in zip(places, self._run(_take, calls), strict=True):
            found[at] = rows
        return found

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Every worker scans its chunks block by block."""
        bounds = zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True)
        calls = [
            (chunk, task, start, [x[start:stop] for x in aligned], self._step)
            for chunk, (start, stop) in zip(self._chunks, bounds, strict=True)
        ]
        return chain.from_iterable(self._run(_scan_chunk, calls))

    def _run(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
        dask = _dask()
        call = dask.delayed(function, pure=False)
        tasks = [call(*arguments) for arguments in calls]
        client = _client()
        if client is None:
            with single_threaded():  # around all threads: limits that overlap would not find back to where they began
                found = dask.compute(*tasks, scheduler="threads")
            yield from found
            return
        # Gaps and masks travel with the tasks: what was scattered instead would be lost with the worker that holds it.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            futures = client.compute(tasks, retries=3)
        lost = importlib.import_module("distributed").KilledWorker
        for future in futures:
            try:
                result = future.result()
            except lost as error:
                raise SolverFailed(
                    f"arms: every worker that took up {error.task!r} died; has it enough memory?"
                ) from None
            yield result

    def array(self) -> Array:
        """Not possible: the arms may not fit into memory."""
        raise MethodUnavailable(
            "arms: a Dask array can be used by method 'active-set' for the programs regret, horizon and g_optimal only; "
            "pass array.compute() where it fits into memory"
        )


def _dask(name: str = "dask") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MethodUnavailable(f"arms on Dask need {name}: pip install 'allocopt[dask]'") from None


def _client() -> Any:
    """The ``distributed`` client that is active in this process, if there is one."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _take(rows: Any, indices: IntArray) -> Array:
    return np.asarray(np.asarray(rows)[indices], dtype=np.float64)


def _scan_chunk(rows: Any, task: Task, offset: int, aligned: Sequence[Any], step: int) -> list[Any]:
    with single_threaded():  # a worker has as many threads as it was given; BLAS's own would come on top
        return [
            _scan_rows(task, offset, rows, aligned, start, min(start + step, len(rows)))
            for start in range(0, len(rows), step)
        ]


def open_store(arms: Any) -> ArmStore | None:
    """A store for arms that are large or live elsewhere; None for all others, which are simply arrays.

    float32 values are taken as exact: every block becomes float64 when it is looked at. Other numbers (whole ones, half
    precision) become float64 once, in a copy.
    """
    if type(arms).__module__.partition(".")[0] == "dask" and hasattr(arms, "to_delayed") and hasattr(arms, "chunks"):
        return DaskArms(arms)
    if isinstance(arms, DaskArms | ListedArms):
        return arms
    if not isinstance(arms, np.ndarray) or arms.ndim != 2 or arms.dtype.kind not in "fiub" or arms.dtype.itemsize > 8:
        return None
    if arms.size < LARGE or len(arms) < _MANY:
        return None
    view = arms.view(np.ndarray)
    if arms.size < SHARED and arms.flags.writeable:
        view = view.copy()
    if arms.dtype.newbyteorder("=") not in (np.float32, np.float64):
        view = view.astype(np.float64)
    view.flags.writeable = False  # of the view: the user's own array stays as it is
    return ListedArms(view)


def dask_npy(path: str | Path, chunk_rows: int | None = None) -> Any:
    """A Dask array over a .npy file that every worker can see: each worker maps its own part of the file.

    ``chunk_rows`` is rounded to whole blocks, so that answers are the same, to the bit, as those for the file in one process.
    """
    da = _dask("dask.array")
    source = Path(path).resolve()
    mapped = _mapped(str(source))
    if mapped.ndim != 2 or mapped.dtype.kind not in "fiub" or not mapped.size:
        raise InvalidFile(f"{source}: expected a matrix of numbers, got shape {mapped.shape} of type {mapped.dtype}")
    k, d = mapped.shape
    step = block_rows(d)
    wanted = 32 * step if chunk_rows is None else whole_number("chunk_rows", chunk_rows, least=1)
    rows = max(1, round(wanted / step)) * step
    sizes = tuple(min(rows, k - start) for start in range(0, k, rows))
    return da.map_blocks(
        _mapped_rows, str(source), rows, chunks=(sizes, (d,)), dtype=mapped.dtype, meta=np.empty((0, 0), mapped.dtype)
    )


def _mapped_rows(path: str, rows: int, block_info: Any = None) -> Any:
    start = block_info[None]["chunk-location"][0] * rows
    return _mapped(path)[start : start + rows]


def _mapped(path: str) -> Any:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InvalidFile(f"{path}: cannot be mapped as a NumPy file of numbers: {reason}") from None
