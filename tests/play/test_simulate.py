"""simulate(): exact regret, reproducible streams, checkpoints that survive kill -9, files, a user's own policy, the command."""

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import AllocoptError, InvalidFile, InvalidInstance, InvalidOption
from allocopt.cli import main as cli
from allocopt.cli import simulate as command  # adds the command
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import default_times, simulate
from allocopt.policies import UCB, EndOfOptimism, LinTS, LinUCB

BANDIT = instances.counter_example(0.2)
ROOT = Path(__file__).parents[2]


class ExploreThenCommit:
    """A user's policy, as docs/policies.md has it."""

    def __init__(self, rounds=10):
        self.rounds = rounds

    def start(self, arms, horizon, noise_variance, rng):
        return ExploreThenCommit.Player(len(arms), self.rounds)

    class Player:
        def __init__(self, n_arms, rounds):
            self.sums, self.pulls, self.rounds = np.zeros(n_arms), np.zeros(n_arms), rounds

        def choose(self):
            fewest = int(np.argmin(self.pulls))
            return fewest if self.pulls[fewest] < self.rounds else int(np.argmax(self.sums / self.pulls))

        def update(self, arm, reward):
            self.sums[arm] += reward
            self.pulls[arm] += 1


def same(one, two):
    np.testing.assert_array_equal(one.times, two.times)
    np.testing.assert_array_equal(one.regret, two.regret)
    np.testing.assert_array_equal(one.pulls, two.pulls)
    assert one.phases == two.phases
    assert one.seed == two.seed
    assert one.policy == two.policy
    assert one.notes == two.notes


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
    with pytest.raises(InvalidOption, match=r"client: expected a dask.distributed.Client, got a str"):
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
        (lambda: simulate(UCB(), [[1, 0]], 10, 5), "bandit: expected a LinearBandit, got a list"),
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


# Checkpoints


