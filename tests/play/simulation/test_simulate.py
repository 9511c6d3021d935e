"""simulate(): exact regret, reproducible streams, a user's own policy and rewards, errors of one line."""

import math
import pickle

import numpy as np
import pytest
from simulating import BANDIT, ExploreThenCommit, same

import allocopt as ao
from allocopt.base.errors import AllocoptError, InvalidInstance, InvalidOption
from allocopt.play.simulation.simulate import default_times, simulate
from allocopt.policies import UCB, EndOfOptimism, LinTS, LinUCB, base

# What comes out


def test_regret_is_exactly_pulls_times_gaps():
    r = simulate(LinTS(), BANDIT, 5000, 7, rng=0)
    assert r.regret.shape == (7, len(r.times))
    assert r.pulls.shape == (7, 3)
    assert (r.pulls.sum(axis=1) == 5000).all()
    np.testing.assert_array_equal(r.final_regret, (r.pulls * BANDIT.gaps).sum(axis=1))
    np.testing.assert_array_equal(r.final_regret, r.regret[:, -1])
    assert (np.diff(r.regret, axis=1) >= 0).all()
    assert r.runs == 7
    np.testing.assert_allclose(r.mean, r.regret.mean(axis=0))
    np.testing.assert_allclose(r.standard_error, r.regret.std(axis=0, ddof=1) / math.sqrt(7))
    np.testing.assert_allclose(r.quantiles([0.1, 0.5])[1], np.median(r.regret, axis=0))
    assert "final regret" in repr(r)


def test_the_regret_at_a_time_does_not_depend_on_which_times_are_asked_for():
    full = simulate(UCB(), BANDIT, 300, 3, rng=4, times=range(1, 301))
    few = simulate(UCB(), BANDIT, 300, 3, rng=4, times=[7, 100])
    assert few.times.tolist() == [7, 100, 300]
    np.testing.assert_array_equal(few.regret, full.regret[:, [6, 99, 299]])
    # every round adds the gap of one arm
    steps = np.diff(full.regret, axis=1)
    assert np.isclose(steps[..., None], BANDIT.gaps, atol=1e-9).any(axis=-1).all()


def test_the_default_times_are_logarithmic_and_end_at_the_horizon():
    assert default_times(3).tolist() == [1, 2, 3]
    grid = default_times(12345)
    assert grid[0] == 1
    assert grid[-1] == 12345
    assert (np.diff(grid) > 0).all()
    assert np.diff(np.log10(grid[20:-1])) == pytest.approx(0.1, abs=0.01)


def test_a_single_run_says_nothing_of_its_error():
    r = simulate(UCB(), BANDIT, 10, 1, rng=0)
    assert np.isinf(r.standard_error).all()


@pytest.mark.parametrize(("policy", "expected"), [(LinTS(), 32), (LinUCB(a=2), 70)])
def test_mean_regret_agrees_with_an_independent_implementation(policy, expected):
    """Figures of a plain compiled loop at n = 10⁴ on the counter-example, 40 runs: 32 and 74, with errors of about 10 %."""
    r = simulate(policy, BANDIT, 10_000, 300, rng=0)
    assert abs(r.mean[-1] - expected) < 4 * (r.standard_error[-1] + 0.05 * expected)


# Streams


def test_workers_and_runs_beside_it_do_not_change_a_run():
    for policy in (LinTS(), EndOfOptimism()):
        one = simulate(policy, BANDIT, 2000, 40, rng=9, workers=1)
        two = simulate(policy, BANDIT, 2000, 40, rng=9, workers=2)
        same(one, two)
        fewer = simulate(policy, BANDIT, 2000, 5, rng=9)
        np.testing.assert_array_equal(one.regret[:5], fewer.regret)


