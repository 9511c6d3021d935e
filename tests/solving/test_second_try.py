"""A second try is never worse than the first answer, mends a poor one, and keeps to its time; refinement likewise."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import answered, bandits

import allocopt as ao
from allocopt.certify.certificate import evaluate
from allocopt.certify.exact_arithmetic.well_conditioned import well_conditioned
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import counter_example, random_unit
from allocopt.solvers.monitor import Monitor
from allocopt.solving.refine import method_names, refined_pair, resolved_bounds
from allocopt.solving.second_try import second_try


def poor(program):
    """An honest but wide answer: three steps of a slow method."""
    s = ao.solve(program, "frank-wolfe", tol=1e-8, max_iterations=3)
    assert s.status is ao.Status.INACCURATE
    return s


@pytest.mark.parametrize("seed", range(5))
def test_a_poor_answer_is_mended_and_the_reason_for_it_forgotten(seed):
    program = ao.programs.regret(random_unit(4, 20, seed=seed))
    first = poor(program)
    reduction = reduce(program)
    found = second_try(reduction, first, Monitor(reduction.canonical, "frank-wolfe", 1e-8, None, None))
    assert answered(found)
    assert found.stats["second_try"] is True
    assert "reason" not in found.stats
    assert found.lower >= first.lower * (1 - 1e-12) and found.upper <= first.upper * (1 + 1e-12)


@settings(max_examples=40)
@given(bandits())
def test_it_is_never_worse_than_the_first_answer(bandit):
    for program in (ao.programs.regret(bandit), ao.programs.optimism(bandit, 1.0)):
        try:
            first = ao.solve(program)
        except ao.Infeasible:
            continue
        reduction = reduce(program)
        if reduction.canonical.features.size:
            found = second_try(reduction, first, Monitor(reduction.canonical, first.method, first.tol, None, None))
            assert found.gap <= first.gap
            assert answered(found) or not answered(first)
            assert found.lower <= first.upper * (1 + 1e-12) and first.lower <= found.upper * (1 + 1e-12)


def test_where_time_is_over_the_first_answer_stays():
    program = ao.programs.regret(random_unit(4, 20))
    first, reduction = poor(program), reduce(program)
    assert second_try(reduction, first, Monitor(reduction.canonical, "frank-wolfe", 1e-8, 1e-12, None)) is first


def test_upper_bounds_that_no_optimum_reaches_are_left_out():
    """A bound of 1e12 on every arm changes nothing but the numbers."""
    b = random_unit(3, 8)
    plain = ao.AllocationProgram(b.arms, b.gaps + 0.1, b.arms, np.full(8, 0.3))
    bounded = ao.AllocationProgram(b.arms, b.gaps + 0.1, b.arms, np.full(8, 0.3), None, np.full(8, 1e12))
    reduction = reduce(bounded)
    first = dataclasses.replace(ao.solve(bounded), lower=0.0, status=ao.Status.INACCURATE)
    found = second_try(reduction, first, Monitor(reduction.canonical, "interior-point", 1e-8, None, None))
    assert answered(found)
    assert found.value == pytest.approx(ao.solve(plain).value, rel=2e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_refined_pair_proves_a_sharp_interval(seed):
    problem = reduce(ao.programs.regret(random_unit(4, 15, seed=seed))).canonical
    pair = refined_pair(problem, 1e-10)
    assert pair is not None
    assert evaluate(problem, *pair).gap <= 1e-9


def test_a_solve_that_begins_from_a_similar_problem_is_certified_or_none():
    before, after = (reduce(ao.programs.regret(counter_example(e))).canonical for e in (0.01, 0.0101))
    alpha, multipliers = refined_pair(before, 1e-10)
    found = resolved_bounds(after, alpha, multipliers, 1e-8)
    assert found is not None
    assert found.gap <= 1e-8
    assert found.lower <= 8 * (1 + 1e-12) and found.upper * (1 + 1e-12) >= 8
    useless = resolved_bounds(after, np.zeros_like(alpha), np.zeros_like(multipliers), 1e-8)
    assert useless is not None and useless.gap <= 1e-8


def test_methods_are_known_by_name():
    for name in method_names():
        assert name != "auto"
        with pytest.raises(ao.InvalidOption, match="bogus: not an option"):
            ao.regret_constant(np.eye(2), [1, 0], method=name, bogus=1)


NEARLY_DEPENDENT = [
    [0.205, -0.38, 0.1, 0.1], [96636764.16, 53687091.2, 38923141.12, 76504104.96],
    [-2.1827872842550277e-13, -9.003997547551989e-13, 1.546140993013978e-13, 1.2732925824820997e-13],
    [-2877628088.32, 3178275799.04, 2040109465.6, 193273528.32], [-28508.16, -13107.2, 45875.2, -37683.2],
    [-1.6689300537109377e-08, 7.212162017822265e-08, 9.5367431640625e-09, -2.2649765014648438e-08],
]  # fmt: skip


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 1, 3], [1, 0, 2, 3], [3, 2, 1, 0]])
def test_differences_that_are_nearly_dependent_are_certified_in_any_order_of_the_columns(order):
    """Rounded to doubles, the rows are those of a program whose solution is off by 1e-8 in this one."""
    arms, theta = np.array(NEARLY_DEPENDENT)[:, order], np.array([1.5, 1.5, -0.2, -0.2])[order]
    s = ao.solve(ao.programs.top_m(ao.LinearBandit(arms, theta, [1.6, 0.1, 2.9, 2.0, 0.3, 1.4]), 1))
    assert s.status is ao.Status.CERTIFIED
    assert not s.verify(exact=True).problems


@pytest.mark.parametrize("bounded", [False, True])
def test_exact_rows_in_a_better_basis_are_those_of_the_same_problem(bounded):
    bandit = random_unit(4, 12, seed=3)
    program = ao.programs.remaining(bandit, np.arange(12) * 3.0, 50) if bounded else ao.programs.regret(bandit)
    reduction = reduce(program)
    problem = reduction.canonical
    alpha, lam = np.linspace(1, 2, len(problem.features)), np.linspace(2, 1, len(problem.targets))
    other = well_conditioned(reduction, alpha)
    information = other.features.T @ (alpha[:, None] * other.features) + other.base.T @ other.base
    assert np.allclose(information, np.eye(problem.rank), atol=1e-9)
    assert np.allclose(evaluate(other, alpha, lam).constraints, evaluate(problem, alpha, lam).constraints)
    assert evaluate(other, alpha, lam).lower == pytest.approx(evaluate(problem, alpha, lam).lower)


def test_exact_rows_of_arms_that_show_several_things_are_those_of_the_same_problem():
    shows = [[[1.0, 0.5, 0], [0, 0, 0]], [[0, 1, 0.25], [1, 0, 1], [0, 0, 2]], [[0.5, 0, 1]], [[1, 1, 1], [0, 2, 1]]]
    noise = [[1.0, 2.0], [0.5, 1.0, 3.0], 4.0, [1.0, 0.25]]
    program = ao.AllocationProgram(
        shows, [1, 2, 0, 3], np.eye(3), [1, 0.5, 2], [0, 0.25, 0, 0], [9, 9, 2, 9], noise_variance=noise
    )
    reduction = reduce(program)
    problem = reduction.canonical
    alpha, lam = np.linspace(1, 2, problem.n_variables), np.linspace(2, 1, len(problem.targets))
    other = well_conditioned(reduction, alpha)
    assert other.features.shape == problem.features.shape and other.base.shape == problem.base.shape
    assert np.allclose(evaluate(other, alpha, lam).constraints, evaluate(problem, alpha, lam).constraints)
    assert evaluate(other, alpha, lam).lower == pytest.approx(evaluate(problem, alpha, lam).lower)


@pytest.mark.parametrize(
    ("arms", "theta"),
    [
        ([[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0]], [0, 0, 1, 0.25]),  # rows and variables were mixed up: IndexError
        ([[1, 1], [0, 1], [1, 1]], [-2, 0.5]),  # an element that the best arm shows already: divided by 0
    ],
)
def test_semi_bandits_that_miss_a_tolerance_that_nothing_reaches_are_inaccurate(arms, theta):
    s = ao.solve(ao.programs.semi_bandit(arms, theta), tol=1e-15)
    assert s.status is ao.Status.INACCURATE
    assert s.gap < 1e-9


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0]])
def test_bounds_and_radii_that_are_far_apart_are_certified_in_any_order_of_the_columns(order):
    """An allocation that is enlarged until doubles show that it is feasible costs 7e-4 too much here."""
    features = np.array([[2.0, 1, 2], [0, 2, -2], [0, 0, -2]])[:, order]
    radii, upper = [1.8631691079841073e-09, 217547133564590.2], [np.inf, 2.2297331227751812e-12, 3.3489276167336716e-10]
    s = ao.solve(ao.AllocationProgram(features, np.ones(3), features[:2], radii, upper=upper))
    assert s.status is ao.Status.CERTIFIED
    assert not s.verify(exact=True).problems


def test_scales_of_bounds_and_radii_do_not_cost_the_certificate():
    """Of a hundred such programs one in six used to end with a gap above the tolerance."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        d, k = int(rng.integers(2, 4)), int(rng.integers(3, 7))
        features = rng.integers(-2, 3, size=(k, d)).astype(float)
        radii = 10.0 ** rng.uniform(-9, 18, size=k)
        upper = np.where(rng.uniform(size=k) < 0.5, np.inf, 10.0 ** rng.uniform(-12, 8, size=k))
        try:
            s = ao.solve(ao.AllocationProgram(features, np.ones(k), features, radii, upper=upper))
        except ao.Infeasible:
            continue
        assert s.status is ao.Status.CERTIFIED
        assert not s.verify(exact=True).problems
