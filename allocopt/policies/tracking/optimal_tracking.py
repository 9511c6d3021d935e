r"""OptimalTracking: the optimal allocation used smoothly, without phases and without discarding data.

What the paper's summary asks for (Section 9, `sec:summary`). The design, its measured figures and the designs that lost are
in docs/optimal-tracking.md; in short:

After a spanner has been played once, let x̂ be the leader (the best estimated arm), Δ̂ the estimated gaps,
s_x = σ||x − x̂||_{G^-1} and z_x = Δ̂_x/s_x. If x̂ is played from now on, the expected loss per round to arm x is
L_x = s_x (φ(z_x) − z_x Φ(−z_x)), so with R rounds to come one pull of y saves about

    b(y) = Σ_x λ_x ⟨y, G^-1(x − x̂)⟩²/(1 + ||y||²_{G^-1}),      λ_x = ν_x R σ² φ(z_x)(1 + z_x²/2) q_x/(2 s_x),

because ∂L/∂s = φ(z). ν_x is the part of x that is new beside the other rivals (`directions`: copies count once); the factor
1 + z²/2 is for looking again and again; q is 1 except for near ties that only other arms can decide, which can wait. An arm y is worth
exploring while b(y) exceeds its price Δ̂_y. Of these arms and the leader, the policy plays the one that saves most per
regret, b(y)/(Δ̂_y + Σ_x ν_x L_x): all of them, x̂ too, are charged with the regret expected of x̂. Only arms that can matter are
looked at (`near_arms`).

Why this tracks the optimal allocation: b(y) <= Δ̂_y for all y, with equality where exploration goes on, are the KKT
conditions of the regret program with the multipliers λ, which decay like R exp(−Δ̂_x²/(2s_x²)). So exploration ends where
Δ̂_x²/(2||x − x̂||²_{G^-1}) = σ² log R + O(log log R) on the binding arms: at the constraints of the lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import IntArray, positive_number
from allocopt.policies.base import Phase, Policy, Setting, compiled, entry, play, play_blocks
from allocopt.policies.linucb import spanner_note
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

__all__ = ["OptimalTracking", "TrackingCounters"]

_OUTLOOKS = ("anytime", "horizon")
_NOISES = ("given", "estimated")


class _State(NamedTuple):
    sight: View
    prudence: float
    horizon: int
    """n, or 0 if the policy does not look at it."""
    leader: IntArray
    """Length 1, as are the next ones: x̂ as of the last decision; −1 before the first."""
    arm: IntArray
    """What the last decision chose."""
    until: IntArray
    """Before this round the arm is played without looking."""
    decisions: IntArray
    explored: IntArray
    """Rounds in which another arm than the leader was played, after the spanner."""
    last_explored: IntArray
    leader_changes: IntArray


@compiled
def _decide(state: Any, t: Any) -> Any:
    """The arm of round t, from everything that was observed before it."""
    sight = state.sight
    rounds = state.horizon - t + 1 if state.horizon > 0 else t
    place, best = look(sight, t, state.prudence * rounds)
    leader, chosen = sight.near.arms[place], sight.near.arms[best]
    state.decisions[0] += 1
    note_leader(state, leader)
    state.arm[0] = chosen
    state.until[0] = t + max(1, sight.estimate.pulls[chosen] // PULLS_PER_REPEAT)
    return chosen


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    arm = decided(state, t)
    return _decide(state, t) if arm == UNDECIDED else arm


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    learn_block(state, t, arm, 1, reward)


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, rounds_to_stay, learn_block, state, ledger, first, last, decisions, noise, rng)


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


@spelled_constructor
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
    patience : float
        Prior odds, 0 or more, that a near tie which only arms far from both can decide is worth nothing. With 0 to decide it is
        paid for at once; with 1, the default, half of that is saved, and lost where the tie was none. The trade is measured in
        docs/optimal-tracking.md.
    noise : {"given", "estimated"}
        Whether σ² is what was given, or the larger of that and what the rewards show, for noise that may be understated.

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
    patience: float = 1.0
    noise: str = "given"

    uses_variances = True
    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def __post_init__(self) -> None:
        if self.outlook not in _OUTLOOKS:
            raise InvalidOption(f"outlook: expected 'anytime' or 'horizon', got {self.outlook!r}")
        if self.noise not in _NOISES:
            raise InvalidOption(f"noise: expected 'given' or 'estimated', got {self.noise!r}")
        object.__setattr__(self, "prudence", positive_number("prudence", self.prudence))
        object.__setattr__(self, "patience", positive_number("patience", self.patience, zero=True))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known; the spanner is played first."""
        return _State(
            sight=View.blank(Estimate.blank(setting, setting.weights), self.noise == "estimated", self.patience),
            prudence=self.prudence,
            horizon=setting.horizon if self.outlook == "horizon" else 0,
            leader=np.full(1, -1, np.int64),
            arm=np.zeros(1, np.int64),
            until=np.zeros(1, np.int64),
            decisions=np.zeros(1, np.int64),
            explored=np.zeros(1, np.int64),
            last_explored=np.zeros(1, np.int64),
            leader_changes=np.zeros(1, np.int64),
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
        counted = self.counters(state)
        summary = f"{counted.explored} rounds explored, {counted.leader_changes} changes of leader"
        return phases_so_far(state, horizon, summary)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)
