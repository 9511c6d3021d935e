"""Ball arithmetic, feasibility and statuses against rationals."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from exactly import dot, rational, solved, weighted
from flint import arb, ctx, fmpq

import allocopt as ao
from allocopt.base.errors import Infeasible, InvalidProof
from allocopt.certify import reduction
from allocopt.certify.canonical import Bounds
from allocopt.certify.exact_arithmetic import balls
from allocopt.certify.exact_arithmetic.balls import interval_in_balls
from allocopt.certify.limits import feasibility
from allocopt.certify.limits.feasibility import proven_infeasible
from allocopt.certify.reduction import reduce
from allocopt.certify.verdict import _status
from allocopt.linear.assumptions import Assumption
from allocopt.linear.span import free_span

THIRD = Fraction(1, 3)


def plain(features, costs, targets, radii, lower=None, upper=None):
    return ao.AllocationProgram(features, costs, targets, radii, lower, upper)


def small_programs():
    """Programs without free arms, so that they are their own quotient, and a pair for each."""
    rng = np.random.default_rng(1)
    for turn in range(24):
        r, k, m = 1 + turn % 3, 5, 1 + turn % 4
        features, targets = rng.integers(-9, 10, size=(k, r)) / 7.0, rng.integers(-9, 10, size=(m, r)) / 7.0
        features[features.any(axis=1) == 0] = 1.0
        features[:r] += 3.0 * np.eye(r)
        targets[targets.any(axis=1) == 0] = 1.0
        costs = rng.uniform(0.1, 2.0, size=k)
        alpha, lam = rng.uniform(1.0, 2.0, size=k), rng.uniform(0.0, 2.0, size=m)
        lower = upper = None
        if turn % 2:  # lower bounds alone, upper bounds alone, both
            alpha = alpha * 30.0
            if turn % 6 != 1:
                lower = rng.integers(0, 2, size=k) * rng.uniform(0.0, 0.01, size=k)
                lower[:2] = 0.0, 0.01
            if turn % 6 != 5:
                upper = np.where(rng.uniform(size=k) < 0.7, alpha * rng.uniform(1.0, 2.0, size=k), np.inf)
                upper[:2] = np.inf, alpha[1] * 1.5
        if turn % 6 == 3:
            costs[0], upper[0] = 0.0, alpha[0]
        if turn % 5 == 4:
            lam[0] = 0.0
        yield plain(features, costs, targets, rng.uniform(0.5, 2.0, size=m), lower, upper), alpha, lam


def exact_bounds(program, alpha, lam):
    """Both bounds for rows that are all their own quotient: the definition, in rationals."""
    rows, targets = rational(program.features), rational(program.targets)
    costs, radii, lower = rational(program.costs), rational(program.radii), rational(program.lower)
    upper = [None if np.isinf(u) else rational(u) for u in program.upper]
    a, weights = rational(alpha), rational(lam)
    cost = dot(costs, a)
    bounded = any(u is not None for u in upper) or any(lower)
    matrix = weighted(rows, a, len(rows[0]))
    directions = [solved(matrix, t) for t in targets]
    worst = max(dot(t, y) / rho for t, y, rho in zip(targets, directions, radii, strict=True))
    allowed = all(x >= low and (u is None or x <= u) for x, low, u in zip(a, lower, upper, strict=True))
    most = (cost if worst <= 1 and allowed else None) if bounded else cost * worst
    least = dot(costs, lower)
    on = [j for j, w in enumerate(weights) if w > 0]
    if not on:
        return least, most
    strength = sum(weights[j] * dot(targets[j], directions[j]) / radii[j] for j in on)
    prices = [sum(weights[j] * dot(row, directions[j]) ** 2 / radii[j] for j in on) for row in rows]
    slope = strength**2 / sum(weights) - sum(low * p for low, p in zip(lower, prices, strict=True))
    best = Fraction(0)
    for q in [c / p for c, p in zip(costs, prices, strict=True) if p > 0]:
        gained = q * slope
        for p, c, u, low in zip(prices, costs, upper, lower, strict=True):
            if q * p > c:
                if u is None:
                    break
                gained -= (u - low) * (q * p - c)
        else:
            best = max(best, gained)
    return least + best, most


def test_balls_enclose_and_are_narrow():
    seen = set()
    for program, alpha, lam in small_programs():
        lower, upper = exact_bounds(program, alpha, lam)
        for precision in (None, 64, 200):
            low, high, bits = interval_in_balls(reduce(program), alpha, lam, precision)
            assert bits == (precision or 128)
            assert rational(low) <= lower
            assert low >= float(lower) * (1 - 1e-12)
            if upper is None:
                assert high == np.inf
            else:
                assert rational(high) >= upper
                assert high <= float(upper) * (1 + 1e-12)
            seen.add((upper is None, lower > 0))
    assert len(seen) >= 2


def one_direction(costs, lower, upper, radius):
    """Arms that are all the same, of different costs: the dual pays for every arm that is cheaper than the best scale."""
    return plain(np.ones((len(costs), 1)), costs, [[1.0]], [radius], lower, upper), np.ones(1)


@pytest.mark.parametrize(
    ("costs", "lower", "upper", "value"),
    [
        ([1.0, 3.0], None, [1.0, np.inf], 13),
        ([1.0, 3.0], [0.0, 0.0], [0.75, 9.0], Fraction(27, 2)),
        ([1.0, 3.0], [0.5, 0.0], [1.5, np.inf], 12),
        ([1.0, 4.0], [1.0, 0.0], [1.5, np.inf], 1 + Fraction(1, 2) + 14),
        ([1.0, 4.0, 8.0], [1.0, 1.0, 1.0], [1.5, 1.75, np.inf], Fraction(3, 2) + 7 + 14),
        ([4.0, 1.0], [1.0, 0.0], None, 4 + 4),
        ([0.0, 2.0], None, [3.0, np.inf], 4),
    ],
)
def test_what_is_over_the_bounds_is_paid_for(costs, lower, upper, value):
    """α fills the cheap arms first: 5 are needed in all."""
    program, lam = one_direction(costs, lower, upper, 0.2)
    least = np.zeros(len(costs)) if lower is None else np.array(lower)
    most = np.full(len(costs), np.inf) if upper is None else np.array(upper)
    alpha = least.copy()
    for i in np.argsort(costs):
        alpha[i] += min(most[i] - alpha[i], 5.0 - alpha.sum())
    exact, _ = exact_bounds(program, alpha, lam)
    low, high, _ = interval_in_balls(reduce(program), alpha * (1 + 1e-15), lam)
    assert float(exact) == pytest.approx(float(value), rel=1e-12)
    assert rational(low) <= exact and low >= float(exact) * (1 - 1e-13)
    assert high == np.inf or high >= float(exact)
    doubled, _, _ = interval_in_balls(reduce(program), 1.5 * alpha, lam)  # any α will do for the lower bound
    assert rational(doubled) <= exact_bounds(program, 1.5 * alpha, lam)[0]


def test_constraints_that_are_just_met_are_met():
    program = plain(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0], None, [3.0, 3.0])
    assert interval_in_balls(reduce(program), np.ones(2), np.ones(2))[1] == 2.0
    assert interval_in_balls(reduce(program), np.array([1.0, np.nextafter(1.0, 0.0)]), np.ones(2))[1] == np.inf


def test_targets_that_are_known_cost_what_is_fixed():
    program = plain([[1.0, 0.0], [0.0, 1.0]], [0.0, 3.0], [[1.0, 0.0]], [1.0], [0.0, 2.0], [np.inf, 4.0])
    assert interval_in_balls(reduce(program), np.array([1.0, 2.0]), np.ones(1))[:2] == (6.0, 6.0)


def test_lower_bounds_of_one_are_lower_bounds_too():
    program = plain(np.ones((2, 1)), [1.0, 1.0], [[1.0]], [0.5], [1.0, 0.0])
    for alpha in ([1.0, 1.0], [1.0, 2.0], [3.0, 1.0]):
        low, _, _ = interval_in_balls(reduce(program), np.array(alpha), np.ones(1))
        exact = exact_bounds(program, np.array(alpha), np.ones(1))[0]
        assert rational(low) <= exact and low >= float(exact) * (1 - 1e-13)


def test_precision_is_left_as_it_was():
    before = ctx.prec
    program, alpha, lam = next(small_programs())
    interval_in_balls(reduce(program), alpha, lam, 300)
    assert ctx.prec == before


def test_precision_grows_until_the_balls_are_narrow(monkeypatch):
    monkeypatch.setattr(balls, "_PRECISIONS", (8, 24, 48, 96, 200))
    for program, alpha, lam in small_programs():
        low, high, bits = interval_in_balls(reduce(program), alpha, lam)
        exact_low, exact_high = exact_bounds(program, alpha, lam)
        assert rational(low) <= exact_low
        if exact_high is None:  # an infinite bound is as good in few bits as in many
            assert (high, bits) == (np.inf, 200)
        else:
            assert bits in (48, 96)
            assert exact_high <= rational(high) <= exact_high * (1 + Fraction(1, 10**14))
        for few in (8, 24):
            low, high, _ = interval_in_balls(reduce(program), alpha, lam, few)
            assert rational(low) <= exact_low
            assert high == np.inf or rational(high) >= exact_high


def test_nothing_is_proven_where_nothing_is_known():
    program = plain(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0])
    found = reduce(program)
    assert interval_in_balls(found, np.array([1.0, 0.0]), np.ones(2))[:2] == (0.0, np.inf)
    low, high, _ = interval_in_balls(found, np.ones(2), np.zeros(2))
    assert (low, high) == (0.0, 2.0)
    fixed = plain(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0], [0.5, 0.5], [3.0, 3.0])
    assert interval_in_balls(reduce(fixed), np.array([0.5, 1.0]), np.ones(2))[1] == np.inf  # not feasible
    assert interval_in_balls(reduce(fixed), np.array([0.25, 8.0]), np.ones(2))[1] == np.inf  # at its bounds it is not
    assert interval_in_balls(reduce(fixed), np.array([4.0, 2.0]), np.ones(2))[1] == 5.0  # at its bound it is
    assert interval_in_balls(reduce(fixed), np.array([3.0, 2.0]), np.ones(2))[1] == 5.0
    half = plain(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0], [0.5, 0.0], [3.0, 3.0])
    # singular: the lower bounds' cost
    assert interval_in_balls(reduce(half), np.array([3.0, 0.0]), np.ones(2))[0] == 0.5


def test_ends_are_rounded_outwards(monkeypatch):
    monkeypatch.setattr(ctx, "prec", 128)
    third = arb(fmpq(1, 3))
    assert Fraction(balls._round_down(third)) < THIRD < Fraction(balls._round_up(third))
    assert np.nextafter(balls._round_down(third), 1.0) == balls._round_up(third)
    assert balls._round_down(arb(2)) == balls._round_up(arb(2)) == 2.0
    for number in (fmpq(10**30 + 1, 3), fmpq(-1, 7), fmpq(1, 10**40)):
        exact = Fraction(int(number.p), int(number.q))
        assert Fraction(balls._round_down(arb(number))) < exact < Fraction(balls._round_up(arb(number)))
    wide = arb(1, 0.25)
    assert balls._round_down(wide) <= 0.75 and balls._round_up(wide) >= 1.25
    assert balls._round_down(arb("nan")) == -np.inf and balls._round_up(arb("inf")) == np.inf
    assert balls._width(wide) >= 0.25 and balls._width(arb(0)) == 0.0
    assert balls._width(arb(-1, 0.25)) >= 0.25
    top = balls._maximum([arb(1, 0.5), arb(1.25), arb(0)])
    assert float(top.lower()) <= 1.25 and float(top.upper()) >= 1.5


def test_claims_about_exact_costs():
    """An arm whose gap is 0 exactly, but which was not taken as optimal, stops a proof: nothing is known of its multiples."""
    bandit = ao.LinearBandit([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5])
    program = ao.programs.regret(bandit)
    found = reduce(program)
    assert interval_in_balls(found, np.array([np.inf, 8.0])[[1, 1]], np.array([0.0, 8.0]))[0] > 0
    object.__setattr__(bandit, "theta", np.array([1.0, 1.0]))
    with pytest.raises(InvalidProof, match="arm 1 has exact cost 0"):
        interval_in_balls(found, np.array([8.0, 8.0]), np.array([0.0, 8.0]))


def test_claims_about_exact_radii():
    bandit = ao.LinearBandit([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5])
    found = reduce(ao.programs.best_arm(bandit))
    object.__setattr__(bandit, "theta", np.array([1.0, 1.0]))
    with pytest.raises(InvalidProof, match="target 0 has exact radius 0"):
        interval_in_balls(found, np.array([8.0, 8.0]), np.ones(2))


def test_targets_of_ones_in_the_quotient_are_asked_about():
    """(1, 1) modulo (1, −1) is 1 in units of half: a target like any other."""
    program = plain([[1.0, -1.0], [1.0, 1.0]], [0.0, 3.0], [[1.0, 1.0]], [0.5])
    low, high, _ = interval_in_balls(reduce(program), np.array([1.0, 2.0]), np.ones(1))
    assert (low, high) == pytest.approx((6.0, 6.0))


# --- feasibility


def infeasible(program):
    asked = np.flatnonzero(program.targets.any(axis=1))
    return proven_infeasible(program, program.features, program.targets, asked, reduction.bound_error(program))


def least_norm(program, target):
    """||t||² with every arm at its upper bound, all of them finite."""
    matrix = weighted(rational(program.features), rational(program.upper), program.features.shape[1])
    t = rational(program.targets[target])
    return dot(t, solved(matrix, t))


def test_only_what_is_proven_is_called_infeasible():
    """Bounds from well inside to well outside, also by single bits: never wrong, and undecided at most within rounding."""
    rng = np.random.default_rng(7)
    proven = 0
    for turn in range(60):
        r = 1 + turn % 3
        features, target = (
            rng.integers(1, 10, size=(r + 1, r)) / 7.0 + np.eye(r + 1, r),
            rng.integers(1, 10, size=(1, r)) / 3.0,
        )
        upper = rng.uniform(0.5, 2.0, size=r + 1)
        exact = least_norm(plain(features, np.ones(r + 1), target, [1.0], None, upper), 0)
        for factor in (0.5, 1 - 1e-9, 1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-9, 2.0):
            radius = float(exact) * factor
            found = infeasible(plain(features, np.ones(r + 1), target, [radius], None, upper))
            if found is None:
                assert exact <= rational(radius) * (1 + Fraction(1, 10**12))
            else:
                assert exact > rational(radius)
                assert found[0] == 0 and found[1] == pytest.approx(float(exact))
                proven += 1
    assert proven > 100


def test_unbounded_arms_are_known_exactly():
    rows = [[1.0, 0.0], [1.0, 1.0]]
    for radius, hopeless in ((0.5, False), (0.25, True), (0.49, True), (0.51, False)):
        program = plain(rows, [1.0, 1.0], [[0.0, 1.0]], [radius], None, [np.inf, 2.0])
        assert (infeasible(program) is not None) is hopeless
        if hopeless:
            with pytest.raises(Infeasible, match="even with every arm at its upper bound"):
                reduce(program)
    nothing = plain(rows, [1.0, 1.0], [[0.0, 1.0]], [1.0], None, [np.inf, 0.0])
    assert infeasible(nothing) is None or infeasible(nothing)[0] == 0
    both = plain(rows, [1.0, 1.0], [[0.0, 1.0]], [1e-9], None, [np.inf, np.inf])
    assert infeasible(both) is None
    assert infeasible(plain(rows, [1, 1], [[1.0, 0.0]], [1e-9], None, [np.inf, 2.0])) is None


@pytest.mark.parametrize("beyond", [-1e-7, 1e-7])
def test_proofs_are_about_the_quotient_by_unbounded_arms(beyond):
    """q(x) = x₁ − x₀: the target is 1 there, though its second entry is 2."""
    program = plain([[1, 1], [0, 1]], [1, 1], [[1.0, 2.0]], [0.5 * (1 - beyond)], None, [np.inf, 2.0])
    assert (infeasible(program) is not None) is (beyond > 0)


def test_a_direction_that_no_arm_sees():
    rows = [[1.0, 0.0], [2.0, 0.0]]
    assert infeasible(plain(rows, [1, 1], [[0.0, 1.0]], [1e9], None, [1.0, 1.0]))[0] == 0
    assert infeasible(plain(rows, [1, 1], [[1.0, 0.0], [1.0, 1.0]], [1.0, 1e9], None, [1.0, 1.0]))[0] == 1


def test_rounded_bounds_and_radii_get_the_benefit_of_the_doubt():
    """Optimism with a = 1/2 and one arm per direction is barely feasible: rounding must not make it infeasible."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        theta = rng.uniform(0.1, 1.0, size=2)
        bandit = ao.LinearBandit([[2.0, 0.0], [0.0, 1.0]], theta)
        reduce(ao.programs.optimism(bandit, 0.5))
        with pytest.raises(Infeasible):
            reduce(ao.programs.optimism(bandit, 0.499))


