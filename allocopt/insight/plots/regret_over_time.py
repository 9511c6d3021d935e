"""Regret in pictures: over time, with the band of most runs and the line c·log n; and as performance profiles over instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array, IntArray, matrix, positive_number, vector
from allocopt.insight.plots.style import (
    BLACK,
    COLOURS,
    COLUMN,
    DASHES,
    MARKERS,
    NOTE,
    checked_width,
    drawing,
    finish,
    legend_below,
    new_figure,
    number,
    text,
)
from allocopt.play.simulation.result import SimulationResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["performance_profiles", "regret_curves"]


def regret_curves(
    curves: Mapping[str, Any],
    *,
    constant: float | None = None,
    bound: tuple[Any, Any] | None = None,
    horizon: float | None = None,
    log: bool = False,
    width: float = COLUMN,
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
    log : bool
        A logarithmic scale for the regret.

    Examples
    --------
    >>> figure = regret_curves({"UCB": ([10, 100, 1000], [[5, 9, 15], [4, 11, 13]])}, constant=2.0)
    >>> figure.axes[0].get_xlabel()
    'round n'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise InvalidOption("curves: expected a mapping from names to (times, regret), with at least one entry")
    inches, last = checked_width(width), np.inf if horizon is None else positive_number("horizon", horizon)
    slope = None if constant is None else positive_number("constant", constant, zero=True)
    checked = {str(name): measured_runs(str(name), curve, last) for name, curve in curves.items()}
    limit = None if bound is None else _bound_line(bound, last)
    counts = {len(regret) for _, regret in checked.values()}
    alike = len(counts) == 1 and counts != {1}
    with drawing():
        figure = new_figure(inches, 0.8 * inches)
        axes = figure.subplots()
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
        legend_below(figure, axes)
        return finish(figure)


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


def performance_profiles(
    scores: Mapping[str, Any], *, most: float = 100.0, title: str = "", width: float = COLUMN
) -> Figure:
    """On which share of the instances each policy is within a factor τ of the best one (Dolan & Moré 2002).

    Parameters
    ----------
    scores : mapping
        Name → mean regret (or any cost) on each instance, the instances in the same order for all; nan where it did not play, which
        counts as never within any factor.
    most : float
        The largest factor τ that is shown.
    title : str, optional
        Drawn above.

    Examples
    --------
    >>> figure = performance_profiles({"UCB": [5, 9, 15], "LinTS": [4, 11, 3]})
    >>> figure.axes[0].lines[1].get_ydata()[0].round(3).item()  # LinTS is the best on two of three
    0.667
    """
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidOption("scores: expected a mapping from names to numbers, with at least one entry")
    inches, last = checked_width(width), positive_number("most", most)
    if last <= 1:
        raise InvalidOption(f"most: expected a number above 1, got {most!r}")
    table = _score_table(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.nanmin(table, axis=0)
        factors = np.where(table == best, 1.0, table / best)
    shares = np.where(np.isnan(factors), np.inf, factors)
    with drawing():
        figure = new_figure(inches, 0.7 * inches)
        axes = figure.subplots()
        axes.set_xscale("log")
        for i, (name, of_policy) in enumerate(zip(scores, shares, strict=True)):
            steps = np.unique(np.concatenate([[1.0], of_policy[of_policy <= last], [last]]))
            height = (of_policy[None, :] <= steps[:, None]).mean(axis=1)
            axes.step(steps, height, where="post", color=COLOURS[i % 7], linestyle=DASHES[(i // 7 + i) % 7],
                      marker=MARKERS[i % 7], markersize=3.2, markevery=(i % 3, max(1, len(steps) // 6)),
                      label=text(str(name), 34))  # fmt: skip
        axes.set_xlim(1.0, last)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("factor τ to the least mean regret")
        axes.set_ylabel("share of the instances")
        axes.set_title(text(title) if title else f"{table.shape[1]} instances", **NOTE)
        axes.grid(which="major")
        legend_below(figure, axes)
        return finish(figure)


def _score_table(scores: Mapping[str, Any]) -> Array:
    """One row per name; at least one number in every column."""
    rows = []
    for name, values in scores.items():
        try:
            row = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.zeros((0, 0))
        if row.ndim != 1 or not len(row) or (row < 0).any() or np.isinf(row).any():
            raise InvalidOption(f"scores[{name!r}]: expected a list of numbers >= 0 (nan for none), got something else")
        rows.append(row)
    if len({len(row) for row in rows}) > 1:
        raise InvalidOption(f"scores: expected as many numbers of each name, got {sorted({len(r) for r in rows})}")
    table = np.array(rows)
    played: Array = table[:, ~np.isnan(table).all(axis=0)]
    if not played.shape[1]:
        raise InvalidOption("scores: expected at least one number, got nan everywhere")
    return played
