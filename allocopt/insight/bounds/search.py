"""The search for alternatives: proposals of an allocation program, moved along their own direction, chosen by an LP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from allocopt.base.tolerances import EPS, NOT_ZERO
from allocopt.base.validation import Array
from allocopt.insight.bounds.proposals import Hypothesis, propose
from allocopt.insight.bounds.weights import Terms, best_weights
from allocopt.model.bandit import LinearBandit

__all__ = ["Candidates", "instance_at", "search", "variances_of"]

Allowed = Callable[[LinearBandit], float]
"""B as a function of the alternative."""

_FACTORS = (  # by which shifts are made longer or shorter, in turn
    (0.4, 0.6, 0.75, 0.9, 1.0, 1.1, 1.25, 1.6, 2.2, 3.2, 5.0),
    (0.85, 0.93, 1.0, 1.07, 1.16),
    (0.95, 0.975, 1.0, 1.025, 1.05),
    (0.985, 0.993, 1.0, 1.007, 1.015),
)
_ROUNDS = 2  # of proposals, the second with the B of what the first has chosen
_USED = 1e-7  # share of V below which an alternative is not worth listing
_SAME = 1e-9  # relative: shifts that differ less are one
_ROUNDING = (
    1e-13  # of ⟨x*, θ' − θ⟩, relative to its terms: what arithmetic in doubles leaves of a zero, and rounding of θ' EPS
)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Alternatives in doubles, with what a policy may pay there."""

    shifts: Array
    """θ' − θ, one row each."""
    terms: Terms


def variances_of(bandit: LinearBandit) -> Array:
    """σ² of every arm."""
    return np.array(np.broadcast_to(np.asarray(bandit.noise_variance, dtype=np.float64), (bandit.n_arms,)))


def instance_at(bandit: LinearBandit, theta: Array | Sequence[Fraction]) -> LinearBandit:
    """The same arms and noise at another θ (of fractions: the nearest doubles)."""
    return LinearBandit(
        bandit.arms, np.array([float(x) for x in theta]), bandit.noise_variance, bandit.tie_tolerance, labels=bandit.labels
    )  # fmt: skip


def search(bandit: LinearBandit, n: int, allowed: float | Allowed) -> Candidates:
    """The alternatives that the best V found needs; none where nothing is proven."""
    variances = variances_of(bandit)
    typical = allowed if isinstance(allowed, float) else allowed(bandit)
    best = _evaluated(bandit, variances, n, [], allowed)
    for _ in range(1 if isinstance(allowed, float) else _ROUNDS):
        regret = np.full(len(bandit.suboptimal_arms), typical if np.isfinite(typical) else float(n))
        shifts = [*best.shifts, *propose(Hypothesis(bandit, variances, n, regret))]
        for factors in _FACTORS:
            moved = [s * f for s in shifts for f in factors]
            best = _used(_evaluated(bandit, variances, n, moved, allowed))
            shifts = list(best.shifts) or shifts
        if not len(best.shifts):
            break
        typical = float(np.median(best.terms.regrets))
    return best


def _used(candidates: Candidates) -> Candidates:
    """Those that the LP gives weight to, and not those that hardly matter."""
    terms = candidates.terms
    weights, value = best_weights(terms)
    chosen = np.flatnonzero(weights * terms.levels(value) > _USED * max(value, NOT_ZERO))
    return Candidates(candidates.shifts[chosen], terms.only(chosen))


def _evaluated(
    bandit: LinearBandit, variances: Array, n: int, shifts: Sequence[Array], allowed: float | Allowed
) -> Candidates:
    """Shifts that make another arm the best one, with their terms."""
    arms, gaps = bandit.arms_in_memory, bandit.gaps
    rows = _distinct(bandit, shifts)
    change = rows @ arms.T
    optimal = gaps == 0
    terms_of_means = (_ROUNDING * np.abs(rows) + EPS * np.abs(bandit.theta)) @ np.abs(arms).T
    change[(np.abs(change) <= terms_of_means) & optimal] = 0.0  # `exact_parameters` makes it so where it matters
    ahead = change - gaps  # means at θ', less the best mean at θ
    top = ahead.max(axis=1, initial=-np.inf)
    loss = top - change[:, optimal].max(axis=1, initial=-np.inf) if len(rows) else np.zeros(0)
    kept = np.flatnonzero(loss > 0)
    behind = top[kept, None] - ahead[kept]
    g = loss[kept, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.where((behind < g) & ~optimal, gaps * g / (g - behind), np.inf)
    regrets = [
        allowed if isinstance(allowed, float) else allowed(instance_at(bandit, bandit.theta + rows[j])) for j in kept
    ]
    information = change[kept] ** 2 / (2.0 * variances)
    terms = Terms(float(n), gaps, information, loss[kept], costs.min(axis=1, initial=np.inf), np.array(regrets))
    return Candidates(rows[kept], terms)


def _distinct(bandit: LinearBandit, shifts: Sequence[Array]) -> Array:
    """Shifts as they are once θ + shift is rounded to doubles, each once."""
    found: list[Array] = []
    for shift in shifts:
        near_zero = np.abs(shift) <= _ROUNDING * np.abs(shift).max()
        moved = bandit.theta + np.where(near_zero, 0.0, shift)
        rounded = moved - bandit.theta
        size = np.abs(rounded).max()
        if size > 0 and not any(np.abs(rounded - other).max() <= _SAME * size for other in found):
            found.append(rounded)
    return np.array(found).reshape(len(found), bandit.dim)
