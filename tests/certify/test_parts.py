"""Parts of the certificate one by one, on numbers that are exact in doubles: what each of them may return, to the last unit.

Where `test_theorem` compares with the theorem up to what evaluating a formula in doubles costs, here nothing but the margins is left.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, root_down, solved, weighted

from allocopt.certify import certificate
from allocopt.certify import frame as frames
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import best_scale, evaluate
from allocopt.certify.frame import frame_of
from allocopt.linear import span
from allocopt.linear.modulo import Modulo

# --- canonical


def plain(r, **options):
    """One row along every axis: M(1) = I, without rounding."""
    return Canonical(np.eye(r), np.eye(r), np.zeros((0, r)), **options)


@pytest.mark.parametrize(("alpha", "lam"), [(1e160, 1e308), (1e155, 1e308), (1.0, 1.7e308), (1.0, np.inf), (1.0, 0.0)])
def test_multipliers_that_cannot_be_scaled_to_sum_to_one_prove_nothing(alpha, lam):
    bounds = evaluate(plain(2), np.full(2, alpha), np.full(2, lam))
    assert bounds.lower == 0.0
    assert bounds.upper >= 2.0


@pytest.mark.parametrize("r", [20, 60])
def test_the_norm_of_what_is_left_of_a_large_matrix_has_a_margin_of_its_own(r, monkeypatch):
    """‖Ĝ − I‖ is a sum of r² squares: γ of r² roundings, whatever the padding of sums over r entries is."""
    problem = plain(r)
    basis = np.full((r, r), 2.0**-12) + np.eye(r)  # not as good as what is usually proposed
    monkeypatch.setattr(frames, "_proposed_basis", lambda *_: (basis, np.ones(1)))
    frame = frame_of(problem, np.ones(r), np.eye(r)[0])
    images = rational(frame.basis)
    gram = [
        [dot(x, y) - (i == j) for j, y in enumerate(zip(*images, strict=True))]
        for i, x in enumerate(zip(*images, strict=True))
    ]
    left = root_down(sum(x * x for row in gram for x in row)) * (1 + gamma(r * r))
    spread = sum(dot(row, row) for row in images)
    left += gamma(r + 4) * (1 + spread)
    errors = rational(frame.errors(problem.features, np.einsum("ij,ij->i", frame.basis, frame.basis)))
    wrong = root_down(sum(e * e for e in errors))
    drift = left + wrong * (2 * root_down(1 + left) + wrong)
    drift = (drift + 8 * U * (1 + drift)) * (1 + gamma(4 * r + 64)) * (1 + gamma(r))
    assert rational(frame.drift) >= drift * (1 - 40 * U)


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_a_diagonal_of_exact_sums_is_margins_only(n):
    value = rational(float(frames._dominating_diagonal(np.ones((n, 1)), np.ones(n))[0]))
    exact = n * (1 + gamma(n + 4)) * (1 + gamma(68))
    assert exact * (1 - 4 * U) <= value <= exact * (1 + 8 * U)


def test_a_diagonal_pays_for_the_rounding_of_what_cancels():
    """Two orthogonal columns of ±1: the sum beside the diagonal is 0, its error need not be."""
    images = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    pad = 1 + gamma(72)
    exact = 4 * (1 + gamma(8)) * pad + pad * gamma(8) * pad * 4
    for value in rational(frames._dominating_diagonal(images, np.ones(4))):
        assert exact * (1 - 4 * U) <= value <= exact * (1 + 8 * U)


def test_what_is_known_is_a_sum_with_a_margin_of_its_own():
    """The slope loses Σ p over the rows of the base, rounded up: γ of as many roundings as there are rows."""
    n = 2000
    base = np.full((n, 1), 2.0**-6)
    problem = Canonical(np.ones((1, 1)), np.ones((1, 1)), base)
    alpha, lam = np.ones(1), np.ones(1)
    frame = frame_of(problem, alpha, lam)
    norm2, prices, errors = frames.images(frame, base)
    known = sum(rational(frame.most_price(prices, norm2, errors))) * (1 + gamma(n)) * (1 + gamma(68))
    norm2, prices, errors = frames.images(frame, problem.features)
    most = rational(frame.most_price(prices, norm2, errors))[0]
    slope = rational(frame.strength) ** 2 / (1 + gamma(68)) - known
    assert slope > 0
    lower = slope / most / (1 + gamma(68))
    # the sum itself, of n equal numbers, errs by less than its margin
    assert rational(evaluate(problem, alpha, lam).lower) <= lower * (1 + 40 * U) + known * gamma(64) / most


def test_the_best_scale_pays_for_what_is_over_the_bounds():
    """q·slope (1 − 4u) − Σ u (q p (1 + 4u) − 1)_+ (1 + γ), on numbers that are exact."""
    q, value = best_scale(1.25, np.array([1.0, 0.5]), np.array([1.0, np.inf]))
    assert q == 2.0
    over = 2 * (1 + 4 * U) - 1
    exact = Fraction(5, 2) * (1 - 4 * U) - over * (1 + gamma(9))
    assert exact - 5 * U <= rational(value) <= exact + 3 * U


def feasible(problem, alpha):
    matrix = weighted(rational(problem.features), rational(alpha), problem.rank)
    return all(dot(b, solved(matrix, b)) <= 1 for b in rational(problem.targets))


def test_arms_that_are_not_played_are_filled_up_to_their_bounds_and_no_further():
    """No multiple of α is feasible within the bounds: only what is not played yet can help, at most up to its bound."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    problem = Canonical(rows, np.eye(2), np.zeros((0, 2)), upper=np.array([4.0, 0.75, 0.5]))
    alpha = np.array([2.0, 0.75, 0.125])
    found = evaluate(problem, alpha, np.ones(2))
    assert (found.alpha <= problem.upper).all()
    assert feasible(problem, found.alpha)
    assert rational(found.upper) >= sum(rational(found.alpha))
    alpha = np.array([2.0, 0.75, 0.0])
    assert certificate._grow(alpha, problem.upper, 1e6).tolist() == [4.0, 0.75, 0.0]
    found = evaluate(problem, alpha, np.ones(2))
    assert np.isfinite(found.upper)
    assert (found.alpha <= problem.upper).all()
    assert (found.alpha >= alpha).all()
    assert feasible(problem, found.alpha)
    for by in (0.0, 0.5, 1.0, 7.0):
        filled = certificate._fill(alpha, np.array([4.0, 0.75, np.inf]), by)
        assert filled.tolist() == [2.0 + 2.0 * min(by, 1.0), 0.75, 0.0]
        assert certificate._fill(np.ones(1), np.full(1, np.inf), by).tolist() == [1.0 + by]
        assert certificate._grow(np.ones(1), np.full(1, 2.0), by).tolist() == [min(1.0 + by, 2.0)]


