r"""Bounds on c from chords: in a gap spanner every p_i(x)² lies below a linear function of x times Δ_x.

This is the argument for any oracle; for 0/1 arms `allocopt.actions.edge_bounds` is usually sharper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.actions.design_bound import design_bound, targets_seen
from allocopt.actions.oracle_answers import Explored
from allocopt.base.validation import Array

__all__ = ["Basis", "Played", "chord_lower", "chord_upper", "gap_spanner"]

Basis = tuple[Array, Array, list[Any]]
"""Functionals, the arms that they are dual to, and the labels of these."""
Played = list[tuple[Array, Any, float]]
"""Arms that are played: arm, label, allocation."""

SPANNER_C = 1.1
"""Largest coefficient in the gap spanner: 1 would be the sharpest, but only a C above 1 bounds the number of swaps."""
_MOST_SWAPS = 500
"""Times the dimension: from gaps that differ by a factor of 1e20 so many may be needed. Any basis gives valid bounds."""
_DUAL_STEPS = 300
"""Multiplicative steps towards the best weights of the cuts. Any weights give a valid bound, so more only sharpen it."""
_DESIGN_STEPS = 200
"""Multiplicative steps of the one design bound that is computed here; again any number is valid."""


def gap_spanner(arms: Explored, functionals: Array, basis: Array, names: list[Any]) -> Basis:
    """A spanner of the points q(x)/Δ_x: arms of small gap, no coefficient above `SPANNER_C` times its gap's share."""
    functionals, basis, unchanged, i, swaps = functionals.copy(), basis.copy(), 0, 0, 0
    while unchanged < len(basis) and swaps < _MOST_SWAPS * len(basis):
        up, down = arms.ratio(functionals[i]), arms.ratio(-functionals[i])
        _, x = max(up, down, key=lambda found: found[0])
        unchanged += 1
        # not the ratio that was found, which is padded for rounding: an arm could be swapped for itself again and again
        if (x != arms.best).any() and abs(functionals[i] @ x) * arms.gap(basis[i]) > SPANNER_C * arms.gap(x):
            values, swaps = functionals @ x, swaps + 1
            functionals[i] /= values[i]
            values[i] = 0.0
            functionals -= np.outer(values, functionals[i])
            basis[i], names[i], unchanged = x, arms.pool[x.tobytes()][1], 0
        i = (i + 1) % len(basis)
    # afresh from the arms: the rounding errors of the updates above add up
    return np.asarray(np.linalg.inv(functionals @ basis.T) @ functionals), basis, names


def chord_upper(arms: Explored, of: Basis, rounds: int) -> tuple[float, Played]:
    """Play basis arms only, with α_i = 1/β_i: ‖q(x)‖²_{H^-1} = Σ β_i p_i(x)², bounded by chords; best β by cuts."""
    functionals, basis, names = of
    plus, minus = arms.widths(functionals)
    costs = (arms.best - basis) @ arms.theta
    best, alpha = np.inf, np.ones(len(costs))
    for _ in range(rounds + 1):
        x, _, gaps = arms.others()
        cuts = plus * minus + (plus - minus) * (x @ functionals.T) / gaps[:, None]
        nu = np.full(len(cuts), 1.0 / len(cuts))
        for _ in range(_DUAL_STEPS):  # of max over ν of (Σ √(cost_i (Cᵀν)_i))², the dual; any ν gives a valid β
            beta = np.sqrt(costs / (cuts.T @ nu))
            nu = nu * (cuts @ beta)
            nu /= nu.sum()
        beta = np.sqrt(costs / (cuts.T @ nu))
        worst = float(beta @ (plus * minus)) + arms.ratio((beta * (plus - minus)) @ functionals)[0]
        value = 2.0 * worst * float((costs / beta).sum())
        if value < best:
            best, alpha = value, 2.0 * worst / beta
    return best, list(zip(basis, names, alpha.tolist(), strict=True))


def chord_lower(arms: Explored, functionals: Array, basis: Array) -> float:
    """S diagonal in the gap spanner, scaled by what its chords reach over all arms: one linear optimisation."""
    plus, minus = arms.widths(functionals)
    costs = (arms.best - basis) @ arms.theta
    linear = (costs * (plus - minus)) @ functionals - float(costs @ (plus * minus)) * arms.theta
    x, _ = arms.largest(linear)
    S = np.diag(costs / float(linear @ (x - arms.best)))
    return design_bound(S, targets_seen(arms, functionals), _DESIGN_STEPS)[0]
