"""The phases of the paper's Algorithm 1: warm-up, success, recovery."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import histories
from schedules import EASY, seeds
from strategies import bandits

import allocopt as ao
from allocopt import instances
from allocopt.model import levels as concentration
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB, EndOfOptimism


def test_the_warm_up_plays_a_spanner_root_log_n_times_each():
    bandit = instances.random_unit(4, 9)
    n = 5000
    each = math.ceil(math.sqrt(math.log(n)))
    player = EndOfOptimism().start(bandit.arms, n)
    played = []
    for _, arm, _, _ in histories(player, bandit, 4 * each, np.random.default_rng(0)):
        played.append(arm)
    spanner = ao.barycentric_spanner(bandit.arms).indices
    assert np.bincount(played, minlength=9)[spanner].tolist() == [each] * 4
    assert [(p.name, p.length) for p in player.phases] == [("warm-up", 4 * each)]


@pytest.mark.parametrize("noise", [1.0, 0.04])
def test_success_plays_the_optimal_pulls_of_the_estimated_gaps_and_the_best_arm_for_the_rest(noise):
    bandit = ao.LinearBandit(instances.counter_example(0.2, dim=3).arms, [1, 0, 0], noise)
    n = 20_000
    rng = np.random.default_rng(3)
    player = EndOfOptimism(constant=0.5).start(bandit.arms, n, noise)
    for t, _, arms, rewards in histories(player, bandit, n, rng):
        if t == 3 * 4 + 1:  # ⌈√log 20000⌉ = 4
            x = bandit.arms[arms]
            means = bandit.arms @ np.linalg.solve(x.T @ x, x.T @ rewards)
            widths = (bandit.arms * np.linalg.solve(x.T @ x, bandit.arms.T).T).sum(axis=1)
    assert [p.name for p in player.phases] == ["warm-up", "success"]
    gaps = means.max() - means
    expected = ao.Allocator(bandit.arms, level=noise * concentration.f_n(n, 3, 0.5)).solve(gaps).allocation
    np.testing.assert_allclose(player.state.targets, expected, rtol=1e-4, atol=1e-4 * expected[gaps > 0].max())
    epsilon = math.sqrt(widths.max() * noise * concentration.g_n(n, 3, 0.5))
    assert player.state.threshold[0] == pytest.approx(2 * epsilon)
    finite = gaps > 0
    target = player.state.targets[finite]
    assert target.sum() < n / 2  # there was time for everything
    warm = np.bincount(arms[:12], minlength=len(gaps))[finite]
    pulls = np.bincount(arms, minlength=len(gaps))[finite]  # the list has grown to all n rounds by now
    np.testing.assert_array_equal(pulls, np.maximum(np.floor(target) + 1, warm))


def listed_success(targets, pulls, rounds):
    """The listing's success phase, literally: pass after pass, every arm with T_x(t) <= T̂_x is played."""
    pulls, arms = pulls.copy(), []
    while len(arms) < rounds:
        for x in range(len(targets)):
            if pulls[x] <= targets[x]:
                pulls[x] += 1
                arms.append(x)
    return arms[:rounds]


@settings(max_examples=30)
@given(bandit=bandits(kinds=EASY), noise=st.sampled_from([1e-4, 1.0]), seed=seeds)
def test_the_success_phase_plays_the_arms_of_the_listing_in_its_order(bandit, noise, seed):
    n = 300
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, noise)
    r = simulate(EndOfOptimism(constant=0.2), noisy, n, 1, rng=seed)
    player = EndOfOptimism(constant=0.2).start(noisy.arms, n, noise)
    rng = np.random.default_rng(seed)
    for _, _, arms, _ in histories(player, noisy, n, rng):  # noqa: B007
        pass
    warm = player.phases[0].length
    success = player.phases[1].length if len(player.phases) > 1 else 0
    begin = np.bincount(arms[:warm], minlength=noisy.n_arms)
    assert arms[warm : warm + success] == listed_success(player.state.targets, begin, success)
    assert r.pulls.sum() == n


def test_arms_that_all_look_alike_are_all_played_in_turn():
    r = simulate(EndOfOptimism(), ao.LinearBandit([[1, 0], [1, 0], [1, 0]], [1, 0]), 30, 1, rng=0)
    assert r.pulls[0].tolist() == [2 + 10, 9, 9]  # ⌈√log 30⌉ = 2 rounds of warm-up, 28 in turn


