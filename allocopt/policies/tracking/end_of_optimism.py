r"""Algorithm 1 of the paper, `EndOfOptimism`: asymptotically optimal on every instance with a unique best arm.

1. *Warm-up*: every arm of a barycentric spanner ⌈√log n⌉ times.
2. *Success*: with Δ̂, μ̂ as they are then, T̂ = T_n(Δ̂) (Definition 9, `def:opt`) and ε_n = max_x ||x||_{G^-1} √(σ² g_n), play
   in turn every arm with T_x(t) <= T̂_x; arms of estimated gap 0 have T̂ = ∞. That is the interleaved `Schedule` of the
   solution T̂ after the warm-up's pulls, rounded as the listing does. It ends after the first round t with
   ||μ̂ − μ̂(t)||_∞ > 2ε_n. The proof (Lemma 11, `lem:F`) holds for every round, so every round is looked at, not only the
   last of a pass over the arms.
3. *Recovery*: all data are discarded and finite-armed UCB plays until n.

Slips of the listing that are mended: it prints G_n and t ← n + 1 where the end of the warm-up is meant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.spelling import spelled_constructor
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.model.levels import f_n, g_n
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play
from allocopt.policies.linear import LeastSquares, absorb, absorb_first
from allocopt.policies.schedule.cursor import Cursor, count_pulls, due
from allocopt.policies.schedule.schedule import Schedule
from allocopt.policies.ucb import optimistic_arm
from allocopt.solving.allocator import Allocator

__all__ = ["EndOfOptimism"]

_WARM_UP, _SUCCESS, _RECOVERY = 0, 1, 2
_UCB_WIDTH = 2.0  # of the recovery phase, as `UCB` has it
_TOL = 1e-6  # of T̂: it is made of estimates, and pulls are whole numbers


class _State(NamedTuple):
    ls: LeastSquares
    warm_up: int
    """Rounds of the warm-up."""
    scale: Array
    """Of the recovery's UCB: 2σ²."""
    phase: IntArray
    """Length 1."""
    starts: IntArray
    """First rounds of success and recovery, 0 if they did not come."""
    schedule: Cursor
    """Of the success phase."""
    targets: Array
    """T̂."""
    reference: Array
    """μ̂ at the end of the warm-up."""
    threshold: Array
    """Length 1: 2ε_n."""
    alarm: Array
    """Arm and size of the deviation that ended the success phase."""
    pulls: IntArray
    """Of the recovery phase."""
    means: Array
    """Of the recovery phase."""


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    if t <= state.warm_up:
        return state.ls.first[(t - 1) % len(state.ls.first)]
    phase = state.phase[0]
    if phase == _WARM_UP:
        return PAUSE
    if phase == _RECOVERY:
        return optimistic_arm(state.pulls, state.means, t - state.starts[1] + 1, state.scale)
    place = due(state.schedule)  # arms of estimated gap 0 always have pulls left
    count_pulls(state.schedule, place, 1)
    return state.schedule.arms[place]


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    if state.phase[0] == _RECOVERY:
        state.pulls[arm] += 1
        state.means[arm] += (reward - state.means[arm]) / state.pulls[arm]
        return
    if t <= len(state.ls.first):
        absorb_first(state.ls, t - 1, reward)
        return
    absorb(state.ls, arm, reward)
    if t <= state.warm_up or state.phase[0] == _WARM_UP:
        return
    worst, which = 0.0, 0
    for i in range(len(state.reference)):
        deviation = abs(state.reference[i] - state.ls.means[i])
        if deviation > worst:
            worst, which = deviation, i
    if worst > state.threshold[0]:
        state.phase[0] = _RECOVERY
        state.starts[1] = t + 1
        state.alarm[0] = which
        state.alarm[1] = worst


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class EndOfOptimism(Policy):
    r"""The paper's optimal policy: warm-up on a spanner, then the allocation T_n(Δ̂), and UCB if something looks wrong.

    Parameters
    ----------
    constant : float
        The universal constant of f_n and g_n, which the paper leaves open.

    Notes
    -----
    It is optimal as n → ∞, and finite horizons can be far from that: the warm-up has d√log n rounds only, and an arm that it
    misjudges may be left for good, as long as the estimates stay within 2ε_n. ``result.phases`` says what happened.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.simulation.simulate import simulate
    >>> r = simulate(EndOfOptimism(), ao.LinearBandit([[1, 0], [0, 1]], [1, 0], 0.01), horizon=1000, runs=1, rng=0)
    >>> [(p.name, p.start, p.length) for p in r.phases[0]]
    [('warm-up', 1, 6), ('success', 7, 994)]
    """

    constant: float = 1.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", positive_number("constant", self.constant, zero=True))

    def initial_state(self, setting: Setting) -> _State:
        """At the beginning of the warm-up."""
        k = setting.n_arms
        return _State(
            ls=LeastSquares.of(setting.spanner.coefficients, setting.spanner.indices, 0.0, np.ones(k)),
            warm_up=len(setting.spanner.indices) * _rounds_each(setting),
            scale=_UCB_WIDTH * setting.variance_of_each,
            phase=np.zeros(1, np.int64),
            starts=np.zeros(2, np.int64),
            schedule=Cursor.blank(k),
            targets=np.zeros(k),
            reference=np.zeros(k),
            threshold=np.zeros(1),
            alarm=np.zeros(2),
            pulls=np.zeros(k, np.int64),
            means=np.zeros(k),
        )

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """The end of the warm-up: μ̂, ε_n and T̂."""
        coordinates = setting.spanner.coefficients
        first, dim = setting.spanner.indices, len(setting.spanner.indices)
        theta = state.ls.sums[first] / state.ls.pulls[first]  # the spanner's arms are unit vectors in its coordinates
        means = coordinates @ theta
        magnitude = np.abs(coordinates) @ np.abs(theta)
        best = int(np.argmax(means))
        gaps = means[best] - means
        gaps[gaps <= TIE * (magnitude + magnitude[best])] = 0.0  # duplicated arms, say, whatever the order of the sums
        self._schedule(state, coordinates, gaps, setting)
        state.reference[:] = means
        squared_width = float(np.max((coordinates**2).sum(axis=1))) / _rounds_each(setting)
        epsilon = math.sqrt(squared_width * setting.noise_variance * g_n(setting.horizon, dim, self.constant))
        state.threshold[0] = 2.0 * epsilon
        state.starts[0] = t
        state.phase[0] = _SUCCESS

    def _schedule(self, state: _State, coordinates: Array, gaps: Array, setting: Setting) -> None:
        """T̂ = T_n(Δ̂), and the schedule of what the warm-up has not played of it.

        No warm start, so that a run does not depend on the runs before it.
        """
        k, left = len(gaps), setting.horizon - int(state.ls.pulls.sum())
        if not gaps.any():
            state.targets[:] = np.inf
            state.schedule.begin("interleaved", np.zeros(k), np.arange(k), left)
            return
        level = f_n(setting.horizon, coordinates.shape[1], self.constant) * setting.noise_variance
        solution = Allocator(coordinates, level=level, tol=_TOL).solve(gaps)
        if not math.isfinite(solution.upper):
            reason = solution.stats.get("reason", "no reason given")
            raise SolverFailed(f"EndOfOptimism: the allocation for the estimated gaps could not be solved: {reason}")
        plan = Schedule.from_solution(solution, setting.horizon, state.ls.pulls, rounding="listing", level=level)
        state.targets[:] = plan.allocation
        state.schedule.begin(plan.order, plan.wanted, plan.free_arms, plan.length)

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """Warm-up, success and recovery, as far as they came."""
        success, recovery = (int(x) for x in state.starts)
        found = [Phase("warm-up", 1, min(horizon, state.warm_up))]
        if 0 < success <= horizon:
            ended = ""
            if recovery > 0:
                arm, size = int(state.alarm[0]), float(state.alarm[1])
                ended = (
                    f"after round {recovery - 1} the mean of arm {arm} had moved by {size:.6g} since the warm-up, "
                    f"more than 2ε_n = {float(state.threshold[0]):.6g}"
                )
            last = recovery - 1 if recovery > 0 else horizon
            found.append(Phase("success", success, last - success + 1, ended))
        if 0 < recovery <= horizon:
            found.append(Phase("recovery", recovery, horizon - recovery + 1))
        return tuple(found)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the warm-up is longer than the horizon."""
        d, each, n = len(setting.spanner.indices), _rounds_each(setting), setting.horizon
        if n > d * each:
            return ()
        return (
            f"the warm-up takes {d} × {each} = {d * each} rounds and the horizon is {n}: the spanner is played in turn for "
            f"{n} rounds, and nothing else",
        )


def _rounds_each(setting: Setting) -> int:
    """⌈√log n⌉, rounds of the warm-up per arm of the spanner."""
    return math.ceil(math.sqrt(math.log(setting.horizon)))