def test_how_much_doubt_there_is(monkeypatch):
    """The bound and twice the radius, each by four times the error of bounds."""
    doubt = 2.0**-10
    monkeypatch.setattr(reduction, "bound_error", lambda program: doubt)
    needed = (1 + 4 * doubt) ** 3 - 1
    for beyond, hopeless in ((0.99, False), (1.01, True)):
        program = plain([[1.0]], [1.0], [[1.0]], [1.0 / (1.0 + beyond * needed)], None, [1.0])
        assert (infeasible(program) is not None) is hopeless


def test_a_direction_proves_only_what_it_sees():
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    program = plain(rows, [1.0, 1.0], [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0], None, [1.0, 1.0])
    known = free_span(rows, np.zeros(0, dtype=np.int64))

    def proves(target, y):
        return feasibility._proves(program, known, rows, program.targets, np.arange(2), target, np.array(y), 0.0)

    assert proves(0, [1.0, 0.0, 0.0]) is True  # 2²  > 1 · 1
    assert proves(0, [1.0, 3.0, 0.0]) is True  # 2² > 1 + 9/4
    assert proves(0, [1.0, 4.0, 0.0]) is False  # 2² < 1 + 16/4
    assert proves(0, [0.0, 0.0, 0.0]) is proves(0, [0.0, 0.0, 1.0]) is proves(0, [0.0, 1.0, 0.0]) is False
    assert proves(1, [0.0, 0.0, 1.0]) is proves(1, [0.0, 0.0, -1e-9]) is True


