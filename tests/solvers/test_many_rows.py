"""Very many linear constraints: some arms at a time, with the rows that they are in."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import allocopt as ao
from allocopt.certify.canonical import Limits
from allocopt.certify.reduction import reduce
from allocopt.solvers.newton import curvature, limited, within_limits


def capped(k: int, cap: float) -> ao.AllocationProgram:
    """No arm is played more than ``cap`` times, said by a row for each."""
    arms = np.random.default_rng(0).normal(size=(k, 3))
    rows = sparse.eye_array(k, format="csr"), np.full(k, cap)
    return ao.AllocationProgram(arms, np.ones(k), arms[:100], np.ones(100), constraints=rows)


def test_rows_that_ask_for_many_arms_are_met_in_few_masters_of_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    program = capped(3000, 0.01)
    at_once = ao.solve(program, tol=1e-6)
    monkeypatch.setattr(within_limits, "_MANY", 100)
    sizes, minimise = [], limited.minimise

    def watched(part, *rest):  # type: ignore[no-untyped-def]
        sizes.append((part.n_variables, len(part.limits.room)))
        return minimise(part, *rest)

    monkeypatch.setattr(limited, "minimise", watched)
    found = ao.solve(program, tol=1e-6)
    assert found.status.name == at_once.status.name == "CERTIFIED" and "passes" in found.stats
    assert found.lower <= at_once.upper and at_once.lower <= found.upper
    assert (found.allocation > 0.005).sum() > 100  # so many are needed
    assert found.stats["passes"] <= 15
    assert all(rows == variables for variables, rows in sizes)


def test_rows_that_no_arm_can_meet_are_proven_infeasible_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within_limits, "_MANY", 100)
    with pytest.raises(ao.Infeasible, match="by at least"):
        ao.solve(capped(1000, 1e-4), tol=1e-6)


def test_a_part_has_the_rows_of_its_arms_and_those_that_ask_for_some() -> None:
    matrix = [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.0, 1.0, 1.0]]
    program = ao.AllocationProgram(np.eye(3), np.ones(3), np.eye(3), np.ones(3), constraints=(matrix, [9, 8, -3, 7]))
    problem = reduce(program).canonical
    assert problem.limits is not None
    rows = within_limits._rows_about(problem.limits, np.array([0]))
    assert rows.tolist() == [0, 2]
    part = within_limits.restricted(problem, np.array([0, 1]), rows=np.array([0, 2, 3]))
    assert part.limits is not None
    whole = problem.limits.dense()
    assert (part.limits.dense() == whole[np.ix_([0, 2, 3], [0, 1])]).all()
    assert part.limits.room.tolist() == problem.limits.room[[0, 2, 3]].tolist()


def test_rows_that_couple_all_variables_are_solved_by_arrays_of_pairs() -> None:
    def limits(rows: sparse.csr_array) -> Limits:
        listed = rows.tocoo()
        n, k = rows.shape
        return Limits(listed.row, listed.col, listed.data, np.ones(n), np.ones(n), 0.0, k)

    k = 2000
    assert curvature.by_entries(3, limits(sparse.eye_array(k, format="csr")))
    total = sparse.csr_array(np.ones((1, k)))
    assert curvature.by_entries(3, limits(sparse.vstack([sparse.eye_array(k), total], format="csr")))
    many = sparse.random_array((50_000, k), density=3 / k, rng=np.random.default_rng(0), format="csr")
    assert not curvature.by_entries(3, limits(many))
    for rows in (many[:300], sparse.csr_array(np.random.default_rng(0).normal(size=(5, k)))):
        weights = np.random.default_rng(1).uniform(0.1, 1.0, rows.shape[0])
        whole = rows.toarray()
        assert np.allclose(
            curvature._of_rows(rows, weights), whole.T @ (weights[:, None] * whole), rtol=1e-12, atol=1e-12
        )
