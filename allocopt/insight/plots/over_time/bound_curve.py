"""What no policy can beat at n, beside c·log n and what policies were measured to pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, positive_number
from allocopt.insight.bounds.bound import FiniteTimeBound
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.over_time.regret_over_time import measured_runs
from allocopt.insight.plots.style import (
    BLACK,
    COLOURS,
    DASHES,
    MARKERS,
    NOTE,
    PALE,
    drawing,
    flattened,
    number,
    text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bound_curve", "bound_points"]


@spelled
def bound_curve(
    bounds: Sequence[FiniteTimeBound],
    *,
    constant: float | None = None,
    curves: Mapping[str, Any] | None = None,
    log: bool | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """Finite-time bounds against n, with c·log n and measured regret.

    Parameters
    ----------
    bounds : sequence of FiniteTimeBound
        Of one instance, at different n (at least one).
    constant : float, optional
        c(A,θ): draws c·log n.
    curves : mapping, optional
        Name → what `simulate` returned, or (times, regret), as for `regret_curves`; the means are drawn.
    log : bool, optional
        A logarithmic scale for the regret; by default where one curve ends more than ten times as high as another.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.instances.counter_example(0.2)
    >>> figure = bound_curve([ao.finite_time_bound(bandit, 10**k, 500) for k in (4, 5, 6)], constant=8)
    >>> figure.axes[0].get_xlabel()
    'round n'
    """
    n, values = bound_points(bounds)
    slope = None if constant is None else positive_number("constant", constant, zero=True)
    measured = {str(name): measured_runs(str(name), curve, np.inf) for name, curve in (curves or {}).items()}
    start = min([float(n[0]), *(float(t[0]) for t, _ in measured.values())])
    end = max([float(n[-1]), *(float(t[-1]) for t, _ in measured.values())])
    ends = [float(values[-1]), *(float(r.mean(axis=0)[-1]) for _, r in measured.values())]
    log = flattened(ends) if log is None else bool(log)
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        axes.set_xscale("log")
        axes.set_yscale("log" if log else "linear")
        for i, (name, (times, regret)) in enumerate(measured.items()):
            axes.plot(times, regret.mean(axis=0), color=COLOURS[i % 6], linestyle=DASHES[i % 7], marker=MARKERS[i % 7],
                      markersize=3.2, markevery=max(1, len(times) // 8), label=text(name, 28))  # fmt: skip
        if slope is not None:
            line = np.geomspace(max(start, 1.0), max(end, 1.0), 200)
            line = line[line > (1.0 if log else 0.0)]
            axes.plot(line, slope * np.log(line), color=BLACK, linestyle=(0, (1, 1.2)), linewidth=1.3,
                      label=f"c log n, c = {number(slope)}")  # fmt: skip
        _shade(axes, n, values, log)
        axes.set_xlim(start, end if end > start else 2 * start)
        if not log:
            axes.set_ylim(bottom=0.0)
        axes.set_xlabel("round n")
        axes.set_ylabel("regret")
        axes.set_title("in the shade: only at a price on other instances", **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def _shade(axes: Axes, n: Array, values: Array, log: bool) -> None:
    """The bound as a line, and all below it in a pale colour."""
    shown = values > 0 if log else np.ones(len(values), dtype=bool)
    floor = float(values[shown].min()) * 0.5 if log and shown.any() else 0.0
    axes.fill_between(n[shown], floor, values[shown], color=PALE, linewidth=0, zorder=1)
    axes.plot(n[shown], values[shown], color=BLACK, linewidth=1.6, marker=".", label="finite-time bound", zorder=5)


def bound_points(bounds: Sequence[FiniteTimeBound], name: str = "bounds") -> tuple[Array, Array]:
    """n and value of each bound, in increasing order of n."""
    if not isinstance(bounds, Sequence) or not bounds or not all(isinstance(b, FiniteTimeBound) for b in bounds):
        raise InvalidOption(
            f"{name}: expected a list of FiniteTimeBound, with at least one, got a {type(bounds).__name__}"
        )
    ordered = sorted(bounds, key=lambda b: b.n)
    if len({b.n for b in ordered}) < len(ordered):
        raise InvalidOption(f"{name}: expected one bound for each n, got several for one")
    return np.array([float(b.n) for b in ordered]), np.array([b.value for b in ordered])
