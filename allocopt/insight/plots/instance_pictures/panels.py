"""What the panels of `plots.geometry` share: equal scales in space, few ticks, a legend that covers nothing."""

from __future__ import annotations

from typing import Any

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array
from allocopt.insight.plots.style import fitting_legend

__all__ = ["axes_of", "equal_scales", "few_ticks", "legend_under"]


def equal_scales(axes: Any, points: Array) -> None:
    """Equal scales and few ticks on the three axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 0.52 * float((high - low).max()) + NOT_ZERO
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_box_aspect((1, 1, 1), zoom=0.98)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(few_ticks(3))
        axis.labelpad = -4 if axis is axes.zaxis else -6
        axis.pane.set_visible(False)
        axis.line.set_linewidth(0.6)
    axes.tick_params(pad=-2)


def few_ticks(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most)


def axes_of(part: Any, **how: Any) -> Any:
    """The axes of a panel: those that the caller brought, or new ones in a part of our figure."""
    return part.add_subplot(**how) if hasattr(part, "add_subplot") else part


def legend_under(part: Any, axes: Any, columns: int = 2) -> None:
    """Below the panel, where it covers nothing; in the caller's axes, where there is room."""
    handles, labels = axes.get_legend_handles_labels()
    if part is axes:
        axes.legend(handles, labels, loc="best", fontsize=7)
        return
    fitting_legend(part.figure, part, handles, labels, columns)
