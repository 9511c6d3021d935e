"""The certificate over blocks of arms: both bounds against rationals, and every margin of the cheap look at all arms.

The best arm is the first axis, so that the quotient by it is the other columns, without rounding.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from blocks import in_blocks
from exactly import U, dot, gamma, rational, solved, weighted

import allocopt as ao
from allocopt.base.errors import SolverFailed
from allocopt.certify import verdict
from allocopt.certify.by_block import pricing
from allocopt.certify.by_block.pricing import PriceReport, PriceTask, merge_prices
from allocopt.certify.by_block.problem import BoundsOverAll, StreamedProblem
from allocopt.certify.frame import Frame, frame, images
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.model.arm_blocks import GapRule

INF = float("inf")


def near(value, exact, ulps=8):
    return abs(rational(float(value)) - exact) <= ulps * U * abs(exact)


def arms_of(seed, count=40):
    """Short arms around 0, the best one somewhere among them, everything a multiple of 1/64; gaps are exact in doubles."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(-32, 33, size=(count, 3)) / 64.0
    arms[int(rng.integers(count))] = [1.0, 0.0, 0.0]
    arms[:, 1:][~arms[:, 1:].any(axis=1) & (arms[:, 0] < 1.0)] = 0.125
    return arms, np.array([1.0, 0.0, 0.0])


def streamed(arms, theta):
    return StreamedProblem(ao.programs.regret(ao.LinearBandit(arms, theta)))


def referee(arms, gaps, scale, allocation, lam):
    """Both bounds of a pair for all arms, exactly; arms of gap 0 are the first axis."""
    rows = [r[1:] for r in rational(arms)]
    gaps, alpha, lam = (rational(x) for x in (gaps, allocation, lam))
    on = [i for i, gap in enumerate(gaps) if gap > 0]
    radius = {i: rational(scale) * gaps[i] ** 2 for i in on}
    matrix = weighted([rows[i] for i in on], [alpha[i] for i in on], 2)
    y = {i: solved(matrix, rows[i]) for i in on}
    worst = max(dot(rows[i], y[i]) / radius[i] for i in on)
    played = [i for i in on if lam[i] > 0]
    w = {j: lam[j] / radius[j] for j in played}
    strength = sum(w[j] * dot(rows[j], y[j]) for j in played)
    price = max(sum(w[j] * dot(rows[i], y[j]) ** 2 for j in played) / gaps[i] for i in on)
    cost = sum(gaps[i] * alpha[i] for i in on)
    return strength**2 / sum(lam[j] for j in played) / price, cost * worst


def pair_of(problem, arms, seed, size=4):
    """A pair on a few arms, anywhere."""
    rng = np.random.default_rng(seed)
    pool = problem.playable(np.sort(rng.choice(len(arms), size=size + 3, replace=False)))
    return pool, rng.uniform(0.5, 2.0, len(pool)), rng.uniform(0.5, 2.0, len(pool))


def full(length, places, values):
    result = np.zeros(length)
    result[places] = values
    return result


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_both_bounds_hold_for_all_arms_and_are_no_wider_than_they_need_be(rows):
    for seed in range(6):
        arms, theta = arms_of(seed)
        gaps = 1.0 - arms[:, 0]
        with in_blocks(rows=rows):
            problem = streamed(arms, theta)
            pool, allocation, lam = pair_of(problem, arms, seed)
            found = problem.price(pool, problem.part(pool), allocation * gaps[pool], lam)
            again = problem.proven(pool, allocation, lam)
        exact = referee(arms, gaps, problem.blocks.scale, full(len(arms), pool, allocation), full(len(arms), pool, lam))
        for bounds in (found.bounds, again):
            assert rational(bounds.lower) <= exact[0] <= rational(bounds.lower * (1 + 1e-11))
            assert rational(bounds.upper * (1 - 1e-11)) <= exact[1] <= rational(bounds.upper)
        assert found.complete
        assert found.bounds.alive == len(arms) - 1