def test_a_dask_cluster_plays_the_same_runs():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        remote = simulate(LinTS(), BANDIT, 500, 20, rng=9, client=client)
        with pytest.raises(InvalidOption, match="workers: expected nothing beside a client"):
            simulate(LinTS(), BANDIT, 500, 20, rng=9, client=client, workers=2)
        with pytest.raises(InvalidInstance, match="environment: reward: expected a finite number"):
            simulate(LinTS(), BANDIT, 500, 2, client=client, environment=lambda a, t, g: math.nan)
    same(remote, simulate(LinTS(), BANDIT, 500, 20, rng=9))
    with pytest.raises(InvalidOption, match=r"client: expected a dask.distributed.Client, got a int"):
        simulate(LinTS(), BANDIT, 500, 20, client=3)
    with pytest.raises(InvalidOption, match=r"client: expected a Client or an address such as .* got 'tcp://nowhere'"):
        simulate(LinTS(), BANDIT, 500, 20, client="tcp://nowhere")


def test_seeds_behave_as_numpys_do():
    first = simulate(LinTS(), BANDIT, 200, 3, rng=1)
    assert not np.array_equal(first.regret, simulate(LinTS(), BANDIT, 200, 3, rng=2).regret)
    same(first, simulate(LinTS(), BANDIT, 200, 3, rng=np.random.SeedSequence(1)))
    generator = np.random.default_rng(1)
    one, two = (simulate(LinTS(), BANDIT, 200, 3, rng=generator) for _ in range(2))
    assert not np.array_equal(one.regret, two.regret)
    same(one, simulate(LinTS(), BANDIT, 200, 3, rng=np.random.default_rng(1)))
    fresh = simulate(LinTS(), BANDIT, 200, 3)
    again = np.random.SeedSequence(fresh.seed["entropy"], spawn_key=fresh.seed["spawn_key"])
    same(fresh, simulate(LinTS(), BANDIT, 200, 3, rng=again))
    assert len({tuple(row) for row in first.regret.tolist()}) == 3  # runs differ from each other


def test_policies_meet_the_same_noise_in_the_same_rounds():
    """Two policies that play alike in the beginning get the same rewards there."""
    heard = []

    class Listening(ExploreThenCommit):
        def start(self, arms, horizon, noise_variance, rng):
            player = super().start(arms, horizon, noise_variance, rng)
            heard.append([])
            inner = player.update
            player.update = lambda arm, reward: (heard[-1].append(reward - BANDIT.means[arm]), inner(arm, reward))
            return player

    simulate(Listening(2), BANDIT, 50, 1, rng=3)
    simulate(Listening(9), BANDIT, 50, 1, rng=3)
    np.testing.assert_allclose(heard[0], heard[1], atol=1e-12)


# Other people's policies and rewards


def test_a_policy_in_twenty_lines_of_python():
    r = simulate(ExploreThenCommit(20), BANDIT, 1000, 6, rng=0)
    assert r.policy == "ExploreThenCommit"
    assert r.parameters == {"rounds": 20}
    assert (r.pulls.min(axis=1) >= 20).all()
    same(r, simulate(ExploreThenCommit(20), BANDIT, 1000, 6, rng=0, workers=2))


def test_rewards_of_ones_own():
    bandit = ao.LinearBandit([[0.9, 0], [0, 0.2]], [1, 1], 0.25)
    r = simulate(UCB(), bandit, 500, 4, rng=0, environment=lambda arm, t, g: g.random() < bandit.means[arm])
    assert (r.pulls[:, 0] > 350).all()
    seen = []
    simulate(UCB(), bandit, 5, 1, environment=lambda arm, t, g: seen.append((arm, t)) or 0.0)
    assert [t for _, t in seen] == [1, 2, 3, 4, 5]


