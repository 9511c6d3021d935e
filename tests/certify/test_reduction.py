"""What the reduction to canonical arrays promises, against rationals."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import U, rational, solved

import allocopt as ao
from allocopt.base.errors import Infeasible, SolverFailed
from allocopt.certify import reduction
from allocopt.certify.exact_arithmetic.program import exact_program
from allocopt.certify.reduction import bound_error, data_error, reduce
from allocopt.linear.floating import ENTRY_ERROR, GAP_ERROR, UNIT
from allocopt.linear.span import column_units


def test_the_cost_of_what_is_fixed_does_not_depend_on_the_order_of_the_sum():
    """A hundred thousand terms of half a unit in the last place each: a plain sum loses all of them, and so would the bounds."""
    n = 100_000
    features = np.zeros((n + 4, 2))
    features[:4] = [[0, 1], [1, 0], [1, 1], [1, -1]]
    features[4:] = [1, 0]
    lower = np.zeros(n + 4)
    lower[4:] = 2.0**-53
    lower[4:68] = 1.0
    upper = np.full(n + 4, np.inf)
    upper[4:] = lower[4:]
    costs = np.ones(n + 4)
    costs[[0, 2, 3]] = 2.0**-10
    program = ao.AllocationProgram(features, costs, [[0, 1], [1, 1]], [1.0, 0.9], lower, upper)
    fixed = 64 + (n - 64) * Fraction(1, 2**53)
    assert abs(rational(reduce(program).canonical.offset) - fixed) <= 4 * U * fixed
    s = ao.solve(program)
    assert s.status is ao.Status.CERTIFIED
    cost = fixed + sum(x * y for x, y in zip(rational(costs[:4]), rational(s.allocation[:4]), strict=True))
    assert rational(s.upper) >= cost


def programs():
    rng = np.random.default_rng(11)
    for turn in range(5):
        d, k = 2 + turn % 3, 6 + turn
        arms, theta = rng.integers(-9, 10, size=(k, d)) / 7.0, rng.integers(1, 10, size=d) / 7.0
        arms[0] += 0.1
        if turn == 4:  # two optimal arms
            arms[1], theta = arms[0], np.eye(d)[0]
            arms[0, 0] = arms[1, 0] = 9.0
        each = rng.integers(1, 10, size=k) / 7.0
        for noise in (0.7, each):
            bandit = ao.LinearBandit(arms, theta, noise_variance=noise)
            yield ao.programs.regret(bandit)
            yield ao.programs.optimism(bandit, 500.0)
            yield ao.programs.remaining(bandit, rng.integers(1, 50, size=k).astype(float), 1000)
            if len(bandit.optimal_arms) == 1:
                yield ao.programs.best_arm(bandit)
        gaps = bandit.gaps * 1.0
        yield ao.programs.horizon(arms, gaps, 1000)
        yield ao.programs.g_optimal(arms)
        upper = np.full(k, 2000.0 / 3.0)
        upper[-1] = np.inf
        lower = rng.integers(0, 2, size=k) / 3.0
        for noise in (None, each):
            costs = rng.integers(0, 3, size=k)
            yield ao.AllocationProgram(arms, costs, arms[:3] / 3.0, [1.0, 0.1, 3.0], lower, upper, noise_variance=noise)


def fraction(x):
    return None if x is None else Fraction(int(x.p), int(x.q))


def by_hand(program, quotient):
    """Features, costs, bounds, targets, radii and variances in rationals, from what the user passed: written out once more."""
    rows, bandit, number = rational(np.asarray(program.features)), program.origin.bandit, program.origin.number
    k = len(rows)
    costs, lower, upper = [Fraction(1)] * k, [Fraction(0)] * k, [None] * k
    targets = rational(np.asarray(program.targets))
    radii = [Fraction(1)] * len(targets)
    if program.target_arms is not None:
        targets = [rows[i] for i in program.target_arms]
    each = rational(program.noise_variance) if program.noise_variance is not None else [Fraction(1)] * k
    common = Fraction(1)
    if bandit is not None:
        if isinstance(bandit.noise_variance, float):
            common = rational(bandit.noise_variance)
        else:
            assert each == rational(bandit.noise_variance)
        theta = rational(bandit.theta)
        means = [sum(x * t for x, t in zip(row, theta, strict=True)) for row in rows]
        gaps = [max(means) - mean for mean in means]
        radii = [gaps[i] ** 2 / (2 * common) for i in program.target_arms]
        if program.kind == "best_arm":
            best = rows[means.index(max(means))]
            targets = [[x - y for x, y in zip(t, best, strict=True)] for t in targets]
        else:
            costs = gaps
    if program.kind == "horizon":
        costs = rational(program.costs)
        radii = [costs[i] ** 2 / rational(number) for i in program.target_arms]
    if program.kind == "optimism":
        upper = [None if g == 0 else 4 * rational(number) * common * v / g**2 for g, v in zip(gaps, each, strict=True)]
    if program.kind == "remaining":
        lower = [rational(x) / rational(number) for x in program.origin.pulls]
    if program.kind == "general":
        costs, radii, lower = rational(program.costs), rational(program.radii), rational(program.lower)
        upper = [None if np.isinf(u) else rational(u) for u in program.upper]
    pivots = [rows[i] for i in quotient.pivot_arms]
    columns, kept = quotient.pivot_columns, quotient.coordinates

    def modulo(row):
        if not pivots:
            return [row[c] for c in kept]
        shares = solved([[p[c] for p in pivots] for c in columns], [row[c] for c in columns])
        return [row[c] - sum(s * p[c] for s, p in zip(shares, pivots, strict=True)) for c in kept]

    return [modulo(x) for x in rows], costs, lower, upper, [modulo(t) for t in targets], radii, each


def test_canonical_arrays_are_as_accurate_as_they_say():
    """Squares of entries are squares of the quotient's over costs and radii, up to the error that they claim; so are bounds."""
    kinds = set()
    for program in programs():
        found = reduce(program)
        kinds.add(program.kind)
        canonical, arms = found.canonical, found.variables.tolist()
        features, costs, lower, upper, targets, radii, each = by_hand(program, found.quotient)
        units = [c * v for c, v in zip(costs, each, strict=True)]  # squared, of a row
        squared = 2 * rational(canonical.error) + rational(canonical.error) ** 2
        doubt = rational(canonical.bound_error)

        def close(value, exact, error):
            assert abs(rational(value) - exact) <= error * exact

        for c in range(canonical.rank):
            n = int(np.flatnonzero(canonical.features[:, c])[0])
            ratio = rational(canonical.features[n, c]) ** 2 * units[arms[n]] / features[arms[n]][c] ** 2
            unit = Fraction(4) ** round(float(np.log2(float(ratio))) / 2)  # of the column, squared
            for n, i in enumerate(arms):
                close(canonical.features[n, c] ** 2, features[i][c] ** 2 * unit / units[i], squared + 2 * U)
            for n, j in enumerate(found.targets.tolist()):
                close(canonical.targets[n, c] ** 2, targets[j][c] ** 2 * unit / radii[j], squared + 2 * U)
            known = [i for i, x in enumerate(found.fixed) if 0 < x < np.inf and any(features[i])]
            for n, i in enumerate(known if len(known) == len(canonical.base) else ()):
                exact = features[i][c] ** 2 * unit * rational(found.fixed[i]) / each[i]
                close(canonical.base[n, c] ** 2, exact, squared + 2 * U)
        for n, i in enumerate(arms):
            if upper[i] is None:
                assert canonical.upper is None or np.isinf(canonical.upper[n])
                continue
            close(found.most[i], upper[i], 2 * doubt)
            assert canonical.upper[n] * (1 + 4 * canonical.bound_error) >= (upper[i] - lower[i]) * costs[i]
            close(canonical.upper[n], (upper[i] - lower[i]) * costs[i], 2 * doubt)
        close(canonical.offset, sum(c * x for c, x in zip(costs, lower, strict=True)), 2 * doubt)
        for i, x in enumerate(lower):
            assert np.isinf(found.fixed[i]) or rational(found.fixed[i]) >= x * (1 - 2 * doubt)
        if canonical.ratios is not None:
            for n, j in enumerate(found.targets.tolist()):
                close(canonical.ratios[n] ** 2, units[arms[n]] / radii[j], 2 * doubt + 2 * U)
    assert kinds == {"regret", "horizon", "optimism", "remaining", "g_optimal", "best_arm", "general"}


