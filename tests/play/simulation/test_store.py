"""Checkpoints survive an interrupt and kill -9, and never touch the folder of another experiment."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial

import pytest
from simulating import BANDIT, same, snapshot

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import InvalidFile
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB, LinTS


def chunks(folder):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as base:
        return dict(base.execute("SELECT first, content FROM parts"))


def test_what_was_finished_before_an_interrupt_is_not_played_again(tmp_path):
    folder = tmp_path / "run"
    done = []

    def stop(finished, runs, seconds):
        done.append(finished)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(LinTS(), BANDIT, 500, 40, rng=2, checkpoint=folder, callback=stop)
    before = chunks(folder)
    assert len(before) == 3
    told = []
    r = simulate(LinTS(), BANDIT, 500, 40, rng=2, checkpoint=folder, callback=lambda *a: told.append(a[0]), workers=2)
    same(r, simulate(LinTS(), BANDIT, 500, 40, rng=2))
    assert min(told) > done[-1]
    after = chunks(folder)
    assert {first: after[first] for first in before} == before
    told.clear()
    same(r, simulate(LinTS(), BANDIT, 500, 40, rng=None, checkpoint=folder, callback=lambda *a: told.append(a)))
    assert told == []  # all was there; without rng, the folder's own seed counts


@pytest.mark.slow
def test_kill_minus_nine_loses_nothing_that_was_finished(tmp_path):
    folder = tmp_path / "run"
    script = f"""
from allocopt import instances
from allocopt.play.simulation.simulate import simulate
simulate("EndOfOptimism", instances.counter_example(0.2), 200_000, 100, rng=2, checkpoint={str(folder)!r}, workers=1)
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    wal = folder / "results.sqlite-wal"
    while (
        not wal.exists() or wal.stat().st_size < 60_000 or len(chunks(folder)) < 2
    ):  # a large log may hold one part only
        assert process.poll() is None, "it was over before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = chunks(folder)
    assert 2 <= len(before) < 16
    r = simulate("EndOfOptimism", BANDIT, 200_000, 100, rng=2, checkpoint=folder)
    after = chunks(folder)
    assert {first: after[first] for first in before} == before
    same(r, simulate("EndOfOptimism", BANDIT, 200_000, 100, rng=2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": UCB()}, 'policy.object.class is "allocopt.policies.lints:LinTS" there'),
        ({"policy": LinTS(a=2.0)}, "policy.a is 1.0 there and 2.0 here"),
        ({"horizon": 501}, "horizon is 500 there and 501 here"),
        ({"runs": 21}, "runs is 20 there and 21 here"),
        ({"rng": 3}, "seed.entropy is 2 there and 3 here"),
        ({"times": [5]}, "times is"),
        ({"bandit": instances.counter_example(0.1)}, "the content of bandit.arms has changed"),
        (
            {"bandit": ao.LinearBandit(BANDIT.arms, BANDIT.theta, 2.0)},
            "bandit.noise_variance is 1.0 there and 2.0 here",
        ),
        ({"environment": lambda a, t, g: 0.0}, "environment is null there"),
    ],
)
def test_a_folder_of_another_experiment_is_left_alone(tmp_path, change, words):
    given = {"policy": LinTS(), "bandit": BANDIT, "horizon": 500, "runs": 20, "rng": 2, "checkpoint": tmp_path / "run"}
    simulate(**given)
    before = snapshot(tmp_path)
    with pytest.raises(InvalidFile, match=r"holds another simulation: .*; nothing was changed") as caught:
        simulate(**{**given, **change})
    assert words in str(caught.value)
    assert snapshot(tmp_path) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("ten years")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidFile, match=r"expected a new or empty folder .* holds 'thesis.tex'"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path)
    with pytest.raises(InvalidFile, match=r"expected a folder .*, but it is a file"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path / "thesis.tex")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("file", ["manifest.json", "study.json"])
def test_a_folder_of_the_earlier_format_is_refused_by_name(tmp_path, file):
    (tmp_path / file).write_text("{}")
    (tmp_path / "runs-from-00000000.npz").write_bytes(b"")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidFile, match=f"earlier allocopt kept in another format .{file}.* use another folder"):
        simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path)
    assert snapshot(tmp_path) == before


