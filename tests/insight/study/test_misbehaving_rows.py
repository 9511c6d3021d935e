"""Rows that crash, exit, loop for ever or fill the memory: one FAILED row each, and the study goes on."""

import contextlib
import os
import signal
import threading
import time

import pytest
from studies import as_dicts, toml

import allocopt as ao
from allocopt.base.long_runs.children import Trouble
from allocopt.insight.instances import random_unit
from allocopt.insight.study import workers as study_workers
from allocopt.insight.study.study import StudySpec, study

FAMILY = """
import ctypes, os, signal, sys, time
import numpy as np

def family(kind, seed):
    if kind == "exit": os._exit(3)
    if kind == "crash": ctypes.string_at(0)
    if kind == "killed": os.kill(os.getpid(), signal.SIGKILL)
    if kind == "loop":
        while True: pass
    if kind == "deaf": exec("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); time.sleep(1000)")
    if kind == "array": np.ones(int(20e9) // 8)
    if kind == "list": [bytes(10**6) for _ in range(20_000)]
    if kind == "prints":
        print("noise", flush=True); os.write(1, b"more noise")
        sys.stdin.read()
    return np.random.default_rng(seed).normal(size=(5, 2)), [1.0, 0.5]
"""
REASONS = {
    "exit": "its process ended with exit code 3, 3 times",
    "crash": "its process ended with signal SIGSEGV, 3 times",
    "killed": "its process ended with signal SIGKILL, 3 times",
    "loop": "took longer than 3 seconds (row_seconds)",
    "deaf": "took longer than 3 seconds (row_seconds)",
    "array": "not enough memory: a row may use 1 GB (row_gigabytes)",
    "list": "not enough memory: a row may use 1 GB (row_gigabytes)",
    "prints": None,
}


def misbehaving(tmp_path, **more):
    file = toml(tmp_path / "f.py", FAMILY)
    return {"family": {"function": f"{file}:family"}, "grid": {"kind": [*REASONS, "fine"]}, "repeats": 1, "quantities": ["c"],
            "row_seconds": 3.0, "row_gigabytes": 1.0, **more}  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="signals, and limits of memory")
def test_rows_that_crash_exit_loop_or_fill_the_memory_are_one_failed_row_each(tmp_path):
    rows = as_dicts(study(misbehaving(tmp_path), tmp_path / "s", workers=2))
    fine = as_dicts(study(misbehaving(tmp_path, grid={"kind": ["fine"]}, seed=8), tmp_path / "fine", workers=1))
    assert len(rows) == 9
    for row in rows:
        assert row["reason"] == REASONS.get(row["kind"]), row
        assert row["status"] == ("FAILED" if row["reason"] else "CERTIFIED")
    assert [rows[-1]["value"]] == [row["value"] for row in fine]


@pytest.mark.slow
def test_on_a_cluster_they_are_the_same_rows(tmp_path):
    distributed = pytest.importorskip("distributed")
    local = study(misbehaving(tmp_path), tmp_path / "local", workers=2)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        remote = study(misbehaving(tmp_path), tmp_path / "dask", client=cluster.scheduler_address)
        before = set(cluster.workers)
    assert local.path.read_bytes() == remote.path.read_bytes()
    assert before == {0, 1}, "a worker died"


def test_a_row_that_dies_blocks_no_restart(tmp_path):
    """The first row dies, and the study is stopped as soon as a row is finished: the next start goes on after it."""

    def stop(progress):
        if progress.done:
            raise KeyError

    spec = misbehaving(tmp_path, grid={"kind": ["exit", "fine"]}, repeats=2)
    with pytest.raises(KeyError):
        study(spec, tmp_path / "s", workers=1, callback=stop)
    result = study(spec, tmp_path / "s", workers=1)
    assert 0 < result.computed < 4
    assert result.counts == {"CERTIFIED": 2, "FAILED": 2}


def test_in_a_block_of_many_rows_only_the_guilty_one_fails(tmp_path, monkeypatch):
    def family(seed):
        if seed == 150:
            os._exit(1)
        return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 200, "quantities": ["c"]}
    result = study(spec, tmp_path / "s", workers=1)
    assert result.counts == {"CERTIFIED": 199, "FAILED": 1}
    assert as_dicts(result)[150]["reason"] == "its process ended with exit code 1, 3 times"


