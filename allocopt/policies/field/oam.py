r"""OAM: optimal allocation matching (Hao, Lattimore & Szepesvári, "Adaptive Exploration in Linear Contextual Bandit", AISTATS 2020).

Contexts m offer sets of arms A^m; without contexts there is one. With least squares from all rounds, Δ̂ the estimated gaps
within each context, Δ̂_min the smallest positive one of all contexts, f = f_n of the paper, N the pulls and s the rounds of
exploration so far, round t with context m

1. *exploits*, playing the leader of m, if ||x||²_{G^-1} <= max(Δ̂_min², Δ̂_x²)/(σ²f) for all x in A^m; else s grows by one;
2. *wastes*, if N_x >= min(T_x, σ²f/Δ̂_min²) for all x in A^m, T the solution of the program at Δ̂ (inf for leaders): it plays
   the largest ⟨x, θ̂⟩ + √(σ² f_{n,1/s²}) ||x||_{G^-1};
3. *estimates*, if the fewest pulls in A^m are at most ε_t·s: it plays that arm;
4. else *explores*: the arm of the least N_x/min(T_x, σ²f/Δ̂_min²).

This is Algorithm 1 of the paper with (4.1)–(4.6), read in the proceedings (PMLR 108, pages 3536–3545, and its supplement).
Where text and listing differ, the listing's ε_t·s(t − 1) and the text's f/Δ̂_min² are taken. The paper's experiments do not solve
in every round but when det G has grown by the factor 1 + ζ, ζ = 0.1: that is ``resolve``.

Deviations:

- The paper begins with d rounds that make G invertible; here a barycentric spanner is played once, or, where contexts decide
  what can be played, G begins as if each of its arms had had one reward 0.
- A program is solved in rounds that do not exploit only: those that do need none.
- Noise of variance σ²; the paper has σ = 1.
- The only ε_t that the paper names is its theorem's, 1/log log t (1 for t < 16 here). That is above 1/3 up to t = 5·10⁸: until then
  at most three arms of a context are played in turn in all rounds that do not exploit, and more of them longer. The paper's
  figures with 100 arms cannot have been made with it ("forced exploration plays a limited role"), and what they were made with
  is not printed. The default, ε = 0.01, is ours.
- The universal constant of f_n, which the paper leaves open, also for its experiments, is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.model.levels import f_n
from allocopt.policies.base import PAUSE, Phase, Policy, Setting, compiled, entry, play, play_contexts
from allocopt.policies.field.estimated_program import allocation_at, gaps_below, leads_by_far
from allocopt.policies.linear import LeastSquares, learn
from allocopt.policies.linucb import spanner_note

__all__ = ["OAM"]


class _State(NamedTuple):
    ls: LeastSquares
    offered: IntArray
    """The first arm of this round's context, and the first beyond it."""
    starts: IntArray
    """The first arm of each context, and the number of all arms."""
    noise: float
    level: float
    """f_n."""
    slope: float
    """2(1 + 1/log n), what log(1/δ) counts in f_{n,δ}."""
    log_n: float
    epsilon: float
    """ε; 0 for 1/log log t."""
    leaders: IntArray
    """Of each context, now."""
    growth: Array
    """Length 1: det G over what it was at the last solution; inf before the first."""
    stale: float
    """Growth beyond which the program is solved again."""
    targets: Array
    """T."""
    explored: IntArray
    """Length 1, as the next ones: s."""
    estimated: IntArray
    wasted: IntArray
    solves: IntArray


@compiled
def _least_gap(state: Any) -> Any:
    """Δ̂_min, and on the way the leaders of all contexts; inf if nothing is worse than a leader."""
    means, least = state.ls.means, np.inf
    for m in range(len(state.leaders)):
        first, last = state.starts[m], state.starts[m + 1]
        leader = first
        for i in range(first + 1, last):
            if means[i] > means[leader]:
                leader = i
        state.leaders[m] = leader
        for i in range(first, last):
            if leads_by_far(means, leader, i):
                least = min(least, means[leader] - means[i])
    return least


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls = state.ls
    if t <= len(ls.first):
        return ls.first[t - 1]
    least = _least_gap(state)
    begin, end = state.offered[0], state.offered[1]
    m = 0
    while state.starts[m + 1] <= begin:
        m += 1
    leader = state.leaders[m]
    level = state.noise * state.level
    certain = True
    for i in range(begin, end):
        gap = max(least, ls.means[leader] - ls.means[i])
        if not ls.widths[i] * level <= gap * gap:
            certain = False
            break
    if certain:
        return leader
    if state.growth[0] > state.stale:
        return PAUSE
    return _explore(state, t, level / (least * least))


