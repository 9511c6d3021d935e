"""Calls that cannot work, as people write them: one line that names the argument, what it was, and what was expected."""

from __future__ import annotations

import numpy as np
import pytest

import allocopt as ao

ARMS, THETA = [[1, 0], [0, 1], [0.99, 0.02]], [1, 0]
BANDIT = ao.LinearBandit(ARMS, THETA)
SOLUTION = ao.solve(ao.programs.regret(BANDIT))
HARDNESS = ao.hardness(BANDIT)
RUN = ao.simulate("LinTS", BANDIT, 100, 2, rng=0, workers=1)
MANY = ao.solve_many(ARMS, gaps=[[0, 1, 0.01], [0, 0.5, 0.2]])
SCHEDULE = ao.Schedule.from_solution(SOLUTION, horizon=100)

CALLS = [
    (lambda: ao.regret_constant(None, THETA), "arms: expected a matrix of numbers (one row per vector), got None"),
    (lambda: ao.regret_constant(THETA, ARMS), "two arguments are swapped, write arms first"),
    (lambda: ao.regret_constant(BANDIT, THETA), "got a LinearBandit; write its .arms"),
    (lambda: ao.regret_constant(ARMS, "x"), "theta: expected a vector of numbers, got 'x'"),
    (lambda: ao.regret_constant(ARMS, [1, 0, 0]), "theta: expected 2 entries (the arms have 2 columns), got 3"),
    (lambda: ao.regret_constant(ARMS, THETA, tol="a"), "tol: expected a positive, finite number, got 'a'"),
    (lambda: ao.solve(BANDIT), "write solve(programs.regret(bandit))"),
    (lambda: ao.solve(SOLUTION), "write solve(solution.program)"),
    (lambda: ao.solve_many(ARMS, [[1, 2]]), "gaps: expected 3 columns, one per arm, got 2"),
    (lambda: ao.Allocator(ARMS).solve(None), "gaps: expected a vector of numbers, got None"),
    (lambda: ao.LinearBandit(ARMS, THETA, labels="abc"), "labels: expected a list of 3 strings, got a str"),
    (lambda: ao.programs.top_m(BANDIT, 1.5), "m: expected a whole number >= 1, got 1.5"),
    (lambda: ao.programs.threshold(BANDIT, None), "tau: expected a finite number, got None"),
    (lambda: ao.hardness(ARMS), "bandit: expected a LinearBandit, got a list; write LinearBandit(arms, theta)"),
    (lambda: ao.simulate(BANDIT, "LinTS", 100, 2), "two arguments are swapped"),
    (lambda: ao.simulate(ao.policies.LinTS, BANDIT, 100, 2), "expected a policy such as LinTS(), got the class LinTS"),
    (lambda: ao.compare(RUN, None), "second: expected a SimulationResult, got a NoneType"),
    (lambda: ao.audit(BANDIT, [[1, 2]], 10), "pulls: expected shape (3,) or (runs, 3), got (1, 2)"),
    (lambda: ao.finite_time_bound(BANDIT, 100, None), "worst_regret: expected a positive, finite number, got None"),
    (lambda: ao.load_solution(None), "path: expected the name of a file or folder, got a NoneType"),
    (lambda: ao.load_simulation(3), "path: expected the name of a file or folder, got a int"),
    (lambda: ao.study(None, "f"), "spec: expected a dictionary or the path of a TOML file, got a NoneType"),
    (lambda: ao.Schedule.from_solution(100, SOLUTION), "solution: expected a Solution, got a int"),
    (lambda: ao.barycentric_spanner(ARMS, C="x"), "C: expected a number >= 1, got 'x'"),
    (lambda: ao.oracle_allocation(None, THETA), "oracle: expected dim and a call with a direction, got a NoneType"),
    (lambda: ao.graphs.path_arms("s", "t", None), "G: expected a networkx graph, got a str"),
    (lambda: ao.instances.build("random-unt"), "(did you mean 'random-unit'?)"),
    (lambda: ao.constants.named("x"), "name: expected one of"),
    (lambda: ao.constants.proven(3), "constant: expected one of constants.CONSTANTS, or named(...), got a int"),
    (lambda: ao.policies.parse(3), "policy: expected text such as 'UCB:a=0.5', got a int"),
    (lambda: ao.plots.regret_curves([RUN]), "curves: expected a mapping from names to simulations or (times, regret), got a list"),
    (lambda: ao.plots.regret_curves({}), "got an empty one"),
    (lambda: ao.plots.pulls_over_time(RUN, arms=3), "arms: expected a list of numbers of arms, got a int"),
    (lambda: ao.plots.study_chart(3), "result: expected a StudyResult, got a int"),
    (lambda: SOLUTION.save(None), "path: expected the name of a file or folder, got a NoneType"),
    (lambda: SOLUTION.to_latex(most="x"), "most: expected a whole number >= 0, got 'x'"),
    (lambda: BANDIT.to_latex(most=-1), "most: expected a whole number >= 0, got -1"),
    (lambda: MANY.solution(7), "row: expected a number from 0 to 1, got 7"),
    (lambda: MANY.solution(None), "row: expected a number from 0 to 1, got None"),
    (lambda: HARDNESS.compute(step=3), "step: expected a function, got a int"),
    (lambda: HARDNESS.without("x"), "arm: expected"),
    (lambda: RUN.quantiles("x"), "q: expected"),
    (lambda: SCHEDULE.pulls_at(None), "t: expected"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_a_wrong_call_is_answered_in_one_line(call, says):
    with pytest.raises(ao.AllocoptError) as caught:
        call()
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_settings_and_players_name_the_argument_too():
    with pytest.raises(TypeError, match="InteriorPointSettings: unknown argument 'foo'"):
        ao.settings.InteriorPointSettings(foo=3)
    with pytest.raises(TypeError, match="Policy.start: missing a required argument: 'horizon'".replace(".", r"\.")):
        ao.policies.LinTS().start(np.eye(2))
    with pytest.raises(TypeError, match="page: unknown argument 'foo'"):
        HARDNESS.to_html(foo=3)
