r"""OptimalTracking: the optimal allocation used smoothly, without phases and without discarding data.

What the paper's summary asks for (Section 9, `sec:summary`). The design, its measured figures and the designs that lost are
in docs/optimal-tracking.md; in short:

After a spanner has been played once, let x̂ be the leader (the best estimated arm), Δ̂ the estimated gaps,
s_x = σ||x − x̂||_{G^-1} and z_x = Δ̂_x/s_x. If x̂ is played from now on, the expected loss per round to arm x is
L_x = s_x (φ(z_x) − z_x Φ(−z_x)), so with R rounds to come one pull of y saves about

    b(y) = Σ_x λ_x ⟨y, G^-1(x − x̂)⟩²/(1 + ||y||²_{G^-1}),      λ_x = R σ² φ(z_x)(1 + z_x²/2)/(2 s_x),

because ∂L/∂s = φ(z). (The factor 1 + z²/2 is for looking again and again; it also brings the slope close to c soon.) An
arm y is worth exploring while b(y) exceeds its price Δ̂_y. Of these arms and the leader, the policy plays the one that
saves most per regret, b(y)/(Δ̂_y + Σ_x L_x): all of them, x̂ too, are charged with the regret expected of x̂.

Why this tracks the optimal allocation: b(y) <= Δ̂_y for all y, with equality where exploration goes on, are the KKT
conditions of the regret program with the multipliers λ, which decay like R exp(−Δ̂_x²/(2s_x²)). So exploration ends where
Δ̂_x²/(2||x − x̂||²_{G^-1}) = σ² log R + O(log log R) on the binding arms: at the constraints of the lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Phase, Policy, Setting, compiled, entry, play, play_blocks
from allocopt.policies.linear import LeastSquares, absorb, absorb_first, refresh
from allocopt.policies.linucb import spanner_note

__all__ = ["OptimalTracking", "TrackingCounters"]

_OUTLOOKS = ("anytime", "horizon")
_PULLS_PER_REPEAT = 100
"""A chosen arm is played for 1/100 of its pulls so far (at least once) before the policy looks again. Reactions come at most
one per cent late, a round is as cheap as its random number, and there are at most about 100·k·(1 + log n) decisions."""
_ROOT_TWO = math.sqrt(2.0)
_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)  # φ(0)


class _State(NamedTuple):
    ls: LeastSquares
    """Pulls and sums of every round; the rest as of the last decision, or later."""
    noise: float
    """σ²."""
    prudence: float
    horizon: int
    """n, or 0 if the policy does not look at it."""
    leader: IntArray
    """Length 1, as are the next ones: x̂ as of the last decision; −1 before the first."""
    arm: IntArray
    """What the last decision chose."""
    until: IntArray
    """Before this round the arm is played without looking."""
    stale: IntArray
    """1 if pulls and sums have moved on from the estimates."""
    decisions: IntArray
    explored: IntArray
    """Rounds in which another arm than the leader was played, after the spanner."""
    last_explored: IntArray
    leader_changes: IntArray
    prices: Array
    """P with b(y) = yᵀPy/(1 + ||y||²_{G^-1}), shape (r, r)."""
    differences: Array
    """x − x̂, shape (r, k)."""
    images: Array
    """G^-1(x − x̂), shape (r, k)."""
    squares: Array
    """||x − x̂||²_{G^-1}."""
    savings: Array
    """b."""


@compiled
def _distances_from_leader(state: Any, leader: Any) -> None:
    """G^-1(x − x̂) and ||x − x̂||²_{G^-1} of all arms; inner loops run over arms."""
    ls, differences, images, squares = state.ls, state.differences, state.images, state.squares
    r, k = ls.features.shape
    for a in range(r):
        for i in range(k):
            differences[a, i] = ls.features[a, i] - ls.features[a, leader]
            images[a, i] = 0.0
    for i in range(k):
        squares[i] = 0.0
    for a in range(r):
        for b in range(r):
            x = ls.inverse[a, b]
            for i in range(k):
                images[a, i] += x * differences[b, i]
        for i in range(k):
            squares[i] += images[a, i] * differences[a, i]


@compiled
def _compute_prices(state: Any, leader: Any, rounds: Any) -> Any:
    """P = Σ_x λ_x uuᵀ with u = G^-1(x − x̂), its lower triangle; returns Σ_x L_x, the regret per round expected of x̂."""
    ls, prices, images = state.ls, state.prices, state.images
    r, k = ls.features.shape
    for a in range(r):
        for b in range(a + 1):
            prices[a, b] = 0.0
    expected = 0.0
    for i in range(k):
        if not state.squares[i] > 0.0:  # the leader itself, and its duplicates
            continue
        deviation = math.sqrt(state.noise * state.squares[i])
        z = (ls.means[leader] - ls.means[i]) / deviation
        density = _DENSITY_AT_ZERO * math.exp(-0.5 * z * z)
        if density == 0.0:
            continue
        expected += deviation * max(density - 0.5 * z * math.erfc(z / _ROOT_TWO), 0.0)
        weight = state.prudence * rounds * state.noise * density * (1.0 + 0.5 * z * z) / (2.0 * deviation)
        for a in range(r):
            along = weight * images[a, i]
            for b in range(a + 1):
                prices[a, b] += along * images[b, i]
    return expected


@compiled
def _compute_savings(state: Any) -> None:
    """b(y) of all arms: what one pull is expected to save in the rounds to come."""
    ls, savings = state.ls, state.savings
    r, k = ls.features.shape
    for i in range(k):
        savings[i] = 0.0
    for a in range(r):
        for b in range(a + 1):
            x = state.prices[a, b] if a == b else 2.0 * state.prices[a, b]
            for i in range(k):
                savings[i] += x * ls.features[a, i] * ls.features[b, i]
    for i in range(k):
        savings[i] = ls.weights[i] * savings[i] / (1.0 + ls.weights[i] * max(ls.widths[i], 0.0))


@compiled
def _decide(state: Any, t: Any) -> Any:
    """The arm of round t, from everything that was observed before it."""
    ls, savings = state.ls, state.savings
    k = len(ls.means)
    if state.stale[0]:
        refresh(ls)
        state.stale[0] = 0
    leader = 0
    for i in range(1, k):
        if ls.means[i] > ls.means[leader]:
            leader = i
    rounds = state.horizon - t + 1 if state.horizon > 0 else t
    _distances_from_leader(state, leader)
    expected = _compute_prices(state, leader, rounds)
    _compute_savings(state)
    best = leader
    top = savings[leader] / expected if expected > 0.0 else 0.0
    for i in range(k):
        gap = ls.means[leader] - ls.means[i]
        if i != leader and savings[i] > gap and savings[i] > top * (gap + expected):
            best, top = i, savings[i] / (gap + expected)
    state.decisions[0] += 1
    if leader != state.leader[0]:
        if state.leader[0] >= 0:
            state.leader_changes[0] += 1
        state.leader[0] = leader
    state.arm[0] = best
    state.until[0] = t + max(1, ls.pulls[best] // _PULLS_PER_REPEAT)
    return best


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    if t <= len(state.ls.first):
        return state.ls.first[t - 1]
    if t < state.until[0]:
        return state.arm[0]
    return _decide(state, t)


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    ls = state.ls
    if t <= len(ls.first):
        absorb_first(ls, t - 1, reward)
        return
    if state.until[0] == t + 1 and not state.stale[0]:
        absorb(ls, arm, reward)  # the next round looks, and this one is all that is new
    else:
        ls.pulls[arm] += 1
        ls.sums[arm] += reward
        state.stale[0] = 1
    if arm != state.leader[0]:
        state.explored[0] += 1
        state.last_explored[0] = t


@compiled
def _stay(state: Any, t: Any, arm: Any) -> Any:
    """Before round ``until`` nothing is looked at; the spanner is played once each."""
    return 1 if t <= len(state.ls.first) else state.until[0] - t


@compiled
def _learn(state: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    if count == 1:
        _update(state, t, arm, total)
        return
    state.ls.pulls[arm] += count
    state.ls.sums[arm] += total
    state.stale[0] = 1
    if arm != state.leader[0]:
        state.explored[0] += count
        state.last_explored[0] = t + count - 1


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, _stay, _learn, state, ledger, first, last, decisions, noise, rng)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@dataclass(frozen=True)
class TrackingCounters:
    """What `OptimalTracking` did in one run."""

    decisions: int
    """How often it looked at all estimates; in between it went on with the arm of the last decision."""
    explored: int
    """Rounds, after the spanner's, in which it paid for information: another arm than the leader was played."""
    last_explored: int
    """The last such round; 0 if there was none."""
    leader_changes: int
    """How often another arm became the best estimated one."""


