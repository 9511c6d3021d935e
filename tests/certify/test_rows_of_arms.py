"""The certificate of arms that show several things, against rationals: sums over rows, their margins, balls, feasibility."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, solved, weighted
from margins import DOUBT, RHO, best_gain, bounds_of, framed, moved

import allocopt as ao
from allocopt.certify import frame as frames
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import evaluate
from allocopt.certify.exact_arithmetic.balls import interval_in_balls
from allocopt.certify.reduction import reduce

OWNERS = np.array([0, 0, 1, 2, 2, 2])
SLIP = 40 * U


def test_rows_and_variables_find_each_other():
    some = Canonical(np.arange(12.0).reshape(6, 2), np.eye(2), np.zeros((0, 2)), owners=OWNERS)
    assert (some.n_variables, some.most_rows, some.starts.tolist()) == (3, 3, [0, 2, 3])
    assert some.by_row(np.array([5.0, 6.0, 7.0])).tolist() == [5, 5, 6, 7, 7, 7]
    assert some.by_variable(np.array([1.0, 2, 4, 8, 16, 32])).tolist() == [3, 4, 56]
    assert some.rows_of(np.array([0, 2])).tolist() == [0, 1, 3, 4, 5]
    assert some.owners_within(np.array([0, 2])).tolist() == [0, 0, 1, 1, 1]
    assert some.owners_within(np.array([1])) is None
    two = dataclasses.replace(some, owners=np.array([0, 1, 1, 1, 1, 2]))
    assert two.most_rows == 4  # in the middle: neither the first nor the last
    assert two.owners_within(np.array([0, 2])) is None


def test_where_every_arm_has_one_row_rows_are_variables():
    plain = Canonical(np.arange(12.0).reshape(6, 2), np.eye(2), np.zeros((0, 2)))
    values = np.arange(6.0)
    assert (plain.n_variables, plain.most_rows, plain.starts.tolist()) == (6, 1, list(range(6)))
    assert plain.by_row(values) is values and plain.by_variable(values) is values
    assert plain.rows_of(np.array([3, 4])).tolist() == [3, 4] and plain.owners_within(np.array([3])) is None


def instance(seed, counts, r, m=3, rho=0.0, doubt=0.0, base=0):
    rng = np.random.default_rng([seed, r, m, *counts[:3]])
    rows = rng.normal(size=(sum(counts) + m + base, r))
    features, targets, known = np.split(rows, [sum(counts), sum(counts) + m])
    owners = np.repeat(np.arange(len(counts)), counts)
    problem = Canonical(features, targets, known, error=rho, bound_error=doubt, owners=owners)
    return problem, np.exp(rng.normal(size=len(counts))), np.exp(rng.normal(size=m))


def instances():
    shapes = [((2, 1, 3), 2), ((1, 4), 3), ((3,), 1), ((1, 2, 1, 2), 2), ((200, 2), 1), ((40, 1, 1), 2)]
    for seed, (counts, r) in enumerate(shapes):
        for rho, doubt in ((0.0, 0.0), (RHO, DOUBT), (0.0, 2.0**-10)):
            problem, alpha, lam = instance(seed, counts, r, rho=rho, doubt=doubt, base=seed % 2)
            yield problem, alpha, lam
            feasible = evaluate(problem, alpha, lam).alpha
            upper = feasible * np.where(np.arange(len(alpha)) < 2, 1.5, np.inf)
            yield dataclasses.replace(problem, upper=upper, offset=float(seed)), feasible, lam


def information(problem, alpha, by, weight_by):
    """M of rows and weights that are wrong by factors: every row of a variable with its α."""
    rows = [*moved(problem.features, by), *moved(problem.base, by)]
    weights = [rational(alpha[i]) * (1 + weight_by) for i in problem.owners] + [1 + weight_by] * len(problem.base)
    return weighted(rows, weights, problem.rank)


def exact_dual(problem, alpha, lam, row_by, target_by, weight_by, bound_by):
    targets = moved(problem.targets, target_by)
    matrix = information(problem, alpha, row_by, weight_by)
    weights = rational(lam)
    directions = [solved(matrix, b) for b in targets]
    strength = sum((w * dot(b, y) for w, b, y in zip(weights, targets, directions, strict=True)), Fraction(0))

    def price(row):
        return sum((w * dot(row, y) ** 2 for w, y in zip(weights, directions, strict=True)), Fraction(0))

    slope = strength**2 / sum(weights) - sum((price(row) for row in moved(problem.base, row_by)), Fraction(0))
    prices = [Fraction(0)] * len(alpha)
    for i, row in zip(problem.owners, moved(problem.features, row_by), strict=True):
        prices[i] += price(row)
    upper = [None if u is None else u * (1 + bound_by) for u in bounds_of(problem.upper, len(alpha))]
    dual = best_gain(slope, prices, upper) if slope > 0 else Fraction(0)
    return max(dual, Fraction(0)) + rational(problem.offset) * (1 - abs(bound_by))


def test_both_bounds_hold_for_sums_over_rows():
    for problem, alpha, lam in instances():
        bounds = evaluate(problem, alpha, lam)
        assert np.isfinite(bounds.upper) and len(bounds.alpha) == len(bounds.prices) == len(alpha)
        rho, doubt = rational(problem.error), rational(problem.bound_error)
        duals = [exact_dual(problem, alpha, lam, s * rho, t * rho, s * doubt, doubt) for s in (1, -1) for t in (1, -1)]
        assert rational(bounds.lower) <= min(duals)
        if not rho and not doubt:
            assert bounds.lower >= float(max(duals)) * (1 - 1e-10)
        matrix = information(problem, bounds.alpha, -rho, -doubt)
        assert all(dot(b, solved(matrix, b)) <= 1 for b in moved(problem.targets, rho))
        assert rational(bounds.upper) >= (sum(rational(bounds.alpha)) + rational(problem.offset)) * (1 + doubt)
        assert problem.upper is None or (bounds.alpha <= problem.upper).all()


def test_their_margins_are_those_of_the_theorem():
    """The cost is a sum over variables, a price one over the rows of its variable, which is rounded once more."""
    for problem, alpha, lam in instances():
        bounds, frame, r = evaluate(problem, alpha, lam), framed(problem, alpha, lam), problem.rank
        pad, doubt = 1 + gamma(4 * r + 64), rational(problem.bound_error)
        cost = rational(float(alpha.sum())) * (1 + gamma(len(alpha)) + doubt) * pad
        assert cost * (1 - SLIP / 4) <= rational(frame.cost) <= cost * (1 + SLIP / 4)
        if not problem.scalable:
            continue
        norm2, prices, errors = frames.images(frame, problem.features)
        padded = rational(frame.most_price(prices, norm2, errors))
        sums = [Fraction(0)] * len(alpha)
        for i, p in zip(problem.owners, padded, strict=True):
            sums[i] += p
        most = max(np.bincount(problem.owners))
        lower = rational(frame.strength) ** 2 / pad / (max(sums) * (1 + gamma(int(most)))) / pad
        assert rational(bounds.lower) <= lower * (1 + SLIP / 4)
        assert rational(bounds.lower) >= lower * (1 - SLIP)


def test_what_is_reported_of_rows_is_reported_of_their_arms():
    for problem, alpha, lam in instances():
        if problem.scalable:
            bounds = evaluate(problem, alpha, lam)
            wide = 1e-9 + 100 * (problem.error + problem.bound_error)
            assert bounds.multipliers.sum() == pytest.approx(bounds.lower, rel=wide)
            assert bounds.prices.max() == pytest.approx(1.0, rel=wide)


def programs():
    """Programs of matrices with a pair for each; arms that cost nothing, bounds and noise of every row its own among them."""
    rng = np.random.default_rng(7)
    for turn in range(24):
        d, k, m = 1 + turn % 3, 4, 1 + turn % 3
        counts = rng.integers(1, 4, size=k)
        counts[turn % k] = 3
        shown = [rng.integers(-9, 10, size=(int(n), d)) / 7.0 for n in counts]
        shown[0][0] = 3.0 + np.arange(d)
        shown[1][-1] = 2.0 - np.arange(d)
        shown[2][0, -1] = 5.0
        costs = rng.uniform(0.1, 2.0, size=k)
        alpha, lam = rng.uniform(20.0, 40.0, size=k), rng.uniform(0.1, 2.0, size=m)
        more = {}
        if turn % 4 == 1:
            more["upper"] = np.where(np.arange(k) % 2, alpha * 1.5, np.inf)
        if turn % 4 == 2:
            more["lower"] = np.array([0.0, 0.01, 0.02, 0.0])
        if turn % 4 == 3:
            costs[1], more["upper"] = 0.0, np.array([np.inf, 4.0, 30.0, np.inf])
            alpha = np.minimum(alpha, more["upper"])
        if turn % 2:
            more["noise_variance"] = [rng.uniform(0.5, 2.0, size=int(n)).tolist() for n in counts]
        targets = rng.integers(1, 10, size=(m, d)) / 7.0
        yield ao.AllocationProgram(shown, costs, targets, rng.uniform(0.5, 2.0, size=m), **more), alpha, lam


def exact_bounds(program, alpha, lam):
    """Both bounds by the definition, in rationals; no arm is free, so that the program is its own quotient."""
    rows, targets, d = rational(program.features), rational(program.targets), program.features.shape[1]
    costs, radii, least = rational(program.costs), rational(program.radii), rational(program.lower)
    noise = [Fraction(1)] * len(rows) if program.noise_variance is None else rational(program.noise_variance)
    owners, a, weights = program.row_owners.tolist(), rational(alpha), rational(lam)
    matrix = weighted(rows, [a[i] / v for i, v in zip(owners, noise, strict=True)], d)
    directions = [solved(matrix, t) for t in targets]
    ratios = [dot(t, y) / rho for t, y, rho in zip(targets, directions, radii, strict=True)]
    scaled = [w / rho for w, rho in zip(weights, radii, strict=True)]
    strength = sum(w * x for w, x in zip(weights, ratios, strict=True))
    prices = [Fraction(0)] * len(a)
    for i, row, v in zip(owners, rows, noise, strict=True):
        prices[i] += sum(w * dot(row, y) ** 2 for w, y in zip(scaled, directions, strict=True)) / v
    fixed = sum(c * x for c, x in zip(costs, least, strict=True))
    slope = strength**2 / sum(weights) - sum(x * p for x, p in zip(least, prices, strict=True))
    upper = [None if np.isinf(u) else rational(u) - x for u, x in zip(program.upper, least, strict=True)]
    tried = [c / p for c, p in zip(costs, prices, strict=True) if p > 0]
    gains = []
    for q in tried:
        over = [max(q * p - c, Fraction(0)) for p, c in zip(prices, costs, strict=True)]
        if not any(x > 0 and u is None for x, u in zip(over, upper, strict=True)):
            gains.append(q * slope - sum(u * x for u, x in zip(upper, over, strict=True) if u is not None))
    cost = sum(c * x for c, x in zip(costs, a, strict=True))
    scalable = not any(least) and all(u is None for u in upper)
    worst = max(ratios)
    return fixed + max([Fraction(0), *gains]), cost * worst if scalable else (cost if worst <= 1 else None)


def test_balls_enclose_the_definition_and_little_more():
    for program, alpha, lam in programs():
        reduction = reduce(program)
        lower, upper, _ = interval_in_balls(reduction, alpha, lam)
        exact_lower, exact_upper = exact_bounds(program, alpha, lam)
        assert rational(lower) <= exact_lower
        assert lower >= float(exact_lower) * (1 - 1e-12)
        if exact_upper is None:
            assert upper == np.inf
        else:
            assert exact_upper <= rational(upper) <= exact_upper * (1 + Fraction(1, 10**13))


def test_canonical_rows_are_those_of_the_definition():
    """The same pair through the canonical form in doubles: within the balls' bounds, and close to them."""
    for program, alpha, lam in programs():
        reduction = reduce(program)
        bounds = evaluate(
            reduction.canonical, reduction.canonical_allocation(alpha), reduction.canonical_multipliers(lam)
        )
        exact_lower, exact_upper = exact_bounds(program, alpha, lam)
        assert rational(bounds.lower) <= exact_lower and bounds.lower >= float(exact_lower) * (1 - 1e-9)
        if exact_upper is not None and reduction.canonical.scalable:
            assert exact_upper <= rational(bounds.upper) <= exact_upper * (1 + Fraction(1, 10**9))


