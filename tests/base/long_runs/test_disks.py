"""A full disk, a folder that may not be written, a clock that jumps: said in words, and nothing is lost."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and users as Linux has them")
BEGINNING = """
import os, sys
import numpy as np
import allocopt as ao
from allocopt.insight.study import workers as study_workers
SPEC = {"family": {"name": "random-unit"}, "grid": {"dim": [2, 4], "n_arms": [5, 8]}, "repeats": 40, "quantities": ["c", "ratio"]}
BANDIT = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
study_workers._BLOCK_SECONDS = 0.02  # many small parts
"""


def run(code, folder, limit=None):
    """What a process says on standard output, with files of at most ``limit`` bytes."""

    def prepare():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "HOME": str(folder), "MPLCONFIGDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", BEGINNING + textwrap.dedent(code), str(folder)],
        capture_output=True, text=True, cwd=ROOT, preexec_fn=prepare, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@LINUX
def test_a_disk_that_fills_up_keeps_what_is_finished_and_the_rest_is_the_same(tmp_path):
    said = run(
        """
        try:
            ao.study(SPEC, sys.argv[1] + "/s", workers=0)
        except ao.InvalidFile as error:
            print(error)
        try:
            ao.simulate("LinTS", BANDIT, 2000, 400, rng=0, checkpoint=sys.argv[1] + "/sim")
        except ao.InvalidFile as error:
            print(error)
        """,
        tmp_path, limit=60_000,
    )  # fmt: skip
    study, simulation = said.splitlines()
    for line, name in ((study, "s"), (simulation, "sim")):
        assert f"{tmp_path / name}" in line and "what is finished is kept" in line, line
    said = run(
        """
        result = ao.study(SPEC, sys.argv[1] + "/s", workers=0)
        whole = ao.study(SPEC, sys.argv[1] + "/whole", workers=0)
        print(result.computed < 160, result.path.read_bytes() == whole.path.read_bytes())
        r = ao.simulate("LinTS", BANDIT, 2000, 400, rng=0, checkpoint=sys.argv[1] + "/sim")
        print(np.array_equal(r.regret, ao.simulate("LinTS", BANDIT, 2000, 400, rng=0).regret))
        """,
        tmp_path,
    )
    assert said.split() == ["True"] * 3


@LINUX
def test_no_writer_leaves_half_a_file_on_a_full_disk(tmp_path):
    said = run(
        """
        arms = np.random.default_rng(0).normal(size=(300, 3))
        s = ao.regret_constant(arms, [1.0, 0.0, 0.0])
        r = ao.simulate("LinTS", BANDIT, 200, 200, rng=0)
        schedule = ao.Schedule.from_solution(ao.regret_constant(BANDIT.arms, BANDIT.theta), horizon=100_000)
        writers = {
            "proof.json": s.save,
            "result.json": r.save,
            "schedule.csv": lambda path: schedule.to_csv(path, per_round=True),
        }
        for name, write in writers.items():
            try:
                write(os.path.join(sys.argv[1], name))
                print("written", name)
            except ao.InvalidFile as error:
                print(str(error).replace(sys.argv[1], "."))
        print(sorted(n for n in os.listdir(sys.argv[1]) if n.startswith((".proof", ".result", ".schedule", "proof", "result", "sch"))))
        """,
        tmp_path, limit=10_000,
    )  # fmt: skip
    *refused, left = said.splitlines()
    assert left == "[]"
    assert len(refused) == 3 and all("cannot write" in line and "File too large" in line for line in refused), refused


@LINUX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_of_somebody_else_is_refused_in_words_and_stays_as_it_is(tmp_path):
    here = Path("/tmp") / f"allocopt-{os.getpid()}"  # pytest's own folders may not even be entered by others
    here.mkdir(mode=0o755)
    try:
        run('ao.study(SPEC, sys.argv[1] + "/s", workers=0)', here)
        before = {p.name: p.read_bytes() for p in (here / "s").iterdir()}
        said = run(
            """
            ao.study(SPEC, sys.argv[1] + "/loading", workers=0)  # all that is needed: the other user may not see where it is
            os.setgid(65534)
            os.setuid(65534)
            for folder in ("/s", "/new", "/s/inside"):
                try:
                    ao.study(SPEC, sys.argv[1] + folder, workers=0)
                    print("accepted", folder)
                except ao.InvalidFile as error:
                    print(error)
            """,
            here,
        )
        assert len(said.splitlines()) == 3
        for line in said.splitlines():
            assert "cannot keep the study there: Permission denied" in line, line
        assert {p.name: p.read_bytes() for p in (here / "s").iterdir()} == before
        assert sorted(p.name for p in here.iterdir() if not p.name.startswith(".")) == ["loading", "s"]
    finally:
        subprocess.run(["rm", "-rf", str(here)], check=True)


def test_a_clock_that_jumps_changes_nothing(tmp_path):
    said = run(
        """
        import time
        jumps = np.random.default_rng(0)
        real = time.time
        time.time = lambda: real() + float(jumps.uniform(-1e9, 1e9))
        told = []
        def stop(progress):
            told.append(progress)
            if progress.done > 60:
                raise KeyError
        try:
            ao.study(SPEC, sys.argv[1] + "/s", workers=0, callback=stop)
        except KeyError:
            pass
        for name in os.listdir(sys.argv[1] + "/s"):
            os.utime(os.path.join(sys.argv[1], "s", name), (0, 4e9))
        result = ao.study(SPEC, sys.argv[1] + "/s", workers=0, callback=told.append)
        time.time = real
        whole = ao.study(SPEC, sys.argv[1] + "/whole", workers=0)
        print(result.computed < 160, result.path.read_bytes() == whole.path.read_bytes())
        print(all(p.seconds >= 0 and (p.seconds_left is None or p.seconds_left >= 0) for p in told), 0 <= result.seconds < 600)
        """,
        tmp_path,
    )
    assert said.split() == ["True"] * 4
