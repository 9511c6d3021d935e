"""The compiled certificate step by step: every formula, so that no factor goes missing where another one would hide it."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, rational, root_down

from allocopt.base.tolerances import SUPPORT
from allocopt.certify import compiled_certificate as steps
from allocopt.linear.dense import back, cross, squared_lengths, squared_ratios, weighted, whitener
from allocopt.linear.floating import ENTRY_ERROR, UNIT

SLIP = 12 * U  # what evaluating a formula in doubles does to it here: less than any margin of the sums below
MORE = Fraction(101, 100)  # γ_n <= 1.01 n u for all n that fit


def near(value, exact, slip=SLIP):
    return abs(rational(value) - exact) <= slip * abs(exact)


def margins(r, k, gap_error):
    """1 + γ around sums over r entries, over k arms, γ of a product over r, and the relative error of the data."""
    return 1 + U * (4 * r + 64) * MORE, 1 + U * (k + 8) * MORE, U * (r + 4) * MORE, rational(gap_error) + 8 * U


def instance(seed, r, k, spread=1.0):
    rng = np.random.default_rng([seed, r, k])
    columns = rng.normal(size=(r, k))
    return columns, np.exp(spread * rng.normal(size=k)), np.exp(rng.normal(size=k)), np.exp(rng.normal(size=k))


SHAPES = [(1, 1), (1, 300), (2, 5), (3, 300), (5, 40), (8, 9)]


def test_what_was_found_is_for_the_first_columns_and_the_others_are_zero():
    alpha, lam = np.full(4, 7.0), np.full(4, 7.0)
    tiny = 0.5 * SUPPORT
    found, z, weights, g = (
        np.array([1.0, tiny, 1.0]),
        np.array([0.0, 2.0 * SUPPORT, 1.0]),
        np.array([tiny, 1.0, 2.0]),
        np.ones(3),
    )
    steps.tidied_pair(False, found, z, weights, g, alpha, lam)
    assert alpha.tolist() == [1.0, tiny, 1.0, 0.0] and lam.tolist() == [tiny, 1.0, 2.0, 0.0]
    steps.tidied_pair(True, found, z, weights, g, alpha, lam)
    assert alpha.tolist() == [1.0, 0.0, 1.0, 0.0]  # idle and dear
    assert lam.tolist() == [tiny, 1.0, 2.0, 0.0]  # small, but its constraint is tight
    steps.tidied_pair(True, found, np.zeros(3), weights, np.array([0.5, 1.0, 1.0]), alpha, lam)
    assert alpha.tolist() == [1.0, tiny, 1.0, 0.0]  # small, but not dear
    assert lam.tolist() == [0.0, 1.0, 2.0, 0.0]  # small and slack


@pytest.mark.parametrize(("r", "k"), SHAPES)
def test_sizes_and_errors_of_images(r, k):
    columns = instance(0, r, k)[0]
    basis = np.triu(np.random.default_rng(1).normal(size=(r, r)))
    sizes = np.full(k, 7.0)
    steps.image_sizes(columns, basis, sizes)
    for i in range(k):
        terms = [sum(abs(rational(columns[e, i]) * rational(basis[e, c])) for e in range(c + 1)) for c in range(r)]
        assert near(sizes[i], dot(terms, terms), 2 * (r + 2) * U)
    for inflation, product_error, data in ((1.0, 0.25, 0.5), (1.5, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 0.0, 2.0**-40)):
        errors = sizes.copy()
        steps.image_errors(errors, inflation, product_error, data)
        tenth = rational(steps._NEAR_IDENTITY)
        share = (
            (1 + 2 * tenth)
            * (2 * rational(product_error) + rational(ENTRY_ERROR) + rational(data))
            * rational(inflation)
        )
        assert all(near(e, share * root_down(rational(s))) for e, s in zip(errors, sizes, strict=True))


def test_a_basis_is_near_the_identity_only_within_a_tenth():
    tenth = steps._NEAR_IDENTITY
    assert tenth == 0.1 and steps._LARGEST_DRIFT == 0.1
    assert steps.near_identity(np.eye(3))
    for place in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        for factor, near_enough in ((0.99, True), (-0.99, True), (1.01, False), (-1.01, False), (np.nan, False)):
            basis = np.eye(3)
            basis[place] += factor * tenth / 3
            assert steps.near_identity(basis) is near_enough
    lower = np.eye(3)
    lower[2, 0] = 5.0  # never read: the matrix is upper triangular
    assert steps.near_identity(lower)


@pytest.mark.parametrize(("r", "k"), SHAPES)
def test_the_drift_is_that_of_the_theorem(r, k):
    rng = np.random.default_rng([r, k])
    for size, error, data in (
        (0.0, 0.0, 0.0),
        (1e-16, 1e-16, 2.0**-52),
        (1e-3, 1e-4, 0.0),
        (0.0, 0.0, 1e-3),
        (1e-4, 0.0, 0.0),
    ):
        gram = np.eye(r) + size * rng.normal(size=(r, r))
        alpha, norms = rng.uniform(size=k) / k, rng.uniform(size=k)
        errors = error * rng.uniform(size=k)
        inflation = 1.0 + UNIT * (4 * r + 64) * 1.01
        found = steps.drift_of(gram, alpha, norms, errors, inflation, data)
        rows = [[rational(gram[c, e]) - (c == e) for e in range(r)] for c in range(r)]
        a = rational(alpha)
        spread = dot(a, rational(norms))
        wrong = root_down(sum(x * e * e for x, e in zip(a, rational(errors), strict=True)))
        drift = root_down(sum(x * x for row in rows for x in row)) + U * (k + 8) * MORE * (1 + spread)
        drift += wrong * (2 * root_down(1 + drift) + wrong)
        drift = (drift + (rational(data) + 8 * U) * (1 + drift)) * rational(inflation) * (1 + U * MORE * k)
        assert near(found, drift, 40 * U)


@pytest.mark.parametrize(("r", "k"), SHAPES)
def test_the_sums_of_the_dual(r, k):
    _, ratios, lam, norms = instance(2, r, k)
    for scale in (0.0, 1e-12, 0.4, 3.0):
        errors = scale * np.sqrt(norms)
        found = steps.dual_sums(lam, ratios, norms, errors, 1.25)
        exact = [Fraction(0)] * 4
        for w, q, n2, e in zip(*map(rational, (lam, ratios, norms, errors)), strict=True):
            least = max(root_down(n2) / rational(1.25) - e, Fraction(0)) * q
            for place, term in enumerate((w * least * least, w * q * q * n2, w * q * q * e * e, w)):
                exact[place] += term
        assert all(near(value, true, (k + 40) * U) for value, true in zip(found, exact, strict=True))


@pytest.mark.parametrize("r", [1, 10])
@pytest.mark.parametrize("drift", [0.0, 0.09])
def test_constraints_and_prices(r, drift):
    rng = np.random.default_rng(r)
    inflation, many, product_error, _ = (float(x) for x in margins(r, 200, 0.0))
    for turn in range(20):
        ratios, norms, prices = (rng.uniform(0.5, 2.0, size=1) for _ in range(3))
        errors = rng.uniform(size=1) * (0.2 if turn % 2 else 0.0)
        weight, target_error = (0.0, 0.0) if turn % 4 == 0 else tuple(rng.uniform(size=2))
        some = (inflation, many, product_error * 10 ** float(turn % 3 * 6), weight, target_error)
        worst = steps.largest_constraint(ratios, norms, errors, drift, inflation)
        top = steps.largest_price(norms, errors, prices, drift, *some)
        pad, sums, rounding, w, t = (rational(x) for x in some)
        q, n2, e, p, d = (rational(float(x)) for x in (ratios[0], norms[0], errors[0], prices[0], drift))
        length = root_down(n2) * pad + e
        assert near(worst, q * q * length * length * pad / (1 - d))
        shift = e + d / (1 - d) * pad * length
        root = root_down(p) * pad * sums + w * (shift + rounding * length) + t * (length + shift)
        assert near(top, root * root * pad)
    ratios, norms, errors, prices = np.ones(3), np.array([1.0, 4.0, 2.0]), np.zeros(3), np.array([2.0, 1.0, 5.0])
    assert steps.largest_constraint(ratios, norms, errors, 0.0, 1.0) == 4.0
    assert steps.largest_price(norms, errors, prices, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0) == pytest.approx(5.0, rel=1e-15)


def test_pairs_go_back_to_the_units_of_the_program():
    alpha_out, lam_out = np.full(4, 7.0), np.full(4, 7.0)
    gaps = np.array([0.0, 0.5, 2.0, 4.0])
    which, alpha, lam, factors = np.array([1, 3]), np.array([3.0, 5.0]), np.array([2.0, 6.0]), (8.0, 16.0, 32.0, 64.0)
    steps.write_pair(which, which, gaps, alpha, lam, *factors, alpha_out, lam_out)
    assert alpha_out.tolist() == [np.inf, 3 * 8 * 16 / 0.5, 0.0, 5 * 8 * 16 / 4]
    assert lam_out.tolist() == [0.0, 2 * 32 * 16 / 64, 0.0, 6 * 32 * 16 / 64]
    lam_out = np.full(3, 7.0)  # targets of their own have places of their own
    steps.write_pair(which, np.array([2]), gaps, alpha, lam[:1], *factors, alpha_out, lam_out)
    assert lam_out.tolist() == [0.0, 0.0, 2 * 32 * 16 / 64]


@pytest.mark.parametrize(("r", "k"), SHAPES)
@pytest.mark.parametrize("gap_error", [0.0, 2.0**-20])
@pytest.mark.parametrize("tidied", [False, True])
def test_both_bounds_are_put_together_as_the_theorem_says(r, k, gap_error, tidied):
    """From the numbers of the steps, each of which is held to its own formula above."""
    columns, ratios, alpha, lam = instance(3, r, k, 0.5)
    gaps, unit = np.linspace(0.5, 2.0, k + 1), 0.375
    which = np.arange(1, k + 1)
    found = np.concatenate([np.zeros(k), alpha]), np.zeros(2 * k), lam, np.ones(k)
    info, alpha_out, lam_out = np.full(3, 7.0), np.empty(k + 1), np.empty(k + 1)
    steps.certify((which, which, unit, columns, ratios, None), found, tidied, gaps, gap_error, alpha_out, lam_out, info)
    pad, many, product_error, data = margins(r, k, gap_error)
    floats = tuple(float(x) for x in (pad, many, product_error, data))
    _, first = whitener(columns, alpha, None)
    errors = np.empty(k)
    steps.image_sizes(columns, first, errors)
    once = cross(first, columns)
    white = cross(whitener(once, alpha, None)[1], once)
    norms = squared_lengths(white)
    steps.image_errors(errors, floats[0], floats[2], floats[3])
    drift = steps.drift_of(weighted(white, alpha), alpha, norms, errors, floats[0], floats[3])
    sums = [rational(x) for x in steps.dual_sums(lam, ratios, norms, errors, floats[0])]
    strength = sums[0] / (pad * many * (1 + rational(drift)))
    weight, target_error = (root_down(x) * pad * many for x in sums[1:3])
    prices = back(squared_ratios(cross(white, white), 1.0 / ratios), lam)
    worst = rational(steps.largest_constraint(ratios, norms, errors, drift, floats[0]))
    top = rational(steps.largest_price(norms, errors, prices, drift, *floats[:3], float(weight), float(target_error)))
    lower = rational(unit) * strength**2 / (sums[3] * top) / (pad * many) ** 2
    worst *= (1 + 32 * U) * (1 + data)
    upper = rational(unit) * rational(float(sum(alpha.tolist()))) * worst * pad * many * (1 + data)
    assert near(info[0], lower, 30 * U) and near(info[1], upper, 20 * U)
    assert info[2] == pytest.approx(2.0 * drift + float(top) / prices.max() - 1.0, rel=1e-12, abs=1e-15)
    assert np.allclose(alpha_out[1:], alpha * float(worst) * unit / gaps[1:], rtol=1e-14) and alpha_out[0] == 0.0
    assert all(rational(x) * rational(g) >= rational(a) * worst * rational(unit) * (1 - 8 * U)
               for x, g, a in zip(alpha_out[1:], gaps[1:], alpha, strict=True))  # fmt: skip
    assert np.allclose(lam_out[1:] / lam, float(strength**2 / (sums[3] ** 2 * top)) * unit, rtol=1e-12)


def nothing(columns, alpha, lam, gap_error=0.0, ratios=None):
    k = columns.shape[1]
    info, out = np.full(3, 7.0), np.empty(k)
    found = np.concatenate([np.zeros(k), alpha]), np.zeros(2 * k), lam, np.ones(k)
    with np.errstate(all="ignore"):
        problem = np.arange(k), np.arange(k), 1.0, columns, np.ones(k) if ratios is None else ratios, None
        steps.certify(problem, found, False, np.ones(k), gap_error, out, out.copy(), info)
    return info.tolist() == [0.0, np.inf, np.inf]


def test_nothing_is_claimed_where_a_number_is_out_of_range():
    plane = np.eye(2)
    assert not nothing(plane, np.ones(2), np.ones(2))
    assert nothing(plane, np.array([1.0, 0.0]), np.ones(2))  # singular
    assert nothing(plane, np.ones(2), np.zeros(2))  # no dual
    assert nothing(plane, np.ones(2), np.array([np.inf, 1.0]))
    assert nothing(plane, np.ones(2), np.full(2, 1e200))  # strength² is not a number
    assert nothing(plane, np.ones(2), np.ones(2), gap_error=0.2)  # drift
    assert nothing(plane, np.ones(2), np.ones(2), ratios=np.array([1e-170, 1e-170]))


@pytest.mark.parametrize(
    "found", [(np.inf, 1.0), (np.nan, 1.0), (1.0, np.inf), (1.0, 0.0), (1.0, np.nan), (np.inf, 0.0)]
)
def test_nothing_is_claimed_from_constraints_or_prices_that_are_no_numbers(found, monkeypatch):
    monkeypatch.setattr(steps, "largest_constraint", lambda *_: found[0])
    monkeypatch.setattr(steps, "largest_price", lambda *_: found[1])
    assert nothing(np.eye(2), np.ones(2), np.ones(2))


def test_nothing_is_claimed_where_the_second_change_of_basis_is_a_large_one(monkeypatch):
    monkeypatch.setattr(steps, "near_identity", lambda basis: False)
    assert nothing(np.eye(2), np.ones(2), np.ones(2))


def test_nothing_is_claimed_where_the_second_change_of_basis_is_singular(monkeypatch):
    answers = iter([whitener(np.eye(2), np.ones(2), None), (False, np.eye(2))])
    monkeypatch.setattr(steps, "whitener", lambda *_: next(answers))
    assert nothing(np.eye(2), np.ones(2), np.ones(2))


@pytest.mark.parametrize(("drift", "claimed"), [(0.05, True), (0.100001, False), (np.nan, False), (np.inf, False)])
def test_nothing_is_claimed_beyond_the_largest_drift(drift, claimed, monkeypatch):
    monkeypatch.setattr(steps, "drift_of", lambda *_: drift)
    assert nothing(np.eye(2), np.ones(2), np.ones(2)) is not claimed
