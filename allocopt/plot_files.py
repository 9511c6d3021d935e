"""Figures on disk: complete or not there at all, and never over something else by accident."""

from __future__ import annotations

import os
import sys
import tempfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from allocopt.errors import InvalidFile, InvalidOption
from allocopt.plot_style import (
    drawing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS: Final = (".png", ".pdf", ".svg")
_DPI: Final = 300


def save(figure: Figure, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a figure as .png (300 dpi), .pdf or .svg, completely or not at all, and close it.

    A file that exists is kept, with an error, unless ``overwrite``. Returns the path.

    Examples
    --------
    >>> from allocopt.plots import regret_curves
    >>> figure = regret_curves({"UCB": ([10, 100], [[5, 9]])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure, Path(folder) / "regret.pdf").name
    'regret.pdf'
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in _FORMATS:
        raise InvalidFile(
            f"{target}: expected a name that ends in {', '.join(_FORMATS)}, got {target.suffix or 'none'!r}"
        )
    with drawing():
        from matplotlib.figure import Figure

        if not isinstance(figure, Figure):
            raise InvalidOption(f"figure: expected a matplotlib Figure, got a {type(figure).__name__}")
        if target.is_dir():
            raise InvalidFile(f"{target}: expected a file, but it is a folder")
        if target.exists() and not overwrite:
            raise InvalidFile(f"{target}: the file exists; choose another name or allow overwriting")
        if not target.parent.is_dir():
            raise InvalidFile(f"{target}: there is no folder {target.parent}")
        _write(figure, target, ending[1:], overwrite)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return target


def _write(figure: Figure, target: Path, kind: str, overwrite: bool) -> None:
    """Through a temporary file beside it, so that nobody ever sees half a picture."""
    dates: dict[str, Any] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as out:
            figure.savefig(out, format=kind, dpi=_DPI, metadata=dates)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # mkstemp makes files that only their owner can read
        if overwrite:
            Path(temporary).replace(target)
        else:
            _put(temporary, target)
    except OSError as error:
        raise InvalidFile(f"{target}: cannot write the figure: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _put(temporary: str, target: Path) -> None:
    """Give the file its name only if nobody has taken it meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise InvalidFile(f"{target}: the file exists; choose another name or allow overwriting") from None
    except OSError:  # a file system without links
        Path(temporary).replace(target)
