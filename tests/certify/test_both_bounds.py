"""Both bounds as a whole against rationals, for rows, weights and bounds that are wrong by as much as they may be."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, rational, solved
from margins import best_gain, bounds_of, capped, in_both, information, instance, moved, whole_instances

from allocopt.certify import canonical, certificate
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import best_scale, evaluate


def scales():
    rng = np.random.default_rng(5)
    for turn in range(300):
        k = int(rng.integers(1, 6))
        prices = rng.uniform(0.1, 2.0, size=k)
        upper = None
        if turn % 3:
            upper = rng.uniform(0.01, 1.0, size=k)
            if turn % 3 == 1:
                upper[rng.integers(k)] = np.inf
            prices[rng.uniform(size=k) < 0.1] = 0.0
        yield float(rng.uniform(0.05, 2.0)), prices, upper


def scale_holds(slope, prices, upper):
    q, best = best_scale(slope, prices, upper)
    exact = best_gain(rational(slope), rational(prices), bounds_of(upper, len(prices)))
    if q == 0.0:
        return best == 0.0
    finite = bool(np.all(prices > 0)) and (upper is None or np.isinf(upper).any() or upper @ prices > slope)
    return best <= exact and (not finite or best >= exact - Fraction(1, 2**45))


def test_the_best_scale_is_not_exceeded(monkeypatch):
    for case in scales():
        assert scale_holds(*case)
    assert best_scale(0.0, np.ones(1), None) == (0.0, 0.0)
    assert best_scale(-1.0, np.ones(1), None) == (0.0, 0.0)
    assert best_scale(1.0, np.array([0.5]), np.array([0.1])) == (
        0.0,
        0.0,
    )  # bounds that leave no room: nothing is claimed
    q, best = best_scale(1.0, np.array([2.0, 1.0]), np.array([0.5, np.inf]))
    assert (q, best) == (0.5, pytest.approx(0.5, rel=1e-14))
    q, best = best_scale(2.0, np.array([2.0, 1.0]), np.array([0.5, np.inf]))
    assert (q, best) == (1.0, pytest.approx(1.5, rel=1e-14))
    in_both(monkeypatch, "UNIT", 0.0)
    assert not all(scale_holds(*case) for case in scales())


def test_large_bounds_are_paid_for_at_the_very_scale_that_was_chosen():
    """q = 1/p rounded: where q p is above 1 by less than doubles show, a large bound pays for it all the same."""
    rng = np.random.default_rng(6)
    for price in rng.uniform(0.5, 1.0, size=100):
        for most in (1.0, 2.0**30, 2.0**45):
            q, best = best_scale(0.5, np.array([price]), np.array([most]))
            over = max(rational(q) * rational(price) - 1, Fraction(0))
            assert rational(best) <= rational(q) / 2 - rational(most) * over


def exact_dual(problem, alpha, lam, row_by, target_by, weight_by, bound_by):
    """The dual's value at y_j = M^-1 b_j for rows, weights and bounds that are wrong by factors."""
    features, base = moved(problem.features, row_by), moved(problem.base, row_by)
    targets = moved(problem.targets, target_by)
    matrix = information(problem, alpha, row_by, weight_by)
    weights = rational(lam)
    directions = [solved(matrix, b) for b in targets]
    strength = sum((w * dot(b, y) for w, b, y in zip(weights, targets, directions, strict=True)), Fraction(0))

    def price(row):
        return sum((w * dot(row, y) ** 2 for w, y in zip(weights, directions, strict=True)), Fraction(0))

    slope = strength**2 / sum(weights) - sum((price(row) for row in base), Fraction(0))
    upper = [None if u is None else u * (1 + bound_by) for u in bounds_of(problem.upper, len(features))]
    dual = best_gain(slope, [price(row) for row in features], upper) if slope > 0 else Fraction(0)
    return max(dual, Fraction(0)) + rational(problem.offset) * (1 - abs(bound_by))