@pytest.mark.parametrize("place", [0, 6, 7, 20, 39])
@pytest.mark.parametrize("kind", ["short gap", "long"])
def test_one_arm_that_matters_is_found_wherever_it_is(place, kind):
    rng = np.random.default_rng(place)
    arms = np.concatenate([np.zeros((40, 1)), rng.integers(-8, 9, size=(40, 2)) / 64.0], axis=1)
    arms[:, 1:][~arms[:, 1:].any(axis=1)] = 0.125
    arms[[10, 11, 12]] = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    arms[place] = [0.75, 0.5, 0.5] if kind == "short gap" else [0.0, 3.0, 3.0]
    gaps = 1.0 - arms[:, 0]
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        pool = np.array([11, 12])
        found = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2), last=True)
    exact = referee(arms, gaps, problem.blocks.scale, full(40, pool, [1.0, 1.0]), full(40, pool, [1.0, 1.0]))
    assert rational(found.bounds.lower) <= exact[0] <= rational(found.bounds.lower * (1 + 1e-11))
    assert rational(found.bounds.upper * (1 - 1e-11)) <= exact[1] <= rational(found.bounds.upper)
    assert found.features.tolist() == [place] and found.targets.tolist() == [place]
    assert found.bounds.binding.tolist() == sorted([11, 12, place])


def test_bounds_over_all_are_those_of_the_frame_with_every_margin():
    arms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0.5, 0.5], [0, 0.25, 0.0]])
    for more, theta in ((0.0, [1.0, 0, 0]), (1.0, [1.0, 0, 0])):  # the worst arm in the pool, and outside
        rows = arms.copy()
        rows[4, 2] = more
        with in_blocks():
            problem = streamed(rows, np.array(theta))
            pool = np.array([1, 2])
            part = problem.part(pool)
            seen = frame(part, np.ones(2), np.ones(2))
            bounds = problem.price(pool, part, np.ones(2), np.ones(2)).bounds
            every = problem.part(np.array([1, 2, 3, 4]))
        norm2, prices, errors = images(seen, every.features)
        ratio = 2 if problem.blocks.scale == 0.5 else None
        up, doubt = 1 + gamma(72), rational(part.bound_error)
        own = [rational(x) * ratio for x in seen.most_constraint(norm2, errors)]
        margins = [up, up, None, 1 + 16 * U]
        reached = max(own[i] * margins[i] for i in ((0, 1, 3) if more else (0, 1)))
        worst = reached * (1 + 32 * U) * (1 + doubt)
        assert near(bounds.upper, rational(seen.cost) * worst * up, 8)
        assert near(bounds.alpha[0], worst, 6)
        price = max(rational(seen.most_price(prices, norm2, errors)))
        assert near(bounds.lower, rational(seen.strength) ** 2 / up / price / up, 8)
        assert bounds.rounding == 2.0 * seen.drift
        assert bounds.prices == pytest.approx(prices[:2] / float(price), rel=1e-12)
        assert bounds.constraints == pytest.approx(norm2[:2] * 2.0, rel=1e-12)
        # λ in the scale of the dual, for its own arms: Σλ is the bound without margins
        dual = (norm2[:2].mean() * 2.0) ** 2 / prices.max() if not more else None
        assert more or bounds.multipliers.sum() == pytest.approx(dual, rel=1e-9)


def test_a_part_is_the_canonical_problem_of_some_arms():
    arms, theta = arms_of(0)
    for noise in (1.0, 0.25):
        with in_blocks():
            bandit = ao.LinearBandit(arms, theta, noise)
            problem = StreamedProblem(ao.programs.regret(bandit))
            pool = problem.playable(np.arange(len(arms)))[:5]
            part = problem.part(pool)
        gaps = 1.0 - arms[pool, 0]
        squared = arms[pool, 1:] ** 2 / gaps[:, None]
        units = problem.quotient.units[1:] * problem.quotient.scale
        assert part.features**2 == pytest.approx(squared * units**2, rel=1e-12)
        assert part.ratios == pytest.approx(1.0 / np.sqrt(gaps * problem.blocks.scale), rel=1e-14)
        assert part.targets == pytest.approx(part.features * part.ratios[:, None], rel=1e-14)
        assert part.error == ENTRY_ERROR + GAP_ERROR + 8 * UNIT and part.bound_error == GAP_ERROR + 8 * UNIT
        assert part.scalable and part.rank == 2


