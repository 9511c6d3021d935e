"""How much less or more one policy has paid than another, as rounds go by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import BLACK, BLUE, NOTE, drawing, text
from allocopt.play.simulation.compare import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["regret_difference"]


@spelled
def regret_difference(found: Comparison, *, ax: Any = None, width: Width = None) -> Figure:
    """The mean difference of two policies' regret against n, with the band that holds it at all times together.

    Parameters
    ----------
    found : Comparison
        From `compare`. Below 0 the first policy pays less.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.95, 0.1]], [1, 0])
    >>> r1, r2 = (ao.simulate(name, bandit, 1000, 20, rng=0) for name in ("LinTS", "UCB"))
    >>> regret_difference(ao.compare(r1, r2)).axes[0].get_ylabel()
    'regret: LinTS − UCB'
    """
    if not isinstance(found, Comparison):
        raise InvalidOption(f"found: expected a Comparison, got a {type(found).__name__}")
    with drawing():
        board = canvas(ax, width, 0.7)
        axes = board.axes
        axes.set_xscale("log")
        axes.axhline(0.0, color=BLACK, linewidth=0.8)
        axes.fill_between(found.times, found.lower, found.upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(
            found.times,
            found.difference,
            color=BLUE,
            marker="o",
            markersize=3.2,
            markevery=max(1, len(found.times) // 8),
        )
        start, end = float(found.times[0]), float(found.times[-1])
        axes.set_xlim(start, end if end > start else 2 * start)
        axes.set_xlabel("round n")
        axes.set_ylabel(f"regret: {text(found.first)} − {text(found.second)}")
        axes.set_title(f"mean, and a {found.confidence:.0%} band for all rounds shown", **NOTE)
        axes.grid(which="major")
        return board.done()
