r"""The geometry of an instance in two or three dimensions: where the arms are, what is played, and what that rules out.

Two panels. *Arms*: every arm as a point, α as area, the binding arms ringed. *Parameters*: the set {θ': ||θ' − θ||²_{H(α)} <= 2σ²}
that optimal play cannot rule out, inside the region where x* stays best; it touches the boundary of each binding arm.

Optimal arms have α = ∞, so the set has no width in their directions: it is a segment for d = 2 and a flat ellipse, drawn in
its own plane, for d = 3. For d = 2 the ellipse after a stated number of rounds is drawn as well: x* takes the rounds that the
exploration leaves over, and the ellipse closes on the segment as n grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from allocopt.insight.plots.arms_panel import arms_2d, arms_3d
from allocopt.insight.plots.parameters_panel import parameters_2d, parameters_3d
from allocopt.insight.plots.sets import picture_of
from allocopt.insight.plots.style import (
    COLUMN,
    checked_width,
    drawing,
    finish,
    new_figure,
)
from allocopt.model.bandit import LinearBandit
from allocopt.model.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["geometry"]


def geometry(
    bandit: LinearBandit,
    solution: Solution,
    alternatives: Sequence[Any] | None = None,
    *,
    horizon: float | None = None,
    width: float = COLUMN,
) -> Figure:
    """Arms, x*, the allocation as area, the binding arms, and the confidence set of the optimal design.

    Parameters
    ----------
    bandit : LinearBandit
        In two or three dimensions; more cannot be drawn without leaving out what matters.
    solution : Solution
        Of a program with this bandit's arms: regret, horizon, best arm, G-optimal, optimism or remaining.
    alternatives : sequence, optional
        Parameters θ' to mark: objects with ``arm`` (the arm that is best there) and ``theta``, such as those of
        ``hardness(bandit).alternatives``.
    horizon : int, optional
        The number of rounds n of the dashed ellipse (d = 2); by default the first power of ten of which exploration takes
        at most a tenth.
    width : float
        Inches.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt import plots
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0])
    >>> figure = plots.geometry(bandit, ao.solve(ao.programs.regret(bandit)))
    >>> [axes.get_title() for axes in figure.axes]
    ['arms', 'parameters']
    """
    picture = picture_of(bandit, solution, alternatives, horizon)
    inches = checked_width(width)
    flat = picture.slice is not None
    with drawing():
        # what an equal aspect leaves of the width, and the lines of text around it
        above = 0.70 * inches + 0.95 if bandit.dim == 2 else 0.80 * inches + 0.5
        below = 0.58 * inches + 1.1 if flat else 0.80 * inches + 0.4
        figure = new_figure(inches, above + below)
        parts: Any = figure.subfigures(2, 1, height_ratios=(above, below))
        upper, lower = parts
        (arms_2d if bandit.dim == 2 else arms_3d)(upper, picture)
        (parameters_2d if flat else parameters_3d)(lower, picture)
        return finish(figure)
