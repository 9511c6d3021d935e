"""Very many copies of few arms are hardly more work than these arms."""

from __future__ import annotations

import numpy as np
import pytest

import allocopt as ao
from allocopt.solvers.closed_form import _parallel
from allocopt.solvers.newton import copies


def test_one_of_each_class_of_copies_is_kept_and_all_where_copies_are_few() -> None:
    rng = np.random.default_rng(0)
    for distinct, k in ((5, 400), (100, 3000), (390, 400)):
        kinds = np.eye(distinct)[:, :7].copy() + (rng.random((distinct, 7)) if distinct > 7 else 0.0)
        whose = rng.integers(0, distinct, k)
        found = copies.one_of_each(kinds[whose])
        assert len(np.unique(whose[found])) == len(np.unique(whose))
        assert len(found) in (len(np.unique(whose)), k)
    rows = rng.normal(size=(300, 3))
    assert copies.one_of_each(rows).tolist() == list(range(300))


def test_rows_whose_keys_are_equal_by_chance_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_keys", lambda rows: np.zeros(len(rows)))
    assert copies.one_of_each(np.array([[1.0], [1.0], [2.0]])).tolist() == [0, 2]


@pytest.mark.parametrize("k", [3000, 7000])
def test_best_arm_of_copies_has_the_value_of_the_arms(k: int) -> None:
    arms, theta = np.eye(8), -np.concatenate([[0.0], np.linspace(0.1, 1.0, 7)])
    whose = np.random.default_rng(0).integers(0, 8, k)
    whose[:8] = np.arange(8)
    few = ao.solve(ao.programs.best_arm(ao.LinearBandit(arms, theta)))
    many = ao.solve(ao.programs.best_arm(ao.LinearBandit(arms[whose], theta)))
    assert few.status.name == many.status.name == "CERTIFIED"
    assert many.lower <= few.upper and few.lower <= many.upper
    assert many.stats["arms_in_pool"] <= 8


def test_parallel_rows_are_those_within_the_tolerance() -> None:
    rows = np.array([[0.6, 0.8], [-0.6, -0.8], [0.6, 0.8 + 2**-52], [0.6, -0.8], [0.8, 0.6], [0.6, 0.8 + 1e-12]])
    everything = np.arange(6)
    assert _parallel(rows, rows[0], everything).tolist() == [True, True, True, False, False, False]
    assert _parallel(rows, rows[0], everything[[4, 1]]).tolist() == [False, True]