@compiled
def _explore(state: Any, t: Any, cap: Any) -> Any:
    ls = state.ls
    begin, end = state.offered[0], state.offered[1]
    before = state.explored[0]
    state.explored[0] += 1
    fewest, behind, ratio, unsaturated = begin, begin, np.inf, False
    for i in range(begin, end):
        wanted = min(state.targets[i], cap)
        if ls.pulls[i] < wanted:
            unsaturated = True
        if ls.pulls[i] < ls.pulls[fewest]:
            fewest = i
        if wanted > 0.0 and ls.pulls[i] / wanted < ratio:
            behind, ratio = i, ls.pulls[i] / wanted
    if not unsaturated:
        state.wasted[0] += 1
        offset = state.level - state.slope * state.log_n
        root = math.sqrt(state.noise * (offset + state.slope * 2.0 * math.log(state.explored[0])))
        best, top = begin, -np.inf
        for i in range(begin, end):
            index = ls.means[i] + root * math.sqrt(max(ls.widths[i], 0.0))
            if index > top:
                best, top = i, index
        return best
    share = state.epsilon
    if share == 0.0:
        share = 1.0 if t < 16 else 1.0 / math.log(math.log(t))
    if ls.pulls[fewest] <= share * before:
        state.estimated[0] += 1
        return fewest
    return behind


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    if t > len(state.ls.first):
        state.growth[0] *= 1.0 + state.ls.weights[arm] * state.ls.widths[arm]
    learn(state.ls, t, arm, reward)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_contexts(state: Any, ledger: Any, offers: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play_contexts(_choose, _update, state, ledger, offers, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class OAM(Policy):
    r"""Optimal allocation matching, with contexts or without.

    Parameters
    ----------
    exploration : {"little", "theorem"}
        ε_t = 0.01, or 1/log log t as in the theorem of asymptotic optimality.
    constant : float
        The universal constant of f_n, which the paper leaves open.
    resolve : float
        ζ: the program is solved again when det G has grown by more than the factor 1 + ζ since the last time, 0.1 as in the paper's
        experiments; 0 for in every round that does not exploit, as in its listing.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.ContextualBandit([[[1, 0], [0, 1]], [[0.5, 0], [1, 1], [0, 0.2]]], [1, 0.2], weights=[3, 1])
    >>> r = ao.simulate(OAM(), bandit, horizon=1000, runs=4, rng=0)
    >>> r.pulls.sum(axis=1), bool((abs(r.pulls[:, :2].sum(axis=1) - 750) < 60).all())
    (array([1000, 1000, 1000, 1000]), True)
    """

    exploration: str = "little"
    constant: float = 1.0
    resolve: float = 0.1

    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_contexts = staticmethod(_run_contexts)

    def __post_init__(self) -> None:
        if self.exploration not in ("little", "theorem"):
            raise InvalidOption(f"exploration: expected 'little' or 'theorem', got {self.exploration!r}")
        for name in ("constant", "resolve"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name), zero=True))

    def initial_state(self, setting: Setting) -> _State:
        """Nothing known."""
        k, sizes = setting.n_arms, setting.sizes or (setting.n_arms,)
        dim, log_n = len(setting.spanner.indices), math.log(setting.horizon)
        one = [np.zeros(1, np.int64) for _ in range(4)]
        ls = LeastSquares.on_spanner(setting)
        forced = 0.01 if self.exploration == "little" else 0.0
        return _State(
            ls, setting.offered, np.cumsum([0, *sizes]).astype(np.int64), setting.noise_variance,
            f_n(setting.horizon, dim, self.constant), 2.0 * (1.0 + 1.0 / log_n), log_n, forced, np.zeros(len(sizes), np.int64),
            np.full(1, np.inf), 1.0 + self.resolve, np.zeros(k), one[0], one[1], one[2], one[3],
        )  # fmt: skip

    def plan(self, state: _State, t: int, setting: Setting) -> None:
        """Solve the program at the estimated gaps of all contexts."""
        gaps = np.zeros(setting.n_arms)
        for first, last in pairwise(state.starts.tolist()):
            means = state.ls.means[first:last]
            gaps[first:last] = gaps_below(means, int(np.argmax(means)))
        level = setting.noise_variance * state.level
        state.targets[:] = allocation_at("OAM", setting, state.solves, gaps, level)
        state.growth[0] = 1.0
        state.solves[0] += 1

    def phases(self, state: _State, horizon: int) -> tuple[Phase, ...]:
        """All rounds, with how many explored."""
        explored, estimated, wasted = int(state.explored[0]), int(state.estimated[0]), int(state.wasted[0])
        summary = (
            f"{explored} rounds did not exploit: {estimated} estimated, {wasted} wasted, {explored - estimated - wasted} explored; "
            f"{int(state.solves[0])} solves"
        )
        return (Phase("matching", 1, horizon, summary),)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)
