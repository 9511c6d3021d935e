r"""PhasedElimination: G-optimal designs on the arms that are left (Lattimore & Szepesvári, Bandit Algorithms, chapter 22).

Phase ℓ = 1, 2, … has precision ε_ℓ = scale·2^-ℓ. With α the G-optimal allocation on the surviving arms (Σα = their rank,
||x||²_{H(α)^-1} <= 1 for all of them), every arm is played ⌈2σ² α_x log(kℓ(ℓ+1)/δ)/ε_ℓ²⌉ times, and those that are more than
2ε_ℓ below the best estimate of this phase alone are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from allocopt.actions.spanner import barycentric_spanner
from allocopt.base.errors import InvalidOption, SolverFailed
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.model.programs import g_optimal
from allocopt.policies.base import Setting
from allocopt.policies.field.batches import BatchPolicy, BatchState, next_batch
from allocopt.solving.solve import solve

__all__ = ["PhasedElimination", "g_optimal_design"]

_TOL = 1e-6  # of the designs: pulls are rounded up to whole numbers anyway


@spelled_constructor
@dataclass(frozen=True)
class PhasedElimination(BatchPolicy):
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

    most_batches = 256  # ε is 10^-77 times the first one by then: what is left is played as if there were one arm
    batch_name = "phase"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))
        if self.delta is not None:
            object.__setattr__(self, "delta", positive_number("delta", self.delta))
            if self.delta >= 1:
                raise InvalidOption(f"delta: expected a number between 0 and 1, got {self.delta!r}")

    def plan(self, state: BatchState, t: int, setting: Setting) -> None:
        """Between two phases: drop arms, then design the next one."""
        number = int(state.number[0])
        if number > 0:
            self._eliminate(state, number, setting)
        number, survivors = next_batch(state, t)
        state.batch.forget()
        coordinates, design = g_optimal_design("PhasedElimination", setting, survivors)
        due = np.zeros(setting.n_arms, np.int64)
        if number == self.most_batches or coordinates is None:
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

    def _eliminate(self, state: BatchState, number: int, setting: Setting) -> None:
        """Least squares from this phase alone; arms that are clearly worse than the best one go."""
        survivors = np.flatnonzero(state.alive)
        coordinates, _ = g_optimal_design("PhasedElimination", setting, survivors)
        assert coordinates is not None  # or the phase would not have ended
        gram = coordinates.T @ (state.batch.pulls[survivors, None] * coordinates)
        means = coordinates @ np.linalg.solve(gram, coordinates.T @ state.batch.sums[survivors])
        state.alive[survivors[means.max() - means > 2.0 * self._precision(number)]] = 0

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
