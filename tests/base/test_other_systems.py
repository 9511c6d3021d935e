"""What Linux has and other systems have not: without it everything works. Simulated here, in processes of their own.

Before allocopt is loaded, in the caller and in every process that it starts, ``sys.platform`` becomes another one, functions and
modules that only Unix or Linux has are taken away, and Windows' own are put there. That shows neither Windows' files nor its consoles.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
if sys.platform != "linux":
    pytest.skip("simulates other systems on Linux", allow_module_level=True)

DISGUISE = """
import sys
# what is loaded before the change of name decides for itself where it is
import ctypes, getpass, multiprocessing, platform, subprocess, tempfile, threading
import asyncio, flint, matplotlib.figure, matplotlib.backends.backend_agg, numba, networkx, rich.console, typer
import numpy, scipy.linalg, scipy.sparse, scipy.optimize, scipy.special, threadpoolctl, cloudpickle, pyarrow.parquet, sqlite3
import os, signal, types
SYSTEM = os.environ["PRETENDED_SYSTEM"]
missing = ["sched_getaffinity", "sched_setaffinity"]
modules = []
if SYSTEM == "win32":
    import fcntl
    unix_lock = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB

    def locking(handle, mode, size):
        try:
            unix_lock[0](handle, unix_lock[1])
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None  # what Windows says

    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    missing += ["fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "setsid", "getpgid", "mkfifo", "uname", "sysconf", "chown"]
    modules += ["fcntl", "resource", "pwd", "grp", "termios"]
    subprocess.Popen.kill = lambda self: self.send_signal(9)  # Linux' own, which asks for the name below
    for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGSTOP", "SIGUSR1", "SIGCHLD", "alarm", "setitimer", "pthread_kill"):
        if hasattr(signal, name):
            delattr(signal, name)
for name in missing:
    if hasattr(os, name):
        delattr(os, name)
for name in modules:
    sys.modules[name] = None

def no_links(*_, **__):
    raise OSError(1, "this file system has no links")

if SYSTEM == "win32":
    os.link = os.symlink = no_links
sys.platform = SYSTEM
"""

WORK = """
import json, os, sys
import numpy as np
import allocopt as ao
from allocopt.base.machine import available_cores
folder = sys.argv[1]
told = {"platform": sys.platform, "cores": available_cores()}
s = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
s.save(os.path.join(folder, "proof.json"))
try:
    s.save(os.path.join(folder, "proof.json"))
except ao.InvalidFile as error:
    told["kept"] = "exists already" in str(error)
s.save(os.path.join(folder, "proof.json"), overwrite=True)
told["proven"] = ao.load_solution(os.path.join(folder, "proof.json")).verify().upper
bandit = ao.instances.random_unit(3, 6, seed=1)
run = ao.simulate("LinTS", bandit, 300, 40, rng=0, workers=2, checkpoint=os.path.join(folder, "checkpoint"))
told["alike"] = bool(np.array_equal(run.regret, ao.simulate("LinTS", bandit, 300, 40, rng=0, workers=1).regret))
spec = {
    "family": {"function": os.path.join(folder, "family.py") + ":instance"},
    "grid": {"i": [0, 1, 2, 3]}, "quantities": ["c"],
}
study = ao.study(spec, os.path.join(folder, "study"), workers=2)
told["counts"] = study.counts
told["reasons"] = list(study.reasons())
from allocopt.base.long_runs.lock import locked
from pathlib import Path
with locked(Path(folder)):
    try:
        with locked(Path(folder)):
            pass
    except ao.InvalidFile as error:
        told["locked"] = f"process {os.getpid()}" in str(error)
arms = np.random.default_rng(0).normal(size=(300_000, 8)).astype(np.float32)
np.save(os.path.join(folder, "arms.npy"), arms)
large = ao.regret_constant(np.load(os.path.join(folder, "arms.npy"), mmap_mode="r"), np.ones(8), tol=1e-4)
told["large"] = large.status.name
ao.plots.save(s.plot(), os.path.join(folder, "plot.png"))
print(json.dumps(told))
"""

FAMILY = """
import os
import allocopt as ao

def instance(i):
    if i == 2:
        os._exit(7)
    return ao.instances.random_unit(3, 5, seed=i)
"""


def pretended(system, folder, *command, **more):
    """Run a Python that takes itself for one on another system."""
    (folder / "sitecustomize.py").write_text(DISGUISE, encoding="utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PRETENDED_SYSTEM": system, "PYTHONPATH": path, **more}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=folder, capture_output=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_proofs_simulations_studies_and_locks_need_nothing_that_only_linux_has(tmp_path, system):
    (tmp_path / "family.py").write_text(FAMILY, encoding="utf-8")
    done = pretended(system, tmp_path, "-c", WORK, str(tmp_path))
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout.decode().splitlines()[-1])
    assert told["platform"] == system and told["cores"] == os.cpu_count()
    assert told["kept"] and told["locked"] and told["alike"] and told["large"] == "CERTIFIED"
    assert told["proven"] == pytest.approx(8.0)
    assert told["counts"]["CERTIFIED"] == 3 and told["counts"]["FAILED"] == 1
    assert "exit code 7" in told["reasons"][0]
    assert (tmp_path / "plot.png").stat().st_size > 1000
    left = sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".") and p.name != ".allocopt-lock")
    assert left == []  # no temporary file stays where files cannot be linked


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "cp437"])
def test_commands_can_be_read_on_consoles_of_windows(tmp_path, encoding):
    instance = tmp_path / "instance.json"
    labels = '["α", "β", "γ"]'
    instance.write_text(
        f'{{"arms": [[1, 0], [0, 1], [0.99, 0.02]], "theta": [1, 0], "labels": {labels}}}', encoding="utf-8"
    )
    for command, code in ((["hardness", "instance.json"], 0), (["solve", "nothing-there-ü.json"], 2)):
        more = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        done = pretended("win32", tmp_path, "-m", "allocopt.cli.main", *command, **more)
        assert done.returncode == code and b"Traceback" not in done.stderr, done.stderr
        assert "instance" in (done.stdout + done.stderr).decode(encoding) or code == 2
