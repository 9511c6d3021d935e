"""Where arms live: in memory, in a memory-mapped file, or on a Dask cluster.

Large sets of arms are seen through a small protocol only: their shape, some rows by index, and a scan that applies a task
to every block of rows, wherever that block is, and brings back what the tasks return. Nothing here knows what is computed.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.conversion import NotAnArray, as_array, as_doubles, first_changed, unchanging
from allocopt.base.errors import InvalidFile, InvalidInstance, MethodUnavailable, SolverFailed
from allocopt.base.machine import available_cores, single_threaded
from allocopt.base.validation import Array, IntArray, whole_number

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
        """What ``task`` returns for every block, in the order of the rows; ``aligned`` arrays have one entry per arm.

        The first scan remembers a fingerprint of every block, and later ones raise `InvalidInstance` where a block is no
        longer the same. A scan with a mask (an aligned array of truth values) need not look at every block, so it is exempt.
        """

    def check_unchanged(self) -> None:
        """`InvalidInstance` if arms in memory, or in a mapped file, differ from what they were at the first scan."""

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


_LANES = 4099  # a prime, so that neither rows nor powers of two of them fall into the same lanes
_WEIGHTS = np.random.default_rng(0).integers(0, 2**63, _LANES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def fingerprint(block: np.ndarray[Any, Any]) -> int:
    """A number that another content of the block would hardly have, and surely not if one entry differs; no proof against malice.

    The words are dealt out to lanes in turn and added up, which takes no longer than to read them (a checksum of zlib takes
    six times as long). A plain sum would miss arms that were negated, doubled or swapped: sums are modulo 2^64, so what
    happens to the top bits of an even number of words is lost.
    """
    data = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    words = data[: len(data) // 8 * 8].view(np.uint64)
    full = len(words) // _LANES * _LANES
    lanes = words[:full].reshape(-1, _LANES).sum(axis=0)
    lanes[: len(words) - full] += words[full:]
    lanes ^= lanes >> np.uint64(29)  # the weights would push the top bits out, of float32 those of both halves
    tail = int.from_bytes(data[8 * len(words) :].tobytes(), "little")
    return (int(np.dot(lanes, _WEIGHTS)) + tail * 0x9E3779B97F4A7C15) % 2**64


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


def _scan_rows(task: Task, offset: int, rows: Any, aligned: Sequence[Any], start: int, stop: int, watch: bool) -> Any:
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


def _picked(rows: np.ndarray[Any, Any], indices: IntArray) -> Array:
    """Some rows as float64, where ``indices`` says which ones they are."""
    doubles = np.asarray(rows, dtype=np.float64)
    changed = first_changed(rows, doubles)
    if changed is not None:
        as_doubles("arms", rows[changed[0]][None, :], InvalidInstance, first_row=int(indices[changed[0]]))
    return doubles


class _Fingerprints:
    """Those of all blocks, by their first rows: remembered when a block is first seen, compared from then on."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def same(self, start: int, found: int | None) -> bool:
        """Whether a block is what it was; of one that was not looked at nothing is known."""
        return found is None or self._known.setdefault(start, found) == found

    def check(self, start: int, found: int | None) -> None:
        """Refuse a block that has changed."""
        if not self.same(start, found):
            raise InvalidInstance(
                f"arms: expected arms that stay as they are, but those from row {start} on have changed since they were first "
                "looked at; large arrays are used where they are, so pass a copy or build everything anew"
            )


def _complete(aligned: Sequence[Any]) -> bool:
    """Whether a scan looks at all arms: a mask among the aligned arrays says that it does not."""
    return not any(getattr(x, "dtype", None) == np.bool_ for x in aligned)


