r"""OSSB: optimal sampling for structured bandits (Combes, Magureanu & Proutière, NIPS 2017), for linear rewards.

With N_x the pulls, s the rounds that did not exploit, and α_x the solution of the regret program at the estimates, round t

1. *exploits*, playing the leader, if N_x >= (1 + γ) α_x log t for all other arms; else s grows by one, and it
2. *estimates*, playing the arm of the fewest pulls, if these are at most ε·s; else
3. *explores*, playing the arm of the least N_x/α_x.

The paper's own listing could not be had (its abstract and first pages could: arXiv 1711.00400). Read instead: the listing that
one of its authors prints again (Réveillard & Combes, NeurIPS 2025, Algorithm 1 in Appendix A.1, with ε = γ = 0 and α = 0 for the
leaders; their code, wilrev/MultimodalBandits, does the same); SMPyBandits' ``OSSB.py``; and a third public coding, for a finite
set of parameters, independent of it. The last two agree in all three steps as they are above: the test against (1 + γ) α_x log t
for every arm, s grown before the fewest pulls are compared with ε·s, the least N_x/α_x. All have ε = γ = 0 by default, though the
theorem needs both to be positive. So the default is ε = γ = 0; what the first paper's experiments had is not known here.

Deviations from these listings:

- They estimate each mean by the average of that arm's rewards. Here means are ⟨x, θ̂⟩ with the least-squares θ̂, since
  averages would not be linear in x, and a program for linear rewards needs some θ. (Hao et al. 2020 blame the averages for OSSB's
  lower-order term, which grows with the number of arms: here it has none.) So a barycentric spanner is played once first.
- They solve the program in every round, or (the experiments of 2025) in rounds 1, 2, 4, 8, … only. Here it is solved again when
  the leader changes, and when ``resolve`` times the rounds so far have passed since the last time; ``resolve=0`` solves in every
  round.
- α_x log t is for noise of variance σ² as it is given; the listing has σ = 1.
- Ties go to the arm of the lowest number; the listings leave them open or draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play
from allocopt.policies.field.estimated_program import allocation_at, gaps_below, leads_by_far
from allocopt.policies.linear import LeastSquares, learn
from allocopt.policies.linucb import spanner_note

__all__ = ["OSSB"]


class _State(NamedTuple):
    ls: LeastSquares
    epsilon: float
    gamma: float
    leader: IntArray
    """Length 1, as the next ones: at the last solution; −1 before the first."""
    expires: IntArray
    """The round from which on the solution is too old."""
    allocation: Array
    """α; 0 for the leader and its copies, which are not held to anything."""
    unsure: IntArray
    """s, rounds that did not exploit."""
    estimated: IntArray
    """Those of them that were spent on the arm of the fewest pulls."""
    solves: IntArray


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls = state.ls
    if t <= len(ls.first):
        return ls.first[t - 1]
    k = len(ls.means)
    leader = 0
    for i in range(1, k):
        if ls.means[i] > ls.means[leader]:
            leader = i
    known = state.leader[0]
    if known < 0 or t >= state.expires[0] or leads_by_far(ls.means, leader, known):
        return PAUSE
    wanted = (1.0 + state.gamma) * math.log(t)
    satisfied = True
    for i in range(k):
        if ls.pulls[i] < state.allocation[i] * wanted:
            satisfied = False
            break
    if satisfied:
        return known
    state.unsure[0] += 1
    fewest, behind, least = 0, -1, np.inf
    for i in range(k):
        if ls.pulls[i] < ls.pulls[fewest]:
            fewest = i
        if state.allocation[i] > 0.0 and ls.pulls[i] / state.allocation[i] < least:
            behind, least = i, ls.pulls[i] / state.allocation[i]
    if ls.pulls[fewest] <= state.epsilon * state.unsure[0]:
        state.estimated[0] += 1
        return fewest
    return behind


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    learn(state.ls, t, arm, reward)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class OSSB(Policy):
    r"""Optimal sampling for structured bandits.

    Parameters
    ----------
    epsilon, gamma : float
        ε, the share of forced estimation among the rounds that do not exploit, and γ, by which exploration exceeds the lower
        bound; both 0 by default.
    resolve : float
        Share of the rounds so far after which the program is solved again; 0 for in every round.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0])
    >>> r = ao.simulate(OSSB(), bandit, horizon=1000, runs=4, rng=0)
    >>> r.pulls.sum(axis=1)
    array([1000, 1000, 1000, 1000])
    """

    epsilon: float = 0.0
    gamma: float = 0.0
    resolve: float = 0.05

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)

    def __post_init__(self) -> None:
        for name in ("epsilon", "gamma", "resolve"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name), zero=True))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known; the spanner is played first."""
        k = setting.n_arms
        one = [np.zeros(1, np.int64) for _ in range(4)]
        ls = LeastSquares.of(setting.spanner.coefficients, setting.spanner.indices, 0.0, np.ones(k))
        leader = np.full(1, -1, np.int64)
        return _State(ls, self.epsilon, self.gamma, leader, one[0], np.zeros(k), one[1], one[2], one[3])

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """Solve the regret program at the estimates."""
        leader = int(np.argmax(state.ls.means))
        gaps = gaps_below(state.ls.means, leader)
        allocation = allocation_at("OSSB", setting, state.solves, gaps, 2.0 * setting.noise_variance)
        state.allocation[:] = np.where(gaps > 0.0, allocation, 0.0)
        state.leader[0] = leader
        state.expires[0] = t + max(1, int(self.resolve * t))
        state.solves[0] += 1

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """The spanner, and how the other rounds were spent."""
        spanner = min(len(state.ls.first), horizon)
        found = [Phase("spanner", 1, spanner)]
        if horizon > spanner:
            unsure, estimated = int(state.unsure[0]), int(state.estimated[0])
            summary = f"{unsure - estimated} rounds explored, {estimated} estimated, {int(state.solves[0])} solves"
            found.append(Phase("sampling", spanner + 1, horizon - spanner, summary))
        return tuple(found)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)