@dataclass(frozen=True)
class OptimalTracking(Policy):
    r"""Explore what the lower bound demands, where it costs least, and only while it pays.

    Its exploration is made to approach the optimal allocation, c(A,θ)·σ² log n (checked numerically, not proven); at practical
    horizons it spends less, because what an arm could still save counts, and not only whether it could be optimal. No
    randomness of its own, no re-solves.

    Parameters
    ----------
    outlook : {"anytime", "horizon"}
        How many rounds information is to pay off in: as many as have passed, so that choices do not depend on the horizon;
        or those that are left of it, which explores for all of the horizon at its beginning and was measured to be no better
        from 10⁵ rounds on.
    prudence : float
        Factor on what information is worth. Every doubling costs about c·log 2 of regret, for fewer runs that settle on a
        wrong arm.

    Examples
    --------
    >>> from allocopt import instances
    >>> from allocopt.play.simulation.simulate import simulate
    >>> bandit = instances.counter_example(0.05)
    >>> r = simulate(OptimalTracking(), bandit, horizon=20_000, runs=20, rng=0)
    >>> optimistic = simulate("LinUCB:a=2", bandit, horizon=20_000, runs=20, rng=0)
    >>> bool(r.final_regret.mean() < optimistic.final_regret.mean())
    True
    """

    outlook: str = "anytime"
    prudence: float = 1.0

    uses_variances = True
    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def __post_init__(self) -> None:
        if self.outlook not in _OUTLOOKS:
            raise InvalidOption(f"outlook: expected 'anytime' or 'horizon', got {self.outlook!r}")
        object.__setattr__(self, "prudence", positive_number("prudence", self.prudence))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known; the spanner is played first."""
        ls = LeastSquares.on_spanner(setting)
        r, k = ls.features.shape
        return _State(
            ls=ls,
            noise=setting.noise_variance,
            prudence=self.prudence,
            horizon=setting.horizon if self.outlook == "horizon" else 0,
            leader=np.full(1, -1, np.int64),
            arm=np.zeros(1, np.int64),
            until=np.zeros(1, np.int64),
            stale=np.zeros(1, np.int64),
            decisions=np.zeros(1, np.int64),
            explored=np.zeros(1, np.int64),
            last_explored=np.zeros(1, np.int64),
            leader_changes=np.zeros(1, np.int64),
            prices=np.zeros((r, r)),
            differences=np.zeros((r, k)),
            images=np.zeros((r, k)),
            squares=np.zeros(k),
            savings=np.zeros(k),
        )

    def counters(self, state: Any) -> TrackingCounters:
        """What happened so far, from a state (``player.state``).

        Examples
        --------
        >>> player = OptimalTracking().start([[1, 0], [0, 1]], horizon=1000)
        >>> for _ in range(50):
        ...     player.update(player.choose(), float(player.choose() == 0))
        >>> OptimalTracking().counters(player.state).leader_changes
        0
        """
        return TrackingCounters(
            int(state.decisions[0]), int(state.explored[0]), int(state.last_explored[0]), int(state.leader_changes[0])
        )

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """The spanner; tracking, up to the last round that was spent on exploration; and exploiting since."""
        spanner = min(len(state.ls.first), horizon)
        found = [Phase("spanner", 1, spanner)]
        counted = self.counters(state)
        last = max(counted.last_explored, spanner)
        if last > spanner:
            summary = f"{counted.explored} rounds explored, {counted.leader_changes} changes of leader"
            found.append(Phase("tracking", spanner + 1, last - spanner, summary))
        if horizon > last:
            found.append(Phase("exploiting", last + 1, horizon - last))
        return tuple(found)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)
