r"""LinUCB: optimism in the face of uncertainty, the design that the paper's Section 8 (`sec:optimism`) shows to fail.

Both forms play the largest ⟨x, θ̂⟩ + √(β ||x||²_{G^-1}):

- ``radius="log"``: β = a σ² log n, the paper's form. No ridge: a barycentric spanner is played once at the beginning.
- ``radius="theoretical"``: √β = √λ S + σ √(2 log(1/δ) + log det(G_t/λ)), the radius of Abbasi-Yadkori, Pál and Szepesvári
  (2011), for which the regret bound is proven; G_0 = λI and ||θ|| <= S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Policy, Setting, compiled, entry, play, play_contexts
from allocopt.policies.linear import LeastSquares, absorb, absorb_first

__all__ = ["LinUCB", "ridge_regression", "spanner_note"]

_WORST_CONDITION = 1e12
"""Of G with a ridge: beyond it, G^-1 keeps fewer than four digits."""


class _State(NamedTuple):
    ls: LeastSquares
    constant: float
    """β with the logarithmic radius; else 0."""
    offset: float
    """√λ S."""
    noise: float
    """σ²."""
    log_level: float
    """2 log(1/δ)."""
    offered: IntArray
    """The arms that may be played."""


@compiled
def _root_radius(state: Any) -> Any:
    """√β."""
    if state.constant > 0.0:
        return math.sqrt(state.constant)
    return state.offset + math.sqrt(state.noise * (state.log_level + state.ls.log_volume[0]))


@compiled
def _choose(state: Any, t: Any, rng: Any) -> Any:
    ls = state.ls
    if t <= len(ls.first):
        return ls.first[t - 1]
    root = _root_radius(state)
    best, top = state.offered[0], -np.inf
    for i in range(state.offered[0], state.offered[1]):
        index = ls.means[i] + root * math.sqrt(max(ls.widths[i], 0.0))
        if index > top:
            best, top = i, index
    return best


@compiled
def _update(state: Any, t: Any, arm: Any, reward: Any) -> None:
    ls = state.ls
    if t <= len(ls.first):
        absorb_first(ls, t - 1, reward)
        return
    if state.constant == 0.0:
        ls.log_volume[0] += math.log1p(ls.weights[arm] * max(ls.widths[arm], 0.0))
    absorb(ls, arm, reward)


@entry
def _run(state: Any, ledger: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play(_choose, _update, state, ledger, first, last, noise, rng)


@entry
def _run_contexts(state: Any, ledger: Any, offers: Any, first: Any, last: Any, noise: Any, rng: Any) -> Any:
    return play_contexts(_choose, _update, state, ledger, offers, first, last, noise, rng)


@spelled_constructor
@dataclass(frozen=True)
class LinUCB(Policy):
    r"""Optimism with confidence ellipsoids.

    Parameters
    ----------
    a : float, optional
        Width of the logarithmic radius β = a σ² log n; 2 unless you say otherwise. n is the horizon, in every round.
    radius : {"log", "theoretical"}
        Which β.
    ridge, norm_bound, delta : float, optional
        λ (1), S (1) and δ (1/n) of the theoretical radius, and only of it. S must be true for its guarantee to hold.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.simulation.simulate import simulate
    >>> r = simulate(LinUCB(a=1), ao.LinearBandit([[1, 0], [0, 1]], [1, 0]), horizon=100, runs=4, rng=0)
    >>> r.regret.shape == (4, len(r.times))
    True
    """

    a: float | None = None
    radius: str = "log"
    ridge: float | None = None
    norm_bound: float | None = None
    delta: float | None = None

    uses_variances = True
    choose = staticmethod(entry(_choose))
    update = staticmethod(entry(_update))
    run = staticmethod(_run)
    run_contexts = staticmethod(_run_contexts)

    def __post_init__(self) -> None:
        if self.radius not in ("log", "theoretical"):
            raise InvalidOption(f"radius: expected 'log' or 'theoretical', got {self.radius!r}")
        not_taken = ("ridge", "norm_bound", "delta") if self.radius == "log" else ("a",)
        for name in ("a", "ridge", "norm_bound", "delta"):
            value = getattr(self, name)
            if value is None:
                continue
            if name in not_taken:
                raise InvalidOption(f"{name}: expected nothing with radius={self.radius!r}, got {value!r}")
            object.__setattr__(self, name, positive_number(name, value))
        if self.delta is not None and self.delta >= 1:
            raise InvalidOption(f"delta: expected a number between 0 and 1, got {self.delta!r}")

    def initial_state(self, setting: Setting) -> _State:
        """G = I in the spanner's coordinates, or λI in orthonormal ones of the arms' span."""
        noise = setting.noise_variance
        if self.radius == "log":
            beta = (2.0 if self.a is None else self.a) * noise * math.log(setting.horizon)
            return _State(LeastSquares.on_spanner(setting), beta, 0.0, noise, 0.0, setting.offered)
        ridge = 1.0 if self.ridge is None else self.ridge
        norm = 1.0 if self.norm_bound is None else self.norm_bound
        delta = 1.0 / setting.horizon if self.delta is None else self.delta
        ls = ridge_regression(setting, ridge, setting.weights)
        return _State(ls, 0.0, math.sqrt(ridge) * norm, noise, 2.0 * math.log(1.0 / delta), setting.offered)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the beginning is longer than the horizon."""
        return spanner_note(setting) if self.radius == "log" else ()


def ridge_regression(setting: Setting, ridge: float, weights: Array) -> LeastSquares:
    """Least squares with λI in orthonormal coordinates of the arms' span; refused where n rounds would outgrow the ridge."""
    basis = np.linalg.qr(setting.arms[setting.spanner.indices].T)[0]  # orthonormal: lengths, and so λ and S, stay
    coordinates = setting.arms @ basis
    condition = 1.0 + setting.horizon * float((weights * (coordinates**2).sum(axis=1)).max()) / ridge
    if condition > _WORST_CONDITION:
        raise InvalidOption(
            f"ridge: {ridge:g} is too small for arms of length {math.sqrt((condition - 1) * ridge / setting.horizon):.3g} "
            f"and {setting.horizon} rounds (G would have condition {condition:.1g}); expected at least "
            f"{ridge * condition / _WORST_CONDITION:.2g}"
        )
    return LeastSquares.of(coordinates, np.zeros(0, np.int64), ridge, weights)


def spanner_note(setting: Setting) -> tuple[str, ...]:
    """A statement for horizons that end before every spanner arm has been played once."""
    r, n = len(setting.spanner.indices), setting.horizon
    if n >= r or setting.sizes:
        return ()
    return (f"plays a barycentric spanner of {r} arms once, but there are {n} rounds: its first {n} arms once each",)
