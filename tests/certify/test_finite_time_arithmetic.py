"""The exact arithmetic of finite-time bounds, piece by piece, against the definitions written out in rationals and logarithms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from allocopt.certify.exact_arithmetic import finite_time as exact
from allocopt.certify.exact_arithmetic.divergence import divergence_in_balls

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.25], [0.25, 0.5]])
THETA = np.array([1.0, 1.0])  # the first two arms are optimal, gaps 1/4 of the others
VARIANCES = np.array([0.25, 4.0, 1.0, 0.5])
THERE = [
    (Fraction(1, 2), Fraction(1, 4)),  # the first arm stays the better of both
    (Fraction(1), Fraction(3, 2)),
    (Fraction(-1), Fraction(-1)),  # both optimal arms become worse than the others
]


def fraction(x):
    return Fraction(int(x.p), int(x.q))


def alternatives(n=1000, there=THERE):
    return exact.exact_alternatives(ARMS, THETA, VARIANCES, n, there)


def test_alternatives_are_those_of_the_definition():
    found = alternatives()
    rows = [[Fraction(x) for x in row] for row in ARMS.tolist()]
    here = [sum(row) for row in rows]
    gaps = [1 - mean for mean in here]
    assert [fraction(x) for x in found.gaps] == gaps == [0, 0, Fraction(1, 4), Fraction(1, 4)]
    for j, parameter in enumerate(THERE):
        moved = [sum(a * b for a, b in zip(row, parameter, strict=True)) for row in rows]
        for x in range(4):
            assert fraction(found.information[j, x]) == (moved[x] - here[x]) ** 2 / (2 * Fraction(VARIANCES[x]))
        gaps_there = [max(moved) - m for m in moved]
        g = min(gaps_there[:2])
        assert fraction(found.loss[j]) == g
        if g:
            assert fraction(found.cost[j]) == min(
                gap / (1 - t / g) for gap, t in zip(gaps, gaps_there, strict=True) if t < g
            )
    assert [fraction(g) for g in found.loss] == [0, 0, Fraction(1, 4)]
    assert [fraction(c) for c in found.cost[:2]] == [0, 0]


def test_the_price_is_the_largest_excess_of_information_over_gaps():
    found = alternatives()
    for weights in ([0.0, 0.0, 0.0], [1.0, 0.5, 0.25], [1e-3, 0.0, 1e-3]):
        exactly = [
            sum(Fraction(w) * fraction(found.information[j, x]) for j, w in enumerate(weights)) for x in range(4)
        ]
        excess = max(i - fraction(gap) for i, gap in zip(exactly, found.gaps, strict=True))
        assert fraction(found.price([fmpq(*w.as_integer_ratio()) for w in weights])) == max(excess, 0)
        assert found.paid(weights) == pytest.approx(1000 * float(max(excess, 0)))
        scaled = found.affordable(weights)
        kept = [sum(Fraction(w) * fraction(found.information[j, x]) for j, w in enumerate(scaled)) for x in (2, 3)]
        assert all(i <= Fraction(1, 4) for i in kept)
        assert scaled == weights or max(kept) > Fraction(1, 4) * (1 - Fraction(1, 2**40))


def kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


ONE = np.array([[1.0, 0.0], [0.0, 1.0]])


def one_alternative(n=1000):
    """Two orthogonal arms, θ = (1/2, 0), θ' = (1/2, 1): g = 1/2, δ = 1/2, information 1/2 of the second arm."""
    return exact.exact_alternatives(ONE, np.array([0.5, 0.0]), np.ones(2), n, [(Fraction(1, 2), Fraction(1))])


def test_what_is_proven_is_what_the_divergence_gives_and_no_more():
    given = one_alternative()
    regret, weight = 20.0, 0.9
    level = kl(1 - 3.0 / (1000 * 0.5), regret / (1000 * 0.5))
    found = exact.surplus(given, [regret], [weight], 3.0)
    assert found.holds == (weight * level >= 3.0)
    assert found.levels[0] == pytest.approx(level, rel=1e-12) and found.price == 0.0
    assert found.surplus == pytest.approx(weight * level - 3.0, rel=1e-9)
    # where the left-hand side is the right-hand side but for little, it is decided
    root = 3.0
    for _ in range(200):
        root = weight * kl(1 - root / 500, regret / 500)
    assert exact.surplus(given, [regret], [weight], root * (1 - 1e-9)).holds
    assert not exact.surplus(given, [regret], [weight], root * (1 + 1e-9)).holds
    value = exact.largest_value(given, [regret], [weight], root)
    assert root * (1 - 1e-6) <= value and exact.surplus(given, [regret], [weight], value).holds
    # a start that is too high, and by how much: a value is returned only where it is proven
    for start in (root * (1 + 1e-9), root * 1.005, root * 1.5, 1e300):
        value = exact.largest_value(given, [regret], [weight], start)
        assert value == 0.0 or exact.surplus(given, [regret], [weight], value).holds
    assert exact.largest_value(given, [regret], [weight], root * 1.5) == 0.0
    assert exact.largest_value(given, [regret], [weight], 0.0) == 0.0
    assert exact.largest_value(given, [regret], [weight], -1.0) == 0.0


def test_alternatives_that_are_none_and_regrets_without_bound_have_no_level():
    found = exact.surplus(alternatives(), [1.0, 1.0, math.inf], [1.0, 1.0, 1.0], 1e-3)
    assert found.levels == (0.0, 0.0, 0.0)
    assert not found.holds


def test_numbers_beyond_doubles_are_rounded_to_the_safe_side():
    assert exact.nearest_double(fmpq(1, 3)) == 1 / 3
    assert exact.nearest_double(fmpq(10**400)) == math.inf and exact.nearest_double(fmpq(-(10**400))) == -math.inf
    assert exact._below(arb("inf")) == -math.inf and exact._below(arb("nan")) == -math.inf
    third = arb(1) / 3
    assert exact._below(third) <= 1 / 3 and arb(exact._below(third)) <= third
    assert exact._below(arb(2)) == 2.0


def test_where_nothing_can_be_told_apart_nothing_is_proven():
    assert divergence_in_balls(fmpq(1, 2), fmpq(1, 2)) == 0  # kl(1/2, 1/2)
    assert divergence_in_balls(fmpq(3, 4), fmpq(1, 2)) == 0  # 1/4 is below 1/2: no information
    assert divergence_in_balls(fmpq(2), fmpq(1, 2)) == 0
    assert float(divergence_in_balls(fmpq(1, 4), fmpq(1, 8)).mid()) == pytest.approx(kl(0.75, 0.125), rel=1e-12)
    assert float(divergence_in_balls(fmpq(0), fmpq(1, 8)).mid()) == pytest.approx(math.log(8.0), rel=1e-12)
    none = exact.exact_alternatives(ONE, np.array([0.5, 0.0]), np.ones(2), 1000, [])
    assert not exact.surplus(none, [], [], 1.0).holds
    assert exact.largest_value(none, [], [], 1.0) == 0.0
