"""Where every arm is optimal there is nothing to explore: c = 0, proven on every road, as where optimal arms span everything."""

import numpy as np
import pytest
from blocks import in_blocks

import allocopt as ao

ARMS, THETA = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [1.0, 1.0]
BANDIT = ao.LinearBandit(ARMS, THETA)
ROADS = {
    "regret_constant": lambda: ao.regret_constant(ARMS, THETA),
    "interior-point": lambda: ao.regret_constant(ARMS, THETA, method="interior-point"),
    "theta = 0": lambda: ao.regret_constant(ARMS, [0, 0]),
    "optimal_pulls": lambda: ao.optimal_pulls(ARMS, [0, 0, 0], 1000),
    "optimism": lambda: ao.solve(ao.programs.optimism(BANDIT, 1.0)),
    "contextual": lambda: ao.solve(ao.programs.contextual(ao.ContextualBandit([ARMS], THETA))),
    "Allocator": lambda: ao.Allocator(ARMS).solve([0, 0, 0]),
    "solve_many": lambda: ao.solve_many(ARMS, [[0, 0, 0]]).solution(0),
}


@pytest.mark.parametrize("road", ROADS)
def test_the_value_is_zero_and_proven_to_the_last_bit(road, tmp_path):
    found = ROADS[road]()
    assert (found.value, found.lower, found.status) == (0.0, 0.0, ao.Status.CERTIFIED)
    assert np.isinf(found.allocation).all() and not len(found.support) and not len(found.binding)
    assert found.verify().upper == found.verify(exact=True).upper == 0.0
    found.save(tmp_path / "p.json")
    assert ao.load_solution(tmp_path / "p.json").value == 0.0


def test_by_blocks_too():
    with in_blocks():
        found = ao.regret_constant(np.array(ARMS), THETA)
    assert (found.value, found.status) == (0.0, ao.Status.CERTIFIED) and found.verify().upper == 0.0


def test_hardness_schedules_and_figures_take_it():
    solution = ao.solve(ao.programs.regret(BANDIT))
    assert ao.hardness(BANDIT).compute().constant == 0.0
    assert ao.Schedule.from_solution(solution, 100).total_regret == 0.0
    assert solution.plot().axes and ao.plots.geometry(BANDIT, solution).axes


def test_there_is_no_best_arm_to_find():
    with pytest.raises(ao.InvalidInstance, match="none is the best one to find"):
        ao.programs.best_arm(BANDIT)
