"""What a command may write: nothing that exists without ``--force``, and never its own input. Asked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import InvalidFile, InvalidOption

__all__ = ["Force", "check_output"]

Force = Annotated[bool, typer.Option("--force", help="Replace files that exist (never the input).")]


def check_output(
    option: str, path: Path | None, force: bool, *inputs: Path | str | None, endings: Sequence[str] = ()
) -> None:
    """Refuse a file that could not be written or must not be replaced; ``inputs`` are not replaced even with ``force``."""
    if path is None:
        return
    target = file_path(path, option)
    if endings and target.suffix.lower() not in endings:
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise InvalidOption(f"{option}: expected a name that ends in {listed}, got {str(path)!r}")
    try:
        if target.is_dir():
            raise InvalidFile(f"{option}: expected the name of a file, but {path} is a directory")
        if not target.parent.is_dir():
            raise InvalidFile(f"{option}: cannot write {path}: there is no directory {target.parent}")
        if not target.exists():
            return
        for source in inputs:
            if source is not None and "\0" not in str(source) and Path(source).is_file() and target.samefile(source):
                raise InvalidFile(f"{option}: {path} is the input itself, which is never replaced; choose another name")
    except OSError as error:  # a name that is too long, or a folder that may not be looked into
        raise InvalidFile(f"{option}: cannot write {path}: {error.strerror or error}") from None
    if not force:
        raise InvalidFile(f"{option}: {path} exists already; choose another name or add --force")
