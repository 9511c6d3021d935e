"""Linear constraints in balls: the interval of random triples (α, λ, μ) against the dual bound written out in rationals."""

import numpy as np
import pytest
from exactly import dot, rational
from limited_triples import best_bound, holds, instance

import allocopt as ao
from allocopt.certify.exact_arithmetic.balls import interval_in_balls
from allocopt.certify.reduction import reduce
from allocopt.model.rows.constraints import LinearConstraints

INF = float("inf")


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
    for _ in range(1500):
        row, alpha = rng.normal(size=9), rng.uniform(0.1, 2.0, size=9)
        kind = rng.integers(4)  # sums that cancel, mixed ones, and those of one sign
        row = [np.append(row[:-1], -(row[:-1] @ alpha[:-1]) / alpha[-1]), row, np.abs(row), -np.abs(row)][kind]
        limit = float(row @ alpha) * (1.0 + rng.integers(-2, 3) * 2.0**-52)
        rows = LinearConstraints.checked(([row], [limit]), 9)
        exact = dot(rational(row), rational(alpha)) - rational(limit)
        doubtful += (rows.used(alpha)[0] > limit) != (exact > 0)
        assert rows.unmet(alpha).tolist() == [0] * (exact > 0)
        assert rows.met_by(alpha) == (exact <= 0)
        assert rows.terms(alpha) == pytest.approx([np.abs(row) @ alpha])
    assert doubtful > 20
