r"""The certificate where linear constraints Vα <= v hold: both bounds from any (α, λ, μ), with docs/certificates.md's margins.

Nothing is repaired here: an α that does not meet every constraint for sure has no upper bound.
"""

from __future__ import annotations

import numpy as np

from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical, Limits
from allocopt.certify.frame import Frame, frame_of, images, padding
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import TINY, UNIT, gamma

__all__ = ["best_multiple", "evaluate_within", "least_charges", "most_excess", "most_rent"]


def evaluate_within(problem: Canonical, alpha: Array, multipliers: Array, row_multipliers: Array | None) -> Bounds:
    r"""Both bounds from any α >= 0, λ >= 0 and μ >= 0.

    The lower bound: for y_j = M^-1 b_j and any scale q >= 0 of the pair (λ, y),
    value >= q ((Σλ_j b_jᵀy_j)²/Σλ_j − Σλ_j |B y_j|²) − μᵀv − Σ_i u_i (q p_i − c_i − (Vᵀμ)_i)_+ for c_i the cost of a unit.
    """
    limits = problem.limits
    assert limits is not None
    mu = np.zeros(len(limits.room)) if row_multipliers is None else row_multipliers
    costs = np.ones(problem.n_variables) if problem.costs is None else problem.costs
    upper = np.full(problem.n_variables, np.inf) if problem.upper is None else problem.upper
    alpha = np.minimum(alpha, upper)
    inflation = padding(problem.rank)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        frame = frame_of(problem, alpha, multipliers) if len(problem.targets) else None
        charges = least_charges(limits, costs, mu)
        largest_upper = upper * ((1.0 + 4.0 * problem.bound_error) * inflation)
        slope, most_prices, prices = _prices(problem, frame)
        rent = most_rent(limits, mu)
        if (charges[np.isinf(upper)] < 0).any() or not np.isfinite(rent):
            charges, rent = costs, 0.0  # that would pay for playing an arm without bound: only μ = 0 proves anything
        q, gain = best_multiple(slope, most_prices, largest_upper, charges)
        lower = gain - rent - 8.0 * UNIT * (abs(gain) + abs(rent))
        g, most = _constraints(problem, frame)
        feasible = bool((most <= 1.0).all() and (most_excess(limits, alpha) <= 0.0).all())
        cost = float((costs * alpha).sum()) * (1.0 + gamma(len(alpha) + 4)) if feasible else float("inf")
        # 1 where an arm is worth what it costs with what it takes of the rows
        surplus = q * prices - limits.charged(mu) - costs + 1.0
    offset, error = problem.offset, problem.bound_error
    margin = gamma(len(problem.features) + 4)
    cost = (cost + offset * (1.0 + margin)) * (1.0 + error) * inflation
    least = offset * (1.0 - 2.0 * error - margin) / inflation
    lower = (lower / inflation if lower > 0 else lower * inflation) + least
    lam = multipliers
    if q > 0:  # the scale in which λ is dual feasible beside μ; no bound depends on it
        total = float(multipliers.sum())
        strength = float(multipliers @ g) / total
        lam = multipliers / total * (q * strength * strength)
    lower -= 4.0 * UNIT * abs(lower)
    # costs are not negative: what is fixed must be paid in any case
    rounding = 0.0 if frame is None else 2.0 * frame.drift
    return Bounds(cost, max(lower, least, 0.0), alpha, lam, g, surplus, rounding, row_multipliers=mu)


def _prices(problem: Canonical, frame: Frame | None) -> tuple[float, Array, Array]:
    """The slope of the dual in q, upper bounds on the prices of the variables, and these as computed."""
    if frame is None or not frame.strength > 0:
        none = np.zeros(problem.n_variables)
        return 0.0, none, none
    norm2, prices, errors = images(frame, problem.features)
    most = problem.by_variable(frame.most_price(prices, norm2, errors)) * (1.0 + gamma(problem.most_rows))
    slope = frame.slope
    if len(problem.base):
        base2, base_prices, base_errors = images(frame, problem.base)
        known = float(frame.most_price(base_prices, base2, base_errors).sum())
        slope -= known * (1.0 + gamma(len(base2))) * frame.inflation
    return slope, most, problem.by_variable(prices)


def _constraints(problem: Canonical, frame: Frame | None) -> tuple[Array, Array]:
    """g of every target, as computed and at most; infinite where nothing is known."""
    if frame is None:
        unknown = np.full(len(problem.targets), np.inf)
        return unknown, unknown
    g = squared_row_lengths(problem.targets @ frame.basis)
    return g, frame.most_constraint(g, frame.errors(problem.targets, g))


def most_excess(limits: Limits, alpha: Array) -> Array:
    """Upper bounds on Vα − v, also for α that is rounded on its way back to the program's own units.

    (Where products underflow, too, the rows are looked at once more, exactly, before an allocation is handed out.)
    """
    margin = gamma(len(limits.values) + 16) * (limits.terms(alpha) + limits.sizes)
    result: Array = limits.used(alpha) - limits.room + margin
    return result


def least_charges(limits: Limits, costs: Array, mu: Array) -> Array:
    """Lower bounds on c + Vᵀμ, what a unit of each variable costs with what it takes of the rows."""
    margin = (limits.error + gamma(len(limits.values) + 8)) * (1.0 + gamma(8))
    charged = limits.charged(mu)
    rounded = np.where(limits.charged_terms(mu) > 0, margin * (costs + limits.charged_terms(mu)) + TINY, 0.0)
    result: Array = costs + charged - rounded
    return result


def most_rent(limits: Limits, mu: Array) -> float:
    """An upper bound on μᵀv."""
    margin = gamma(len(limits.values) + len(mu) + 16)
    sizes = np.abs(limits.room) + limits.sizes
    return float((mu * limits.room).sum()) + margin * float((mu * sizes).sum()) + (TINY if mu.any() else 0.0)


def best_multiple(slope: float, prices: Array, upper: Array, charges: Array) -> tuple[float, float]:
    """The q >= 0 that maximises q·slope − Σ u_i (q p_i − charge_i)_+, and at most the maximum.

    Charges of variables without bound must not be negative.
    """
    infinite = np.isinf(upper)
    dear = infinite & (prices > 0)
    cap = float((charges[dear] / prices[dear]).min(initial=np.inf)) * (1.0 - 4.0 * UNIT)
    bounded = np.flatnonzero(~infinite & (prices > 0))
    breakpoints = np.maximum(charges[bounded], 0.0) / prices[bounded]
    order = np.argsort(breakpoints, kind="stable")
    remaining = slope - np.cumsum((upper[bounded] * prices[bounded])[order])  # slope after each breakpoint
    stop = np.flatnonzero(remaining <= 0)
    q = float(breakpoints[order[stop[0]]]) if len(stop) else np.inf
    q = min(q, cap) if slope > 0 else 0.0
    if not np.isfinite(q):
        q = 0.0  # unbounded dual: the program is infeasible, which is proven elsewhere
    some = ~infinite
    over = np.maximum(q * prices[some] * (1.0 + 4.0 * UNIT) - charges[some], 0.0)
    excess = float((upper[some] * over).sum()) * (1.0 + gamma(len(over) + 8))
    return q, max(q * slope, 0.0) * (1.0 - 4.0 * UNIT) - excess
