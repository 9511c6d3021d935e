"""Who computes a study's blocks: this process, processes of its own, or a Dask cluster; the answers are the same.

A row that ends its process, takes too long or fills the memory is one FAILED row. Where a block of several rows gets into such
trouble, its rows are computed one by one; a single row that dies is tried again, since somebody may have killed its process.
"""

from __future__ import annotations

import collections
import importlib
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import AllocoptError, InvalidOption, SolverFailed
from allocopt.base.long_runs.children import Limits, Trouble, in_child
from allocopt.base.long_runs.cluster import ClusterLost, cluster_outcomes, connected
from allocopt.base.long_runs.identity import check_same, versions
from allocopt.base.long_runs.own_code import check_unchanged
from allocopt.base.long_runs.processes import TRIES, Outcome, outcomes
from allocopt.insight.study.design import Point
from allocopt.insight.study.function import UserFunction
from allocopt.insight.study.quantities import Answer, Asked, answers
from allocopt.insight.study.source import NO_MEMORY, Source, reason_of
from allocopt.insight.study.spec import StudySpec
from allocopt.solving.roads.machine_code import compiled_kernel

__all__ = ["Blocks", "Done", "environment", "on_dask", "on_this_machine"]

_BLOCK_SECONDS = 1.0
"""What a block should take: so much is lost when a study is killed, and so often progress is seen."""
_PATIENCE_SECONDS = 5.0
"""What a block of several rows may take, if rows turn slow: then they are computed, and kept, one by one."""
_MOST_IN_BLOCK = 2048
_FIRST_SECONDS = 2.0
"""So long the work is tried in this process, which also fills the caches that other processes load."""
_LEAST_POOL_SECONDS = 5.0
"""Processes are started for at least so much work: starting them takes seconds itself."""
_CLUSTER_TRIES = 20
"""So often (of four workers each) a cluster may lose the workers that have a row before it is the row's fault: users' code runs in a
child of its worker, whose end is another matter, and Dask also counts workers that died before they came to the row."""
_SILENCE_SECONDS = 2.0
"""So often progress is told, also when no row is finished."""
_KEPT = "what is finished is kept, and the next start goes on from there"


def environment() -> dict[str, Any]:
    """What the last digits of the answers depend on besides the spec."""
    return {**versions(), "compiled": compiled_kernel() is not None}


@dataclass(frozen=True)
class Block:
    """Some consecutive instances, with all that is needed to compute them anywhere."""

    first: int
    entries: list[Any]
    points: list[Point]
    source: Source
    asked: Asked
    environment: Mapping[str, Any]
    limits: Limits

    def rows(self) -> list[Block]:
        """Each instance alone, with the time of a row."""
        return [
            replace(self, first=self.first + i, entries=[entry], points=[point])
            for i, (entry, point) in enumerate(zip(self.entries, self.points, strict=True))
        ]

    @property
    def allowed(self) -> Limits:
        """What it may take."""
        if len(self.points) == 1:
            return self.limits
        return self.limits._replace(seconds=min(self.limits.seconds or _PATIENCE_SECONDS, _PATIENCE_SECONDS))


class Done(NamedTuple):
    """The answers to a block."""

    first: int
    points: list[Point]
    answers: list[list[Answer]]
    seconds: float


def compute(block: Block) -> Done:
    """Compute a block, in whatever process this is."""
    started = time.perf_counter()
    check_same(block.environment, environment())
    found = answers(block.asked, block.source.make, block.entries, block.points)
    said = f"{NO_MEMORY}: a row may use {(block.limits.bytes or 0) / 1e9:g} GB (row_gigabytes)"
    found = [[a._replace(reason=said) if a.reason == NO_MEMORY else a for a in row] for row in found]
    check_unchanged()
    return Done(block.first, block.points, found, time.perf_counter() - started)


def _warm_up() -> None:
    """Load, and compile where that was never done, what most rows need."""
    arms, gaps = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]]), np.array([0.0, 1.0, 0.1])
    answers(Asked(("c",), 1e-8, "auto", None), lambda _: {"arms": arms, "gaps": gaps}, [None], [{}])
    answers(Asked(("c",), 1e-8, "auto", None), lambda _: (arms, arms[0]), [None], [{}])