def evaluation_holds(problem, alpha, lam):
    bounds = evaluate(problem, alpha, lam)
    assert np.isfinite(bounds.upper)
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    for sign in (1, -1):
        for target_sign in (1, -1):
            dual = exact_dual(problem, alpha, lam, sign * rho, target_sign * rho, sign * doubt, doubt)
            if rational(bounds.lower) > dual:
                return False
    matrix = information(problem, bounds.alpha, -rho, -doubt)
    if any(dot(b, solved(matrix, b)) > 1 for b in moved(problem.targets, rho)):
        return False
    cost = (sum(rational(bounds.alpha)) + rational(problem.offset)) * (1 + doubt)
    if problem.upper is not None and (bounds.alpha > problem.upper).any():
        return False
    return rational(bounds.upper) >= cost


def test_both_bounds_hold():
    for case in whole_instances():
        assert evaluation_holds(*case)


@pytest.mark.parametrize("doubt", [0.0, 2.0**-20, 2.0**-10])
def test_errors_of_upper_bounds_are_in_the_lower_one(doubt):
    problem, alpha, lam = capped(doubt)
    bounds = evaluate(problem, alpha, lam)
    for factor in (1, 4):  # the error itself, and the theorem's allowance for it
        most = rational(0.5) * (1 + factor * rational(doubt))
        assert rational(bounds.lower) <= most + 4 * (1 - most)
    assert bounds.lower == pytest.approx(2.5, rel=20 * doubt + 1e-12)
    assert bounds.upper == pytest.approx(2.5, rel=20 * doubt + 1e-2)
    assert bounds.upper >= 2.5


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("doubt", [0.0, 2.0**-10])
def test_what_is_fixed_costs_what_it_may_cost(offset, doubt):
    problem = Canonical(np.ones((1, 1)), np.ones((1, 1)), np.zeros((0, 1)), offset=offset, bound_error=doubt)
    bounds = evaluate(problem, np.ones(1), np.ones(1))
    total = 1 + rational(offset)
    assert rational(bounds.lower) <= 1 + rational(offset) * (1 - rational(doubt))
    assert rational(bounds.upper) >= total * (1 + rational(doubt))
    assert bounds.lower == pytest.approx(float(total), rel=5 * doubt + 1e-13)
    assert bounds.upper == pytest.approx(float(total), rel=5 * doubt + 1e-13)
    assert bounds.gap == (bounds.upper - bounds.lower) / bounds.lower


def test_prices_that_underflow_prove_nothing():
    for upper in (None, np.full(2, np.inf)):
        assert certificate.best_scale(1.0, np.zeros(2), upper) == (0.0, 0.0)


def test_feasible_allocations_stay_so_when_rounded():
    """Scaled by the worst constraint, with room for the roundings of the way back to the program's units."""
    rng = np.random.default_rng(3)
    problem, alpha, _ = instance(1, 2, 5, 3)
    for doubt in (0.0, 2.0**-10):
        problem = dataclasses.replace(problem, bound_error=doubt)
        for worst in rng.uniform(0.5, 2.0, size=100):
            scaled, cost = certificate.make_feasible(problem, alpha, np.array([0.1, worst]), float(alpha.sum()))
            need = rational(worst) * (1 + rational(doubt)) * (1 + 8 * U)
            assert all(x >= a * need for x, a in zip(rational(scaled), rational(alpha), strict=True))
            assert rational(cost) >= rational(float(alpha.sum())) * need


def test_bounded_allocations_are_proven_feasible_or_not_claimed():
    for seed in range(12):
        problem, alpha, lam = instance(seed, 2, 4, 3, base=seed % 2)
        good = evaluate(problem, alpha, lam).alpha
        for factor in (1.0 + 1e-9, 1.2, 3.0):
            bounded = dataclasses.replace(problem, upper=good * factor)
            found = evaluate(bounded, 0.3 * good, lam)
            assert np.isfinite(found.upper)
            assert (found.alpha <= bounded.upper).all()
            matrix = information(bounded, found.alpha, Fraction(0), Fraction(0))
            assert all(dot(b, solved(matrix, b)) <= 1 for b in rational(problem.targets))
            assert rational(found.upper) >= sum(rational(found.alpha))
        hopeless = dataclasses.replace(problem, upper=good * 1e-3)
        if not len(problem.base):
            assert np.isinf(evaluate(hopeless, 1e-4 * good, lam).upper)


