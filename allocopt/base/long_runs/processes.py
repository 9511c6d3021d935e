"""joblib's worker processes, as simulations and studies use them: results as they are finished, and a clean end."""

from __future__ import annotations

import contextlib
import functools
import importlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from allocopt.base.errors import AllocoptError

__all__ = ["WorkerDied", "finished_results", "may_start_processes"]


_IMPORTED_BY = os.getpid()


class WorkerDied(AllocoptError):
    """A worker process was killed, ran out of memory or crashed."""


def may_start_processes() -> bool:
    """Whether this process can have workers: not a daemon, and not a fork, whose copy of a pool has no threads behind it."""
    return os.getpid() == _IMPORTED_BY and not multiprocessing.current_process().daemon


def finished_results(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], workers: int
) -> Generator[Any, None, None]:
    """What ``function`` returns for each of the calls, in the order in which they are finished.

    ``calls`` may be long: they are taken as workers become free. Closing the generator ends the work under way.
    """
    joblib: Any = importlib.import_module("joblib")
    executor: Any = importlib.import_module("joblib.externals.loky.process_executor")
    # a batch is a call; max_nbytes=None: nothing in temporary files, which a killed process would leave behind
    parallel = joblib.Parallel(
        workers,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2 * n_jobs",
        max_nbytes=None,
    )
    if hasattr(os, "fork"):
        resource_tracker.ensure_running()  # or the first worker starts it, and then all of them are interrupted by Ctrl-C again
    died = WorkerDied(f"workers: one of the {workers} processes died")
    try:
        with _interrupts_blocked():
            results = parallel(joblib.delayed(_call_in_worker)(os.getpid(), function, arguments) for arguments in calls)
    except executor.BrokenProcessPool:  # a worker may die while the first calls are still being sent
        raise died from None
    try:
        for result in results:  # noqa: UP028 — "yield from" would close them itself, with the warning
            yield result
    except executor.BrokenProcessPool:
        raise died from None
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib's, on calls that are cut off: that is the intention
            results.close()


def _call_in_worker(parent: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    _end_with_parent(parent)
    return function(*arguments)


@functools.cache
def _end_with_parent(parent: int) -> None:
    """End this process soon after its parent was killed, instead of waiting for work that never comes."""
    if os.getpid() == parent:  # joblib has no processes here and works in this one
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    if hasattr(os, "fork"):  # elsewhere a process keeps its parent's number
        threading.Thread(target=watch, name="allocopt-follow", daemon=True).start()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that are started meanwhile ignore Ctrl-C: this one is interrupted, and ends them without their tracebacks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
