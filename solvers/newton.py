r"""Mehrotra's predictor–corrector for the canonical program, written once: numpy runs it, and numba compiles it.

The constraints are written as h_j(α) = 1/g_j(α) >= 1. h is concave and, without a base, homogeneous of degree 1, so Newton's
method sees a gentler function than g. Unknowns: α with multipliers z (α >= 0) and v (α <= u); slacks s of the constraints
with multipliers ν = λ g². With T = b M^-1 aᵀ and K = a M^-1 aᵀ the derivatives of g are −T_ji² and 2 T_ji T_jl K_il, and one
Newton step is one dense positive definite system in α. Everything is computed in the basis in which M(α) = I: nothing else
keeps its digits when gaps are small.

All the products that complementarity wants to be zero are held side by side: x = (s, α, u − α) against y = (ν, z, v).

What is compiled uses nothing but `allocopt.linear.dense`, arithmetic, and loops and branches that numba knows; what only numpy is to
do stands behind an argument that is not None. Features and targets are columns; targets None stands for features times ``ratios``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from allocopt.base.validation import Array
from allocopt.certify.certificate import best_scale
from allocopt.linear.dense import (
    add_diagonal,
    add_entries,
    add_products,
    back,
    choose,
    cross,
    dot,
    factorised,
    fastest,
    geometric_mean,
    gram,
    lanes,
    larger,
    largest,
    magnitude,
    scaled_columns,
    smaller,
    smallest,
    solved,
    squared_lengths,
    squared_ratios,
    times,
    total,
    weighted,
    whitener,
)

__all__ = [
    "ALIKE",
    "INTERIOR",
    "NOTHING",
    "PAIR",
    "ROOM",
    "begin",
    "bounded_gap",
    "changed",
    "minimise",
    "moved",
    "relative_gap",
    "white",
]

NOTHING, ALIKE, INTERIOR, PAIR = 0, 1, 2, 3
COLD = 0.5  # how far from optimal a start is taken to be at most
_BOUNDARY = 0.995  # fraction of the way to the boundary that a step may go
_STALLED = 15  # steps without halving gap or distance before we call it the limit of this arithmetic
_LEAST_CENTRE = 0.01  # of the tolerance
_ENOUGH = 0.25  # of the tolerance: leaves room for the certificate's allowance for rounding
_LIFT = 0.1  # share of the gap of a known pair that its start is moved inwards by: the first steps remove the rest
_LEAST_LIFT = 1e-3  # a warm start closer to the boundary than this is a trap
_COUNTS = 0.1  # share of the largest g below which a constraint is not part of the dual
_TRACE = 1e-9  # of the mean of α that keeps M regular while a known pair is looked at
_GROWTH = 2.0  # relative increase of the cost that one step may bring
_MUCH = 100.0  # times cheaper that another start must be to replace the first choice
ROOM = 0.8  # the largest g at the start


def white(features: Array, targets: Array | None, ratios: Array, base: Array | None, alpha: Array) -> Any:
    """Whether M(α) is regular, the basis in which it is I, features a and targets b in it, and g."""
    regular, basis = whitener(features, alpha, base)
    a = cross(basis, features)
    b = scaled_columns(a, ratios) if targets is None else cross(basis, targets)
    return regular, basis, a, b, squared_lengths(b)


def relative_gap(
    cost: float,
    g: Array,
    lam: Array,
    prices: Array,
    b: Array,
    base: Array | None,
    basis: Array,
    upper: Array | None,
    offset: float,
) -> float:
    """The gap of (α, λ), given the prices for λ: the certificate's formulas without its care for rounding."""
    if base is None and upper is None:
        strength = dot(lam, g)
        if not strength > 0.0:
            return np.inf
        return cost * largest(g) * total(lam) * largest(prices) / (strength * strength) - 1.0
    return bounded_gap(cost, g, lam, prices, b, base, basis, upper, offset)


