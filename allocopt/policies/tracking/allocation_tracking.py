r"""AllocationTracking: solves the regret program for its estimates, again and again, and plays what remains of the solution.

After a spanner has been played once, let x̂ be the leader, Δ̂ the estimated gaps and

    E_x = Δ̂_x²/(2σ²||x − x̂||²_{G^-1}),

the evidence against rival x: the generalised likelihood ratio of all observations against the parameters for which x is at
least as good as x̂. With κ_x the regret that one unit of it costs (at the best arm for it), x is worth

    β_x(t) = L + log(1 + L),      L = log(1 + t·Δ̂_x/κ_x),

units: at time t a mistake costs t·Δ̂_x, evidence E makes it e^E times less probable, and log(1 + L) is for looking again and
again. While E_x >= β_x for all rivals the leader is played. Else the `Allocator` solves the regret program (Definition 9,
`def:opt`) at the level β = max β_x, with gaps Δ̂_x√(β/β_x) so that the constraint of x is E_x >= β_x; the schedule is what remains of
α·β after all pulls so far, in proportion, and the leader as often as all others together. It is followed until the test is
passed, the leader changes, or one twentieth has been added to what was explored; then it looks afresh.
Nothing is ever discarded.

Why this is asymptotically optimal: docs/allocation-tracking.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play, play_blocks
from allocopt.policies.linear import LeastSquares, absorb, absorb_first, refresh
from allocopt.policies.linucb import spanner_note
from allocopt.policies.schedule.cursor import NOTHING_LEFT, Cursor, count_pulls, due
from allocopt.policies.schedule.schedule import Schedule
from allocopt.solving.allocator import Allocator

__all__ = ["AllocationTracking", "required_evidence"]

_TOL = 1e-4  # of α: it is made of estimates
_PULLS_PER_REPEAT = (
    100  # an arm is played for 1/100 of its pulls so far before the policy looks again, as in OptimalTracking
)
_LOOKS_PER_PLAN = 20  # a plan is for 1/20 of the rounds that were explored so far
_ROUNDS_PER_PLAN = 10  # κ is computed afresh after 1/10 of the rounds so far, even if nothing is to be explored


class _State(NamedTuple):
    ls: LeastSquares
    """Pulls and sums of every round; the rest as of the last look, or later."""
    noise: float
    """σ²."""
    prudence: float
    leader: IntArray
    """Length 1, as are the next ones: x̂ as of the last plan; −1 before the first."""
    arm: IntArray
    """What the last look chose."""
    until: IntArray
    """Before this round the arm is played without looking."""
    stale: IntArray
    """1 if pulls and sums have moved on from the estimates."""
    budget: IntArray
    """Rounds of the schedule that may be played before the next plan."""
    expires: IntArray
    """The round from which on the plan is too old."""
    schedule: Cursor
    """What remains to be explored."""
    prices: Array
    """κ, as of the last plan."""
    images: Array
    """Scratch, shape (r,)."""
    plans: IntArray
    solves: IntArray
    explored: IntArray
    last_explored: IntArray
    leader_changes: IntArray


@compiled
def required_evidence(stake: Any) -> Any:
    """β = L + log(1 + L) with L = log(1 + stake): units of evidence that are worth their price."""
    level = math.log1p(stake)
    return level + math.log1p(level)


@compiled
def _squared_distance(ls: Any, i: Any, leader: Any, difference: Any) -> Any:
    """||x − x̂||²_{G^-1}."""
    r = len(difference)
    for a in range(r):
        difference[a] = ls.features[a, i] - ls.features[a, leader]
    total = 0.0
    for a in range(r):
        image = 0.0
        for b in range(r):
            image += ls.inverse[a, b] * difference[b]
        total += image * difference[a]
    return total


@compiled
def _certain(state: Any, leader: Any, t: Any) -> Any:
    """Whether the evidence against every rival is what it is worth."""
    ls = state.ls
    for i in range(len(ls.means)):
        gap = ls.means[leader] - ls.means[i]
        if i == leader or not gap > 0.0 or not state.prices[i] > 0.0:
            continue
        needed = required_evidence(state.prudence * t * gap / state.prices[i])
        if gap * gap < 2.0 * state.noise * needed * _squared_distance(ls, i, leader, state.images):
            return False
    return True


@compiled
def _look(state: Any, t: Any) -> Any:
    ls = state.ls
    if state.stale[0]:
        refresh(ls)
        state.stale[0] = 0
    leader = 0
    for i in range(1, len(ls.means)):
        if ls.means[i] > ls.means[leader]:
            leader = i
    if leader != state.leader[0] or t >= state.expires[0]:
        return PAUSE
    if _certain(state, leader, t):
        state.arm[0] = leader
        state.until[0] = t + max(1, ls.pulls[leader] // _PULLS_PER_REPEAT)
        return leader
    place = due(state.schedule) if state.budget[0] > 0 else NOTHING_LEFT
    if place == NOTHING_LEFT:
        return PAUSE
    arm = state.schedule.arms[place]
    wanted = int(state.schedule.shares[place]) - state.schedule.counts[place]
    count = max(1, min(ls.pulls[arm] // _PULLS_PER_REPEAT, wanted, state.budget[0]))
    count_pulls(state.schedule, place, count)
    state.budget[0] -= count
    state.arm[0] = arm
    state.until[0] = t + count
    return arm


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    if t <= len(state.ls.first):
        return state.ls.first[t - 1]
    if t < state.until[0]:
        return state.arm[0]
    return _look(state, t)


@compiled
def _learn(state: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    ls = state.ls
    if t <= len(ls.first):
        absorb_first(ls, t - 1, total)
        return
    if count == 1 and state.until[0] == t + 1 and not state.stale[0]:
        absorb(ls, arm, total)  # the next round looks, and this one is all that is new
    else:
        ls.pulls[arm] += count
        ls.sums[arm] += total
        state.stale[0] = 1
    if arm != state.leader[0]:
        state.explored[0] += count
        state.last_explored[0] = t + count - 1


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    _learn(state, t, arm, 1, reward)


@compiled
def _stay(state: Any, t: Any, arm: Any) -> Any:
    return 1 if t <= len(state.ls.first) else state.until[0] - t


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, _stay, _learn, state, ledger, first, last, decisions, noise, rng)


@dataclass(frozen=True)
class AllocationTracking(Policy):
    r"""Solve for the estimates, play what remains of the solution while the evidence asks for it, and look again.

    Parameters
    ----------
    prudence : float
        Factor on what a mistake costs. Every doubling costs about c·log 2 of regret, for fewer runs that settle on a wrong arm.

    Examples
    --------
    >>> from allocopt import instances
    >>> from allocopt.play.simulation.simulate import simulate
    >>> bandit = instances.counter_example(0.05)
    >>> r = simulate(AllocationTracking(), bandit, horizon=20_000, runs=20, rng=0)
    >>> optimistic = simulate("LinUCB:a=2", bandit, horizon=20_000, runs=20, rng=0)
    >>> bool(r.final_regret.mean() < optimistic.final_regret.mean())
    True
    """

    prudence: float = 1.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prudence", positive_number("prudence", self.prudence))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known; the spanner is played first."""
        k = setting.n_arms
        return _State(
            ls=LeastSquares.of(setting.spanner.coefficients, setting.spanner.indices, 0.0, np.ones(k)),
            noise=setting.noise_variance,
            prudence=self.prudence,
            leader=np.full(1, -1, np.int64),
            arm=np.zeros(1, np.int64),
            until=np.zeros(1, np.int64),
            stale=np.zeros(1, np.int64),
            budget=np.zeros(1, np.int64),
            expires=np.zeros(1, np.int64),
            schedule=Cursor.blank(k),
            prices=np.zeros(k),
            images=np.zeros(len(setting.spanner.indices)),
            plans=np.zeros(1, np.int64),
            solves=np.zeros(1, np.int64),
            explored=np.zeros(1, np.int64),
            last_explored=np.zeros(1, np.int64),
            leader_changes=np.zeros(1, np.int64),
        )

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """κ for the estimates as they are, and the schedule of what remains where the evidence is not enough."""
        ls = state.ls
        coordinates = setting.spanner.coefficients
        leader = int(np.argmax(ls.means))
        if leader != state.leader[0]:
            state.leader_changes[0] += int(state.leader[0] >= 0)
            state.leader[0] = leader
        gaps = ls.means[leader] - ls.means
        gaps[gaps <= TIE * (np.abs(ls.means) + abs(ls.means[leader]))] = 0.0
        images = ls.inverse @ (coordinates - coordinates[leader]).T
        squares = ((coordinates - coordinates[leader]).T * images).sum(axis=0)
        state.prices[:] = _regret_of_evidence(coordinates, ls.widths, images, squares, gaps, setting.noise_variance)
        state.expires[0] = t + max(1, t // _ROUNDS_PER_PLAN)
        state.plans[0] += 1
        state.budget[0] = max(1, int(state.explored[0]) // _LOOKS_PER_PLAN)
        rivals = np.flatnonzero((gaps > 0.0) & (state.prices > 0.0))
        stakes = np.log1p(self.prudence * t * gaps[rivals] / state.prices[rivals])
        needed = stakes + np.log1p(stakes)
        wanted = np.zeros(len(gaps))
        if (gaps[rivals] ** 2 < 2.0 * setting.noise_variance * needed * squares[rivals]).any():
            level = float(needed.max())
            gaps[rivals] *= np.sqrt(level / needed)
            solution = self._allocator(state, setting).solve(gaps)
            if not math.isfinite(solution.upper):
                reason = solution.stats.get("reason", "no reason given")
                raise SolverFailed(
                    f"AllocationTracking: the program for the estimated gaps could not be solved: {reason}"
                )
            state.solves[0] += 1
            scale = 2.0 * setting.noise_variance * level
            wanted = Schedule.from_solution(solution, setting.horizon, ls.pulls, level=scale).wanted
        # what the leader lacks to have been played as often as all others; or all, if only its own rounds can tell more
        wanted[leader] = max(float(state.explored[0] - ls.pulls[leader]), 0.0 if wanted.any() else 1.0)
        state.schedule.begin("tracking", wanted, np.zeros(0, np.int64), setting.horizon)

    def _allocator(self, state: _State, setting: Setting) -> Allocator:
        """One for each run, so that it begins warm from this run's last solution, and from nothing of another run's."""
        kept = setting.memo.get("AllocationTracking")
        if kept is None or kept[0] is not state.plans:
            allocator = Allocator(setting.spanner.coefficients, level=2.0 * setting.noise_variance, tol=_TOL)
            kept = setting.memo["AllocationTracking"] = (state.plans, allocator)
        found: Allocator = kept[1]
        return found

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """The spanner; tracking, up to the last round that was spent on exploration; and exploiting since."""
        spanner = min(len(state.ls.first), horizon)
        found = [Phase("spanner", 1, spanner)]
        last = max(int(state.last_explored[0]), spanner)
        if last > spanner:
            summary = (
                f"{int(state.explored[0])} rounds explored, {int(state.solves[0])} solves, "
                f"{int(state.leader_changes[0])} changes of leader"
            )
            found.append(Phase("tracking", spanner + 1, last - spanner, summary))
        if horizon > last:
            found.append(Phase("exploiting", last + 1, horizon - last))
        return tuple(found)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)


def _regret_of_evidence(
    coordinates: Array, widths: Array, images: Array, squares: Array, gaps: Array, noise_variance: float
) -> Array:
    """κ: the regret of one more unit of evidence against each rival, where it is cheapest; 0 for the leader and its copies.

    A pull of y multiplies ||x − x̂||²_{G^-1} by 1 − ⟨y, G^-1(x − x̂)⟩²/((1 + ||y||²_{G^-1})||x − x̂||²_{G^-1}).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = gaps**2 / (2.0 * noise_variance * squares)
        shrinking = (coordinates @ images) ** 2 / (1.0 + np.maximum(widths, 0.0))[:, None] / squares
        price = gaps[:, None] / (shrinking * evidence)
    price[~(gaps > 0.0)] = np.inf  # the leader, which is played anyway
    price[:, ~((gaps > 0.0) & (squares > 0.0))] = np.inf
    cheapest: Array = np.where(np.isnan(price), np.inf, price).min(axis=0)
    return np.where(np.isfinite(cheapest), cheapest, 0.0)
