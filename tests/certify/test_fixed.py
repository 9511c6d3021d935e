"""What lower bounds fix, summed over blocks: the sum and its cost against rationals, and every margin of both."""

from fractions import Fraction

import numpy as np
import pytest
from blocks import in_blocks, unit_arms
from exactly import U, gamma, product, rational, solved, transposed, weighted

import allocopt as ao
from allocopt.certify.by_block.fixed import FixedReport, FixedSum, FixedTask
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.canonical import SumError
from allocopt.certify.frame import Frame, frame_of
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.model.streamed_program import GapRule


def near(value, exact, ulps=8):
    return abs(rational(float(value)) - exact) <= ulps * U * abs(exact)


def root(x):
    """√x of a rational, to a double."""
    return rational(float(np.sqrt(float(x))))


def quadratic(matrix, basis):
    return product(product(transposed(basis), matrix), basis)


def largest_value(matrix):
    return max(abs(np.linalg.eigvalsh(np.array([[float(x) for x in row] for row in matrix]))))


# the error of a sum in another basis


@pytest.mark.parametrize("seed", range(6))
def test_an_error_in_one_basis_bounds_that_in_every_other(seed):
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 5))
    basis = rng.normal(size=(r, r)) * 10.0 ** rng.integers(-3, 4, size=r)
    inverse = np.linalg.inv(basis)
    axis = rng.normal(size=r)
    error = np.outer(axis, axis) / (axis @ axis)  # of norm 1 in the first basis
    exact_inverse = transposed(
        [solved(rational(basis), unit) for unit in rational(np.eye(r))]
    )  # a product in doubles would lose what is asked about where the basis is ill-conditioned
    in_units = quadratic(rational(error), exact_inverse)
    known = SumError(basis, inverse, 1.0)
    for other in (basis, rng.normal(size=(r, r)), basis @ rng.normal(size=(r, r)), 1e-4 * basis):
        actual = largest_value(quadratic(in_units, rational(other)))
        assert actual <= known.within(other) * (1 + 1e-9)
        assert known.within(other) <= 1.01 * r * np.linalg.norm(inverse @ other, 2) ** 2
        assert SumError(basis, inverse, 3.0).within(other) == pytest.approx(3.0 * known.within(other), rel=1e-15)
    # in its own basis, about itself
    assert 1.0 <= known.within(basis) <= 1.0 + 1e-7


def test_the_bound_in_another_basis_has_every_margin():
    basis, other = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([[1.0, 0.5], [0.25, 8.0]])
    inverse = np.array([[0.5, 0.0], [-0.125, 0.25 * (1 + 2.0**-30)]])
    known = SumError(basis, inverse, 2.0)
    long = [root(sum(x * x for row in rational(m) for x in row)) for m in (inverse, basis, other)]
    left = product(rational(inverse), rational(basis))
    off = [[left[i][j] - (i == j) for j in range(2)] for i in range(2)]
    residual = (root(sum(x * x for row in off for x in row)) + gamma(4) * (long[0] * long[1] + 1)) * (1 + gamma(12))
    assert near(known.residual, residual, 6)
    image = product(rational(inverse), rational(other))
    squares = sum(x * x for row in image for x in row)
    gram = quadratic([[1, 0], [0, 1]], image)
    rows = max(sum(abs(x) for x in row) for row in gram) + 2 * gamma(4) * squares
    assert rows < squares
    length = root(rows) + gamma(4) * long[0] * long[2]
    assert near(known.within(other), 2 * (length / (1 - residual)) ** 2 * (1 + gamma(20)), 2)
    # where the sum of squares is less than the largest sum of a row
    flat = SumError(np.eye(2), np.eye(2), 1.0)
    one = np.array([[1.0, 1.0], [0.0, 0.0]])
    tall = root(2) + gamma(4) * root(2) * root(2)
    assert near(flat.within(one), (tall / (1 - rational(flat.residual))) ** 2 * (1 + gamma(20)), 8)


def test_the_residual_of_an_inverse_has_a_margin_for_every_entry():
    r = 9
    known = SumError(2.0 * np.eye(r), (0.5 + 2.0**-30) * np.eye(r), 1.0)
    long = root(r * rational(0.5 + 2.0**-30) ** 2) * root(4 * r)
    residual = (root(r * rational(2.0**-29) ** 2) + gamma(r + 2) * (long + 1)) * (1 + gamma(r * r + 8))
    assert near(known.residual, residual, 6)
    assert near(known.within(np.eye(r)), (known_length(known, r) / (1 - residual)) ** 2 * (1 + gamma(r * r + 16)), 12)


