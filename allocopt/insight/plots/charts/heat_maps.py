"""Heat maps over two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, vector
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import (
    GREY,
    WIDE,
    drawing,
    number,
    text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_WRITTEN: Final = 8
"""Cells carry their number while there are at most so many across."""


@spelled
def heat_map(
    x: Any,
    y: Any,
    values: Any,
    *,
    x_name: str,
    y_name: str,
    quantity: str,
    log: bool | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """A quantity over two parameters: one cell per pair, hatched where there is no value.

    ``values`` has one row per entry of ``y`` and one column per entry of ``x``; nan, None and infinities are missing
    values. ``log`` is for the colours; by default they are logarithmic if the values span more than a factor of 30.
    ``ax``: Axes to draw in, instead of a figure of its own; ``width``: inches, "column" or "page".

    Examples
    --------
    >>> figure = heat_map([1, 2], [0.1, 0.2], [[1, 2], [3, float("nan")]], x_name="a", y_name="ε", quantity="c")
    >>> figure.axes[0].get_xlabel(), figure.axes[1].get_ylabel()
    ('a', 'c')
    """
    columns, rows = vector("x", x, InvalidOption), vector("y", y, InvalidOption)
    if not len(columns) or not len(rows):
        raise InvalidOption("x, y: expected at least one value of each, got none")
    cells = _cells(values, len(rows), len(columns))
    across, down = np.argsort(columns, kind="stable"), np.argsort(rows, kind="stable")
    columns, rows, cells = columns[across], rows[down], cells[np.ix_(down, across)]
    known = cells[np.isfinite(cells)]
    if not len(known):
        raise InvalidOption("values: expected at least one finite value, got none")
    low, high = float(known.min()), float(known.max())
    if log and low <= 0:
        raise InvalidOption(f"log: expected positive values, got {low:g}")
    logarithmic = low > 0 and high > WIDE * low if log is None else bool(log)
    with drawing():
        from matplotlib.colors import LogNorm, Normalize
        from matplotlib.patches import Patch

        board = canvas(ax, width, 0.8)
        figure, axes = board.figure, board.axes
        margin = 0.0 if high > low else (abs(high) or 1.0) * 0.05  # one colour still needs a scale
        norm = (
            LogNorm(low, high if high > low else 1.05 * high) if logarithmic else Normalize(low - margin, high + margin)
        )
        mesh = axes.imshow(
            np.ma.masked_invalid(cells),
            origin="lower",
            aspect="auto",
            cmap="cividis",
            norm=norm,
            interpolation="nearest",
        )
        axes.spines[:].set_visible(False)
        missing = np.argwhere(~np.isfinite(cells))
        for r, c in missing.tolist():
            axes.add_patch(_hatched((c - 0.5, r - 0.5)))
        if len(missing):
            axes.legend(
                handles=[Patch(facecolor="white", edgecolor=GREY, hatch="/////", linewidth=0.5, label="no value")],
                loc="lower right", bbox_to_anchor=(1.0, 1.0),
            )  # fmt: skip
        if max(len(columns), len(rows)) <= _MOST_WRITTEN:
            _write_cells(axes, cells, norm)
        _ticks(axes.xaxis, columns, 7)
        _ticks(axes.yaxis, rows, 9)
        axes.set_xlabel(text(x_name, 60))
        axes.set_ylabel(text(y_name, 60))
        figure.colorbar(mesh, ax=axes, pad=0.02, aspect=22).set_label(text(quantity, 60))
        return board.done()


def _cells(values: Any, rows: int, columns: int) -> Array:
    try:
        cells = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidOption(
            f"values: expected {rows} rows (one per y) of {columns} numbers (one per x), got a {type(values).__name__}"
        ) from None
    if cells.shape != (rows, columns):
        hint = "; transpose it" if cells.shape == (columns, rows) else ""
        raise InvalidOption(f"values: expected shape ({rows}, {columns}), y by x, got {cells.shape}{hint}")
    return cells


def _hatched(corner: tuple[float, float]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 1, 1, facecolor="white", edgecolor=GREY, hatch="/////", linewidth=0.0)


def _write_cells(axes: Axes, cells: Array, norm: Any) -> None:
    """The numbers in the cells, dark on light and light on dark."""
    for (r, c), value in np.ndenumerate(cells):
        if np.isfinite(value):
            shade = float(norm(value))
            axes.text(c, r, number(float(value)), ha="center", va="center", fontsize=7,
                      color="white" if shade < 0.5 else "black")  # fmt: skip


def _ticks(axis: Any, values: Array, most: int) -> None:
    """The values of the parameter at some of the cells, evenly chosen."""
    step = -(-len(values) // most)
    chosen = np.arange(0, len(values), step)
    axis.set_ticks(chosen, [number(float(v)) for v in values[chosen]])
