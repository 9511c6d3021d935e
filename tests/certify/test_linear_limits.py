"""Linear constraints: every margin, rounding direction and status of the certificate where Bα <= b holds."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, solved, weighted
from limited import limits

import allocopt as ao
from allocopt.certify import verdict
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import evaluate, recomputed, tidy, violation
from allocopt.certify.exact_arithmetic.balls import interval_in_balls
from allocopt.certify.limits.evaluation import best_multiple, least_charges, most_excess, most_rent
from allocopt.certify.reduction import reduce

INF = float("inf")
TINY = Fraction(1, 2**1000)


def near(value, exact, units=4):
    return abs(rational(value) - exact) <= units * U * max(abs(exact), Fraction(1))


# --- parts, on numbers that are exact in doubles


def test_rows_of_limits_are_sums_over_their_entries():
    given = limits([[1, -2, 0], [0, 0, 0], [0, 0, 4]], [1, 2, 3])
    alpha, mu = np.array([2.0, 3.0, 0.5]), np.array([1.0, 7.0, 0.25])
    assert given.used(alpha).tolist() == [-4.0, 0.0, 2.0]
    assert given.terms(alpha).tolist() == [8.0, 0.0, 2.0]
    assert given.charged(mu).tolist() == [1.0, -2.0, 1.0]
    assert given.charged_terms(mu).tolist() == [1.0, 2.0, 1.0]
    assert given.dense().tolist() == [[1, -2, 0], [0, 0, 0], [0, 0, 4]]
    none = limits([[0, 0]], [1])
    assert none.used(np.ones(2)).dtype == none.charged(np.ones(1)).dtype == np.float64


@pytest.mark.parametrize(("alpha", "excess", "terms"), [((1, 1), Fraction(-3), 3), ((4, 1), 0, 6), ((5, 0), 3, 5)])
def test_the_excess_of_a_row_has_the_margin_of_its_terms_and_of_what_is_left(alpha, excess, terms):
    """Vα − v + γ_{n+16}(|V|α + sizes), n the number of entries."""
    given = limits([[1, -2]], [2], sizes=[5])
    exact = excess + gamma(18) * (terms + 5)
    found = rational(most_excess(given, np.array(alpha, dtype=float))[0])
    assert abs(found - exact) <= 4 * U * (abs(excess) + Fraction(1, 2**40))


def test_a_row_of_nothing_is_met_exactly():
    assert most_excess(limits([[1, -1]], [0]), np.zeros(2)).tolist() == [0.0]
    assert most_excess(limits([[1, -1]], [0]), np.ones(2))[0] > 0  # rounding on the way back might break it


@pytest.mark.parametrize("error", [0.0, 2.0**-30])
def test_charges_are_rounded_down_by_the_errors_of_coefficients_and_of_the_sum(error):
    """c + Vᵀμ − (error + γ_{n+8})(c + |V|ᵀμ), n the number of all entries."""
    given = limits([[1, -2, 0], [3, 1, 0]], [1, 1], error=error)
    found = rational(least_charges(given, np.array([1.0, 0.0, 1.0]), np.array([2.0, 0.5])))
    margin = (rational(error) + gamma(12)) * (1 + gamma(8))
    for value, exact, terms in zip(
        found, (Fraction(9, 2), Fraction(-7, 2), 1), (Fraction(9, 2), Fraction(9, 2), 0), strict=True
    ):
        wanted = exact - (margin * terms + TINY if terms else 0)
        assert abs(value - wanted) <= 2 * U * abs(exact)
    assert found[0] < Fraction(9, 2) and found[1] < Fraction(-7, 2)
    assert found[2] == 1  # what occurs in no row with a multiplier is charged its cost, exactly


def test_the_rent_is_rounded_up():
    """μᵀv + γ_{n+rows+16} μᵀ(|v| + sizes)."""
    given = limits([[1, 2], [0, 1]], [3, -2], sizes=[4, 2])
    found = rational(most_rent(given, np.array([2.0, 1.0])))
    exact = 4 + gamma(3 + 2 + 16) * (2 * (3 + 4) + (2 + 2)) + TINY
    assert abs(found - exact) <= 2 * U * 4 and found > 4
    negative = rational(most_rent(given, np.array([0.0, 1.0])))
    assert -2 < negative <= -2 + gamma(21) * 4 + 4 * U
    assert most_rent(given, np.zeros(2)) == 0.0


def test_what_underflows_is_on_the_safe_side():
    small = limits([[1.0, 0.0]], [-(2.0**-60)], sizes=[0.0])
    mu = np.array([2.0**-1060])
    assert least_charges(small, np.zeros(2), mu)[0] < 0  # not a charge that a price could be compared with
    assert rational(most_rent(small, mu)) > -Fraction(1, 2**1120)  # the product is 0 in doubles


def test_the_best_multiple_stops_where_an_arm_without_bound_would_be_underpaid():
    q, gain = best_multiple(3.0, np.array([1.0, 0.5]), np.array([INF, INF]), np.array([2.0, 0.5]))
    assert near(q, 1 - 4 * U, 1) and q < 1.0
    assert near(gain, 3 * (1 - 8 * U), 4) and rational(gain) <= 3 * (1 - 6 * U)


def test_the_best_multiple_pays_for_what_is_over_the_bounds():
    """q·slope (1 − 4u) − Σ u (q p (1 + 4u) − charge)_+ (1 + γ)."""
    prices, upper, charges = np.array([1.0, 0.5]), np.array([1.0, INF]), np.array([1.0, 1.0])
    q, gain = best_multiple(1.25, prices, upper, charges)
    q_exact = 2 * (1 - 4 * U)
    assert near(q, q_exact, 2)
    over = rational(q) * (1 + 4 * U) - 1
    exact = rational(q) * Fraction(5, 4) * (1 - 4 * U) - over * (1 + gamma(9))
    assert exact - 6 * U <= rational(gain) <= exact + 6 * U


def test_the_best_multiple_goes_to_the_breakpoint_where_the_slope_ends():
    q, gain = best_multiple(1.0, np.array([1.0, 1.0]), np.array([0.5, 2.0]), np.array([0.25, 0.75]))
    assert q == 0.75
    assert near(gain, Fraction(3, 4) - Fraction(1, 4), 32) and rational(gain) < Fraction(1, 2)
    # exactly at the end of the slope the first breakpoint is as good
    assert best_multiple(1.0, np.array([1.0, 1.0]), np.array([1.0, 2.0]), np.array([0.25, 0.75]))[0] == 0.25


def test_arms_with_a_negative_charge_are_played_up_to_their_bounds_and_paid_for():
    q, gain = best_multiple(1.0, np.array([1.0]), np.array([2.0]), np.array([-0.5]))
    assert q == 0.0 and near(gain, Fraction(-1), 12) and rational(gain) <= -1
    free = best_multiple(1.0, np.array([0.0, 1.0]), np.array([2.0, INF]), np.array([-0.5, 1.0]))
    assert near(free[0], Fraction(1), 8) and near(free[1], Fraction(0), 32) and free[1] < 0


@pytest.mark.parametrize("coefficient", [-3.0, -1.0 - 2.0**-52, -1.0])
def test_multipliers_that_pay_for_playing_an_arm_without_bound_are_taken_as_none(coefficient):
    problem = Canonical(np.eye(2), np.eye(2), np.zeros((0, 2)), limits=limits([[coefficient, 1.0]], [9.0]))
    found, plain = (evaluate(problem, np.full(2, 2.0), np.ones(2), mu) for mu in (np.ones(1), np.zeros(1)))
    assert found.lower == plain.lower and plain.lower == pytest.approx(2.0)
    assert found.row_multipliers.tolist() == [1.0]  # as given: the proof file decides for itself
    bounded = dataclasses.replace(problem, upper=np.array([9.0, INF]))
    assert evaluate(bounded, np.full(2, 2.0), np.ones(2), np.ones(1)).lower == 0.0  # paid for 9 units of it


def test_a_slope_that_is_not_positive_leaves_the_charges_alone():
    assert best_multiple(-1.0, np.ones(1), np.array([INF]), np.ones(1)) == (0.0, 0.0)
    assert best_multiple(0.0, np.ones(1), np.array([3.0]), np.ones(1)) == (0.0, 0.0)
    assert best_multiple(1.0, np.zeros(1), np.array([INF]), np.ones(1)) == (
        0.0,
        0.0,
    )  # an unbounded dual claims nothing
    assert best_multiple(1.0, np.ones(1), np.array([INF]), np.zeros(1)) == (0.0, 0.0)  # costs nothing


# --- both bounds


def dual(problem, alpha, lam, mu, by, coefficients_by):
    """The lower bound of (α, λ, μ) in rationals, for rows and coefficients that are wrong by factors."""
    a, b, base = (
        [[x * (1 + by) for x in row] for row in rational(x)] for x in (problem.features, problem.targets, problem.base)
    )
    weights = rational(alpha)
    matrix = weighted([*a, *base], [*weights, *[Fraction(1)] * len(base)], problem.rank)
    y = [solved(matrix, row) for row in b]
    lam, mu = rational(lam), rational(mu)
    costs = [Fraction(1)] * len(a) if problem.costs is None else rational(problem.costs)
    given = problem.limits
    charges = list(costs)
    for row, i, value in zip(given.places, given.variables, given.values, strict=True):
        charges[i] += mu[row] * rational(value) * (1 + coefficients_by)
    prices = [sum(w * dot(row, z) ** 2 for w, z in zip(lam, y, strict=True)) for row in a]
    known = sum((sum(w * dot(row, z) ** 2 for w, z in zip(lam, y, strict=True)) for row in base), Fraction(0))
    strength = sum(w * dot(t, z) for w, t, z in zip(lam, b, y, strict=True))
    slope = strength**2 / sum(lam) - known
    upper = [None] * len(a) if problem.upper is None else [None if np.isinf(u) else rational(u) for u in problem.upper]
    best = None
    for q in [Fraction(0), *(max(c, 0) / p for c, p in zip(charges, prices, strict=True) if p)]:
        gain = q * slope - dot(mu, rational(given.room))
        for p, c, u in zip(prices, charges, upper, strict=True):
            if q * p > c:
                gain = None if u is None or gain is None else gain - u * (q * p - c)
        if gain is not None and (best is None or gain > best):
            best = gain
    least = rational(problem.offset)
    return least if best is None else max(least, least + best)


def constrained(seed, error=0.0, rho=0.0, bounded=False, base=0):
    """A canonical problem with rows that hold with some room at the allocation that it comes with."""
    rng = np.random.default_rng(seed)
    r, k, m, n = 1 + seed % 3, 5, 3, 2
    features, known = rng.normal(size=(k, r)), rng.normal(size=(base, r)) * 0.1
    alpha = np.exp(rng.normal(size=k))
    targets = rng.normal(size=(m, r)) * 0.2
    matrix = rng.choice([-1.0, 0.0, 1.0, 0.5, 3.0], size=(n, k))
    problem = Canonical(features, targets, known, error=rho, offset=float(seed % 2))
    alpha *= 1.01 * max(violation(problem, alpha), 1e-3)
    room = matrix @ alpha + 0.01 * np.abs(matrix) @ alpha + 0.1
    upper = np.where(rng.random(k) < 0.5, alpha * 2.0, INF) if bounded else None
    costs = np.where(rng.random(k) < 0.3, 0.0, 1.0)
    problem = dataclasses.replace(
        problem, limits=limits(matrix, room, error=error), upper=upper, costs=costs if (costs == 0).any() else None
    )
    return problem, alpha, np.exp(rng.normal(size=m)), np.exp(rng.normal(size=n) - 5.0)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(("error", "rho"), [(0.0, 0.0), (2.0**-20, 0.0), (0.0, 2.0**-20), (2.0**-46, 2.0**-46)])
def test_the_lower_bound_holds_for_coefficients_and_rows_that_are_wrong_by_what_they_may_be(seed, error, rho):
    problem, alpha, lam, mu = constrained(seed, error, rho, bounded=seed % 2 == 1, base=seed % 3)
    bounds = evaluate(problem, alpha, lam, mu)
    exact = [
        dual(problem, alpha, lam, mu, rational(by), rational(wrong)) for by in (-rho, rho) for wrong in (-error, error)
    ]
    assert rational(bounds.lower) <= min(exact)
    if error == rho == 0.0:
        assert float(min(exact)) * (1 - 1e-9) - 1e-9 <= bounds.lower  # and it is not far from that
    assert bounds.upper >= float(np.sum(alpha if problem.costs is None else alpha * problem.costs)) + problem.offset


def test_some_of_these_lower_bounds_say_more_than_what_is_fixed_costs():
    found = [constrained(seed, bounded=seed % 2 == 1, base=seed % 3) for seed in range(24)]
    assert sum(evaluate(p, *triple).lower > p.offset + 1e-3 for p, *triple in found) >= 6


@pytest.mark.parametrize("seed", range(6))
def test_the_upper_bound_is_the_cost_of_what_meets_every_constraint_and_infinite_otherwise(seed):
    problem, alpha, lam, mu = constrained(seed)
    bounds = evaluate(problem, alpha, lam, mu)
    costs = np.ones(5) if problem.costs is None else problem.costs
    cost = dot(rational(costs), rational(alpha)) + rational(problem.offset)
    pad = 1 + gamma(4 * problem.rank + 64)
    assert cost * pad <= rational(bounds.upper) <= cost * pad * (1 + gamma(64))
    given = problem.limits
    edge = given.used(alpha)
    tight = dataclasses.replace(problem, limits=dataclasses.replace(given, room=edge))
    assert evaluate(tight, alpha, lam, mu).upper == INF  # within rounding of the limit: not for sure
    barely = edge + 64 * 2.0**-53 * (given.terms(alpha) + given.sizes)
    assert (
        evaluate(dataclasses.replace(tight, limits=dataclasses.replace(given, room=barely)), alpha, lam, mu).upper < INF
    )
    for factor, holds in ((1 + 1e-9, False), (1 - 1e-9, True)):
        scaled = problem.targets * (factor / np.sqrt(violation(problem, alpha)))
        found = evaluate(dataclasses.replace(problem, targets=scaled), alpha, lam, mu)
        assert np.isfinite(found.upper) == holds


def test_allocations_are_cut_to_their_upper_bounds_before_anything_is_proven():
    problem, alpha, lam, mu = constrained(1, bounded=True)
    bounds = evaluate(problem, alpha * np.where(np.isfinite(problem.upper), 9.0, 1.0), lam, mu)
    assert (bounds.alpha <= problem.upper).all()
    assert bounds.row_multipliers is mu


def test_without_targets_it_is_a_linear_program():
    """x + y with −x − 2y <= −4: 2, by μ = 1/2."""
    problem = Canonical(np.zeros((2, 0)), np.zeros((0, 0)), np.zeros((0, 0)), limits=limits([[-1, -2]], [-4]))
    bounds = evaluate(problem, np.array([0.0, 2.0 + 2.0**-40]), np.zeros(0), np.array([0.5 - 2.0**-40]))
    assert near(bounds.upper, Fraction(2), 2**16) and bounds.upper > 2
    assert near(bounds.lower, Fraction(2), 2**16) and bounds.lower < 2
    assert evaluate(problem, np.array([0.0, 2.0]), np.zeros(0), np.array([0.75])).lower == 0.0  # pays for playing y
    assert evaluate(problem, np.array([0.0, 1.75]), np.zeros(0), None).upper == INF


def test_singular_information_leaves_what_the_rows_prove():
    problem = Canonical(np.eye(2), np.eye(2), np.zeros((0, 2)), limits=limits([[-1, -1]], [-4]))
    bounds = evaluate(problem, np.array([5.0, 0.0]), np.ones(2), np.array([0.5 - 2.0**-40]))
    assert bounds.upper == INF and near(bounds.lower, Fraction(2), 2**16) and bounds.lower < 2
    assert bounds.rounding == 0.0 and np.isinf(bounds.constraints).all()


@pytest.mark.parametrize("mu", [np.array([np.inf]), np.array([1e308])])
def test_multipliers_beyond_all_doubles_are_taken_as_none(mu):
    problem = Canonical(np.eye(2), np.eye(2), np.zeros((0, 2)), offset=1.0, limits=limits([[1, 1e10]], [9e10]))
    bounds = evaluate(problem, np.array([2.0, 2.0]), np.ones(2), mu)
    assert bounds.lower == pytest.approx(3.0) and bounds.upper == pytest.approx(5.0)


def test_prices_are_one_where_an_arm_is_worth_its_charge_and_less_where_it_is_not():
    """a = 1, 1/√2 with α_1 <= 1/2: value 1.5, μ = 1, prices of both equal to what they cost with the row."""
    problem = Canonical(
        np.array([[1.0], [2.0**-0.5], [0.25]]), np.ones((1, 1)), np.zeros((0, 1)), limits=limits([[1, 0, 0]], [0.5])
    )
    bounds = evaluate(problem, np.array([0.5 - 2.0**-40, 1.0 + 2.0**-38, 0.0]), np.ones(1), np.array([1.0]))
    assert bounds.gap < 1e-10 and np.allclose(bounds.prices[:2], 1.0) and bounds.prices[2] < 0.2
    assert np.isclose(bounds.multipliers[0], 2.0)
    idle = np.array([0.5 - 2.0**-40, 1.0 + 2.0**-38, 1e-9])
    tidied = tidy(problem, evaluate(problem, idle, np.ones(1), np.array([1.0])), 1e-8)
    assert tidied.alpha[2] == 0.0 and tidied.row_multipliers.tolist() == [1.0] and tidied.gap < 1e-8
    assert recomputed(problem, bounds).lower == pytest.approx(bounds.lower, rel=1e-14)


def test_constrained_problems_are_not_scaled():
    assert not Canonical(np.eye(1), np.eye(1), np.zeros((0, 1)), limits=limits([[1.0]], [1.0])).scalable
    assert violation(Canonical(np.zeros((1, 0)), np.zeros((0, 0)), np.zeros((0, 0))), np.ones(1)) == 0.0


# --- from the program and back


def program(**changes):
    """Arm 1 costs nothing but is limited, arm 3 costs nothing, tells nothing and is limited, arm 4 is free."""
    given = {
        "features": [[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0], [0, 0, 0], [0, 0, 2.0]], "costs": [1.0, 0.0, 4.0, 0.0, 0.0],
        "targets": [[1.0, 0, 3.0], [0, 1.0, 0]], "radii": [0.5, 0.25], "lower": [0.5, 0, 0, 0, 0],
        "constraints": ([[1, 1, 1, 0, 0], [0, 0, 2, -1, 0]], [5.0, -0.25]),
    }  # fmt: skip
    return ao.AllocationProgram(**{**given, **changes})


def test_arms_in_constraints_are_variables_even_if_they_cost_or_tell_nothing():
    given = program()
    assert given.free.tolist() == [4] and given.bounded
    reduction = reduce(given)
    problem = reduction.canonical
    assert reduction.variables.tolist() == [0, 1, 2, 3]
    assert problem.costs.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert reduction.units.tolist() == [1.0, 2.0, 4.0, 2.0]  # the usual cost for what costs nothing
    assert problem.limits.dense().tolist() == [[1.0, 0.5, 0.25, 0.0], [0.0, 0.0, 0.5, -0.5]]
    assert problem.limits.room.tolist() == [4.5, -0.25] and problem.limits.sizes.tolist() == [5.5, 0.25]
    assert problem.limits.error == 8 * 2.0**-53 and problem.limits.n_variables == 4
    assert not problem.features[3].any() and problem.ratios is None
    alpha = np.array([1.0, 2.0, 4.0, 8.0])
    assert reduction.allocation(alpha).tolist() == [1.5, 1.0, 1.0, 4.0, INF]
    assert reduction.canonical_allocation(reduction.allocation(alpha)).tolist() == alpha.tolist()
    assert reduce(program(costs=[1, 1, 4, 1, 0])).canonical.costs is None
    assert reduce(program(costs=[0, 0, 0, 0, 0])).units.tolist() == [1.0] * 4


def test_arms_that_cannot_be_played_more_are_not_variables_and_count_by_what_they_are_fixed_at():
    reduction = reduce(
        program(upper=[0.5, INF, INF, 9.0, INF], constraints=([[2, 1, 1, 0, 0], [0, 0, 2, -1, 0]], [5.0, -0.25]))
    )
    assert reduction.variables.tolist() == [1, 2, 3]
    assert reduction.canonical.limits.room.tolist() == [4.0, -0.25]
    assert reduction.canonical.limits.sizes.tolist() == [6.0, 0.25]
    assert reduction.canonical.upper.tolist() == [INF, INF, 18.0]


def triple(given, allocation, multipliers, mu):
    return given, np.array(allocation), np.array(multipliers), "m", 1e-3, {"n": 1}, np.array(mu)


def test_what_a_triple_from_elsewhere_proves_is_about_the_doubles_themselves():
    """α_0 = 2, α_1 = 4, α_3 = 1/4 meets everything with equality but the rows: cost 2."""
    good = verdict.recertify(*triple(program(), [2.0 + 1e-9, 2.9, 0.0, 1.0, INF], [2.0, 0.0], [0.0, 0.0]))
    assert good.status.name == "FAILED"  # 2.9 pulls of arm 1 are too few
    program_ = program(radii=[0.5, 0.5])
    good = verdict.recertify(*triple(program_, [2.0 + 1e-9, 2.0 + 1e-9, 0.0, 1.0, INF], [2.0, 0.0], [0.0, 0.0]))
    assert good.status.name == "CERTIFIED" and 2.0 <= good.upper <= 2.0 + 2e-9
    assert good.constraint_multipliers.tolist() == [0.0, 0.0]
    edge = np.nextafter(0.25, 0.0)
    assert verdict.recertify(*triple(program_, [2.0 + 1e-9, 2.5, 0.0, 0.25, INF], [2.0, 0.0], [0.0, 0.0])).upper < INF
    for violated in ([2.0 + 1e-9, 2.5, 0.0, edge, INF], [2.5, np.nextafter(2.5, 3.0), 0.0, 1.0, INF]):
        found = verdict.recertify(*triple(program_, violated, [2.0, 0.0], [0.0, 0.0]))
        assert found.upper == INF and found.status.name == "FAILED"
        assert found.verify().upper == found.verify(128).upper == found.verify(exact=True).upper == INF
    assert verdict.recertify(*triple(program_, [2.5, 2.5, 0.0, 1.0, INF], [2.0, 0.0], [0.0, 0.0])).upper < INF


def test_the_last_word_on_the_rows_is_that_of_the_doubles_handed_out(monkeypatch):
    reduction = reduce(program(radii=[0.5, 0.5]))
    fine = np.array([1.5 + 1e-9, 4.0 + 1e-8, 0.0, 1.0])
    bounds = evaluate(reduction.canonical, fine, np.array([2.0, 0.0]), np.zeros(2))
    assert verdict.certified_solution(reduction, bounds, "m", 1e-6, None, {}).status.name == "CERTIFIED"
    over = dataclasses.replace(bounds, alpha=np.array([1.5 + 1e-9, 12.0, 0.0, 1.0]))
    found = verdict.certified_solution(reduction, over, "m", 1e-6, None, {})
    assert found.status.name == "FAILED" and found.upper == INF


def test_nothing_is_left_only_where_the_rows_hold_as_well():
    met = {"targets": [[0, 0, 1.0]], "radii": [1.0]}
    assert not verdict.nothing_left(reduce(program(**met)))  # arm 3 must be played
    idle = reduce(program(**met, constraints=([[1, 1, 1, 0, 0]], [5.0])))
    assert verdict.nothing_left(idle)
    answer = verdict.nothing_to_decide(idle, 1e-8, {})
    assert answer.status.name == "CERTIFIED" and answer.value == pytest.approx(0.5)
    assert answer.constraint_multipliers.tolist() == [0.0]
    assert verdict.nothing_left(reduce(program(**met, constraints=([[0, 0, 1, -1, 0]], [0.0]))))
    none = program(**met, upper=[0.5, 0, 0, 0, INF], constraints=([[1, 0, 0, 0, 0]], [0.25]))
    assert verdict.nothing_left(reduce(none))
    assert verdict.nothing_to_decide(reduce(none), 1e-8, {}).status.name == "FAILED"
    undecided = verdict.undecided(program(), 1e-8, "why")
    assert undecided.allocation.tolist() == [0.5, 0, 0, 0, INF] and undecided.constraint_multipliers.tolist() == [
        0.0,
        0.0,
    ]


# --- balls and the referee


TRIPLE = np.array([2.0 + 1e-9, 2.0 + 1e-9, 0.0, 1.0, INF]), np.array([2.0, 0.0])


def in_balls(given, mu, allocation=TRIPLE[0], multipliers=TRIPLE[1]):
    return interval_in_balls(
        reduce(given), np.array(allocation), np.array(multipliers), 128, None if mu is None else np.array(mu)
    )


def test_balls_decide_rows_in_rationals():
    given = program(radii=[0.5, 0.5])
    assert in_balls(given, [0.0, 0.0])[1] == pytest.approx(2.0)
    assert in_balls(given, None)[0] == in_balls(given, [0.0, 0.0])[0] > 1.99
    edge = [2.0 + 1e-9, 2.0 + 1e-9, 0.0, 0.25, INF]
    assert in_balls(given, None, edge)[1] < INF
    edge[3] = np.nextafter(0.25, 0.0)
    assert in_balls(given, None, edge)[1] == INF


@pytest.mark.parametrize(("mu", "lower"), [([0.0, 0.0], 2.0), ([0.1, 0.0], 1.7), ([0.0, 0.1], 2.0), ([40.0, 0.0], 0.5)])
def test_balls_and_referee_know_what_multipliers_prove(mu, lower):
    """One more of the 5 in row 0 is worth nothing; μ_1 > 0 pays for playing arm 3, which has no bound, and is taken as 0."""
    given = program(radii=[0.5, 0.5])
    found = in_balls(given, mu)[0]
    solution = verdict.recertify(*triple(given, *TRIPLE, mu))
    exact = solution.verify(exact=True).lower
    assert found <= exact <= found + 1e-9
    assert found == pytest.approx(lower, abs=1e-6)
    assert solution.verify().lower <= exact


def test_negative_charges_are_paid_up_to_the_bound_in_balls_and_rationals_alike():
    """Arm 3 at most 3: μ_1 = 0.1 gains 0.025 from the limit and pays 0.3 for arm 3."""
    given = program(radii=[0.5, 0.5], upper=[INF, INF, INF, 3.0, INF])
    solution = verdict.recertify(*triple(given, *TRIPLE, [0.0, 0.1]))
    exact = solution.verify(exact=True).lower
    assert exact == pytest.approx(2.0 + 0.025 - 0.3, abs=1e-6)
    assert exact - 1e-9 <= in_balls(given, [0.0, 0.1])[0] <= exact
    assert exact - 1e-9 <= solution.lower <= exact


def test_balls_of_a_linear_program():
    """No target is left once arm 4 is free: the least cost of the rows, 1/2 for what is fixed and 3 for three pulls of arm 2."""
    given = program(targets=[[0, 0, 1.0]], radii=[1.0], costs=[1, 0, 1, 0, 0], constraints=([[0, 0, -1, 0, 0]], [-3.0]))
    allocation = [0.5, INF, 3.0, INF, INF]
    assert in_balls(given, [1.0], allocation, [0.0])[:2] == (3.5, 3.5)
    assert in_balls(given, [0.5], allocation, [0.0])[:2] == (2.0, 3.5)
    assert in_balls(given, [1.0], [0.5, INF, np.nextafter(3.0, 2.0), INF, INF], [0.0])[:2] == (3.5, INF)
    solution = verdict.recertify(*triple(given, allocation, [0.0], [1.0]))
    exact = solution.verify(exact=True)
    assert (exact.lower, exact.upper) == (3.5, 3.5)


def test_variances_change_the_units_of_coefficients_in_balls():
    given = program(radii=[0.5, 0.5], noise_variance=[1.0, 0.5, 3.0, 1.0, 1.0], constraints=([[1, 1, 1, 0, 0]], [3.0]))
    allocation = [2.0 + 1e-9, 1.0 - 2e-9, 0.0, INF, INF]  # one pull of arm 1 is worth two: 1e-9 too few
    assert in_balls(given, [0.5], allocation)[1] == INF
    given = program(
        radii=[0.5, 0.5 + 1e-6], noise_variance=[1.0, 0.5, 3.0, 1.0, 1.0], constraints=([[1, 1, 1, 0, 0]], [3.0])
    )
    allocation[0] = 2.0 + 1e-9
    found = in_balls(given, [0.5], allocation)
    assert found[1] == pytest.approx(2.0)
    exact = verdict.recertify(*triple(given, allocation, TRIPLE[1], [0.5])).verify(exact=True)
    assert found[0] <= exact.lower <= found[0] + 1e-9 and exact.upper <= found[1]