def known_length(known, r):
    """What `within` says of the unit vectors: the largest sum of a row, as all rows have one entry."""
    entry = rational(known.inverse[0, 0])
    rows = entry**2 + r * gamma(r + 2) * r * entry**2
    return root(rows) + gamma(r + 2) * root(r * entry**2) * root(r)


@pytest.mark.parametrize(("off", "known"), [(0.4, True), (0.49, True), (0.51, False), (np.nan, False)])
def test_an_inverse_that_is_none_proves_nothing(off, known):
    error = SumError(np.eye(2), np.array([[1.0 + off, 0.0], [0.0, 1.0]]), 1.0)
    assert np.isfinite(error.within(np.eye(2))) == known


# one block


def task(**options):
    """Two columns that are their own quotient, gaps of 1."""
    identity = QuotientMap(np.ones(2), Modulo(np.zeros((0, 2)), (), np.arange(2)), np.ones(2))
    made = {
        "quotient": identity, "basis": np.eye(2), "gaps": GapRule(), "image": np.eye(2), "image_error": 0.0, "gap_error": 0.0,
        "free": np.zeros(0, dtype=np.int64), "divisor": 1.0,
    }  # fmt: skip
    return FixedTask(**{**made, **options})


PAD = (1 + gamma(72)) * (1 + gamma(10))  # of sums over two arms


def test_what_a_block_fixes_is_the_sum_of_its_arms():
    rows = np.array([[1.0, 0.0], [5.0, 5.0], [0.5, 2.0]])
    report = task(divisor=2.0, image_error=1e-13)(0, rows, np.array([2.0, 0.0, 8.0]))
    assert report.gram.tolist() == [[1.0 + 1.0, 4.0], [4.0, 16.0]]
    assert near(report.trace, 18 * PAD, 4) and report.terms == 2
    assert near(report.error2, 5 * rational(1e-13) ** 2 * PAD, 6)
    assert report.cost == 5.0 and report.cost_error == 0.0
    noisy = task(with_variances=True)(0, rows, np.array([2.0, 1.0, 4.0]), np.array([2.0, 0.0, 8.0]))
    assert noisy.gram.tolist() == [[1.5, 2.0], [2.0, 8.0]] and noisy.cost == 10.0
    given = task(gaps=GapRule(given=True))(0, rows, np.array([0.5, 1.0, 0.25]), np.array([2.0, 0.0, 8.0]))
    assert given.cost == 3.0 and given.cost_error == 0.0 and near(given.trace, 36 * PAD, 4)


def test_free_arms_are_not_fixed():
    rows, pulls = np.array([[1.0, 0.0], [5.0, 5.0], [0.5, 2.0]]), np.ones(3)
    for start in (0, 7):
        free = np.array([max(start - 1, 0), start + 1, start + 3]) if start else np.array([1, 3])
        report = task(free=free)(start, rows, pulls)
        assert report.gram.tolist() == [[1.25, 1.0], [1.0, 4.0]] and report.cost == 2.0 and report.terms == 2
    assert pulls.tolist() == [1.0, 1.0, 1.0]
    nothing = task(free=np.arange(3))(0, rows, pulls)
    assert (nothing.trace, nothing.cost, nothing.terms) == (0.0, 0.0, 0) and not nothing.gram.any()


def test_gaps_are_accurate_where_plain_ones_are_not():
    theta, best = np.array([1.0, 0.5]), np.array([2.0, 0.0])
    rows, pulls = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 4.0])
    image = np.column_stack([np.eye(2), theta + np.array([0.0, 0.25])])  # a plain mean that is wrong
    for gap_error, cost, error in ((1e-13, 2.0 + 4.0 * 1.25, 6e-13), (1.3e-12, 2.0 + 4.0 * 1.5, 8.0 * GAP_ERROR)):
        report = task(gaps=GapRule(theta, best), image=image, gap_error=gap_error)(0, rows, pulls)
        assert report.cost == cost
        assert near(report.cost_error, rational(error) * PAD, 8)
    # what is rough is judged by each arm's own gap
    assert task(gaps=GapRule(theta, best), image=image, gap_error=1.1e-12)(0, rows, pulls).cost == 2.0 + 4.0 * 1.25
    report = task(gaps=GapRule(theta, best), image=image, gap_error=1.1e-12)(0, rows[:1], pulls[:1])
    assert report.cost == 2.0 and near(report.cost_error, 2 * rational(GAP_ERROR) * (1 + gamma(72)) * (1 + gamma(9)), 8)
    bad = np.column_stack([np.eye(2), np.full(2, np.nan)])
    assert task(gaps=GapRule(theta, best), image=bad)(0, rows, pulls).cost == 8.0


