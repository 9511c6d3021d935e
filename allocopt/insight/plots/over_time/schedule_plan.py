"""A schedule as it will be played: how often each arm has been pulled by every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, whole_number
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import COLOURS, DASHES, GREY, MARKERS, NOTE, arm_names, drawing, flattened, number
from allocopt.policies.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["schedule_plan"]

_MOST_ARMS: Final = 5
_MOST_POINTS: Final = 240
_LONG: Final = 1000
"""Rounds from which on the axis of rounds is logarithmic: exploration is then a small part of them."""


@spelled
def schedule_plan(
    schedule: Schedule,
    arms: Sequence[int] | None = None,
    *,
    log: bool | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """Pulls of each arm against the round, and as a dotted line what is wanted of it in all.

    Parameters
    ----------
    schedule : Schedule
        Of any length: pulls at a round are a formula.
    arms : sequence of int, optional
        Which arms; by default the five that are to be explored most. Those that take the rounds that are left (the best arms of
        a regret program) are one grey line.
    log : bool, optional
        Logarithmic scales; by default where a curve flattens the others, or from 1000 rounds on.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> s = ao.regret_constant([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> figure = schedule_plan(ao.Schedule.from_solution(s, horizon=10**6))
    >>> [line.get_label() for line in figure.axes[0].get_lines() if not line.get_label().startswith("_")]
    ['all best arms', 'arm 1', 'wanted']
    """
    if not isinstance(schedule, Schedule):
        raise InvalidOption(f"schedule: expected a Schedule, got a {type(schedule).__name__}")
    length = schedule.length
    if not length:
        raise InvalidOption("schedule: expected rounds to draw, but nothing is left to be played")
    chosen = _arms(schedule, arms)
    long = length >= _LONG if log is None else bool(log)
    rounds = _rounds(length, long)
    pulls = np.array([schedule.pulls_at(int(t)) for t in rounds], dtype=np.float64)
    rest = pulls[:, schedule.free_arms].sum(axis=1)
    ends = [float(x) for arm in chosen for x in (pulls[-1, arm], schedule.wanted[arm]) if x > 0]
    ends += [float(rest[-1])] if len(schedule.free_arms) else []
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        if long:
            axes.set_xscale("log")
        if flattened(ends) if log is None else log:
            axes.set_yscale("symlog", linthresh=1.0)
        if len(schedule.free_arms):
            axes.plot(
                rounds, rest, color=GREY, linewidth=1.6, label="all best arms" if chosen else "best arms: all rounds"
            )
        for i, (arm, name) in enumerate(zip(chosen, arm_names(schedule.labels, chosen), strict=True)):
            axes.plot(rounds, pulls[:, arm], color=COLOURS[i % 7], linestyle=DASHES[i % 7], marker=MARKERS[i % 7], markersize=3.2,
                      markevery=(i % 3, max(1, len(rounds) // 8)), label=name)  # fmt: skip
            if arm not in schedule.free_arms:
                axes.axhline(float(schedule.wanted[arm]), color=COLOURS[i % 7], linestyle=(0, (1, 1.2)), linewidth=1.0)
        if chosen:
            axes.plot([], [], color="black", linestyle=(0, (1, 1.2)), linewidth=1.0, label="wanted")
        axes.set_xlim(float(rounds[0]), float(rounds[-1]) if len(rounds) > 1 else 2.0)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("round")
        axes.set_ylabel("pulls")
        left = "" if schedule.complete else "; too few"
        axes.set_title(f"{schedule.order}: {number(length)} rounds{left}, regret {number(schedule.regret)}", **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def _rounds(length: int, long: bool) -> Array:
    """Rounds to look at: all where they are few, else evenly on the scale of the axis."""
    if length <= _MOST_POINTS:
        return np.arange(1.0, length + 1)
    spread = np.geomspace(1, length, _MOST_POINTS) if long else np.linspace(1, length, _MOST_POINTS)
    return np.unique(np.minimum(spread.round(), length))


def _arms(schedule: Schedule, arms: Sequence[int] | None) -> list[int]:
    if arms is None:
        wanted = schedule.wanted
        order = np.argsort(-wanted, kind="stable")
        return [int(i) for i in order[:_MOST_ARMS] if wanted[i] > 0]
    chosen = [whole_number("arms", i) for i in arms]
    for i in chosen:
        if i >= len(schedule.allocation):
            raise InvalidOption(f"arms: expected numbers from 0 to {len(schedule.allocation) - 1}, got {i}")
    if not 0 < len(chosen) <= len(COLOURS):
        raise InvalidOption(f"arms: expected 1 to {len(COLOURS)} arms, which can be told apart, got {len(chosen)}")
    return chosen
