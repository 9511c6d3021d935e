r"""PhasedElimination: G-optimal designs on the arms that are left (Lattimore & Szepesvári, Bandit Algorithms, chapter 22).

Phase ℓ = 1, 2, … has precision ε_ℓ = scale·2^-ℓ. With α the G-optimal allocation on the surviving arms (Σα = their rank,
||x||²_{H(α)^-1} <= 1 for all of them), every arm is played ⌈2σ² α_x log(kℓ(ℓ+1)/δ)/ε_ℓ²⌉ times, and those that are more than
2ε_ℓ below the best estimate of this phase alone are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.actions.spanner import barycentric_spanner
from allocopt.base.errors import InvalidOption, SolverFailed
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.model.programs import g_optimal
from allocopt.policies.base import Phase, Policy, Setting, compiled, entry, play, play_blocks
from allocopt.policies.field.batches import Batch, learn_sum, next_due, rounds_due
from allocopt.solving.solve import solve

__all__ = ["PhasedElimination", "g_optimal_design"]

_MOST_PHASES = 256  # ε is 10^-77 times the first one by then: what is left is played as if there were one arm
_TOL = 1e-6  # of the designs: pulls are rounded up to whole numbers anyway


class _State(NamedTuple):
    alive: IntArray
    """1 for arms that are left."""
    batch: Batch
    """Of this phase."""
    phase: IntArray
    """Length 1: how many phases have begun."""
    starts: IntArray
    """First rounds of the phases."""
    left: IntArray
    """Arms at the beginning of each phase."""


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    return next_due(state.batch)


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    learn_sum(state.batch, arm, 1, reward)


@compiled
def _stay(state: Any, t: Any, arm: Any) -> Any:
    return rounds_due(state.batch, arm)


@compiled
def _learn(state: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    learn_sum(state.batch, arm, count, total)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_blocks(state: Any, ledger: Any, first: Any, last: Any, decisions: Any, noise: Any, rng: Any) -> Any:
    return play_blocks(_choose, _stay, _learn, state, ledger, first, last, decisions, noise, rng)


@dataclass(frozen=True)
class PhasedElimination(Policy):
    r"""Phased elimination with G-optimal exploration.

    Parameters
    ----------
    delta : float, optional
        Failure probability of all confidence intervals together; 1/n by default.
    scale : float
        Twice the precision of the first phase. Means should not differ by much more than this, or early phases are wasted.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.simulation.simulate import simulate
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> r = simulate(PhasedElimination(), bandit, horizon=1000, runs=1, rng=0)
    >>> [(p.name, p.start, p.length) for p in r.phases[0]]
    [('phase 1, 2 arms', 1, 134), ('phase 2, 1 arm', 135, 866)]
    """

    delta: float | None = None
    scale: float = 1.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_blocks = staticmethod(_run_blocks)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))
        if self.delta is not None:
            object.__setattr__(self, "delta", positive_number("delta", self.delta))
            if self.delta >= 1:
                raise InvalidOption(f"delta: expected a number between 0 and 1, got {self.delta!r}")

    def initial_state(self, setting: Setting) -> _State:
        """Before the first phase: nothing is due, so the first round has it planned."""
        k = setting.n_arms
        small = [np.zeros(n, np.int64) for n in (1, _MOST_PHASES, _MOST_PHASES)]
        return _State(np.ones(k, np.int64), Batch.blank(k), small[0], small[1], small[2])

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """Between two phases: drop arms, then design the next one."""
        number = int(state.phase[0])
        if number > 0:
            self._eliminate(state, number, setting)
        survivors = np.flatnonzero(state.alive)
        number += 1
        state.phase[0] = number
        state.starts[number - 1], state.left[number - 1] = t, len(survivors)
        state.batch.forget()
        coordinates, design = g_optimal_design("PhasedElimination", setting, survivors)
        due = np.zeros(setting.n_arms, np.int64)
        if number == _MOST_PHASES or coordinates is None:
            due[survivors[0]] = setting.horizon
            state.batch.begin(due)
            return
        log_level = math.log(setting.n_arms * number * (number + 1) / self._delta(setting))
        wanted = 2.0 * setting.noise_variance * design * log_level / self._precision(number) ** 2
        due[survivors] = np.ceil(np.minimum(wanted, setting.horizon)).astype(np.int64)
        state.batch.begin(due)

    def _precision(self, phase: int) -> float:
        return self.scale * 2.0**-phase

    def _delta(self, setting: Setting) -> float:
        return 1.0 / setting.horizon if self.delta is None else self.delta

    def _eliminate(self, state: _State, number: int, setting: Setting) -> None:
        """Least squares from this phase alone; arms that are clearly worse than the best one go."""
        survivors = np.flatnonzero(state.alive)
        coordinates, _ = g_optimal_design("PhasedElimination", setting, survivors)
        assert coordinates is not None  # or the phase would not have ended
        gram = coordinates.T @ (state.batch.pulls[survivors, None] * coordinates)
        means = coordinates @ np.linalg.solve(gram, coordinates.T @ state.batch.sums[survivors])
        state.alive[survivors[means.max() - means > 2.0 * self._precision(number)]] = 0

    def opening(self, setting: Setting) -> int:
        """It looks at the end of a phase only, when all its rewards are there."""
        return 0

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """Each phase with the number of arms that it began with."""
        starts = [int(x) for x in state.starts[: state.phase[0]]]
        ends = [*(s - 1 for s in starts[1:]), horizon]
        return tuple(
            Phase(f"phase {i + 1}, {n} arm{'s' if n > 1 else ''}", first, last - first + 1)
            for i, (first, last, n) in enumerate(zip(starts, ends, state.left.tolist(), strict=False))
        )

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the first phase is longer than the horizon."""
        state = self.initial_state(setting)
        self.plan(state, 1, setting)
        length, n = int(state.batch.due.sum()), setting.horizon
        if length < n or setting.n_arms == 1:
            return ()
        return (
            f"the first phase takes {length} rounds and the horizon is {n}: the design is played arm after arm, cut off "
            "there, and no arm is dropped",
        )


def g_optimal_design(policy: str, setting: Setting, survivors: IntArray) -> tuple[Array | None, Array]:
    """Coordinates of the surviving arms in their own span, and the G-optimal allocation; None if they are all the same."""
    key = ("G-optimal", survivors.tobytes())
    if key not in setting.memo:
        arms = setting.arms[survivors]
        if (arms == arms[0]).all():
            setting.memo[key] = None, np.zeros(len(survivors))
        else:
            coordinates = barycentric_spanner(arms, 1.0).coefficients
            solution = solve(g_optimal(coordinates), tol=_TOL)
            if not math.isfinite(solution.upper):
                reason = solution.stats.get("reason", "no reason given")
                raise SolverFailed(f"{policy}: no G-optimal design for {len(survivors)} arms: {reason}")
            setting.memo[key] = coordinates, solution.allocation
    found: tuple[Array | None, Array] = setting.memo[key]
    return found