def test_constraints_that_hold_with_room_only_beyond_the_bounds_are_looked_at_again():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    problem = Canonical(rows, np.diag([1.5, 0.9]), np.zeros((0, 2)), upper=np.array([1.0, 10.0, 40.0]))
    alpha = np.array([4.0, 1.0, 0.5])
    found, cost = certificate.make_feasible(problem, alpha, np.array([2.25 / 4.125, 0.81]), 5.5)
    assert (found <= problem.upper).all()
    assert feasible(problem, found)
    assert np.isfinite(cost)
    assert rational(cost) >= sum(rational(found))


def test_what_was_not_shown_to_be_feasible_is_not_claimed():
    hopeless = Canonical(np.eye(1), 10.0 * np.eye(1), np.zeros((0, 1)), upper=np.ones(1))
    for worst in (1.0 - 1e-10, 1.0, 2.0, 1.0 + 3e11, 1.0 + 5e11, 1e30):
        assert certificate.make_feasible(hopeless, np.ones(1), np.array([worst]), 1.0)[1] == np.inf
    # too little was said of the constraints: what is returned is feasible all the same
    for worst in (1.0 - 1e-10, 1.0, 1.0 + 1e-14):
        problem = dataclasses.replace(hopeless, upper=np.full(1, 1e4))
        found, cost = certificate.make_feasible(problem, np.ones(1), np.array([worst]), 1.0)
        assert feasible(problem, found)
        assert rational(cost) >= sum(rational(found))
        assert cost <= 101.0


