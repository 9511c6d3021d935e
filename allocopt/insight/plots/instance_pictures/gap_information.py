"""Arms in any dimension: the gap of each against how well optimal play knows it, and the curve that no arm may lie above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.names import place_labels
from allocopt.insight.plots.style import (
    BLACK,
    GREY,
    NOTE,
    PURPLE,
    SKY,
    UNITS,
    arm_names,
    drawing,
    number,
)
from allocopt.linear.information import Directions
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.model.solution import Solution
from allocopt.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["gap_information"]

_LARGEST_DISC: Final = 220.0  # square points
_MOST_POINTS: Final = 2000
_MOST_NAMED: Final = 6
_KINDS: Final = ("regret", "contextual", "horizon", "optimism", "remaining")


@spelled
def gap_information(solution: Solution | LinearBandit, *, ax: Any = None, width: Width = None) -> Figure:
    r"""Every suboptimal arm by its gap Δ and its uncertainty ||x||²_{H(α)^-1}, in any dimension.

    The constraints of the program are the curve Δ²/(2σ²) (Δ²/f_n for a horizon): every arm lies on it or below, binding arms on it.
    The area of a disc is α, what the arm is played for; arms that are played although they are far below the curve are played for what
    they tell about others.

    Parameters
    ----------
    solution : Solution or LinearBandit
        Of a program whose costs are gaps: regret, contextual, horizon, optimism or remaining. Of a bandit the regret program is
        solved.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.instances.random_unit(5, 30, seed=1)
    >>> figure = gap_information(bandit)
    >>> figure.axes[0].get_xlabel()
    'gap Δ'
    """
    if isinstance(solution, LinearBandit):
        solution = solve(regret(solution))
    if not isinstance(solution, Solution):
        raise InvalidOption(f"solution: expected a Solution or a LinearBandit, got a {type(solution).__name__}")
    program = solution.program
    if program.kind not in _KINDS:
        raise InvalidOption(f"solution: expected one of a program with gaps ({', '.join(_KINDS)}), got {program.kind}")
    arms, gaps, norms, radii = _numbers(solution)
    if not len(arms):
        raise InvalidOption("solution: expected a suboptimal arm, but every arm is optimal: there is nothing to draw")
    alpha = solution.allocation[arms]
    chosen = _chosen(alpha, np.isin(arms, solution.binding))
    with drawing():
        board = canvas(ax, width, 0.86)
        axes = board.axes
        axes.set_xscale("log")
        axes.set_yscale("log")
        scale = float(np.median(radii / gaps**2))
        line = np.geomspace(gaps.min() / 1.6, gaps.max() * 1.6, 200)
        axes.plot(
            line,
            scale * line**2,
            color=BLACK,
            linestyle=(0, (1, 1.2)),
            linewidth=1.3,
            label=_curve_name(scale),
            zorder=1,
        )
        _discs(axes, solution, arms[chosen], gaps[chosen], norms[chosen])
        axes.set_xlim(line[0], line[-1])
        shown = norms[chosen][norms[chosen] > 0]
        low = float(shown.min(initial=scale * line[0] ** 2))
        axes.set_ylim(min(low, scale * line[0] ** 2) / 2, 1.5 * scale * line[-1] ** 2)
        axes.set_xlabel("gap Δ")
        axes.set_ylabel("uncertainty ‖x‖² in H(α)⁻¹")
        hidden = len(arms) - len(chosen)
        more = f"; {hidden:,} of {len(arms):,} arms left out" if hidden else ""
        axes.set_title(f"no arm may lie above the line{more}", **NOTE)
        axes.grid(which="major")
        board.legend()
        _names(axes, solution, arms[chosen], gaps[chosen], norms[chosen], np.column_stack([line, scale * line**2]))
        return board.done()


def _numbers(solution: Solution) -> tuple[IntArray, Array, Array, Array]:
    """Suboptimal arms, their gaps, squared norms in H(α)^-1 (optimal arms played without end), and what these may be."""
    program = solution.program
    assert program.target_arms is not None
    arms = program.target_arms
    free = solution.optimal_arms
    counts = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    if program.noise_variance is not None:
        counts = counts / program.noise_variance
    norms = Directions.of(program.features, program.targets, free).quotient_norms(counts)
    return arms, program.costs[arms], norms, program.radii


def _chosen(alpha: Array, binding: Any) -> IntArray:
    """All arms that are played or bind, and as many of the others as can be seen, evenly chosen."""
    matters = np.flatnonzero((alpha > 0) | binding)
    rest = np.flatnonzero(~((alpha > 0) | binding))
    return np.concatenate([rest[:: max(1, -(-len(rest) // _MOST_POINTS))], matters])


def _discs(axes: Any, solution: Solution, arms: IntArray, gaps: Array, norms: Array) -> None:
    alpha = solution.allocation[arms]
    top = float(alpha.max(initial=0.0))
    seen = np.maximum(norms, NOT_ZERO)
    played = alpha > 0
    if top > 0:
        size = _LARGEST_DISC * alpha[played] / top
        unit = UNITS[solution.program.kind]
        axes.scatter(gaps[played], seen[played], s=size, color=SKY, alpha=0.75, linewidth=0, zorder=2,
                     label=f"α as area, largest {number(top)} {unit}")  # fmt: skip
    many = len(arms) > 60
    axes.scatter(gaps, seen, s=3 if many else 7, color=GREY if many else BLACK, linewidth=0, zorder=3, label="arm")
    binding = np.isin(arms, solution.binding)
    axes.scatter(gaps[binding], seen[binding], s=30, facecolors="none", edgecolors=PURPLE, linewidths=1.1, zorder=4,
                 label="binding arm")  # fmt: skip


def _names(axes: Any, solution: Solution, arms: IntArray, gaps: Array, norms: Array, line: Array) -> None:
    """The arms that take the most regret, by name, beside the line."""
    alpha = solution.allocation[arms]
    order = np.argsort(-(alpha * gaps), kind="stable")[:_MOST_NAMED]
    order = order[(alpha[order] > 0) & (norms[order] > 0)]
    if not len(order):
        return
    points = np.column_stack([gaps, np.maximum(norms, NOT_ZERO)])
    top = float(alpha.max())
    radius = np.sqrt(_LARGEST_DISC * np.maximum(alpha, 0.0) / top / np.pi)
    distance = [max(6.0, 3.0 + r) for r in radius[order].tolist()]
    names = arm_names(solution.labels, arms[order].tolist(), 14)
    near = order if len(arms) > 400 else np.arange(len(arms))
    avoided, sizes = np.vstack([points[near], line]), np.concatenate([radius[near], np.ones(len(line))])
    place_labels(axes, points[order], names, distance, avoided, sizes)


def _curve_name(scale: float) -> str:
    over = 1.0 / scale
    return "Δ²/2" if abs(over - 2.0) < 1e-9 else f"Δ²/{number(over)}"
