r"""The geometry of an instance in two or three dimensions: where the arms are, what is played, and what that rules out.

Two panels. *Arms*: every arm as a point, α as area, the binding arms ringed. *Parameters*: the set {θ': ||θ' − θ||²_{H(α)} <= 2σ²}
that optimal play cannot rule out, inside the region where x* stays best; it touches the boundary of each binding arm.

Optimal arms have α = ∞, so the set has no width in their directions: it is a segment for d = 2 and a flat ellipse, drawn in
its own plane, for d = 3. For d = 2 the ellipse after a stated number of rounds is drawn as well: x* takes the rounds that the
exploration leaves over, and the ellipse closes on the segment as n grows.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.insight.plots.sets import (
    MOST_NAMED,
    Picture,
    Slice,
    clip,
    ellipse,
    half_axes,
    off_plane,
    picture_of,
    set_points,
)
from allocopt.insight.plots.style import (
    BLACK,
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    UNITS,
    arm_names,
    checked_width,
    drawing,
    finish,
    new_figure,
    number,
    place_labels,
)
from allocopt.model.bandit import LinearBandit
from allocopt.model.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


_LARGEST_DISC = 260.0  # square points
_CROWDED = 0.05  # arms nearer to x* than this share of the panel get an inset
_INSET = 0.42  # its side, as a share of the panel's
_ASPECT = 0.72  # height over width of the panel of parameters


def geometry(
    bandit: LinearBandit,
    solution: Solution,
    alternatives: Sequence[Any] | None = None,
    *,
    horizon: float | None = None,
    width: float = COLUMN,
) -> Figure:
    """Arms, x*, the allocation as area, the binding arms, and the confidence set of the optimal design.

    Parameters
    ----------
    bandit : LinearBandit
        In two or three dimensions; more cannot be drawn without leaving out what matters.
    solution : Solution
        Of a program with this bandit's arms: regret, horizon, best arm, G-optimal, optimism or remaining.
    alternatives : sequence, optional
        Parameters θ' to mark: objects with ``arm`` (the arm that is best there) and ``theta``, such as those of
        ``hardness(bandit).alternatives``.
    horizon : int, optional
        The number of rounds n of the dashed ellipse (d = 2); by default the first power of ten of which exploration takes
        at most a tenth.
    width : float
        Inches.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt import plots
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0])
    >>> figure = plots.geometry(bandit, ao.solve(ao.programs.regret(bandit)))
    >>> [axes.get_title() for axes in figure.axes]
    ['arms', 'parameters']
    """
    picture = picture_of(bandit, solution, alternatives, horizon)
    inches = checked_width(width)
    flat = picture.slice is not None
    with drawing():
        # what an equal aspect leaves of the width, and the lines of text around it
        above = 0.70 * inches + 0.95 if bandit.dim == 2 else 0.80 * inches + 0.5
        below = 0.58 * inches + 1.1 if flat else 0.80 * inches + 0.4
        figure = new_figure(inches, above + below)
        parts: Any = figure.subfigures(2, 1, height_ratios=(above, below))
        upper, lower = parts
        (_arms_2d if bandit.dim == 2 else _arms_3d)(upper, picture)
        (_parameters_2d if flat else _parameters_3d)(lower, picture)
        return finish(figure)


def _arms_2d(part: SubFigure, picture: Picture) -> None:
    axes = part.subplots()
    arms = picture.bandit.arms
    _discs(axes, picture, arms)
    low, high = np.minimum(arms.min(axis=0), 0.0), np.maximum(arms.max(axis=0), 0.0)
    middle, half = (low + high) / 2, 0.58 * float((high - low).max()) + 1e-300
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half * 0.85, middle[1] + half * 0.85)
    axes.set_ylim(min(axes.get_ylim()[0], low[1] - 0.15 * half), max(axes.get_ylim()[1], high[1] + 0.15 * half))
    axes.set_aspect("equal")
    axes.plot(0, 0, marker="+", color=GREY, markersize=6, zorder=1)
    axes.set(xlabel="x₁", ylabel="x₂", title="arms")
    _legend(part, axes)
    crowd = _crowd(picture, half)
    named = picture.named
    if crowd is not None:
        inside = np.linalg.norm(arms - crowd[0], axis=1) <= crowd[1]
        named = named[~inside[named] | np.isin(named, picture.bandit.optimal_arms)]
        _inset(axes, picture, *crowd)
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


def _crowd(picture: Picture, half: float) -> tuple[Array, float] | None:
    """Centre and radius of a closer look, where arms with a part can hardly be told from x*."""
    arms = picture.bandit.arms
    best = arms[picture.bandit.optimal_arms[0]]
    distances = np.linalg.norm(arms[picture.important] - best, axis=1)
    near = distances[(distances > 0) & (distances < 2 * half * _CROWDED)]
    return (best, 1.7 * float(near.max())) if len(near) else None


def _inset(axes: Any, picture: Picture, centre: Array, radius: float) -> None:
    """A magnified square around x*, in the emptiest place of the panel."""
    arms = picture.bandit.arms
    frame = np.array([axes.get_xlim(), axes.get_ylim()]).T
    share = (arms - frame[0]) / (frame[1] - frame[0])
    corners = [(x, y) for y in (0.5, 0.05, 0.27) for x in (0.55, 0.04, 0.29)]

    def crowding(corner: tuple[float, float]) -> int:
        inside = (share > np.array(corner) - 0.06) & (share < np.array(corner) + _INSET + 0.06)
        return int(inside.all(axis=1).sum())

    x, y = min(corners, key=crowding)
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


def _arms_3d(part: SubFigure, picture: Picture) -> None:
    axes: Any = part.add_subplot(projection="3d")
    arms = picture.bandit.arms
    _discs(axes, picture, arms)
    for i in picture.important.tolist():
        axes.plot(*np.column_stack([np.zeros(3), arms[i]]), color=GREY, linewidth=0.6, zorder=1)
    _cube(axes, np.vstack([arms, np.zeros(3)]))
    axes.set(xlabel="x₁", ylabel="x₂", zlabel="x₃", title="arms")
    _legend(part, axes)
    _names_3d(axes, picture, arms, picture.named)


def _names_3d(axes: Any, picture: Picture, points: Array, arms: IntArray) -> None:
    """Names of arms beside their points as the picture shows them."""
    proj3d: Any = importlib.import_module("mpl_toolkits.mplot3d.proj3d")  # untyped
    part = axes.get_figure(root=True)
    part.draw_without_rendering()
    seen = np.column_stack(proj3d.proj_transform(*points.T, axes.get_proj())[:2])
    names = arm_names(picture.bandit.labels, arms.tolist(), 16)
    place_labels(axes, seen[arms], names, _clearance(picture, arms), seen, _radii(picture))


def _cube(axes: Any, points: Array) -> None:
    """Equal scales and few ticks on the three axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 0.52 * float((high - low).max()) + 1e-300
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_box_aspect((1, 1, 1), zoom=0.98)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(_ticks(3))
        axis.labelpad = -4 if axis is axes.zaxis else -6
        axis.pane.set_visible(False)
        axis.line.set_linewidth(0.6)
    axes.tick_params(pad=-2)


