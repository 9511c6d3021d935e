"""Performance profiles (Dolan & Moré 2002): in which share of the cases each competitor is within a factor of the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import COLOURS, DASHES, MARKERS, NOTE, drawing, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["profile_ratios", "profiles"]

_FARTHEST = 1e3  # factors beyond are not drawn


def profiles(
    table: Any,
    *,
    quantity: str = "regret",
    most: float | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """The share of cases in which a competitor's cost is at most τ times the best one's, against τ.

    Parameters
    ----------
    table : mapping or data frame
        Competitor → its cost in every case (instance, run, seed), all of one length, smaller is better; nan, None and inf stand for a
        case that it did not finish. A data frame has a column for each competitor.
    quantity : str
        What is compared.
    most : float, optional
        The largest τ shown; by default the one at which nothing changes any more, 1000 at most.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> figure = profiles({"LinUCB": [10.0, 20.0, 30.0], "UCB": [40.0, 15.0, 31.0]})
    >>> figure.axes[0].get_ylabel()
    'share of 3 cases'
    """
    names, ratios = profile_ratios(table)
    finite = ratios[np.isfinite(ratios)]
    end = float(min(max(finite.max(initial=1.0) * 1.1, 1.2), _FARTHEST)) if most is None else _factor(most)
    cases = ratios.shape[1]
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        if end > 5.0:
            axes.set_xscale("log")
        for i, (name, row) in enumerate(zip(names, ratios, strict=True)):
            reached = np.sort(row[np.isfinite(row)])
            steps = np.concatenate([[1.0], reached, [max(end, 1.0)]])
            share = np.concatenate([[0.0], np.arange(1, len(reached) + 1), [len(reached)]]) / cases
            axes.plot(steps, share, drawstyle="steps-post", color=COLOURS[i % 7], linestyle=DASHES[(i // 7 + i) % 7],
                      marker=MARKERS[i % 7], markersize=3.2, markevery=(i % 3, max(1, len(steps) // 6)), label=text(name, 28),
                      clip_on=False)  # fmt: skip
        axes.set_xlim(1.0, end)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(f"τ: {text(quantity, 40)} at most τ times the best one's")
        axes.set_ylabel(f"share of {cases} case{'s' * (cases != 1)}")
        axes.set_title("at τ = 1: how often it is the best; higher is better", **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def profile_ratios(table: Any) -> tuple[list[str], Array]:
    """Names, and the cost of each in every case over the best cost there (inf where it did not finish); what `profiles` draws.

    Examples
    --------
    >>> profile_ratios({"a": [1.0, 4.0], "b": [2.0, None]})[1]
    array([[ 1.,  1.],
           [ 2., inf]])
    """
    columns = {name: table[name] for name in table.columns} if hasattr(table, "columns") else table
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidOption(
            f"table: expected a mapping from names to costs, or a data frame, got a {type(table).__name__}"
        )
    costs = np.array([_costs(str(name), column) for name, column in columns.items()])
    best = np.min(costs, axis=0)
    ratios = np.full(costs.shape, np.inf)
    finished = np.isfinite(costs)
    free = finished & (best == 0.0)  # a cost of zero: as good as the best or without end
    ratios[free] = np.where(costs[free] == 0.0, 1.0, np.inf)
    counted = finished & (best > 0.0)
    ratios[counted] = (costs / np.where(best > 0.0, best, 1.0))[counted]
    return [str(name) for name in columns], ratios


def _costs(name: str, column: Any) -> Array:
    try:
        costs = np.array([np.inf if x is None else x for x in column], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidOption(f"table[{name!r}]: expected numbers, got a {type(column).__name__}") from None
    if costs.ndim != 1 or not len(costs):
        raise InvalidOption(f"table[{name!r}]: expected one number per case, got shape {costs.shape}")
    costs = np.where(np.isnan(costs), np.inf, costs)
    if (costs < 0).any():
        raise InvalidOption(f"table[{name!r}]: expected costs >= 0, got {float(costs.min()):g}")
    return costs


def _factor(most: Any) -> float:
    if not isinstance(most, int | float) or not 1.0 < most < np.inf:
        raise InvalidOption(f"most: expected a factor above 1, got {most!r}")
    return float(most)
