"""How often a policy pulls each arm as rounds go by, beside α·log n, which optimal play needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, whole_number
from allocopt.insight.plots.canvas import Width, canvas
from allocopt.insight.plots.style import COLOURS, DASHES, MARKERS, NOTE, above_noise, arm_names, drawing, flattened
from allocopt.model import programs
from allocopt.model.contexts import ContextualBandit
from allocopt.model.solution import Solution
from allocopt.play.simulation.result import SimulationResult
from allocopt.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pulls_over_time"]

_MOST_ARMS: Final = 5


@spelled
def pulls_over_time(
    result: SimulationResult,
    arms: Sequence[int] | None = None,
    *,
    solution: Solution | None = None,
    ax: Any = None,
    width: Width = None,
) -> Figure:
    """Mean pulls of suboptimal arms against n, and α·log n of each as a dotted line in its colour.

    Parameters
    ----------
    result : SimulationResult
        With pulls at its times, as `simulate` keeps them by default for few arms.
    arms : sequence of int, optional
        Which arms; by default the five that optimal play explores most, or else those that cost this policy most.
    solution : Solution, optional
        Of the bandit's regret program; solved here by default.
    ax : Axes, optional
        Where to draw, instead of on a figure of its own.
    width : float or str
        Inches, "column" (3.4, the default) or "page" (7.0).

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> figure = pulls_over_time(ao.simulate("LinUCB", bandit, 1000, 5, rng=0))
    >>> figure.axes[0].get_ylabel()
    'pulls'
    """
    if not isinstance(result, SimulationResult):
        raise InvalidOption(f"result: expected a SimulationResult, got a {type(result).__name__}")
    if result.pulls_at_times is None:
        raise InvalidOption(
            "result: the pulls were kept at the end only; simulate with keep_pulls=True, or fewer times"
        )
    bandit = result.bandit
    found = solution
    if found is None:
        found = solve(programs.contextual(bandit) if isinstance(bandit, ContextualBandit) else programs.regret(bandit))
    if not isinstance(found, Solution) or found.program.n_arms != bandit.n_arms:
        raise InvalidOption(f"solution: expected one for the {bandit.n_arms} arms of the simulation")
    chosen = _arms(result, arms, found)
    times = result.times.astype(np.float64)
    with drawing():
        board = canvas(ax, width, 0.8)
        axes = board.axes
        axes.set_xscale("log")
        ends = [float(result.pulls[:, arm].mean()) for arm in chosen]
        wanted = [float(a) * np.log(times[-1]) for a in found.allocation[chosen] if np.isfinite(a) and a > 0]
        if flattened(above_noise([*ends, *wanted], found.tol).tolist()):
            axes.set_yscale("symlog", linthresh=1.0)
        for i, (arm, name) in enumerate(zip(chosen, arm_names(bandit.labels, chosen), strict=True)):
            pulls: Array = result.pulls_at_times[:, :, arm].astype(np.float64)
            colour = COLOURS[i % 7]
            if len(pulls) > 1:
                low, high = np.quantile(pulls, (0.1, 0.9), axis=0)
                axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(times, pulls.mean(axis=0), color=colour, linestyle=DASHES[i % 7], marker=MARKERS[i % 7], markersize=3.2,
                      markevery=(i % 3, max(1, len(times) // 8)), label=name)  # fmt: skip
            alpha = float(found.allocation[arm])
            if np.isfinite(alpha):
                line = np.geomspace(max(times[0], 1.0), times[-1], 100) if times[-1] > 1 else np.ones(1)
                axes.plot(line, alpha * np.log(line), color=colour, linestyle=(0, (1, 1.2)), linewidth=1.3)
        axes.plot([], [], color="black", linestyle=(0, (1, 1.2)), linewidth=1.3, label="α·log n, arm by arm")
        axes.set_xlim(times[0], times[-1] if times[-1] > times[0] else 2 * times[0])
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("round n")
        axes.set_ylabel("pulls")
        band = f", and 10 % to 90 % of {result.runs} runs" if result.runs > 1 else ""
        axes.set_title(f"{result.policy}: mean{band}"[:70], **NOTE)
        axes.grid(which="major")
        board.legend()
        return board.done()


def _arms(result: SimulationResult, arms: Sequence[int] | None, solution: Solution) -> list[int]:
    bandit = result.bandit
    if arms is not None and not np.iterable(arms):
        raise InvalidOption(f"arms: expected a list of numbers of arms, got a {type(arms).__name__}")
    if arms is not None:
        chosen = [whole_number("arms", i) for i in arms]
        for i in chosen:
            if i >= bandit.n_arms:
                raise InvalidOption(f"arms: expected numbers from 0 to {bandit.n_arms - 1}, got {i}")
        if not 0 < len(chosen) <= len(COLOURS):
            raise InvalidOption(f"arms: expected 1 to {len(COLOURS)} arms, which can be told apart, got {len(chosen)}")
        return chosen
    wanted = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0) * bandit.gaps
    paid = result.pulls.mean(axis=0) * bandit.gaps
    order = np.lexsort((-paid, -wanted))
    order = order[(wanted[order] > 0) | (paid[order] > 0)]
    return [int(i) for i in order[:_MOST_ARMS]] or [0]