def test_the_cost_is_that_of_what_was_scaled():
    rng = np.random.default_rng(8)
    problem, _, _ = instance(0, 1, 1, 1)
    for alpha, worst in rng.uniform(0.5, 2.0, size=(300, 2)):
        scaled, cost = certificate.make_feasible(problem, np.array([alpha]), np.array([worst]), float(alpha))
        assert rational(cost) >= rational(scaled[0])


def test_what_is_reported_beside_the_bounds():
    """λ in the dual's scale, so that its sum is the value; prices with it, g at the α that was passed, and what rounding costs."""
    for seed in range(3):
        problem, alpha, lam = instance(seed, 2, 5, 4)
        bounds = evaluate(problem, alpha, lam)
        assert bounds.multipliers.sum() == pytest.approx(bounds.lower, rel=1e-9)
        assert bounds.multipliers / bounds.multipliers.sum() == pytest.approx(lam / lam.sum())
        assert bounds.prices.max() == pytest.approx(1.0, rel=1e-9)
        matrix = np.linalg.inv(problem.features.T @ (problem.features * alpha[:, None]))
        assert bounds.constraints == pytest.approx(np.einsum("ij,jk,ik->i", problem.targets, matrix, problem.targets))
        assert 1e-16 < bounds.rounding < 1e-11
        directions = problem.targets @ matrix
        prices = ((problem.features @ directions.T) ** 2) @ lam
        assert bounds.prices == pytest.approx(prices / prices.max())


def test_tidying_is_taken_back_where_it_does_harm():
    """What complementarity says is zero becomes zero, unless the bounds suffer from it."""
    problem = Canonical(np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]]), np.eye(2), np.zeros((0, 2)))
    alpha, lam = np.array([1.0, 1.0, 1e-9]), np.ones(2)
    bounds = evaluate(problem, alpha, lam)
    tidied = certificate.tidy(problem, bounds, 1e-8)
    assert tidied.alpha[2] == 0.0 and (tidied.alpha[:2] > 0).all()
    assert tidied.gap <= max(bounds.gap, 0.5e-8)
    assert tidied.upper == pytest.approx(2.0) and tidied.lower == pytest.approx(2.0)
    slack = Canonical(np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]), np.zeros((0, 2)))
    tidied = certificate.tidy(slack, evaluate(slack, np.ones(2), np.array([1.0, 1.0, 1e-9])), 1e-8)
    assert tidied.multipliers[2] == 0.0 and (tidied.multipliers[:2] > 0).all()
    needed = Canonical(np.array([[1.0, 0.0], [0.0, 1e6]]), np.eye(2), np.zeros((0, 2)))
    kept = evaluate(needed, np.array([1.0, 1e-12]), np.array([1.0, 1e-12]))
    assert certificate.tidy(needed, kept, 1e-8) is kept
    clean = evaluate(problem, np.array([1.0, 1.0, 0.5]), lam)
    assert certificate.tidy(problem, clean, 1e-8) is clean


def test_gap_of_bounds():
    def gap(upper, lower):
        return canonical.Bounds(upper, lower, *[np.zeros(1)] * 4, 0.0).gap

    assert gap(2.0, 1.0) == 1.0
    assert gap(0.0, 0.0) == 0.0
    assert gap(1.0, 0.0) == gap(np.inf, 1.0) == gap(np.inf, 0.0) == gap(0.0, -1.0) == np.inf


@pytest.mark.parametrize("margin", ["padding", "error", "bound_error"])
def test_bounds_without_a_margin_are_seen(margin, monkeypatch):
    evaluated = evaluate
    if margin == "padding":
        in_both(monkeypatch, "padding", lambda r: 1.0)
        in_both(monkeypatch, "gamma", lambda n: 0.0)
        in_both(monkeypatch, "UNIT", 0.0)
    else:
        monkeypatch.setitem(
            globals(),
            "evaluate",
            lambda problem, alpha, lam: evaluated(dataclasses.replace(problem, **{margin: 0.0}), alpha, lam),
        )
    assert not all(evaluation_holds(*case) for case in whole_instances())
