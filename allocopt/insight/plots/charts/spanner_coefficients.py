"""What a barycentric spanner promises: every arm is a combination of its arms with coefficients of at most C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.actions.spanner import Spanner
from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import BLUE, GREY, NOTE, ORANGE, drawing, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["spanner_coefficients"]

_MOST_DOTS: Final = 150  # of one column; more would be a blot
_FEW: Final = 40  # dots of one column, which may be larger
_GOLDEN: Final = 0.6180339887498949


@spelled
def spanner_coefficients(spanner: Spanner, *, ax: Any = None, width: Width = None) -> Figure:
    """The coefficients of all arms in the arms of a spanner: one column for each of these, all between −C and C.

    Where there are many arms, every column shows some of its coefficients, its smallest and largest among them.

    Parameters
    ----------
    spanner : Spanner
        From `barycentric_spanner`.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> figure = spanner_coefficients(ao.barycentric_spanner([[1, 0], [0, 1], [2, 0], [1, -1]]))
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['2', '1']
    """
    if not isinstance(spanner, Spanner):
        raise InvalidOption(f"spanner: expected a Spanner, got a {type(spanner).__name__}")
    arms, r = len(spanner.coefficients), spanner.dim
    with drawing():
        board = canvas(ax, width, 0.7)
        axes = board.axes
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        for side in (-spanner.C, spanner.C):
            label = f"±C = ±{number(spanner.C)}" if side > 0 else None
            axes.axhline(side, color=ORANGE, linestyle="--", linewidth=1.0, label=label)
        some = False
        for j in range(r):
            shown = _some(spanner.coefficients[:, j])
            some |= len(shown) < arms
            _column(axes, j, shown)
        letters = len(str(int(spanner.indices.max())))
        room = 72.0 * board.axes.get_window_extent().width / board.figure.dpi / (4.4 * letters + 8.0)
        named = np.arange(0, r, -(-r // max(1, int(0.8 * room))))
        axes.set_xticks(named, [str(i) for i in spanner.indices[named].tolist()])
        axes.set_xlim(-0.6, r - 0.4)
        axes.set_ylim(-1.12 * spanner.C, 1.12 * spanner.C)
        axes.set_xlabel("arm of the spanner")
        axes.set_ylabel("coefficient")
        part = ", some of them shown" if some else ""
        axes.set_title(f"{arms:,} arms in {r} of them{part}", **NOTE)
        axes.grid(axis="y")
        board.legend()
        return board.done()


def _some(coefficients: Array) -> Array:
    """All coefficients in order, or so many of them, evenly by rank, that dots can be told apart."""
    ordered = np.sort(coefficients)
    if len(ordered) <= _MOST_DOTS:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, _MOST_DOTS).round().astype(np.int64)]


def _column(axes: Axes, place: int, coefficients: Array) -> None:
    """Dots beside each other, so that equal ones are seen to be several; the same in every run."""
    aside = 0.5 * (((np.arange(len(coefficients)) + 1) * _GOLDEN) % 1.0 - 0.5) if len(coefficients) > 1 else np.zeros(1)
    axes.plot(
        place + aside,
        coefficients,
        linestyle="none",
        marker="o",
        color=BLUE,
        alpha=0.45,
        markersize=2.6 if len(coefficients) > _FEW else 4.5,
        zorder=3,
        markeredgewidth=0,
    )