def snapshot(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_was_finished_before_an_interrupt_is_not_played_again(tmp_path):
    folder = tmp_path / "run"
    done = []

    def stop(finished, runs, seconds):
        done.append(finished)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(LinTS(), BANDIT, 500, 40, rng=2, checkpoint=folder, callback=stop)
    before = snapshot(folder)
    assert len(before) == 4  # a manifest and three chunks
    told = []
    r = simulate(LinTS(), BANDIT, 500, 40, rng=2, checkpoint=folder, callback=lambda *a: told.append(a[0]), workers=2)
    same(r, simulate(LinTS(), BANDIT, 500, 40, rng=2))
    assert min(told) > done[-1]
    after = snapshot(folder)
    assert {name: after[name] for name in before} == before
    told.clear()
    same(r, simulate(LinTS(), BANDIT, 500, 40, rng=None, checkpoint=folder, callback=lambda *a: told.append(a)))
    assert told == []  # all was there; without rng, the folder's own seed counts


def test_kill_minus_nine_loses_nothing_that_was_finished(tmp_path):
    folder = tmp_path / "run"
    script = f"""
from allocopt import instances
from allocopt.play.simulation.simulate import simulate
simulate("EndOfOptimism", instances.counter_example(0.2), 200_000, 100, rng=2, checkpoint={str(folder)!r}, workers=1)
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while len(list(folder.glob("runs-*.npz")) if folder.exists() else []) < 2:
        assert process.poll() is None, "it was over before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = snapshot(folder)
    chunks = [name for name in before if name.startswith("runs-")]
    assert 2 <= len(chunks) < 16
    r = simulate("EndOfOptimism", BANDIT, 200_000, 100, rng=2, checkpoint=folder)
    after = snapshot(folder)
    assert {name: after[name] for name in chunks} == {name: before[name] for name in chunks}
    same(r, simulate("EndOfOptimism", BANDIT, 200_000, 100, rng=2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": UCB()}, "its policy is"),
        ({"policy": LinTS(a=2.0)}, "its policy is"),
        ({"horizon": 501}, "its horizon is 500, not 501"),
        ({"runs": 21}, "its runs is 20, not 21"),
        ({"rng": 3}, "its seed is"),
        ({"times": [5]}, "its times is"),
        ({"bandit": instances.counter_example(0.1)}, "its bandit is"),
        ({"bandit": ao.LinearBandit(BANDIT.arms, BANDIT.theta, 2.0)}, "its bandit is"),
        ({"environment": lambda a, t, g: 0.0}, "its environment is null"),
    ],
)
def test_a_folder_of_another_experiment_is_left_alone(tmp_path, change, words):
    given = {"policy": LinTS(), "bandit": BANDIT, "horizon": 500, "runs": 20, "rng": 2, "checkpoint": tmp_path / "run"}
    simulate(**given)
    before = snapshot(tmp_path)
    with pytest.raises(InvalidOption, match=r"checkpoint: .* holds another experiment") as caught:
        simulate(**{**given, **change})
    assert words in str(caught.value)
    assert snapshot(tmp_path) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("ten years")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidOption, match=r"expected a new or empty folder .* holds 'thesis.tex'"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path)
    with pytest.raises(InvalidOption, match=r"expected a folder, but .* is a file"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path / "thesis.tex")
    assert snapshot(tmp_path) == before
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InvalidOption, match="expected a folder of a simulation"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path)


def test_a_damaged_chunk_is_named(tmp_path):
    simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "run")
    chunk = next((tmp_path / "run").glob("runs-*"))
    content = chunk.read_bytes()
    for bad in (b"", content[: len(content) // 2], b"something else"):
        chunk.write_bytes(bad)
        with pytest.raises(InvalidFile, match="damaged; delete it"):
            simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "run")
    chunk.unlink()
    same(simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "run"), simulate(UCB(), BANDIT, 100, 4, rng=0))


# Files


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_a_saved_result_comes_back_to_the_bit(tmp_path, ending):
    labels = ("<script>", "[red]", 'ü"')
    bandit = ao.LinearBandit(BANDIT.arms, BANDIT.theta, 0.3, labels=labels)
    for policy in (EndOfOptimism(constant=0.1), LinUCB(radius="theoretical"), ExploreThenCommit()):
        r = simulate(policy, bandit, 300, 5)
        path = tmp_path / f"{type(policy).__name__}{ending}"
        r.save(path)
        back = load_simulation(path)
        same(r, back)
        assert back.parameters == r.parameters
        assert back.bandit.labels == labels
        assert back.bandit.noise_variance == 0.3
        np.testing.assert_array_equal(back.bandit.gaps, bandit.gaps)
        content = path.read_bytes()
        with pytest.raises(InvalidFile, match="exists already"):
            r.save(path)
        assert path.read_bytes() == content
        r.save(path, overwrite=True)


def test_files_that_are_no_simulations_are_named(tmp_path):
    r = simulate(UCB(), BANDIT, 100, 4)
    with pytest.raises(InvalidFile, match=r"expected a name that ends in \.parquet or \.json"):
        r.save(tmp_path / "x.csv")
    with pytest.raises(InvalidFile, match="cannot write"):
        r.save(tmp_path / "nowhere" / "x.json")
    for name, content in (
        ("a.json", b"{}"),
        ("b.json", b"[1, 2]"),
        ("c.json", b"not json"),
        ("d.parquet", b"not parquet"),
        ("e.json", json.dumps({"format": "allocopt-simulation", "version": 1, "bandit": {"arms": 3}}).encode()),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidFile, match=name):
            load_simulation(tmp_path / name)
    with pytest.raises(InvalidFile, match="no such file"):
        load_simulation(tmp_path / "z.json")
    with pytest.raises(InvalidFile, match=r"expected a .parquet or .json file"):
        load_simulation(tmp_path / "z.csv")


# The command


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "i.json"
    labels = ["<script>", "[red]x[/red]", "plain"]
    path.write_text(json.dumps({"arms": BANDIT.arms.tolist(), "theta": [1, 0], "labels": labels}))
    return path


@pytest.fixture
def main(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", "simulate", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


def test_the_command_prints_a_table_and_saves_a_plot(instance, main, tmp_path):
    picture = tmp_path / "regret.png"
    code, out, err = main(
        instance, "-n", 1000, "-r", 20, "-p", "UCB", "-p", "LinUCB:a=1", "-p", "EndOfOptimism", "--plot", picture
    )
    assert (code, err) == (0, "")
    for word in ("UCB", "LinUCB:a=1", "c·log n", "55.3", "recovery phase", "plot written to"):
        assert word in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_commands_json_has_what_simulate_gives(instance, main):
    code, out, err = main(
        instance, "-n", 1000, "-r", 20, "-p", "LinTS:a=2", "--seed", 5, "--noise-variance", 0.5, "--json"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    r = simulate(LinTS(a=2.0), ao.LinearBandit(BANDIT.arms, BANDIT.theta, 0.5), 1000, 20, rng=5)
    assert document["c"] == pytest.approx(4.0)
    (policy,) = document["policies"]
    assert policy["final_regret"]["mean"] == r.mean[-1]
    assert policy["final_regret"]["standard_error"] == r.standard_error[-1]
    assert policy["mean_regret"] == r.mean.tolist()
    assert (
        json.loads(main(instance, "-n", 10, "-r", 1, "-p", "UCB", "--json")[1])["policies"][0]["standard_error"] is None
    )


def test_the_command_goes_on_in_its_folder_and_leaves_others_alone(instance, main, tmp_path):
    out = tmp_path / "runs"
    arguments = (instance, "-n", 500, "-r", 20, "-p", "LinTS", "--out", out)
    assert main(*arguments)[0] == 0
    before = snapshot(out / "LinTS")
    assert main(*arguments)[0] == 0
    after = snapshot(out / "LinTS")
    assert {n: v for n, v in before.items() if n.startswith("runs-")} == {
        n: v for n, v in after.items() if n.startswith("runs-")
    }
    result = next((out / "LinTS").glob("result.*"))
    same(load_simulation(result), simulate(LinTS(), load_simulation(result).bandit, 500, 20, rng=0))
    code, text, err = main(instance, "-n", 501, "-r", 20, "-p", "LinTS", "--out", out)
    assert (code, text) == (2, "")
    assert "holds another experiment" in err
    assert err.count("\n") == 1
    assert snapshot(out / "LinTS") == after


def test_a_folder_is_of_one_experiment_so_that_its_picture_is_never_lost(instance, main, tmp_path):
    out = tmp_path / "runs"
    assert main(instance, "-n", 500, "-r", 4, "-p", "LinTS", "--out", out)[0] == 0
    before = snapshot(out)
    for change, word in ((("--theta", "1,0.5"), "bandit"), (("--seed", 1), "seed"), (("-r", 5), "runs")):
        code, text, err = main(instance, "-n", 500, "-r", 4, "-p", "UCB", "--out", out, *change)
        assert (code, text) == (2, "")
        assert f"holds another experiment: the {word} of LinTS is" in err
        assert err.count("\n") == 1
        assert snapshot(out) == before
    assert main(instance, "-n", 500, "-r", 4, "-p", "UCB:a=1e+9", "-p", "UCB:a=1e-9", "--out", out)[0] == 0
    assert {p.name for p in out.iterdir()} == {"LinTS", "UCB-a=1000000000", "UCB-a=1e-09", "regret.png"}


def test_a_folder_of_a_simulation_that_was_killed_at_once_is_taken_up(instance, main, tmp_path):
    out = tmp_path / "runs"
    (out / "UCB").mkdir(parents=True)
    (out / "UCB" / ".partial-abc").write_bytes(b"half a manif")
    assert main(instance, "-n", 500, "-r", 4, "-p", "UCB", "--out", out)[0] == 0
    assert (out / "UCB" / "manifest.json").is_file()


def test_figures_of_the_table_are_never_cut_off(main, monkeypatch, tmp_path):
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1], [0.999999999, 0.01]], "theta": [1, 0]}))
    long = "LinUCB:radius=theoretical,ridge=0.5,norm_bound=2,delta=0.01"
    monkeypatch.setattr(command, "Console", lambda **given: Console(**given, width=80))
    code, out, err = main(path, "-n", 1000, "-r", 4, "-p", long, "-p", "PhasedElimination")
    assert (code, err) == (0, "")
    assert "…" not in out
    assert "1.38e+10" in out
    assert [command._figure(x) for x in (0.0, 0.05, 0.1, 123.456, 2e6)] == ["0.0", "0.05", "0.1", "123.5", "2e+06"]


def test_the_bar_comes_before_the_first_runs_are_finished_and_only_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(command, "_PATIENCE", 0.05)
    for terminal in (True, False):
        console = Console(file=screen, force_terminal=terminal, width=100)
        monkeypatch.setattr(command, "Console", lambda console=console, **_: console)
        with command._bar("[red]mine[/red]", 8) as callback:
            time.sleep(0.3)
            shown = screen.getvalue()
            callback(3, 8, 0.3)
        if terminal:
            assert "[red]mine[/red]" in shown
            assert "0/8" in shown
            assert "3/8" in screen.getvalue()
            screen.seek(0)
            screen.truncate()
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", 2, "-p", "UCB"), "horizon: expected a whole number >= 3, got 2"),
        (("-n", 10, "-p", "UBC"), "policy: expected one of"),
        (("-n", 10, "-p", "UCB", "-p", "UCB"), "--policy: UCB is given twice"),
        (("-n", 10, "-p", "UCB", "-r", 0), "runs: expected a whole number >= 1"),
        (("-n", 10, "-p", "UCB", "--plot", "x.gif"), "--plot: expected a name that ends in"),
        (("-n", 10, "-p", "UCB", "--plot", "nowhere/x.png"), "--plot: there is no folder nowhere"),
        (("-n", 10, "-p", "UCB", "--theta", "1"), "theta: expected 2 entries"),
        (("-n", 10, "-p", "UCB", "--out", str(ROOT)), "holds other files"),
        (("-n", 10, "-p", "UCB", "--seed", "-1"), "rng: expected a whole number >= 0"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(instance, main, arguments, words):
    code, out, err = main(instance, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


def test_the_command_needs_theta(main, tmp_path):
    path = tmp_path / "gaps.json"
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1]], "gaps": [0, 1]}))
    code, _, err = main(path, "-n", 100, "-p", "UCB")
    assert code == 2
    assert "needs θ" in err


def test_ties_and_short_horizons_are_stated_on_the_command_line(main, tmp_path):
    path = tmp_path / "ties.json"
    path.write_text(json.dumps({"arms": [[1, 0], [1, 0], [0, 1], [0, 2]], "theta": [1, 0]}))
    code, out, err = main(path, "-n", 3, "-r", 2, "-p", "UCB")
    assert (code, err) == (0, "")
    assert "2 arms are optimal" in out
    assert "there are 4 arms and 3 rounds" in out
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1]], "theta": [1, 1]}))
    code, out, err = main(path, "-n", 10, "-r", 2, "-p", "UCB", "--log")
    assert (code, out) == (2, "")
    assert "--log: every arm is optimal" in err
