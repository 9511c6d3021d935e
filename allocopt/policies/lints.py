r"""LinTS: Thompson sampling, θ̃ ~ N(θ̂, a σ² G^-1) and then the best arm for θ̃ (flat prior, so a spanner is played first)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Policy, Setting, compiled, entry, play, play_contexts
from allocopt.policies.linear import LeastSquares, absorb, absorb_first
from allocopt.policies.linucb import spanner_note

__all__ = ["LinTS"]


class _State(NamedTuple):
    ls: LeastSquares
    scale: float
    """√a σ."""
    root: Array
    """S with S Sᵀ = G^-1."""
    normals: Array
    indices: Array
    offered: IntArray
    """The arms that may be played."""


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls = state.ls
    if t <= len(ls.first):
        return ls.first[t - 1]
    r, k = ls.features.shape
    normals, indices = state.normals, state.indices
    for a in range(r):
        normals[a] = rng.standard_normal()
    for i in range(k):
        indices[i] = ls.means[i]
    for a in range(r):
        shift = 0.0
        for b in range(r):
            shift += state.root[a, b] * normals[b]
        shift *= state.scale
        for i in range(k):
            indices[i] += ls.features[a, i] * shift
    best = state.offered[0]
    for i in range(state.offered[0] + 1, state.offered[1]):
        if indices[i] > indices[best]:
            best = i
    return best


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    if t <= len(state.ls.first):
        absorb_first(state.ls, t - 1, reward)
        return
    absorb(state.ls, arm, reward)
    if state.ls.age[0] == 0:
        _fresh_root(state.ls.factor, state.root)
    else:
        _shrink_root(state.ls, arm, state.root, state.normals)


@compiled
def _fresh_root(factor: Any, root: Any) -> None:
    """S = L^-T, by substitution."""
    r = len(root)
    for j in range(r):
        for a in range(r - 1, -1, -1):
            total = 1.0 if a == j else 0.0
            for b in range(a + 1, r):
                total -= factor[b, a] * root[b, j]
            root[a, j] = total / factor[a, a]


@compiled
def _shrink_root(ls: Any, arm: Any, root: Any, image: Any) -> None:
    """Potter's update: S(I − γ v vᵀ) with v = Sᵀx and γ = w/(s + √s), s = 1 + w|v|², is a root of (G + w x xᵀ)^-1."""
    r = len(root)
    weight = ls.weights[arm]
    growth = 1.0
    for b in range(r):
        total = 0.0
        for a in range(r):
            total += root[a, b] * ls.features[a, arm]
        image[b] = total
        growth += weight * total * total
    share = weight / (growth + math.sqrt(growth))
    for a in range(r):
        u = share * ls.direction[a]  # S v = G^-1 x
        for b in range(r):
            root[a, b] -= u * image[b]


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_contexts(state: Any, ledger: Any, offers: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play_contexts(_choose, _update, state, ledger, offers, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class LinTS(Policy):
    r"""Thompson sampling with a Gaussian posterior.

    Parameters
    ----------
    a : float
        Inflation of the posterior's covariance: 1, the default, is the posterior itself; the analyses of worst-case regret
        need about d log n (Agrawal & Goyal 2013; Abeille & Lazaric 2017).

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.simulation.simulate import simulate
    >>> r = simulate(LinTS(), ao.LinearBandit([[1, 0], [0, 1]], [1, 0]), horizon=100, runs=4, rng=0)
    >>> bool((r.final_regret > 0).all())
    True
    """

    a: float = 1.0

    uses_variances = True
    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_contexts = staticmethod(_run_contexts)

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", positive_number("a", self.a))

    def initial_state(self, setting: Setting) -> _State:
        """A flat prior, as of the end of the first rounds."""
        ls = LeastSquares.on_spanner(setting)
        r, k = ls.features.shape
        root = np.eye(r) if setting.sizes else np.eye(r) / np.sqrt(ls.weights[ls.first])
        return _State(ls, math.sqrt(self.a * setting.noise_variance), root, np.zeros(r), np.zeros(k), setting.offered)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting)
