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

from allocopt.base.spelling import spelled
from allocopt.insight.plots.canvas import Width, given_axes, inches_of
from allocopt.insight.plots.instance_pictures.arms_panel import arms_2d, arms_3d
from allocopt.insight.plots.instance_pictures.parameters_panel import parameters_2d, parameters_3d
from allocopt.insight.plots.instance_pictures.sets import picture_of
from allocopt.insight.plots.style import drawing, finish, new_figure
from allocopt.model.bandit import LinearBandit
from allocopt.model.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["geometry"]

_SIDE_BY_SIDE = 5.5  # inches from which the two panels stand side by side


@spelled
def geometry(
    bandit: LinearBandit,
    solution: Solution | None = None,
    alternatives: Sequence[Any] | None = None,
    *,
    horizon: float | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """Arms, x*, the allocation as area, the binding arms, and the confidence set of the optimal design.

    Parameters
    ----------
    bandit : LinearBandit
        In two or three dimensions; more cannot be drawn without leaving out what matters.
    solution : Solution, optional
        Of a program with this bandit's arms: regret (which is solved where none is given), horizon, best arm, G-optimal, optimism or
        remaining.
    alternatives : sequence, optional
        Parameters θ' to mark: objects with ``arm`` (the arm that is best there) and ``theta``, such as those of
        ``hardness(bandit).alternatives``.
    horizon : int, optional
        The number of rounds n of the dashed ellipse (d = 2); by default the first power of ten of which exploration takes
        at most a tenth.
    ax : sequence of two Axes, optional
        Where to draw the two panels, instead of on a figure of its own; with ``projection="3d"`` where the panel is in space.
    width : float or str
        Inches, "column" (3.4, the default; the panels one above the other) or "page" (7.0; side by side).

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt import plots
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0])
    >>> figure = plots.geometry(bandit)
    >>> [axes.get_title() for axes in figure.axes]
    ['arms', 'parameters']
    """
    picture = picture_of(bandit, solution, alternatives, horizon)
    flat = picture.slice is not None
    inches = inches_of(width, ax)
    draw_arms = arms_2d if bandit.dim == 2 else arms_3d
    draw_parameters = parameters_2d if flat else parameters_3d
    with drawing():
        if ax is not None:
            upper, lower = given_axes(ax, 2, spatial=(bandit.dim == 3, not flat))
            draw_arms(upper, picture)
            draw_parameters(lower, picture)
            figure: Figure = upper.get_figure(root=True)
            return figure
        beside = inches >= _SIDE_BY_SIDE
        panel = inches / 2 if beside else inches
        # what an equal aspect leaves of the width, and the lines of text around it
        above = 0.70 * panel + 0.95 if bandit.dim == 2 else 0.80 * panel + 0.5
        below = 0.58 * panel + 1.1 if flat else 0.80 * panel + 0.4
        figure = new_figure(inches, max(above, below) + 0.15 if beside else above + below)
        parts: Any = figure.subfigures(1, 2) if beside else figure.subfigures(2, 1, height_ratios=(above, below))
        draw_arms(parts[0], picture)
        draw_parameters(parts[1], picture)
        return finish(figure)
