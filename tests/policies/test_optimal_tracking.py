"""OptimalTracking against its definition, against the lower bound that it is to meet, and against LinUCB."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bandits
from tracking_reference import reference_values

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import InvalidOption
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import LinUCB, OptimalTracking, Setting, parse
from allocopt.policies.base import entry
from allocopt.policies.tracking.estimate import hold

OUTLOOKS = ("anytime", "horizon")
learn_block = entry(hold)


def play_exactly(bandit, policy, horizon, first_rewards=None):
    """Rewards without noise, and blocks of equal rounds at once, so that horizons far beyond simulation are reached.

    Yields (round, pulls) after every block.
    """
    state = policy.initial_state(Setting(bandit.arms, horizon, bandit.noise_variance))
    rng = np.random.default_rng(0)
    t = 1
    while t <= horizon:
        arm = int(policy.choose(state, t, rng))
        estimate = state.sight.estimate
        if t <= len(estimate.first):
            reward = bandit.means[arm] if first_rewards is None else first_rewards[t - 1]
            policy.update(state, t, arm, float(reward))
            t += 1
        else:
            block = min(int(state.until[0]), horizon + 1) - t
            learn_block(estimate, t, arm, block, block * float(bandit.means[arm]))
            t += block
        yield t - 1, estimate.pulls


# The definition


@settings(max_examples=25)
@given(
    bandit=bandits(kinds=("plain", "integers", "duplicates", "rank-deficient", "zero is optimal", "exact ties")),
    outlook=st.sampled_from(OUTLOOKS),
    prudence=st.sampled_from([1.0, 3.0]),
    patience=st.sampled_from([0.0, 0.7, 10.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_choice_is_the_one_of_the_definition(bandit, outlook, prudence, patience, seed):
    n = 120
    rng = np.random.default_rng(seed)
    player = OptimalTracking(outlook, prudence, patience).start(bandit.arms, n)
    found = ao.barycentric_spanner(bandit.arms, 1.0)
    spanner = found.indices
    pulls, sums = np.zeros(bandit.n_arms), np.zeros(bandit.n_arms)
    for t in range(1, n + 1):
        looked = t >= player.state.until[0]
        arm = player.choose()
        if t <= len(spanner):
            assert arm == spanner[t - 1]
        elif looked:
            gaps, saving, expected, leader = reference_values(
                bandit, found.coefficients, pulls, sums, t if outlook == "anytime" else n - t + 1, prudence, patience
            )
            worth = saving > gaps * (1 - 1e-9)
            worth[leader] = True
            ratio = saving / (gaps + expected + 1e-300)
            assert worth[arm] or gaps[arm] < 1e-9
            allowed = worth & ((saving > gaps * (1 + 1e-9)) | (np.arange(len(gaps)) == leader))
            assert ratio[arm] >= ratio[allowed].max() * (1 - 1e-6) - 1e-12
        reward = bandit.means[arm] + rng.standard_normal()
        player.update(arm, reward)
        pulls[arm] += 1
        sums[arm] += reward


# The lower bound


@pytest.mark.parametrize(
    "bandit",
    [
        instances.counter_example(0.05),
        instances.counter_example(0.2, dim=3),
        instances.counter_example(0.05, informative=False),
        instances.finite_armed([0, 0.1, 0.5]),
        instances.random_unit(5, 20, 0),
    ],
    ids=["counter-example", "three-dimensional", "uninformative", "finite-armed", "random"],
)
def test_without_noise_the_slope_comes_to_c_and_every_constraint_of_the_lower_bound_comes_to_hold(bandit):
    solution = ao.regret_constant(bandit.arms, bandit.theta)
    c = solution.value
    begin, end = 10**8, 10**11
    seen = []
    for t, pulls in play_exactly(bandit, OptimalTracking(), end):
        seen.append((t, float(pulls @ bandit.gaps)))
    start = next((t, regret) for t, regret in seen if t >= begin)
    slope = (seen[-1][1] - start[1]) / math.log(seen[-1][0] / start[0])
    assert slope == pytest.approx(c, rel=0.15)
    # and it is paid on the arms that the optimal allocation pays on
    paid = bandit.gaps * pulls
    optimal = np.where(bandit.gaps > 0, bandit.gaps * np.minimum(solution.allocation, 1e300), 0.0)
    assert np.abs(paid / paid.sum() - optimal / c).sum() / 2 <= 0.05
    coordinates = ao.barycentric_spanner(bandit.arms, 1.0).coefficients
    away = coordinates - coordinates[bandit.optimal_arms[0]]
    gram = coordinates.T @ (pulls[:, None] * coordinates)
    norms = np.einsum("ij,ji->i", away, np.linalg.solve(gram, away.T))
    rest = bandit.suboptimal_arms
    # the level that is reached is log t minus lower-order terms: a few times log log t
    level = bandit.gaps[rest] ** 2 / (2 * norms[rest])
    assert level.min() >= math.log(end) - 4 * math.log(math.log(end)) - math.log(1 / bandit.gap_min)
    assert level.min() <= 1.1 * math.log(end)


@pytest.mark.parametrize("outlook", OUTLOOKS)
def test_a_misleading_beginning_is_found_out(outlook):
    bandit = instances.counter_example(0.05)
    *_, (_, pulls) = play_exactly(bandit, OptimalTracking(outlook), 10**6, first_rewards=[-4.0, 1.0])
    assert pulls[0] > 0.9 * 10**6


# Regret


@pytest.mark.parametrize("outlook", OUTLOOKS)
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_regret_is_well_below_that_of_linucb_on_the_counter_example(epsilon, outlook):
    bandit = instances.counter_example(epsilon)
    ours = simulate(OptimalTracking(outlook), bandit, 10**5, 40, rng=1, workers=1).final_regret
    optimistic = simulate(LinUCB(a=2), bandit, 10**5, 40, rng=1, workers=1).final_regret
    assert ours.mean() < 0.7 * optimistic.mean()
    assert ours.mean() < 8 * math.log(10**5)


def test_regret_scales_with_the_noise():
    arms = instances.counter_example(0.05).arms
    quiet = simulate("OptimalTracking", ao.LinearBandit(arms, [1, 0], 0.25), 3000, 10, rng=3)
    loud = simulate("OptimalTracking", ao.LinearBandit(arms, [2, 0], 1.0), 3000, 10, rng=3)
    assert np.array_equal(quiet.pulls, loud.pulls)  # the same game in other units of reward


def test_units_of_the_arms_do_not_matter():
    arms = instances.random_unit(3, 8, 1).arms
    theta = instances.random_unit(3, 8, 1).theta
    one = simulate("OptimalTracking", ao.LinearBandit(arms, theta), 2000, 5, rng=4)
    other = simulate("OptimalTracking", ao.LinearBandit(arms * 2.0**20, theta / 2.0**20), 2000, 5, rng=4)
    assert np.array_equal(one.pulls, other.pulls)


# Anything that is a bandit


@settings(max_examples=40)
@given(bandit=bandits(), outlook=st.sampled_from(OUTLOOKS), variance=st.sampled_from([1e-6, 1.0, 1e6]))
def test_nasty_instances_are_played_to_the_end(bandit, outlook, variance):
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    r = simulate(OptimalTracking(outlook), noisy, 400, 2, rng=0)
    assert (r.pulls.sum(axis=1) == 400).all() and (r.pulls >= 0).all()
    assert np.isfinite(r.regret).all()


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
@pytest.mark.parametrize("horizon", [3, 1000])
def test_degenerate_instances(arms, theta, horizon):
    bandit = ao.LinearBandit(arms, theta)
    for outlook in OUTLOOKS:
        r = simulate(OptimalTracking(outlook), bandit, horizon, 3, rng=0)
        assert (r.pulls.sum(axis=1) == horizon).all()
        assert r.final_regret.max() <= 0.2 * horizon * bandit.gap_max or horizon == 3


def test_the_same_seed_gives_the_same_run_and_the_horizon_does_not_matter_to_the_anytime_form():
    bandit = instances.random_unit(4, 10, 2)
    times = [10, 100, 1000]
    long = simulate("OptimalTracking", bandit, 5000, 4, rng=9, times=times)
    again = simulate("OptimalTracking", bandit, 5000, 4, rng=9, times=times)
    short = simulate("OptimalTracking", bandit, 1000, 4, rng=9, times=times)
    assert np.array_equal(long.regret, again.regret)
    assert np.array_equal(long.regret[:, :3], short.regret)


# What users see


@pytest.mark.parametrize("outlook", OUTLOOKS)
def test_counters_and_phases_account_for_every_round(outlook):
    bandit = instances.counter_example(0.2)
    rng = np.random.default_rng(3)
    policy = OptimalTracking(outlook)
    player = policy.start(bandit.arms, 3000)
    explored = changes = last = 0
    leader = None
    for t in range(1, 3001):
        arm = player.choose()
        player.update(arm, bandit.means[arm] + rng.standard_normal())
        if t > 2:
            changes += leader is not None and leader != player.state.leader[0]
            leader = player.state.leader[0]
            if arm != leader:
                explored, last = explored + 1, t
    counted = policy.counters(player.state)
    assert (counted.explored, counted.last_explored, counted.leader_changes) == (explored, last, changes)
    assert explored > 0 and counted.decisions < 1500
    phases = player.phases
    assert [p.name for p in phases] == ["spanner", "tracking", "exploiting"]
    assert phases[0].start == 1 and phases[1].start + phases[1].length == last + 1
    assert sum(p.length for p in phases) == 3000
    assert f"{explored} rounds explored" in phases[1].ended


def test_a_million_rounds_a_second_in_two_dimensions():
    bandit = instances.counter_example(0.05)
    simulate("OptimalTracking", bandit, 100, 1, rng=0)  # compile
    started = time.process_time()
    simulate("OptimalTracking", bandit, 10**6, 3, rng=0, workers=1)
    assert 3e6 / (time.process_time() - started) > 1e6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("OptimalTracking:outlook=never", "outlook: expected 'anytime' or 'horizon', got 'never'"),
        ("OptimalTracking:noise=loud", "noise: expected 'given' or 'estimated', got 'loud'"),
        ("OptimalTracking:patience=-1", "patience: expected a non-negative, finite number, got -1.0"),
        ("OptimalTracking:prudence=0", "prudence: expected a positive, finite number, got 0.0"),
        ("OptimalTracking:prudence=nan", "prudence: expected a positive, finite number, got nan"),
        ("OptimalTracking:prudence=much", "prudence: expected a positive, finite number, got 'much'"),
    ],
)
def test_bad_parameters_are_named(text, message):
    with pytest.raises(InvalidOption) as caught:
        parse(text)
    assert message in str(caught.value)


def test_names_can_be_parsed_again():
    policy = OptimalTracking("horizon", 2.5)
    assert parse(policy.name) == policy
    assert OptimalTracking().name == "OptimalTracking"
