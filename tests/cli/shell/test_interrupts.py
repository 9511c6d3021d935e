"""Ctrl-C at any moment, imports included: exit code 130 and one line; and readers that go away, terminals without Greek, no caches."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import allocopt
from allocopt.cli.shell import running

HOME = str(Path(allocopt.__file__).parents[1])
# the line says that Python has started and the entry point has begun: what happens before is not ours
START = "import os, allocopt.cli.main as m; m._on_interrupt(m._stop_at_once); os.write(1, b'started\\n'); m.main()"
COMMANDS = {
    "solve i.json": 1.0,
    "demo": 1.2,
    "hardness i.json --plot {n}.png": 2.5,
    "simulate i.json -n 20000 -r 20 -p LinUCB -p UCB": 2.5,
    "simulate i.json -n 1e6 -r 400": 6.0,
    "solve i.json --method conic": 1.5,
    "bound i.json -n 1e6 --worst-regret 1000": 1.5,
}
needs_signals = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "i.json").write_text(json.dumps({"arms": [[1, 0], [0, 1], [0.75, 0.5]], "theta": [1, 0]}))
    return tmp_path


def environment(**more):
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": HOME, "NO_COLOR": "1", **more}


def interrupted(folder, line, seconds, begun=None):
    """Exit code, output and error lines of a command whose whole process group gets SIGINT so long after its start.

    ``begun``: a file that must be there first, however long that takes on a busy machine.
    """
    command = [sys.executable, "-c", START, *line.split()]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "started\n"
        while begun is not None and not begun.exists() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def ends_well(folder, line, seconds):
    code, _, err = interrupted(folder, line, seconds)
    assert code in (0, 130), (line, seconds, err)  # 0: it had finished by then
    lines = [text for text in err.splitlines() if not re.fullmatch("note: .* compiles, this once; .*", text)]
    assert [text.split(":")[0] for text in lines] == (["interrupted"] if code else []), (line, seconds, err)
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]  # no half-written file
    return code


@needs_signals
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.4])
def test_an_interrupt_while_loading_is_one_line_and_exit_code_130(folder, seconds):
    code, out, err = interrupted(folder, "simulate i.json -n 1e7 -r 400", seconds)
    assert (code, out, err) == (130, "", "interrupted\n")


@needs_signals
@pytest.mark.slow
def test_fifty_interrupts_at_random_moments_exit_with_130(folder):
    draw = random.Random(int(time.time()))
    caught = tries = 0
    while caught < 50:
        line = draw.choice(list(COMMANDS))
        # a command that had finished before its signal came (exit code 0) is not counted
        caught += ends_well(folder, line.format(n=tries), draw.random() * COMMANDS[line]) == 130
        tries += 1
        assert tries < 150, "most commands end before their signal: shorten COMMANDS"


class HalfMade:
    """As llvmlite's strings are: an interrupt in the middle of ``__init__`` leaves an object whose ``__del__`` fails."""

    def __init__(self, interrupted):
        if interrupted:
            running.interrupt()
        self.pointer = 1

    def __del__(self):
        assert self.pointer


@needs_signals
def test_an_object_that_the_interrupt_left_half_made_says_nothing(capsys):
    assert running.guarded(lambda: HalfMade(interrupted=True) and 0, as_json=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_object_that_fails_by_itself_is_heard(capsys):
    def spoilt():
        del HalfMade(interrupted=False).pointer
        return 0

    assert running.guarded(spoilt, as_json=False) == 0
    assert "AttributeError" in capsys.readouterr().err


@needs_signals
def test_an_interrupted_simulation_says_what_is_kept(folder):
    line = "simulate i.json -n 1e6 -r 100000 -p LinUCB --workers 1 --out runs"
    code, _, err = interrupted(folder, line, 2.0, begun=folder / "runs")
    *notes, last = err.splitlines()
    assert code == 130 and last.startswith("interrupted: what was finished is kept in runs")
    assert all(line.startswith("note: ") for line in notes)  # that it compiles, and how long it will take


def run(folder, line, **how):
    more = how.pop("env", {})
    command = [sys.executable, "-m", "allocopt.cli.main", *line.split()]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(command, cwd=folder, env=environment(**more), timeout=120, check=False, **how)


@pytest.mark.parametrize("line", ["demo", "--help", "solve i.json --json", "--version"])
def test_a_reader_that_goes_away_is_no_error(folder, line):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(folder, line, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_there_may_be_no_standard_output_at_all(folder):
    done = run(folder, "solve i.json --save p.json", stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, b"") and (folder / "p.json").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("line", ["demo", "hardness i.json", "solve --help", "bound i.json -n 1e6 --worst-regret 9"])
def test_terminals_without_greek_get_words(folder, line, encoding):
    done = run(folder, line, env={"PYTHONIOENCODING": encoding, "COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode(encoding)
    assert "theta" in text and "?" not in text
    frames = [row for row in text.splitlines() if row.startswith(("|", "+")) and "--help" not in line]
    assert all(len(row) <= 80 for row in frames)


def test_the_c_locale_is_enough(folder):
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run(folder, "demo", env=env).returncode == 0


def test_caches_that_cannot_be_written_are_no_error(folder):
    nowhere = "/proc/none"  # nobody can write there, not even root
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")
    done = run(folder, "hardness i.json --plot h.png", env=dict.fromkeys(names, nowhere))
    assert (done.returncode, done.stderr) == (0, b"") and (folder / "h.png").exists()


def test_the_version_takes_next_to_no_time(folder):
    before = os.times()
    assert run(folder, "--version").returncode == 0
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 0.15
