"""Programs of very many pairs are refused, or said to be slow, before anything is made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import diags_array

import allocopt as ao
from allocopt.base import machine
from allocopt.model.programs import identification
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
