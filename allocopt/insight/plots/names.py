"""Where words stand in a picture: beside their points, not on top of each other; what finds no room is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.validation import Array
from allocopt.insight.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Room", "place_labels"]

_SIZE: Final = 7.0
"""Points: the size of names and numbers in pictures."""
_NEAR: Final = ((0.8, 0.8), (0.8, -0.8), (-0.8, 0.8), (-0.8, -0.8), (0.0, 1.1), (0.0, -1.1), (1.1, 0.0), (-1.1, 0.0))
_FAR: Final = 3.2
_AROUND: Final = tuple((reach * dx, reach * dy) for reach in (1.0, 1.8, _FAR) for dx, dy in _NEAR)
"""Directions in which a name may stand from its point, best first; from the far ones a line leads back to the point."""


class Room:
    """What is taken of some axes, in typographic points. Make it last: it measures in the final limits of the axes."""

    def __init__(self, axes: Axes) -> None:
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.draw_without_rendering()
        self._axes, self._figure = axes, figure
        self._scale = 72.0 / figure.dpi
        frame = axes.get_window_extent()
        self.frame = tuple(v * self._scale for v in (frame.x0, frame.y0, frame.x1, frame.y1))
        self.boxes: list[tuple[float, float, float, float]] = []

    def places(self, points: Any) -> Array:
        """Where points of the data stand."""
        result: Array = self._axes.transData.transform(points) * self._scale
        return result

    def extent(self, words: str) -> tuple[float, float]:
        """Width and height of words, as they will be written."""
        from matplotlib.text import Text

        written = Text(0.0, 0.0, words, fontsize=_SIZE)
        written.set_figure(self._figure)
        return float(written.get_window_extent().width) * self._scale, _SIZE + 1.0

    def crossed(self, box: tuple[float, float, float, float]) -> int:
        """How many of the boxes that are taken this one would cover."""
        return sum(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in self.boxes)

    def take(self, centre: Any, words: str) -> bool:
        """Take the room of words around a point of the data, if it is free."""
        (x, y), (wide, high) = self.places(centre), self.extent(words)
        box = (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
        free = not self.crossed(box)
        if free:
            self.boxes.append(box)
        return free

    def take_disc(self, centre: Any, radius: float) -> None:
        """Take the room of a disc around a point of the data."""
        x, y = self.places(centre)
        self.boxes.append((x - radius, y - radius, x + radius, y + radius))


def place_labels(
    axes: Axes, points: Array, names: Sequence[str], distance: Sequence[float], avoid: Array, radii: Array | None = None
) -> None:
    """Write names beside points, each where it covers the fewest other things; those that only cover other names are left out.

    ``distance`` is how far from its point each name stands, ``avoid`` are points not to be covered, of these ``radii``; lengths
    in typographic points.

    Call it last: it measures in the final limits of the axes.
    """
    room = Room(axes)
    obstacles = room.places(avoid)
    if radii is not None:
        turn = np.linspace(0, 2 * np.pi, 25)[:-1]
        rims = np.column_stack([np.cos(turn), np.sin(turn)])
        obstacles = np.vstack(
            [obstacles, *(o + 0.7 * r * rims for o, r in zip(obstacles, radii, strict=True) if r > 4)]
        )
    left, bottom, right, top = room.frame
    here = room.places(points)
    for row, ((x, y), place, name, gap) in enumerate(zip(here, points, names, distance, strict=True)):
        wide, high = room.extent(name)
        best: tuple[float, float, float, str, str, bool] | None = None
        chosen = (0.0, 0.0, 0.0, 0.0)
        for order, (dx, dy) in enumerate(_AROUND):
            led = order >= 2 * len(_NEAR)
            cx, cy = x + dx * gap, y + dy * gap
            x0 = cx - (0.0 if dx > 0 else wide if dx < 0 else wide / 2)
            y0 = cy - (0.0 if dy > 0 else high if dy < 0 else high / 2)
            box = (x0, y0, x0 + wide, y0 + high)
            outside = max(0, left - x0) + max(0, x0 + wide - right) + max(0, bottom - y0) + max(0, y0 + high - top)
            inside = (obstacles > (x0 - 2, y0 - 2)) & (obstacles < (x0 + wide + 2, y0 + high + 2))
            hidden = int(inside.all(axis=1).sum())
            crossed = room.crossed(box)
            reach = np.maximum(np.abs(here - (x0 + wide / 2, y0 + high / 2)) - (wide / 2, high / 2), 0.0)
            apart = np.hypot(reach[:, 0], reach[:, 1])
            # Points that it would seem to name, if no line said which one is meant.
            mistaken = 0 if led else int((apart < apart[row] - 1e-6).sum())
            penalty = 20.0 * outside + 100.0 * (crossed + mistaken) + 10.0 * min(hidden, 4) + 0.1 * order + 8.0 * led
            if best is None or penalty < best[0]:
                anchor = "left" if dx > 0 else "right" if dx < 0 else "center"
                level = "bottom" if dy > 0 else "top" if dy < 0 else "center"
                best, chosen = (penalty, dx * gap, dy * gap, anchor, level, led), box
        assert best is not None
        if room.crossed(chosen):
            continue
        room.boxes.append(chosen)
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 2.0}
        axes.annotate(
            name, (float(place[0]), float(place[1])), xytext=(best[1], best[2]), textcoords="offset points", fontsize=_SIZE,
            ha=best[3], va=best[4], zorder=8, arrowprops=line if best[5] else None,
        )  # fmt: skip
