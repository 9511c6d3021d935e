r"""AOIDS: asymptotically optimal information-directed sampling (Kirschner, Lattimore, Vernade & Szepesvári, COLT 2021).

With V_s = λI + Σ x xᵀ and θ̂_s from the s exploration rounds so far (the data of exploitation rounds are discarded), x̂ the leader, and
ν(z) the nearest parameter in whose half-space z is no worse than x̂ (`alternatives.py`), round t

1. *exploits*, playing x̂, if m_s = min_z ||ν(z) − θ̂||²_V >= β_{s, t log t};
2. else *explores*. With the gaps Δ̂(x) = δ_s + ⟨x̂ − x, θ̂⟩, δ_s = max_z ⟨z − x̂, θ̂⟩ + √β_{s,s²} ||z − x̂||_{V^-1}, the weights
   q(z) ∝ exp(−η_s ||ν(z) − θ̂||²_V), η_s = min_{l<=s} m_l^{-1/2} (at most 1), and the information gain
   I(x) = Σ_z q(z) (|⟨ν(z) − θ̂, x⟩| + √β_{s,s²} ||x||_{V^-1})², it draws an arm from the distribution μ with the least information
   ratio Δ̂(μ)²/I(μ),

where √β_{s,1/δ} = √(2 log(1/δ) + log det V_s/λ) + √λ S. Deviations from the paper: rewards are divided by σ first (the paper has
σ = 1), and μ is sought among the distributions on x̂ and one other arm, as the authors' own code does: O(k) instead of O(k²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Policy, Setting, compiled, entry, play
from allocopt.policies.field.alternatives import Alternatives, find_alternatives
from allocopt.policies.linear import LeastSquares, absorb
from allocopt.policies.linucb import ridge_regression

__all__ = ["AOIDS"]

_NEGLIGIBLE = 1e-14  # weights below this share of the largest are not summed


class _State(NamedTuple):
    ls: LeastSquares
    """Of the exploration rounds, in units of σ."""
    sigma: float
    bound: float
    """√λ S, in units of σ."""
    logarithmic: int
    """1 for β = 2 log(1/δ) + d max(log log s, 1)."""
    only_optimistic: int
    """1 if the confidence term of the information gain is left out but for the arm of the largest upper bound."""
    found: Alternatives
    fresh: IntArray
    """Length 1, as the next ones: 1 if ``found`` is that of the present data."""
    explored: IntArray
    """s, rounds of exploration."""
    learning: IntArray
    """1 if the round that is being played is one of exploration."""
    rate: Array
    """η."""
    weights: Array
    """q."""
    gains: Array
    """I."""


@compiled
def _radius(state: Any, log_level: Any) -> Any:
    """√β for 1/δ = exp(log_level)."""
    if state.logarithmic == 1:
        rounds = max(state.explored[0] + 1, 2)
        return math.sqrt(2.0 * log_level + len(state.ls.inverse) * max(math.log(math.log(rounds)), 1.0))
    return math.sqrt(2.0 * log_level + max(state.ls.log_volume[0], 0.0)) + state.bound


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls, found = state.ls, state.found
    if state.fresh[0] == 0:
        find_alternatives(found, ls.features, ls.inverse, ls.means)
        state.fresh[0] = 1
    now = max(t, 2)
    if found.least[0] >= _radius(state, math.log(now * math.log(now))) ** 2:
        state.learning[0] = 0
        return found.leader[0]
    state.learning[0] = 1
    return _explore(state, rng)


@compiled
def _explore(state: Any, rng: Any) -> Any:
    """A draw from the distribution on the leader and one other arm whose information ratio is the least."""
    ls, found, gains = state.ls, state.found, state.gains
    k = len(ls.means)
    leader = found.leader[0]
    root = _radius(state, 2.0 * math.log(max(state.explored[0] + 1, 2)))
    doubt = 0.0
    for i in range(k):
        doubt = max(doubt, ls.means[i] - ls.means[leader] + root * math.sqrt(found.squares[i]))
    state.rate[0] = min(state.rate[0], 1.0 / math.sqrt(max(found.least[0], 1e-300)))
    _gains(state, root)
    best, top, share = leader, np.inf, 0.0
    for i in range(k):
        gap = doubt + ls.means[leader] - ls.means[i]
        p = 0.0  # of arm i; the ratio of a mixture of gaps D, D' and gains I, I' has its least value at D/(D' − D) − 2I/(I' − I)
        if i != leader and gains[i] > gains[leader]:
            p = 1.0
            if gap > doubt:
                p = min(max(doubt / (gap - doubt) - 2.0 * gains[leader] / (gains[i] - gains[leader]), 0.0), 1.0)
        mixed = (1.0 - p) * gains[leader] + p * gains[i]
        ratio = ((1.0 - p) * doubt + p * gap) ** 2 / mixed if mixed > 0.0 else np.inf
        if ratio < top:
            best, top, share = i, ratio, p
    return best if rng.random() < share else leader


@compiled
def _gains(state: Any, root: Any) -> None:
    """I(x) of all arms, up to a common factor."""
    ls, found, weights, gains = state.ls, state.found, state.weights, state.gains
    r, k = ls.features.shape
    highest, top = 0, -np.inf
    for i in range(k):
        weights[i] = (
            math.exp(-state.rate[0] * (found.distances[i] - found.least[0])) if found.distances[i] < np.inf else 0.0
        )
        gains[i] = 0.0
        if state.only_optimistic == 1 and ls.means[i] + root * math.sqrt(max(ls.widths[i], 0.0)) > top:
            highest, top = i, ls.means[i] + root * math.sqrt(max(ls.widths[i], 0.0))
    for z in range(k):
        if weights[z] > _NEGLIGIBLE:
            for i in range(k):
                along = 0.0
                for a in range(r):
                    along += found.shifts[a, z] * ls.features[a, i]
                doubt = root * math.sqrt(max(ls.widths[i], 0.0))
                if state.only_optimistic == 1 and i != highest:
                    doubt = 0.0
                gains[i] += weights[z] * (abs(along) + doubt) ** 2


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    if state.learning[0] == 0:
        return
    ls = state.ls
    ls.log_volume[0] += math.log1p(max(ls.widths[arm], 0.0))
    absorb(ls, arm, reward / state.sigma)
    state.explored[0] += 1
    state.fresh[0] = 0


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class AOIDS(Policy):
    r"""Asymptotically optimal information-directed sampling.

    Parameters
    ----------
    radius : {"theoretical", "log"}
        β of the analysis, with log det V; or 2 log(1/δ) + d max(log log s, 1), the smaller one of the authors' experiments.
    correction : {"all", "ucb"}
        The confidence term of the information gain for all arms, as in the paper; or for the arm of the largest upper
        bound only, which the authors' code offers as better in finite time.
    ridge, norm_bound : float
        λ and S >= ||θ||, in the units of the arms and of the rewards.

    Examples
    --------
    >>> import allocopt as ao
    >>> r = ao.simulate(AOIDS(), ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0]), horizon=1000, runs=4, rng=0)
    >>> r.pulls.sum(axis=1)
    array([1000, 1000, 1000, 1000])
    """

    radius: str = "theoretical"
    correction: str = "all"
    ridge: float = 1.0
    norm_bound: float = 1.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)

    def __post_init__(self) -> None:
        if self.radius not in ("theoretical", "log"):
            raise InvalidOption(f"radius: expected 'theoretical' or 'log', got {self.radius!r}")
        if self.correction not in ("all", "ucb"):
            raise InvalidOption(f"correction: expected 'all' or 'ucb', got {self.correction!r}")
        object.__setattr__(self, "ridge", positive_number("ridge", self.ridge))
        object.__setattr__(self, "norm_bound", positive_number("norm_bound", self.norm_bound))

    def initial_state(self, setting: Setting) -> _State:
        """No data: the first round explores."""
        k = setting.n_arms
        ls = ridge_regression(setting, self.ridge, np.ones(k))
        sigma = math.sqrt(setting.noise_variance)
        counters = [np.zeros(1, np.int64) for _ in range(3)]
        return _State(
            ls, sigma, math.sqrt(self.ridge) * self.norm_bound / sigma, int(self.radius == "log"), int(self.correction == "ucb"),
            Alternatives.blank(len(ls.inverse), k), counters[0], counters[1], counters[2], np.ones(1), np.zeros(k), np.zeros(k),
        )  # fmt: skip

    def opening(self, setting: Setting) -> int:
        """A ridge needs no rewards."""
        return 0