def test_the_program_in_rationals():
    for program in programs():
        found = reduce(program)
        exact = exact_program(program, found.quotient)
        features, costs, lower, upper, targets, radii, each = by_hand(program, found.quotient)
        free = set(program.free.tolist())
        assert exact.arms == [i for i in range(program.n_arms) if i not in free]
        units = rational(column_units(program.features, program.targets)[list(found.quotient.coordinates)])

        def in_units(rows, units=units):
            return [[x * u for x, u in zip(row, units, strict=True)] for row in rows]

        assert [[fraction(x) for x in row] for row in exact.features] == in_units(features[i] for i in exact.arms)
        assert [fraction(x) for x in exact.variances] == [each[i] for i in exact.arms]
        assert [fraction(x) for x in exact.costs] == [costs[i] * each[i] for i in exact.arms]
        assert [fraction(x) for x in exact.lower] == [lower[i] / each[i] for i in exact.arms]
        most = [None if upper[i] is None else upper[i] / each[i] for i in exact.arms]
        assert [fraction(x) for x in exact.upper] == most
        assert [[fraction(x) for x in row] for row in exact.targets] == in_units(targets)
        assert [fraction(x) for x in exact.radii] == radii


def test_errors_of_the_data():
    arms, theta = [[1.0, 0.0], [0.5, 0.3]], [1.0, 0.1]
    bandit = ao.LinearBandit(arms, theta)
    of_gaps = GAP_ERROR + 8.0 * UNIT
    assert data_error(ao.programs.regret(bandit)) == of_gaps
    assert data_error(ao.programs.g_optimal(arms)) == 8.0 * UNIT
    assert bound_error(ao.programs.regret(bandit)) == 0.0
    optimism = ao.programs.optimism(bandit, 50.0)
    assert bound_error(optimism) == 4.0 * GAP_ERROR
    remaining = ao.programs.remaining(bandit, [1.0, 2.0], 1000)
    assert bound_error(remaining) == 4.0 * UNIT
    general = ao.AllocationProgram(arms, [1, 1], arms, [1, 1], None, [5, 9])
    assert bound_error(general) == 0.0
    for program in (optimism, remaining, general):
        canonical = reduce(program).canonical
        assert canonical.error == ENTRY_ERROR + data_error(program)
        assert canonical.bound_error == bound_error(program) + data_error(program)


