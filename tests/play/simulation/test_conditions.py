"""Other laws of the rewards, another σ² than the policy is told, rewards that come late, and rounds drawn block by block."""

import math

import numpy as np
import pytest
from playing import ALL, by_name
from scipy.stats import ks_2samp
from simulating import BANDIT, ExploreThenCommit

import allocopt as ao
from allocopt.base.errors import AllocoptError
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB, LinTS, LinUCB, OptimalTracking, PhasedElimination
from allocopt.policies.base import PAUSE, Setting

COIN = ao.LinearBandit([[0.9, 0], [0, 0.9], [0.8, 0.2]], [0.9, 0.1], 0.25)
BY_BLOCKS = tuple(p for p in ALL if p.run_blocks is not None)


def played_by_hand(policy, bandit, horizon, run_seed, reward, delay=0, batch=1):
    """Pulls of one run, one Python statement a step: what the compiled loop must do."""
    noise, own = (np.random.default_rng(np.random.SeedSequence(run_seed, spawn_key=(0, i))) for i in (0, 1))
    setting = Setting(bandit.arms, horizon, bandit.noise_variance)
    state = policy.initial_state(setting)
    opening = policy.opening(setting) if delay or batch > 1 else 0
    arms, rewards, told = [], [], 0
    for t in range(1, horizon + 1):
        if t > opening > told:
            arm = arms[(t - 1) % opening]
        else:
            arm = int(policy.choose(state, t, own))
            if arm == PAUSE:
                policy.plan(state, t, setting)
                arm = int(policy.choose(state, t, own))
        arms.append(arm)
        rewards.append(reward(arm, noise))
        while told < (t - delay) // batch * batch:
            told += 1
            policy.update(state, told, arms[told - 1], rewards[told - 1])
    return np.bincount(arms, minlength=bandit.n_arms)


@pytest.mark.parametrize("policy", ALL, ids=by_name)
@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (30, 1), (0, 40), (7, 25)])
def test_rewards_that_come_late_are_told_in_order_and_not_before_their_time(policy, delay, batch):
    r = simulate(policy, COIN, 600, 1, rng=5, delay=delay, batch=batch)
    by_hand = played_by_hand(policy, COIN, 600, 5, lambda a, g: COIN.means[a] + 0.5 * g.standard_normal(), delay, batch)
    np.testing.assert_array_equal(r.pulls[0], by_hand)


@pytest.mark.parametrize(
    ("law", "reward"),
    [
        ("bernoulli", lambda a, g: float(g.random() < COIN.means[a])),
        ("student-t:3", lambda a, g: COIN.means[a] + 0.5 * math.sqrt(1 / 3) * g.standard_t(3.0)),
    ],
)
def test_bernoulli_and_student_rewards_are_numpys(law, reward):
    r = simulate(LinTS(), COIN, 2000, 1, rng=8, noise=law)
    np.testing.assert_array_equal(r.pulls[0], played_by_hand(LinTS(), COIN, 2000, 8, reward))
    assert r.conditions == {"noise": law}


@pytest.mark.parametrize("policy", BY_BLOCKS, ids=by_name)
def test_without_noise_blocks_and_rounds_are_the_same(policy):
    silent = ao.LinearBandit(COIN.arms, COIN.theta, 1e-24)
    kwargs = {"assumed_noise_variance": 0.25, "times": [10, 77, 500, 4321]}
    one, two = (simulate(policy, silent, 10_000, 2, rng=1, blockwise=b, **kwargs) for b in (False, True))
    np.testing.assert_array_equal(one.pulls_at_times, two.pulls_at_times)
    assert [[(p.name, p.start) for p in run] for run in one.phases] == [
        [(p.name, p.start) for p in run] for run in two.phases
    ]


@pytest.mark.parametrize("policy", BY_BLOCKS, ids=by_name)
def test_block_by_block_regret_has_the_same_law(policy):
    one, two = (simulate(policy, COIN, 5000, 400, rng=seed, blockwise=seed == 1) for seed in (0, 1))
    for t in (-12, -1):
        assert ks_2samp(one.regret[:, t], two.regret[:, t]).pvalue > 1e-3


def test_a_thousand_million_rounds_take_seconds_block_by_block():
    r = simulate(OptimalTracking(), BANDIT, 10**9, 2, rng=0, blockwise=True)
    assert (r.pulls.sum(axis=1) == 10**9).all()
    for t in r.times.tolist():
        assert (r.pulls_at(t).sum(axis=1) == t).all()
    np.testing.assert_array_equal((r.pulls_at_times * BANDIT.gaps).sum(axis=2), r.regret)


