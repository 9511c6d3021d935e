"""An audit as a picture: what each arm got and what it needed, and where the evidence is short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, whole_number
from allocopt.insight.plots.canvas import Width, given_axes, inches_of
from allocopt.insight.plots.style import BLACK, BLUE, GREY, NOTE, ORANGE, arm_names, drawing, finish, new_figure, number
from allocopt.play.audit import Audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["audit_bars"]

_MOST_ARMS: Final = 100


@spelled
def audit_bars(found: Audit, most: int = 15, *, time: int = -1, ax: Any = None, width: Width = None) -> Figure:
    """Pulls beside α·log n, and the evidence ratio, of the arms that an audit complains most about.

    Left: the dot is what the arm was pulled, the bar what optimal play needs; both on a logarithmic scale. Right: the evidence ratio
    2σ² log(n) ||x − x*||²_{G^-1}/Δ²; right of the line at 1 there is too little to tell the arm from the best one.

    Parameters
    ----------
    found : Audit
        What `audit` returned.
    most : int
        So many arms at most: those with the least evidence first.
    time : int
        The position of the time, the last one by default.
    ax : sequence of two Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> figure = audit_bars(ao.audit(bandit, [900, 10, 90], 1000))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['arm 2', 'arm 1']
    """
    if not isinstance(found, Audit):
        raise InvalidOption(f"found: expected an Audit, got a {type(found).__name__}")
    limit, inches = whole_number("most", most, least=1), inches_of(width, ax)
    if limit > _MOST_ARMS:
        raise InvalidOption(f"most: expected at most {_MOST_ARMS} arms, which can still be read, got {limit}")
    rows = [row for row in found.table(time) if np.isfinite(row.optimal_pulls)]
    hidden = len(rows) - limit
    rows = rows[:limit]
    if not rows:
        raise InvalidOption("found: expected a suboptimal arm, but every arm is optimal: there is nothing to draw")
    names = arm_names(found.bandit.labels, [row.arm for row in rows])
    with drawing():
        left: Axes
        right: Axes
        if ax is None:
            figure = new_figure(inches, 1.15 + 0.19 * len(rows))
            left, right = figure.subplots(1, 2, sharey=True)
        else:
            left, right = given_axes(ax, 2, spatial=(False, False))
            figure = left.get_figure(root=True)  # type: ignore[assignment]
        _pulls(left, np.array([row.pulls for row in rows]), np.array([row.optimal_pulls for row in rows]))
        _evidence(right, np.array([row.evidence for row in rows]))
        for axes in (left, right):
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x")
        left.set_yticks(np.arange(len(rows)), names)
        right.tick_params(axis="y", labelleft=False)
        n = int(found.n[time])
        more = f"; {hidden} more arms" if hidden > 0 else ""
        left.set_title(f"n = {number(n)}, regret {number(float(found.regret_ratio[time]))}·c log n{more}", **NOTE)
        return finish(figure) if ax is None else figure


def _pulls(axes: Axes, pulls: Array, wanted: Array) -> None:
    places = np.arange(len(pulls))
    axes.set_xscale("symlog", linthresh=1.0)
    axes.barh(places, wanted, height=0.62, color=BLUE, alpha=0.35, label="α·log n")
    axes.plot(pulls, places, linestyle="none", marker="o", color=BLACK, markersize=4, label="pulls")
    top = float(max(pulls.max(), wanted.max(), 1.0))
    axes.set_xlim(0.0, 3 * top)
    steps = [10.0**k for k in range(int(np.log10(top)) + 1)]
    axes.set_xticks([0.0, *steps[:: max(1, len(steps) // 3)]])
    axes.minorticks_off()
    axes.set_xlabel("● pulls, bar: α·log n")


def _evidence(axes: Axes, evidence: Array) -> None:
    places = np.arange(len(evidence))
    finite = np.isfinite(evidence) & (evidence > 0)
    low = min(float(evidence[finite].min(initial=1.0)), 1.0) / 2
    high = max(float(evidence[finite].max(initial=1.0)), 1.0) * 2
    axes.set_xscale("log")
    if high < 100.0 * low:  # too narrow for decades alone, too narrow as well for a label at every tick
        axes.set_xticks([low, 1.0, high], [f"{low:.1g}", "1", f"{high:.1g}"])
    axes.xaxis.minorticks_off()
    axes.set_xlim(0.9 * low, 1.1 * high)
    shown = np.clip(np.where(np.isfinite(evidence), evidence, high), low, high)
    short = evidence > 1.0
    for chosen, colour, mark in ((~short, GREY, "o"), (short, ORANGE, "X")):
        axes.hlines(places[chosen], 1.0, shown[chosen], color=colour, linewidth=1.6)
        axes.plot(shown[chosen], places[chosen], linestyle="none", marker=mark, color=colour, markersize=5)
    for place in places[np.isinf(evidence)].tolist():
        axes.annotate("∞", (high, place), xytext=(-9, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(1.0, color=BLACK, linewidth=0.8)
    axes.set_xlim(low, high * 1.15)
    axes.set_xlabel("evidence ratio\n(✕ above 1: too little)")