class ListedArms:
    """Arms in an array: in memory, or mapped from a file. The array is used where it is, never copied."""

    def __init__(self, array: Any, workers: int | None = None) -> None:
        self.listed = self._array = array
        self._step = block_rows(array.shape[1])
        self._workers = workers
        self._prints = None if unchanging(array) else _Fingerprints()

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        k, d = self._array.shape
        return int(k), int(d)

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64."""
        return _picked(np.asarray(self._array[indices]), indices)

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Blocks are handed to threads, each with one BLAS thread; what comes back does not depend on how many."""
        k = len(self._array)
        starts = range(0, k, self._step)
        prints = self._prints if _complete(aligned) else None

        def run(start: int) -> Any:
            stop = min(start + self._step, k)
            result, found = _scan_rows(task, 0, self._array, aligned, start, stop, prints is not None)
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
        self._array = array
        self._chunks = [
            _Chunk(c, tuple((n, m) for m in array.chunks[1]), array.dtype) for c, n in enumerate(array.chunks[0])
        ]
        self._parts = [list(parts) for parts in array.to_delayed()]
        self._prints = _Fingerprints()
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
        calls = [
            (self._parts[c], self._chunks[c], int(self._offsets[c]), wanted[at] - self._offsets[c])
            for c, at in zip(which, places, strict=True)
        ]
        for at, rows in zip(places, self._run(_take, calls), strict=True):
            found[at] = rows
        return found

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Every worker scans its chunks block by block."""
        bounds = zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True)
        watch = _complete(aligned)
        calls = [
            (parts, chunk, task, start, [x[start:stop] for x in aligned], self._step, watch)
            for parts, chunk, (start, stop) in zip(self._parts, self._chunks, bounds, strict=True)
        ]
        return self._checked(chain.from_iterable(self._run(_scan_chunk, calls)))

    def _checked(self, found: Iterator[tuple[int, Any, int | None]]) -> Iterator[Any]:
        for start, result, seen in found:
            self._prints.check(start, seen)  # chunks that come out differently each time they are made are found here
            yield result

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

    def check_unchanged(self) -> None:
        """Nothing is looked at: that would make every chunk once more, and every pass over all arms compares them anyway."""

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


@dataclass(frozen=True)
class _Chunk:
    """What a Dask array says of one of its rows of chunks; nobody but us compares that with what the chunks are."""

    index: int
    shapes: tuple[tuple[int, int], ...]
    """Of the chunks side by side."""
    dtype: np.dtype[Any]

    def read(self, parts: Sequence[Any], offset: int) -> np.ndarray[Any, Any]:
        """The chunks as one array; `InvalidInstance` where they are not what was declared."""
        arrays = []
        for column, (part, shape) in enumerate(zip(parts, self.shapes, strict=True)):
            name = f"chunk {(self.index, column)} of the Dask array (rows {offset} to {offset + shape[0] - 1})"
            try:
                array = as_array(part)
            except NotAnArray as problem:
                raise InvalidInstance(f"arms: {problem}; it is {name}") from None
            if array.shape != shape:
                raise InvalidInstance(f"arms: expected {name} to have shape {shape} as declared, got {array.shape}")
            if array.dtype.kind not in "fiub":
                raise InvalidInstance(
                    f"arms: expected {name} to hold numbers of type {self.dtype} as declared, got {array.dtype}"
                )
            if array.dtype.kind != "f" and len(parts) > 1:  # side by side they would be rounded to one type
                array = as_doubles(f"arms: {name}", array, InvalidInstance)
            arrays.append(array)
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _take(parts: Sequence[Any], chunk: _Chunk, offset: int, indices: IntArray) -> Array:
    return _picked(chunk.read(parts, offset)[indices], indices + offset)


def _scan_chunk(
    parts: Sequence[Any], chunk: _Chunk, task: Task, offset: int, aligned: Sequence[Any], step: int, watch: bool
) -> list[tuple[int, Any, int | None]]:
    """First row, result and fingerprint of every block of a chunk."""
    rows = chunk.read(parts, offset)
    with single_threaded():  # a worker has as many threads as it was given; BLAS's own would come on top
        return [
            (offset + start, *_scan_rows(task, offset, rows, aligned, start, min(start + step, len(rows)), watch))
            for start in range(0, len(rows), step)
        ]


def open_store(arms: Any) -> ArmStore | None:
    """A store for arms that are large or live elsewhere; None for all others, which are simply arrays.

    float32 values are taken as exact: every block becomes float64 when it is looked at. Other numbers (whole ones, half
    precision) become float64 once, in a copy.
    """
    if (
        str(type(arms).__module__).partition(".")[0] == "dask"
        and hasattr(arms, "to_delayed")
        and hasattr(arms, "chunks")
    ):
        return DaskArms(arms)
    if isinstance(arms, DaskArms | ListedArms):
        return arms
    if not isinstance(arms, np.ndarray) or arms.ndim != 2 or arms.dtype.kind not in "fiub" or arms.dtype.itemsize > 8:
        return None
    if arms.size < LARGE or len(arms) < _MANY:
        return None
    try:
        view = as_array(arms).view()
    except NotAnArray as problem:
        raise InvalidInstance(f"arms: {problem}") from None
    if arms.dtype.newbyteorder("=") not in (np.float32, np.float64):
        view = _converted(view)
    elif arms.size < SHARED and not unchanging(arms):
        view = view.copy()
    view.flags.writeable = False  # of the view: the user's own array stays as it is
    return ListedArms(view)


def _converted(arms: np.ndarray[Any, Any]) -> Array:
    """A copy in float64, made and checked block by block."""
    doubles = np.empty(arms.shape)
    step = block_rows(arms.shape[1])
    for start in range(0, len(arms), step):
        doubles[start : start + step] = as_doubles("arms", arms[start : start + step], InvalidInstance, first_row=start)
    return doubles


def dask_npy(path: str | Path, chunk_rows: int | None = None) -> Any:
    """A Dask array over a .npy file that every worker can see: each worker maps its own part of the file.

    ``chunk_rows`` is rounded to whole blocks, so that answers are the same, to the bit, as those for the file in one process.
    """
    da = _dask("dask.array")
    source = file_path(path).resolve()
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
