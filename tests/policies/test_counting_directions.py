"""OptimalTracking with many arms: copies count once, far arms change nothing, large sets are fast, understated noise is noticed."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tracking_reference import reference_values

import allocopt as ao
from allocopt import instances
from allocopt.base.compiling import entry
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import OptimalTracking, Setting
from allocopt.policies.tracking.directions import _decay, worth_of
from allocopt.policies.tracking.estimate import Estimate, bring_up_to_date, hold, noise_ratio
from allocopt.policies.tracking.near_arms import MOST

learn, update_all, ratio = entry(hold), entry(bring_up_to_date), entry(noise_ratio)
worth, decay = entry(worth_of), entry(_decay)


def with_copies(bandit, arm, copies, jitter=0.0):
    rng = np.random.default_rng(0)
    more = np.repeat(bandit.arms[arm : arm + 1], copies, axis=0)
    more = more * (1 - jitter * np.abs(rng.normal(size=more.shape)))
    return ao.LinearBandit(np.vstack([bandit.arms, more]), bandit.theta)


@pytest.mark.parametrize("patience", [0.0, 0.7])
@pytest.mark.parametrize("copies", [1, 40])
def test_copies_of_a_rival_change_nothing(copies, patience):
    bandit = instances.counter_example(0.05)
    alone = simulate(OptimalTracking(patience=patience), bandit, 3000, 8, rng=1)
    crowd = simulate(OptimalTracking(patience=patience), with_copies(bandit, 2, copies), 3000, 8, rng=1)
    np.testing.assert_allclose(crowd.regret, alone.regret, rtol=1e-12)


def test_near_copies_change_next_to_nothing():
    bandit = instances.counter_example(0.05)
    alone = simulate("OptimalTracking", bandit, 10_000, 200, rng=1, blockwise=True).final_regret
    crowd = simulate(
        "OptimalTracking", with_copies(bandit, 2, 40, 1e-4), 10_000, 200, rng=1, blockwise=True
    ).final_regret
    error = math.hypot(alone.std(), crowd.std()) / math.sqrt(200)
    assert abs(alone.mean() - crowd.mean()) < 3 * error


def test_regret_on_a_circle_does_not_grow_with_the_number_of_arms():
    few, many = (
        simulate("OptimalTracking", instances.circle(k), 1000, 60, rng=2, blockwise=True).final_regret
        for k in (100, 1000)
    )
    assert many.mean() < few.mean() + 4 * math.hypot(few.std(), many.std()) / math.sqrt(60)


@pytest.mark.parametrize("patience", [0.0, 1.0])
def test_choices_are_those_of_all_arms_while_some_of_them_are_far(patience):
    bandit = ao.LinearBandit(instances.random_unit(3, 80, 3).arms, instances.random_unit(3, 80, 3).theta, 0.01)
    rng = np.random.default_rng(0)
    player = OptimalTracking(patience=patience).start(bandit.arms, 10**6, 0.01)
    coordinates = ao.barycentric_spanner(bandit.arms, 1.0).coefficients
    pulls, sums, compared = np.zeros(80), np.zeros(80), 0
    for t in range(1, 1000):
        looked = t >= player.state.until[0] and t > 3
        arm = player.choose()
        near = player.state.sight.near
        if looked and near.size[0] < 80 and t % 5 == 0:
            gaps, saving, expected, leader = reference_values(bandit, coordinates, pulls, sums, t, 1.0, patience)
            assert leader == player.state.leader[0]
            allowed = saving > gaps * (1 + 1e-9)
            allowed[leader] = True
            rate = saving / (gaps + expected)
            assert rate[arm] >= rate[allowed].max() * (1 - 1e-6)
            compared += 1
        reward = bandit.means[arm] + 0.1 * rng.standard_normal()
        player.update(arm, reward)
        pulls[arm] += 1
        sums[arm] += reward
    assert compared > 50 and near.size[0] < 70


@pytest.mark.parametrize(
    "bandit",
    [
        instances.circle(60),
        instances.circle(400),
        instances.random_unit(5, 300),
        instances.clustered(4, 90, seed=14),
        ao.LinearBandit(instances.circle(200).arms, instances.circle(200).theta, 0.01),
        ao.LinearBandit(1e6 * instances.random_unit(3, 200).arms, 1e-6 * instances.random_unit(3, 200).theta),
    ],
    ids=["60 on a circle", "400 on a circle", "300 in R⁵", "clusters", "little noise", "other units"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_runs_are_those_of_a_player_that_always_looks_at_all_arms(bandit, seed):
    rng = np.random.default_rng(seed)
    one, other = (OptimalTracking().start(bandit.arms, 10**6, bandit.noise_variance) for _ in range(2))
    other.state.sight.next_anchor[0] = np.iinfo(np.int64).max
    fewest = bandit.n_arms
    for t in range(4000):
        arm = one.choose()
        assert arm == other.choose(), f"round {t + 1}"
        reward = bandit.means[arm] + math.sqrt(bandit.noise_variance) * rng.standard_normal()
        one.update(arm, reward)
        other.update(arm, reward)
        fewest = min(fewest, int(one.state.sight.near.size[0]))
    assert other.state.sight.near.size[0] == bandit.n_arms
    assert fewest < bandit.n_arms


def test_a_look_at_a_thousand_arms_on_a_circle_is_a_look_at_a_few_hundred():
    player = OptimalTracking().start(instances.circle(1000).arms, 10**6)
    means, rng = instances.circle(1000).means, np.random.default_rng(0)
    sizes = []
    for t in range(20_000):
        arm = player.choose()
        player.update(arm, means[arm] + rng.standard_normal())
        if t >= 5000:
            sizes.append(int(player.state.sight.near.size[0]))
    assert 20 < np.mean(sizes) < 400  # it was 580 while arms were kept that could not count


@settings(max_examples=200, deadline=None)
@given(
    gap=st.floats(1e-3, 1e3),
    s=st.floats(1e-3, 1e3),
    more=st.floats(1, 10),
)
def test_the_worth_of_a_rival_falls_with_its_gap_and_grows_with_its_uncertainty(gap, s, more):
    value = worth(gap, s)
    z = gap / s
    assert value == pytest.approx(s * norm.pdf(z) * (1 + z * z / 2), rel=1e-12)
    assert worth(more * gap, s) <= value * (1 + 1e-12)
    assert worth(gap, more * s) >= value * (1 - 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 16))
def test_the_exponential_of_the_loops_over_arms_has_thirteen_digits(x):
    assert decay(x) == pytest.approx(math.exp(-x), rel=1e-13)


def test_a_hundred_thousand_arms_are_played_by_looking_at_few():
    bandit = instances.random_unit(4, 100_000, 0)
    policy = OptimalTracking()
    simulate(policy, bandit, 10, 1, rng=0, keep_pulls=False)  # compiles
    started = time.process_time()
    r = simulate(policy, bandit, 1000, 1, rng=0, workers=1, keep_pulls=False)
    assert time.process_time() - started < 10
    assert r.final_regret[0] < 400
    player = policy.start(bandit.arms, 1000)
    for _ in range(40):
        player.update(player.choose(), float(bandit.means[player.choose()]))
    assert player.state.sight.near.size[0] <= MOST


def test_half_a_million_rounds_a_second_with_a_thousand_arms():
    bandit = instances.circle(1000)
    simulate("OptimalTracking", bandit, 100, 1, rng=0)
    started = time.process_time()
    simulate("OptimalTracking", bandit, 10**6, 1, rng=0, workers=1)
    assert 1e6 / (time.process_time() - started) > 0.5e6


def test_the_estimate_is_least_squares_and_its_noise_ratio_is_the_variance_of_innovations():
    bandit = instances.random_unit(3, 6, 1)
    rng = np.random.default_rng(1)
    setting = Setting(bandit.arms, 10**6, 0.25)
    estimate = Estimate.blank(setting, np.ones(6))
    coordinates = setting.spanner.coefficients
    pulls, sums = np.zeros(6), np.zeros(6)
    for t in range(1, 2000):
        arm = int(estimate.first[t - 1]) if t <= 3 else int(rng.integers(6))
        count = 1 if t <= 3 else int(rng.integers(1, 20))
        total = (
            count * bandit.means[arm] + math.sqrt(count) * rng.standard_normal()
        )  # variance 1, four times what was given
        learn(estimate, t, arm, count, total)
        pulls[arm] += count
        sums[arm] += total
    update_all(estimate)
    gram = coordinates.T @ (pulls[:, None] * coordinates)
    np.testing.assert_allclose(estimate.gram, gram, rtol=1e-12)
    np.testing.assert_allclose(estimate.inverse, np.linalg.inv(gram), rtol=1e-8)
    np.testing.assert_allclose(estimate.theta, np.linalg.solve(gram, coordinates.T @ sums), rtol=1e-8)
    assert ratio(estimate) == pytest.approx(4.0, rel=0.15)


def test_noise_that_is_understated_is_noticed_where_it_is_estimated():
    bandit = instances.finite_armed([0, 0.1, 0.2, 0.5])
    told = {"assumed_noise_variance": 0.25, "blockwise": True, "workers": 1}
    trusting, wary = (
        simulate(OptimalTracking(noise=noise), bandit, 10**6, 100, rng=3, **told).final_regret
        for noise in ("given", "estimated")
    )
    assert wary.mean() < 0.3 * trusting.mean()


def test_noise_that_is_right_costs_little_to_estimate():
    bandit = instances.finite_armed([0, 0.1, 0.2, 0.5])
    trusting, wary = (
        simulate(OptimalTracking(noise=noise), bandit, 10**5, 200, rng=3, blockwise=True, workers=1).final_regret
        for noise in ("given", "estimated")
    )
    assert np.median(wary) < 1.15 * np.median(trusting)