@pytest.mark.parametrize("large", [[1e200, 0.0], [1e300, -1e300], [1e300, 1e300]])
def test_numbers_beyond_doubles_prove_nothing(large):
    rows = np.array([[1e-20, 0.0], [1e-20, 1e-20]])
    problem = Canonical(rows, np.array([[1e-20, 1e-20], large]), np.zeros((0, 2)), offset=1.0)
    assert frame_of(problem, np.ones(2), np.array([1.0, 0.0])) is not None
    assert certificate.violation(problem, np.ones(2)) == np.inf
    for some in (problem, dataclasses.replace(problem, upper=np.full(2, 1e9))):
        for lam in ([1.0, 1.0], [1.0, 0.0]):
            found = evaluate(some, np.ones(2), np.array(lam))
            assert found.upper == found.gap == np.inf
            assert np.isinf(found.constraints).all()
            assert 0.99 <= found.lower <= 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_is_not_feasible(bad, monkeypatch):
    problem = plain(2)
    most = np.array([0.5, bad])
    monkeypatch.setattr(frames.Frame, "most_constraint", lambda *_: most)
    assert certificate.violation(problem, np.ones(2)) == np.inf
    found = evaluate(problem, np.ones(2), np.ones(2))
    assert found.upper == np.inf
    assert np.isinf(found.constraints).all()
    most[1] = 0.25
    assert certificate.violation(problem, np.ones(2)) == 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_diagonal_that_is_not_finite_proves_nothing(bad, monkeypatch):
    monkeypatch.setattr(frames, "_dominating_diagonal", lambda *_: np.array([1.0, bad]))
    assert frame_of(plain(2), np.ones(2), np.ones(2)) is None


@pytest.mark.parametrize("unit", [2.0**-50, 2.0**-10])
def test_errors_of_images_are_rounded_up(unit):
    """(γ + ρ) |a| ‖B‖ and (γ + ρ) ‖|a| |B|‖, both padded: here they are the same."""
    frame = frames.Frame(np.ones((1, 1)), np.ones(1), 1.0, 0.0, 0.0, unit, 1.0)
    exact = rational(unit) * (1 + gamma(68))
    assert exact * (1 - 4 * U) <= rational(float(frame.errors(np.ones((1, 1)), np.ones(1))[0])) <= exact * (1 + 8 * U)


@pytest.mark.parametrize("n", [1, 4, 64])
def test_the_strength_of_exact_sums_is_margins_only(n):
    problem = Canonical(np.ones((1, 1)), np.ones((n, 1)), np.zeros((0, 1)))
    frame = frame_of(problem, np.ones(1), np.ones(n))
    assert np.abs(frame.basis).tolist() == [[1.0]]
    pad = 1 + gamma(68)
    error = rational(float(frame.errors(np.ones((1, 1)), np.ones(1))[0]))
    exact = (1 / pad - error) ** 2 / pad * (1 - gamma(n + 8)) / (1 + rational(frame.drift))
    assert exact * (1 - 12 * U) <= rational(frame.strength) <= exact * (1 + 6 * U)


def test_what_is_fixed_is_rounded_down_where_nothing_else_is_proven():
    singular = Canonical(np.eye(2), np.eye(2), np.zeros((0, 2)), offset=1.0, bound_error=2.0**-20)
    found = evaluate(singular, np.array([1.0, 0.0]), np.ones(2))
    assert found.upper == np.inf
    assert rational(found.lower) <= (1 - Fraction(1, 2**19)) / (1 + gamma(72)) * (1 + 2 * U)
    assert found.lower >= 1 - 2.0**-18


def test_targets_that_are_multiples_of_the_features():
    """g_j is the feature's times the square of the ratio, and the bound on it has a margin for the two products."""
    for ratio in (0.5, 1.0, 2.0):
        one, ratios = np.ones((1, 1)), np.full(1, ratio)
        found = evaluate(Canonical(one, ratio * one, np.zeros((0, 1)), ratios=ratios), np.ones(1), np.ones(1))
        assert found.constraints == pytest.approx([ratio * ratio], rel=1e-12)
        frame = frame_of(Canonical(one, ratio * one, np.zeros((0, 1))), np.ones(1), np.ones(1))
        norm2, _, errors = frames.images(frame, one)
        most = rational(frame.most_constraint(norm2, errors))[0] * rational(ratio) ** 2 * (1 + gamma(68))
        assert rational(found.alpha)[0] >= most * (1 + 32 * U) * (1 - 6 * U)


