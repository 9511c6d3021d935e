"""Simulations with contexts: who comes how often, what regret is, what is refused."""

import numpy as np
import pytest

import allocopt as ao
from allocopt.base.errors import AllocoptError
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import OAM, LinTS, LinUCB
from allocopt.policies.base import PAUSE, Setting

BANDIT = ao.ContextualBandit(
    [[[1, 0], [0, 1], [0.9, 0.2]], [[0.5, 0], [0.4, 0.1]], [[0, 1], [0.3, 0.9]]], [1.0, 0.2], weights=[5, 3, 2]
)
PLAYERS = ("LinUCB", "LinTS", "OAM", "LinUCB:radius=theoretical")


@pytest.mark.parametrize("policy", PLAYERS)
def test_contexts_come_by_their_weights_and_regret_is_within_them(policy):
    r = simulate(policy, BANDIT, 4000, 6, rng=0)
    of_context = np.stack([r.pulls[:, a:b].sum(axis=1) for a, b in ((0, 3), (3, 5), (5, 7))], axis=1)
    assert (of_context.sum(axis=1) == 4000).all()
    assert (np.abs(of_context / 4000 - (0.5, 0.3, 0.2)) < 0.04).all()
    np.testing.assert_allclose(r.final_regret, r.pulls @ BANDIT.gaps)
    assert r.final_regret.mean() < 0.1 * 4000 * (
        BANDIT.gaps @ (0.5 / 3, 0.5 / 3, 0.5 / 3, 0.15, 0.15, 0.1, 0.1)
    )  # of uniform play


def test_all_policies_meet_the_same_contexts():
    runs = [simulate(policy, BANDIT, 500, 3, rng=7) for policy in PLAYERS]
    seen = [np.stack([r.pulls[:, a:b].sum(axis=1) for a, b in ((0, 3), (3, 5), (5, 7))]) for r in runs]
    for other in seen[1:]:
        np.testing.assert_array_equal(seen[0], other)


@pytest.mark.parametrize("policy", ["LinUCB", "LinTS", "OAM"])
def test_linear_regret_never_comes_from_one_context_among_many(policy):
    r = simulate(policy, BANDIT, 20_000, 10, rng=1)
    assert r.mean[-1] < 2.5 * r.mean[r.times == 5012][0]


def test_results_are_the_same_with_workers_saved_and_resumed(tmp_path):
    r = simulate("OAM", BANDIT, 300, 20, rng=3)
    again = simulate("OAM", BANDIT, 300, 20, rng=3, workers=2, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(r.regret, again.regret)
    for name in ("r.json", "r.parquet"):
        r.save(tmp_path / name)
        back = load_simulation(tmp_path / name)
        np.testing.assert_array_equal(r.regret, back.regret)
        assert back.bandit.sizes == BANDIT.sizes
        np.testing.assert_array_equal(back.bandit.weights, BANDIT.weights)
        np.testing.assert_array_equal(back.bandit.gaps, BANDIT.gaps)
    heavier = ao.ContextualBandit(BANDIT.contexts, BANDIT.theta, weights=[1, 1, 1])
    with pytest.raises(AllocoptError, match="weights"):
        simulate("OAM", heavier, 300, 20, rng=3, checkpoint=tmp_path / "kept")


def drawn(noise):
    """A context by the weights 5, 3 and 2."""
    draw = noise.random()
    return 0 if draw < 0.5 else 1 if draw < 0.8 else 2


def played_by_hand(policy, horizon, seed, delay, batch):
    """Run 0 of a simulation, one interpreted round after the other: its pulls."""
    noise, own = (np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, which))) for which in (0, 1))
    setting = Setting(BANDIT.arms, horizon, BANDIT.noise_variance, sizes=BANDIT.sizes)
    state, told, arms, rewards = policy.initial_state(setting), 0, [], []
    for t in range(1, horizon + 1):
        context = drawn(noise)
        state.offered[:] = BANDIT.pair(context, 0), BANDIT.pair(context, 0) + BANDIT.sizes[context]
        arm = policy.choose(state, t, own)
        if arm == PAUSE:
            policy.plan(state, t, setting)
            arm = policy.choose(state, t, own)
        arms.append(int(arm))
        rewards.append(BANDIT.means[arm] + noise.standard_normal())
        while told < (t - delay) // batch * batch:
            policy.update(state, told + 1, arms[told], rewards[told])
            told += 1
    return np.bincount(arms, minlength=BANDIT.n_arms)


@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (30, 1), (0, 40), (7, 25)])
@pytest.mark.parametrize("policy", [LinUCB(), LinTS(), OAM()], ids=lambda p: p.name)
def test_rewards_that_come_late_are_told_in_order_and_not_before_their_time(policy, delay, batch):
    r = simulate(policy, BANDIT, 400, 1, rng=5, delay=delay, batch=batch)
    np.testing.assert_array_equal(r.pulls[0], played_by_hand(policy, 400, 5, delay, batch))


@pytest.mark.parametrize("policy", [LinUCB(), LinTS(), OAM()], ids=lambda p: p.name)
def test_a_player_in_a_loop_of_ones_own_plays_what_is_simulated(policy):
    noise, own = (np.random.default_rng(np.random.SeedSequence(9, spawn_key=(0, which))) for which in (0, 1))
    player, pulls = policy.start_contexts(BANDIT.contexts, 400, rng=own), np.zeros(BANDIT.n_arms, int)
    for _ in range(400):
        context = drawn(noise)
        arm = player.choose(context)
        assert arm == player.choose(context) == player.choose()
        pair = BANDIT.pair(context, arm)
        assert 0 <= arm < BANDIT.sizes[context]
        player.update(arm, BANDIT.means[pair] + noise.standard_normal())
        pulls[pair] += 1
    np.testing.assert_array_equal(pulls, simulate(policy, BANDIT, 400, 1, rng=9).pulls[0])


def test_paired_comparisons_work():
    one, two = (simulate(policy, BANDIT, 2000, 20, rng=0) for policy in ("LinTS", "OAM"))
    assert ao.compare(one, two).paired


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "UCB"}, "policy UCB cannot be played with contexts; LinUCB, LinTS and OAM can"),
        ({"policy": "OptimalTracking", "blockwise": True}, "policy OptimalTracking cannot be played with contexts"),
        ({"policy": "LinTS", "blockwise": True}, "blockwise: expected False with contexts"),
        ({"policy": "LinTS", "environment": lambda a, t, g: 0.0}, "play round by round, with policy.start_contexts("),
    ],
)
def test_what_cannot_be_played_is_refused(options, words):
    with pytest.raises(AllocoptError) as caught:
        simulate(bandit=BANDIT, horizon=100, runs=1, rng=0, **options)
    assert words in str(caught.value)


def test_noise_of_other_laws_and_variances_per_pair_are_played():
    coin = ao.ContextualBandit([[[0.9, 0], [0, 0.5]], [[0.5, 0.5]]], [0.8, 0.3], noise_variance=0.25)
    assert (simulate("LinTS", coin, 500, 2, rng=0, noise="bernoulli").pulls.sum(axis=1) == 500).all()
    uneven = ao.ContextualBandit([[[0.9, 0], [0, 0.5]], [[0.5, 0.5]]], [0.8, 0.3], noise_variance=[0.1, 1.0, 4.0])
    assert (simulate("LinTS", uneven, 500, 2, rng=0).pulls.sum(axis=1) == 500).all()
