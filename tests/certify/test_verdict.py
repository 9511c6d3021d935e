"""From bounds to a status: which status bounds deserve, which way every number is rounded, and by how much, against rationals.

Ball arithmetic is played by a stand-in where the question is what is made of its answers.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, solved, weighted

import allocopt as ao
from allocopt.certify import verdict
from allocopt.certify.canonical import Bounds
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import reduce
from allocopt.linear.assumptions import Assumption

INF = float("inf")
TIE = Assumption("tie", (0,), Fraction(1, 2**50), "a tie")


def program(**options):
    """Two orthogonal arms that are their own targets: α = (1, 1) costs 2, without any rounding."""
    return ao.AllocationProgram(
        **{"features": np.eye(2), "costs": [1.0, 1.0], "targets": np.eye(2), "radii": [1.0, 1.0], **options}
    )


def bounds(lower, upper, rounding=0.0, k=2, m=2, **more):
    made = Bounds(upper, lower, np.ones(k), np.ones(m), np.ones(m), np.ones(k), rounding)
    return dataclasses.replace(made, **more)


def pad(n):
    return 1 + gamma(4 * n + 64)


def near(value, exact, ulps=8):
    return abs(rational(value) - exact) <= ulps * U * abs(exact)


# --- status


def test_the_numbers_of_the_verdict():
    assert Fraction(verdict._STRICTLY) == 1 - Fraction(1, 2**48)
    assert verdict._MOST_IN_BALLS == 1e4
    assert verdict._REPAIRS == (1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4)
    assert verdict._HALVINGS == 5


@pytest.mark.parametrize(
    ("lower", "upper", "tol", "status"),
    [
        (1.0, 1.0, 1e-8, "CERTIFIED"),
        (0.0, 0.0, 1e-8, "CERTIFIED"),
        (1.0, 1.0, 0.0, "CERTIFIED"),
        (1.0, 1.0 + 2.0**-20, 2.0**-20, "INACCURATE"),  # within tol in doubles, with nothing to spare
        (1.0, 1.0 + 2.0**-20, 2.0**-20 * (1 + 2.0**-49), "INACCURATE"),
        (1.0, 1.0 + 2.0**-20, 2.0**-20 * (1 + 2.0**-48), "CERTIFIED"),
        (1.0, 1.5, 0.75, "CERTIFIED"),
        (1.0, 3.0, 1.0, "INACCURATE"),
        (1.0, 0.5, 1e-8, "INACCURATE"),  # bounds that contradict each other certify nothing
        (1.0, 1.0 - 2.0**-40, 1e-8, "INACCURATE"),
        (0.0, 1.0, 1e-8, "INACCURATE"),
        (0.0, 1.0, 1e300, "INACCURATE"),
        (1.0, INF, 1e-8, "FAILED"),
        (0.0, INF, 1e-8, "FAILED"),
        (1.0, float("nan"), 1e-8, "FAILED"),
    ],
)
def test_the_status_that_bounds_deserve(lower, upper, tol, status):
    for assumptions in ((), (TIE,)):
        found, stats = verdict._status(bounds(lower, upper, 0.125), tol, None, True, {"steps": 3}, assumptions)
        assert found.name == ("CONDITIONAL" if status == "CERTIFIED" and assumptions else status)
        assert stats["steps"] == 3 and stats["rounding"] == 0.125
        assert ("reason" in stats) is (status in ("INACCURATE", "FAILED"))


def test_reasons_are_those_of_the_method_or_of_the_bounds():
    def why(upper, reason, scalable):
        return verdict._status(bounds(1.0, upper), 1e-8, reason, scalable, {}, ())[1]["reason"]

    assert "singular" in why(INF, None, True)
    assert "barely" in why(INF, None, False)
    assert "gap of 1 " in why(2.0, None, True)
    for upper in (2.0, INF):
        assert why(upper, "time is over", True) == "time is over"


@pytest.mark.parametrize("rounding", [0.0, 2.0**-30, 2.0**-10])
def test_bounds_are_given_room_where_the_tolerance_allows_it(rounding):
    exact = Fraction(rounding) / 2 + Fraction(4e-13)
    wider = verdict._slightly_wider(bounds(1.0, 1.0 + 2.0**-20, rounding), 1e-2)
    assert near(wider.lower, 1 - exact) and near(wider.upper, (1 + Fraction(1, 2**20)) * (1 + exact))
    tight = bounds(1.0, 1.0 + 2.0**-20, rounding)
    assert verdict._slightly_wider(tight, 2.0**-20) is tight
    # what is as wide as tol allows is as wide as the status allows
    widening = float(verdict._slightly_wider(bounds(1.0, 1.0, rounding), 1e-2).gap)
    assert verdict._slightly_wider(bounds(1.0, 1.0, rounding), widening).gap == 0.0
    tol = widening / verdict._STRICTLY * (1 + 2.0**-51)
    assert verdict._slightly_wider(bounds(1.0, 1.0, rounding), tol).gap == widening


def test_bounds_within_tol_get_room_and_others_a_second_look(monkeypatch):
    reduction = reduce(program())
    called = []
    monkeypatch.setattr(verdict, "in_balls", lambda *a: called.append(a) or (2.0, 2.0, 64))
    good = verdict.certified_solution(reduction, bounds(2.0, 2.0 + 1e-9), "m", 1e-8, None, {"n": 1})
    assert not called
    assert good.status is ao.Status.CERTIFIED and good.method == "m" and good.tol == 1e-8 and good.stats["n"] == 1
    assert 0 < 2.0 - good.lower < 1e-11 and 0 < good.upper - (2.0 + 1e-9) < 1e-11
    for upper in (2.1, INF, float("nan")):
        sharper = verdict.certified_solution(reduction, bounds(2.0, upper), "m", 1e-8, None, {})
        assert sharper.status is ao.Status.CERTIFIED and sharper.lower == 2.0
    assert len(called) == 6
    bad = verdict.certified_solution(reduction, bounds(1.0, 2.0, multipliers=np.zeros(2)), "m", 1e-8, "why", {})
    assert bad.status is ao.Status.INACCURATE and bad.stats["reason"] == "why" and len(called) == 6


# --- what a solution tells beside its bounds


def told(bound, reduction):
    return verdict.solution_as_given(
        reduction, bound, np.ones(2), np.ones(2), "m", 1e-8, None, {}
    ).binding.tolist()  # fmt: skip


@pytest.mark.parametrize("upper", [None, [4.0, 4.0]])
def test_binding_are_multipliers_and_constraints_that_count(upper):
    reduction = reduce(program(upper=upper))

    def binding(lam, g):
        return told(bounds(2.0, 2.0, multipliers=np.array(lam), constraints=np.array(g)), reduction)

    assert binding([1.0, 0.0], [1.0, 0.5]) == [0]
    assert binding([0.0, 1.0], [0.5, 0.5]) == ([1] if upper else [0, 1])
    assert binding([1.0, 1e-6], [1.0, 0.5]) == [0]
    assert binding([1.0, 2e-6], [1.0, 0.5]) == [0, 1]
    assert binding([1.0, 0.0], [1.0, 1.0 - 0.5e-6]) == [0, 1]
    assert binding([1.0, 0.0], [1.0, 1.0 - 2e-6]) == [0]
    assert binding([1.0, 1.0], [1.0, 0.0]) == [0]
    assert binding([1e-9, 0.0], [0.5, 1.0]) == [0, 1]
    assert binding([0.0, 0.0], [1.0, 0.5]) == [0]
    assert binding([0.0, 0.0], [0.25, 0.125]) == ([] if upper else [0])
    assert binding([0.0, 0.0], [2.0, 1.0]) == ([0, 1] if upper else [0])


def test_binding_are_arms_where_targets_belong_to_arms():
    reduction = reduce(ao.programs.regret(ao.LinearBandit([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 0])))
    made = verdict.solution_as_given(
        reduction, bounds(2.0, 2.0, constraints=np.array([0.5, 1.0]), multipliers=np.array([0.0, 1.0])), np.ones(3),
        np.ones(3), "m", 1e-8, None, {},
    )  # fmt: skip
    assert made.binding.tolist() == [2]
    assert made.coordinates == reduction.quotient.coordinates == (1, 2)
    assert made.assumptions == ()


def test_what_could_not_be_decided_claims_nothing():
    some = program(costs=[0.0, 1.0], lower=[0.0, 3.0])
    found = verdict.undecided(some, 1e-8, "because")
    assert (found.lower, found.upper, found.status.name) == (0.0, INF, "FAILED")
    assert found.allocation.tolist() == [INF, 3.0] and found.multipliers.tolist() == [0.0, 0.0]
    assert found.stats["reason"] == "because" and found.tol == 1e-8 and not len(found.binding)
    assert found.stats["seconds"] == 0.0
    capped = verdict.undecided(program(costs=[0.0, 1.0], lower=[2.0, 3.0], upper=[5.0, INF]), 1e-8, "because")
    assert capped.allocation.tolist() == [2.0, 3.0]


# --- balls, by a stand-in


def test_only_small_programs_are_for_balls():
    assert verdict.fits_balls(reduce(program()))
    for k, r, fits in ((2500, 2, True), (2501, 2, False), (1111, 3, True), (1112, 3, False)):
        rows = np.ones((k, r))
        rows[:r] -= np.eye(r)
        p = ao.AllocationProgram(rows, np.ones(k), np.eye(r), np.ones(r))
        assert verdict.fits_balls(reduce(p)) is fits


class Balls:
    """Plays `in_balls`: remembers what it was asked, and answers by a rule."""

    def __init__(self, monkeypatch, rule):
        self.asked = []
        self.rule = rule
        monkeypatch.setattr(verdict, "in_balls", self)

    def __call__(self, reduction, allocation, multipliers, precision=None, row_multipliers=None):
        self.asked.append((allocation.copy(), multipliers.copy()))
        return (*self.rule(allocation, multipliers), 64)


def test_what_may_be_scaled_is_scaled_to_its_upper_bound_and_a_little_more(monkeypatch):
    reduction = reduce(program())
    doubt = rational(reduction.canonical.bound_error)
    assert doubt == 8 * U
    balls = Balls(monkeypatch, lambda a, m: (2.0, 3.0))
    given = bounds(1.0, 9.0, 0.5)
    found, allocation, multipliers = verdict._sharper(reduction, given, np.array([1.0, 1.0]), np.array([3.0, 1.0]))
    exact = Fraction(3, 2) * (2 * pad(2) - 1 + 2 * doubt)
    assert all(near(x, exact, 4) for x in allocation)
    assert multipliers.tolist() == [1.5, 0.5]
    assert [x.tolist() for x in balls.asked[1]] == [allocation.tolist(), multipliers.tolist()]
    assert found.lower == 2.0 and near(found.upper, 3 * (2 * pad(2) - 1 + 4 * doubt), 4)
    assert found.rounding == 0.5


@pytest.mark.parametrize("size", [2.0**-20, 2.0**20])
def test_small_and_large_values_are_scaled_alike(size, monkeypatch):
    Balls(monkeypatch, lambda a, m: (2.0 * size, 3.0 * size))
    reduction = reduce(program(radii=[1.0 / size, 1.0 / size]))
    found, allocation, multipliers = verdict._sharper(
        reduction, bounds(size, INF), np.full(2, size), np.full(2, 4 * size)
    )
    assert near(allocation[0], Fraction(3, 2) * rational(size), 512) and allocation[0] > 1.5 * size
    assert multipliers.tolist() == [size, size] and found.lower == 2.0 * size
    assert (
        verdict._sharper(reduction, bounds(size, INF), np.full(2, size), np.array([size, 0.0]))[0].lower == 2.0 * size
    )
    assert (
        verdict._sharper(reduction, bounds(size, INF), np.array([size, 0.0]), np.full(2, size))[0].lower == 2.0 * size
    )


def test_what_proves_nothing_is_not_scaled(monkeypatch):
    reduction = reduce(program())
    one = np.ones(2)
    Balls(monkeypatch, lambda a, m: (1.0, INF))
    found, allocation, multipliers = verdict._sharper(reduction, bounds(0.5, 9.0), one, one)
    assert (found.lower, found.upper) == (1.0, INF) and allocation is one and multipliers is one
    Balls(monkeypatch, lambda a, m: (0.0, 2.0))
    found, allocation, multipliers = verdict._sharper(reduction, bounds(0.5, 9.0), one, 3.0 * one)
    assert found.lower == 0.0 and found.upper > 2.0 and multipliers.tolist() == [3.0, 3.0]
    balls = Balls(monkeypatch, lambda a, m: (1.0, 2.0))
    for a, m in ((0.0 * one, one), (one, 0.0 * one), (np.full(2, INF), one)):
        assert verdict._sharper(reduction, given := bounds(0.5, 9.0), a, m) == (given, a, m)
    monkeypatch.setattr(verdict, "fits_balls", lambda _: False)
    assert verdict._sharper(reduction, given, one, one) == (given, one, one)
    assert not balls.asked


def test_free_arms_stay_free_when_others_are_scaled(monkeypatch):
    reduction = reduce(ao.AllocationProgram(np.eye(3), [0.0, 1.0, 1.0], np.eye(3)[1:], [1.0, 1.0]))
    Balls(monkeypatch, lambda a, m: (2.0, 4.0))
    allocation = verdict._sharper(reduction, bounds(0.5, 9.0), np.array([INF, 1.0, 1.0]), np.ones(2))[1]
    assert allocation[0] == INF and (allocation[1:] >= 2.0).all() and (allocation[1:] < 2.0 + 1e-12).all()


def test_costs_of_nothing_are_not_divided_by(monkeypatch):
    reduction = reduce(ao.AllocationProgram(np.eye(2), [0.0, 1.0], np.eye(2), [1.0, 1.0]))
    assert reduction.canonical.scalable
    Balls(monkeypatch, lambda a, m: (1.0, 2.0))
    with np.errstate(all="raise"):
        found, allocation, _ = verdict._sharper(reduction, bounds(0.5, 9.0), np.array([1.0, 0.0]), np.ones(2))
    assert allocation.tolist() == [1.0, 0.0] and (found.lower, found.upper) == (1.0, 2.0)


def test_what_is_bounded_is_taken_as_it_is_or_repaired(monkeypatch):
    reduction = reduce(program(upper=[1.5, 4.0]))
    one = np.ones(2)
    balls = Balls(monkeypatch, lambda a, m: (1.0, 2.0))
    found, allocation, multipliers = verdict._sharper(reduction, bounds(0.5, 9.0), one, one)
    assert (found.lower, found.upper) == (1.0, 2.0) and allocation is one and multipliers is one
    assert len(balls.asked) == 1
    Balls(monkeypatch, lambda a, m: (1.25 if a[0] > 1 else 1.0, float(a.sum()) if a[0] >= 1 + 3e-9 else INF))
    found, allocation, multipliers = verdict._sharper(reduction, bounds(0.5, 9.0), one, one)
    assert found.lower == 1.25 and found.upper == allocation.sum() and multipliers is one
    assert 1 + 3e-9 <= allocation[0] <= 1 + 4e-9


@pytest.mark.parametrize("need", [3e-15, 5e-13, 3e-11, 5e-10, 5e-9, 5e-7, 5e-5])
def test_repairs_enlarge_by_little_more_than_needed(need, monkeypatch):
    reduction = reduce(ao.AllocationProgram(np.eye(3), [0.0, 1.0, 1.0], np.eye(3), [1.0] * 3, upper=[INF, 1.0, 9.0]))
    start = np.array([INF, 1.0, 1.0])
    balls = Balls(monkeypatch, lambda a, m: (0.75, float(a[1:].sum()) if a[2] >= 1.0 + need else INF))
    lower, upper, allocation = verdict._repaired(reduction, start, np.ones(3), 0.5)
    assert lower == 0.75 and upper == float(allocation[1:].sum())
    assert allocation[0] == INF and allocation[1] == 1.0  # at its bound
    before = max((g for g in (0.0, *verdict._REPAIRS) if g < need), default=0.0)
    after = min(g for g in verdict._REPAIRS if g >= need)
    assert 1.0 + need <= allocation[2] <= 1.0 + need + (after - before) / 2**verdict._HALVINGS * 1.01 + 4e-16
    assert len(balls.asked) == 1 + verdict._REPAIRS.index(after) + verdict._HALVINGS
    assert start.tolist() == [INF, 1.0, 1.0]


def test_what_cannot_be_repaired_is_not_claimed(monkeypatch):
    reduction = reduce(program(upper=[1.5, 4.0]))
    Balls(monkeypatch, lambda a, m: (0.75, INF))
    start = np.ones(2)
    lower, upper, allocation = verdict._repaired(reduction, start, np.ones(2), 0.5)
    assert (lower, upper) == (0.5, INF) and allocation is start


# --- nothing to decide


def known(amount, **options):
    """Arms that must be played so often; the second target is three times longer than the first."""
    return program(lower=[amount, amount], upper=[amount, amount], **options)


def test_what_is_fixed_is_the_answer_where_nothing_else_is_left():
    for p, left in (
        (program(), False),
        (program(upper=[4.0, 4.0]), False),
        (known(1.0 + 1e-9), True),  # no variables
        (known(1.0), True),  # no variables, though doubles cannot show that it is enough
        (program(costs=[0.0, 0.0]), True),  # neither
        (program(costs=[0.0, 1.0], targets=[[1.0, 0.0]], radii=[1.0]), True),  # no targets
        (program(lower=[1.0 + 1e-9, 1.0 + 1e-9]), True),  # met
        (program(lower=[1.0, 0.5]), False),
        (program(lower=[1.0 + 1e-9, 0.0], targets=[[1.0, 0.0]], radii=[1.0]), True),
        (program(lower=[0.5, 0.0], targets=[[1.0, 0.0]], radii=[1.0]), False),
        (program(lower=[2.0, 0.0]), False),
    ):
        assert verdict.nothing_left(reduce(p)) is left, p


def test_what_is_fixed_may_span_less_than_all_arms_do():
    """The target is met by the arm that is fixed; the other one is needed for nothing."""
    met = program(lower=[2.0, 0.0], targets=[[1.0, 0.0]], radii=[1.0])
    assert verdict._met(reduce(met))
    assert not verdict._met(reduce(program(lower=[0.5, 0.0], targets=[[1.0, 0.0]], radii=[1.0])))
    assert not verdict._met(reduce(program(lower=[2.0, 0.0])))  # the second target is outside
    assert not verdict._met(reduce(program()))
    free = ao.AllocationProgram(np.eye(3), [0, 1, 1], [[0.0, 1.0, 0.0]], [1.0], lower=[0.0, 2.0, 0.0])
    assert verdict._met(reduce(free))
    zero = ao.AllocationProgram(np.eye(2), [0.0, 1.0], [[1.0, 0.0]], [1.0], lower=[0.0, 1.0])
    assert verdict._met(reduce(zero))  # no targets are left
    # what is fixed spans the target only if what differs in the last digits is taken as the same: not for sure
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + 2.0**-50, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    hair = ao.AllocationProgram(rows, np.ones(4), [[1.0, 1.0, 0.0]], [1.0], lower=[2.0, 2.0, 0.0, 0.0])
    assert reduce(hair).assumptions == ()
    assert not verdict._met(reduce(hair))
    assert reduce(dataclasses.replace(hair, upper=np.array([2.0, 2.0, 0.0, 0.0]))).assumptions
    assert ao.solve(hair).status is not ao.Status.CONDITIONAL


@pytest.mark.parametrize("amount", [1.0 + 1e-9, 3.0])
def test_the_cost_of_what_is_fixed_is_rounded_both_ways(amount):
    p = known(amount, costs=[1.0, 0.1])
    reduction = reduce(p)
    found = verdict.nothing_to_decide(reduction, 0.0, {"n": 1})  # with a tolerance of 0 no widening is added
    doubt = pad(2 + 2) + 4 * rational(reduction.canonical.bound_error)
    exact = rational(reduction.canonical.offset)
    assert near(found.upper, exact * doubt, 3) and near(found.lower, exact / doubt, 3)
    cost = rational(amount) * (1 + rational(0.1))
    assert rational(found.lower) < cost < rational(found.upper)
    assert found.method == "closed-form" and found.stats["n"] == 1 and found.stats["rounding"] == 0.0
    assert found.allocation.tolist() == [amount, amount] and not found.multipliers.any()
    assert verdict.nothing_to_decide(reduction, 1e-8, {}).status is ao.Status.CERTIFIED


def test_what_is_fixed_and_not_enough_is_not_an_answer():
    found = verdict.nothing_to_decide(reduce(known(1.0)), 1e-8, {})  # enough exactly, but doubles cannot show it
    assert found.status is ao.Status.FAILED and found.upper == INF and 2.0 * (1 - 1e-12) < found.lower < 2.0


# --- pairs from elsewhere


@pytest.fixture
def no_balls(monkeypatch):
    monkeypatch.setattr(verdict, "fits_balls", lambda _: False)


def again(p, allocation, multipliers=(1.0, 1.0)):
    return verdict.recertify(p, np.array(allocation), np.array(multipliers), "m", 1e-8, {"n": 1})


def test_pairs_are_certified_just_as_they_are(no_balls):
    for allocation in ([1.0, 1.0], [2.0, 2.0], [0.25, 0.25], [1.0, 3.0]):
        found = again(program(), allocation)
        assert found.allocation.tolist() == allocation and found.multipliers.tolist() == [1.0, 1.0]
        assert found.method == "m" and found.stats["n"] == 1 and found.tol == 1e-8
        plain = evaluate(reduce(program()).canonical, np.array(allocation), np.ones(2))
        up = pad(2 + 2) + 8 * U
        assert near(found.upper, rational(plain.upper) * up, 4) and found.lower == plain.lower
        assert rational(found.lower) <= 2 <= rational(found.upper)


def test_arms_that_tell_nothing_cost_all_the_same(no_balls):
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    p = program(features=rows, costs=[1.0, 1.0, 4.0])
    found = again(p, [1.0, 1.0, 1.0])
    plain = evaluate(reduce(p).canonical, np.ones(2), np.ones(2))
    assert near(found.upper, rational(plain.upper) * 3 * (pad(2 + 3) + 8 * U), 4)
    assert again(p, [0.0, 0.0, 1.0]).upper == INF
    free = ao.AllocationProgram(rows, [0.0, 1.0, 4.0], [[0.0, 1.0]], [1.0])
    found = again(free, [INF, 1.0, 1.0], [1.0])
    plain = evaluate(reduce(free).canonical, np.ones(1), np.ones(1))
    assert near(found.upper, rational(plain.upper) * 5 * (pad(1 + 2) + 8 * U), 4)


def feasible(p, allocation):
    matrix = weighted(rational(p.features), rational(allocation), p.dim)
    return all(dot(t, solved(matrix, t)) <= rho for t, rho in zip(rational(p.targets), rational(p.radii), strict=True))


def test_bounded_pairs_must_be_feasible_as_they_are(no_balls):
    p = program(lower=[0.0, 0.5], upper=[1.5, 4.0])
    good = [1.0 + 1e-9, 2.0]
    assert feasible(p, good)
    found = again(p, good)
    cost = sum(rational(good))
    assert near(found.upper, cost * (pad(2 + 2) + 8 * U), 4)
    assert rational(found.upper) >= cost and found.lower <= 2.0
    assert np.isfinite(again(p, [1.5, 2.0]).upper) and np.isfinite(again(p, [1.25, 4.0]).upper)  # at a bound
    low = program(lower=[1.25, 0.0], upper=[1.5, 4.0])
    assert np.isfinite(again(low, [1.25, 2.0]).upper)
    for bad in ([1.0 - 1e-9, 2.0], [2.0, 2.0], [1.25, 0.25], [1.25, 5.0], [0.0, 1.0], [1.0, 1.0]):
        assert again(p, bad).upper == INF, bad
    # a bound on an arm that tells nothing
    p = program(features=[[1, 0], [0, 1], [0, 0]], costs=[1.0, 1.0, 1.0], upper=[INF, INF, 1.0])
    assert reduce(p).canonical.scalable
    assert again(p, [0.5, 0.5, 0.0]).upper == INF  # though twice as much would do
    assert again(p, [2.0, 2.0, 2.0]).upper == INF
    assert near(again(p, [2.0, 2.0, 1.0]).upper, 5 * (pad(2 + 3) + 8 * U), 4)


def test_balls_decide_where_doubles_do_not(monkeypatch):
    balls = Balls(monkeypatch, lambda a, m: (1.5, 2.5))
    found = again(program(), [1.0, 1.0])
    assert not balls.asked and found.status is ao.Status.CERTIFIED
    found = again(program(), [1.0, 3.0])
    assert [x.tolist() for x in balls.asked[0]] == [[1.0, 3.0], [1.0, 1.0]]
    assert (found.lower, found.upper, found.status.name) == (1.5, 2.5, "INACCURATE")
    assert found.allocation.tolist() == [1.0, 3.0]


def test_nothing_is_asked_of_pairs_where_nothing_is_left():
    p = known(2.0)
    found = again(p, [0.25, 0.25])
    assert found.allocation.tolist() == [2.0, 2.0] and found.method == "closed-form"
    assert found.status is ao.Status.CERTIFIED and found.stats["n"] == 1
