"""One look at a block of arms: which of them may be skipped, and every margin of what is said of the others."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, gamma, rational

from allocopt.certify.by_block import pricing
from allocopt.certify.by_block.pricing import PriceReport, PriceTask, merge_prices
from allocopt.certify.frame import Frame
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.model.streamed_program import GapRule

INF = float("inf")


def near(value, exact, ulps=8):
    return abs(rational(float(value)) - exact) <= ulps * U * abs(exact)


def task(**options):
    """Two columns that are their own quotient, gaps of 1, a frame in which g = |x|² and p = |x|²/4, nothing inside."""
    identity = QuotientMap(np.ones(2), Modulo(np.zeros((0, 2)), (), np.arange(2)), np.ones(2))
    seen = Frame(np.eye(2), np.full(2, 0.25), 1.0, 0.0, 0.0, 0.0, 1.0)
    made = {
        "quotient": identity, "frame": seen, "gaps": GapRule(), "scale": 1.0, "image": np.eye(2), "image_error": 0.0,
        "gap_error": 0.0, "free": np.zeros(0, dtype=np.int64), "inside_constraint": 0.0, "inside_price": 0.0, "keep": 100,
    }  # fmt: skip
    return PriceTask(**{**made, **options})


PAD = 1 + gamma(72)
G = PAD**3  # of a row of length 1, in `most_constraint` of that frame
P = PAD**3 / 4  # and in `most_price`


def test_constraints_and_prices_of_a_block_have_their_margins():
    report = task()(0, np.array([[0.5, 0.0], [1.0, 0.0]]))
    assert near(report.constraint, G * (1 + 16 * U), 4) and near(report.price, P, 4)
    assert report.targets.tolist() == report.features.tolist() == [0, 1]
    assert report.constraints.tolist() == [0.25, 1.0] and report.prices.tolist() == [0.0625, 0.25]
    assert report.alive == 2 and report.mask is None
    report = task(scale=4.0, gaps=GapRule(given=True))(0, np.array([[0.0, 1.0]]), np.array([0.5]))
    assert near(report.constraint, G * (1 + 16 * U), 6) and near(report.price, 2 * P, 6)
    assert report.constraints.tolist() == pytest.approx([1.0]) and report.prices.tolist() == pytest.approx([0.5])


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize(("gap", "gap_error"), [(1.0, 0.0), (1.0, 0.5), (0.75, 0.25)])
@pytest.mark.parametrize("image_error", [0.0, 0.125])
def test_arms_are_skipped_only_where_every_error_leaves_them_inside(scale, gap, gap_error, image_error):
    """The least g and p inside for which an arm is not looked at closer, to a few units."""
    sure = rational(gap - gap_error) * (1 - 8 * U)
    length = PAD + rational(image_error)
    most_g = length**2 * PAD / (sure**2 * rational(scale))
    root = PAD / 2 + rational(0.5) * PAD * rational(image_error)
    most_p = root**2 * PAD / sure
    options = {"gaps": GapRule(given=True), "scale": scale, "gap_error": gap_error, "image_error": image_error}
    row, given = np.array([[1.0, 0.0]]), np.array([gap])
    for g, p, skipped in ((1, 1, True), (1, -1, False), (-1, 1, False), (-1, -1, False)):
        inside = {
            "inside_constraint": float(most_g * (1 + g * 6 * U)),
            "inside_price": float(most_p * (1 + p * 6 * U)),
        }
        report = task(**options, **inside)(0, row, given)
        assert (report.price == 0.0) is skipped, (g, p)
        if not skipped:
            assert near(report.constraint, G * (1 + 16 * U) / rational(gap) ** 2 / rational(scale), 8)
            assert near(report.price, P / rational(gap), 8)


@pytest.mark.parametrize("noise", [0.25, 4.0])
@pytest.mark.parametrize("gap", [1.0, 0.75])
def test_an_arm_of_its_own_variance_costs_its_gap_times_that(noise, gap):
    """Prices are over Δσ², constraints over Δ² alone; and an arm is skipped only where every error leaves it inside."""
    sure = rational(gap) * (1 - 8 * U)
    most_g, most_p = PAD**3 / sure**2, PAD**3 / 4 / (sure * rational(noise) * (1 - 4 * U))
    options = {"gaps": GapRule(given=True), "with_variances": True}
    row, given, each = np.array([[1.0, 0.0]]), np.array([gap]), np.array([noise])
    for g, p, skipped in ((1, 1, True), (1, -1, False), (-1, 1, False)):
        inside = {
            "inside_constraint": float(most_g * (1 + g * 6 * U)),
            "inside_price": float(most_p * (1 + p * 3 * U)),
        }
        report = task(**options, **inside)(0, row, given, each)
        assert (report.price == 0.0) is skipped, (g, p)
        if not skipped:
            assert near(report.constraint, G * (1 + 16 * U) / rational(gap) ** 2, 12)
            assert near(report.price, P / rational(gap) / rational(noise), 12)


def test_variances_come_with_the_arms_that_are_alive():
    rows, given, each = np.eye(2)[[0, 0, 1, 1, 0]], np.array([1.0, 2, 1, 1, 1]), np.array([1.0, 1, 9, 4, 1])
    alive = np.array([False, False, False, True, False])
    made = task(gaps=GapRule(given=True), with_variances=True, scale=2.0)
    report = made(10, rows, given, each, alive)
    assert report.features.tolist() == report.targets.tolist() == [13]
    assert report.prices == pytest.approx([0.25 / 4]) and report.constraints == pytest.approx([0.5])


@pytest.mark.parametrize("gap", [0.5, 0.25])
def test_arms_whose_gap_may_be_nothing_are_never_skipped(gap):
    report = task(gaps=GapRule(given=True), gap_error=0.5, inside_constraint=1e300, inside_price=1e300)(
        0, np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([gap, gap])
    )
    assert near(report.price, P / rational(gap), 8)


def test_what_is_not_known_of_an_arm_is_looked_at_closer():
    report = task(image=np.full((2, 2), np.nan), inside_constraint=1e300, inside_price=1e300)(0, np.array([[1.0, 0.0]]))
    assert near(report.constraint, G * (1 + 16 * U), 4) and near(report.price, P, 4)
    for some in ({"inside_constraint": 1e300}, {"inside_price": 1e300}):
        assert task(**some)(0, np.array([[1.0, 0.0]])).price > 0


def test_gaps_from_a_parameter_are_those_of_the_last_column():
    theta, best = np.array([1.0, 0.5]), np.array([2.0, 0.0])
    rule = GapRule(theta, best)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.5]])
    report = task(gaps=rule, image=np.column_stack([np.eye(2), theta]), free=np.array([2]))(0, rows)
    gaps = np.array([1.0, 1.5, INF, 1.25])
    g = (rows**2).sum(axis=1) / gaps**2
    assert near(report.constraint, rational(1.0) * G * (1 + 16 * U), 8) and near(report.price, P, 8)
    assert report.targets.tolist() == [0, 1, 3] and report.constraints == pytest.approx(g[[0, 1, 3]], rel=1e-12)
    assert report.features.tolist() == [0, 1, 3] and report.alive == 3
    # inside: the cheap look takes the gap from the product
    quiet = {"inside_constraint": 1.0 + 1e-9, "inside_price": 0.25 + 1e-9}
    assert task(gaps=rule, image=np.column_stack([np.eye(2), theta]), free=np.array([2]), **quiet)(0, rows).price == 0.0


def test_arms_of_the_last_digits_violate_nothing():
    rows = np.sqrt(np.array([[1.0, 0.0], [1.0 + 0.9e-12, 0.0], [1.0 + 1.2e-12, 0.0], [1.5, 0.0], [2.0, 0.0]]))
    report = task(inside_constraint=1.0, inside_price=0.25)(100, rows)
    assert report.targets.tolist() == report.features.tolist() == [102, 103, 104]
    report = task(inside_constraint=1.0, inside_price=0.25, keep=1)(100, rows)
    assert report.targets.tolist() == report.features.tolist() == [104]
    assert report.constraints == pytest.approx([2.0]) and report.prices == pytest.approx([0.5])
    report = task(inside_constraint=1.7, inside_price=0.25, keep=2)(100, rows)
    assert report.targets.tolist() == [104] and report.features.tolist() == [103, 104]
    report = task(inside_constraint=1.0, inside_price=0.45, keep=2)(100, rows)
    assert report.targets.tolist() == [103, 104] and report.features.tolist() == [104]


def test_free_arms_are_neither_asked_about_nor_played():
    rows = np.array([[8.0, 0.0], [1.0, 0.0], [9.0, 0.0], [0.5, 0.0], [7.0, 0.0]])
    for start in (0, 5, 100):
        free = np.sort(np.array([start, start + 2, start + 4, start + 5, start - 1, start + 50]))
        report = task(free=free[free >= 0], screen=(1.0, 1.0))(start, rows)
        assert near(report.constraint, G * (1 + 16 * U), 4)
        assert report.targets.tolist() == report.features.tolist() == [start + 1, start + 3]
        assert report.mask.tolist() == [False, True, False, False, False] and report.alive == 1
        report = task(free=free[free >= 0])(start, rows)
        assert report.alive == 2 and report.mask is None
        given = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
        report = task(free=free[free >= 0], gaps=GapRule(given=True))(start, rows, given)
        assert near(report.constraint, G * (1 + 16 * U), 4) and report.alive == 2
        assert given.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert task(free=np.array([0, 1]))(0, rows[:2]).constraint == 0.0


def test_screening_keeps_what_may_matter_in_either_role():
    """g below 1/s and |a|² below 1/t: the first is screened out where both hold, with all their margins."""
    row, given = np.array([[1.0, 0.0]]), np.array([0.5])
    options = {"gaps": GapRule(given=True), "scale": 4.0}
    sure = Fraction(1, 2) * (1 - 8 * U)
    g, a = G / (sure**2 * 4), G / sure
    for x, y, alive in ((-1, -1, 0), (1, -1, 1), (-1, 1, 1), (1, 1, 1)):
        screen = (float(1 / g * (1 + x * 8 * U)), float(1 / a * (1 + y * 8 * U)))
        report = task(**options, screen=screen)(0, row, given)
        assert report.alive == alive and report.mask.tolist() == [bool(alive)], (x, y)
        assert report.constraint > 0  # what is reported does not depend on it


def test_only_arms_alive_are_looked_at_where_these_are_few():
    rows = np.array([[4.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.5, 0.0]])
    few = np.array([False, True, False, False, True])
    report = task()(10, rows, few)
    assert near(report.constraint, G * (1 + 16 * U), 4) and near(report.price, P, 4)
    assert report.targets.tolist() == report.features.tolist() == [11, 14]
    assert report.mask.tolist() == few.tolist() and report.alive == 2
    report = task(screen=(1.0, 1.0))(10, rows, few)
    assert report.mask.tolist() == [False, True, False, False, False] and report.alive == 1
    many = np.array([False, True, True, False, True])
    report = task()(10, rows, many)  # not worth a copy: all of them
    assert report.constraints.max() == 16.0 and report.alive == 5
    none = task()(10, rows, np.zeros(5, dtype=bool))
    assert (none.constraint, none.price, none.alive) == (0.0, 0.0, 0)
    assert none.mask.tolist() == [False] * 5 and not len(none.targets) and not len(none.features)
    given = np.array([1.0, 0.5, 1.0, 1.0, 1.0])
    report = task(gaps=GapRule(given=True))(10, rows, given, few)
    assert near(report.price, 2 * P, 8)
    report = task(free=np.array([11, 12]))(10, rows, few)
    assert report.targets.tolist() == [14] and near(report.price, P / 4, 8) and report.alive == 1
    half = np.array([True, False, False, True])
    assert task()(0, rows[:4], half).constraints.max() == 16.0
    assert task()(0, rows[:4], half).alive == 4


def report_of(constraint, price, targets, constraints, features, prices, alive, mask):
    return PriceReport(
        constraint, price, np.array(targets), np.array(constraints), np.array(features), np.array(prices), alive, mask
    )


def test_the_report_of_all_blocks_has_the_largest_of_each():
    one = report_of(1.0, 5.0, [0, 1], [0.5, 1.0], [1], [5.0], 2, np.array([True, False]))
    two = report_of(3.0, 4.0, [2, 3], [3.0, 0.75], [2, 3], [4.0, 6.0], 3, np.array([True]))
    for reports, mask in (((one, two), [True, False, True]), ((one, dataclasses.replace(two, mask=None)), None)):
        both = merge_prices(reports, 2)
        assert (both.constraint, both.price, both.alive) == (3.0, 5.0, 5)
        assert both.targets.tolist() == [2, 1] and both.constraints.tolist() == [3.0, 1.0]
        assert both.features.tolist() == [3, 1] and both.prices.tolist() == [6.0, 5.0]
        assert both.mask is None if mask is None else both.mask.tolist() == mask
    for reports in ((one, two), (two, one)):  # one number that is not known, anywhere, is not forgotten
        lost = [dataclasses.replace(reports[0], constraint=np.nan), dataclasses.replace(reports[1], price=np.nan)]
        for some in (lost, lost[::-1]):
            assert np.isnan(merge_prices(some, 2).constraint) and np.isnan(merge_prices(some, 2).price)
    assert pricing.VIOLATION == 1e-12
