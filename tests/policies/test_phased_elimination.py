"""Phased elimination against a slow reference written from its definition."""

import itertools
import math

import numpy as np

import allocopt as ao
from allocopt import instances
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import PhasedElimination


def test_phases_follow_the_g_optimal_design_and_drop_what_is_clearly_worse():
    bandit = ao.LinearBandit(instances.random_unit(3, 8).arms, instances.random_unit(3, 8).theta, 0.3)
    horizon = 200_000
    r = simulate(PhasedElimination(), bandit, horizon, 3, rng=0)
    player = PhasedElimination().start(bandit.arms, horizon, 0.3)
    rng, alive, done = np.random.default_rng(0), np.arange(8), False
    for phase in range(1, 20):
        epsilon = 2.0**-phase
        design = ao.solve(ao.programs.g_optimal(bandit.arms[alive]), tol=1e-9).allocation if len(alive) > 1 else None
        if design is None:
            done = True
            assert {player.choose() for _ in range(3)} == {alive[0]}
            break
        wanted = 2 * 0.3 * design * math.log(8 * phase * (phase + 1) * horizon) / epsilon**2
        pulls, sums = np.zeros(8), np.zeros(8)
        for _ in range(int(np.ceil(wanted - 1e-3).sum())):
            arm = player.choose()
            reward = bandit.means[arm] + math.sqrt(0.3) * rng.standard_normal()
            player.update(arm, reward)
            pulls[arm] += 1
            sums[arm] += reward
        np.testing.assert_allclose(pulls[alive], np.ceil(wanted - 1e-3), atol=1)
        x = bandit.arms
        theta = np.linalg.lstsq(x.T @ (pulls[:, None] * x), x.T @ sums, rcond=None)[0]
        means = x[alive] @ theta
        alive = alive[means >= means.max() - 2 * epsilon]
    assert done
    assert bandit.optimal_arms[0] in alive
    for of_run in r.phases:
        assert of_run[0].start == 1
        assert sum(p.length for p in of_run) == horizon
        assert all(a.start + a.length == b.start for a, b in itertools.pairwise(of_run))


def test_tied_arms_are_never_told_apart_and_equal_ones_cost_no_design():
    bandit = ao.LinearBandit([[1, 0], [1, 0], [0, 1]], [1, 0], 1e-4)
    r = simulate(PhasedElimination(), bandit, 2000, 2, rng=0)
    assert (r.pulls[:, 2] < 50).all()
    assert "2 arms" in r.phases[0][-1].name
