"""One process at a time in a folder, and the others are told which one it is."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from allocopt.base.errors import InvalidFile

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["LOCK", "locked"]

LOCK = ".allocopt-lock"
_TEXT_AT = (
    1  # the lock is on the first byte, which on Windows nobody else can read then; who has it is written after it
)
_PATIENCE_SECONDS = 2.0  # for the winner of a race to write who it is


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; `InvalidFile` with who holds it if another process, or another call of this one, does.

    The system lets go of the lock when the process ends, however it does. It is a lock on an open file: that other code of
    this process opens and closes files in the folder does not end it, as it would that of a database.
    """
    with (folder / LOCK).open("a+b") as handle:
        if not _taken(handle):
            raise InvalidFile(
                f"{folder}: another process is working in this folder: {_holder(folder / LOCK)}; wait for it or stop it"
            )
        started = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        mine = {"process": os.getpid(), "machine": platform.node(), "user": _user(), "since": started}
        handle.seek(0)
        handle.truncate()
        handle.write(b" " * _TEXT_AT + json.dumps(mine).encode())
        handle.flush()
        try:
            yield
        finally:
            handle.seek(0)
            handle.truncate()


def _taken(handle: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            handle.seek(0)
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "?"


def _holder(lock: Path) -> str:
    """Who wrote into the lock; the one that has just taken it may need a moment."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            with lock.open("rb") as handle:
                handle.seek(_TEXT_AT)
                said = json.loads(handle.read())
            return f"process {said['process']} on {said['machine']} ({said['user']}), since {said['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            if time.monotonic() > deadline:
                return "which one is not said in it"
            time.sleep(0.01)