class Silly:
    def __init__(self, arm, player=..., phases=()):
        self.arm, self.player, self.phases = arm, player, phases

    def start(self, arms, horizon, noise_variance, rng):
        return self if self.player is ... else self.player

    def choose(self):
        return self.arm

    def update(self, arm, reward):
        pass


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: simulate(UCB(), BANDIT, 2, 5), "horizon: expected a whole number >= 3, got 2"),
        (lambda: simulate(UCB(), BANDIT, 1e9, 0), "runs: expected a whole number >= 1, got 0"),
        (lambda: simulate(UCB(), BANDIT, 2**63, 1), "horizon: expected at most 4503599627370496, got"),
        (lambda: simulate(UCB(), BANDIT, 1000, 10**15), "runs: expected at most 32258064 (31 numbers are kept of each"),
        (lambda: simulate(UCB(), BANDIT, 10, 5, callback=3), "callback: expected a function of (done, runs, seconds)"),
        (lambda: simulate(UCB(), BANDIT, 10, 5, checkpoint=3), "checkpoint: expected the path of a folder, got a int"),
        (
            lambda: simulate(Silly(0, None), BANDIT, 10, 5),
            "policy Silly: expected start() to return a player with choose",
        ),
        (lambda: simulate(Silly(0, phases=3), BANDIT, 10, 5), "policy Silly: expected the player's phases to be Phase"),
        (lambda: simulate(UCB(), BANDIT, "many", 5), "horizon: expected a whole number >= 3, got 'many'"),
        (lambda: simulate(UCB(), [[1, 0]], 10, 5), "bandit: expected a LinearBandit or a ContextualBandit, got a list"),
        (lambda: simulate("UBC", BANDIT, 10, 5), "policy: expected one of"),
        (lambda: simulate(UCB, BANDIT, 10, 5), "policy: expected a policy such as UCB(), got the class UCB"),
        (
            lambda: simulate(3, BANDIT, 10, 5),
            "policy: expected one of allocopt.policies, its name, or an object with start()",
        ),
        (lambda: simulate(UCB(), BANDIT, 10, 5, rng="x"), "rng: expected a whole number >= 0, got 'x'"),
        (lambda: simulate(UCB(), BANDIT, 10, 5, rng=-1), "rng: expected a whole number >= 0"),
        (lambda: simulate(UCB(), BANDIT, 10, 5, workers=0), "workers: expected a whole number >= 1, got 0"),
        (
            lambda: simulate(UCB(), BANDIT, 10, 5, times=[0, 4]),
            "times: expected rounds from 1 to the horizon 10, got 0",
        ),
        (lambda: simulate(UCB(), BANDIT, 10, 5, times=[11]), "times: expected rounds from 1 to the horizon 10, got 11"),
        (lambda: simulate(UCB(), BANDIT, 10, 5, times="x"), "times: expected a list of whole numbers"),
        (
            lambda: simulate(UCB(), BANDIT, 10, 5, environment=1),
            "environment: expected a function of (arm, t, rng), got a int",
        ),
        (
            lambda: simulate(UCB(), BANDIT, 10, 5, environment=lambda a, t, g: math.inf if t == 4 else 0.0),
            "environment: reward: expected a finite number for arm 0 in round 4, got inf (run 0)",
        ),
        (
            lambda: simulate(UCB(), BANDIT, 10, 5, environment=lambda a, t, g: None),
            "environment: reward: expected a number for arm 0 in round 1, got None (run 0)",
        ),
        (lambda: simulate(Silly(3), BANDIT, 10, 5), "policy Silly: expected an arm from 0 to 2 in round 1, got 3"),
        (lambda: simulate(Silly(-1), BANDIT, 10, 5), "policy Silly: expected an arm from 0 to 2 in round 1, got -1"),
        (lambda: simulate(Silly(1.0), BANDIT, 10, 5), "policy Silly: expected an arm from 0 to 2 in round 1, got 1.0"),
        (lambda: simulate(UCB(), BANDIT, 10, 5).quantiles(1.5), "q: expected levels between 0 and 1"),
        (lambda: simulate(UCB(), BANDIT, 10, 5).phase_at(0, 1), "policy UCB has no phases"),
        (lambda: simulate(EndOfOptimism(), BANDIT, 10, 5).phase_at(5, 1), "run: expected a number from 0 to 4, got 5"),
        (lambda: simulate(EndOfOptimism(), BANDIT, 10, 5).phase_at(0, 11), "t: expected a round from 1 to 10, got 11"),
        (lambda: simulate(EndOfOptimism(), BANDIT, 10, 5).phase_at(0, "x"), "t: expected a whole number"),
    ],
)
def test_bad_input_gets_one_clear_line(call, words):
    with pytest.raises(AllocoptError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


class ShortStart(Silly):
    def start(self, arms, horizon):
        return self


class RoundsToo(Silly):
    def choose(self, t):
        return self.arm


class NoReward(Silly):
    def update(self, arm):
        pass


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (ShortStart(0), "ShortStart: expected start(arms, horizon, noise_variance, rng), got start(arms, horizon)"),
        (RoundsToo(0), "policy RoundsToo: expected choose(), got choose(t)"),
        (NoReward(0), "policy NoReward: expected update(arm, reward), got update(arm)"),
    ],
)
def test_methods_of_a_policy_that_take_something_else_are_refused_by_name(policy, words):
    with pytest.raises(ao.InvalidOption) as caught:
        simulate(policy, BANDIT, 10, 2, workers=1)
    assert str(caught.value).endswith(words)