def test_a_damaged_chunk_is_played_again(tmp_path):
    simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "run")
    whole = chunks(tmp_path / "run")
    for bad in (b"", whole[1][: len(whole[1]) // 2], whole[2], "text"):
        with contextlib.closing(sqlite3.connect(tmp_path / "run" / "results.sqlite")) as base, base:
            base.execute("UPDATE parts SET content = ? WHERE first = 1", (bad,))
        told = []
        again = simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "run", callback=lambda *a: told.append(a))
        same(again, simulate(UCB(), BANDIT, 100, 4, rng=0))
        assert len(told) == 1 and chunks(tmp_path / "run") == whole


def test_a_chunk_of_another_experiment_is_not_read(tmp_path):
    for seed in (0, 1):
        simulate(UCB(), BANDIT, 100, 4, rng=seed, checkpoint=tmp_path / str(seed))
    with contextlib.closing(sqlite3.connect(tmp_path / "0" / "results.sqlite")) as base, base:
        base.execute("ATTACH ? AS other", (str(tmp_path / "1" / "results.sqlite"),))
        base.execute("DELETE FROM parts WHERE first = 2")
        base.execute("INSERT INTO parts SELECT * FROM other.parts WHERE first = 2")
    with pytest.raises(InvalidFile, match="rows 2 to 2 are of another simulation; nothing was changed"):
        simulate(UCB(), BANDIT, 100, 4, rng=0, checkpoint=tmp_path / "0")


def scaled(arm, t, rng, scale):
    return scale * rng.standard_normal()


class Constant:
    """A policy whose only parameter is private."""

    def __init__(self, arm):
        self._arm = arm

    def start(self, arms, horizon, noise_variance, rng):
        return self

    def choose(self):
        return self._arm

    def update(self, arm, reward):
        pass


def closed_over(scale):
    return lambda arm, t, rng: scale * rng.standard_normal()


WEIGHT = 1.0


def of_a_global(arm, t, rng):
    return WEIGHT * rng.standard_normal()


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (
            {"environment": partial(scaled, scale=0.0)},
            {"environment": partial(scaled, scale=50.0)},
            "environment.scale is 0.0",
        ),
        ({"policy": Constant(0)}, {"policy": Constant(1)}, "policy._arm is 0 there and 1 here"),
        (
            {"environment": closed_over(1.0)},
            {"environment": closed_over(2.0)},
            "environment.scale is 1.0 there and 2.0 here",
        ),
    ],
)
def test_half_an_experiment_is_not_finished_with_another(tmp_path, one, other, words):
    """Each was accepted once, and gave a result half of which was of each."""

    def stop(done, runs, seconds):
        if done >= 16:
            raise KeyboardInterrupt

    given = {
        "policy": Constant(0),
        "bandit": BANDIT,
        "horizon": 20,
        "runs": 32,
        "rng": 0,
        "checkpoint": tmp_path / "run",
    }
    with pytest.raises(KeyboardInterrupt):
        simulate(**{**given, **one}, callback=stop)
    with pytest.raises(InvalidFile, match=words):
        simulate(**{**given, **other})
    whole = {k: v for k, v in given.items() if k != "checkpoint"}
    same(simulate(**{**given, **one}), simulate(**{**whole, **one}))


def test_a_global_that_the_environment_uses_is_part_of_it(tmp_path, monkeypatch):
    given = (Constant(0), BANDIT, 20, 4)
    simulate(*given, rng=0, environment=of_a_global, checkpoint=tmp_path / "run")
    monkeypatch.setitem(of_a_global.__globals__, "WEIGHT", 2.0)
    with pytest.raises(InvalidFile, match=r"environment.WEIGHT is 1.0 there and 2.0 here"):
        simulate(*given, rng=0, environment=of_a_global, checkpoint=tmp_path / "run")


def test_of_two_processes_without_a_seed_the_second_takes_that_of_the_folder(tmp_path):
    one = simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path / "run")
    same(one, simulate(UCB(), BANDIT, 100, 4, checkpoint=tmp_path / "run"))
