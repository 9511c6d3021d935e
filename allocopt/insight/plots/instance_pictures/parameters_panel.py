"""The panel of parameters in `plots.geometry`: the set that optimal play cannot rule out, where x* stays best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array
from allocopt.insight.plots.instance_pictures.panels import axes_of, equal_scales, few_ticks, legend_under
from allocopt.insight.plots.instance_pictures.sets import (
    MOST_NAMED,
    Picture,
    Slice,
    clip,
    ellipse,
    half_axes,
    off_plane,
    set_points,
)
from allocopt.insight.plots.names import place_labels
from allocopt.insight.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    PURPLE,
    arm_names,
    number,
)

__all__ = ["parameters_2d", "parameters_3d"]

_ASPECT = 0.72  # height over width of the panel


def parameters_2d(part: Any, picture: Picture) -> None:
    plane = picture.slice
    assert plane is not None
    axes = axes_of(part)
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
    axes.xaxis.set_major_locator(few_ticks(6))
    axes.yaxis.set_major_locator(few_ticks(5))
    legend_under(part, axes)
    visible = [(arm, p) for arm, p, _ in marks if (p > box[0]).all() and (p < box[1]).all()][:MOST_NAMED]
    names = ["θ", *arm_names(picture.bandit.labels, [arm for arm, _ in visible], 14)]
    points = np.vstack([centre, *(p for _, p in visible)])
    lines = np.vstack([kept, rim])[::4] + centre
    place_labels(axes, points, names, [6.0] * len(names), np.vstack([points, lines, *ties]))


def _view(points: Array, to_scale: bool) -> Array:
    """The corners of a box around the points with some margin, in the proportions of the panel."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 0.6 * (high - low)
    if not to_scale:
        return np.array([middle - 1.2 * half, middle + 1.2 * half])
    wide = max(half[0], half[1] / _ASPECT) + NOT_ZERO
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


def parameters_3d(part: Any, picture: Picture) -> None:
    """Three dimensions without a free arm: an ellipsoid around θ."""
    axes = axes_of(part, projection="3d")
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
    equal_scales(axes, np.concatenate(seen))
    axes.set(xlabel="θ′₁", ylabel="θ′₂", zlabel="θ′₃", title="parameters")
    legend_under(part, axes)
