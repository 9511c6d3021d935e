r"""SOLID: a primal–dual incremental policy (Tirinzoni, Pirotta, Restelli & Lazaric, NeurIPS 2020), with a single context.

With V = νI + Σ x xᵀ and θ̂ from all rounds, x̂ the leader, and s the rounds of exploration so far, round t

1. *exploits*, playing x̂, if inf_{θ'} ||θ̂ − θ'||²_V > β_t, over the θ' whose best arm is another (`alternatives.py`);
2. else *explores*: draws an arm from ω, and then takes one step each of the weights ω and of the multiplier λ,

       ω(x) ∝ ω(x) exp(a_ω q(x)),     λ ← min(max(λ − a_λ g, 0), λ_max),

   for the Lagrangian f + λg with the optimistic f = Σ_x ω(x)(⟨x, θ̂⟩ + √γ_s ||x||_{V^-1}) and
   g = inf_{θ'} ||θ̂ − θ'||²_{V_ω}/(2σ²) + (2BL/σ²) √γ_s Σ_x ω(x)||x||_{V^-1} − 1/z, where V_ω = Σ_x ω(x) x xᵀ and q is a
   supergradient of f + λg in ω.

Exploration has phases: phase k = 0, 1, … has p_k = z_k e^{2k} rounds with z_k = z_0 e^k; each begins with uniform ω and
λ = 0.

The paper's own listing could not be had (its abstract and first pages could: arXiv 2010.12247; they say what the parts are, not
their constants). Read instead: ``pm/strategies/solid.py`` of kirschnj/pm-ids, by which Kirschner et al. 2021 compared, and what
its comments say of the paper. From it are z_0 = 100 (30 in an earlier version of that file), λ_max = 10, a_λ = 0.1 and a_ω = 0.5
(the heuristic of the paper's Section K.3; its theorem has a_λ = a_ω = 1/√p_k) and the length of the phases (the code has e^k for
e^{2k}, and says so).
The steps, and β_t = σ²(log t + d log log n) and γ_s = σ²(log s + d log log n), are the paper's as we recall them, unchecked.
These are smaller than pm-ids' (σ√(log det V + 2 log t) + 1)², or 2σ² log t + d log log t where that is asked for, and than what
the theorem needs to leading order, 2σ² log t: with ``width=1`` the test stops exploring at half the evidence of the lower bound, so
optimality is claimed for ``width=2`` only.

Deviations: rewards are divided by ``scale`` = BL first, because the step sizes are for rewards of size one; no projection of
θ̂ onto the ball of radius B, and the infima are over all of R^d, not over the ball; V_ω gets 10^-9 of its trace on the diagonal,
so that it has an inverse when ω has left all but a few arms (pm-ids: 10^-3 and more where a factorisation fails). Where pm-ids
differs from the paper, it is not followed: it looks at the second-best arm's alternative only, takes q by a finite difference, and
resets ω and λ only if asked to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Phase, Policy, Setting, compiled, entry, play
from allocopt.policies.field.alternatives import Alternatives, find_alternatives
from allocopt.policies.linear import LeastSquares, absorb, factorise, invert
from allocopt.policies.linucb import ridge_regression

__all__ = ["SOLID"]

_RATE_OF_WEIGHTS, _RATE_OF_MULTIPLIER, _MOST_MULTIPLIER = 0.5, 0.1, 10.0  # a_ω, a_λ, λ_max: see above
_DIAGONAL = 1e-9
_LEAST_WEIGHT = 1e-300  # so that no arm is lost to underflow for good


class _State(NamedTuple):
    ls: LeastSquares
    """Of rewards divided by the scale."""
    scale: float
    noise: float
    """σ² of rewards divided by the scale."""
    width: float
    slack: float
    """d log log n."""
    first_phase: float
    """z_0."""
    found: Alternatives
    fresh: IntArray
    """Length 1, as the next ones: 1 if ``found`` is that of the present data."""
    explored: IntArray
    in_phase: IntArray
    phase: IntArray
    weights: Array
    """ω."""
    multiplier: Array
    """λ, length 1."""
    design: Array
    """V_ω and then its Cholesky factor; shape (r, r)."""
    inverse: Array
    """Of V_ω."""
    scratch: Alternatives
    """For V_ω."""


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls, found = state.ls, state.found
    if state.fresh[0] == 0:
        find_alternatives(found, ls.features, ls.inverse, ls.means)
        state.fresh[0] = 1
    if found.least[0] > state.width * state.noise * (math.log(t) + state.slack):
        return found.leader[0]
    weights = state.weights
    draw, total, arm = rng.random(), 0.0, len(weights) - 1
    for i in range(len(weights)):
        total += weights[i]
        if draw < total:
            arm = i
            break
    state.explored[0] += 1
    state.in_phase[0] += 1
    _step(state)
    if state.in_phase[0] >= math.floor(state.first_phase * math.exp(3.0 * state.phase[0])):
        state.in_phase[0] = 0
        state.phase[0] += 1
        state.multiplier[0] = 0.0
        for i in range(len(weights)):
            weights[i] = 1.0 / len(weights)
    return arm


@compiled
def _step(state: Any) -> None:
    """One step of ω and of λ."""
    ls, weights, nearest = state.ls, state.weights, state.scratch
    r, k = ls.features.shape
    _invert_design(state)
    find_alternatives(nearest, ls.features, state.inverse, ls.means)
    z = nearest.nearest[0]
    gamma = state.width * state.noise * (math.log(state.explored[0]) + state.slack)
    root = math.sqrt(max(gamma, 0.0))
    multiplier = state.multiplier[0]
    slack = -1.0 / (state.first_phase * math.exp(state.phase[0]))
    top = -np.inf
    for i in range(k):
        doubt = root * math.sqrt(max(ls.widths[i], 0.0))
        along = 0.0
        if z >= 0:
            for a in range(r):
                along += nearest.shifts[a, z] * ls.features[a, i]
        gain = along * along / (2.0 * state.noise) + 2.0 * doubt / state.noise
        slack += weights[i] * gain
        weights[i] = math.log(max(weights[i], _LEAST_WEIGHT)) + _RATE_OF_WEIGHTS * (
            ls.means[i] + doubt + multiplier * gain
        )
        top = max(top, weights[i])
    total = 0.0
    for i in range(k):
        weights[i] = math.exp(weights[i] - top)
        total += weights[i]
    for i in range(k):
        weights[i] /= total
    state.multiplier[0] = min(max(multiplier - _RATE_OF_MULTIPLIER * slack, 0.0), _MOST_MULTIPLIER)


@compiled
def _invert_design(state: Any) -> None:
    """(V_ω + a little)^-1, by Cholesky."""
    ls, weights, factor = state.ls, state.weights, state.design
    r, k = ls.features.shape
    trace = 0.0
    for a in range(r):
        for b in range(a + 1):
            total = 0.0
            for i in range(k):
                total += weights[i] * ls.features[a, i] * ls.features[b, i]
            factor[a, b] = total
        trace += factor[a, a]
    for a in range(r):
        factor[a, a] += _DIAGONAL * max(trace, 1e-300)
    factorise(factor)
    invert(factor, state.inverse)


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    absorb(state.ls, arm, reward / state.scale)
    state.fresh[0] = 0


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class SOLID(Policy):
    r"""Primal–dual incremental exploration.

    Parameters
    ----------
    width : float
        Factor of β and γ: 1 by default; 2 is what the theorem needs to leading order.
    first_phase : float
        z_0, rounds of the first phase.
    ridge : float
        ν, in the units of the arms.
    scale : float
        BL, a bound for the means, in the units of the rewards.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0])
    >>> r = ao.simulate(SOLID(), bandit, horizon=1000, runs=4, rng=0)
    >>> r.pulls.sum(axis=1)
    array([1000, 1000, 1000, 1000])
    """

    width: float = 1.0
    first_phase: float = 100.0
    ridge: float = 1.0
    scale: float = 1.0

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)

    def __post_init__(self) -> None:
        for name in ("width", "first_phase", "ridge", "scale"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))

    def initial_state(self, setting: Setting) -> _State:
        """No data, uniform weights."""
        k = setting.n_arms
        ls = ridge_regression(setting, self.ridge, np.ones(k))
        r = len(ls.inverse)
        slack = r * max(math.log(math.log(setting.horizon)), 0.0)
        one = [np.zeros(1, np.int64) for _ in range(4)]
        return _State(
            ls, self.scale, setting.noise_variance / self.scale**2, self.width, slack, self.first_phase, Alternatives.blank(r, k),
            one[0], one[1], one[2], one[3], np.full(k, 1.0 / k), np.zeros(1), np.zeros((r, r)), np.zeros((r, r)),
            Alternatives.blank(r, k),
        )  # fmt: skip

    def opening(self, setting: Setting) -> int:
        """A ridge needs no rewards."""
        return 0

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """All rounds, with how many explored."""
        done, rest = int(state.phase[0]), int(state.in_phase[0])
        summary = f"{int(state.explored[0])} rounds explored, {done} phases and {rest} rounds"
        return (Phase("sampling", 1, horizon, summary),)
