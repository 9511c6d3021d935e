"""Simulations that would take very long say so before they start."""

import warnings

import pytest

import allocopt as ao
from allocopt.base.errors import SlowWarning
from allocopt.play.simulation import duration
from allocopt.play.simulation.simulate import simulate

BANDIT = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])


def test_a_long_simulation_is_announced_with_its_time_before_it_is_played(monkeypatch):
    monkeypatch.setattr(duration, "_MANY", 1000)
    monkeypatch.setattr(duration, "_seconds_a_round", lambda experiment: 3600.0)
    with pytest.warns(SlowWarning, match=r"horizon: 2 runs of 1000 rounds will take about .* (days|years)"):
        simulate("LinUCB", BANDIT, 1000, runs=2, rng=0)
    with pytest.warns(SlowWarning, match=r"rounds a second\);"):  # one run is played by one process
        simulate("LinUCB", BANDIT, 1000, runs=1, rng=0, workers=2)
    monkeypatch.setattr(duration, "_seconds_a_round", lambda experiment: 0.29)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate("LinUCB", BANDIT, 1000, runs=2, rng=0, workers=1)  # just under ten minutes
        monkeypatch.setattr(duration, "_seconds_a_round", lambda experiment: 1e9)
        simulate("LinUCB", BANDIT, 499, runs=2, rng=0)  # few rounds are not estimated


def test_the_time_of_a_round_is_measured_on_a_short_run_and_users_own_functions_are_not_called_for_it(monkeypatch):
    monkeypatch.setattr(duration, "_MANY", 1000)
    monkeypatch.setattr(duration, "_TRIED", 50)
    calls = []

    def environment(arm, t, rng):
        calls.append(t)
        return 0.0

    simulate("LinUCB", BANDIT, 1000, runs=1, rng=0, environment=environment)
    assert len(calls) == 1000
    one = simulate("LinUCB", BANDIT, 1000, runs=1, rng=0)
    monkeypatch.setattr(duration, "_MANY", 10**10)
    assert (simulate("LinUCB", BANDIT, 1000, runs=1, rng=0).regret == one.regret).all()