@pytest.mark.parametrize("n", [1, 30, 1000])
def test_the_cost_of_a_bounded_allocation_is_a_sum_that_is_rounded_up(n):
    problem = Canonical(np.ones((n, 1)), np.ones((1, 1)), np.zeros((0, 1)), upper=np.full(n, 2.0))
    found, cost = certificate.make_feasible(problem, np.full(n, 2.0), np.array([0.5]), 2.0 * n)
    assert found.tolist() == [2.0] * n
    assert 2 * n * (1 + gamma(n)) * (1 - 2 * U) <= rational(cost) <= 2 * n * (1 + gamma(n)) * (1 + 4 * U)


def test_the_cost_of_what_was_scaled_has_a_margin_of_its_own():
    scaled, cost = certificate.make_feasible(plain(1), np.ones(1), np.ones(1), 1.0)
    assert rational(float(scaled[0])) == 1 + 32 * U
    assert rational(cost) >= (1 + 32 * U) * (1 + 4 * U) - 2 * U


def test_what_is_settled_follows_from_the_allocation_that_is_stored():
    bounded = Canonical(np.eye(2), np.eye(2), np.zeros((0, 2)), upper=np.array([4.0, 4.0]))
    found = evaluate(bounded, np.array([0.5, 1.5]), np.ones(2))
    again, anew = certificate.recomputed(bounded, found), evaluate(bounded, found.alpha, found.multipliers)
    assert (again.lower, again.upper) == (anew.lower, anew.upper) != (found.lower, found.upper)
    scalable = evaluate(plain(2), np.ones(2), np.ones(2))
    assert certificate.recomputed(plain(2), scalable) is scalable


# --- modulo


def many_in_the_span(extra):
    """Rows of exact whole combinations of two pivot rows with large determinants, ``extra`` added in the last column."""
    rng = np.random.default_rng(0)
    pivots = rng.integers(2**29, 2**30, size=(2, 3)).astype(float)
    rows = rng.integers(2**20, 2**21, size=(1500, 2)).astype(float) @ pivots
    rows[:, 2] += extra
    return Modulo.of(pivots, [0, 1]), rows


def test_many_zeros_are_proven_one_by_one():
    mod, rows = many_in_the_span(0.0)
    assert not mod(rows).any()  # and none of them is nan
    assert not mod.shares(rows).any()


def test_many_entries_that_are_almost_zero_are_not_zeros():
    mod, rows = many_in_the_span(1.0)
    with_pivots = np.concatenate([mod.pivot_rows, rows])
    assert np.count_nonzero(mod(rows)) == len(rows)
    for some, zeros in ((rows, 0), (with_pivots, 2)):  # also beside zeros that are known
        shares = mod.shares(some)
        assert np.count_nonzero(shares == 0.0) == zeros
        assert shares[-1, 0] == pytest.approx(float(mod.exact_share(some[-1], 0)), rel=1e-6)


def test_many_unknown_entries_are_nothing_beside_one_that_is_outside():
    mod, rows = many_in_the_span(0.0)
    shares = mod.shares(np.concatenate([rows, [[0.0, 0.0, 1.0]]]))
    assert shares[-1, 0] == 1.0
    assert not shares[:-1].any()


def test_whole_numbers_that_are_no_doubles_prove_no_zero():
    """1 − x/q − y/r with q r beyond 2^53: rounded, the common denominator would make a zero of what is none."""
    q, r = 2**30 + 3, 2**30 - 35
    common = int(float(q * r))
    s = (common - q * r) * pow(r, -1, q) % q
    t = (common - q * r - r * s) // q
    row = np.array([float(q + s), float(t), 1.0])
    assert r * (q + s) + q * t == common != q * r
    mod = Modulo.of(np.array([[q, 0.0, 1.0], [0.0, r, 1.0]], dtype=float), [0, 1])
    assert mod.exact_entry(row, 0) != 0
    assert mod(row[None])[0, 0] == pytest.approx(float(Fraction(q * r - common, q * r)), rel=1e-13)


