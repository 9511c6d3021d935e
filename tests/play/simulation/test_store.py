"""Checkpoints survive an interrupt and kill -9, and never touch the folder of another experiment."""

import os
import signal
import subprocess
import sys
import time

import pytest
from simulating import BANDIT, same, snapshot

import allocopt as ao
from allocopt import instances
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB, LinTS


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
