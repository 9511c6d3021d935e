"""The chunks of a Dask array as this package reads them: checked, together where they are small, and made within one task.

A task of ours holds the part of the array's graph that its chunks are made by, and runs it where it is (`Subgraph`). So nothing of the
array has a key that the scheduler knows: it may be used in any number of calls, and thousands of chunks are some hundred tasks.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array, as_doubles
from allocopt.base.errors import InvalidInstance, SlowWarning, warn_caller

__all__ = ["Chunk", "Group", "data_here", "futures_in", "groups", "read_group"]

_MANY = 512
"""Chunks from which several of them are looked at together: each task costs the scheduler about a millisecond."""
_VERY_MANY = 10_000
"""Chunks from which this is said before it starts: making one takes Dask about a millisecond, at every look."""
_GROUP_BLOCKS = 32
"""Blocks that such a group has at least."""
_LARGE_BYTES = 16_000_000
"""Of an array in the graph itself, which would be sent to a worker with each of its chunks."""
_MOST_TWICE = 1.5
"""Times as many nodes as the graph has may be in the subgraphs: beyond, chunks share work that must not be done for each of them."""


@dataclass(frozen=True)
class Chunk:
    """What a Dask array says of one of its rows of chunks; nobody but us compares that with what the chunks are."""

    index: int
    offset: int
    shapes: tuple[tuple[int, int], ...]
    """Of the chunks side by side."""
    dtype: np.dtype[Any]

    def name(self, column: int = 0) -> str:
        """The chunk in words."""
        rows = self.shapes[0][0]
        return f"chunk {(self.index, column)} of the Dask array (rows {self.offset} to {self.offset + rows - 1})"

    def read(self, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
        """The chunks as one array; `InvalidInstance` where they are not what was declared."""
        arrays = []
        for column, (part, shape) in enumerate(zip(parts, self.shapes, strict=True)):
            name = self.name(column)
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


class Chunks(Sequence[Chunk]):
    """Chunks one after the other; neither a tuple nor a dataclass: Dask would look into thousands of them for every task."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = tuple(chunks)

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, place: Any) -> Any:
        return self._chunks[place]


class Subgraph:
    """The part of a graph that some keys need; no dataclass, since Dask would look into it: it travels as one thing."""

    def __init__(self, graph: Mapping[Any, Any], keys: list[list[Any]]) -> None:
        self.graph = graph
        self.keys = keys

    def made(self) -> Any:
        """The chunks, made here and now."""
        return importlib.import_module("dask").get(dict(self.graph), self.keys)


@dataclass(frozen=True, eq=False)
class Group:
    """Chunks one after the other that are looked at together."""

    chunks: Chunks
    parts: Any
    """A `Subgraph`, or the Delayed chunks, which Dask replaces by what they are."""

    @property
    def offset(self) -> int:
        """The first row."""
        return int(self.chunks[0].offset)

    @property
    def stop(self) -> int:
        """The row after the last."""
        return int(self.chunks[-1].offset + self.chunks[-1].shapes[0][0])

    def holder(self, row: int) -> Chunk:
        """The chunk of a row."""
        return next(chunk for chunk in reversed(self.chunks) if chunk.offset <= row)


def read_group(parts: Any, chunks: Sequence[Chunk]) -> np.ndarray[Any, Any]:
    """The rows of a group as one array."""
    made = parts.made() if isinstance(parts, Subgraph) else parts
    arrays = [chunk.read(row) for chunk, row in zip(chunks, made, strict=True)]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _nodes(array: Any) -> dict[Any, Any]:
    return dict(array.__dask_graph__())


def futures_in(array: Any) -> Any:
    """The client that holds a persisted array; None for others."""
    for node in _nodes(array).values():
        if str(type(node).__module__).startswith("distributed") and hasattr(node, "client"):
            return node.client
    return None


def data_here(array: Any) -> bool:
    """Whether the graph holds the numbers themselves, as they are in this process: `da.from_array` of an array, mapped or not."""
    arrays = [node for node in _nodes(array).values() if isinstance(getattr(node, "value", node), np.ndarray)]
    held = sum(getattr(node, "value", node).nbytes for node in arrays)
    return held > _LARGE_BYTES or (bool(arrays) and len(arrays) == len(_nodes(array)))


def groups(array: Any, step: int) -> list[Group]:
    """All rows of the array; ``step`` is the number of rows of a block."""
    offsets = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.int64).tolist()
    chunks = [
        Chunk(c, offsets[c], tuple((n, m) for m in array.chunks[1]), array.dtype) for c, n in enumerate(array.chunks[0])
    ]
    if len(chunks) > _VERY_MANY:
        warn_caller(
            f"arms: a Dask array of {len(chunks)} rows of chunks: they are looked at together, but Dask needs about a millisecond to "
            f"make each, at each of about ten looks at all arms; arms.rechunk(({step * _GROUP_BLOCKS}, -1)).persist() makes them once",
            SlowWarning,
        )
    together = list(_together(chunks, step * _GROUP_BLOCKS if len(chunks) > _MANY else 1))
    keys = array.__dask_keys__()
    shared = futures_in(array) is not None
    subgraphs = (
        [] if shared else list(_subgraphs(_nodes(array), [[keys[c.index] for c in group] for group in together]))
    )
    if subgraphs:
        return [Group(group, subgraph) for group, subgraph in zip(together, subgraphs, strict=True)]
    if len(chunks) > _MANY:
        raise InvalidInstance(
            f"arms: expected a Dask array of at most {_MANY} rows of chunks where they are persisted, or share what they are made "
            f"of, got {len(chunks)}, which take minutes a pass; call arms.rechunk(({step * _GROUP_BLOCKS}, -1)) and persist() first"
        )
    parts = array.to_delayed()
    return [Group(group, [list(parts[c.index]) for c in group]) for group in together]


def _together(chunks: Sequence[Chunk], rows: int) -> Iterator[Chunks]:
    """Chunks one after the other, so many that they have at least so many rows."""
    begun: list[Chunk] = []
    count = 0
    for chunk in chunks:
        begun.append(chunk)
        count += chunk.shapes[0][0]
        if count >= rows:
            yield Chunks(begun)
            begun, count = [], 0
    if begun:
        yield Chunks(begun)


def _subgraphs(nodes: Mapping[Any, Any], wanted: list[list[Any]]) -> list[Subgraph]:
    """What each of some lists of keys needs; nothing where they share too much of it."""
    dependencies = importlib.import_module("dask.core").get_dependencies
    found, total = [], 0
    for keys in wanted:
        mine: dict[Any, Any] = {}
        left = [key for row in keys for key in row]
        while left:
            key = left.pop()
            if key not in mine:
                mine[key] = nodes[key]
                left.extend(dependencies(nodes, key))
        total += len(mine)
        if total > _MOST_TWICE * len(nodes) + len(wanted):
            return []
        found.append(Subgraph(mine, keys))
    return found