class Blocks:
    """The unfinished instances, cut into blocks of about a second each by the pace that was seen so far.

    How they are cut decides nothing about the answers, so the cut need not be the same in another run.
    """

    def __init__(self, spec: StudySpec, missing: list[range]) -> None:
        self._spec = spec
        self._source = spec.source.for_workers()
        self._asked = Asked(spec.quantities, spec.tol, spec.method, spec.width)
        self._environment = environment()
        self._limits = Limits.of(spec.row_seconds, spec.row_gigabytes)
        self._size = 1
        self._left = range(0)
        self._to_do = sum(len(part) for part in missing)
        self._missing = iter(missing)
        self._again: collections.deque[Block] = collections.deque()
        self._ended: collections.Counter[tuple[int, bool]] = collections.Counter()

    @property
    def harmless(self) -> bool:
        """Whether nothing but our own code makes the instances."""
        return self._source.harmless

    def seconds_left(self, done: Done) -> float:
        """What the rest takes one process at the pace of this block."""
        return self._to_do * done.seconds / len(done.points)

    def learn(self, done: Done) -> None:
        """Adapt the size of the blocks to come, at most fourfold at a time."""
        count = len(done.points)
        wanted = int(count * _BLOCK_SECONDS / max(done.seconds, 1e-9))
        self._size = max(1, min(wanted, 4 * max(count, self._size // 4), _MOST_IN_BLOCK))

    def __iter__(self) -> Blocks:
        return self

    def __next__(self) -> Block:
        if self._again:
            return self._again.popleft()
        if not len(self._left):
            self._left = next(self._missing)
        chosen, self._left = self._left[: self._size], self._left[self._size :]
        self._to_do -= len(chosen)
        points = [self._spec.point(i) for i in chosen]
        entries = [self._spec.source.entry(i, point) for i, point in zip(chosen, points, strict=True)]
        return Block(chosen.start, entries, points, self._source, self._asked, self._environment, self._limits)

    def done(self, block: Block, trouble: Trouble) -> Done | None:
        """The FAILED row of a block that ended its process; None where it is to be computed again, or row by row."""
        if len(block.points) > 1:
            self._again.extend(block.rows())
            return None
        self._ended[block.first, trouble.outside] += 1
        tries = _CLUSTER_TRIES if trouble.outside else TRIES
        if not trouble.late and self._ended[block.first, trouble.outside] < tries:
            self._again.append(block)
            return None
        why = f"{trouble} (row_seconds)" if trouble.late else f"{trouble}, {tries} times"
        failed = [Answer(reason=why)] * len(block.asked.quantities)
        return Done(block.first, block.points, [failed], block.limits.seconds or 0.0 if trouble.late else 0.1)


def on_this_machine(blocks: Blocks, workers: int) -> Generator[Done | None, None, None]:
    """In processes of our own; work that is harmless and done in a few seconds, and all of it with 0 workers, in this one.

    None stands for "still at it".
    """
    started = time.perf_counter()
    if workers and not blocks.harmless:
        yield from _on_processes(blocks, workers)
    for block in blocks:
        done = compute(block)
        yield done
        tried = time.perf_counter() - started > _FIRST_SECONDS
        if workers > 1 and tried and blocks.seconds_left(done) > _LEAST_POOL_SECONDS:
            yield from _on_processes(blocks, workers)


def _on_processes(blocks: Blocks, workers: int) -> Generator[Done | None, None, None]:
    _check_can_be_sent(blocks)
    found = outcomes(compute, _Calls(blocks), workers, lambda call: call[0].allowed, _SILENCE_SECONDS, _warm_up)
    yield from _rows(blocks, found)


class _Calls:
    """Blocks as calls; unlike a generator it can be asked again after its end, when blocks have come back."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def __iter__(self) -> _Calls:
        return self

    def __next__(self) -> tuple[Block]:
        return (next(self._blocks),)


def _rows(blocks: Blocks, found: Generator[Outcome | None, None, None]) -> Generator[Done | None, None, None]:
    """The finished blocks; those in trouble go back, or are failed rows."""
    try:
        for outcome in found:
            if outcome is None:
                yield None
                continue
            (block,), done, trouble = outcome
            trouble = done if isinstance(done, Trouble) else trouble
            if trouble is not None:
                done = blocks.done(block, trouble)
            if done is not None:
                yield done
    except ClusterLost as lost:
        raise SolverFailed(f"{lost}; {_KEPT}") from None
    except AllocoptError as error:
        raise type(error)(f"{error}; {_KEPT}") from None
    finally:
        found.close()


def _check_can_be_sent(blocks: Blocks) -> None:
    """Refuse a function that cannot be sent to other processes, before it is tried."""
    source = blocks._source
    if isinstance(source, UserFunction) and source.function is not None:
        try:
            importlib.import_module("cloudpickle").dumps(source.function)
        except Exception as error:
            raise InvalidOption(
                f"family: the function cannot be sent to other processes ({reason_of(error)}); use workers=0, which computes "
                "everything in this one, where nothing protects you from a row that crashes or never ends"
            ) from None


def on_dask(blocks: Blocks, client: Any) -> Generator[Done | None, None, None]:
    """On a Dask cluster: a client, or the address of a scheduler."""
    _check_can_be_sent(blocks)
    with connected(client) as ready:
        yield from _rows(blocks, cluster_outcomes(ready, _compute_on_cluster, _Calls(blocks), _SILENCE_SECONDS))


def _compute_on_cluster(block: Block) -> Done | Trouble:
    """In a worker of a cluster; users' code in a child of it, which can be ended."""
    if block.source.harmless:
        return compute(block)
    try:
        done: Done = in_child(compute, (block,), block.allowed, _warm_up)
        return done
    except Trouble as trouble:
        return trouble
