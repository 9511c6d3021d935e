"""Very many linear constraints: some arms at a time, with the rows that they are in."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import allocopt as ao
from allocopt.certify.reduction import reduce
from allocopt.solvers.newton import limited, within_limits


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
