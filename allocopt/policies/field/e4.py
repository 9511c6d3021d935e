r"""E4: explore, estimate, eliminate, exploit (Ren, Jin & Xu, "Optimal Batched Linear Bandits", ICML 2024), in batches.

A batch at rate T plays arm x ⌈2 α_x T/r⌉ times, where α is the G-optimal allocation (Σα = r, ||x||²_{H(α)^-1} <= 1) of the
arms that are left. With L = log n and l = log log n:

1. *Explore*: a batch at rate T_1 on all arms.
2. *Estimate*: every arm ⌈w_x (1 + 1/l)(1 + r·l/L) L⌉ times, w the solution of the regret program at the estimates; the
   leader, whose w is infinite, as often as the cap says. If then
   Z = min_x Δ̂_x²/(2σ²||x − x̂||²_{G^-1}) > ζ log(t^{r/2} n), exploit.
3. *Eliminate*: batches at rates L^{1+γ}, n^{1/2}, n^{3/4}, n^{7/8}, …; after each, arms go whose estimate is more than
   2σ√(r log(k n²)/T) below the best one.
4. *Exploit*: the arm that is left, or has passed the test of 2, to the end.

``exploration="experiments"`` has T_1 = √n, ζ = ½ and the cap min(L^{1+γ}, n/2k), as the authors' published code; its regret
grows at least like √n. ``exploration="theorem"`` has T_1 = √L, another batch at rate √L in 2, ζ = 1 and the cap L^{1+γ}, for
which the theorem of asymptotic optimality holds (to leading order: the paper's ζ has a factor 1 + 1/l, and log l within).
γ = 10, the authors' choice, makes L^{1+γ} exceed n for all n < 10²⁰: whoever fails the test plays the third batch to the end,
the first arm of its list first.

Deviations from the paper: least squares use all batches so far (as the published code does; the paper's are those of one
batch), without the code's ridge of 1; designs live in the span of the arms that are left; the regret program is solved to
10^-8 by the `Allocator`, where the code asks SCS for an absolute 10^-2, more than the right-hand sides Δ²/2 of small gaps
(docs/policies.md has what this changes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, IntArray, positive_number
from allocopt.policies.base import Setting
from allocopt.policies.field.batches import Batch, BatchPolicy, BatchState, next_batch
from allocopt.policies.field.estimated_program import allocation_at, gaps_below
from allocopt.policies.field.phased_elimination import g_optimal_design

__all__ = ["E4"]


@spelled_constructor
@dataclass(frozen=True)
class E4(BatchPolicy):
    r"""Explore, estimate, eliminate, exploit.

    Parameters
    ----------
    exploration : {"experiments", "theorem"}
        The rates and thresholds of the authors' code, or those of the theorem of asymptotic optimality.
    gamma : float
        γ of the third batch and of the cap.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1]], [1, 0], 0.01)
    >>> r = ao.simulate(E4(), bandit, horizon=1000, runs=1, rng=0)
    >>> [(p.name, p.start) for p in r.phases[0]]
    [('batch 1, 2 arms', 1), ('batch 2, 2 arms', 65), ('batch 3, 1 arm', 316)]
    """

    exploration: str = "experiments"
    gamma: float = 10.0

    most_batches = 64  # the rate n^(1 − 2^-61) is n by then

    def __post_init__(self) -> None:
        if self.exploration not in ("experiments", "theorem"):
            raise InvalidOption(f"exploration: expected 'experiments' or 'theorem', got {self.exploration!r}")
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma, zero=True))

    def plan(self, state: BatchState, t: int, setting: Setting) -> None:
        """What the last batch taught, and the next one."""
        number = int(state.number[0])
        if number == 2:
            self._test(state, t, setting)
        elif number > 2:
            self._eliminate(state, _rate(number, setting.horizon, self.gamma), setting)
        number, survivors = next_batch(state, t)
        if len(survivors) == 1 or number == self.most_batches or _all_the_same(setting, survivors):
            due = np.zeros(setting.n_arms, np.int64)
            due[survivors[0]] = setting.horizon
        elif number == 1:
            due = _batch(setting, survivors, self._first_rate(setting))
        elif number == 2:
            due = self._estimated(state, setting)
            if self.exploration == "theorem":
                due = due + _batch(setting, survivors, self._first_rate(setting))
        else:
            due = _batch(setting, survivors, _rate(number, setting.horizon, self.gamma))
        state.batch.begin(np.minimum(due, setting.horizon))

    def _first_rate(self, setting: Setting) -> float:
        n = float(setting.horizon)
        return math.sqrt(n if self.exploration == "experiments" else math.log(n))

    def _estimated(self, state: BatchState, setting: Setting) -> IntArray:
        """Pulls of the second batch."""
        n, k, r = setting.horizon, setting.n_arms, len(setting.spanner.indices)
        means, _ = _estimates(state.batch, setting)
        gaps = gaps_below(means, int(np.argmax(means)))
        weights = allocation_at("E4", setting, state.number, gaps, 2.0 * setting.noise_variance)
        log_n, twice = math.log(n), max(math.log(math.log(n)), 0.1)
        factor = (1.0 + 1.0 / twice) * (1.0 + r * twice / log_n) * log_n
        cap = min(_rate(3, n, self.gamma), n / (2.0 * k) if self.exploration == "experiments" else n)
        return np.ceil(np.minimum(weights * factor, cap)).astype(np.int64)

    def _test(self, state: BatchState, t: int, setting: Setting) -> None:
        """Chernoff's stopping rule: the leader alone is left if the evidence for it suffices."""
        means, inverse = _estimates(state.batch, setting)
        leader = int(np.argmax(means))
        gaps = gaps_below(means, leader)
        rivals = np.flatnonzero(gaps > 0.0)
        steps = setting.spanner.coefficients[rivals] - setting.spanner.coefficients[leader]
        squares = np.einsum("ij,jk,ik->i", steps, inverse, steps)
        evidence = gaps[rivals] ** 2 / (2.0 * setting.noise_variance * squares)
        factor = 0.5 if self.exploration == "experiments" else 1.0
        r = len(setting.spanner.indices)
        needed = factor * (0.5 * r * math.log(max(t - 1, 1)) + math.log(setting.horizon))
        if (evidence > needed).all():
            state.alive[:] = 0
            state.alive[leader] = 1

    def _eliminate(self, state: BatchState, rate: float, setting: Setting) -> None:
        means, _ = _estimates(state.batch, setting)
        survivors = np.flatnonzero(state.alive)
        log_level = math.log(setting.n_arms) + 2.0 * math.log(setting.horizon)
        width = math.sqrt(setting.noise_variance * len(setting.spanner.indices) * log_level / rate)
        state.alive[survivors[means[survivors].max() - means[survivors] >= 2.0 * width]] = 0

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Whether the third batch can end."""
        n, rate = setting.horizon, _rate(3, setting.horizon, self.gamma)
        if rate < n or setting.n_arms == 1:
            return ()
        return (
            f"runs whose test after the second batch fails play the third one to the end: its rate (log n)^{1 + self.gamma:g} = "
            f"{rate:.3g} exceeds n = {n}, and no arm is ever dropped",
        )


def _rate(number: int, n: int, gamma: float) -> float:
    """T of batch 3, 4, …: (log n)^{1+γ}, n^{1/2}, n^{3/4}, …."""
    if number == 3:
        exponent = (1.0 + gamma) * math.log(math.log(n))
        return math.exp(exponent) if exponent < 700.0 else math.inf
    return math.exp((1.0 - 0.5 ** (number - 3)) * math.log(n))


def _all_the_same(setting: Setting, survivors: IntArray) -> bool:
    return g_optimal_design("E4", setting, survivors)[0] is None


def _batch(setting: Setting, survivors: IntArray, rate: float) -> IntArray:
    """⌈2 α_x T/r⌉ pulls of each arm that is left."""
    coordinates, design = g_optimal_design("E4", setting, survivors)
    assert coordinates is not None
    due = np.zeros(setting.n_arms, np.int64)
    most = float(setting.horizon)
    shares = np.minimum(2.0 * design * (min(rate, 1e6 * most) / coordinates.shape[1]), most)
    due[survivors] = np.ceil(shares).astype(np.int64)
    return due


def _estimates(batch: Batch, setting: Setting) -> tuple[Array, Array]:
    """Estimated means of all arms, and the inverse of the information matrix, in the spanner's coordinates."""
    coordinates = setting.spanner.coefficients
    gram = coordinates.T @ (batch.pulls[:, None] * coordinates)
    inverse: Array = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    return coordinates @ (inverse @ (coordinates.T @ batch.sums)), inverse
