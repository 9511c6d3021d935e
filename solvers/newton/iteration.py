r"""Mehrotra's predictor–corrector for the canonical program, written once: numpy runs it, and numba compiles it.

Names and steps are those of Nocedal and Wright, *Numerical Optimization*, chapters 14 and 19. The constraints are written as
h_j(α) = 1/g_j(α) >= 1: h is concave and, without a base, homogeneous of degree 1, so Newton's method sees a gentler function
than g. Unknowns are α with multipliers z (of α >= 0) and v (of α <= u), and the slacks s = h − 1 with multipliers ν = λ g².
All the products that complementarity wants to be zero are held side by side: x = (s, α, u − α) against y = (ν, z, v).

With T = b M^-1 aᵀ and K = a M^-1 aᵀ the derivatives of g are −T_ji² and 2 T_ji T_jl K_il, and one Newton step is one dense
positive definite system in α. Everything is computed in the basis in which M(α) = I: nothing else keeps its digits when gaps
are small.

How it is written: with the functions of `allocopt.linear.dense`, and arithmetic, loops and branches that numba can compile. What
may be absent (None) is passed to a small function of its own (`problem.CHOICES`): numba leaves out a branch on None only where it
tests an *argument* of the function that it compiles. The steps (`STEPS`) have no such branches: numba copies their text into
`minimise` before it compiles anything, so that they cost neither a call nor a compilation of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.linear.dense import (
    back,
    choose,
    cross,
    dot,
    factorised,
    fastest,
    gram,
    lanes,
    largest,
    magnitude,
    solved,
    squared_lengths,
    squared_ratios,
    times,
    total,
    weighted,
    whitener,
)
from allocopt.solvers.newton.problem import (
    DEFAULT,
    Problem,
    Tuning,
    add_barrier,
    add_curvature,
    add_to_capped,
    by_arm,
    by_column,
    capped_arms,
    gap_goal,
    images,
    in_basis,
    n_arms,
    n_capped,
    relative_gap,
    room_above,
    rows_in_basis,
    take_capped,
)

__all__ = ["STEPS", "minimise"]

# The steps of one iteration. Their last arguments are arrays for the results: making new ones would take longer than the sums.


def patience(best_gap: float, far: float, steps: int) -> int:
    """The number of idle steps after which to stop: twice as many while the gap is ``far`` or more."""
    return steps if best_gap < far else 2 * steps


def residuals(
    g: Array, prices: Array, x: Array, y: Array, capped: IntArray | None, residual_primal: Array, residual_dual: Array
) -> None:
    """Residuals of s = h(α) − 1 and of 1 = prices + z − v (the gradient of the Lagrangian), which the steps drive to zero."""
    m, k = len(g), len(prices)
    s, z = x[:m], y[m : m + k]
    for j in lanes(m):
        residual_primal[j] = s[j] - 1.0 / g[j] + 1.0
    for i in lanes(k):
        residual_dual[i] = 1.0 - prices[i] - z[i]
    add_to_capped(residual_dual, capped, y[m + k :])


def dual_candidate(g: Array, nu: Array, negligible: float, nu_kept: Array, lam: Array) -> None:
    """λ = ν/g², and ν itself, without the constraints of tiny g.

    Such a λ adds nothing to the lower bound's numerator but increases Σλ in its denominator: the bound is better without it.
    """
    worst = largest(g)
    for j in lanes(len(nu)):
        nu_kept[j] = choose(g[j] > negligible * worst, nu[j], 0.0)
        lam[j] = nu_kept[j] / g[j] / g[j]  # not g², which may underflow


def newton_weights(x: Array, y: Array, g: Array, scaling: Array, weights: Array, curvature: Array) -> None:
    """The numbers in the Newton matrix: y/x, the weights of products of two slopes of h, and those of its curvature."""
    for n in lanes(len(x)):
        scaling[n] = y[n] / x[n]
    for j in lanes(len(g)):
        curvature[j] = y[j] / g[j] / g[j]
        weights[j] = scaling[j] - 2.0 * y[j] * g[j]


def predictor_corrector(
    system: tuple[Array, Array, Array, Array], residual_primal: Array, residual_dual: Array, residual_products: Array,
    x: Array, y: Array, mu: float, least_sigma: float, least_target: float, step_fraction: float,
    capped: IntArray | None, push: Array, dx: Array, dy: Array,
) -> Any:  # fmt: skip
    """Mehrotra's direction, into dx and dy; the cost that a full step would add, and the step lengths of x and y.

    A direction removes all residuals to first order. That of the products is (x y − what is wanted)/x: y to begin with, since the
    affine step wants products of zero.
    """
    jacobian, matrix, factor, scaling = system
    m, k, pairs = len(push), len(residual_dual), len(x)
    products_alpha, dx_alpha = residual_products[m : m + k], dx[m : m + k]
    for n in lanes(pairs):
        residual_products[n] = y[n]
    growth, primal, dual = 0.0, 0.0, 0.0
    for corrector in range(2):
        # right-hand side and solution in α
        for j in lanes(m):
            push[j] = scaling[j] * residual_primal[j] - residual_products[j]
        right = back(jacobian, push)
        for i in lanes(k):
            right[i] -= residual_dual[i] + products_alpha[i]
        add_to_capped(right, capped, residual_products[m + k :])
        d_alpha = solved(matrix, factor, right)
        # the direction in all unknowns
        d_h = times(jacobian, d_alpha)
        for j in lanes(m):
            dx[j] = d_h[j] - residual_primal[j]
        for i in lanes(k):
            dx_alpha[i] = d_alpha[i]
        take_capped(dx[m + k :], d_alpha, capped)
        for n in lanes(pairs):
            dy[n] = -(residual_products[n] + scaling[n] * dx[n])
        # step lengths: all the way, or to where an entry becomes zero; the corrector's a little less
        fraction = 1.0 if corrector == 0 else step_fraction
        primal, dual = 1.0 / max(fastest(dx, x) / fraction, 1.0), 1.0 / max(fastest(dy, y) / fraction, 1.0)
        growth = total(d_alpha)
        if corrector == 0:
            # centring: products of σμ are wanted, σ = (μ after the affine step/μ)³
            after = mu * pairs + dual * dot(x, dy) + primal * dot(dx, y) + primal * dual * dot(dx, dy)
            ratio = max(after, 0.0) / (mu * pairs)
            target = max(min(max(ratio * ratio * ratio, least_sigma), 1.0) * mu, least_target)
            # the second-order term is right for a full step; of a short one only its share is
            share = min(primal, dual)
            for n in lanes(pairs):
                residual_products[n] += (share * dx[n] * dy[n] - target) / x[n]
    return growth, primal, dual


def advance(
    x: Array, y: Array, dx: Array, dy: Array, primal: float, dual: float, upper: Array | None, capped: IntArray | None
) -> None:
    """Take the step, in place."""
    for n in lanes(len(x)):
        x[n] += primal * dx[n]
        y[n] += dual * dy[n]
    room_above(x, upper, capped)  # u − α anew, or its rounding would add up


def keep(x: Array, y: Array, lam: Array, g: Array, best: tuple[Array, Array, Array, Array]) -> None:
    """Remember the best iterate."""
    best_x, best_y, best_lam, best_g = best
    for n in lanes(len(x)):
        best_x[n] = x[n]
        best_y[n] = y[n]
    for j in lanes(len(g)):
        best_lam[j] = lam[j]
        best_g[j] = g[j]


def minimise(
    problem: Problem, x: Array, y: Array, tol: float, max_steps: int, tuning: Tuning | None,
    tick: Callable[[], None] | None, watch: Callable[[Array, Array, int], None] | None,
) -> Any:  # fmt: skip
    """Newton's method from the start (x, y), which it changes, until the gap is well below ``tol`` or stays the same."""
    features, targets, ratios, base, upper, offset, owners = problem
    numbers = DEFAULT if tuning is None else tuning
    k, capped, pairs = n_arms(features, owners), capped_arms(upper), len(x)
    m = pairs - k - n_capped(capped)
    alpha, nu, best = x[m : m + k], y[:m], (np.empty(pairs), np.empty(pairs), np.empty(m), np.empty(m))
    residual_primal, residual_dual, residual_products = np.empty(m), np.empty(k), np.empty(pairs)
    scaling, dx, dy, push = np.empty(pairs), np.empty(pairs), np.empty(pairs), np.empty(m)
    nu_kept, lam, weights, curvature = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    goal = gap_goal(base, upper, tol, numbers.gap_fraction, numbers.bounded_gap_fraction)
    best_gap, least_distance, idle, steps = np.inf, np.inf, 0, 0  # idle: steps since one of the two was last halved
    basis = whitener(features, by_column(alpha, owners), base)[1]  # from here on: that in which M = I at the start
    features, targets, base = cross(basis, features), in_basis(targets, basis), rows_in_basis(base, basis)
    while True:
        if tick is not None:
            tick()
        regular, basis = whitener(features, by_column(alpha, owners), base)
        if not regular:
            break
        a = cross(basis, features)
        b = images(a, targets, ratios, basis)
        g = squared_lengths(b)
        jacobian = by_arm(squared_ratios(cross(b, a), g), owners)  # ∂h/∂α, a row for each constraint
        residuals(g, back(jacobian, nu), x, y, capped, residual_primal, residual_dual)
        cost, mu = total(alpha), dot(x, y) / pairs  # μ: the duality measure
        distance = mu * pairs + magnitude(residual_dual, alpha) + magnitude(residual_primal, nu)
        dual_candidate(g, nu, numbers.negligible_constraint, nu_kept, lam)
        gap = relative_gap(cost, g, lam, back(jacobian, nu_kept), b, base, basis, upper, offset)
        if not abs(gap) < np.inf:
            break
        idle = 0 if gap < 0.5 * best_gap or distance < 0.5 * least_distance else idle + 1
        if gap < best_gap:
            keep(x, y, lam, g, best)
        best_gap, least_distance = min(best_gap, gap), min(least_distance, distance)
        if watch is not None:
            watch(alpha.copy(), lam.copy(), steps)
        if gap <= goal or idle >= patience(best_gap, numbers.stall_gap, numbers.stall_steps) or steps >= max_steps:
            break
        newton_weights(x, y, g, scaling, weights, curvature)
        matrix = gram(jacobian, weights)  # one for predictor and corrector
        add_curvature(matrix, cross(a, a), cross(a, cross(weighted(b, curvature), a)), owners)
        add_barrier(matrix, scaling, m, capped)
        definite, factor = factorised(matrix)
        if not definite:
            break
        least_target = numbers.least_centring * tol * cost / pairs  # a smaller μ only spoils the Newton matrix
        least_sigma = numbers.stalled_sigma if idle >= numbers.stalled_after else numbers.least_sigma
        growth, primal, dual = predictor_corrector(
            (jacobian, matrix, factor, scaling), residual_primal, residual_dual, residual_products, x, y, mu,
            least_sigma, least_target, numbers.step_fraction, capped, push, dx, dy,
        )  # fmt: skip
        # h is nearly homogeneous: a bad direction can lead any distance away at no loss of feasibility
        primal = min(primal, numbers.growth * cost / max(growth, NOT_ZERO))
        advance(x, y, dx, dy, primal, dual, upper, capped)
        steps += 1
    return steps, best_gap, best  # the best gap is inf if there was none at all; (x, y, λ, g) there


STEPS: tuple[Callable[..., Any], ...] = (
    patience,
    residuals,
    dual_candidate,
    newton_weights,
    predictor_corrector,
    keep,
    advance,
)
"""The steps that `minimise` calls."""
