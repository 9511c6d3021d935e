"""Interrupts and time limits leave an answer that holds."""

import math
import sys
import time
import warnings

import numpy as np
import pytest
from refusals import ARMS, THETA

import allocopt as ao
from allocopt.insight.instances import random_unit
from allocopt.solvers import methods

LARGE = random_unit(20, 2000)
METHODS_OF_LARGE = ("interior-point", "active-set", "frank-wolfe")


def is_usable(s):
    """The bounds are finite and in order, and the allocation meets the constraints as the definition says."""
    assert math.isfinite(s.upper)
    assert 0 <= s.lower <= s.upper
    assert (s.allocation >= 0).all()
    program = s.program
    finite = np.isfinite(s.allocation)
    weight = np.where(finite, s.allocation, 1e9 * s.allocation[finite].max())
    factor = np.linalg.qr(program.features * np.sqrt(weight)[:, None], mode="r")
    norms = (np.linalg.solve(factor.T, program.targets.T) ** 2).sum(axis=0)
    assert (norms <= program.radii * (1 + 1e-6)).all()
    assert program.costs[finite] @ s.allocation[finite] == pytest.approx(s.upper, rel=1e-9)


@pytest.fixture(scope="module")
def reference():
    """The value of the large instance, from the default method."""
    s = ao.solve(ao.programs.regret(LARGE))
    assert s.status is ao.Status.CERTIFIED
    return s


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS_OF_LARGE)
def test_an_interrupt_leaves_a_certified_solution(method, calls, reference):
    program = reference.program if method != "interior-point" else ao.programs.regret(random_unit(5, 60))
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == calls:
            raise KeyboardInterrupt

    with pytest.raises(ao.Interrupted) as caught:
        ao.solve(program, method, callback=stop)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert len(seen) == calls
    s = caught.value.solution
    is_usable(s)
    assert s.lower >= seen[-1].lower * (1 - 1e-12)  # or sharper, in ball arithmetic
    assert s.upper <= seen[-1].upper * (1 + 1e-12)
    assert s.status is ao.Status.CERTIFIED or s.stats["reason"] == "interrupted"
    e = s.verify() if method == "interior-point" else s
    assert e.lower <= s.upper
    assert s.lower <= e.upper


def test_what_a_callback_raises_comes_through_unchanged():
    class Mine(Exception):
        pass

    def stop(_):
        raise Mine("my own")

    with pytest.raises(Mine, match="my own"):
        ao.regret_constant(ARMS, THETA, callback=stop)


@pytest.mark.parametrize("method", METHODS_OF_LARGE)
@pytest.mark.parametrize("seconds", [1e-9, 0.05])
def test_max_seconds_returns_promptly_with_bounds_that_hold(method, seconds, reference):
    started = time.perf_counter()
    s = ao.solve(reference.program, method, max_seconds=seconds)
    assert time.perf_counter() - started < 5
    is_usable(s)
    assert s.lower <= reference.upper
    assert s.upper >= reference.lower
    if s.status is not ao.Status.CERTIFIED:
        assert s.status is ao.Status.INACCURATE
        assert "max_seconds" in s.stats["reason"]
        assert s.gap > s.tol


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_max_seconds_holds_for_the_conic_solvers_too(solver):
    started = time.perf_counter()
    s = ao.solve(ao.programs.regret(random_unit(10, 200)), "conic", max_seconds=0.01, solver=solver)
    assert time.perf_counter() - started < 5
    assert s.status in (ao.Status.INACCURATE, ao.Status.CERTIFIED)
    is_usable(s)


def test_the_time_limit_holds_for_whether_constraints_leave_anything(monkeypatch):
    """Where nothing was found in time, the second question gets what is left, at least a tenth, and says when it ran out."""
    solve_module = sys.modules["allocopt.solving.solve"]
    limits, solve_in_memory = [], solve_module._solve_in_memory

    def watched(program, asked, tol, max_seconds, *rest):
        limits.append(max_seconds)
        return solve_in_memory(program, asked, tol, max_seconds, *rest)

    monkeypatch.setattr(solve_module, "_solve_in_memory", watched)
    rng = np.random.default_rng(0)
    bandit = ao.ContextualBandit([rng.normal(size=(3, 4)) for _ in range(30)], rng.normal(size=4))
    found = ao.solve(ao.programs.contextual(bandit, budget=1e3), max_seconds=1e-5)
    assert found.status is ao.Status.FAILED and "max_seconds" in found.stats["reason"]
    assert "could not be decided" in found.stats["reason"]
    assert limits == [1e-5, pytest.approx(1e-6)]


def test_very_many_dimensions_are_said_to_take_long_before_they_do(monkeypatch):
    monkeypatch.setattr(methods, "_LONG", 1e-9)
    program = ao.programs.regret(ao.instances.random_unit(3, 200))
    with pytest.warns(ao.SlowWarning, match=r"^solving in 2 dimensions takes about .* or more; max_seconds= ends it"):
        ao.solve(program)
    with pytest.warns(ao.SlowWarning, match=r"^solving in 3 dimensions"):  # its formula needs a design
        ao.solve(ao.programs.g_optimal(np.random.default_rng(0).normal(size=(40, 3))), road="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ao.solve(program, max_seconds=100)
        ao.solve(ao.programs.g_optimal(np.eye(30)), road="numpy")  # a formula takes no time