def test_a_process_that_somebody_kills_costs_no_row(tmp_path):
    """Every row's first process is killed: all rows are computed by a second one."""
    folder = str(tmp_path / "met")
    os.mkdir(folder)

    def family(seed):
        with contextlib.suppress(FileExistsError):
            open(os.path.join(folder, str(seed)), "x", encoding="utf-8").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return random_unit(2, 4, seed)

    assert study({"family": family, "repeats": 6, "quantities": ["c"]}, tmp_path / "s", workers=2).certified == 6


def test_workers_of_a_cluster_that_die_cost_no_row_until_they_all_die_of_it():
    """Dask says so after four workers, whether or not they came to the row; of a process of our own three are enough."""
    spec = StudySpec.from_dict(
        {"family": {"name": "random-unit"}, "fixed": {"dim": 2, "n_arms": 4}, "quantities": ["c"]}
    )
    for trouble, tries in ((Trouble("lost", outside=True), 20), (Trouble("died"), 3)):
        blocks = study_workers.Blocks(spec, [range(1)])
        found = [blocks.done(next(blocks), trouble) for _ in range(tries)]
        assert found[:-1] == [None] * (tries - 1)
        assert found[-1].answers[0][0].reason == f"{trouble}, {tries} times"


def test_when_rows_turn_slow_no_more_than_a_few_seconds_of_work_are_at_risk(tmp_path, monkeypatch):
    monkeypatch.setattr(study_workers, "_PATIENCE_SECONDS", 0.5)

    def family(seed):
        time.sleep(0.0 if seed < 300 else 0.2)
        return random_unit(2, 4, seed)

    seen = []

    def callback(progress):
        seen.append(progress.done)
        if progress.done >= 320:
            raise KeyError

    with pytest.raises(KeyError):
        study({"family": family, "repeats": 1000, "quantities": ["c"]}, tmp_path / "s", workers=1, callback=callback)
    slow = [done for done in seen if done >= 300]
    assert len(slow) >= 15  # one by one, each kept when it is finished


def test_progress_is_told_while_a_single_row_takes_long_and_the_time_left_follows_the_pace(tmp_path, monkeypatch):
    monkeypatch.setattr(study_workers, "_SILENCE_SECONDS", 0.2)

    def family(seed):
        time.sleep(1.5 if seed == 2 else 0.0)
        return random_unit(2, 4, seed)

    monkeypatch.setattr(study_workers, "_MOST_IN_BLOCK", 1)
    seen = []
    study({"family": family, "repeats": 3, "quantities": ["c"]}, tmp_path / "s", workers=1, callback=seen.append)
    waiting = [p for p in seen if p.done == 2]
    assert len(waiting) >= 4
    left = [p.seconds_left for p in waiting if p.seconds_left is not None]
    assert left == sorted(left) and left[-1] > left[0]  # it does not promise what it no longer believes


def test_a_function_that_cannot_be_sent_needs_no_workers(tmp_path):
    lock = threading.Lock()

    def family(seed):
        with lock:
            return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 2, "quantities": ["c"]}
    with pytest.raises(ao.AllocoptError):  # what it depends on cannot be said, or it cannot be sent
        study(spec, tmp_path / "s", workers=1)


@pytest.mark.parametrize("key", ["row_seconds", "row_gigabytes"])
def test_the_limits_of_rows_are_checked_and_belong_to_the_study(tmp_path, key):
    spec = misbehaving(tmp_path, grid={"kind": ["fine"]})
    with pytest.raises(ao.InvalidOption, match=f"{key}: expected a positive, finite number"):
        study({**spec, key: 0}, tmp_path / "s")
    study(spec, tmp_path / "s", workers=1)
    with pytest.raises(ao.InvalidFile, match=f"{key} is {spec[key]} there and 2.5 here"):
        study({**spec, key: 2.5}, tmp_path / "s", workers=1)


def test_ctrl_c_says_how_much_is_kept(tmp_path):
    def family(seed):
        return random_unit(2, 4, seed)

    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(
        ao.Interrupted, match=r"interrupted; [1-9] of 9 instances are kept in .*the next start goes on"
    ) as stopped:
        study({"family": family, "repeats": 9, "quantities": ["c"]}, tmp_path / "s", workers=1, callback=interrupt)
    assert stopped.value.solution is None