def test_pairs_are_kept_where_something_is_known_of_them():
    arms = np.array([[1.0, 0, 0], [0.5, 1.0, 0], [0, 0, 1.0], [0.5, 0.0, 0.0], [0, 0.5, 0.5]])
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        one = np.ones(5)
        pool, alpha, lam = problem.pair(np.arange(5), 2.0 * one, 3.0 * one)
        assert pool.tolist() == [1, 2, 4]  # neither the free arm nor its multiple
        assert alpha.tolist() == [1.0, 2.0, 2.0] and lam.tolist() == [3.0, 3.0, 3.0]
        signs = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
        assert problem.pair(np.arange(5), signs, signs)[1].tolist() == [0.0, 1.0, 1.0]
        assert problem.pair(np.arange(5), signs, signs)[2].tolist() == [0.0, 1.0, 1.0]
        for a, b in ((0 * one, one), (one, 0 * one), (INF * one, one), (one, INF * one), (-one, one), (one, -one)):
            assert problem.pair(np.arange(5), a, b) is None
            nothing = problem.proven(np.arange(5), a, b)
            assert (nothing.lower, nothing.upper, nothing.rounding) == (0.0, INF, INF)
        some = problem.proven(np.array([1, 2]), np.ones(2), np.ones(2))
        assert 0.0 < some.lower < some.upper < INF
        singular = problem.proven(np.array([1]), np.ones(1), np.ones(1))
        assert (singular.lower, singular.upper, singular.rounding) == (0.0, INF, INF)
        with pytest.raises(SolverFailed):
            problem.price(np.array([1]), problem.part(np.array([1])), np.ones(1), np.ones(1))
        with pytest.raises(SolverFailed):
            problem.price(np.array([1, 2]), problem.part(np.array([1, 2])), np.ones(2), np.zeros(2))


def test_nothing_to_explore_costs_nothing():
    with in_blocks():
        problem = streamed(np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))
        found = problem.proven(np.array([1]), np.ones(1), np.ones(1))
    assert problem.rank == 0 and (found.lower, found.upper, found.rounding) == (0.0, 0.0, 0.0)
    nothing = BoundsOverAll.nothing_to_explore()
    assert (nothing.lower, nothing.upper, nothing.gap, nothing.rounding, nothing.alive) == (0.0, 0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("bad", [INF, float("nan")])
@pytest.mark.parametrize("field", ["constraint", "price"])
def test_what_is_not_a_number_somewhere_proves_nothing(bad, field, monkeypatch):
    arms, theta = arms_of(0)
    with in_blocks():
        problem = streamed(arms, theta)
        scan = problem._scan
        monkeypatch.setattr(problem, "_scan", lambda *a: (dataclasses.replace(scan(*a)[0], **{field: bad}), True))
        pool = problem.spanning_arms()
        with pytest.raises(SolverFailed):
            problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))


# --- a pass