def bounded_gap(
    cost: float,
    g: Array,
    lam: Array,
    prices: Array,
    b: Array,
    base: Array | None,
    basis: Array,
    upper: Array | None,
    offset: float,
) -> float:
    """The gap where α cannot be scaled at will."""
    strength, worst = dot(lam, g), largest(g)
    if not strength > 0.0:
        return np.inf
    seen = np.zeros((0, len(b))) if base is None else base @ basis
    known = float(np.einsum("ij,ij->", seen @ weighted(b, lam), seen))
    # prices scale with λ, so the slope for λ itself (not λ/Σλ) is strength²/Σλ − known
    lower = best_scale(strength * strength / total(lam) - known, prices, upper)[1] + offset
    value = cost * max(worst, 1.0) + offset
    return abs(value - lower) / max(lower, 1e-300) + max(worst - 1.0, 0.0)


def begin(
    features: Array,
    targets: Array | None,
    ratios: Array,
    base: Array | None,
    upper: Array | None,
    offset: float,
    alpha: Array,
    lam: Array,
    known: int,
) -> Any:
    """The start (x, y): an interior α, scaled to meet the constraints where it may be scaled, near the central path.

    ``known`` says what (α, λ) hold: `NOTHING`; α by which every arm tells `ALIKE` much, of which a start can be made; an α
    that is `INTERIOR` already; or the solution of a similar problem, a `PAIR`.
    """
    k, m = len(alpha), len(lam)
    pairs = m + k
    if upper is not None:
        capped = np.flatnonzero(np.isfinite(upper))
        pairs += len(capped)
    x, y = np.empty(pairs), np.empty(pairs)
    at, trial, scratch = x[m : m + k], np.empty(k), np.empty(m)
    near, stretch = COLD, 1.0
    if known == PAIR:
        mean = total(alpha) / k
        for i in lanes(k):
            trial[i] = alpha[i] + _TRACE * mean
        _, basis, a, b, g = white(features, targets, ratios, base, trial)
        for j in lanes(m):
            scratch[j] = lam[j] * g[j] * g[j]
        prices = back(squared_ratios(cross(b, a), g), scratch)
        near = relative_gap(total(trial), g, lam, prices, b, base, basis, upper, offset)
        near = max(_LIFT * near, _LEAST_LIFT) if near < COLD else COLD
        for i in lanes(k):  # into the interior by about as much as it is away from the optimum
            at[i] = alpha[i] + near * mean
        if upper is not None:
            at[:] = np.minimum(at, (1.0 - 0.5 * near) * upper)
        stretch = largest(white(features, targets, ratios, base, at)[4]) * (1.0 + near)
    else:
        for i in lanes(k):
            at[i] = alpha[i]
    if known == NOTHING:  # alike in the metric of Σ b bᵀ, the information that would meet every constraint by itself
        for j in lanes(m):
            scratch[j] = ratios[j] * ratios[j]
        norms = squared_lengths(cross(whitener(features, scratch, base)[1], features))
        for i in lanes(k):
            at[i] = 1.0 / norms[i]
    if known <= ALIKE:
        # arms that are useless for their size would dominate the cost: they are cut down if that makes a great difference
        chosen = cap = largest(at)
        first = best = np.inf
        for attempt in range(3):
            if attempt == 1:
                cap = geometric_mean(at)
            if attempt == 2:
                cap = smallest(at)
            for i in lanes(k):
                trial[i] = smaller(at[i], cap)
            if upper is not None:
                trial[:] = np.minimum(trial, 0.5 * upper)
            regular, basis, a, b, g = white(features, targets, ratios, base, trial)
            worst = largest(g) if regular else np.inf
            worth = total(trial) * worst
            if attempt == 0:
                first, stretch = worth, worst
            if worth < best:
                best = worth
                if _MUCH * worth < first:
                    chosen, stretch = cap, worst
        stretch = 1.0 if 0.5 * ROOM <= stretch <= ROOM else stretch / ROOM
        for i in lanes(k):
            at[i] = smaller(at[i], chosen)
    if base is None and upper is None:
        for i in lanes(k):
            at[i] *= stretch
    _, basis, a, b, g = white(features, targets, ratios, base, at)
    mu = near * total(at) / pairs
    for j in lanes(m):
        x[j] = larger(1.0 / g[j] - 1.0, min(near, 0.1))
        y[j] = larger(mu / x[j], lam[j] * g[j] * g[j] if known == PAIR else 0.0)
        scratch[j] = y[j]
    prices = back(squared_ratios(cross(b, a), g), scratch)
    z = y[m : m + k]
    for i in lanes(k):
        z[i] = larger(mu / at[i], 1.0 - prices[i] if known == PAIR else 0.0)
    if upper is not None:
        x[m + k :] = upper[capped] - at[capped]
        y[m + k :] = mu / x[m + k :]
    return x, y


