"""Proven intervals as bars: where each ends, and how they lie in each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import BLUE, GREY, NOTE, drawing, number, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["intervals"]

_MOST_INTERVALS: Final = 30
_WIDE_ENOUGH: Final = 1e-2
"""Relative width from which on an axis of the numbers themselves has ticks that differ in their first digits."""


@spelled
def intervals(found: Any, *, quantity: str = "value", ax: Any = None, width: Width = None) -> Figure:
    """Proven intervals as bars, one below the other, each with its relative width.

    Intervals that are narrow beside their value are drawn relative to the largest lower bound of all, which the note names.

    Parameters
    ----------
    found : Enclosure, Solution or OracleAllocation, or a mapping from names to these
        Whatever has a ``lower`` and an ``upper`` end. An end at infinity is an arrow.
    quantity : str
        What they are intervals of.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> s = ao.regret_constant([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> figure = intervals({"claimed": s, "verify()": s.verify(), "exact": s.verify(exact=True)})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['claimed', 'verify()', 'exact']
    """
    named = dict(found) if isinstance(found, Mapping) else {"": found}
    if not 0 < len(named) <= _MOST_INTERVALS:
        raise InvalidOption(
            f"found: expected 1 to {_MOST_INTERVALS} intervals, which can still be read, got {len(named)}"
        )
    lower, upper = np.array([_ends(one) for one in named.values()]).T
    centre, relative = _reference(lower, upper)
    unit = _unit(np.concatenate([lower, upper]) / centre - 1.0) if relative else 1.0
    left, right = ((ends - centre) / centre / unit if relative else ends for ends in (lower, upper))
    with drawing():
        board = canvas(ax, width, 0.0, more=0.85 + 0.3 * len(named))
        axes = board.axes
        start, end = _limits(left, right)
        _bars(axes, left, right, (start, end))
        for place, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            axes.annotate(_width(low, high), (1.0, place), xycoords=("axes fraction", "data"), xytext=(3, 0),
                          textcoords="offset points", va="center", fontsize=7, annotation_clip=False)  # fmt: skip
        axes.set_xlim(start, end)
        axes.set_ylim(len(named) - 0.4, -0.6)
        axes.set_yticks(np.arange(len(named)), [text(str(name)) for name in named])
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        shown = text(quantity, 40)
        if relative:
            axes.set_xlabel(f"({shown} − L)/L" + (f", in units of {number(unit)}" if unit < 1 else ""))
            axes.set_title(f"L = {centre!r}; right: relative width", **NOTE)
        else:
            axes.set_xlabel(shown)
            axes.set_title("right: relative width", **NOTE)
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.locator_params(axis="x", nbins=4)
        return board.done()


def _ends(one: Any) -> tuple[float, float]:
    """Both ends of an interval, checked."""
    ends = getattr(one, "lower", None), getattr(one, "upper", None)
    if not all(isinstance(end, int | float) for end in ends):
        raise InvalidOption(
            f"found: expected an Enclosure or a Solution, or a mapping from names to these, got a {type(one).__name__}"
        )
    lower, upper = float(ends[0]), float(ends[1])  # type: ignore[arg-type]
    if not lower <= upper:
        raise InvalidOption(f"found: expected intervals with lower <= upper, got [{lower!r}, {upper!r}]")
    return lower, upper


def _reference(lower: Array, upper: Array) -> tuple[float, bool]:
    """The largest lower bound, and whether all ends lie so near to it that they are best drawn relative to it."""
    centre = float(lower.max())
    if not (np.isfinite(centre) and centre > 0 and np.isfinite(upper).all()):
        return centre, False
    return centre, bool(max(upper.max() - centre, centre - lower.min()) < _WIDE_ENOUGH * centre)


def _unit(differences: Array) -> float:
    """A power of ten in which the largest difference is between 1 and 10; 1 where there is none."""
    largest = float(np.abs(differences).max())
    return float(f"1e{int(np.floor(np.log10(largest)))}") if largest > 0 else 1.0


def _limits(left: Array, right: Array) -> tuple[float, float]:
    """The ends of the axis: all finite ends with some room, and with more where a bar goes on to infinity."""
    ends = np.concatenate([left, right])
    finite = ends[np.isfinite(ends)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
    return low - room * (5 if np.isinf(left).any() else 1), high + room * (5 if np.isinf(right).any() else 1)


def _bars(axes: Axes, left: Array, right: Array, limits: tuple[float, float]) -> None:
    """One bar an interval, with its two ends marked, or an arrow where it has no end."""
    places = np.arange(len(left))
    shown = np.clip(left, *limits), np.clip(right, *limits)
    axes.hlines(places, *shown, color=BLUE, linewidth=4, alpha=0.4)
    for ends, mark, onwards in ((left, "|", "<"), (right, "|", ">")):
        finite = np.isfinite(ends)
        axes.plot(
            ends[finite], places[finite], linestyle="none", marker=mark, color=BLUE, markersize=9, markeredgewidth=1.4
        )
        edge = limits[0] if onwards == "<" else limits[1]
        endless = places[~finite]
        axes.plot(
            np.full(len(endless), edge),
            endless,
            linestyle="none",
            marker=onwards,
            color=GREY,
            markersize=6,
            clip_on=False,
        )


def _width(lower: float, upper: float) -> str:
    """(upper − lower)/lower as a short number."""
    if upper == lower:
        return "0"
    return number((upper - lower) / lower) if lower > 0 else "∞"
