"""The Newton system by the entries of matrices against the one by arrays of pairs, and both against differences of h."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import allocopt as ao
from allocopt.certify.canonical import Canonical
from allocopt.solvers.newton import curvature, limited

SHAPES = [(2, 9, 7, 1), (3, 20, 12, 1), (4, 30, 40, 2), (1, 5, 3, 1), (5, 12, 1, 3)]


def problem_of(rank: int, k: int, targets: int, rows: int, seed: int) -> tuple[Canonical, np.ndarray]:
    rng = np.random.default_rng(seed)
    owners = None if rows == 1 else np.repeat(np.arange(k), rows)
    return Canonical(
        rng.normal(size=(k * rows, rank)), rng.normal(size=(targets, rank)), np.zeros((0, rank)), owners=owners
    ), rng.uniform(0.5, 2.0, k)


def whitened(problem: Canonical, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrix = problem.features.T @ (problem.by_row(alpha)[:, None] * problem.features)
    basis = np.linalg.inv(np.linalg.cholesky(matrix)).T
    a, b = problem.features @ basis, problem.targets @ basis
    return a, b, (b * b).sum(axis=1)


def h(problem: Canonical, alpha: np.ndarray) -> np.ndarray:
    return 1.0 / whitened(problem, alpha)[2]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_agree(shape: tuple[int, int, int, int], seed: int) -> None:
    problem, alpha = problem_of(*shape, seed)
    k, m = problem.n_variables, len(problem.targets)
    arrays = whitened(problem, alpha)
    whole, entries = curvature.Whole(problem, *arrays), curvature.ByEntries(problem, *arrays)
    rng = np.random.default_rng(seed + 100)
    step, nu, weights = rng.normal(size=k), rng.uniform(0, 1, m), 10.0 ** rng.uniform(-6, 6, m)
    assert np.allclose(whole.along(step), entries.along(step), rtol=1e-10, atol=1e-12)
    assert np.allclose(whole.back(nu), entries.back(nu), rtol=1e-10, atol=1e-12)
    rows = csr_array(rng.normal(size=(4, k)) * (rng.random((4, k)) < 0.5))
    diagonal, of_rows, right = 10.0 ** rng.uniform(-8, 4, k), 10.0 ** rng.uniform(-6, 6, 4), rng.normal(size=k)
    one, other = (c.factorised(nu, weights, diagonal, rows, of_rows).solve(right) for c in (whole, entries))
    matrix = newton_matrix(problem, alpha, nu, weights, diagonal, rows, of_rows)
    for found in (one, other):
        terms = np.abs(matrix) @ np.abs(found) + np.abs(right)
        assert (np.abs(matrix @ found - right) <= 1e-7 * terms).all()


def newton_matrix(problem, alpha, nu, weights, diagonal, rows, of_rows):  # type: ignore[no-untyped-def]
    """The same matrix by its definition, with derivatives of H^-1 one variable at a time."""
    k = len(alpha)
    inverse = np.linalg.inv(problem.features.T @ (problem.by_row(alpha)[:, None] * problem.features))
    owners = np.arange(k) if problem.owners is None else problem.owners
    each = [problem.features[owners == i].T @ problem.features[owners == i] for i in range(k)]
    total = np.diag(diagonal) + rows.toarray().T @ np.diag(of_rows) @ rows.toarray()
    for t, n, w in zip(problem.targets, nu, weights, strict=True):
        y = inverse @ t
        g = t @ y
        first = np.array([y @ a @ y for a in each])
        second = np.array([[2.0 * (y @ a @ inverse @ b @ y) for b in each] for a in each])
        total += w * np.outer(first, first) / g**4
        total += n * (second / g**2 - 2.0 * np.outer(first, first) / g**3)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_those_of_h(seed: int) -> None:
    problem, alpha = problem_of(3, 8, 5, 1, seed)
    step, size = np.random.default_rng(seed).normal(size=8), 1e-6
    difference = (h(problem, alpha + size * step) - h(problem, alpha - size * step)) / (2 * size)
    for made in (curvature.Whole, curvature.ByEntries):
        assert np.allclose(made(problem, *whitened(problem, alpha)).along(step), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_programs_with_constraints_have_the_same_answers_either_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    k, d = 14, 3
    arms = rng.normal(size=(k, d))
    rows = (rng.random((3, k)) < 0.6).astype(float)
    allocation = rng.uniform(1, 2, k)
    # room enough for an allocation that meets all targets with ease
    g = np.einsum("ij,jk,ik->i", arms, np.linalg.inv(arms.T @ (allocation[:, None] * arms)), arms)
    program = ao.AllocationProgram(
        arms, rng.uniform(0.1, 1, k), arms, 2.0 * g, constraints=(rows, 1.01 * rows @ allocation)
    )
    values = []
    for used in (False, True):
        monkeypatch.setattr(limited, "by_entries", lambda *_, used=used: used)
        for method in ("interior-point", "active-set"):
            s = ao.solve(program, method=method)
            assert s.status is ao.Status.CERTIFIED
            proven = s.verify()
            assert proven.lower <= s.upper * (1 + 1e-12) and s.lower <= proven.upper * (1 + 1e-12)
            values.append(s.value)
    assert np.ptp(values) <= 1e-7 * values[0]


def test_a_thousand_contexts_with_a_budget_take_no_array_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("an array of pairs was made")

    monkeypatch.setattr(curvature, "_Dense", refused)
    rng = np.random.default_rng(0)
    theta = np.array([1.0, -0.5, 0.1])
    contexts, shifts = [], np.array([[0, 0], [1, 0], [2, 0]])
    for _ in range(400):
        rows = np.column_stack([rng.normal(size=(3, 2)) + shifts, np.zeros(3)])
        rows[np.argmin(rows @ theta), 2] = 0.3  # what no optimal arm shows
        contexts.append(rows)
    bandit = ao.ContextualBandit(contexts, theta)
    values = []
    for budget in (3e5, 1e6, 1e8, 1e10):
        s = ao.solve(ao.programs.contextual(bandit, budget=budget), tol=1e-6)
        assert s.status is ao.Status.CERTIFIED
        values.append(s.value)
    free = ao.solve(ao.programs.contextual(bandit)).value
    assert values[0] > 1000 * free and abs(values[-1] / free - 1) < 1e-6
    assert values == sorted(values, reverse=True) or np.allclose(values[1:], free, rtol=1e-6)
