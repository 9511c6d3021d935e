"""The same table, whatever the workers, the interruptions and the damage."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from studies import FAMILY, RANDOM, ROOT, toml

from allocopt.insight.instances import random_unit
from allocopt.insight.study import workers as study_workers
from allocopt.insight.study.study import study


def test_the_table_is_the_same_bytes_for_any_number_of_workers_and_any_cut(tmp_path, monkeypatch):
    one = study(RANDOM, tmp_path / "one", workers=1)
    monkeypatch.setattr(study_workers, "_BLOCK_SECONDS", 1e-9)  # blocks of one
    study(RANDOM, tmp_path / "single", workers=1)
    monkeypatch.setattr(study_workers, "_BLOCK_SECONDS", 0.02)
    monkeypatch.setattr(study_workers, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(study_workers, "_LEAST_POOL_SECONDS", 0.0)
    two = study(RANDOM, tmp_path / "two", workers=2)
    assert one.computed == two.computed == 160
    assert len({(tmp_path / x / "table.parquet").read_bytes() for x in ("one", "single", "two")}) == 1
    assert sorted(p.name for p in (tmp_path / "two").iterdir()) == [".allocopt-lock", "results.sqlite", "table.parquet"]
    assert (tmp_path / "two" / "results.sqlite").stat().st_size < 40_000  # the parts are gone


def test_what_is_finished_is_not_computed_again(tmp_path):
    calls = tmp_path / "calls"
    calls.touch()

    def family(seed):
        with calls.open("a") as out:
            out.write(f"{seed}\n")
        return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 30, "quantities": ["c"]}

    def stop(progress):
        if progress.done >= 10:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        study(spec, tmp_path / "s", workers=1, callback=stop)
    result = study(spec, tmp_path / "s", workers=1)
    assert 0 < result.computed <= 20
    assert sorted(map(int, calls.read_text().split())) == list(range(30))
    again = study(spec, tmp_path / "s", workers=1)
    assert again.computed == 0 and again.table.equals(result.table)
    assert len(calls.read_text().split()) == 30


@pytest.mark.slow
def test_killed_three_times_at_random_moments_the_table_is_that_of_an_uninterrupted_study(tmp_path):
    spec = toml(tmp_path / "k.toml", 'quantities = ["c", "ucb"]\nrepeats = 12000\n[family]\nname = "random-unit"\n'
                "[fixed]\ndim = 4\nn_arms = 12\n")  # fmt: skip
    script = (
        "from allocopt.insight.study import workers\n"
        "for name in ('_BLOCK_SECONDS', '_FIRST_SECONDS', '_LEAST_POOL_SECONDS'):\n"
        "    assert hasattr(workers, name)\n"
        "    setattr(workers, name, 0.05)\n"
        "from allocopt.cli.insight import study\nfrom allocopt.cli.main import main\nmain()"
    )
    start = [sys.executable, "-c", script, "study", str(spec), "--out", str(tmp_path / "killed"), "--workers", "2"]
    rng = np.random.default_rng()
    folder = tmp_path / "killed"
    for kill in range(3):
        process = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        wal = folder / "results.sqlite-wal"  # grows with every part
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if wal.exists() and wal.stat().st_size > 100_000:
                break
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if kill == 0:
            assert not (folder / "table.parquet").exists()
            (folder / ".table.parquet.left").write_bytes(b"half")
    resumed = study(spec, tmp_path / "killed")
    assert resumed.computed < 12_000
    study(spec, tmp_path / "whole", workers=1)
    killed, whole = (tmp_path / x / "table.parquet" for x in ("killed", "whole"))
    assert killed.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in (tmp_path / "killed").iterdir()) == [
        ".allocopt-lock",
        "results.sqlite",
        "table.parquet",
    ]


def test_a_damaged_part_is_computed_again_and_said_so(tmp_path):
    def stop(progress):
        if progress.done >= 20:
            raise KeyError

    with pytest.raises(KeyError):
        study(RANDOM, tmp_path / "s", workers=1, callback=stop)
    with contextlib.closing(sqlite3.connect(tmp_path / "s" / "results.sqlite")) as base, base:
        first, after, content = base.execute("SELECT first, after, content FROM parts ORDER BY first").fetchall()[1]
        base.execute("UPDATE parts SET content = ? WHERE first = ?", (content[:-50], first))
    result = study(RANDOM, tmp_path / "s", workers=1)
    assert result.damaged == (f"{first}-{after - 1}",)
    study(RANDOM, tmp_path / "t", workers=1)
    assert (tmp_path / "s" / "table.parquet").read_bytes() == (tmp_path / "t" / "table.parquet").read_bytes()


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_table(tmp_path):
    distributed = pytest.importorskip("distributed")
    spec = {"family": {"function": f"{toml(tmp_path / 'f.py', FAMILY)}:family"}, "grid": {"kind": ["fine", "raises"]},
            "repeats": 20, "quantities": ["c"]}  # fmt: skip
    local = study(spec, tmp_path / "local", workers=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        remote = study(spec, tmp_path / "dask", client=cluster.scheduler_address)
    assert remote.computed == 40
    assert local.path.read_bytes() == remote.path.read_bytes()
