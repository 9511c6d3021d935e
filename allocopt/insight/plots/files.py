"""Saving figures: a file appears complete or not at all, and replaces another one only if that was asked for."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from allocopt.base.atomic_files import file_path, whole_file
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.base.spelling import spelled
from allocopt.insight.plots.style import (
    drawing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS: Final = (".png", ".pdf", ".svg")
_DPI: Final = 300


@spelled
def save(figure: Figure, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a figure as .png (300 dpi), .pdf or .svg, completely or not at all, and close it.

    A file that exists is kept, with an error, unless ``overwrite``. Returns the path.

    Examples
    --------
    >>> from allocopt.insight.plots import regret_curves
    >>> import tempfile
    >>> figure = regret_curves({"UCB": ([10, 100], [[5, 9]])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure, Path(folder) / "regret.pdf").name
    'regret.pdf'
    """
    target = file_path(path)
    ending = target.suffix.lower()
    if ending not in _FORMATS:
        raise InvalidFile(
            f"{target}: expected a name that ends in {', '.join(_FORMATS)}, got {target.suffix or 'none'!r}"
        )
    with drawing():
        from matplotlib.figure import Figure

        if not isinstance(figure, Figure):
            raise InvalidOption(f"figure: expected a matplotlib Figure, got a {type(figure).__name__}")
        if not target.parent.is_dir():
            raise InvalidFile(f"{target}: there is no folder {target.parent}")
        _write(figure, target, ending[1:], overwrite)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return target


def _write(figure: Figure, target: Path, kind: str, overwrite: bool) -> None:
    dates: dict[str, Any] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    with whole_file(target, overwrite=overwrite, what="the figure") as out:
        figure.savefig(out, format=kind, dpi=_DPI, metadata=dates)
