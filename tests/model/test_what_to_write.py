"""What is given in place of a bandit or a program, or in the wrong order, is answered with what to write."""

import networkx as nx
import pytest
from refusals import refused

import allocopt as ao
from allocopt import plots

BANDIT = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
GRAPH = ao.graphs.path_arms(nx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")]), "s", "t")
SOLUTION = ao.solve(ao.programs.regret(BANDIT))
RESULT = ao.simulate("LinTS", BANDIT, 100, 2, rng=0)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["arms:", "LinearBandit", "solve(programs.regret(bandit))"], lambda: ao.regret_constant(BANDIT)),
        (["arms:", "GraphArms", ".bandit()"], lambda: ao.regret_constant(GRAPH)),
        (["theta:", "got None", "regret_constant(arms, theta)"], lambda: ao.regret_constant(BANDIT.arms)),
        (["bandit:", "GraphArms", ".bandit()"], lambda: ao.programs.regret(GRAPH)),
        (["bandit:", "GraphArms", ".bandit()"], lambda: ao.programs.best_arm(GRAPH)),
        (["bandit:", "GraphArms", ".bandit()"], lambda: ao.hardness(GRAPH)),
        (["bandit:", "GraphArms", ".bandit()"], lambda: ao.simulate("LinTS", GRAPH, 100, 2)),
        (["bandit:", "GraphArms", ".bandit()"], lambda: ao.finite_time_bound(GRAPH, 100, 10.0)),
        (["bandit:", "SimulationResult", ".bandit"], lambda: ao.programs.regret(RESULT)),
        (["bandit:", "ndarray", "LinearBandit(arms, theta)"], lambda: ao.programs.regret(BANDIT.arms)),
        (["bandit:", "str", "swapped", "simulate(policy, bandit,"], lambda: ao.simulate(BANDIT, "LinTS", 100, 2)),
        (["bandit:", "int", "swapped", "(bandit, n,"], lambda: ao.finite_time_bound(100, BANDIT, 10.0)),
        (["bandit:", "ndarray", "swapped", "audit(bandit, pulls, n)"], lambda: ao.audit(RESULT.pulls, BANDIT, 100)),
        (["bandit:", "Solution", "swapped"], lambda: plots.geometry(SOLUTION, BANDIT)),
        (["arms:", "swapped"], lambda: ao.regret_constant(BANDIT.theta, BANDIT.arms)),
        (["arms:", "swapped"], lambda: ao.LinearBandit([1, 0], [[1, 0], [0, 1]])),
        (["pulls:", "SimulationResult", ".pulls,"], lambda: ao.audit(BANDIT, RESULT, 100)),
    ],
)
def test_it_is_said_what_to_write(words, call):
    refused(ao.InvalidInstance, words, call)


def test_a_program_is_told_how_to_be_made_of_a_graph():
    refused(ao.InvalidProgram, ["program:", "GraphArms", ".bandit()"], lambda: ao.solve(GRAPH))


@pytest.mark.parametrize("theta", [[1, 0], None, 3, [], "x"], ids=repr)
def test_what_is_not_swapped_is_not_said_to_be(theta):
    with pytest.raises(ao.InvalidInstance) as caught:
        ao.LinearBandit([1, 0], theta)
    assert "swapped" not in str(caught.value)


def test_what_is_advised_works():
    assert ao.solve(ao.programs.regret(GRAPH.bandit([-1, -3, -1]))).status.name == "CERTIFIED"
    assert ao.audit(BANDIT, RESULT.pulls, 100).runs == 2
    assert ao.audit(RESULT.bandit, RESULT.pulls_at([100]), [100]).runs == 2
