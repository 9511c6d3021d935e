"""Programs of very many pairs are refused, or said to be slow, before anything is made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import allocopt as ao
from allocopt.base import machine
from allocopt.model.programs import identification
from allocopt.model.rows import constraints
from allocopt.solving.roads import side_observations


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 10**8)


@pytest.mark.usefixtures("little_memory")
def test_pairs_that_do_not_fit_are_refused_with_their_size() -> None:
    bandit = ao.instances.random_unit(5, 2_000)
    with pytest.raises(
        ao.InvalidProgram, match=r"top_m: 1,000,000 pairs of arms in 5 dimensions would take 525 MB of memory"
    ):
        ao.programs.top_m(bandit, 1_000)
    with pytest.raises(
        ao.InvalidProgram, match=r"duelling: 1,999,000 pairs of arms in 5 dimensions would take 1\.05 GB"
    ):
        ao.programs.duelling(bandit)
    ao.programs.top_m(bandit, 2)


@pytest.mark.usefixtures("little_memory")
def test_side_observations_that_do_not_fit_are_refused_with_their_size() -> None:
    program = ao.programs.side_observations(np.linspace(0, 1, 200_000), diags_array(np.ones(200_000)))
    with pytest.raises(ao.InvalidProgram, match=r"side_observations: 200,000 arms that show 200,000 would take 240 MB"):
        ao.solve(program)


def test_what_takes_long_is_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identification, "_LONG", 1e-3)
    monkeypatch.setattr(side_observations, "_LONG", 1e-4)
    bandit = ao.instances.random_unit(3, 60)
    with pytest.warns(ao.SlowWarning, match=r"top_m: 900 pairs of arms: .* about "):
        ao.programs.top_m(bandit, 30)
    with pytest.warns(ao.SlowWarning, match=r"duelling: 1,770 pairs of arms: "):
        ao.programs.duelling(bandit)
    program = ao.programs.side_observations(np.linspace(0, 1, 2_000), diags_array(np.ones(2_000)))
    with pytest.warns(ao.SlowWarning, match=r"2,000 arms that show 2,000: solving takes about"):
        ao.solve(program)


def test_tables_of_side_observations_that_do_not_fit_are_refused_before_they_are_listed():
    k = 10**6
    with pytest.raises(
        ao.InvalidInstance,
        match=r"^variances: listing what 1,000,000 arms show, .* would take .*B of memory",
    ):
        ao.programs.side_observations(np.arange(k) / k, np.broadcast_to(1.0, (k, k)))


def test_small_numbers_that_do_not_fit_as_doubles_are_refused():
    with pytest.raises(
        ao.InvalidInstance,
        match=r"^arms: 30,000,000,000,000 entries of type bool as doubles would take 300 TB",
    ):
        ao.programs.semi_bandit(np.broadcast_to(True, (10**12, 30)), np.ones(30))


def test_constraints_of_very_many_entries_are_refused_or_said_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> ao.AllocationProgram:
        return ao.AllocationProgram(
            np.eye(3), np.ones(3), np.eye(3), np.ones(3), constraints=(np.ones((4, 3)), np.full(4, 9.0))
        )

    monkeypatch.setattr(constraints, "_LONG", 1e-9)
    for matrix in (np.ones((4, 3)), csr_array(np.ones((4, 3)))):
        with pytest.warns(ao.SlowWarning, match=r"^constraints: B: 12 entries that are not 0: solving takes about"):
            constraints.LinearConstraints.checked((matrix, np.full(4, 9.0)), 3)
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    with pytest.raises(
        ao.InvalidProgram, match=r"^constraints: B: 12 entries that are not 0 would take 1\.2 kB of memory, but"
    ):
        program()


def test_entries_of_constraints_are_listed_by_rows_in_whatever_order_they_come() -> None:
    listed = constraints.LinearConstraints.listed([1, 0, 1, 0], [2, 1, 0, 0], [4.0, 2.0, 3.0, 1.0], [9, 9], 3)
    assert listed.places.tolist() == [0, 0, 1, 1] and listed.arms.tolist() == [0, 1, 0, 2]
    assert listed.values.tolist() == [1.0, 2.0, 3.0, 4.0]
