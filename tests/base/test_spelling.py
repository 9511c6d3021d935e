"""Arguments that do not fit are told which one was meant; what fits, and what goes wrong further down, is left alone."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allocopt as ao
from allocopt.base.errors import SlowWarning, warn_caller
from allocopt.base.spelling import spelled

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
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "named", "says"), CALLS)
def test_the_right_word_is_named(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any], says: str
) -> None:
    with pytest.raises(TypeError) as caught:
        function(*given, **named)
    assert says in str(caught.value) and "\n" not in str(caught.value)


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
