"""The machine's cores: how many this process may use, and how to keep BLAS on one of them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import threadpoolctl

__all__ = ["available_cores", "single_threaded"]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller(_: bool) -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds: once


class _Limited:
    """BLAS on one thread, for the whole process, while anybody wants it so.

    The number of threads belongs to the process. If every caller restored what it found, of two that overlap in different threads
    the second would restore the limit of the first, for good. So the first one in sets the limit and the last one out lifts it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limits: list[Any] = []
        self.seen: bool | None = None

    def enter(self) -> None:
        """One more wants it."""
        with self.lock:
            # scipy.linalg brings its own BLAS, so look again if it was not there yet the last time
            loaded = "scipy.linalg" in sys.modules
            if not self.inside or loaded is not self.seen:
                self.limits.append(_controller(loaded).limit(limits=1, user_api="blas"))
                self.seen = loaded
            self.inside += 1

    def leave(self) -> None:
        """One less."""
        with self.lock:
            self.inside -= 1
            while not self.inside and self.limits:
                self.limits.pop().restore_original_limits()


_limited = _Limited()


@contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which BLAS uses one thread: for small matrices, two threads that wait for each other are slower."""
    _limited.enter()
    try:
        yield
    finally:
        _limited.leave()
