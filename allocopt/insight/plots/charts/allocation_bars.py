"""Bars: how often each arm is played, and what each constraint costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array, whole_number
from allocopt.insight.plots.canvas import Width, given_axes, inches_of
from allocopt.insight.plots.style import (
    BLUE,
    NOTE,
    ORANGE,
    UNITS,
    WIDE,
    above_noise,
    arm_names,
    drawing,
    finish,
    new_figure,
    number,
)
from allocopt.model.programs.answer import target_names
from allocopt.model.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_BARS: Final = 200


@spelled
def allocation(solution: Solution, most: int = 20, *, ax: Any = None, width: Width = None) -> Figure:
    """The allocation α and the multipliers λ as bars, the arms of the largest cost first.

    Arms that are neither played nor binding are left out, and so are those after the first ``most``; a note says how many. ``ax``:
    two Axes to draw in, instead of a figure of its own.

    Examples
    --------
    >>> import allocopt as ao
    >>> figure = allocation(ao.regret_constant([[1, 0], [0, 1], [0.9, 0.2]], [1, 0]))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['arm 0', 'arm 1', 'arm 2']
    """
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: expected a Solution, got a {type(solution).__name__}")
    limit, inches = whole_number("most", most, least=1), inches_of(width, ax)
    if limit > _MOST_BARS:
        raise InvalidOption(f"most: expected at most {_MOST_BARS} bars, which can still be read, got {limit}")
    program, alpha = solution.program, solution.allocation
    cost = program.costs * np.where(np.isfinite(alpha), alpha, 0.0)
    per_arm = program.target_arms is not None
    parts = [solution.support, solution.optimal_arms, *([solution.binding] if per_arm else [])]
    arms = np.unique(np.concatenate(parts))
    arms = arms[np.lexsort((-cost[arms], np.isfinite(alpha[arms])))]
    shown = arms[:limit]
    if per_arm:
        rows, row_names = shown, arm_names(solution.labels, shown.tolist())
    else:
        rows = solution.binding[np.argsort(-solution.multipliers[solution.binding], kind="stable")][:limit]
        row_names = list(target_names(program, rows))
    longest = max(len(shown), len(rows), 1)
    with drawing():
        left: Axes
        right: Axes
        if ax is None:
            figure = new_figure(inches, 0.85 + 0.17 * longest)
            left, right = figure.subplots(1, 2, sharey=per_arm)
        else:
            left, right = given_axes(ax, 2, spatial=(False, False))
            figure = left.get_figure(root=True)  # type: ignore[assignment]
        _bars(left, alpha[shown], arm_names(solution.labels, shown.tolist()), BLUE, solution.tol)
        _bars(right, solution.multipliers[rows], row_names, ORANGE, solution.tol)
        right.tick_params(axis="y", labelleft=not per_arm)
        left.set_xlabel(f"allocation α\n[{UNITS[program.kind]}]")
        right.set_xlabel(f"multiplier λ\n[Σλ = {number(float(solution.multipliers.sum()))}]")
        hidden = len(arms) - len(shown)
        if hidden:
            share = cost[arms[limit:]].sum() / cost.sum() if cost.sum() > 0 else 0.0
            part = f"{share:.1%}" if share >= 1e-3 else "less than 0.1%"
            more = f"and {hidden} more arm{'s' * (hidden > 1)} with {part} of the cost"
            if ax is None:
                figure.supxlabel(more, fontsize=7)
            else:
                left.set_title(more, **NOTE)
        return finish(figure) if ax is None else figure


def _bars(axes: Axes, values: Array, names: list[str], colour: str, tol: float) -> None:
    """Horizontal bars with their numbers; an infinite one reaches the edge, hatched."""
    places = np.arange(len(values))
    finite = np.isfinite(values)
    top = float(values[finite].max(initial=0.0)) or 1.0
    seen = np.sort(above_noise(values, tol))
    bottom = float(seen.min(initial=top))
    log = len(seen) > 0 and top > WIDE * float(seen[(len(seen) - 1) // 2])  # at least half of the bars would be lines
    start = bottom / 3 if log else 0.0
    edge = top * (top / start) ** 0.4 if log else 1.45 * top
    axes.barh(places[finite], np.maximum(values[finite], start) - start, left=start, height=0.68, color=colour)
    endless = places[~finite]
    axes.barh(
        endless, edge - start, left=start, height=0.68, color="white", edgecolor=colour, hatch="////", linewidth=0.6
    )
    if log:
        axes.set_xscale("log")
    axes.set_xlim(start, edge)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        if np.isfinite(value):
            at = max(value, start)
            shown = "≈ 0" if 0 < value < SUPPORT * top else number(value)  # what the tolerance leaves of a zero
            axes.annotate(shown, (at, place), xytext=(2, 0), textcoords="offset points", va="center", fontsize=7)
        else:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
            middle = float(np.sqrt(start * edge)) if log else edge / 2
            axes.text(middle, place, "∞", va="center", ha="center", fontsize=8, bbox=box)
    axes.set_yticks(places, names)
    axes.set_ylim(max(len(values), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    if not log:
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis="x")
