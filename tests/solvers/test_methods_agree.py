"""All methods bracket the same number, and none of them is believed without a certificate."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import answered, bandits

import allocopt as ao
from allocopt import solvers
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import counter_example, random_unit

OPTIMA = {(5, 20): 61.409067, (10, 50): 57.313610, (10, 200): 282.795995, (20, 200): 198.493814, (20, 500): 517.59653}


def applicable(program):
    problem = reduce(program).canonical
    return [m.name for m in solvers.METHODS.values() if len(problem.features) and m.lacks(problem) is None]


def check_agreement(program, tolerances):
    answers = [ao.solve(program, method=m, tol=tolerances[m]) for m in applicable(program) if m in tolerances]
    if not answers:  # nothing to decide: the value is that of the lower bounds
        s = ao.solve(program)
        assert s.lower <= program.costs @ program.lower <= s.upper
        assert answered(s)
        return
    for s in answers:
        assert s.lower <= s.upper
        assert (s.gap <= s.tol) == (answered(s))
    assert max(s.lower for s in answers) <= min(s.upper for s in answers) * (1 + 1e-12)


SECOND_ORDER = {"closed-form": 1e-8, "design": 1e-8, "interior-point": 1e-8, "active-set": 1e-8}


@given(bandits())
def test_second_order_methods_intersect_on_nasty_instances(bandit):
    check_agreement(ao.programs.regret(bandit), SECOND_ORDER)


@given(bandits())
def test_first_order_intersects_too(bandit):
    check_agreement(ao.programs.regret(bandit), {"frank-wolfe": 1e-2, "active-set": 1e-6})


@settings(max_examples=25)
@given(bandits(max_dim=4, max_arms=8))
def test_conic_intersects_too(bandit):
    check_agreement(ao.programs.regret(bandit), {"conic": 1e-5, "interior-point": 1e-8})


@given(bandits())
def test_other_programs_intersect(bandit):
    check_agreement(ao.programs.g_optimal(bandit.arms), SECOND_ORDER)
    check_agreement(ao.programs.optimism(bandit, 1.0), SECOND_ORDER)
    check_agreement(ao.programs.remaining(bandit, np.arange(bandit.n_arms), 1000), SECOND_ORDER)
    if len(bandit.optimal_arms) == 1:
        check_agreement(ao.programs.best_arm(bandit), SECOND_ORDER)


@pytest.mark.parametrize("size", OPTIMA)
@pytest.mark.parametrize(
    ("method", "tol"), [("interior-point", 1e-8), ("active-set", 1e-8), ("frank-wolfe", 1e-3), ("conic", 1e-5)]
)
def test_known_optima_are_certified(size, method, tol):
    s = ao.solve(ao.programs.regret(random_unit(*size)), method=method, tol=tol)
    assert answered(s)
    assert s.value == pytest.approx(OPTIMA[size], rel=max(tol, 1.1e-8))


def test_both_conic_formulations_and_solvers_agree():
    program = ao.programs.regret(random_unit(5, 20))
    for options in ({"formulation": "lmi"}, {"solver": "SCS"}, {"solver": "clarabel"}):
        s = ao.solve(program, "conic", tol=1e-4, **options)
        assert answered(s)
        assert s.lower <= 61.40906701 <= s.upper * (1 + 1e-9)


def test_auto_chooses_by_structure_and_size():
    assert ao.regret_constant(np.eye(3), [1, 0.5, 0]).method == "closed-form"
    assert ao.solve(ao.programs.regret(random_unit(5, 20))).method == "interior-point"
    assert ao.solve(ao.programs.regret(random_unit(5, 200))).method == "active-set"


def test_a_lying_back_end_is_not_believed(monkeypatch):
    """Whatever a method returns, bounds and status come from the program."""

    def lies(problem, monitor):
        monitor.report(np.full(len(problem.features), 1e-9), np.zeros(len(problem.targets)), 1)
        return {"status": "optimal"}

    monkeypatch.setattr(importlib.import_module("allocopt.solving.solve"), "backend", lambda method: lies)
    s = ao.solve(ao.programs.regret(counter_example(0.1)), "interior-point")
    assert s.status is ao.Status.INACCURATE
    assert s.value >= 8
    assert s.lower <= 8


def test_a_back_end_that_reports_nothing_still_gives_a_feasible_answer(monkeypatch):
    monkeypatch.setattr(
        importlib.import_module("allocopt.solving.solve"), "backend", lambda method: lambda problem, monitor: {}
    )
    s = ao.solve(ao.programs.regret(counter_example(0.1)), "interior-point")
    assert s.lower <= 8 <= s.value < np.inf
    assert s.status is ao.Status.INACCURATE


def test_every_pass_of_a_large_solve_is_certified_and_few_are_needed():
    steps = []
    s = ao.solve(ao.programs.regret(random_unit(20, 10_000)), callback=steps.append)
    assert answered(s)
    assert s.stats["passes"] < 20
    lower = max(p.lower for p in steps)
    assert all(p.lower <= s.upper and p.upper >= s.lower for p in steps)
    assert lower == pytest.approx(s.value, rel=1e-8)
