r"""The weights λ of the alternatives: the dual of a linear program over expected pulls, and the best V that they give.

Primal: minimise Σ α_x Δ_x subject to Σ_x α_x a_j(x) >= K_j for all j, Σ α_x <= n, α >= 0. Dual: maximise Σ λ_j K_j − n μ subject to
Σ_j λ_j a_j(x) <= Δ_x + μ for all x. Here in doubles, as a proposal; `certify.exact_arithmetic.finite_time` proves what is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.certify.exact_arithmetic.divergence import divergence

__all__ = ["Terms", "best_weights", "value_of"]

_ROUNDS = 30  # of LP and root in turn; three or four are enough
_CLOSE = 1e-9  # relative change of V that ends them
_LARGEST = 1e12  # entry of the LP's matrix: such an alternative adds nothing, and solvers refuse 1e15
_HALVINGS = 100  # of the interval for V
_LOG_LEAST_REGRET = -1000 * np.log(2.0)  # stands for the logarithm of 0


@dataclass(frozen=True, eq=False)
class Terms:
    """What the theorem needs to know of some alternatives, in doubles (see `ExactAlternatives`)."""

    n: float
    gaps: Array
    information: Array
    loss: Array
    cost: Array
    regrets: Array

    def levels(self, value: float) -> Array:
        """K_j at V."""
        useful = (self.loss > 0) & np.isfinite(self.regrets)
        with np.errstate(divide="ignore"):
            log_regret = np.maximum(np.log(np.where(useful, self.regrets, 1.0)), _LOG_LEAST_REGRET)
        log_share = log_regret - np.log(np.where(useful, self.loss, 1.0)) - np.log(self.n)
        missed = value / self.n / np.maximum(self.cost, NOT_ZERO)
        result: Array = np.where(useful, divergence(missed, log_share), 0.0)
        return result

    def only(self, chosen: IntArray) -> Terms:
        """These alternatives only."""
        return Terms(
            self.n, self.gaps, self.information[chosen], self.loss[chosen], self.cost[chosen], self.regrets[chosen]
        )


def best_weights(terms: Terms) -> tuple[Array, float]:
    """λ and V with Σ λ_j K_j(V) − n μ = V, as large as the LP can make V; zeros where nothing is proven."""
    weights, value = np.zeros(len(terms.loss)), 0.0
    for _ in range(_ROUNDS):  # V never decreases: λ is best at the last V, and the last λ is worth that V already
        proposed, paid = _linear_program(terms, terms.levels(value))
        better = value_of(terms, proposed, paid)
        if not better > value * (1.0 + _CLOSE):
            break
        weights, value = proposed, better
    return weights, value


def _linear_program(terms: Terms, levels: Array) -> tuple[Array, float]:
    """Best λ for given K, and n μ."""
    from scipy.optimize import linprog

    weights = np.zeros(len(levels))
    on = np.flatnonzero(levels > 0)
    costly = terms.gaps > 0
    gaps = terms.gaps[costly]
    if not len(on) or not len(gaps):
        return weights, 0.0
    # in units of u, about the value, and with λ_j K_j in place of λ_j, all coefficients that matter are of ordinary size
    ratios = terms.information[np.ix_(on, costly)] / gaps / levels[on, None]
    free = terms.n * terms.information[np.ix_(on, ~costly)] / levels[on, None]
    alone = np.maximum(1.0 - free.max(axis=1, initial=0.0), 0.0) / np.maximum(ratios.max(axis=1), NOT_ZERO)
    most = terms.n * float(
        gaps.max()
    )  # nobody's regret is above: where no pulls are feasible, the LP would be unbounded
    u = min(float(alone.max()) or np.inf, most)
    rows = np.concatenate([u * ratios, free], axis=1)
    able = rows.max(axis=1) < _LARGEST
    if not able.any():
        return weights, 0.0
    on = on[able]
    gain = np.append(np.ones(len(on)), -1.0)
    price = np.concatenate([-u / (terms.n * gaps), -np.ones(free.shape[1])])
    scale = np.maximum(np.abs(price), 1.0)  # a row of an arm that n rounds can hardly lose anything on
    matrix = np.column_stack([rows[able].T, price]) / scale[:, None]
    limits = np.concatenate([np.ones(len(gaps)), np.zeros(free.shape[1])]) / scale
    found = linprog(-gain, A_ub=np.vstack([matrix, gain]), b_ub=np.append(limits, most / u), method="highs")
    if found.x is None:
        return weights, 0.0
    weights[on] = np.maximum(found.x[:-1], 0.0) * u / levels[on]
    return weights, max(float(found.x[-1]), 0.0) * u


def value_of(terms: Terms, weights: Array, paid: float) -> float:
    """V with Σ λ_j K_j(V) − n μ = V, where n μ is ``paid``; 0 where there is none."""

    def left(value: float) -> float:
        return float(weights @ terms.levels(value)) - paid - value

    low, high = 0.0, left(0.0)
    if not (high > 0 and np.isfinite(high)):
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) >= 0 else (low, middle)
    return low