def _ticks(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most)


def _legend(part: SubFigure, axes: Any, columns: int = 2) -> None:
    """Below the panel, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    part.legend(handles, labels, loc="outside lower center", ncols=columns)


def _parameters_2d(part: SubFigure, picture: Picture) -> None:
    plane = picture.slice
    assert plane is not None
    axes = part.subplots()
    centre, theta = plane.shift, picture.bandit.theta
    kept = set_points(picture, plane)
    after = picture.rounds_information
    rim = np.zeros((0, 2)) if after is None else ellipse(plane.basis.T @ after @ plane.basis, picture)
    sets = np.vstack([kept, rim])
    if picture.unbounded:  # the view ends somewhere, the set does not
        inside = sets[np.linalg.norm(sets, axis=1) < picture.scale]
        sets = np.vstack([inside, 0.7 * picture.scale * np.array([[-1.0, -1.0], [1.0, 1.0]])])
    reach = float(np.linalg.norm(sets, axis=1).max()) or 0.5 * picture.scale
    marks = [(arm, plane.points(theta, t), off_plane(plane, theta, t)) for arm, t in picture.alternatives]
    seen = [sets + centre, centre[None, :]]
    if picture.bandit.dim == 2 and np.linalg.norm(centre) <= 3 * reach:
        seen.append(np.zeros((1, 2)))
    seen += [p[None, :] for _, p, _ in marks if np.linalg.norm(p - centre) <= 3 * reach]
    box = _view(np.concatenate(seen), plane.to_scale)
    axes.set(xlim=box[:, 0], ylim=box[:, 1])
    axes.set_aspect("equal" if plane.to_scale else "auto")
    _cells(axes, picture, plane, box)
    ties = _boundaries(axes, picture, plane, box) if picture.solution.program.kind != "g_optimal" else []
    what = "‖θ′ − θ‖²$_{H(α)}$ ≤ " + picture.level_name + ", unbounded" * picture.unbounded
    thick = 2.2 if picture.quotient.shape[1] < 2 and len(picture.solution.optimal_arms) else 1.3
    axes.plot(*(kept + centre).T, color=BLUE, linewidth=thick, label=what, zorder=4, solid_capstyle="butt")
    if after is not None:
        assert picture.rounds is not None
        axes.plot(*(rim + centre).T, color=BLUE, linewidth=0.9, linestyle=(0, (3, 1.5)), zorder=4,
                  label=f"the same after {number(picture.rounds)} rounds")  # fmt: skip
    axes.plot(*centre, marker="o", color=BLACK, markersize=3.5, linestyle="none", zorder=6)
    for off, label in ((False, "alternative θ′"), (True, "alternative θ′, projected")):
        chosen = np.array([p for _, p, away in marks if away == off])
        if len(chosen):
            axes.plot(*chosen.T, marker="X", markersize=5, linestyle="none", color=PURPLE, zorder=7, label=label,
                      markerfacecolor="white" if off else PURPLE)  # fmt: skip
    axes.set(
        xlabel=plane.names[0],
        ylabel=plane.names[1],
        title="parameters" if plane.to_scale else "parameters, each axis to its own scale",
    )
    axes.xaxis.set_major_locator(_ticks(6))
    axes.yaxis.set_major_locator(_ticks(5))
    _legend(part, axes)
    visible = [(arm, p) for arm, p, _ in marks if (p > box[0]).all() and (p < box[1]).all()][:MOST_NAMED]
    names = ["θ", *arm_names(picture.bandit.labels, [arm for arm, _ in visible], 14)]
    points = np.vstack([centre, *(p for _, p in visible)])
    lines = np.vstack([kept, rim])[::4] + centre
    place_labels(axes, points, names, [6.0] * len(names), np.vstack([points, lines, *ties]))


def _view(points: Array, to_scale: bool) -> Array:
    """The corners of a box around the points with some air, in the proportions of the panel."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 0.6 * (high - low)
    if not to_scale:
        return np.array([middle - 1.2 * half, middle + 1.2 * half])
    wide = max(half[0], half[1] / _ASPECT) + 1e-300
    reach = np.array([wide, wide * _ASPECT])
    return np.array([middle - reach, middle + reach])


