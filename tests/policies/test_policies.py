"""The policies against slow references written from their definitions, and the phases of the paper's Algorithm 1."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt import instances, policies
from allocopt.base import compiling
from allocopt.base.errors import AllocoptError, InvalidInstance, InvalidOption
from allocopt.model import levels as concentration
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import (
    UCB,
    EndOfOptimism,
    LinTS,
    LinUCB,
    OptimalTracking,
    PhasedElimination,
    Setting,
    linear,
    parse,
)

ALL = (EndOfOptimism(), UCB(), LinUCB(), LinUCB(radius="theoretical"), LinTS(), PhasedElimination(), OptimalTracking())
LINEAR = (EndOfOptimism(), LinUCB(), LinTS(), PhasedElimination(), OptimalTracking())


def by_name(policy):
    return policy.name


def histories(player, bandit, rounds, rng):
    """Play and yield (t, arm, reward, arms so far, rewards so far) before every update."""
    arms, rewards = [], []
    for t in range(1, rounds + 1):
        arm = player.choose()
        yield t, arm, arms, rewards
        reward = bandit.means[arm] + math.sqrt(bandit.noise_variance) * rng.standard_normal()
        player.update(arm, reward)
        arms.append(arm)
        rewards.append(reward)


def is_the_largest(index, arm):
    """Ties and rounding may go either way."""
    assert index[arm] >= index.max() - 1e-7 * max(1.0, np.abs(index).max())


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


# Phased elimination


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


# Algorithm 1


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


# All of them


@pytest.mark.parametrize("policy", ALL, ids=by_name)
def test_units_of_the_rewards_do_not_matter(policy):
    base = instances.random_unit(3, 6)
    scaled = ao.LinearBandit(base.arms, base.theta * 1024, 1024.0**2)
    if isinstance(policy, PhasedElimination):
        other = PhasedElimination(scale=1024.0)
    elif policy == LinUCB(radius="theoretical"):
        other = LinUCB(radius="theoretical", norm_bound=1024.0)
    else:
        other = policy
    one, two = (simulate(p, b, 3000, 3, rng=7) for p, b in ((policy, base), (other, scaled)))
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.parametrize("policy", LINEAR, ids=by_name)
def test_units_of_the_coordinates_and_a_larger_space_around_the_arms_do_not_matter(policy):
    base = instances.random_unit(3, 6)
    scale = np.array([2.0**-10, 1.0, 2.0**12])
    wide = np.zeros((6, 5))
    wide[:, [4, 0, 2]] = base.arms * scale
    theta = np.zeros(5)
    theta[[4, 0, 2]] = base.theta / scale
    one, two = (simulate(policy, b, 2000, 2, rng=7) for b in (base, ao.LinearBandit(wide, theta)))
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.parametrize("policy", ALL, ids=by_name)
@settings(max_examples=12)
@given(bandit=bandits(), seed=st.integers(0, 2**32 - 1))
def test_nasty_instances_are_played_to_the_end(policy, bandit, seed):
    if policy == LinUCB(radius="theoretical") and 400 * (bandit.arms**2).sum(axis=1).max() > 1e11:
        return  # arms of length 1e6 beside a ridge of 1: refused, which has its own test
    r = simulate(policy, bandit, 400, 2, rng=seed)
    assert (r.pulls.sum(axis=1) == 400).all()
    assert np.isfinite(r.regret).all()
    assert (np.diff(r.regret, axis=1) >= 0).all()


@pytest.mark.parametrize("policy", ALL, ids=by_name)
def test_one_arm_equal_arms_and_as_few_rounds_as_possible(policy):
    for arms, theta in (([[2.0]], [1.0]), ([[1, 0], [1, 0]], [1, 1]), ([[1, 0], [0, 1], [1, 1]], [1, 0])):
        r = simulate(policy, ao.LinearBandit(arms, theta), 3, 2, rng=0)
        assert (r.pulls.sum(axis=1) == 3).all()


@pytest.mark.parametrize("policy", ALL, ids=by_name)
def test_it_learns(policy):
    """With little noise and clear gaps the best arm gets nearly everything."""
    bandit = ao.LinearBandit([[1, 0], [0, 1], [-1, 0]], [1, 0], 1e-3)
    r = simulate(policy, bandit, 5000, 4, rng=0)
    assert (r.pulls[:, 0] > 4700).all()


def test_a_horizon_shorter_than_the_beginning_is_stated():
    bandit = instances.random_unit(5, 20)
    for policy, word in (
        (UCB(), "arms 0 to 3 once each"),
        (LinUCB(), "its first 4 arms once each"),
        (LinTS(), "its first 4 arms once each"),
        (OptimalTracking(), "its first 4 arms once each"),
        (EndOfOptimism(), "the warm-up takes 5 × 2 = 10 rounds and the horizon is 4"),
        (PhasedElimination(), "the first phase takes"),
    ):
        r = simulate(policy, bandit, 4, 2, rng=0)
        assert len(r.notes) == 1
        assert word in r.notes[0]
    assert simulate(EndOfOptimism(), bandit, 4, 2, rng=0).phases[0][0].length == 4
    assert simulate(LinUCB(), bandit, 100, 2, rng=0).notes == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: UCB(a=0), "a: expected a positive, finite number, got 0"),
        (lambda: UCB(a="2"), "a: expected a positive, finite number"),
        (lambda: LinTS(a=math.nan), "a: expected a positive, finite number, got nan"),
        (lambda: LinUCB(a=-1), "a: expected a positive"),
        (lambda: LinUCB(radius="wide"), "radius: expected 'log' or 'theoretical', got 'wide'"),
        (lambda: LinUCB(ridge=1.0), "ridge: expected nothing with radius='log', got 1.0"),
        (lambda: LinUCB(a=1, radius="theoretical"), "a: expected nothing with radius='theoretical'"),
        (lambda: LinUCB(radius="theoretical", delta=1.5), "delta: expected a number between 0 and 1, got 1.5"),
        (lambda: EndOfOptimism(constant=-1), "constant: expected a non-negative"),
        (lambda: PhasedElimination(delta=2), "delta: expected a number between 0 and 1"),
        (lambda: PhasedElimination(scale=math.inf), "scale: expected a positive, finite number"),
        (lambda: parse("UBC"), "did you mean 'UCB'?"),
        (lambda: parse("nothing"), "policy: expected one of EndOfOptimism, UCB, "),
        (lambda: parse("UCB:b=1"), "policy UCB: unknown parameter 'b' (known: a)"),
        (lambda: parse("UCB:a"), "policy UCB: expected parameters as name=value, got 'a'"),
        (lambda: parse("UCB:a=1,a=2"), "policy UCB: parameter 'a' is given twice"),
        (lambda: parse("UCB:a=x"), "policy UCB: a: expected a positive, finite number, got 'x'"),
        (lambda: LinUCB(radius="theoretical").start([[1e9, 0], [0, 1]], 1000), "ridge: 1 is too small"),
        (lambda: UCB().start([[1, 0], [0, 1]], 2), "horizon: expected a whole number >= 3, got 2"),
        (lambda: UCB().start([[1, 0], [0, 1]], 9, -1), "noise_variance: expected a positive"),
        (lambda: LinTS().start([[0, 0], [0, 0]], 9), "arms: expected at least one arm that is not zero"),
    ],
)
def test_bad_parameters_are_named(make, words):
    with pytest.raises(AllocoptError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_what_the_command_line_reads():
    for policy in (
        *ALL,
        LinUCB(a=1.5),
        LinTS(a=0.1234567891),
        UCB(a=0.25),
        EndOfOptimism(constant=0.0),
        PhasedElimination(delta=0.1, scale=3.0),
    ):
        assert parse(policy.name) == policy


def test_a_player_keeps_to_its_turn():
    player = LinTS().start([[1, 0], [0, 1]], 3, rng=0)
    assert player.choose() == player.choose()
    with pytest.raises(InvalidOption, match="arm: expected 0, which was chosen for round 1, got 1"):
        player.update(1, 0.0)
    for bad in (math.nan, math.inf, "much", None):
        with pytest.raises(InvalidInstance, match="reward: expected a"):
            player.update(0, bad)
    for _ in range(3):
        player.update(player.choose(), 1.0)
    with pytest.raises(InvalidOption, match="all 3 rounds have been played"):
        player.choose()


@pytest.mark.parametrize("policy", ALL, ids=by_name)
def test_a_player_and_the_compiled_loop_play_the_same(policy):
    bandit = instances.random_unit(3, 6)
    r = simulate(policy, bandit, 1500, 1, rng=11)
    same = simulate(policy, bandit, 1500, 1, rng=11, environment=lambda a, t, g: bandit.means[a] + g.standard_normal())
    np.testing.assert_array_equal(r.regret, same.regret)
    assert r.phases == same.phases


def test_without_numba_the_same_source_plays_the_same():
    script = """