def minimise(
    features: Array,
    targets: Array | None,
    ratios: Array,
    base: Array | None,
    upper: Array | None,
    offset: float,
    x: Array,
    y: Array,
    tol: float,
    most_steps: int,
    tick: Callable[[], None] | None,
    watch: Callable[[Array, Array, int], None] | None,
) -> Any:
    """Newton's method from the start (x, y), which it changes, until the gap is below a quarter of ``tol`` or stays the same.

    Steps taken, the best gap (inf if there was none at all), and x, y, λ and g there.
    """
    pairs, k = len(x), features.shape[1]
    m = len(ratios) if targets is None else targets.shape[1]
    enough = _ENOUGH * tol
    if base is not None or upper is not None:
        enough *= 0.1  # α cannot simply be scaled to feasibility: what is missing costs more than it does here
    if upper is not None:
        capped = np.flatnonzero(np.isfinite(upper))
    dx, dy = np.empty(pairs), np.empty(pairs)
    rate, per = np.empty(pairs), np.empty(pairs)
    best_x, best_y = np.empty(pairs), np.empty(pairs)
    short, kept, push = np.empty(m), np.empty(m), np.empty(m)
    dual, best_dual, best_g = np.empty(m), np.empty(m), np.empty(m)
    off = np.empty(k)
    s, at = x[:m], x[m : m + k]
    nu, z = y[:m], y[m : m + k]
    d_alpha, rate_alpha, per_alpha = dx[m : m + k], rate[m : m + k], per[m : m + k]

    best_gap = least_distance = np.inf
    idle = steps = 0
    # from here on in the basis in which M is I at the start
    basis = whitener(features, at, base)[1]
    own_features, own_targets, own_base = cross(basis, features), changed(targets, basis), moved(base, basis)
    while True:
        if tick is not None:
            tick()
        # as `white` does, which would take numba longer
        regular, basis = whitener(own_features, at, own_base)
        if not regular:
            break
        a = cross(basis, own_features)
        b = scaled_columns(a, ratios) if targets is None else cross(basis, own_targets)
        g = squared_lengths(b)
        jacobian = squared_ratios(cross(b, a), g)  # ∂h/∂α, a row for each constraint
        prices = back(jacobian, nu)
        worst = largest(g)
        for j in lanes(m):
            short[j] = s[j] - 1.0 / g[j] + 1.0
            # λ = ν/g² of a constraint with tiny g counts for nothing but weighs in Σλ: the dual is better off without it
            kept[j] = choose(g[j] > _COUNTS * worst, nu[j], 0.0)
            dual[j] = kept[j] / g[j] / g[j]  # not g², which may underflow
        for i in lanes(k):
            off[i] = 1.0 - prices[i] - z[i]
        if upper is not None:
            off[capped] += y[m + k :]
        cost, mu = total(at), dot(x, y) / pairs
        distance = mu * pairs + magnitude(off, at) + magnitude(short, nu)
        gap = relative_gap(cost, g, dual, back(jacobian, kept), b, own_base, basis, upper, offset)
        if not abs(gap) < np.inf:
            break
        idle += 1
        if gap < 0.5 * best_gap or distance < 0.5 * least_distance:
            idle = 0
        least_distance = min(least_distance, distance)
        if gap < best_gap:
            best_gap = gap
            for n in lanes(pairs):
                best_x[n] = x[n]
                best_y[n] = y[n]
            for j in lanes(m):
                best_dual[j] = dual[j]
                best_g[j] = g[j]
        if watch is not None:
            watch(at.copy(), dual.copy(), steps)
        # what is still far from optimal gets twice the patience
        if gap <= enough or idle >= (_STALLED if best_gap < 1e-3 else 2 * _STALLED) or steps >= most_steps:
            break
        # one matrix for predictor and corrector
        for n in lanes(pairs):
            rate[n] = y[n] / x[n]
            per[n] = y[n]
        for j in lanes(m):
            push[j] = nu[j] / g[j] / g[j]
            kept[j] = rate[j] - 2.0 * nu[j] * g[j]
        matrix = gram(jacobian, kept)
        add_products(matrix, 2.0, cross(a, a), cross(a, cross(weighted(b, push), a)))
        add_diagonal(matrix, rate_alpha)
        if upper is not None:
            add_entries(matrix, capped, rate[m + k :])
        definite, factor = factorised(matrix)
        if not definite:
            break
        # (dx, dy) changes the products x y by −x per, and removes the residuals, to first order
        primal = far = 0.0
        for corrector in range(2):
            for j in lanes(m):
                push[j] = rate[j] * short[j] - per[j]
            right = back(jacobian, push)
            for i in lanes(k):
                right[i] -= off[i] + per_alpha[i]
            if upper is not None:
                right[capped] += per[m + k :]
            right = solved(matrix, factor, right)
            for i in lanes(k):
                d_alpha[i] = right[i]
            right = times(jacobian, right)
            for j in lanes(m):
                dx[j] = right[j] - short[j]
            if upper is not None:
                dx[m + k :] = -d_alpha[capped]
            for n in lanes(pairs):
                dy[n] = -(per[n] + rate[n] * dx[n])
            short_of = 1.0 if corrector == 0 else _BOUNDARY
            primal, far = 1.0 / max(fastest(dx, x) / short_of, 1.0), 1.0 / max(fastest(dy, y) / short_of, 1.0)
            if corrector == 0:
                after = mu * pairs + far * dot(x, dy) + primal * dot(dx, y) + primal * far * dot(dx, dy)
                after = max(after, 0.0) / (mu * pairs)
                # if the predictor has been too greedy for a while, centre
                sigma = min(max(after * after * after, 0.3 if idle >= 3 else 1e-6), 1.0)
                # below a share of the tolerance a smaller μ gains nothing and only spoils the Newton matrix
                centre = max(sigma * mu, _LEAST_CENTRE * tol * cost / pairs)
                # the second-order term is right for a full step; of a short one only its share is, and all of it leads astray
                share = min(primal, far)
                for n in lanes(pairs):
                    per[n] += (share * dx[n] * dy[n] - centre) / x[n]
        # h is nearly homogeneous: a bad direction can lead any distance away at no loss of feasibility
        primal = min(primal, _GROWTH * cost / max(total(d_alpha), 1e-300))
        for n in lanes(pairs):
            x[n] += primal * dx[n]
            y[n] += far * dy[n]
        if upper is not None:
            x[m + k :] = upper[capped] - at[capped]
        steps += 1
    return steps, best_gap, best_x, best_y, best_dual, best_g


def changed(columns: Array | None, basis: Array) -> Any:
    """Columns in another basis."""
    return None if columns is None else cross(basis, columns)


def moved(rows: Array | None, basis: Array) -> Any:
    """Rows in another basis."""
    return None if rows is None else rows @ basis
