"""Performance profiles (Dolan & Moré 2002): in which share of the cases each competitor is within a factor of the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, positive_number
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import COLOURS, DASHES, MARKERS, NOTE, drawing, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["performance_profiles", "profile_factors"]

_LINEAR_UP_TO = 5.0  # factors up to here are shown on a linear scale


@spelled
def performance_profiles(
    scores: Any,
    *,
    most: float = 100.0,
    title: str = "",
    quantity: str = "least mean regret",
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """On which share of the instances each policy is within a factor τ of the best one (Dolan & Moré 2002).

    Parameters
    ----------
    scores : mapping or data frame
        Name → mean regret (or any cost) on each instance, the instances in the same order for all; nan, None or inf where it did not
        finish, which counts as never within any factor. A data frame has a column for each name.
    most : float
        The largest factor τ that is shown.
    title : str, optional
        Drawn above.
    quantity : str
        What τ is a multiple of.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> figure = performance_profiles({"UCB": [5, 9, 15], "LinTS": [4, 11, 3]})
    >>> figure.axes[0].lines[1].get_ydata()[0].round(3).item()  # LinTS is the best on two of three
    0.667
    """
    last = positive_number("most", most)
    if last <= 1:
        raise InvalidOption(f"most: expected a number above 1, got {most!r}")
    names, factors = profile_factors(scores)
    with drawing():
        board = canvas(ax, width, 0.7)
        axes = board.axes
        axes.set_xscale("log" if last > _LINEAR_UP_TO else "linear")
        for i, (name, of_policy) in enumerate(zip(names, factors, strict=True)):
            steps = np.unique(np.concatenate([[1.0], of_policy[of_policy <= last], [last]]))
            height = (of_policy[None, :] <= steps[:, None]).mean(axis=1)
            axes.step(steps, height, where="post", color=COLOURS[i % 7], linestyle=DASHES[(i // 7 + i) % 7],
                      marker=MARKERS[i % 7], markersize=3.2, markevery=(i % 3, max(1, len(steps) // 6)),
                      label=text(name, 34))  # fmt: skip
        axes.set_xlim(1.0, last)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel(f"factor τ to the {text(quantity, 40)}")
        axes.set_ylabel("share of the instances")
        count = factors.shape[1]
        axes.set_title(text(title, 60) if title else f"{count} instance{'s' * (count != 1)}; higher is better", **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def profile_factors(scores: Any) -> tuple[list[str], Array]:
    """Names, and the cost of each over the best cost of each instance that anybody finished; inf where it did not finish.

    Examples
    --------
    >>> profile_factors({"a": [1.0, 4.0, None], "b": [2.0, None, None]})[1]
    array([[ 1.,  1.],
           [ 2., inf]])
    """
    given = {name: scores[name] for name in scores.columns} if hasattr(scores, "columns") else scores
    if not isinstance(given, Mapping) or not given:
        raise InvalidOption(
            "scores: expected a mapping from names to numbers, or a data frame, with at least one entry"
        )
    rows = [_costs(str(name), values) for name, values in given.items()]
    if len({len(row) for row in rows}) > 1:
        raise InvalidOption(f"scores: expected as many numbers of each name, got {sorted({len(r) for r in rows})}")
    table = np.array(rows)
    table = table[:, np.isfinite(table).any(axis=0)]
    if not table.shape[1]:
        raise InvalidOption("scores: expected at least one number, got nan everywhere")
    best = table.min(axis=0)
    factors: Array = np.full(table.shape, np.inf)  # beside a best cost of zero, any other is infinitely many times that
    np.divide(table, best, out=factors, where=np.isfinite(table) & (best > 0.0))
    factors[table == best] = 1.0
    return [str(name) for name in given], factors


def _costs(name: str, values: Any) -> Array:
    """Costs, inf where there is none."""
    try:
        row = np.array([np.nan if x is None else x for x in values], dtype=np.float64)
    except (TypeError, ValueError):
        row = np.zeros((0, 0))
    if row.ndim != 1 or not len(row) or (row < 0).any():
        raise InvalidOption(f"scores[{name!r}]: expected a list of numbers >= 0 (nan for none), got something else")
    return np.where(np.isnan(row), np.inf, row)
