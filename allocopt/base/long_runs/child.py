"""The child's side of `allocopt.base.long_runs.children`: a process that answers one call after the other on a pipe.

Whatever users' code does here (exit, crash, loop for ever, fill the memory, print, read from standard input) is the end of this
process at worst.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

if sys.platform == "linux":
    import resource

__all__ = ["read_message", "serve", "write_message"]

_LENGTH_BYTES = 8
_IDLE_SECONDS = 60.0
"""So long a child waits for its next call; whoever needs one later starts another."""
_PR_SET_PDEATHSIG = 1


def write_message(pipe: BinaryIO, content: bytes) -> None:
    """Some bytes, after their number."""
    pipe.write(len(content).to_bytes(_LENGTH_BYTES, "little") + content)
    pipe.flush()


def read_message(pipe: BinaryIO) -> bytes | None:
    """The next message; None where the other side is gone, in the middle of one or not."""
    length = pipe.read(_LENGTH_BYTES)
    if len(length) < _LENGTH_BYTES:
        return None
    wanted = int.from_bytes(length, "little")
    content = pipe.read(wanted)
    return content if len(content) == wanted else None


def serve(parent: int) -> None:
    """Answer calls until the parent closes the pipe, or ends."""
    _end_with(parent)
    questions, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what users' code prints must not come between the answers
    waiting = _Waiting(parent)
    while True:
        waiting.since = time.monotonic()
        message = read_message(questions)
        waiting.since = None
        if message is None:
            return
        write_message(replies, _reply(message))


class _Waiting:
    """Ends this process when it is of no use any more: its parent is gone, or nothing was asked for a while."""

    def __init__(self, parent: int) -> None:
        self.parent = parent
        self.since: float | None = None
        """Since when nothing is to be done; None while something is."""
        threading.Thread(target=self._watch, name="allocopt-follow", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(1.0)
            since = self.since
            orphan = (
                hasattr(os, "fork") and os.getppid() != self.parent
            )  # elsewhere a process keeps its parent's number
            if orphan or (since is not None and time.monotonic() - since > _IDLE_SECONDS):
                os._exit(1)


def _end_with(parent: int) -> None:
    """Be killed with the parent, even in a loop that lets no other thread run; where the system cannot, `_Waiting` does it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _reply(message: bytes) -> bytes:
    """The result as a pickle, or the exception; as text where that cannot be sent."""
    cloudpickle: Any = importlib.import_module("cloudpickle")
    try:
        function, arguments, memory = pickle.loads(message)
        _limit_memory(memory)
        answer = (True, function(*arguments))
    except BaseException as error:  # SystemExit, too: it is the user's code
        answer = (False, error)
    try:
        return bytes(cloudpickle.dumps(answer))
    except BaseException as error:
        return pickle.dumps(
            (False, RuntimeError(f"what a worker found cannot be sent: {type(error).__name__}: {error}"))
        )


def _limit_memory(more: int | None) -> None:
    """Let this process have so many bytes more than it has; a request beyond is a MemoryError, not the machine's end."""
    if sys.platform != "linux":
        return
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = hard if more is None else min(used + more, sys.maxsize)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