def test_an_environment_that_takes_something_else_is_refused():
    with pytest.raises(ao.InvalidOption, match=r"expected a function of \(arm, t, rng\), got one of \(arm\)"):
        simulate(UCB(), BANDIT, 10, 2, environment=lambda arm: 0.0)


def test_several_optimal_arms_are_allowed_and_stated():
    r = simulate(EndOfOptimism(), ao.LinearBandit([[1, 0], [1, 1], [0, 1]], [1, 0]), 500, 3, rng=0)
    assert "2 arms are optimal" in r.notes[0]
    r = simulate(LinUCB(), ao.LinearBandit([[1, 0], [0, 1]], [1, 1]), 500, 3, rng=0)
    assert "every arm is optimal" in r.notes[0]
    assert not r.regret.any()


def test_progress_is_told_and_may_stop_everything():
    told = []
    simulate(UCB(), BANDIT, 100, 40, callback=lambda *a: told.append(a))
    assert [d for d, _, _ in told][-1] == 40
    assert all(total == 40 for _, total, _ in told)
    assert len(told) >= 10

    def stop(done, runs, seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(UCB(), BANDIT, 100, 40, callback=stop)


class Slotted(ExploreThenCommit):
    __slots__ = ("weights",)  # beside the __dict__ of the class above


class OnlySlots:
    __slots__ = ("_own", "rounds")

    def __init__(self, rounds):
        self.rounds = rounds

    start = ExploreThenCommit.start


def test_parameters_of_ones_own_policy_are_the_same_in_every_process_and_differ_where_they_differ():
    def parameters(policy):
        return simulate(policy, BANDIT, 10, 1, rng=0).parameters

    assert parameters(OnlySlots(3)) == {"rounds": 3}
    one, two, other = Slotted(2), Slotted(2), Slotted(2)
    one.weights, two.weights, other.weights = np.linspace(0, 1, 5000), np.linspace(0, 1, 5000), np.linspace(0, 1, 5000)
    other.weights[2500] += 1e-12
    one.helper, two.helper, other.helper = object(), object(), object()
    assert parameters(one) == parameters(two)
    assert parameters(one) != parameters(other)
    assert parameters(one)["helper"] == "<object object>"


def test_the_spanner_of_the_arms_is_computed_once_for_all_runs(monkeypatch):
    made = []
    spanner = base.barycentric_spanner
    monkeypatch.setattr(base, "barycentric_spanner", lambda *given: made.append(given) or spanner(*given))
    simulate("LinTS", BANDIT, 200, 40, rng=0)
    assert len(made) == 1


def test_what_a_policy_remembers_does_not_travel_to_other_processes():
    setting = base.Setting([[1, 0], [0, 1]], 10, memo={"design": lambda: None})
    indices = setting.spanner.indices
    sent = pickle.loads(pickle.dumps(setting))
    assert sent.memo == {} and setting.memo
    assert sent.spanner.indices.tolist() == indices.tolist() and sent.horizon == 10
