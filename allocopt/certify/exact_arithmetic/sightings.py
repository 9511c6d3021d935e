r"""The certificate of side observations, over the list of what arms show: H is diagonal, so both bounds take one look at each entry.

The theorem of docs/certificates.md for rows that are unit vectors. With n_e = Σ α_i/σ²_ie over the arms i that show e (e not
shown by the best arm, whose sightings cost nothing), y_j = H^-1 t_j has the entries 1/n_j and −1/n_*, and

    upper = (Σ κ_i α_i) · max_j ||t_j||²_{H^-1}/ρ_j,   ||t_j||² = 1/n_j + 1/n_*
    lower = (Σ w_j ||t_j||²)²/(Σ w_j ρ_j) · min_i κ_i/p_i,   p_i = Σ_e c_e/σ²_ie,   c_j = w_j/n_j²,   c_* = Σ_j w_j/n_*²

for any α and any w_j = λ_j/ρ_j >= 0. Costs and radii are made of the means, in balls: no number here is rounded without a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx

from allocopt.base.validation import Array
from allocopt.certify.exact_arithmetic.balls import _round_down, _round_up
from allocopt.model.rows.sightings import Sightings

__all__ = ["ProvenBySight", "interval_by_sight"]


@dataclass(frozen=True)
class ProvenBySight:
    """What an allocation and multipliers prove."""

    lower: float
    upper: float
    ratios: dict[int, float]
    """||t_j||²_{H^-1}/ρ_j of the arms j that are asked about, rounded; empty where H is singular."""


def interval_by_sight(seen: Sightings, allocation: Array, multipliers: Array, precision: int = 128) -> ProvenBySight:
    """Both bounds from any α >= 0 and λ >= 0, an entry for each arm; α of the best arm does not matter.

    Sums are of terms of one sign, so that of 128 bits next to none are lost.
    """
    before = ctx.prec
    try:
        ctx.prec = precision
        return _proven(seen, allocation.tolist(), multipliers.tolist())
    finally:
        ctx.prec = before


def _proven(seen: Sightings, alpha: list[float], multipliers: list[float]) -> ProvenBySight:
    best, known = seen.best, seen.known.tolist()
    asked = [j for j in seen.others.tolist() if not (known[j] and known[best])]
    if not asked:
        return ProvenBySight(0.0, 0.0, {})
    top = arb(float(seen.means[best]))
    costs = [top - arb(mean) for mean in seen.means.tolist()]
    rows = [
        (i, e, arb(variance))
        for i, e, variance in zip(seen.owners.tolist(), seen.columns.tolist(), seen.variances.tolist(), strict=True)
        if e < seen.n_arms and not known[e]
    ]
    information = [arb(0)] * seen.n_arms
    for i, e, variance in rows:
        information[e] += arb(alpha[i]) / variance
    needed = [e for e in range(seen.n_arms) if not known[e]]
    if not all(information[e] > 0 for e in needed):
        return ProvenBySight(0.0, float("inf"), {})
    shares = [arb(0) if known[e] else 1 / information[e] for e in range(seen.n_arms)]
    radii = {j: costs[j] * costs[j] / 2 for j in asked}
    norms = {j: shares[j] + shares[best] for j in asked}
    ratios = {j: norms[j] / radii[j] for j in asked}
    spent = sum((costs[i] * arb(alpha[i]) for i in seen.others.tolist() if alpha[i]), arb(0))
    upper = max(_round_up(spent * ratio) for ratio in _largest(ratios))

    weights = {j: arb(multipliers[j]) / radii[j] for j in asked if multipliers[j] > 0}
    prices = [arb(0)] * seen.n_arms
    for j, w in weights.items():
        prices[j] = w * shares[j] * shares[j]
    prices[best] = sum(weights.values(), arb(0)) * shares[best] * shares[best]
    by_arm: dict[int, arb] = {}
    for i, e, variance in rows:
        by_arm[i] = by_arm.get(i, arb(0)) + prices[e] / variance
    lower = 0.0
    if weights:
        strength = sum((w * norms[j] for j, w in weights.items()), arb(0))
        squared = strength * strength / sum((arb(multipliers[j]) for j in weights), arb(0))
        dearest = {i: price / costs[i] for i, price in by_arm.items()}
        lower = max(min(_round_down(squared / price) for price in _largest(dearest)), 0.0)
    return ProvenBySight(lower, upper, {j: float(ratio) for j, ratio in ratios.items()})


def _largest(values: dict[int, arb]) -> list[arb]:
    """Those balls of which one is the largest for sure: all that reach as far up as the highest one begins."""
    floor = max((ball.lower() for ball in values.values()), key=float)
    return [ball for ball in values.values() if not ball.upper() < floor]