def test_negative_whole_numbers_that_are_no_doubles_prove_no_zero_either():
    """−2^53 + (2^53 − 1) + 4/3 is 1/3, though 3 (2^53 − 1) rounded would make it 0."""
    mod = Modulo.of(np.array([[1.0, 0.0, -(2.0**53 - 1)], [0.0, 3.0, 1.0]]), [0, 1])
    row = np.array([1.0, -4.0, -(2.0**53)])
    assert Fraction(float(3 * (2**53 - 1))) != 3 * (2**53 - 1)
    assert mod(row[None])[0, 0] == pytest.approx(1 / 3, rel=1e-13)


@pytest.mark.parametrize(
    "row", [[1 + 2.0**-52, 1.0, 0.0], [1.0, 1 + 2.0**-52, 0.0], [1.0, 2.0**-52, 1.0], [2.0**-52, 1.0, -1.0]]
)
def test_sums_of_whole_multiples_that_nearly_cancel_are_no_zeros(row):
    mod = Modulo.of(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]), [0, 1])
    exact = Fraction(row[2]) - Fraction(row[0]) + Fraction(row[1])
    assert exact != 0
    assert Fraction(float(mod(np.array([row]))[0, 0])) == exact


def test_every_coefficient_is_brought_to_the_common_denominator():
    mod = Modulo.of(np.column_stack([np.eye(3), [0.5, 0.5, 0.25]]), [0, 1, 2])
    row = np.array([1.0, -1.0 + 2.0**-52, -(2.0**-53), 0.0])
    assert mod(row[None])[0, 0] == -(2.0**-53) + 2.0**-55


def test_a_share_of_which_nothing_is_known_is_not_small(monkeypatch):
    mod = Modulo.of(np.array([[1.0, 1.0]]), [0])
    rows = np.array([[1.0, 1.0], [1.0, 1.5]])
    assert mod.shares(rows).tolist() == [[0.0], [0.2]]
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: np.full(b.shape, np.nan))
    shares = mod.shares(rows)
    assert shares[0, 0] == 0.0 and shares[1, 0] >= 1.0


def test_noise_is_what_is_small_beside_its_terms():
    mod = Modulo.of(np.array([[1.0, 1.0]]), [0])
    entries = np.array([[1.0, -1.0, 0.0, 2.0**-42, -(2.0**-42), 2.0**-41, -(2.0**-41)]])
    assert mod.noise(entries, np.ones((1, 7))).tolist() == [[False, False, False, True, True, False, False]]


# --- span


def test_units_of_columns_of_any_sign():
    assert span.column_units(np.array([[-8.0, 0.0, 3.0], [-1.0, 0.0, -5.0]])).tolist() == [0.0625, 1.0, 0.125]


def test_what_is_more_than_rounding_is_decided_exactly():
    """Shares of exactly 2^-40 are rounding, anything above is not."""
    mod = Modulo.of(np.array([[1.0, 1.0]]), [0])
    for row, beyond in (
        ([1.0, 1.5], True),
        ([1.0 - 2.0**-40, 1.0 + 2.0**-40], False),
        ([1.0 - 2.0**-40, 1.0 + 2.0**-40 + 2.0**-52], True),
        ([1.0, 1.0 + 2.0**-52], False),
    ):
        rows = np.array([[1.0, 1.0], row])
        assert span._beyond(mod, rows, mod.shares(rows)) is beyond


def test_what_pivoting_misses_is_added(monkeypatch):
    monkeypatch.setattr(span, "_complete_pivoting", lambda rows: ([], []))
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 3.0]])
    found = span.free_span(rows, np.arange(3))
    assert len(found.rows) == len(found.columns) == found.modulo.n == 2
    assert not found.modulo(rows).any() and found.assumptions == ()


def test_spans_of_nothing_and_of_everything():
    rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    none = span.span_of(rows, np.array([1]), span.free_span(rows, np.array([0])), np.zeros((1, 1)))
    assert none.rows.tolist() == [] and none.columns == () and none.assumptions == ()
    everything = span.span_of(np.eye(2), np.arange(2), span.free_span(np.eye(2), np.arange(0)), np.eye(2))
    assert everything.rows.tolist() == [] and everything.columns == (0, 1)
    assert everything.modulo.pivot_rows.shape == (0, 2) and not len(everything.modulo.columns)
