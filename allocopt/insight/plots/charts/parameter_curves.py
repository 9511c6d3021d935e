"""A quantity along a family's parameter, with the band between its certified bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from allocopt.base.errors import AllocoptError, InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray, vector
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import (
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    NOTE,
    WIDE,
    drawing,
    number,
    text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["family_curve"]


_FINE = 200  # points at which a closed form is drawn


class Curve(NamedTuple):
    """A curve with its points in increasing order."""

    name: str
    points: Array
    lower: Array
    upper: Array
    order: IntArray
    """Where each point was in what the user gave."""


@spelled
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
    ax: Any = None,
    width: Width = None,
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
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> figure = family_curve([0.1, 0.2, 0.4], [19, 9, 4], [21, 11, 6], parameter="ε", reference=lambda e: 2 / e)
    >>> figure.axes[0].get_xlabel()
    'ε'
    """
    curves = _curves(parameter_values, lower, upper, label)
    x_all = np.concatenate([c.points for c in curves])
    bounds = np.concatenate([np.concatenate([c.lower, c.upper]) for c in curves])
    x_log, y_log = _log_axes(log, x_all, bounds[np.isfinite(bounds)])
    with drawing():
        board = canvas(ax, width, 0.74)
        axes = board.axes
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
            points, values = _reference(reference, curves, x_log)
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
        board.legend()
        return board.done()


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


def _reference(reference: Any, curves: list[Curve], x_log: bool) -> tuple[Array, Array]:
    points = np.unique(np.concatenate([c.points for c in curves]))
    if callable(reference):
        points = _between(points, x_log)
        values = np.array([_evaluated(reference, p) for p in points.tolist()])
    elif np.ndim(reference) == 0:
        values = np.full(len(points), vector("reference", [reference], InvalidOption)[0])
    else:
        if len(curves) > 1:
            raise InvalidOption("reference: expected a number or a function beside several curves, got a list")
        points = curves[0].points
        values = _with_gaps("reference", reference, len(points))[curves[0].order]
    return points, values


def _between(points: Array, x_log: bool) -> Array:
    """The points, and so many between them that a closed form is seen as the curve it is; whole numbers between whole numbers."""
    if len(points) < 2:
        return points
    if (points == np.round(points)).all() and points[-1] - points[0] >= len(points):
        fill = np.round(np.linspace(points[0], points[-1], _FINE))
    elif (points == np.round(points)).all():
        return points
    else:
        fill = np.geomspace(points[0], points[-1], _FINE) if x_log else np.linspace(points[0], points[-1], _FINE)
    return np.unique(np.concatenate([points, fill]))


def _evaluated(closed_form: Callable[..., Any], at: float) -> float:
    """The closed form there; nan where it knows none."""
    try:
        value = closed_form(at)
    except (AllocoptError, ArithmeticError, ValueError):
        return float("nan")
    return float("nan") if value is None else float(value)


def _every(length: int) -> int:
    """Markers on about twelve points, so that they tell curves apart without hiding them."""
    return max(1, length // 12)


def _percent(share: float) -> str:
    return f"{number(100 * share)} %" if share < 10 else f"{number(share)}-fold"