def test_the_worst_targets_are_tried():
    features = np.eye(6)
    for j in range(6):
        radii = np.full(6, 1.0 + 1e-7)  # all of them look suspicious
        radii[j] = 0.9
        assert infeasible(plain(features, np.ones(6), features, radii, None, np.ones(6)))[0] == j
    assert infeasible(plain(features, np.ones(6), features, np.ones(6), None, np.ones(6))) is None


# --- statuses


def status(upper, lower, tol, assumptions=()):
    bounds = Bounds(upper, lower, *[np.zeros(1)] * 4, 0.0)
    return _status(bounds, tol, None, True, {}, assumptions)[0]


def test_certified_is_a_gap_within_the_tolerance_without_assumptions():
    assumption = Assumption("tie", (0,), Fraction(1, 2**60), "")
    rng = np.random.default_rng(0)
    for tol, scale in itertools.product((1e-3, 1e-8, 1e-12), (1.0, 1e-20, 1e30)):
        for _ in range(300):
            lower = float(rng.uniform(1.0, 2.0)) * scale
            upper = lower * (1.0 + tol * (1.0 + float(rng.normal()) * 2.0**-46))
            exact = (rational(upper) - rational(lower)) / rational(lower)
            said = status(upper, lower, tol)
            if said is ao.Status.CERTIFIED:
                assert exact <= rational(tol)
            else:
                assert said is ao.Status.INACCURATE
                assert exact > rational(tol) * (1 - Fraction(1, 2**46))
            with_it = status(upper, lower, tol, (assumption,))
            assert with_it is (ao.Status.CONDITIONAL if said is ao.Status.CERTIFIED else said)
    assert status(0.0, 0.0, 1e-8) is ao.Status.CERTIFIED
    assert status(1.0, 0.0, 1e-8) is ao.Status.INACCURATE
    assert status(np.inf, 1.0, 1e-8) is ao.Status.FAILED
    assert status(1.0, 2.0, 1e-8) is ao.Status.INACCURATE  # bounds that contradict each other certify nothing
    assert status(1.0, float("nan"), 1e-8) is ao.Status.INACCURATE


def test_certified_bounds_hold_and_prove_the_gap():
    for program, _, _ in small_programs():
        try:
            s = ao.solve(program)
        except Infeasible:
            continue
        if s.status is not ao.Status.CERTIFIED:
            continue
        assert rational(s.upper) - rational(s.lower) <= rational(s.tol) * rational(s.lower)
        lower, upper = exact_bounds(program, s.allocation, s.multipliers)
        assert rational(s.lower) <= lower * (1 + Fraction(1, 10**9))
        assert upper is not None and upper <= rational(s.upper)
        assert lower <= upper