def lying(until, means, lie):
    """An environment without noise that lies about the means in the first rounds."""
    return lambda arm, t, rng: float(lie[arm] if t <= until else means[arm])


def test_a_planted_misestimate_ends_in_recovery_which_is_ucb_on_fresh_data():
    bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0], 0.01)
    n, lie = 3000, np.array([0.0, 3.0, 1.2])
    r = simulate(EndOfOptimism(), bandit, n, 1, rng=0, environment=lying(6, bandit.means, lie))
    warm, success, recovery = r.phases[0]
    assert (warm.name, success.name, recovery.name) == ("warm-up", "success", "recovery")
    assert (warm.start, warm.length, success.start) == (1, 6, 7)
    assert warm.length + success.length + recovery.length == n
    # the first round whose estimates are more than 2ε_n away from those of the warm-up, recomputed by hand
    player = EndOfOptimism().start(bandit.arms, n, 0.01)
    environment = lying(6, bandit.means, lie)
    arms, rewards, alarm = [], [], None
    for t in range(1, n + 1):
        arms.append(player.choose())
        rewards.append(environment(arms[-1], t, None))
        player.update(arms[-1], rewards[-1])
        if t < 6:
            continue
        x = bandit.arms[arms]
        means = bandit.arms @ np.linalg.solve(x.T @ x, x.T @ rewards)
        if t == 6:
            before = means
            width = max(a @ np.linalg.solve(x.T @ x, a) for a in bandit.arms)
            limit = 2 * math.sqrt(0.01 * width * concentration.g_n(n, 2))
        elif alarm is None and np.abs(means - before).max() > limit:
            alarm = t, int(np.argmax(np.abs(means - before)))
    assert alarm is not None
    assert alarm[0] == recovery.start - 1
    assert f"after round {alarm[0]} the mean of arm {alarm[1]} had moved" in success.ended
    assert f"2ε_n = {limit:.6g}" in success.ended
    # fresh UCB, with no noise, from the first round of recovery on
    fresh = UCB().start(bandit.arms, n, 0.01)
    for arm in arms[recovery.start - 1 :]:
        assert fresh.choose() == arm
        fresh.update(arm, float(bandit.means[arm]))
    assert r.phase_at(0, alarm[0]).name == "success"
    assert r.phase_at(0, alarm[0] + 1).name == "recovery"


def test_a_good_warm_up_never_ends_in_recovery():
    bandit = ao.LinearBandit(instances.counter_example(0.2).arms, [1, 0], 1e-4)
    r = simulate(EndOfOptimism(), bandit, 10_000, 200, rng=1)
    assert [[p.name for p in of_run] for of_run in r.phases] == [["warm-up", "success"]] * 200
    assert (r.phase_lengths("recovery") == 0).all()
    # and then the regret is that of the optimal pulls: f_n/2 · c, up to the rounding of pulls
    optimum = ao.optimal_pulls(bandit.arms, bandit.gaps, 10_000).value * 1e-4
    assert r.mean[-1] <= 1.2 * optimum + bandit.gaps.sum() + 3 * bandit.gap_max


def test_recovery_is_as_rare_as_the_paper_says():
    r = simulate(EndOfOptimism(), instances.counter_example(0.2), 1000, 2000, rng=5)
    assert np.mean(r.phase_lengths("recovery") > 0) <= 1 / math.log(1000)


def test_it_pays_the_optimal_constant_once_the_warm_up_is_right():
    """Recovery aside, success costs Σ T̂_x Δ_x; with little noise that is f_n/2 · c (docs/math.md section 1)."""
    bandit = ao.LinearBandit(instances.random_unit(5, 20).arms, instances.random_unit(5, 20).theta, 1e-6)
    n = 10**5
    r = simulate(EndOfOptimism(), bandit, n, 10, rng=0)
    expected = concentration.f_n(n, 5) / 2 * ao.solve(ao.programs.regret(bandit)).value
    warm = 4 * bandit.gaps[ao.barycentric_spanner(bandit.arms).indices].sum()
    assert r.mean[-1] <= 1.05 * expected + warm + bandit.gaps.sum()
