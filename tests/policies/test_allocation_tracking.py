"""AllocationTracking: the test on the evidence from its definition, no lock-in, degenerate instances, blocks."""

import math

import numpy as np
import pytest

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import InvalidOption
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import AllocationTracking, parse


def evidence_and_need(coordinates, pulls, sums, t):
    """E and β of every rival by their definition, one rival and one arm at a time."""
    inverse = np.linalg.inv(coordinates.T @ (pulls[:, None] * coordinates))
    means = coordinates @ inverse @ (coordinates.T @ sums)
    leader = int(means.argmax())
    gaps = means[leader] - means
    found = {}
    for x in range(len(gaps)):
        if x == leader:
            continue
        away = coordinates[x] - coordinates[leader]
        square = away @ inverse @ away
        evidence = gaps[x] ** 2 / (2 * square)
        price = math.inf
        for y in range(len(gaps)):
            if y == leader:
                continue
            more = np.linalg.inv(
                coordinates.T @ (pulls[:, None] * coordinates) + np.outer(coordinates[y], coordinates[y])
            )
            shrinking = 1 - (away @ more @ away) / square  # of the squared distance by one pull of y
            if shrinking > 1e-12:
                price = min(price, gaps[y] / (shrinking * evidence))
        stake = math.log1p(t * gaps[x] / price)
        found[x] = evidence, stake + math.log1p(stake)
    return leader, found


def test_it_exploits_where_the_evidence_is_enough_and_explores_where_it_is_not():
    bandit = instances.random_unit(3, 6, 1)
    coordinates = ao.barycentric_spanner(bandit.arms, 1.0).coefficients
    rng = np.random.default_rng(0)
    player = AllocationTracking().start(bandit.arms, 4000)
    pulls, sums, compared = np.zeros(6), np.zeros(6), 0
    for t in range(1, 1500):
        planned = int(player.state.plans[0])
        arm = player.choose()
        if int(player.state.plans[0]) > planned:  # κ is as of now
            leader, found = evidence_and_need(coordinates, pulls, sums, t)
            assert int(player.state.leader[0]) == leader
            margin = min(e / need for e, need in found.values())
            if margin > 1.0001:
                assert arm == leader
            if margin < 0.9999:
                assert player.state.solves[0] > 0
            compared += 1
        reward = bandit.means[arm] + rng.standard_normal()
        player.update(arm, reward)
        pulls[arm] += 1
        sums[arm] += reward
    assert compared > 20


def test_a_misleading_beginning_is_found_out():
    bandit = instances.counter_example(0.05)
    lie = lambda arm, t, rng: float((-4.0, 1.0, 0.0)[arm]) if t <= 2 else float(bandit.means[arm])  # noqa: E731
    r = simulate(AllocationTracking(), bandit, 5000, 1, rng=0, environment=lie)
    assert r.pulls[0, 0] > 4000


def test_regret_stays_below_c_log_n_and_that_of_optimism():
    bandit = instances.counter_example(0.05)
    ours = simulate(AllocationTracking(), bandit, 10**5, 20, rng=1, workers=1, blockwise=True).final_regret
    assert ours.mean() < 8 * math.log(10**5)


@pytest.mark.parametrize(
    ("arms", "theta"),
    [
        ([[2.0]], [1.0]),
        ([[1, 0], [0, 1]], [0, 0]),
        ([[1, 0], [1, 0], [1, 0]], [1, 0]),
        ([[0, 0], [1, 0], [0, 1]], [-1, -1]),
        ([[1, 1], [2, 2], [3, 3]], [1, -1]),
        ([[1, 0, 0], [0, 1, 0]], [1, 0, 5]),
    ],
    ids=["one arm", "all tied", "duplicates", "zero is optimal", "one direction, all tied", "k < d"],
)
@pytest.mark.parametrize("horizon", [3, 600])
def test_degenerate_instances(arms, theta, horizon):
    r = simulate(AllocationTracking(), ao.LinearBandit(arms, theta), horizon, 2, rng=0)
    assert (r.pulls.sum(axis=1) == horizon).all()


def test_a_run_does_not_depend_on_the_runs_before_it():
    bandit = instances.random_unit(3, 6)
    many = simulate(AllocationTracking(), bandit, 1000, 3, rng=4, workers=1)
    player_only = simulate(AllocationTracking(), bandit, 1000, 1, rng=4, workers=1)
    np.testing.assert_array_equal(many.pulls[0], player_only.pulls[0])


def test_bad_parameters_are_named_and_names_are_read_again():
    with pytest.raises(InvalidOption, match="prudence: expected a positive, finite number"):
        parse("AllocationTracking:prudence=0")
    assert parse(AllocationTracking(2.5).name) == AllocationTracking(2.5)
