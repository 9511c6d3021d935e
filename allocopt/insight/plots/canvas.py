"""Where a plot is drawn: on a figure of its own, or in axes that the caller brings; with a legend that fits either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allocopt.base.errors import InvalidOption
from allocopt.insight.plots.style import COLUMN, checked_width, finish, fitting_legend, new_figure, set_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Canvas", "Width", "canvas", "given_axes", "inches_of"]

Width = float | str | None
"""Inches, "column" (3.4) or "page" (7.0); None is "column"."""


@dataclass(frozen=True, eq=False)
class Canvas:
    """A figure and the axes to draw in."""

    figure: Figure
    axes: Axes
    own: bool
    """Whether the figure was made for this plot; else it is the caller's, who arranges it."""

    def legend(self) -> None:
        """Below the axes of an own figure, where it covers nothing; where there is room in the caller's axes."""
        handles, labels = self.axes.get_legend_handles_labels()
        if not labels:
            return
        if self.own:
            fitting_legend(self.figure, self.figure, handles, labels, 3)
        else:
            self.axes.legend(handles, labels, loc="best", fontsize=7)

    def done(self) -> Figure:
        """The figure, with everything that matplotlib would decide later by the user's parameters."""
        if self.own:
            return finish(self.figure)
        set_ticks(self.axes)
        return self.figure


def inches_of(width: Width, ax: Any = None) -> float:
    """The width of an own figure; beside ``ax`` it may not be asked for."""
    if ax is not None and width is not None:
        raise InvalidOption("width: expected none beside ax, whose figure has a width of its own")
    return checked_width(COLUMN if width is None else width)


def given_axes(ax: Any, panels: int = 1, *, spatial: Sequence[bool] = (False,)) -> tuple[Any, ...]:
    """The axes that a caller brings, checked: one, or a sequence of as many as there are panels; ``spatial`` ones in 3d."""
    from matplotlib.axes import Axes

    given = (ax,) if panels == 1 and isinstance(ax, Axes) else tuple(ax) if hasattr(ax, "__iter__") else (ax,)
    if len(given) != panels or not all(isinstance(one, Axes) for one in given):
        wanted = "matplotlib Axes" if panels == 1 else f"a sequence of {panels} matplotlib Axes"
        got = f"{len(given)} of them" if isinstance(given[0], Axes) else f"a {type(ax).__name__}"
        raise InvalidOption(f"ax: expected {wanted}, got {got}")
    for one, deep in zip(given, spatial, strict=False):
        if hasattr(one, "get_zlim") != deep:
            raise InvalidOption(f"ax: expected Axes {'with' if deep else 'without'} projection='3d' for this picture")
    return given


def canvas(ax: Any, width: Width, ratio: float, *, more: float = 0.0) -> Canvas:
    """The caller's axes, or those of a new figure whose height is ``ratio`` times its width plus ``more`` inches."""
    inches = inches_of(width, ax)
    if ax is None:
        figure = new_figure(inches, ratio * inches + more)
        return Canvas(figure, figure.subplots(), True)
    (axes,) = given_axes(ax)
    return Canvas(axes.get_figure(root=True), axes, False)
