"""Random programs with linear constraints and triples (α, λ, μ), and what these prove, in rationals."""

from fractions import Fraction

import numpy as np
from exactly import dot, rational, solved

import allocopt as ao

INF = float("inf")


def instance(seed, rows=1):
    """A program in the plane with coefficients other than ±1, floors and bounds, its arrays, and a triple; all small numbers."""
    rng = np.random.default_rng(seed)
    k = 4
    shown = [rng.integers(-8, 9, size=(rows, 2)) / 4.0 + np.eye(2)[i % 2] / 8.0 for i in range(k)]
    costs = rng.integers(1, 9, size=k) / 4.0
    targets, radii = rng.integers(-8, 9, size=(2, 2)) / 4.0 + np.eye(2) / 8.0, rng.integers(1, 9, size=2) / 4.0
    lower = rng.integers(0, 3, size=k) * (seed % 3) / 2.0
    upper = lower + np.where(rng.random(k) < 0.6, rng.integers(1, 40, size=k) / 2.0, INF)
    matrix, limits = rng.choice([-2.0, -1.5, 0.0, 0.5, 3.0], size=(2, k)), rng.integers(-20, 60, size=2) / 4.0
    matrix[:, 0] = [3.0, -0.5]
    features = np.array([f[0] for f in shown]) if rows == 1 else shown
    program = ao.AllocationProgram(features, costs, targets, radii, lower, upper, constraints=(matrix, limits))
    alpha = np.minimum(lower + rng.integers(1, 9, size=k) / 2.0, upper)
    lam, mu = rng.integers(0, 5, size=2) / 4.0, rng.integers(0, 5, size=2) / 8.0
    return program, (shown, costs, targets, radii, lower, upper, matrix, limits), (alpha, lam, mu)


def best_bound(given, triple):
    """The largest over q of q(S²/Λ − Σlp) + Σl(κ + Bᵀμ) − μᵀb − Σ(u − l)(qp − κ − Bᵀμ)_+, and at least what l costs."""
    shown, costs, targets, radii, lower, upper, matrix, limits = given
    alpha, lam, mu = (rational(x) for x in triple)
    rows = [rational(f) for f in shown]
    cost, t, rho, low = (rational(x) for x in (costs, targets, radii, lower))
    room = [None if np.isinf(u) else rational(u) - x for u, x in zip(upper, low, strict=True)]
    charge = [
        c + sum(m * b for m, b in zip(mu, column, strict=True))
        for c, column in zip(cost, rational(matrix.T), strict=True)
    ]
    rent = dot(mu, rational(limits))
    if any(c < 0 and u is None for c, u in zip(charge, room, strict=True)):
        charge, rent = cost, Fraction(0)
    information = [
        [sum(a * f[i] * f[j] for a, rs in zip(alpha, rows, strict=True) for f in rs) for j in range(2)]
        for i in range(2)
    ]
    prices, slope = [Fraction(0)] * len(rows), Fraction(0)
    if any(lam):
        y = [solved(information, x) for x in t]
        weight = [w / r for w, r in zip(lam, rho, strict=True)]
        prices = [sum(w * dot(f, v) ** 2 for w, v in zip(weight, y, strict=True) for f in rs) for rs in rows]
        strength = sum(w * dot(x, v) for w, x, v in zip(weight, t, y, strict=True))
        slope = strength**2 / sum(lam) - dot(low, prices)
    start, found = dot(low, charge) - rent, dot(low, cost)
    for q in [Fraction(0), *(max(c, Fraction(0)) / p for c, p in zip(charge, prices, strict=True) if p)]:
        over = [q * p - c for p, c in zip(prices, charge, strict=True)]
        if any(o > 0 and u is None for o, u in zip(over, room, strict=True)):
            continue
        found = max(
            found, start + q * slope - sum(u * max(o, 0) for o, u in zip(over, room, strict=True) if u is not None)
        )
    return max(found, Fraction(0)), slope


def holds(given, alpha):
    """Whether every linear constraint and every target holds."""
    shown, _, targets, radii, _, _, matrix, limits = given
    a = rational(alpha)
    rows = [rational(f) for f in shown]
    information = [
        [sum(x * f[i] * f[j] for x, rs in zip(a, rows, strict=True) for f in rs) for j in range(2)] for i in range(2)
    ]
    within = all(dot(b, a) <= limit for b, limit in zip(rational(matrix), rational(limits), strict=True))
    return within and all(
        dot(t, solved(information, t)) <= r for t, r in zip(rational(targets), rational(radii), strict=True)
    )