def test_the_way_back_and_forth():
    program = ao.AllocationProgram(
        [[1, 0], [0, 1], [1, 1]], [2, 4, 0], [[1, 0], [0, 1]], [1, 1], [1, 0, 0], [9, np.inf, 3]
    )
    found = reduce(program)
    assert found.fixed.tolist() == [1.0, 0.0, 3.0]
    assert found.canonical.offset == 2.0
    assert found.variables.tolist() == [0, 1]
    assert found.canonical.upper.tolist() == [16.0, np.inf]
    assert found.allocation(np.array([2.0, 8.0])).tolist() == [2.0, 2.0, 3.0]
    assert found.allocation(np.array([99.0, 8.0])).tolist() == [9.0, 2.0, 3.0]  # never above what is allowed
    assert found.canonical_allocation(np.array([2.0, 2.0, 3.0])).tolist() == [2.0, 8.0]
    assert found.canonical_allocation(np.array([0.5, 2.0, 3.0])).tolist() == [0.0, 8.0]
    assert found.multipliers(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert found.canonical_multipliers(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_targets_outside_the_span_are_infeasible():
    with pytest.raises(Infeasible, match="target 1 is not in the span"):
        reduce(ao.AllocationProgram([[1, 0]], [1], [[1, 0], [1, 1e-10]], [1.0, 1.0]))
    with pytest.raises(Infeasible):
        reduce(ao.AllocationProgram([[1, 2], [2, 4]], [1, 1], [[1, 2.001]], [1.0]))


@pytest.mark.parametrize(
    ("power", "said"), [(-52, "assumed"), (-41, "assumed"), (-39, "infeasible"), (-30, "infeasible")]
)
def test_targets_close_to_the_span_are_assumed_to_lie_in_it_up_to_the_rounding_level(power, said):
    """x = (1, 1 + ε): what is left is ε of 1 + ε and 1, that is ε/(2 + ε)."""
    epsilon = 2.0 ** (power + 1)
    program = ao.AllocationProgram([[1, 1]], [1], [[1, 1 + epsilon]], [1.0])
    if said == "infeasible":
        with pytest.raises(Infeasible):
            reduce(program)
        return
    (assumption,) = reduce(program).assumptions
    assert assumption.size == Fraction(epsilon) / (2 + Fraction(epsilon))
    assert assumption.kind == "dependence" and assumption.arms == (0,)
    assert ao.solve(program).status is ao.Status.CONDITIONAL


def test_rank_that_is_a_matter_of_rounding_is_not_called_infeasible():
    """Arms that are parallel up to rounding only, and a target that needs both: nobody can say."""
    rows = [[1.0, 1.0], [1.0, 1.0 + 2.0**-50]]
    with pytest.raises(SolverFailed, match="cannot be decided"):
        reduce(ao.AllocationProgram(rows, [1, 1], [[0.0, 1.0]], [1.0]))
    assumed = reduce(ao.AllocationProgram(rows, [1, 1], [[1.0, 1.0]], [1.0])).assumptions
    assert len(assumed) in (1, 2)
    for assumption in assumed:
        assert assumption.size == Fraction(1, 2**50) / (2 + Fraction(1, 2**50))
    assert (
        reduce(ao.AllocationProgram([[1.0, 1.0], [1.0, 1.0 + 2.0**-30]], [1, 1], [[0.0, 1.0]], [1.0])).assumptions == ()
    )


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]])
def test_infeasible_is_said_of_columns_that_are_exactly_dependent_only(order):
    """Column 2 is column 0 in all arms, exactly; column 1 is so up to rounding, and only there the target is different."""
    rows = np.array([[1.0, 1.0, 1.0], [1.0, 1.0 - 2.0**-50, 1.0]])[:, order]
    with pytest.raises(SolverFailed, match="target 0"):
        reduce(ao.AllocationProgram(rows, [1, 1], np.array([[0.0, 1.0, 0.0]])[:, order], [1.0]))


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]])
def test_the_column_that_decides_is_that_of_the_worst_target(order):
    """The first target lies in the span; only the second one says which column matters."""
    rows = np.array([[1.0, 1.0, 1.0], [1.0, 1.0 - 2.0**-50, 1.0]])[:, order]
    targets = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])[:, order]
    with pytest.raises(SolverFailed, match="target 1"):
        reduce(ao.AllocationProgram(rows, [1, 1], targets, [1.0, 1.0]))


