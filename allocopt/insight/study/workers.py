"""Who computes a study's blocks: this process, joblib's processes, or a Dask cluster; the answers are the same."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from allocopt.base.errors import AllocoptError, InvalidOption, MethodUnavailable, SolverFailed
from allocopt.base.long_runs.identity import versions
from allocopt.base.long_runs.processes import WorkerDied, finished_results
from allocopt.insight.study.design import Point
from allocopt.insight.study.function import UserFunction
from allocopt.insight.study.quantities import Answer, Asked, answers
from allocopt.insight.study.source import Source, reason_of
from allocopt.insight.study.spec import StudySpec
from allocopt.solving.roads.machine_code import compiled_kernel

__all__ = ["Blocks", "Done", "environment", "on_dask", "on_this_machine"]

_BLOCK_SECONDS = 1.0
"""What a block should take: so much is lost when a study is killed, and so often progress is seen."""
_MOST_IN_BLOCK = 2048
_FIRST_SECONDS = 2.0
"""So long the work is tried in this process, which also fills the caches that other processes load."""
_LEAST_POOL_SECONDS = 5.0
"""Processes are started for at least so much work: starting them takes seconds itself."""
_KEPT = "what is finished is kept, and the next start goes on from there"
_CONNECT_SECONDS = 15


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


class Done(NamedTuple):
    """The answers to a block."""

    first: int
    points: list[Point]
    answers: list[list[Answer]]
    seconds: float


def compute(block: Block) -> Done:
    """Compute a block, in whatever process this is."""
    started = time.perf_counter()
    here = environment()
    if here != block.environment:
        raise MethodUnavailable(
            f"workers: expected the same allocopt everywhere, {dict(block.environment)}, but a worker has {here}"
        )
    found = answers(block.asked, block.source.make, block.entries, block.points)
    return Done(block.first, block.points, found, time.perf_counter() - started)


def _compute_in_worker(block: Block) -> Done | str:
    """The same in a process of joblib's; errors travel as their message."""
    try:
        return compute(block)
    except AllocoptError as error:
        return str(error)


class Blocks:
    """The unfinished instances, cut into blocks of about a second each by the pace that was seen so far.

    How they are cut decides nothing about the answers, so the cut need not be the same in another run.
    """

    def __init__(self, spec: StudySpec, missing: list[range]) -> None:
        self._spec = spec
        self._source = spec.source.for_workers()
        self._asked = Asked(spec.quantities, spec.tol, spec.method, spec.width)
        self._environment = environment()
        self._size = 1
        self._left = range(0)
        self._to_do = sum(len(part) for part in missing)
        self._missing = iter(missing)

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
        if not len(self._left):
            self._left = next(self._missing)
        chosen, self._left = self._left[: self._size], self._left[self._size :]
        self._to_do -= len(chosen)
        points = [self._spec.point(i) for i in chosen]
        entries = [self._spec.source.entry(i, point) for i, point in zip(chosen, points, strict=True)]
        return Block(chosen.start, entries, points, self._source, self._asked, self._environment)


def on_this_machine(blocks: Blocks, workers: int) -> Generator[Done, None, None]:
    """In this process, and with so many of joblib's if it takes longer than that is worth."""
    started = time.perf_counter()
    for block in blocks:
        done = compute(block)
        yield done
        tried = time.perf_counter() - started > _FIRST_SECONDS
        if workers > 1 and tried and blocks.seconds_left(done) > _LEAST_POOL_SECONDS:
            yield from _on_processes(blocks, workers)


def _on_processes(blocks: Blocks, workers: int) -> Generator[Done, None, None]:
    _check_can_be_sent(blocks)
    results = finished_results(_compute_in_worker, ((block,) for block in blocks), workers)
    try:
        for done in results:
            if isinstance(done, str):
                raise SolverFailed(f"{done}; {_KEPT}")
            yield done
    except WorkerDied as died:
        raise SolverFailed(f"{died}: killed, out of memory, or crashed by the family's own code; {_KEPT}") from None
    finally:
        results.close()


def _check_can_be_sent(blocks: Blocks) -> None:
    """Refuse a function that cannot be sent to other processes, before it is tried."""
    # here: most studies finish in this process and never need joblib
    from joblib.externals.loky.backend.reduction import dumps  # type: ignore[import-untyped]

    source = blocks._source
    if isinstance(source, UserFunction) and source.function is not None:
        try:
            dumps(source.function)
        except Exception as error:
            raise InvalidOption(
                f"family: the function cannot be sent to other processes ({reason_of(error)}); use workers=1"
            ) from None


def on_dask(blocks: Blocks, address: str) -> Generator[Done, None, None]:
    """On a Dask cluster; twice as many blocks as it has threads are under way."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MethodUnavailable("dask: a cluster needs distributed: pip install 'allocopt[dask]'") from None
    _check_can_be_sent(blocks)
    try:
        if not address.startswith("inproc://"):  # a cluster within this process has no host and port
            distributed.comm.get_address_host_port(distributed.comm.normalize_address(address), strict=True)
    except ValueError as error:  # told here: a client with such an address takes half a minute to be given up
        raise InvalidOption(f"dask: expected an address such as tcp://host:8786, got {address!r} ({error})") from None
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise InvalidOption(f"dask: expected the address of a running scheduler, such as tcp://host:8786, got {address!r} "
                            f"({reason_of(error)})") from None  # fmt: skip
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except (TimeoutError, OSError):
            raise MethodUnavailable(f"dask: the scheduler at {address} has no workers") from None
        under_way = distributed.as_completed(loop=client.loop)
        try:
            while True:
                room = 2 * sum(client.nthreads().values()) - under_way.count()
                for block in itertools.islice(blocks, max(room, 0)):
                    under_way.add(client.submit(compute, block, pure=False))
                if under_way.is_empty():
                    return
                yield _result(next(under_way), address)
        finally:
            for future in list(under_way.futures):
                future.cancel()


def _result(future: Any, address: str) -> Done:
    try:
        done: Done = future.result()
    except AllocoptError:
        raise
    except Exception as error:
        raise SolverFailed(f"dask: the cluster at {address} failed: {reason_of(error)}; {_KEPT}") from None
    return done
