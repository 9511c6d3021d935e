"""Writing files so that they appear complete or not at all, and replace nothing unless that was asked for."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from allocopt.base.errors import InvalidFile

__all__ = ["file_path", "whole_file"]


def file_path(path: object, name: str = "path") -> Path:
    """A path that the system can be asked about; `InvalidFile` for what is no name of anything, ``name`` says of what."""
    if not isinstance(path, str | PathLike):
        raise InvalidFile(f"{name}: expected the name of a file or folder, got a {type(path).__name__}")
    try:
        target = Path(path)
        if b"\0" not in os.fsencode(target):
            return target
        reason = "a null character"
    except UnicodeEncodeError:
        reason = "characters that no name can have here"
    except (TypeError, ValueError):
        raise InvalidFile(f"{name}: expected the name of a file or folder, got a {type(path).__name__}") from None
    raise InvalidFile(f"{name}: expected the name of a file or folder, but {str(target)!a} holds {reason}")


@contextlib.contextmanager
def whole_file(
    path: str | PathLike[str],
    *,
    overwrite: bool,
    what: str = "the file",
    remedy: str = "write overwrite=True (--force)",
) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name only when it is complete and on the disk.

    An existing file is refused unless ``overwrite``, and then replaced in one step; ``what`` names the content in errors,
    and ``remedy`` says how to have an existing file replaced.
    """
    target = file_path(path)
    taken = InvalidFile(f"{target}: exists already; choose another name, or {remedy}")
    temporary: Path | None = None
    try:
        if target.is_dir():
            raise InvalidFile(f"{target}: expected the name of a file, but it is a folder")
        if not overwrite and target.exists():
            raise taken
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp makes files that only their owner can read
        if overwrite or not _linked(temporary, target):
            temporary.replace(target)
            temporary = None
    except FileExistsError:
        raise taken from None
    except OSError as error:
        raise InvalidFile(f"{target}: cannot write {what}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _linked(temporary: Path, target: Path) -> bool:
    """Give the file its name unless another file has taken it meanwhile; False on file systems without links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True