def test_differences_of_arms_are_not_rounded_out_of_their_span():
    """(3, 1) and 2^-53 of it: their difference is no double, but lies on their line all the same."""
    bandit = ao.LinearBandit([[3.0, 1.0], [3 * 2.0**-53, 2.0**-53]], [1.0, 0.0])
    program = ao.programs.best_arm(bandit)
    assert rational(program.targets[0, 0]) != 3 * rational(program.targets[0, 1])
    assert reduce(program).assumptions == ()
    assert ao.solve(program).status is ao.Status.CERTIFIED


def test_ratios_are_those_of_targets_that_are_the_arms_played():
    both = ao.AllocationProgram(np.eye(2), [4.0, 2.0], np.eye(2), [1.0, 8.0], target_arms=[0, 1])
    assert reduce(both).canonical.ratios.tolist() == [2.0, 0.5]
    for one, features in (([0], [0, 1]), ([1], [0, 1])):
        program = ao.AllocationProgram(np.eye(2), [1.0, 2.0], np.eye(2)[one], [1.0], target_arms=one)
        found = reduce(program)
        assert found.variables.tolist() == features and found.canonical.ratios is None
    for swapped in ([[0], [1]], [[1], [0]]):  # as many of each, but other arms
        upper = np.full(2, np.inf)
        upper[swapped[0]] = 0.0
        rows = np.ones((2, 1))
        program = ao.AllocationProgram(rows, [1.0, 2.0], rows[swapped[0]], [1.0], None, upper, swapped[0])
        found = reduce(program)
        assert found.variables.tolist() == swapped[1] and found.canonical.ratios is None


def test_what_is_fixed_spans_too():
    program = ao.AllocationProgram(np.eye(2), [1.0, 1.0], [[1.0, 1.0]], [1.0], [2.0, 0.0], [2.0, np.inf])
    found = reduce(program)
    assert found.quotient.coordinates == (0, 1) and found.variables.tolist() == [1]
    assert found.canonical.base.shape == (1, 2)
    assert ao.solve(program).value == pytest.approx(4.0)


def test_only_what_is_fixed_is_known_beforehand():
    rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    plain = ao.AllocationProgram(rows, [1.0, 1.0, 1.0], np.eye(2), [1.0, 1.0])
    assert reduce(plain).canonical.base.shape == (0, 2) and reduce(plain).canonical.scalable
    known = ao.AllocationProgram(rows, [1.0, 1.0, 1.0], np.eye(2), [1.0, 1.0], [0.0, 0.25, 2.0])
    assert np.count_nonzero(reduce(known).canonical.base) == len(reduce(known).canonical.base) == 1
    free = ao.AllocationProgram(np.eye(2), [0.0, 1.0], np.eye(2), [1.0, 1.0], [1.0, 0.0])
    assert reduce(free).canonical.base.shape == (0, 1)


@pytest.mark.parametrize(
    ("costs", "usual"),
    [
        ([0.0, 0.25, 0.25], 0.25),
        ([0.0, 1.0, 1.0], 1.0),
        ([0.0, 0.0], 1.0),
        ([0.0, 3.0, 40.0], 8.0),
        ([2.0**-90, 0.0], 2.0**-90),
    ],
)
def test_arms_that_cost_nothing_get_a_unit_of_the_usual_size(costs, usual):
    assert reduction._units(np.array(costs)).tolist() == [cost or usual for cost in costs]