def test_solutions_are_proven_by_the_referee():
    for program, _, _ in programs():
        try:
            found = ao.solve(program)
        except ao.Infeasible:
            continue
        exact = found.verify(exact=True)
        assert not exact.problems and found.lower <= exact.lower <= exact.upper <= found.upper
        assert found.status is ao.Status.CERTIFIED


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_room_is_that_of_all_rows_of_an_arm(noise):
    """One arm that shows two coordinates, each with this variance: radius 1 is met from α = σ² on."""
    for upper, feasible in ((noise, True), (noise * (1 + 2**-30), True), (noise * (1 - 2**-30), False), (0.5, False)):
        program = ao.AllocationProgram(
            [np.eye(2)], [1], np.eye(2), [1, 1], upper=[upper], noise_variance=[[noise, noise]]
        )
        if feasible:
            assert ao.solve(program, tol=1e-6).value == pytest.approx(noise, rel=1e-6)
        else:
            with pytest.raises(ao.Infeasible, match="at its upper bound"):
                ao.solve(program)


def test_a_free_arm_is_divided_out_with_all_its_rows():
    """Exactly, and only it: the second arm shows what the first does not, and the third one both."""
    shown = [[[1, 1, 0], [2, 2, 0], [0, 1, 1]], [0, 0, 1], [[3, 1, 0], [5, 1, 4], [0, 2, 2]]]
    program = ao.AllocationProgram(shown, [0, 2, 3], [[1, 0, 0], [0, 0, 1]], [0.5, 0.25])
    reduction = reduce(program)
    assert reduction.canonical.rank == 1 and reduction.quotient.pivot_arms == (0, 2)
    # modulo (1,1,0) and (0,1,1), x ↦ x₁ − x₂ + x₃: rows of arm 1 give 1, those of arm 2 give 2, 8 and 0
    found = ao.solve(program)
    assert found.value == pytest.approx(3 * 4 / 68, rel=1e-9) and found.support.tolist() == [2]
    exact = found.verify(exact=True)
    assert not exact.problems and exact.lower <= 12 / 68 <= exact.upper * (1 + 1e-15)


def test_assumptions_about_rows_name_their_arms():
    """Rows that are dependent up to rounding: of arms 1 and 2, whose rows are 2 to 5."""
    third = 1 / 3
    shown = [[[1, 0, 0], [0, 1, 0]], [[third, 3 * third, 0.1], [3, 0, 0.1 * 9]], [[0.7, 0.1, 0.2], [1, 1, 1e-17]]]
    rows = np.concatenate([np.asarray(x, dtype=float) for x in shown])
    rows[:, 2] = 0.1 * rows[:, 0] + 0.7 * rows[:, 1]
    program = ao.AllocationProgram(np.split(rows, [2, 4]), [1, 1, 1], rows[:2], [1, 1])
    found = ao.solve(program)
    assert found.status is ao.Status.CONDITIONAL
    assert all(0 <= arm < 3 for a in found.assumptions for arm in a.arms)
    assert {arm for a in found.assumptions for arm in a.arms} <= {0, 1, 2}