import sys
sys.modules["numba"] = None
import numpy as np
from allocopt import instances, policies
from allocopt.play.simulation.simulate import simulate
b = instances.random_unit(3, 5)
for name in (*policies.NAMES, "LinUCB:radius=theoretical"):
    r = simulate(name, b, 700, 2, rng=3)
    assert "numba is not installed" in r.notes[-1]
    print(r.pulls.ravel().tolist())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    bandit = instances.random_unit(3, 5)
    names = (*policies.NAMES, "LinUCB:radius=theoretical")
    for line, name in zip(done.stdout.splitlines(), names, strict=True):
        assert line == str(simulate(name, bandit, 700, 2, rng=3).pulls.ravel().tolist()), name


def test_machine_code_is_made_anew_when_a_function_that_is_called_changes():
    def module(constant):
        space = {"compiled": compiling.compiled, "CONSTANT": constant, "__name__": "somewhere"}
        exec("@compiled\ndef inner(x):\n    return x + CONSTANT\n\ndef outer(x):\n    return inner(x)\n", space)
        seen = {}
        compiling._reached(space["outer"], seen)
        return seen

    assert module(1.0) == module(1.0)
    assert module(1.0) != module(2.0)


def test_policies_load_lazily_and_by_name():
    script = "import sys, allocopt.play.simulation.simulate, allocopt.policies; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    assert set(policies.NAMES) <= set(dir(policies))
    with pytest.raises(AttributeError, match="Nothing"):
        policies.Nothing  # noqa: B018


def test_the_documented_code_runs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in text.split("```python")[1:]]
    assert len(blocks) >= 4
    script = tmp_path / "documented.py"  # numba keeps compiled code beside a file, so there must be one
    script.write_text("\n".join(blocks) + "\nassert r.pulls.shape == (4, 2)\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
