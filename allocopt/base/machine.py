"""The machine: how many cores this process may use, how to keep BLAS on one of them, and how much memory is free."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import threadpoolctl

from allocopt.base.errors import AllocoptError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = [
    "available_cores",
    "check_memory",
    "duration_text",
    "free_memory",
    "single_threaded",
    "size_text",
    "threads_of_numpy",
]

_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/statm")
_SHARE = 0.9  # of the free memory that one array may take: the rest is needed while it is made


def free_memory() -> int | None:
    """Bytes that this process could still take, within its limit and that of its group; None where nobody says."""
    found = [1024 * int(line.split()[1]) for line in _lines(_MEMORY) if line.startswith(("MemAvailable:", "SwapFree:"))]
    free = [sum(found)] if found else []
    limit, used = (next(iter(_lines(_GROUP / name)), "") for name in ("memory.max", "memory.current"))
    if limit.strip().isdigit() and used.strip().isdigit():
        free.append(max(int(limit) - int(used), 0))
    most = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = next(iter(_lines(_OWN)), "").partition(" ")[0]
    if most > 0 and most != resource.RLIM_INFINITY and pages:
        free.append(max(most - int(pages) * resource.getpagesize(), 0))
    return min(free) if free else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


def check_memory(needed: float, what: str, error: type[AllocoptError]) -> None:
    """Refuse what would need more than the free memory, before anything is made; ``what`` begins the sentence."""
    free = free_memory()
    if free is not None and needed > _SHARE * free:
        raise error(f"{what} would take {size_text(needed)} of memory, but {size_text(free)} are free")


def size_text(n_bytes: float) -> str:
    """A number of bytes in a few characters.

    Examples
    --------
    >>> size_text(4e11), size_text(2048)
    ('400 GB', '2.05 kB')
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} PB"


def duration_text(seconds: float) -> str:
    """A time in the unit that suits it.

    Examples
    --------
    >>> duration_text(42), duration_text(7000), duration_text(1e9)
    ('42 seconds', '1.9 hours', '32 years')
    """
    for unit, length in (("years", 3.156e7), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} seconds"


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas(_: bool) -> list[threadpoolctl.LibController]:
    """Every BLAS that is loaded; looking for them takes milliseconds: once."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


class _Limited:
    """How many threads BLAS uses, for the whole process, while anybody wants fewer of them.

    The number of threads belongs to the process. If every caller restored what it found, of two that overlap in different threads
    the second would restore the limit of the first, for good. So what was there before the first one came in is remembered until
    the last one is out, and what holds in between follows from who is inside.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = {"one": 0, "numpy": 0}
        self.before: dict[str, int] = {}

    def change(self, wish: str, by: int) -> None:
        """One more or one less wishes for one thread ("one"), or for all threads of numpy's BLAS alone ("numpy"), which goes first."""
        with self.lock:
            self.inside[wish] += by
            # scipy.linalg brings its own BLAS, so look again if it was not there yet the last time
            libraries = _blas("scipy.linalg" in sys.modules)
            shared = not any(_is_numpys(blas.filepath) for blas in libraries)  # by numpy and scipy
            for blas in libraries:
                before = self.before.setdefault(blas.filepath, blas.num_threads)
                limited = bool(self.inside["one"])
                if self.inside["numpy"]:
                    limited = not (shared or _is_numpys(blas.filepath))
                wanted = 1 if limited else before
                if blas.num_threads != wanted:
                    _set_threads(blas, wanted)
            if not any(self.inside.values()):
                self.before.clear()


def _set_threads(blas: threadpoolctl.LibController, number: int) -> None:
    """Set it whoever set it last: from version 3.8 on threadpoolctl ignores all threads but that one, as long as it lives."""
    let_go = getattr(blas, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)
    blas.set_num_threads(number)
    if let_go is not None:
        let_go(force=True)


def _is_numpys(path: str) -> bool:
    return "numpy" in Path(path).parent.name


_limited = _Limited()


@contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which BLAS uses one thread: for small matrices, two threads that wait for each other are slower."""
    _limited.change("one", 1)
    try:
        yield
    finally:
        _limited.change("one", -1)


@contextmanager
def threads_of_numpy() -> Iterator[None]:
    """A context, also inside `single_threaded`, in which products use all threads, and factorisations one if scipy has its own BLAS.

    Threads of BLAS that have nothing to do spin for a while. Where a method goes to and fro between numpy's and scipy's, those of
    one would take the cores from those of the other: both on two threads are several times slower than both on one.
    """
    _limited.change("numpy", 1)
    try:
        yield
    finally:
        _limited.change("numpy", -1)