def test_images_are_accurate_where_plain_ones_are_not():
    rows, pulls = np.array([[1.0, 0.0], [0.0, 1e-3]]), np.array([1.0, 4.0])
    wrong = np.array([[1.0, 0.0], [0.0, 2.0]])  # an image that is not that of the basis
    report = task(image=wrong, image_error=1e-13)(0, rows, pulls)
    assert report.gram[1, 1] == pytest.approx(4e-6) and report.gram[0, 0] == 1.0  # 1e-3 is what the basis says
    unit = rational(gamma(4)) + rational(ENTRY_ERROR)
    plain = Frame(np.eye(2), np.zeros(2), 0.0, 0.0, 0.0, float(unit), 0.0)
    sharp = plain.errors(rows[1:], np.array([1e-6]))[0]
    assert near(report.error2, (rational(1e-13) ** 2 + 4 * rational(float(sharp)) ** 2) * PAD, 16)
    report = task(image=wrong, image_error=1e-16)(0, rows, pulls)
    assert report.gram[1, 1] == pytest.approx(16e-6)
    bad = task(image=np.full((2, 2), np.nan))(0, rows, pulls)
    assert bad.gram[0, 0] == 1.0


# all blocks


def report_of(gram, trace, error2, cost, cost_error, terms):
    return FixedReport(np.array(gram), trace, error2, cost, cost_error, terms)


def test_the_sum_of_all_blocks_has_every_margin():
    one = report_of([[1.0, 0.0], [0.0, 4.0]], 5.5, 3e-20, 7.0, 2e-13, 40)
    two = report_of([[3.0, 0.0], [0.0, 5.0]], 12.25, 6e-20, 1.0, 1e-13, 700)
    both = FixedSum.of([one, two], np.eye(2))
    assert both.rows.T @ both.rows == pytest.approx(np.diag([4.0, 9.0]), abs=1e-300)
    assert both.cost == 8.0
    assert near(both.cost_error, gamma(710) + rational(3e-13) * (1 + gamma(10)) / 8 + 8 * U, 6)
    trace, wrong = rational(17.75) * (1 + gamma(10)), root(rational(9e-20) * (1 + gamma(10)))
    size = gamma(710) * trace + wrong * (2 * root(trace) + wrong) + 8 * U * trace
    mean = rational(np.linalg.norm(both.rows))
    own = gamma(4) * mean  # what the rows amount to: |B| |I|, exactly
    distance = rational(float(np.linalg.norm(both.rows.T @ both.rows - np.diag([4.0, 9.0])))) + gamma(6) * 13
    size += distance + own * (2 * root(13) + own)
    assert near(both.error.size, size * (1 + gamma(80)) * (1 + 8 * U), 6)
    vague = FixedSum.of(
        [report_of([[1.0]], 2.0, 0.25, 1.0, 0.25, 3), report_of([[1.0]], 2.0, 0.25, 1.0, 0.25, 3)], np.eye(1)
    )
    assert near(vague.cost_error, rational(0.25) * (1 + gamma(10)) + gamma(13) + 8 * U, 3)
    trace, wrong = 4 * (1 + gamma(10)), root(rational(0.5) * (1 + gamma(10)))
    size = gamma(13) * trace + wrong * (2 * root(trace) + wrong) + 8 * U * trace
    size += gamma(5) * 2 + gamma(3) * root(2) * 2 * root(2)
    assert near(vague.error.size, size * (1 + gamma(68)) * (1 + 8 * U), 4)
    assert both.error.coordinates.tolist() == np.eye(2).tolist() == both.error.inverse.tolist()
    small = FixedSum.of([report_of([[1.0]], 2.0, 0.0, 0.125, 0.25, 3)], np.eye(1))
    assert near(small.cost_error, 2 * (1 + gamma(9)) + gamma(12) + 8 * U, 3)
    free = FixedSum.of([report_of([[0.0]], 0.0, 0.0, 0.0, 0.0, 0)], np.eye(1))
    assert free.cost == 0.0 and near(free.cost_error, gamma(9) + 8 * U, 4) and free.error.size == 0.0


