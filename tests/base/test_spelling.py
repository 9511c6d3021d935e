"""Arguments that do not fit are told which one was meant; what fits, and what goes wrong further down, is left alone."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import allocopt as ao
from allocopt.base.errors import SlowWarning, warn_caller
from allocopt.base.spelling import spelled
from allocopt.model.tables import Tabular

BANDIT = ao.instances.random_unit(3, 6)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (ao.simulate, ("LinTS", BANDIT, 100, 2), {"seed": 1}, "simulate: unknown argument 'seed' (did you mean 'rng'?)"),
    (ao.simulate, ("LinTS", BANDIT), {"rounds": 100}, "'rounds' (did you mean 'horizon'?)"),
    (ao.LinearBandit, (np.eye(2), [1, 0]), {"noise": 0.5}, "LinearBandit: unknown argument 'noise' (did you mean 'noise_variance'?)"),
    (ao.ContextualBandit, ([np.eye(2)], [1, 0]), {"weight": [1]}, "(did you mean 'weights'?)"),
    (ao.AllocationProgram, (np.eye(2), [1, 1], np.eye(2), [1, 1]), {"lowr": 1}, "(did you mean 'lower'?)"),
    (ao.hardness, (BANDIT,), {"program": "x"}, "unknown argument 'program' (known: bandit, tol, callback)"),
    (ao.programs.top_m, (BANDIT,), {"k": 2}, "top_m: unknown argument 'k' (did you mean 'm'?)"),
    (ao.instances.random_unit, (3, 6), {"rng": 1}, "(did you mean 'seed'?)"),
    (ao.Allocator, (np.eye(2),), {"tolerance": 1}, "(did you mean 'tol'?)"),
    (ao.solve_many, (BANDIT,), {"tolerance": 1}, "(did you mean 'tol'?)"),
    (ao.barycentric_spanner, (np.eye(2),), {"c": 2}, "(did you mean 'C'?)"),
    (ao.study, ("x",), {"output": 2}, "(did you mean 'folder'?)"),
    (ao.compare, (1,), {}, "compare: missing a required argument: 'second'; call it as compare(first, second, confidence)"),
    (ao.optimal_pulls, (BANDIT, 100), {}, "got a LinearBandit; write optimal_pulls(bandit.arms, bandit.gaps, n)"),
    (ao.finite_time_bound, (BANDIT, 1000), {}, "missing a required argument: 'worst_regret'"),
    (ao.simulate, (), {}, "simulate: missing a required argument: 'policy'; call it as simulate(policy, bandit, horizon, runs, …)"),
    (ao.AllocationProgram, (), {}, "call it as AllocationProgram(features, costs, targets, radii, …)"),
    (ao.hardness, (np.eye(2), [1, 0]), {}, "expected a LinearBandit, got a ndarray; write hardness(LinearBandit(arms, theta))"),
    (ao.programs.top_m, (np.eye(2), [1, 0], 1), {}, "got a ndarray; write top_m(LinearBandit(arms, theta), m)"),
    (ao.hardness, (BANDIT, 1e-6), {}, "expected at most 1 argument without a name, got 2; call it as hardness(bandit, tol=…, "),
    (ao.regret_constant(np.eye(2), [1, 0]).plot, (3,), {}, "Solution.plot: expected no arguments without a name, got 1"),
    (ao.regret_constant(np.eye(2), [1, 0]).plot, (), {"kind": "x"}, "allocation: unknown argument 'kind' (known: solution, most, "),
    (ao.Schedule.from_solution, (), {}, "a required argument: 'solution'; call it as Schedule.from_solution(solution, horizon, …)"),
    (ao.policies.LinTS, (), {"alpha": 1}, "LinTS: unknown argument 'alpha'"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "named", "says"), CALLS)
def test_the_right_word_is_named(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any], says: str
) -> None:
    with pytest.raises(TypeError) as caught:
        function(*given, **named)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, constructor that users call, and method of a result."""
    modules = (ao, ao.arms, ao.constants, ao.graphs, ao.instances, ao.plots, ao.policies, ao.programs)
    for module in modules:
        for name in dir(module):
            found = getattr(module, name)
            if inspect.isfunction(found) and not inspect.isgeneratorfunction(inspect.unwrap(found)):
                yield name, found
            elif inspect.isclass(found) and issubclass(found, Tabular):
                yield from ((f"{name}.{m}", f) for m, f in vars(found).items() if inspect.isfunction(f) and m[0] != "_")
    made = (ao.Allocator, ao.LinearBandit, ao.ContextualBandit, ao.AllocationProgram, ao.Allocator.solve)
    yield from ((c.__qualname__, c) for c in made)
    yield from ((name, getattr(ao.policies, name)) for name in ao.policies.NAMES)


def test_every_public_call_says_by_its_name_which_argument_it_does_not_know() -> None:
    calls = dict(public_calls())
    assert len(calls) > 140
    for name, call in calls.items():
        signature = inspect.signature(call)
        if not signature.parameters or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            continue
        with pytest.raises(TypeError, match="unknown argument 'no_such_word'") as caught:
            call(*([None] if "self" in signature.parameters else []), no_such_word=1)
        message = str(caught.value)
        assert "\n" not in message and message.split(":")[0].split(".")[-1] == name.split(".")[-1], message
        assert " _" not in message and "self" not in message


def test_names_of_modules_that_do_not_exist_are_answered_with_those_that_do() -> None:
    for module, wrong in ((ao, "regret_constants"), (ao.policies, "LinTs")):
        with pytest.raises(AttributeError, match=f"has no attribute '{wrong}'") as caught:
            getattr(module, wrong)
        assert caught.value.name == wrong and caught.value.obj is module  # Python says from these what was meant


def test_the_entry_that_is_no_number_is_named() -> None:
    with pytest.raises(ao.InvalidInstance, match="which holds 'a'"):
        ao.regret_constant([[1, 0], ["a", 0]], [1, 0])  # type: ignore[list-item]
    with pytest.raises(ao.InvalidInstance, match="which holds 'b'"):
        ao.regret_constant(np.array([["b", "1"]]), [1, 0])


def test_an_error_from_further_down_stays_as_it_is() -> None:
    @spelled
    def fails(x: int, *, y: int = 0) -> int:
        """What it does."""
        return x + len(5)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        fails(1)
    assert str(inspect.signature(fails)) == "(x: 'int', *, y: 'int' = 0) -> 'int'"
    assert fails.__doc__ == "What it does." and fails.__globals__ is globals()  # type: ignore[attr-defined]


def test_the_functions_can_be_sent_to_other_processes() -> None:
    for function in (ao.solve, ao.simulate, ao.programs.regret, ao.LinearBandit):
        assert pickle.loads(pickle.dumps(function)) is function


def test_warnings_point_at_the_line_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allocopt.play.simulation.duration._MANY", 0)
    monkeypatch.setattr("allocopt.play.simulation.duration._LONG", 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ao.simulate("LinTS", BANDIT, 10, 2, workers=1)
        warn_caller("here", SlowWarning)
    assert {w.category for w in caught} >= {SlowWarning} and {w.filename for w in caught} == {__file__}
