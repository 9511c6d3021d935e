r"""UCB: the finite-armed rule that knows nothing of the arms' geometry, so it pays Σ 2σ²/Δ_x · log n.

It is also what `EndOfOptimism` plays in its recovery phase.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Policy, Setting, compiled, entry, play

__all__ = ["UCB", "optimistic_arm"]


class _State(NamedTuple):
    scale: Array
    """a σ²."""
    pulls: IntArray
    means: Array


@compiled
def optimistic_arm(pulls: Any, means: Any, t: Any, scale: Any) -> Any:
    """Arms not yet played first; then the largest μ̂_x + √(scale_x · log(1 + t log² t)/T_x)."""
    k = len(pulls)
    if t <= k:
        return t - 1
    log_t = math.log(t)
    level = math.log(1.0 + t * log_t * log_t)
    best, top = 0, -np.inf
    for i in range(k):
        index = means[i] + math.sqrt(scale[i] * level / pulls[i])
        if index > top:
            best, top = i, index
    return best


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    return optimistic_arm(state.pulls, state.means, t, state.scale)


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    state.pulls[arm] += 1
    state.means[arm] += (reward - state.means[arm]) / state.pulls[arm]


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class UCB(Policy):
    r"""The finite-armed UCB: every arm once, then the largest μ̂_x(t−1) + √(a σ² log(1 + t log² t)/T_x(t−1)).

    Parameters
    ----------
    a : float
        Confidence width; with 2, the default, the regret is asymptotically Σ 2σ²/Δ_x · log n. It does not use the horizon.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.simulation.simulate import simulate
    >>> r = simulate(UCB(), ao.LinearBandit([[1, 0], [0, 1]], [1, 0]), horizon=100, runs=4, rng=0)
    >>> r.pulls.sum(axis=1)
    array([100, 100, 100, 100])
    """

    a: float = 2.0

    uses_variances = True
    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", positive_number("a", self.a))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing pulled."""
        k = setting.n_arms
        return _State(self.a * setting.variance_of_each, np.zeros(k, np.int64), np.zeros(k))

    def opening(self, setting: Setting) -> int:
        """One reward of every arm."""
        return setting.n_arms

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether there are more arms than rounds."""
        k, n = setting.n_arms, setting.horizon
        return (
            (f"plays every arm once, but there are {k} arms and {n} rounds: arms 0 to {n - 1} once each",)
            if n < k
            else ()
        )