@pytest.mark.parametrize("basis", [[[1.0, -3.0], [-0.5, 2.0]], [[1.0, 2.0], [-0.5, 3.0]]])
def test_the_sum_of_all_blocks_has_every_margin_in_coordinates_with_entries_of_both_signs(basis):
    basis = np.array(basis)
    turned = FixedSum.of([report_of([[4.0, -1.0], [-1.0, 9.0]], 0.0, 0.0, 1.0, 0.0, 3)], basis)
    images = product(rational(turned.rows), rational(basis))
    off = weighted(images, [1, 1], 2)
    off = [[off[i][j] - rational([[4.0, -1.0], [-1.0, 9.0]])[i][j] for j in range(2)] for i in range(2)]
    assert root(sum(x * x for row in off for x in row)) <= 1e-14
    own = gamma(4) * rational(np.linalg.norm(np.abs(turned.rows) @ np.abs(basis)))
    least = gamma(6) * 13 + own * (2 * root(13) + own)
    most = least + rational(1e-14)
    assert least * (1 - 8 * U) <= rational(turned.error.size) <= most * (1 + gamma(100))
    assert rational(turned.error.size) - rational(
        np.linalg.norm((turned.rows @ basis).T @ (turned.rows @ basis) - np.array([[4.0, -1.0], [-1.0, 9.0]]))
    ) == pytest.approx(float(least), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_rows_in_the_place_of_all_are_as_close_as_they_say(seed):
    """Against rationals, with lower bounds of many sizes: ||Cᵀ(M_0 − BᵀB)C|| <= size, in the quotient by the first axis."""
    rng = np.random.default_rng(seed)
    arms, theta = rng.integers(-32, 33, size=(30, 3)) / 64.0, np.array([1.0, 0.0, 0.0])
    arms[4] = [1.0, 0.0, 0.0]
    arms[:, 1:][~arms[:, 1:].any(axis=1) & (arms[:, 0] < 1.0)] = 0.125
    pulls = np.round(10.0 ** rng.uniform(-2, 4, size=30), 3) * (rng.random(30) < 0.8)
    noise = rng.uniform(0.5, 2.0, size=30) if seed % 2 else 1.0
    with in_blocks():
        bandit = ao.LinearBandit(arms, theta, noise)
        problem = StreamedProblem(ao.programs.remaining(bandit, pulls, 1000))
        known = problem.fixed
        for basis in (known.error.coordinates, np.array([[1.0, 3.0], [0.0, 2.0]]), np.diag([1e-3, 1e4])):
            problem.sum_fixed(basis)
            found = problem.fixed
            rows = [r for i, r in enumerate(problem.quotient(arms).tolist()) if i != 4]
            lower = rational(np.delete(pulls, 4))
            weights = [x / rational(np.log(1000)) for x in lower]
            if seed % 2:
                weights = [x / y for x, y in zip(weights, rational(np.delete(noise, 4)), strict=True)]
            exact = weighted(rational(rows), weights, 2)
            kept = weighted(rational(found.rows), [Fraction(1)] * 2, 2)
            off = [[exact[i][j] - kept[i][j] for j in range(2)] for i in range(2)]
            assert largest_value(quadratic(off, rational(basis))) <= found.error.size
            trace = sum(quadratic(exact, rational(basis))[i][i] for i in range(2))
            assert found.error.size <= 1e-11 * trace
            cost = sum(
                x * (1 - g)
                for x, g in zip(rational(np.delete(pulls, 4)), rational(np.delete(arms[:, 0], 4)), strict=True)
            )
            cost /= rational(np.log(1000))
            assert abs(rational(found.cost) - cost) <= rational(found.cost_error) * cost
    assert problem.sums == 5


def test_what_is_fixed_is_summed_anew_where_the_basis_has_changed_a_lot():
    arms, theta = unit_arms(3, 60, seed=3)
    with in_blocks():
        problem = StreamedProblem(ao.programs.remaining(ao.LinearBandit(arms, theta), np.ones(60), 1000))
        assert problem.sums == 2
        pool = problem.spread(60)

        def priced():
            return problem.price(pool, problem.part(pool), np.full(len(pool), 100.0), np.ones(len(pool)))

        basis = frame_of(problem.part(pool), np.full(len(pool), 100.0), np.ones(len(pool))).basis
        assert priced().bounds.alpha[0] == 100.0
        for turned, sums in (
            (1.0, 3),
            (0.6, 4),
            (0.4, 5),
            (0.01, 7),
        ):  # half as large coordinates: four times the error
            problem.sum_fixed(turned * basis)
            assert problem.sums == sums
            priced()
            assert problem.sums == sums + (turned < 0.5)
            kept = problem.fixed.error
            assert kept.within(kept.coordinates) <= 1.01 * kept.size
