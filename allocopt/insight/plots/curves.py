"""Curves: a quantity along a family with its certified band, and regret over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray, matrix, positive_number, vector
from allocopt.insight.plots.style import (
    BLACK,
    COLOURS,
    COLUMN,
    DASHES,
    GREY,
    MARKERS,
    NOTE,
    WIDE,
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


class Curve(NamedTuple):
    """A curve with its points in increasing order."""

    name: str
    points: Array
    lower: Array
    upper: Array
    order: IntArray
    """Where each point was in what the user gave."""


def family_curve(
    parameter_values: Any,
    lower: Any = None,
    upper: Any = None,
    *,
    parameter: str,
    quantity: str = "c",
    reference: float | Sequence[float] | Array | Callable[[Array], Any] | None = None,
    log: str | bool | None = None,
    label: str | None = None,
    width: float = COLUMN,
) -> Figure:
    """A quantity along a family, with the band between its certified bounds.

    Parameters
    ----------
    parameter_values, lower, upper : array_like
        The points, and the bounds at each; points without two finite bounds are marked as not solved. Several curves: a
        mapping from label to (points, lower, upper) in place of the first, and no other two.
    parameter, quantity : str
        What the axes show.
    reference : number, array_like or function, optional
        A closed form to compare with: a constant, a value per point (of the only curve), or a function of the points.
    log : {"", "x", "y", "xy"}, bool, optional
        Which axes are logarithmic; by default those whose values are positive and span more than a factor of 30.

    Examples
    --------
    >>> figure = family_curve([0.1, 0.2, 0.4], [19, 9, 4], [21, 11, 6], parameter="ε", reference=lambda e: 2 / e)
    >>> figure.axes[0].get_xlabel()
    'ε'
    """
    curves = _curves(parameter_values, lower, upper, label)
    inches = checked_width(width)
    x_all = np.concatenate([c.points for c in curves])
    bounds = np.concatenate([np.concatenate([c.lower, c.upper]) for c in curves])
    x_log, y_log = _log_axes(log, x_all, bounds[np.isfinite(bounds)])
    with drawing():
        figure = new_figure(inches, 0.74 * inches)
        axes = figure.subplots()
        axes.set_xscale("log" if x_log else "linear")
        axes.set_yscale("log" if y_log else "linear")
        widest, missing = 0.0, []
        for i, (name, x, low, high, _) in enumerate(curves):
            colour, marker, dash = COLOURS[i % 7], MARKERS[i % 7], DASHES[(i // 7 + i) % 7]
            solved = np.isfinite(low) & np.isfinite(high)
            missing.append(x[~solved])
            low, high = np.where(solved, low, np.nan), np.where(solved, high, np.nan)
            axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.plot(x, high, color=colour, linestyle=dash, marker=marker, markersize=3.2, markevery=_every(len(x)),
                      label=name)  # fmt: skip
            axes.plot(x, low, color=colour, linewidth=0.5)
            if solved.any():
                with np.errstate(divide="ignore", invalid="ignore"):
                    widest = max(widest, float(np.nanmax((high - low) / np.maximum(np.abs(low), NOT_ZERO))))
        if reference is not None:
            points, values = _reference(reference, curves)
            axes.plot(
                points, values, color="#BDBDBD", linewidth=4.0, label="closed form", zorder=1.5
            )  # behind the curve
        absent = np.concatenate(missing)
        if len(absent):
            axes.plot(absent, np.full(len(absent), 0.02), transform=axes.get_xaxis_transform(), linestyle="none",
                      marker="x", color=GREY, markersize=4, label="not solved", clip_on=False)  # fmt: skip
        axes.set_title(f"band: certified bounds, at most {_percent(widest)} apart", **NOTE)
        axes.set_xlabel(text(parameter, 60))
        axes.set_ylabel(text(quantity, 60))
        axes.grid(which="major")
        legend_below(figure, axes)
        return finish(figure)


def _curves(points: Any, lower: Any, upper: Any, label: str | None) -> list[Curve]:
    if isinstance(points, Mapping):
        if lower is not None or upper is not None:
            raise InvalidOption("lower, upper: expected none beside a mapping of curves, which brings its own")
        given: dict[Any, Any] = dict(points)
    else:
        if lower is None or upper is None:
            raise InvalidOption("lower, upper: expected both bounds, got none")
        given = {"upper bound" if label is None else label: (points, lower, upper)}
    if not given:
        raise InvalidOption("parameter_values: expected at least one curve, got none")
    curves = []
    for name, curve in given.items():
        if not isinstance(curve, Sequence) or isinstance(curve, str) or len(curve) != 3:
            raise InvalidOption(f"curve {name!r}: expected (points, lower, upper), got a {type(curve).__name__}")
        x = vector(f"curve {name!r}: points", curve[0], InvalidOption)
        if not len(x):
            raise InvalidOption(f"curve {name!r}: expected at least one point, got none")
        low, high = (
            _with_gaps(f"curve {name!r}: {what}", v, len(x))
            for what, v in zip(("lower", "upper"), curve[1:], strict=True)
        )
        if (low > high).any():
            i = int(np.flatnonzero(low > high)[0])
            raise InvalidOption(f"curve {name!r}: lower {low[i]:g} is above upper {high[i]:g} at {x[i]:g}")
        order = np.argsort(x, kind="stable")
        curves.append(Curve(text(str(name), 40), x[order], low[order], high[order], order))
    return curves


def _with_gaps(name: str, values: Any, length: int) -> Array:
    """A vector in which nan (or None, or inf) stands for what is missing."""
    try:
        raw = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidOption(f"{name}: expected {length} numbers, got a {type(values).__name__}") from None
    if raw.shape != (length,):
        raise InvalidOption(f"{name}: expected {length} numbers, one per point, got shape {raw.shape}")
    return raw


def _log_axes(log: str | bool | None, x: Array, y: Array) -> tuple[bool, bool]:
    positive = [bool(len(v)) and bool((v > 0).all()) for v in (x, y)]
    if log is None:
        wide = [ok and float(v.max()) > WIDE * float(v.min()) for ok, v in zip(positive, (x, y), strict=True)]
        return wide[0], wide[1]
    asked = "xy" if log is True else "" if log is False else log
    if asked not in ("", "x", "y", "xy"):
        raise InvalidOption(f"log: expected '', 'x', 'y', 'xy', True or False, got {log!r}")
    for name, ok, v in (("x", positive[0], x), ("y", positive[1], y)):
        if name in asked and not ok and len(v):
            raise InvalidOption(f"log: expected positive values on the {name} axis, got {float(v.min()):g}")
    return "x" in asked, "y" in asked


def _reference(reference: Any, curves: list[Curve]) -> tuple[Array, Array]:
    points = np.unique(np.concatenate([c.points for c in curves]))
    if callable(reference):
        values = np.array([reference(float(p)) for p in points], dtype=np.float64)
    elif np.ndim(reference) == 0:
        values = np.full(len(points), vector("reference", [reference], InvalidOption)[0])
    else:
        if len(curves) > 1:
            raise InvalidOption("reference: expected a number or a function beside several curves, got a list")
        points = curves[0].points
        values = _with_gaps("reference", reference, len(points))[curves[0].order]
    return points, values


def _every(length: int) -> int:
    """Markers on about twelve points, so that they tell curves apart without hiding them."""
    return max(1, length // 12)


def _percent(share: float) -> str:
    return f"{number(100 * share)} %" if share < 10 else f"{number(share)}-fold"


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
