"""DaskArms: arms in a Dask array, looked at where their chunks are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.conversion import NotAnArray, as_array, as_doubles
from allocopt.base.errors import InvalidFile, InvalidInstance, MethodUnavailable, SolverFailed
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.model.arms import blocks
from allocopt.model.arms.fingerprints import Fingerprints
from allocopt.model.arms.store import Task

__all__ = ["DaskArms", "dask_npy"]


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
        self._prints = Fingerprints()
        self._offsets = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.int64)
        self._step = blocks.block_rows(array.shape[1])

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
        watch = blocks.looks_at_all(aligned)
        calls = [
            (parts, chunk, task, start, [x[start:stop] for x in aligned], self._step, watch)
            for parts, chunk, (start, stop) in zip(self._parts, self._chunks, bounds, strict=True)
        ]
        return self._checked(chain.from_iterable(self._run(_scan_chunk, calls)))

    def _checked(self, found: Iterator[tuple[int, Any, int | None]]) -> Iterator[Any]:
        for start, result, print_of_block in found:
            self._prints.check(
                start, print_of_block
            )  # chunks that come out differently each time they are made are found here
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
    return blocks.rows_as_doubles(chunk.read(parts, offset)[indices], indices + offset)


def _scan_chunk(
    parts: Sequence[Any], chunk: _Chunk, task: Task, offset: int, aligned: Sequence[Any], step: int, watch: bool
) -> list[tuple[int, Any, int | None]]:
    """First row, result and fingerprint of every block of a chunk."""
    rows = chunk.read(parts, offset)
    with single_threaded():  # a worker has as many threads as it was given; BLAS's own would come on top
        return [
            (offset + start, *blocks.scan_rows(task, offset, rows, aligned, start, min(start + step, len(rows)), watch))
            for start in range(0, len(rows), step)
        ]


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
    step = blocks.block_rows(d)
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
