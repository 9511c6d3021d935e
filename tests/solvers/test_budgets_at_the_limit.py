"""Budgets hardly above the least that leaves any allocation, and generous ones: both are solved, and quickly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import allocopt as ao
from allocopt.base import machine
from allocopt.solvers.newton import costless, limited, sparse_plus_few, within_limits

LEAST = {1: 1253.228, 2: 4209.7113, 3: 127210.425}
"""For each seed a budget below which no allocation meets the targets, and hardly above the least that does."""


def contexts(seed: int) -> ao.ContextualBandit:
    rng = np.random.default_rng(seed)
    count, dim = int(rng.integers(60, 260)), int(rng.integers(3, 9))
    return ao.ContextualBandit(list(rng.normal(size=(count, 3, dim))), rng.normal(size=dim))


@pytest.mark.parametrize("seed", LEAST)
@pytest.mark.parametrize("share", [1.0002, 1.01, 1.5])
def test_budgets_hardly_above_the_least_are_certified(seed: int, share: float) -> None:
    bandit, budget = contexts(seed), LEAST[seed] * share
    solution = ao.solve(ao.programs.contextual(bandit, budget=budget))
    assert solution.status is ao.Status.CERTIFIED and solution.value > 0
    assert solution.verify().gap <= 2e-8
    shares = np.bincount(np.repeat(np.arange(len(bandit.contexts)), 3), weights=solution.allocation)
    assert (shares <= budget / len(bandit.contexts) * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", LEAST)
def test_budgets_below_the_least_are_proven_infeasible(seed: int) -> None:
    with pytest.raises(ao.Infeasible):
        ao.solve(ao.programs.contextual(contexts(seed), budget=LEAST[seed] * 0.99))


def test_a_generous_budget_is_met_for_nothing_without_a_newton_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "minimise", lambda *_: pytest.fail("a Newton step was made"))
    bandit = contexts(1)
    for method in ("auto", "interior-point", "active-set"):
        solution = ao.solve(ao.programs.contextual(bandit, budget=4 * LEAST[1]), method=method)
        assert (solution.status, solution.value) == (ao.Status.CERTIFIED, 0.0)
        assert solution.verify().upper == 0.0


def test_room_is_shared_by_what_costs_nothing_and_stays_within_every_row() -> None:
    rng = np.random.default_rng(0)
    program = ao.AllocationProgram(
        np.eye(4), [0, 0, 1, 0], np.eye(4)[:3], [1.0, 1.0, 1.0], constraints=([[1, 2, 1, 0], [0, 1, 0, 3]], [5.0, 3.0])
    )
    solution = ao.solve(program)
    assert solution.status is ao.Status.CERTIFIED and solution.value == pytest.approx(1.0, rel=1e-8)
    limits = costless.Limits(
        np.repeat(np.arange(3), 4),
        np.tile(np.arange(4), 3),
        rng.uniform(0.1, 2.0, 12),
        rng.uniform(1, 5, 3),
        np.ones(3),
        0.0,
        4,
    )
    alpha = costless._shared_evenly(limits, np.array([0, 2, 3]))
    assert alpha[1] == 0 and (alpha[[0, 2, 3]] > 0).all()
    assert (limits.used(alpha) <= limits.room).all() and (limits.used(alpha) > 0.3 * limits.room).any()


def system(seed: int, spread: float) -> tuple[sparse_plus_few.SparsePlusFew, np.ndarray, np.ndarray]:
    """A Newton system of 60 variables whose weights span many orders of magnitude, and the same as an array."""
    rng = np.random.default_rng(seed)
    matrices, root = rng.normal(size=(5, 60)), rng.normal(size=(5, 5))
    rows = csr_array(np.kron(np.eye(20), np.ones((1, 3))))
    diagonal, of_rows = (np.exp(spread * rng.normal(size=count)) for count in (60, 20))
    core = root @ root.T
    whole = matrices.T @ core @ matrices + np.diag(diagonal) + rows.T @ np.diag(of_rows) @ rows
    return sparse_plus_few.SparsePlusFew(matrices, core, diagonal, rows, of_rows), whole, rng.normal(size=60)


@pytest.mark.parametrize("spread", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("seed", range(4))
def test_newton_systems_are_solved_by_parts_or_as_a_whole(seed: int, spread: float) -> None:
    factor, whole, right = system(seed, spread)
    unit = 1.0 / np.sqrt(np.diag(whole))
    for _ in range(2):
        solution = factor.solve(right)
        left = np.abs((right - whole @ solution) * unit).max()
        assert left <= 1e-8 * np.abs(right * unit).max()
        factor.by_parts = None  # then as a whole


def test_what_is_solved_badly_by_parts_is_solved_as_a_whole() -> None:
    factor, whole, right = system(0, 1.0)

    class Bad:
        def solve(self, right: np.ndarray) -> np.ndarray:
            return 1e3 * right

    factor.by_parts = Bad()
    assert np.allclose(whole @ factor.solve(right), right, rtol=0, atol=1e-8)
    assert factor.by_parts is None


def test_what_takes_long_under_linear_constraints_is_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within_limits, "_LONG", 1e-3)
    with pytest.warns(ao.SlowWarning, match=r"681 arms under 227 linear constraints: solving takes about "):
        ao.solve(ao.programs.contextual(contexts(2), budget=1.5 * LEAST[2]))


def test_newton_matrices_that_do_not_fit_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    factor, _, right = system(0, 1.0)
    factor.by_parts = None

    def no_memory(system: object) -> None:
        raise SystemError("gstrf was called with invalid arguments")

    with monkeypatch.context() as patch:
        patch.setattr(sparse_plus_few, "splu", no_memory)
        with pytest.raises(ao.InvalidProgram, match=r"a Newton matrix of 60 arms does not fit into memory"):
            factor.solve(right)
    program = ao.programs.contextual(contexts(2), budget=1.5 * LEAST[2])
    with monkeypatch.context() as patch:
        patch.setattr(machine, "free_memory", lambda: 10**5)
        with pytest.raises(
            ao.InvalidProgram, match=r"a Newton matrix of 681 arms would take .* of memory, but 100 kB are free"
        ):
            ao.solve(program)