def task(**options):
    """Two columns that are their own quotient, gaps of 1, a frame in which g = |x|² and p = |x|²/4, nothing inside."""
    identity = QuotientMap(np.ones(2), Modulo(np.zeros((0, 2)), (), np.arange(2)), np.ones(2))
    seen = Frame(np.eye(2), np.full(2, 0.25), 1.0, 0.0, 0.0, 0.0, 1.0)
    made = {
        "quotient": identity, "frame": seen, "gaps": GapRule(), "scale": 1.0, "image": np.eye(2), "rough": 0.0,
        "hidden": 0.0, "free": np.zeros(0, dtype=np.int64), "inside_constraint": 0.0, "inside_price": 0.0, "keep": 100,
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
@pytest.mark.parametrize(("gap", "hidden"), [(1.0, 0.0), (1.0, 0.5), (0.75, 0.25)])
@pytest.mark.parametrize("rough", [0.0, 0.125])
def test_arms_are_skipped_only_where_every_error_leaves_them_inside(scale, gap, hidden, rough):
    """The least g and p inside for which an arm is not looked at closer, to a few units."""
    sure = rational(gap - hidden) * (1 - 8 * U)
    length = PAD + rational(rough)
    most_g = length**2 * PAD / (sure**2 * rational(scale))
    root = PAD / 2 + rational(0.5) * PAD * rational(rough)
    most_p = root**2 * PAD / sure
    options = {"gaps": GapRule(given=True), "scale": scale, "hidden": hidden, "rough": rough}
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


@pytest.mark.parametrize("gap", [0.5, 0.25])
def test_arms_whose_gap_may_be_nothing_are_never_skipped(gap):
    report = task(gaps=GapRule(given=True), hidden=0.5, inside_constraint=1e300, inside_price=1e300)(
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
    assert pricing._VIOLATION == 1e-12


# --- passes and solutions


def test_passes_skip_what_was_screened_out_unless_they_are_the_last():
    arms, theta = arms_of(1, 200)
    arms[:, 1:] /= 64.0
    arms[5], arms[6] = [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    gaps = 1.0 - arms[:, 0]
    with in_blocks():
        problem = streamed(arms, theta)
        pool = np.array([5, 6])
        first = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert first.complete and problem.alive is None
        second = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert second.complete and problem.alive is not None and problem.alive.sum() < 100
        assert problem.alive[5] and problem.alive[6] and second.bounds.alive == problem.alive.sum()
        third = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2))
        assert not third.complete
        last = problem.price(pool, problem.part(pool), np.ones(2), np.ones(2), last=True)
        assert last.complete
        problem.alive = np.ones(200, dtype=bool)
        assert problem.price(pool, problem.part(pool), np.ones(2), np.ones(2)).complete
        problem.alive = np.arange(200) % 2 == 0
        assert not problem.price(pool, problem.part(pool), np.ones(2), np.ones(2)).complete
    exact = referee(arms, gaps, problem.blocks.scale, full(200, pool, [1.0, 1.0]), full(200, pool, [1.0, 1.0]))
    assert rational(last.bounds.lower) <= exact[0] and exact[1] <= rational(last.bounds.upper)


def test_the_sharpest_screening_is_kept():
    arms, theta = arms_of(1, 200)
    with in_blocks():
        problem = streamed(arms, theta)
        pool = problem.spanning_arms()
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        kept = problem.screening
        problem.screening = dataclasses.replace(kept, kappa=1.0)
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        assert problem.screening.kappa == 1.0
        problem.screening = dataclasses.replace(kept, kappa=INF)
        problem.price(pool, problem.part(pool), np.ones(len(pool)), np.ones(len(pool)))
        assert problem.screening.kappa == kept.kappa


def test_a_solution_over_all_is_what_the_bounds_say():
    arms = np.array([[1.0, 0, 0], [0.5, 1.0, 0], [0, 0, 1.0], [0.5, 0.0, 0.0], [0, 0.25, 0.25]])
    with in_blocks():
        problem = streamed(arms, np.array([1.0, 0, 0]))
        pool = np.array([1, 2])
        made = BoundsOverAll(
            5.0, 4.0, np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.ones(2), np.ones(2), 0.0, pool, np.array([1, 2]), 3
        )
        for tol, status, claimed in ((0.5, "CERTIFIED", (4.0, 5.0)), (0.1, "INACCURATE", (4.0, 5.0))):
            found = verdict.certified_over_all(problem, made, tol, None, {"n": 1})
            assert found.status.name == status and (found.lower, found.upper) == pytest.approx(claimed, rel=1e-11)
            assert found.allocation.tolist() == [INF, 2.0, 2.0, 0.0, 0.0]
            assert found.multipliers.tolist() == [0.0, 3.0, 1.0, 0.0, 0.0]
            assert found.binding.tolist() == [1, 2] and found.tol == tol and found.stats["n"] == 1
            assert found.method == "active-set" and found.coordinates == problem.coordinates == (1, 2)
            # room only where tol allows it
            assert (found.lower < 4.0) is (found.upper > 5.0) is (status == "CERTIFIED")
        singular = verdict.certified_over_all(problem, dataclasses.replace(made, upper=INF), 0.5, None, {})
        assert singular.status is ao.Status.FAILED and "singular" in singular.stats["reason"]
        nothing = verdict.certified_over_all(problem, BoundsOverAll.nothing_to_explore(), 0.5, None, {})
        assert (nothing.lower, nothing.upper, nothing.status.name) == (0.0, 0.0, "CERTIFIED")


def test_what_is_assumed_of_arms_over_blocks_is_said():
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 4))
    with in_blocks():
        problem = streamed(arms, rng.normal(size=4))
        found = ao.solve(problem.program)
    assert problem.rank == 1 and problem.assumptions and found.status is ao.Status.CONDITIONAL
    assert found.assumptions == problem.assumptions == found.verify().assumptions