def test_an_assumed_variance_is_what_the_policy_uses():
    told = simulate(LinUCB(), COIN, 3000, 3, rng=0, assumed_noise_variance=1.0)
    wider = simulate(LinUCB(a=8), COIN, 3000, 3, rng=0)
    np.testing.assert_array_equal(told.pulls, wider.pulls)
    each = simulate(LinUCB(), COIN, 3000, 3, rng=0, assumed_noise_variance=[1.0, 1.0, 1.0])
    np.testing.assert_array_equal(told.pulls, each.pulls)


def test_pulls_at_all_times_are_kept_saved_and_audited(tmp_path):
    r = simulate(LinTS(), BANDIT, 2000, 5, rng=0, times=[100, 700], checkpoint=tmp_path / "runs", delay=3)
    assert r.pulls_at([100, 2000]).shape == (5, 2, 3)
    np.testing.assert_array_equal(r.pulls_at(2000), r.pulls)
    for t in (100, 700):
        shorter = simulate(LinTS(), BANDIT, t, 5, rng=0, delay=3)
        np.testing.assert_array_equal(r.pulls_at(t), shorter.pulls)
    report = ao.audit(BANDIT, r.pulls_at([100, 700, 2000]), [100, 700, 2000])
    np.testing.assert_allclose(report.regret, r.mean)
    for name in ("r.json", "r.parquet"):
        r.save(tmp_path / name)
        back = load_simulation(tmp_path / name)
        np.testing.assert_array_equal(back.pulls_at_times, r.pulls_at_times)
        assert back.conditions == r.conditions == {"delay": 3}
    again = simulate(LinTS(), BANDIT, 2000, 5, rng=0, times=[100, 700], checkpoint=tmp_path / "runs", delay=3)
    np.testing.assert_array_equal(again.pulls_at_times, r.pulls_at_times)
    with pytest.raises(AllocoptError, match=r"conditions\.delay is 3 there and 4 here"):
        simulate(LinTS(), BANDIT, 2000, 5, rng=0, times=[100, 700], checkpoint=tmp_path / "runs", delay=4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": "cauchy"}, "noise: expected 'gaussian', 'bernoulli' or 'student-t:ν'"),
        ({"noise": "student-t:2"}, "noise: expected"),
        ({"noise": None}, "noise: expected"),
        ({"delay": -1}, "delay: expected a whole number >= 0, got -1"),
        ({"batch": 0}, "batch: expected a whole number >= 1, got 0"),
        ({"delay": 10**9}, "delay + batch: expected at most"),
        ({"blockwise": 1}, "blockwise: expected True or False, got 1"),
        ({"blockwise": True}, "blockwise: policy LinTS looks at every reward"),
        ({"blockwise": True, "delay": 1}, "blockwise: expected Gaussian noise, no delay"),
        ({"assumed_noise_variance": 0}, "assumed_noise_variance: expected a positive"),
        ({"assumed_noise_variance": [1, 2]}, "assumed_noise_variance: expected"),
        ({"keep_pulls": "yes"}, "keep_pulls: expected True, False or None, got 'yes'"),
        ({"delay": 2, "environment": lambda a, t, g: 0.0}, "delay and batch: expected a policy of allocopt.policies"),
    ],
)
def test_bad_conditions_are_named(options, words):
    with pytest.raises(AllocoptError) as caught:
        simulate(LinTS(), BANDIT, 100, 2, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_had_is_said():
    with pytest.raises(AllocoptError, match="noise: Bernoulli rewards need means between 0 and 1, but arm 0 has 2"):
        simulate(UCB(), ao.LinearBandit([[2.0], [1.0]], [1.0]), 100, 2, noise="bernoulli")
    with pytest.raises(AllocoptError, match="noise: expected a policy of"):
        simulate(ExploreThenCommit(), COIN, 100, 2, noise="bernoulli")
    r = simulate(PhasedElimination(), BANDIT, 100, 2, rng=0, keep_pulls=False)
    with pytest.raises(AllocoptError, match="t: the pulls were kept at the end only"):
        r.pulls_at(100)
    with pytest.raises(AllocoptError, match="t: expected one of the recorded times"):
        simulate(UCB(), BANDIT, 100, 2, rng=0).pulls_at(7)
