"""Least squares, and the indices of UCB, LinUCB and LinTS against slow references written from their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import histories, is_the_largest
from strategies import bandits

import allocopt as ao
from allocopt import instances
from allocopt.policies import UCB, LinTS, LinUCB, Setting, linear

# Least squares


@settings(max_examples=25)
@given(bandit=bandits(), seed=st.integers(0, 2**32 - 1))
def test_means_and_widths_are_those_of_least_squares_on_nasty_arms_too(bandit, seed):
    rng = np.random.default_rng(seed)
    setting = Setting(bandit.arms, 3000)
    state, policy = LinUCB().initial_state(setting), LinUCB()
    x = setting.spanner.coefficients
    r, k = len(setting.spanner.indices), bandit.n_arms
    rounds = r + 2 * linear.REFRESH + 100  # ends between two refreshes
    favourite = rng.integers(k)
    arms = np.where(rng.random(rounds) < 0.9, favourite, rng.integers(0, k, rounds))
    arms[:r] = setting.spanner.indices
    rewards = rng.normal(size=rounds)
    for t, (arm, reward) in enumerate(zip(arms, rewards, strict=True), start=1):
        policy.update(state, t, int(arm), float(reward))
    gram = x[arms].T @ x[arms]
    means = x @ np.linalg.solve(gram, x[arms].T @ rewards)
    widths = (x * np.linalg.solve(gram, x.T).T).sum(axis=1)
    np.testing.assert_allclose(state.ls.means, means, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.ls.widths, widths, rtol=1e-8, atol=1e-14)


def test_rounding_does_not_add_up_over_a_million_rounds():
    bandit = instances.counter_example(0.01)
    setting = Setting(bandit.arms, 10**6)
    policy = LinTS()
    state = policy.initial_state(setting)
    from allocopt.policies.base import Ledger, play_rounds

    ledger = Ledger.blank(bandit.means, 1.0, np.array([10**6]))
    list(play_rounds(policy, state, ledger, setting, np.random.default_rng(0), np.random.default_rng(1), 10**5))
    x = setting.spanner.coefficients
    gram = x.T @ (ledger.pulls[:, None] * x)
    np.testing.assert_allclose(state.ls.inverse @ gram, np.eye(2), atol=1e-7)
    np.testing.assert_allclose(state.root @ state.root.T @ gram, np.eye(2), atol=1e-7)
    np.testing.assert_array_equal(state.ls.pulls, ledger.pulls)


# Indices, from their definitions


def test_ucb_plays_its_index():
    bandit = instances.random_unit(3, 7)
    rng = np.random.default_rng(0)
    player = UCB(a=1.5).start(bandit.arms, 300, 4.0)
    for t, arm, arms, rewards in histories(player, bandit, 300, rng):
        if t <= 7:
            assert arm == t - 1
            continue
        pulls = np.bincount(arms, minlength=7)
        means = np.bincount(arms, rewards, minlength=7) / pulls
        is_the_largest(means + np.sqrt(1.5 * 4.0 * np.log(1 + t * np.log(t) ** 2) / pulls), arm)


@pytest.mark.parametrize("noise", [1.0, 0.09])
def test_linucb_plays_the_index_of_the_papers_section_on_optimism(noise):
    bandit = ao.LinearBandit(instances.random_unit(3, 7).arms, instances.random_unit(3, 7).theta, noise)
    player = LinUCB(a=0.7).start(bandit.arms, 1000, noise)
    for t, arm, arms, rewards in histories(player, bandit, 700, np.random.default_rng(1)):
        if t <= 3:
            assert arm == ao.barycentric_spanner(bandit.arms).indices[t - 1]
            continue
        x = bandit.arms[arms]
        gram = x.T @ x
        theta = np.linalg.solve(gram, x.T @ rewards)
        widths = (bandit.arms * np.linalg.solve(gram, bandit.arms.T).T).sum(axis=1)
        is_the_largest(bandit.arms @ theta + np.sqrt(0.7 * noise * np.log(1000) * widths), arm)


def test_linucb_plays_the_theoretical_index_in_the_original_units():
    bandit = instances.random_unit(3, 7)
    policy = LinUCB(radius="theoretical", ridge=0.5, norm_bound=2.0, delta=0.01)
    embedded = bandit.arms @ np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0][:3]  # rank 3 in R^5
    player = policy.start(embedded, 1000, 0.25)
    for _, arm, arms, rewards in histories(player, bandit, 700, np.random.default_rng(1)):
        x = bandit.arms[arms].reshape(-1, 3)
        gram = 0.5 * np.eye(3) + x.T @ x
        theta = np.linalg.solve(gram, x.T @ np.array(rewards))
        widths = (bandit.arms * np.linalg.solve(gram, bandit.arms.T).T).sum(axis=1)
        volume = np.linalg.slogdet(gram / 0.5)[1]
        root = math.sqrt(0.5) * 2.0 + 0.5 * math.sqrt(2 * math.log(100) + volume)
        is_the_largest(bandit.arms @ theta + root * np.sqrt(widths), arm)


def test_lints_samples_the_posterior():
    bandit = instances.random_unit(3, 5)
    player = LinTS(a=2.0).start(bandit.arms, 1000, 0.5, np.random.default_rng(2))
    arms, rewards = [], []
    for _, arm, arms, rewards in histories(player, bandit, 60, np.random.default_rng(4)):  # noqa: B007
        pass
    x = bandit.arms[arms[:60]]
    gram = x.T @ x
    theta = np.linalg.solve(gram, x.T @ rewards)
    draws = 15_000
    chosen = np.bincount([LinTS.choose(player.state, 61, player.rng) for _ in range(draws)], minlength=5) / draws
    samples = np.random.default_rng(5).multivariate_normal(theta, 2.0 * 0.5 * np.linalg.inv(gram), size=draws)
    expected = np.bincount(np.argmax(samples @ bandit.arms.T, axis=1), minlength=5) / draws
    assert (expected > 0.01).sum() >= 2  # or this would test nothing
    np.testing.assert_allclose(chosen, expected, atol=5 * math.sqrt(2 * 0.25 / draws))
