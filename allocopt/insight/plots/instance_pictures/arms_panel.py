"""The panel of arms in `plots.geometry`: every arm as a point, α as area, the binding arms ringed, a closer look at x*."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.insight.plots.instance_pictures.panels import axes_of, equal_scales, legend_under
from allocopt.insight.plots.instance_pictures.sets import Picture
from allocopt.insight.plots.names import place_labels
from allocopt.insight.plots.style import (
    BLACK,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    UNITS,
    arm_names,
    number,
)

__all__ = ["arms_2d", "arms_3d"]

_LARGEST_DISC = 260.0  # square points
_TOO_CLOSE = 0.05  # arms nearer to x* than this share of the panel get an inset
_INSET = 0.42  # its side, as a share of the panel's


def arms_2d(part: Any, picture: Picture) -> None:
    axes = axes_of(part)
    arms = picture.bandit.arms
    _discs(axes, picture, arms)
    low, high = np.minimum(arms.min(axis=0), 0.0), np.maximum(arms.max(axis=0), 0.0)
    middle, half = (low + high) / 2, 0.58 * float((high - low).max()) + NOT_ZERO
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half * 0.85, middle[1] + half * 0.85)
    axes.set_ylim(min(axes.get_ylim()[0], low[1] - 0.15 * half), max(axes.get_ylim()[1], high[1] + 0.15 * half))
    axes.set_aspect("equal")
    axes.plot(0, 0, marker="+", color=GREY, markersize=6, zorder=1)
    axes.set(xlabel="x₁", ylabel="x₂", title="arms")
    legend_under(part, axes)
    closer_look = _closer_look(picture, half)
    named = picture.named
    if closer_look is not None:
        inside = np.linalg.norm(arms - closer_look[0], axis=1) <= closer_look[1]
        named = named[~inside[named] | np.isin(named, picture.bandit.optimal_arms)]
        _inset(axes, picture, *closer_look)
    names = arm_names(picture.bandit.labels, named.tolist(), 16)
    others = _few(len(arms), named)
    place_labels(axes, arms[named], names, _clearance(picture, named), arms[others], _radii(picture)[others])


def _few(n_arms: int, named: IntArray, most: int = 400) -> IntArray:
    """The arms that names should not cover: all, or as many as can be looked at quickly."""
    rest = np.delete(np.arange(n_arms), named)
    return np.concatenate([named, rest[:: max(1, len(rest) // most)]])


def _clearance(picture: Picture, arms: IntArray) -> list[float]:
    """How far from its point a name has to stand: outside the disc and the ring."""
    return [max(6.0, 3.0 + r) for r in _radii(picture)[arms].tolist()]


def _radii(picture: Picture) -> Array:
    """Of what is drawn at each arm, in points: disc, star or ring."""
    result: Array = np.sqrt(_areas(picture) / math.pi)
    result[picture.important] = np.maximum(result[picture.important], 4.5)
    return result


def _areas(picture: Picture) -> Array:
    finite = np.where(np.isfinite(picture.solution.allocation), picture.solution.allocation, 0.0)
    top = finite.max()
    result: Array = _LARGEST_DISC * finite / top if top > 0 else finite
    return result


def _discs(axes: Any, picture: Picture, points: Array, *, legend: bool = True) -> None:
    """Arms as dots, α as area, rings around binding arms, a star for x*; in two or three dimensions."""
    s, kind = picture.solution, picture.solution.program.kind
    best, area = picture.bandit.optimal_arms, _areas(picture)
    flat = points.shape[1] == 2
    plain = {} if flat else {"depthshade": False}
    played = np.flatnonzero(area > 0)
    rest = np.setdiff1d(np.arange(len(points)), best)

    def scatter(chosen: IntArray, **how: Any) -> None:
        if not legend:
            how.pop("label", None)
        if len(chosen):
            axes.scatter(*points[chosen].T, **how, **plain)

    top = float(np.where(np.isfinite(s.allocation), s.allocation, 0.0).max())
    scatter(played, s=area[played], color=SKY, alpha=0.75, linewidth=0, zorder=2,
            label=f"α as area, largest {number(top)} {UNITS[kind]}")  # fmt: skip
    scatter(rest, s=7 if len(rest) < 60 else 3, color=BLACK if len(rest) < 60 else GREY, linewidth=0, zorder=3,
            label="suboptimal arm")  # fmt: skip
    endless = ", α = ∞" if len(s.optimal_arms) else ""
    scatter(best, s=52, marker="*", color=ORANGE, linewidth=0, zorder=5, label=f"x*{endless}")
    if s.program.target_arms is not None:
        scatter(s.binding, s=30, facecolors="none", edgecolors=PURPLE, linewidths=1.1, zorder=6, label="binding arm")


def _closer_look(picture: Picture, half: float) -> tuple[Array, float] | None:
    """Centre and radius of a closer look, where arms with a part can hardly be told from x*."""
    arms = picture.bandit.arms
    best = arms[picture.bandit.optimal_arms[0]]
    distances = np.linalg.norm(arms[picture.important] - best, axis=1)
    near = distances[(distances > 0) & (distances < 2 * half * _TOO_CLOSE)]
    return (best, 1.7 * float(near.max())) if len(near) else None


def _inset(axes: Any, picture: Picture, centre: Array, radius: float) -> None:
    """A magnified square around x*, in the emptiest place of the panel."""
    arms = picture.bandit.arms
    frame = np.array([axes.get_xlim(), axes.get_ylim()]).T
    share = (arms - frame[0]) / (frame[1] - frame[0])
    corners = [(x, y) for y in (0.5, 0.05, 0.27) for x in (0.55, 0.04, 0.29)]

    def arms_covered(corner: tuple[float, float]) -> int:
        inside = (share > np.array(corner) - 0.06) & (share < np.array(corner) + _INSET + 0.06)
        return int(inside.all(axis=1).sum())

    x, y = min(corners, key=arms_covered)
    closer = axes.inset_axes((x, y, _INSET, _INSET), zorder=4)
    _discs(closer, picture, arms, legend=False)
    closer.set(xlim=(centre[0] - radius, centre[0] + radius), ylim=(centre[1] - radius, centre[1] + radius))
    closer.set_aspect("equal")
    closer.set_xticks([])
    closer.set_yticks([])
    closer.spines[["top", "right"]].set_visible(True)
    half = (frame[1] - frame[0]).max() / 2
    closer.set_title(f"× {_INSET * half / radius:.0f}", fontsize=7, pad=2)
    axes.indicate_inset_zoom(closer, edgecolor=GREY, linewidth=0.6)
    inside = np.flatnonzero(np.abs(arms - centre).max(axis=1) < radius)
    named = np.intersect1d(picture.named, inside)
    names = [
        name.removeprefix("arm ") for name in arm_names(picture.bandit.labels, named.tolist(), 10)
    ]  # room is short
    place_labels(closer, arms[named], names, _clearance(picture, named), arms[inside], _radii(picture)[inside])


def arms_3d(part: Any, picture: Picture) -> None:
    axes = axes_of(part, projection="3d")
    arms = picture.bandit.arms
    _discs(axes, picture, arms)
    for i in picture.important.tolist():
        axes.plot(*np.column_stack([np.zeros(3), arms[i]]), color=GREY, linewidth=0.6, zorder=1)
    equal_scales(axes, np.vstack([arms, np.zeros(3)]))
    axes.set(xlabel="x₁", ylabel="x₂", zlabel="x₃", title="arms")
    legend_under(part, axes)
    _names_3d(axes, picture, arms, picture.named)


def _names_3d(axes: Any, picture: Picture, points: Array, arms: IntArray) -> None:
    """Names of arms beside their points as the picture shows them."""
    proj3d: Any = importlib.import_module("mpl_toolkits.mplot3d.proj3d")  # untyped
    part = axes.get_figure(root=True)
    part.draw_without_rendering()
    seen = np.column_stack(proj3d.proj_transform(*points.T, axes.get_proj())[:2])
    names = arm_names(picture.bandit.labels, arms.tolist(), 16)
    place_labels(axes, seen[arms], names, _clearance(picture, arms), seen, _radii(picture))
