r"""AllocationTracking: solves the regret program for its estimates, again and again, and plays what remains of the solution.

After a spanner has been played once, let x̂ be the leader, Δ̂ the estimated gaps, s_x = σ||x − x̂||_{G^-1} and

    E_x = Δ̂_x²/(2 s_x²),

the evidence against rival x: the generalised likelihood ratio of all observations against the parameters for which x is at
least as good as x̂. *Whether* to explore is asked at every look, as `OptimalTracking` does (`looking`): while the information of
some arm y is worth more than it costs, b(y) > Δ̂_y. *Where* is asked of the solved allocation. With κ_x the regret that one unit
of E_x costs (at the best arm for it, now), the evidence that is worth its price is the E with

    E − log(1 + E) + (3/2) log E = log(prudence·t·Δ̂_x/κ_x) − log(4√π),

and the `Allocator` solves the regret program (Definition 9, `def:opt`) with the constraints E_x >= that (`required_evidence`), or
with levels between these and the largest of them (``evenness``).
The schedule is what remains of its solution after all pulls so far: of the arms that it still wants and that are worth their
price, the one that is furthest behind is played, or, where there is none, the one that saves most per regret. A plan is
made afresh when the leader has changed, a twentieth has been added to what was explored, or a tenth to all rounds.
Nothing is ever discarded.

Why this is asymptotically optimal: docs/allocation-tracking.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption, SolverFailed
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play, play_blocks
from allocopt.policies.linucb import spanner_note
from allocopt.policies.schedule.cursor import NOTHING_LEFT, Cursor, count_pulls
from allocopt.policies.schedule.schedule import Schedule
from allocopt.policies.tracking.estimate import Estimate
from allocopt.policies.tracking.looking import View, look
from allocopt.policies.tracking.staying import (
    PULLS_PER_REPEAT,
    UNDECIDED,
    decided,
    learn_block,
    note_leader,
    phases_so_far,
    rounds_to_stay,
)
from allocopt.solving.allocator import Allocator

__all__ = ["AllocationTracking", "required_evidence"]

_TOL = 1e-4  # of α: it is made of estimates
_LOOKS_PER_PLAN = 20  # a plan is for 1/20 of the rounds that were explored so far
_ROUNDS_PER_PLAN = 10  # and for 1/10 of all rounds
_LEAST_GAP = 1e-3  # of s_x: gaps below are taken for this, of which the constraint s_x <= … hardly depends


class _State(NamedTuple):
    sight: View
    prudence: float
    evenness: float
    leader: IntArray
    """Length 1, as are the next ones: x̂ as of the last look; −1 before the first."""
    planned: IntArray
    """x̂ as of the last plan."""
    arm: IntArray
    """What the last look chose."""
    until: IntArray
    """Before this round the arm is played without looking."""
    budget: IntArray
    """Rounds of exploration before the next plan."""
    expires: IntArray
    """The round from which on the plan is too old."""
    schedule: Cursor
    """What remains to be explored."""
    plans: IntArray
    explored: IntArray
    last_explored: IntArray
    leader_changes: IntArray


@entry
def required_evidence(stake: Any) -> Any:
    """E with E − log(1 + E) + (3/2) log E = log(stake) − log(4√π): evidence that is worth its price.

    There R·∂L/∂log s², what more evidence saves (with the factor 1 + E for looking again and again), is what it costs:
    R Δ φ(√(2E))(1 + E)/(2√(2E)) = κ·E.
    """
    goal = math.log(stake) - math.log(4.0 * math.sqrt(math.pi))
    x = (
        goal / 1.5 if goal < 0.0 else math.log1p(goal)
    )  # log E; the left side is increasing in it, and convex from there
    for _ in range(50):
        e = math.exp(x)
        step = (e - math.log1p(e) + 1.5 * x - goal) / (e - e / (1.0 + e) + 1.5)
        x -= step
        if abs(step) < 1e-12:
            break
    return math.exp(x)


@compiled
def _place_of(near: Any, arm: Any) -> Any:
    """Where an arm is among the near arms, which are in order; −1 if it is not."""
    low, high = 0, near.size[0]
    while low < high:
        middle = (low + high) // 2
        if near.arms[middle] < arm:
            low = middle + 1
        else:
            high = middle
    return low if low < near.size[0] and near.arms[low] == arm else -1


@compiled
def _most_behind(schedule: Any, sight: Any) -> Any:
    """The place in the schedule of the arm to explore: wanted, worth its price, and the furthest behind; or `NOTHING_LEFT`."""
    best, least = NOTHING_LEFT, 1.0
    for place in range(schedule.size[0]):
        i = _place_of(sight.near, schedule.arms[place])
        if i < 0 or not sight.savings[i] > sight.near.gaps[i]:
            continue
        when = (schedule.counts[place] + 0.5) / schedule.shares[place]
        if when < least:
            best, least = place, when
    return best


@compiled
def _look(state: Any, t: Any) -> Any:
    sight = state.sight
    pulls = sight.estimate.pulls
    place, best = look(sight, t, state.prudence * t)
    leader, arm = sight.near.arms[place], sight.near.arms[best]
    note_leader(state, leader)
    count = max(1, pulls[arm] // PULLS_PER_REPEAT)
    if arm != leader:
        if leader != state.planned[0] or t >= state.expires[0] or state.budget[0] <= 0:
            return PAUSE
        wanted = _most_behind(state.schedule, sight)
        if wanted != NOTHING_LEFT:
            arm = state.schedule.arms[wanted]
            count = max(1, min(pulls[arm] // PULLS_PER_REPEAT, state.budget[0]))
            count_pulls(state.schedule, wanted, count)
        state.budget[0] -= count
    state.arm[0] = arm
    state.until[0] = t + count
    return arm


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    arm = decided(state, t)
    return _look(state, t) if arm == UNDECIDED else arm


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    learn_block(state, t, arm, 1, reward)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, rounds_to_stay, learn_block, state, ledger, first, last, decisions, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class AllocationTracking(Policy):
    r"""Solve for the estimates, play what remains of the solution while information pays, and look again.

    Parameters
    ----------
    prudence : float
        Factor on what a mistake costs. Every doubling costs about c·log 2 of regret, for fewer runs that settle on a wrong arm.
    evenness : float
        Between 0 and 1: how far the levels that the plan asks of its constraints go from what each is worth (0, the default) to one
        level for all (1, the plain program at θ̂), geometrically. It moves regret between arms more than it changes its sum;
        docs/allocation-tracking.md has figures.

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
    evenness: float = 0.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prudence", positive_number("prudence", self.prudence))
        evenness = positive_number("evenness", self.evenness, zero=True)
        if evenness > 1.0:
            raise InvalidOption(f"evenness: expected a number between 0 and 1, got {self.evenness!r}")
        object.__setattr__(self, "evenness", evenness)

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known; the spanner is played first."""
        return _State(
            sight=View.blank(Estimate.blank(setting, np.ones(setting.n_arms)), False, 0.0),
            prudence=self.prudence,
            evenness=self.evenness,
            leader=np.full(1, -1, np.int64),
            planned=np.full(1, -1, np.int64),
            arm=np.zeros(1, np.int64),
            until=np.zeros(1, np.int64),
            budget=np.zeros(1, np.int64),
            expires=np.zeros(1, np.int64),
            schedule=Cursor.blank(setting.n_arms),
            plans=np.zeros(1, np.int64),
            explored=np.zeros(1, np.int64),
            last_explored=np.zeros(1, np.int64),
            leader_changes=np.zeros(1, np.int64),
        )

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """The schedule of what remains of the allocation that is worth its price, for the estimates as they are."""
        estimate = state.sight.estimate
        coordinates, leader = setting.spanner.coefficients, int(state.leader[0])
        needed, gaps = evidence_to_collect(
            estimate, coordinates, leader, state.prudence * t, float(state.sight.expected[0])
        )
        state.plans[0] += 1
        state.planned[0] = leader
        state.budget[0] = max(1, int(state.explored[0]) // _LOOKS_PER_PLAN)
        state.expires[0] = t + max(1, t // _ROUNDS_PER_PLAN)
        wanted = np.zeros(len(gaps))
        if needed.any():
            level = float(needed.max())
            gaps[needed > 0.0] *= (level / needed[needed > 0.0]) ** ((1.0 - state.evenness) / 2.0)
            solution = self._allocator(state, setting).solve(gaps)
            if not math.isfinite(solution.upper):
                reason = solution.stats.get("reason", "no reason given")
                raise SolverFailed(
                    f"AllocationTracking: the program for the estimated gaps could not be solved: {reason}"
                )
            scale = 2.0 * setting.noise_variance * level
            wanted = Schedule.from_solution(solution, setting.horizon, estimate.pulls, level=scale).wanted
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
        summary = (
            f"{int(state.explored[0])} rounds explored, {int(state.plans[0])} solves, "
            f"{int(state.leader_changes[0])} changes of leader"
        )
        return phases_so_far(state, horizon, summary)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)


def evidence_to_collect(
    estimate: Estimate, coordinates: Array, leader: int, rounds: float, expected: float
) -> tuple[Array, Array]:
    """The evidence against each rival that is worth its price, and the gaps that it is about.

    Both are 0 for the leader and its copies. κ_x is the least of (Δ̂_y + ``expected``)/(what a pull of y adds to E_x) over all
    arms y but the leader: a pull of y multiplies s_x² by 1 − ⟨y, G^-1(x − x̂)⟩²/((1 + ||y||²_{G^-1})||x − x̂||²_{G^-1}).
    """
    away = coordinates - coordinates[leader]
    images = away @ estimate.inverse
    squares = np.maximum((images * away).sum(axis=1), 0.0)
    widths = np.maximum(((coordinates @ estimate.inverse) * coordinates).sum(axis=1), 0.0)
    gaps = np.maximum(-(away @ estimate.theta), _LEAST_GAP * np.sqrt(estimate.noise * squares))
    rivals = np.flatnonzero(gaps > 0.0)
    needed, about = np.zeros(len(gaps)), np.zeros(len(gaps))
    told = (coordinates[rivals] @ images[rivals].T) ** 2 / (1.0 + widths[rivals])[:, None]  # by a pull of y (rows) on x
    with np.errstate(divide="ignore"):
        price = ((gaps[rivals] + expected)[:, None] / told).min(axis=0) if len(rivals) else np.zeros(0)
    for x, cost in zip(rivals.tolist(), price.tolist(), strict=True):
        if squares[x] > 0.0 and math.isfinite(cost) and cost > 0.0:
            evidence = gaps[x] ** 2 / (2.0 * estimate.noise * squares[x])
            stake = rounds * gaps[x] * evidence / (cost * squares[x])
            needed[x], about[x] = required_evidence(stake), gaps[x]
    return needed, about
