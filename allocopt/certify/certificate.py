r"""The certificate: both bounds from any pair (α, λ), the theorem of docs/certificates.md in doubles. No solver is trusted for them.

The bounds are those of the program behind the canonical arrays, in exact arithmetic, with y_j = M^-1 b_j: rounding of the arrays
(``error``) and of everything that is computed here is part of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.frame import Frame, frame_of, images, padding
from allocopt.certify.limits.evaluation import evaluate_within
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import UNIT, gamma

__all__ = [
    "base_price",
    "best_scale",
    "evaluate",
    "largest_upper",
    "make_feasible",
    "recomputed",
    "tidy",
    "violation",
]

_ROOM = 1.0 - 1e-9  # a constraint below that holds whichever basis it is computed in


def evaluate(problem: Canonical, alpha: Array, multipliers: Array, row_multipliers: Array | None = None) -> Bounds:
    r"""Both bounds from any α >= 0 and any λ >= 0, in O((k+m) r²): the theorem of docs/certificates.md.

    The lower bound: for λ >= 0, y_j = M^-1 b_j and any scale q >= 0 of the pair,
    value >= q ((Σλ_j b_jᵀy_j)²/Σλ_j − Σλ_j |B y_j|²) − Σ_i u_i (q p_i − 1)_+, which is concave and piecewise linear in q.
    With linear constraints and their multipliers μ: `evaluate_within`.
    """
    if problem.limits is not None:
        return evaluate_within(problem, alpha, multipliers, row_multipliers)
    features, targets = problem.features, problem.targets
    inflation = padding(problem.rank)
    failed = Bounds(float("inf"), problem.offset * (1.0 - 2.0 * problem.bound_error) / inflation, alpha, multipliers,
                    np.full(len(targets), np.inf), np.zeros(problem.n_variables), float("inf"))  # fmt: skip
    frame = frame_of(problem, alpha, multipliers)
    if frame is None:
        return failed
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norm2, prices, errors = images(frame, features)
        if problem.ratios is None:
            g = squared_row_lengths(targets @ frame.basis)
            most = frame.most_constraint(g, frame.errors(targets, g))
        else:
            squares = problem.ratios**2
            g, most = norm2 * squares, frame.most_constraint(norm2, errors) * squares * inflation
        if not np.all(np.isfinite(most)):
            return failed
        lower, lam, rounding = 0.0, multipliers, 2.0 * frame.drift
        most_prices, prices = problem.by_variable(frame.most_price(prices, norm2, errors)), problem.by_variable(prices)
        if frame.strength > 0:
            if problem.owners is not None:  # the rounding of the sums over the rows of a variable
                most_prices *= 1.0 + gamma(problem.most_rows)
            q, lower = best_scale(frame.slope - base_price(problem, frame), most_prices, largest_upper(problem))
            # Multipliers in the scale of the dual: λ' = q B²/Λ² λ with y' chosen accordingly (Σλ' = value when scalable). The
            # bounds do not depend on their scale, so it is that without margins.
            total = max(float(multipliers.sum()), 1e-300)
            strength = float(multipliers @ g) / total
            dearest = problem.rows_of(np.array([np.argmax(prices)]))
            rate = 1.0 / frame.plain_price(features[dearest]) if problem.scalable else q
            lam = multipliers / total * (rate * strength * strength)
            rounding += float(most_prices.max(initial=0.0)) / max(float(prices.max(initial=0.0)), 1e-300) - 1.0
            prices = prices * q
    alpha, upper = make_feasible(problem, alpha, most, frame.cost)
    # costs of what is fixed are rounded too, and so is the way back to the program's own units
    upper = (upper + problem.offset * (1.0 + gamma(len(features) + 4))) * (1.0 + problem.bound_error) * inflation
    lower = (
        lower / inflation + problem.offset * (1.0 - 2.0 * problem.bound_error - gamma(len(features) + 4)) / inflation
    )
    return Bounds(upper, max(lower, 0.0), alpha, lam, g, prices, rounding)


def base_price(problem: Canonical, frame: Frame) -> float:
    """An upper bound on Σ_i l_i p_i: the price of what is fixed."""
    if not len(problem.base):
        return 0.0
    norm2, prices, errors = images(frame, problem.base)
    most = float(frame.most_price(prices, norm2, errors).sum()) * (1.0 + gamma(len(norm2)))
    return (most + frame.base_slack) * frame.inflation


def largest_upper(problem: Canonical) -> Array | None:
    """What the upper bounds can be at most, as they may be rounded themselves."""
    if problem.upper is None:
        return None
    return problem.upper * ((1.0 + 4.0 * problem.bound_error) * padding(problem.rank))


def tidy(problem: Canonical, bounds: Bounds, tol: float) -> Bounds:
    """Set to zero what complementarity says is zero, as long as the recomputed certificate is not worse for it."""
    alpha, lam = bounds.alpha, bounds.multipliers
    idle = (alpha < SUPPORT * alpha.max()) & (bounds.prices < 1.0 - SUPPORT)
    tight = (1.0 - SUPPORT) * bounds.constraints.max(initial=0.0)  # (there may be linear constraints only)
    slack = (lam < SUPPORT * lam.max(initial=0.0)) & (bounds.constraints < tight)
    if not (idle & (alpha > 0)).any() and not (slack & (lam > 0)).any():
        return bounds
    cleared = np.where(idle, 0.0, alpha), np.where(slack, 0.0, lam)
    tidied = recomputed(problem, evaluate(problem, *cleared, bounds.row_multipliers))
    return tidied if tidied.gap <= max(bounds.gap, 0.5 * tol) else bounds


def recomputed(problem: Canonical, bounds: Bounds) -> Bounds:
    """Bounds that follow from the feasible allocation itself, so that what is stored proves what is claimed."""
    if problem.scalable:
        return bounds
    return evaluate(problem, bounds.alpha, bounds.multipliers, bounds.row_multipliers)


def best_scale(slope: float, prices: Array, upper: Array | None) -> tuple[float, float]:
    """The q >= 0 that maximises q·slope − Σ u_i (q p_i − 1)_+, and the maximum."""
    if slope <= 0:
        return 0.0, 0.0
    if upper is None:
        top = float(prices.max())
        q = 1.0 / top if top > 0.0 else 0.0  # prices that underflow prove nothing
        return q, q * slope * (1.0 - 4.0 * UNIT)
    infinite = ~np.isfinite(upper)
    cap = 1.0 / float(prices[infinite].max(initial=0.0)) if prices[infinite].max(initial=0.0) > 0 else np.inf
    bounded = np.flatnonzero(~infinite & (prices > 0))
    order = bounded[np.argsort(-prices[bounded])]  # breakpoints 1/p_i, increasing
    remaining = slope - np.cumsum(upper[order] * prices[order])  # slope after each breakpoint
    stop = np.flatnonzero(remaining <= 0)
    q = 1.0 / float(prices[order[stop[0]]]) if len(stop) else np.inf
    q = min(q, cap)
    if not np.isfinite(q):
        return 0.0, 0.0  # unbounded dual: the program is infeasible, which `feasible` reports; nothing is claimed here
    excess = float((upper[order] * np.maximum(q * prices[order] * (1.0 + 4.0 * UNIT) - 1.0, 0.0)).sum())
    return q, q * slope * (1.0 - 4.0 * UNIT) - excess * (1.0 + gamma(len(order) + 8))


def make_feasible(problem: Canonical, alpha: Array, constraints: Array, cost: float) -> tuple[Array, float]:
    """Scale α up (within its bounds) until every constraint holds for sure, and its cost; inf where that cannot be done.

    ``constraints`` are upper bounds on g at α, and ``cost`` one on its cost. Constraints that hold with room to spare hold for
    every larger α too, because M grows with it: only the others are looked at again.
    """
    worst = float(constraints.max())
    if problem.scalable:
        # so that α stays feasible when it is rounded on its way back
        worst *= (1.0 + 32.0 * UNIT) * (1.0 + problem.bound_error)
        return alpha * worst, cost * worst * (1.0 + 4.0 * UNIT)
    upper = np.full(len(alpha), np.inf) if problem.upper is None else problem.upper
    if (alpha <= upper).all():
        near = np.flatnonzero(~(constraints <= _ROOM))
        problem = replace(problem, targets=problem.targets[near], ratios=None)
    alpha = np.minimum(alpha, upper)
    for enlarge in (_grow, _fill):
        high = 0.0 if worst <= 1.0 else max(2.0 * (worst - 1.0), 1e-15)
        while violation(problem, enlarge(alpha, upper, high)) > 1.0 and high < 1e12:
            high = max(4.0 * high, 1e-15)
        if high >= 1e12:
            continue
        low = 0.0
        for _ in range(60):
            if high - low <= 1e-3 * high + 1e-16:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if violation(problem, enlarge(alpha, upper, middle)) > 1.0 else (low, middle)
        feasible = enlarge(alpha, upper, high)
        return feasible, float(feasible.sum()) * (1.0 + gamma(len(feasible)))
    return alpha, float("inf")


def _grow(alpha: Array, upper: Array, by: float) -> Array:
    return np.minimum(upper, alpha * (1.0 + by))


def _fill(alpha: Array, upper: Array, by: float) -> Array:
    """Move towards the upper bounds; arms without one grow in proportion."""
    room = np.where(np.isfinite(upper), upper - alpha, alpha)
    filled: Array = np.minimum(upper, alpha + np.where(np.isfinite(upper), min(by, 1.0), by) * room)
    return filled


def violation(problem: Canonical, alpha: Array) -> float:
    """An upper bound on max_j g_j(α)."""
    if not len(problem.targets):
        return 0.0
    frame = frame_of(problem, alpha, np.zeros(len(problem.targets)))
    if frame is None:
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        g = squared_row_lengths(problem.targets @ frame.basis)
        most = frame.most_constraint(g, frame.errors(problem.targets, g))
    return float(np.max(most, initial=0.0)) if np.isfinite(most).all() else float("inf")
