"""allocopt's own sources, as a long run depends on them: a digest, and whether they changed under a process that has loaded them.

In a checkout the version says little: it stays the same from one edit to the next. Parts of a run that were computed by two states
of the code must not come into one table, whether a worker loads newer code than the process that started it or a run is resumed later.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from allocopt.base.errors import MethodUnavailable
from allocopt.base.version import LOADED_AT

__all__ = ["check_unchanged", "code_digest"]

_PACKAGE = Path(__file__).parents[2]
_DECIDE_NOTHING = ("cli", "plots", "__pycache__")
"""Folders whose code no result depends on."""


@functools.cache
def code_digest(package: Path = _PACKAGE) -> str | None:
    """Of all sources that results may depend on; None where there are none to be read (in an archive, say)."""
    check_unchanged(package=package)
    sha = hashlib.sha256()
    found = False
    for path in map(Path, _sources(package)):
        content = path.read_bytes()
        sha.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
        found = True
    return sha.hexdigest() if found else None


def check_unchanged(since: float = LOADED_AT, package: Path = _PACKAGE) -> None:
    """Refuse results of a process under which the code has changed: it may have loaded some of it before and some after."""
    now = time.time()
    for path in _sources(package):
        if since < os.stat(path).st_mtime <= now:  # later than now: another clock, which says nothing
            name = Path(path).relative_to(package).as_posix()
            raise MethodUnavailable(
                f"allocopt: its own code ({name}) was changed after process {os.getpid()} had begun "
                "to load it, so that two experiments could be mixed; to go on with a folder, undo the change, and start again"
            )


@functools.cache
def _sources(package: Path) -> list[str]:
    """The files of Python code, in an order of their own; once a process, since they are looked at after every part of a run."""
    return list(_found(package))


def _found(package: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(package, followlinks=True):  # the solvers are a link in a checkout
        folders[:] = sorted(name for name in folders if name not in _DECIDE_NOTHING)
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))
