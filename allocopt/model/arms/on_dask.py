"""DaskArms: arms in a Dask array, looked at where their chunks are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import InvalidFile, InvalidInstance, MethodUnavailable
from allocopt.base.long_runs.cluster import check_client, results_in_order
from allocopt.base.machine import single_threaded
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.model.arms import blocks
from allocopt.model.arms.dask_chunks import Chunk, data_here, futures_in, groups, read_group
from allocopt.model.arms.fingerprints import Fingerprints, fingerprint
from allocopt.model.arms.store import Task

__all__ = ["DaskArms", "dask_npy", "on_client"]


_asked: ContextVar[Any] = ContextVar("client", default=None)
_KNOWN_ROWS = 100_000
"""Rows that are remembered, so that those in use need not be fetched again and again, and are here when the cluster is not."""
_MOST_GATHERED = 50_000_000
"""Entries that are brought into this process for a proof file."""


@contextmanager
def on_client(client: Any) -> Iterator[None]:
    """A context in which Dask arms are looked at by the workers of this client; None leaves it as it is."""
    if client is None:
        yield
        return
    check_client(client)
    token = _asked.set(client)
    try:
        yield
    finally:
        _asked.reset(token)


class DaskArms:
    """Arms in a Dask array; each worker looks at its own chunks, and only what the tasks return travels.

    A lost worker costs the chunks it held: the scheduler makes them again from the array's graph and repeats their tasks.
    The workers are those of ``client``, of the client that persisted the array, or of Dask's default one. Without any, and where the
    numbers are in this process anyway (`da.from_array`), the tasks run on Dask's threads here. ``persist()`` the array to keep it in
    the workers' memory; otherwise every pass reads it anew, which is right for files that are memory-mapped.
    """

    def __init__(self, array: Any, client: Any = None) -> None:
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
        if client is not None:
            check_client(client)
        self._array = array
        self._step = blocks.block_rows(*array.shape)
        self._groups = groups(array, self._step)
        self._offsets = np.array([group.offset for group in self._groups] + [array.shape[0]])
        self._client = client or _asked.get() or futures_in(array)
        self._here = data_here(array)
        self._prints = Fingerprints()
        self._known: dict[int, Array] = {}
        self._seen = False

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        return int(self._array.shape[0]), int(self._array.shape[1])

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64, fetched from the chunks that hold them."""
        wanted = np.asarray(indices, dtype=np.int64)
        missing = np.array(sorted({i for i in wanted.tolist() if i not in self._known}), dtype=np.int64)
        if len(missing) + len(self._known) > _KNOWN_ROWS:
            self._known.clear()
            missing = np.unique(wanted)
        group = np.searchsorted(self._offsets, missing, side="right") - 1
        which = np.unique(group).tolist()
        places = [missing[group == g] for g in which]
        calls = [
            (self._groups[g].parts, self._groups[g].chunks, int(self._offsets[g]), at - self._offsets[g], self._step)
            for g, at in zip(which, places, strict=True)
        ]
        for g, at, (rows, prints) in zip(which, places, self._run(_take, calls), strict=True):
            for start, found_print in prints:
                if not self._prints.same(start, found_print):
                    raise _differs(self._groups[g].holder(start).name())
            self._known.update(zip(at.tolist(), rows, strict=True))
        found = np.empty((len(wanted), self.shape[1]))
        for place, i in enumerate(wanted.tolist()):
            found[place] = self._known[i]
        return found

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """Every worker scans its chunks block by block."""
        self._check_first_chunk()
        watch = blocks.looks_at_all(aligned)
        calls = [
            (g.parts, g.chunks, task, g.offset, [x[g.offset : g.stop] for x in aligned], self._step, watch)
            for g in self._groups
        ]
        return self._checked(self._run(_scan_group, calls))

    def _checked(self, found: Iterator[list[tuple[int, Any, int | None]]]) -> Iterator[Any]:
        for group, results in zip(self._groups, found, strict=True):
            for start, result, print_of_block in results:
                if not self._prints.same(start, print_of_block):
                    raise _differs(group.holder(start).name())
                yield result

    def _check_first_chunk(self) -> None:
        """Refuse, before all arms are looked at, an array whose first chunk comes out differently when it is made twice."""
        if self._seen:
            return
        first = next(group for group in self._groups if group.stop > group.offset)
        whole = max(first.stop - first.offset, 1)
        call: list[tuple[Any, ...]] = [(first.parts, first.chunks, _print_of, first.offset, [], whole, False)]
        # one after the other: together they would be made once
        prints = [next(iter(self._run(_scan_group, call))) for _ in range(2)]
        if prints[0] != prints[1]:
            raise _differs(first.chunks[0].name())
        self._seen = True

    def _run(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
        if not calls:
            return
        dask = _dask()
        call = dask.delayed(function, pure=False)
        tasks = [call(*arguments) for arguments in calls]
        client = None if self._here else self._client_in_use()
        if client is None:
            with single_threaded():  # around all threads: limits that overlap would not find back to where they began
                found = dask.compute(*tasks, scheduler="threads")
            yield from found
            return
        # Gaps and masks travel with the tasks: what was scattered instead would be lost with the worker that holds it.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            yield from results_in_order(client, tasks)

    def _client_in_use(self) -> Any:
        asked = _asked.get()
        if asked is not None:
            self._client = asked
        return _client() if self._client is None else self._client

    def check_unchanged(self) -> None:
        """Nothing is looked at: that would make every chunk once more, and every pass over all arms compares them anyway."""

    def array(self) -> Array:
        """Not possible: the arms may not fit into memory."""
        raise MethodUnavailable(
            "arms: expected an array in memory, got a Dask array, which regret, horizon, g_optimal, optimism and remaining take; "
            "best_arm and others need array.compute(), where it fits into memory, as do methods that do not look block by block"
        )

    def gathered(self, what_for: str) -> Array:
        """All arms in this process, where they are few enough."""
        k, d = self.shape
        if k * d > _MOST_GATHERED:
            raise MethodUnavailable(
                f"arms: {k} × {d} numbers on a cluster are too many for {what_for}, which lists all of them (at most "
                f"{_MOST_GATHERED}); verify() proves the interval where they are"
            )
        return np.concatenate(list(self.scan(_copied)))


def _differs(name: str) -> InvalidInstance:
    return InvalidInstance(
        f"arms: expected a Dask array that is the same each time it is computed, but {name} is not: give random numbers a seed, or "
        "persist() or save it"
    )


def _copied(start: int, block: Array) -> Array:
    return block.copy()


def _print_of(start: int, block: Array) -> int:
    return fingerprint(block)


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


def _take(
    parts: Any, chunks: Sequence[Chunk], offset: int, indices: IntArray, step: int
) -> tuple[Array, list[tuple[int, int]]]:
    """Some rows, and first row and fingerprint of the blocks they are from, unless these are mapped from a file."""
    whole = read_group(parts, chunks)
    mapped = isinstance(whole, np.memmap)  # of which only the pages of these rows are read, and which nobody makes anew
    starts = [] if mapped else (np.unique(indices // step) * step).tolist()
    prints = [(offset + start, fingerprint(whole[start : start + step])) for start in starts]
    return blocks.rows_as_doubles(whole[indices], indices + offset), prints


def _scan_group(
    parts: Any, chunks: Sequence[Chunk], task: Task, offset: int, aligned: Sequence[Any], step: int, watch: bool
) -> list[tuple[int, Any, int | None]]:
    """First row, result and fingerprint of every block of a group of chunks."""
    rows = read_group(parts, chunks)
    with single_threaded():  # a worker has as many threads as it was given; BLAS's own would come on top
        return [
            (offset + start, *blocks.scan_rows(task, offset, rows, aligned, start, min(start + step, len(rows)), watch))
            for start in range(0, len(rows), step)
        ]


@spelled
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
    step = blocks.block_rows(k, d)
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
