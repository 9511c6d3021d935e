"""A second try is never worse than the first answer, mends a poor one, and keeps to its time; refinement likewise."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import answered, bandits

import allocopt as ao
from allocopt.certify.certificate import evaluate
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
