"""Many calls in worker processes, as simulations, batches and studies use them: results as they are finished, and a clean end."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from allocopt.base.errors import AllocoptError
from allocopt.base.long_runs.children import Children, Limits, Trouble

__all__ = ["TRIES", "Outcome", "WorkerDied", "finished_results", "may_start_processes", "outcomes", "results_of"]

_IMPORTED_BY = os.getpid()
TRIES = 3
"""Processes that a call may end before it is given up: one may have been killed by somebody, three in a row hardly."""


class WorkerDied(AllocoptError):
    """Worker processes were killed, ran out of memory or crashed, again and again, or took longer than they may."""


class Outcome(NamedTuple):
    """What became of a call: its result, or why its process ended."""

    arguments: tuple[Any, ...]
    result: Any = None
    trouble: Trouble | None = None


def may_start_processes() -> bool:
    """Whether this process can have workers: not a daemon, not a fork, whose copy of a pool has no threads
    behind it, and not a Python inside another program."""
    return os.getpid() == _IMPORTED_BY and not multiprocessing.current_process().daemon and bool(sys.executable)


def _unlimited(_: tuple[Any, ...]) -> Limits:
    return Limits()


def _the_same_work(_: tuple[Any, ...]) -> str:
    return "the same work"


def finished_results(
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    workers: int,
    limits: Callable[[tuple[Any, ...]], Limits] = _unlimited,
    named: Callable[[tuple[Any, ...]], str] = _the_same_work,
) -> Generator[Any, None, None]:
    """What ``function`` returns for each of the calls, in the order in which they are finished.

    ``calls`` may be long: they are taken as workers become free. A call whose process dies is made again in another one.
    Closing the generator ends the work under way.
    """
    yield from results_of(lambda todo: outcomes(function, todo, workers, limits), calls, named)


def results_of(
    outcomes_of: Callable[[Iterable[tuple[Any, ...]]], Generator[Outcome | None, None, None]],
    calls: Iterable[tuple[Any, ...]],
    named: Callable[[tuple[Any, ...]], str] = _the_same_work,
) -> Generator[Any, None, None]:
    """The results of calls, each of which is made again when its process dies; `WorkerDied` if that happens again and again.

    A call that takes too long is not made again. ``named`` says of a call, in words, what it was.
    """
    todo = _Again(calls)
    found = outcomes_of(todo)
    try:
        for outcome in found:
            if outcome is None:
                continue
            arguments, result, trouble = outcome
            trouble = result if isinstance(result, Trouble) else trouble  # of a child of a cluster's worker
            if trouble is None:
                yield result
            elif trouble.late:
                raise WorkerDied(f"workers: {named(arguments)} {trouble}; what a folder holds is kept")
            elif todo.failed(arguments) >= TRIES:
                raise WorkerDied(
                    f"workers: {TRIES} processes died of {named(arguments)} ({trouble}): killed, out of memory, or crashed by your "
                    "own code; what a folder holds is kept"
                )
    finally:
        found.close()


class _Again:
    """Calls, those that failed before all others."""

    def __init__(self, calls: Iterable[tuple[Any, ...]]) -> None:
        self._calls = iter(calls)
        self._again: list[tuple[Any, ...]] = []
        self._tries: dict[int, tuple[int, tuple[Any, ...]]] = {}

    def __iter__(self) -> _Again:
        return self

    def __next__(self) -> tuple[Any, ...]:
        return self._again.pop() if self._again else next(self._calls)

    def failed(self, arguments: tuple[Any, ...]) -> int:
        """Make the call again; how often it has failed."""
        count = self._tries.get(id(arguments), (0, arguments))[0] + 1
        self._tries[id(arguments)] = count, arguments  # which keeps them, and so their number, alive
        self._again.append(arguments)
        return count


def outcomes(
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    workers: int,
    limits: Callable[[tuple[Any, ...]], Limits],
    every: float | None = None,
    warm_up: Callable[[], Any] | None = None,
) -> Generator[Outcome | None, None, None]:
    """What becomes of each call, within its limits; what the function raises is raised here.

    ``calls`` is asked again after every outcome, even when it had nothing left before: whoever reads the outcomes may add to it.
    None is yielded when nothing has come for ``every`` seconds. ``warm_up`` is what every process does first, without limits.
    """
    todo = iter(calls)
    children = Children(warm_up)
    under_way: dict[Future[Any], tuple[Any, ...]] = {}
    with ThreadPoolExecutor(workers, thread_name_prefix="allocopt-worker") as threads:
        try:
            while True:
                while len(under_way) < workers and (arguments := next(todo, None)) is not None:
                    under_way[threads.submit(children.ask, function, arguments, limits(arguments))] = arguments
                if not under_way:
                    return
                done, _ = wait(under_way, timeout=every, return_when=FIRST_COMPLETED)
                if not done:
                    yield None
                for future in done:
                    arguments = under_way.pop(future)
                    trouble = future.exception()
                    if isinstance(trouble, Trouble):
                        yield Outcome(arguments, trouble=trouble)
                    else:
                        yield Outcome(arguments, future.result())
        finally:
            children.close()
