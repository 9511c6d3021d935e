"""Regret over time: the mean of many runs, the band of most of them, and the line c·log n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, IntArray, matrix, positive_number, vector
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import (
    BLACK,
    COLOURS,
    DASHES,
    MARKERS,
    NOTE,
    drawing,
    flattened,
    number,
    text,
)
from allocopt.play.simulation.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["regret_curves"]

_SEEN = 0.05  # of the height: what stays below lies on the axis to the eye


@spelled
def regret_curves(
    curves: Mapping[str, Any],
    *,
    constant: float | None = None,
    bound: tuple[Any, Any] | None = None,
    horizon: float | None = None,
    log: bool | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """Mean regret of policies over time, the band of 80 % of the runs, and the line c·log n that none can beat in the end.

    Parameters
    ----------
    curves : mapping
        Name → what `simulate` returned, or (times, regret) with one row of regret per run and one column per time.
    constant : float, optional
        c(A,θ): draws c·log n.
    bound : (array_like, array_like), optional
        Rounds, and what no policy can beat then (values of `finite_time_bound`): draws the line between them.
    horizon : int, optional
        Show the rounds up to here only.
    log : bool, optional
        A logarithmic scale for the regret; by default where one curve ends more than ten times as high as another, or the
        bound would lie in the lowest 5 % of the picture.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> figure = regret_curves({"UCB": ([10, 100, 1000], [[5, 9, 15], [4, 11, 13]])}, constant=2.0)
    >>> figure.axes[0].get_xlabel()
    'round n'
    """
    if not isinstance(curves, Mapping) or not curves:
        got = "an empty one" if isinstance(curves, Mapping) else f"a {type(curves).__name__}"
        raise InvalidOption(f"curves: expected a mapping from names to simulations or (times, regret), got {got}")
    last = np.inf if horizon is None else positive_number("horizon", horizon)
    slope = None if constant is None else positive_number("constant", constant, zero=True)
    checked = {str(name): measured_runs(str(name), curve, last) for name, curve in curves.items()}
    limit = None if bound is None else _bound_line(bound, last)
    counts = {len(regret) for _, regret in checked.values()}
    alike = len(counts) == 1 and counts != {1}
    log = _needs_log(checked, slope, limit) if log is None else bool(log)
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        axes.set_xscale("log")
        axes.set_yscale("log" if log else "linear")
        for i, (name, (times, regret)) in enumerate(checked.items()):
            colour, dash = COLOURS[i % 7], DASHES[(i // 7 + i) % 7]
            mean = regret.mean(axis=0)
            if len(regret) > 1:
                low, high = np.quantile(regret, (0.1, 0.9), axis=0)
                axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
            runs = "" if alike else " (1 run)" if len(regret) == 1 else f" ({len(regret)} runs)"
            axes.plot(times, mean, color=colour, linestyle=dash, marker=MARKERS[i % 7], markersize=3.2,
                      markevery=(i % 3, max(1, len(times) // 8)), label=text(name, 28) + runs)  # fmt: skip
        start = min(float(t[0]) for t, _ in checked.values())
        end = max(float(t[-1]) for t, _ in checked.values()) if horizon is None else float(last)
        if slope is not None:
            line = np.geomspace(max(start, 1.0), max(end, 1.0), 200)
            visible = line[line > (1.0 if log else 0.0)]
            axes.plot(visible, slope * np.log(visible), color=BLACK, linestyle=(0, (1, 1.2)), linewidth=1.3, zorder=5,
                      label=f"c log n, c = {number(slope)}")  # fmt: skip
        if limit is not None:
            shown = limit[1] > 0 if log else slice(None)
            axes.plot(limit[0][shown], limit[1][shown], color=BLACK, linewidth=1.6, label="finite-time bound", zorder=5)
        axes.set_xlim(start, end if end > start else 2 * start)
        if not log:
            axes.set_ylim(bottom=min(0.0, *(float(r.min()) for _, r in checked.values())))
        axes.set_xlabel("round n")
        axes.set_ylabel("regret")
        axes.set_title(f"mean, and 10 % to 90 % of {counts.pop() if alike else 'the'} runs", **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def _needs_log(
    curves: Mapping[str, tuple[Array, Array]], slope: float | None, limit: tuple[Array, Array] | None
) -> bool:
    """Whether a linear scale would flatten a curve or the bound."""
    ends = [float(regret.mean(axis=0)[-1]) for _, regret in curves.values()]
    if limit is None or flattened(ends) or min(ends) <= 0.0:
        return flattened(ends)
    top = max(float(np.quantile(regret, 0.9, axis=0).max()) for _, regret in curves.values())
    if slope is not None:
        top = max(top, slope * np.log(max(float(times[-1]) for times, _ in curves.values())))
    return 0.0 < float(limit[1].max(initial=0.0)) < _SEEN * top


def _bound_line(bound: Any, last: float) -> tuple[Array, Array]:
    """Rounds up to ``last`` and the bound then, in order."""
    if not isinstance(bound, Sequence) or isinstance(bound, str) or len(bound) != 2:
        raise InvalidOption(f"bound: expected (rounds, values), got a {type(bound).__name__}")
    rounds = vector("bound: rounds", bound[0], InvalidOption)
    values = vector("bound: values", bound[1], InvalidOption, length=len(rounds))
    order = np.argsort(rounds, kind="stable")
    kept = order[(rounds[order] <= last) & (rounds[order] >= 1)]
    return rounds[kept], values[kept]


def measured_runs(name: str, curve: Any, last: float) -> tuple[Array, Array]:
    """Times up to ``last`` and the regret of each run then, from what a user gave as one curve."""
    if isinstance(curve, SimulationResult):
        curve = (curve.times, curve.regret)
    if not isinstance(curve, Sequence) or isinstance(curve, str) or len(curve) != 2:
        raise InvalidOption(f"curves[{name!r}]: expected (times, regret), got a {type(curve).__name__}")
    times = vector(f"curves[{name!r}]: times", curve[0], InvalidOption)
    regret = matrix(f"curves[{name!r}]: regret", curve[1], InvalidOption)
    if not len(times) or not len(regret) or regret.shape[1] != len(times):
        raise InvalidOption(
            f"curves[{name!r}]: expected regret of shape (runs, {len(times)}), one column per time, got {regret.shape}"
        )
    if times[0] < 1 or (np.diff(times) <= 0).any():
        raise InvalidOption(f"curves[{name!r}]: expected increasing times from 1 on, got {times[0]:g} … {times[-1]:g}")
    kept: IntArray = np.flatnonzero(times <= last)
    if not len(kept):
        raise InvalidOption(f"horizon: expected at least {times[0]:g}, the first time of {name!r}, got {last:g}")
    return times[kept], regret[:, kept]
