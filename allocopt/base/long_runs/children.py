"""Processes of our own that compute what may go wrong: a call that crashes, loops or fills the memory ends its child, nothing else.

In the pools of the standard library, and in joblib's, one process that dies ends the work of all, and nobody knows which call it was.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from allocopt.base.long_runs.child import read_message, write_message

__all__ = ["Children", "Limits", "Trouble", "in_child"]

_STARTS = 20
"""Children that may die while they load, one after the other, before it is given up."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Limits(NamedTuple):
    """What a call may take."""

    seconds: float | None = None
    bytes: int | None = None
    """Of memory, beyond what the process has when it is called."""

    @classmethod
    def of(cls, seconds: float | None, gigabytes: float | None) -> Limits:
        """From what users give; more bytes than there can be are all there are."""
        return cls(seconds, None if gigabytes is None else int(min(gigabytes * 1e9, float(2**62))))


class Trouble(Exception):
    """A call ended its process, or had to be ended with it."""

    def __init__(self, words: str, *, late: bool = False, outside: bool = False) -> None:
        super().__init__(words)
        self.late = late
        """Whether it was ended because its time was over; else it died by itself, or by somebody's hand."""
        self.outside = outside
        """Whether it was a worker of a cluster that died, for whatever reason, and perhaps before it came to the call."""


class Children:
    """Child processes, started as they are needed, each of which answers one call at a time."""

    def __init__(self, warm_up: Callable[[], Any] | None = None) -> None:
        self._warm_up = warm_up
        """What a new child does first, without limits: what it loads and compiles is not the fault of its first call."""
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._closed = False

    def ask(self, function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Any:
        """What the function returns, or raises, in a child; `Trouble` if the child ends."""
        message = _dumped((function, arguments, limits.bytes))
        child = self._ready(function)
        answer = self._answer(child, message, limits.seconds)
        self._done_with(child)
        good, content = pickle.loads(answer)
        if good:
            return content
        raise content

    def _ready(self, function: Callable[..., Any]) -> _Child:
        """A child that has loaded what it needs. One that dies before is not the fault of the call: there is another."""
        for start in range(_STARTS):
            child = self._free()
            if not child.new:
                return child
            first = (_itself, (function,), None) if self._warm_up is None else (self._warm_up, (), None)
            try:
                self._answer(child, _dumped(first), None)
            except Trouble:
                if self._closed or start + 1 == _STARTS:
                    raise
                continue
            child.new = False
            return child
        raise AssertionError

    def _answer(self, child: _Child, message: bytes, seconds: float | None) -> bytes:
        """What a child replies; one that does not is ended."""
        try:
            return child.answer(message, seconds)
        except BaseException:
            with self._lock:
                self._busy.discard(child)
            child.end()
            raise

    def _done_with(self, child: _Child) -> None:
        with self._lock:
            self._busy.discard(child)
            kept = not self._closed
            if kept:
                self._idle.append(child)
        if not kept:
            child.end()

    def close(self) -> None:
        """End all of them, at once; calls under way end in `Trouble`."""
        with self._lock:
            self._closed = True
            busy, idle, self._idle = list(self._busy), self._idle, []
        for child in busy:
            child.kill()  # whoever waits for it does the rest
        for child in idle:
            child.end()

    def _free(self) -> _Child:
        with self._lock:
            if self._closed:
                raise Trouble("the workers were stopped")
            dead = [child for child in self._idle if not child.alive]
            self._idle = [child for child in self._idle if child.alive]
            child = self._idle.pop() if self._idle else None
        for gone in dead:
            gone.end()
        if child is None:
            child = _Child()
        with self._lock:
            self._busy.add(child)
            if self._closed:
                child.kill()
        return child


class _Child:
    """A process at the other end of two pipes."""

    def __init__(self) -> None:
        self._process = _spawner(os.getpid()).submit(_start).result()
        self.new = True

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def answer(self, message: bytes, seconds: float | None) -> bytes:
        """What it replies, in time."""
        late = threading.Event()

        def end_it() -> None:
            late.set()
            self.kill()

        timer = None if seconds is None else threading.Timer(min(seconds, threading.TIMEOUT_MAX), end_it)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            try:
                write_message(cast(Any, self._process.stdin), message)
                reply = read_message(cast(Any, self._process.stdout))
            except OSError:
                reply = None  # a broken pipe: it has died
        finally:
            if timer is not None:
                timer.cancel()
        if reply is not None:
            return reply
        if late.is_set():
            raise Trouble(f"took longer than {seconds:g} seconds", late=True)
        raise Trouble(f"its process ended with {_how(self._process.wait())}")

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                cast(Any, pipe).close()


def _how(code: int) -> str:
    """How a process ended."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


@functools.cache
def _spawner(process: int) -> concurrent.futures.ThreadPoolExecutor:
    """The thread that starts children: Linux ends them with the thread that started them, so it must be one that stays."""
    return concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=f"allocopt-children-{process}")


def _start() -> subprocess.Popen[bytes]:
    # where this process finds its modules: the child must find the same
    path = [os.getcwd() if place == "" else place for place in sys.path]
    script = (
        f"import sys; sys.path[:] = {path!r}; from allocopt.base.long_runs.child import serve; serve({os.getpid()})"
    )
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    # a session of its own: Ctrl-C at the terminal is for this process alone, which ends its children
    return subprocess.Popen(
        [sys.executable, "-c", script], stdin=-1, stdout=-1, env=environment, start_new_session=True
    )


def _itself(content: Any) -> Any:
    return content


def _dumped(content: Any) -> bytes:
    """A pickle; functions of a script or notebook travel with their code."""
    cloudpickle: Any = importlib.import_module("cloudpickle")
    return bytes(cloudpickle.dumps(content))


@functools.cache
def _of_this_process(process: int, warm_up: Callable[[], Any] | None) -> Children:
    return Children(warm_up)


def in_child(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    limits: Limits,
    warm_up: Callable[[], Any] | None = None,
) -> Any:
    """A single call in a child of this process (a worker of a cluster, say), which is kept for the next one."""
    return _of_this_process(os.getpid(), warm_up).ask(function, arguments, limits)
