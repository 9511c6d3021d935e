"""Linear constraints in balls: the interval of random triples (α, λ, μ) against the dual bound written out in rationals."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import dot, rational, solved

import allocopt as ao
from allocopt.certify.exact_arithmetic.balls import interval_in_balls
from allocopt.certify.reduction import reduce
from allocopt.model.rows.constraints import LinearConstraints

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


@pytest.mark.parametrize("rows", [1, 2])
def test_balls_are_the_dual_bound_and_the_cost_of_what_holds(rows):
    losing = feasible = by_rows = 0
    for seed in range(60):
        program, given, (alpha, lam, mu) = instance(seed, rows)
        try:
            reduction = reduce(program)
        except ao.Infeasible:
            continue
        for multipliers in (lam, np.zeros(2)):
            exact, slope = best_bound(given, (alpha, multipliers, mu))
            lower, upper, _ = interval_in_balls(reduction, alpha, multipliers, 128, mu)
            assert rational(lower) <= exact
            assert lower == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
            losing += slope < 0
            by_rows += not multipliers.any() and exact > dot(rational(given[4]), rational(given[1]))
        assert np.isfinite(upper) == holds(given, alpha)
        if np.isfinite(upper):
            feasible += 1
            assert rational(upper) >= dot(rational(given[1]), rational(alpha))
            assert upper == pytest.approx(given[1] @ alpha, rel=1e-14)
    assert losing > 3 and feasible > 3 and by_rows > 3


def test_without_multipliers_of_rows_they_are_none():
    for seed in range(12):
        program, given, (alpha, lam, _) = instance(seed)
        exact, _ = best_bound(given, (alpha, lam, np.zeros(2)))
        assert interval_in_balls(reduce(program), alpha, lam)[0] == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("target", [[-1.0], [1.0], [2.0]])
def test_a_target_counts_whatever_its_sign(target):
    program = ao.AllocationProgram([[1.0]], [1.0], [target], [1.0], lower=[0.0], upper=[8.0])
    enough = target[0] ** 2
    assert interval_in_balls(reduce(program), np.array([enough]), np.ones(1))[1] == enough
    assert interval_in_balls(reduce(program), np.array([enough - 0.25]), np.ones(1))[1] == INF


def test_rows_are_decided_without_error_where_sums_cancel():
    rng = np.random.default_rng(0)
    doubtful = 0
    for _ in range(300):
        row, alpha = rng.normal(size=5), rng.uniform(0.1, 2.0, size=5)
        row[-1] = -(row[:-1] @ alpha[:-1]) / alpha[-1] if rng.random() < 0.5 else row[-1]
        limit = float(row @ alpha) + rng.integers(-2, 3) * 2.0**-54
        rows = LinearConstraints.checked(([row], [limit]), 5)
        exact = dot(rational(row), rational(alpha)) - rational(limit)
        doubtful += (rows.used(alpha)[0] > limit) != (exact > 0)
        assert rows.unmet(alpha).tolist() == [0] * (exact > 0)
        assert rows.met_by(alpha) == (exact <= 0)
        assert rows.terms(alpha) == pytest.approx([np.abs(row) @ alpha])
    assert doubtful > 20