def _cells(axes: Any, picture: Picture, plane: Slice, box: Array) -> None:
    """The region of the plane where an optimal arm stays best: convex for each optimal arm."""
    bandit = picture.bandit
    corners = np.array([[box[i, 0], box[j, 1]] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]) - plane.shift
    label: str | None = "x* stays best"
    for best in bandit.optimal_arms.tolist():
        normals = (bandit.arms[bandit.suboptimal_arms] - bandit.arms[best]) @ plane.basis
        offsets = bandit.gaps[bandit.suboptimal_arms]
        cutting = (normals @ corners.T > offsets[:, None]).any(axis=1)
        polygon = corners
        for normal, offset in zip(normals[cutting], offsets[cutting], strict=True):
            polygon = clip(polygon, normal, float(offset))
        if len(polygon):
            axes.fill(*(polygon + plane.shift).T, color=PALE, linewidth=0, zorder=0, label=label)
            label = None


def _boundaries(axes: Any, picture: Picture, plane: Slice, box: Array, most: int = 40) -> list[Array]:
    """Where a binding arm ties with x*; returns some points of each line."""
    lines: list[Array] = []
    bandit, label = picture.bandit, "a binding arm ties with x*"
    best = bandit.arms[bandit.optimal_arms[0]]
    reach = float(np.linalg.norm(box[1] - box[0])) * 2
    for i in picture.solution.binding[:most].tolist():
        normal = (bandit.arms[i] - best) @ plane.basis
        length = float(normal @ normal)
        if length == 0:
            continue
        foot = normal * (bandit.gaps[i] / length) + plane.shift
        along = np.array([-normal[1], normal[0]]) / math.sqrt(length)
        start = along * float(((box[0] + box[1]) / 2 - foot) @ along)
        ends = np.array([foot + start - reach * along, foot + start + reach * along])
        axes.plot(*ends.T, color=ORANGE, linewidth=0.9, linestyle="-.", label=label, zorder=2)
        label = "_none"
        lines.append(ends[0] + np.linspace(0, 1, 200)[:, None] * (ends[1] - ends[0]))
    return lines


def _parameters_3d(part: SubFigure, picture: Picture) -> None:
    """Three dimensions without a free arm: an ellipsoid around θ."""
    axes: Any = part.add_subplot(projection="3d")
    half, vectors = half_axes(picture.information, picture)
    turn, rise = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    sphere = np.stack([np.cos(turn) * np.sin(rise), np.sin(turn) * np.sin(rise), np.cos(rise)], axis=-1)
    surface = picture.bandit.theta + (sphere * half) @ vectors.T
    axes.plot_wireframe(*np.moveaxis(surface, -1, 0), color=BLUE, linewidth=0.4, alpha=0.8,
                        label="‖θ′ − θ‖²$_{H(α)}$ ≤ " + picture.level_name)  # fmt: skip
    axes.scatter(*picture.bandit.theta[:, None], color=GREEN, s=24, depthshade=False, label="θ")
    seen = [surface.reshape(-1, 3)]
    if picture.alternatives:
        others = np.array([t for _, t in picture.alternatives])
        axes.scatter(*others.T, color=PURPLE, marker="X", s=24, depthshade=False, label="alternative θ′")
        near = np.linalg.norm(others - picture.bandit.theta, axis=1) <= 3 * half.max()
        seen.append(others[near])
    _cube(axes, np.concatenate(seen))
    axes.set(xlabel="θ′₁", ylabel="θ′₂", zlabel="θ′₃", title="parameters")
    _legend(part, axes)
