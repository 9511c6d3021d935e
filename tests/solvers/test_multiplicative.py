"""The first allocation by multiplicative steps: near the optimum where rows are alike, and left alone where they are not."""

import numpy as np
import pytest

import allocopt as ao
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import random_unit
from allocopt.solvers.multiplicative import first_pair

STEPS = 20, 1.0, 1.15


@pytest.mark.parametrize(("d", "k"), [(3, 20), (10, 200)])
def test_twenty_steps_come_within_a_factor_of_the_optimum(d, k):
    program = ao.programs.regret(random_unit(d, k, seed=1))
    problem = reduce(program).canonical
    pair = first_pair(problem, *STEPS)
    assert pair is not None
    bounds, value = evaluate(problem, *pair), ao.solve(program).value
    assert value * (1 - 1e-8) <= bounds.upper <= 1.5 * value
    assert bounds.lower <= value
    assert bounds.upper < evaluate(problem, *first_pair(problem, 1, *STEPS[1:])).upper


def test_rows_of_very_different_lengths_are_left_to_another_start():
    arms = [[1, 0], [0, 1], [0.5, 1], [0, 4.155056390074586e-81]]
    program = ao.programs.regret(ao.LinearBandit(arms, [1, 0]))
    assert first_pair(reduce(program).canonical, *STEPS) is None
    assert ao.solve(program, "active-set").status is ao.Status.CERTIFIED


def test_bounds_on_the_allocation_are_left_to_another_start():
    program = ao.programs.optimism(random_unit(3, 12), 1.0)
    assert first_pair(reduce(program).canonical, *STEPS) is None


@pytest.mark.parametrize("exponent", [-40, 0, 40])
def test_units_change_no_bit(exponent):
    bandit = random_unit(4, 30, seed=2)
    units = 2.0 ** np.array([exponent, 0, -exponent, 1])
    other = ao.LinearBandit(bandit.arms * units, bandit.theta / units)
    one, two = (first_pair(reduce(ao.programs.regret(b)).canonical, *STEPS) for b in (bandit, other))
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])


def test_any_number_of_first_steps_keeps_to_the_time():
    """They did not look at the clock: a billion of them took hours, whatever max_seconds said."""
    s = ao.solve(ao.programs.regret(random_unit(3, 8, seed=0)), "active-set", first_steps=10**9, max_seconds=0.2)
    assert s.stats["seconds"] < 5 and s.lower <= s.upper
