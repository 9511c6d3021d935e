"""The folder of a long run: one writer, whole parts, one experiment; whatever happens in between."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from allocopt.base.errors import InvalidFile
from allocopt.base.long_runs.store import DATABASE, RunStore, stored_identity

ROOT = Path(__file__).parents[3]


def open_and_begin(folder, identity):
    stack = contextlib.ExitStack()
    try:
        store = stack.enter_context(RunStore.open(folder, "study"))
        store.begin(identity)
    except BaseException:
        stack.close()
        raise
    return stack, store


def content(seed, row):
    return f"{seed}:{row};".encode()


KILLED = """
import os, sys
from pathlib import Path
from allocopt.base.long_runs.store import RunStore
folder, seed, first, count, sqlite_step = Path(sys.argv[1]), *map(int, sys.argv[2:])
steps = 0
def step():
    global steps
    steps += 1
    if steps > sqlite_step:
        os._exit(9)
    return 0
with RunStore.open(folder, "study") as store:
    store.begin({"seed": seed})
    store._connection.set_progress_handler(step, 1)
    store.add(first, count, b"".join(f"{seed}:{row};".encode() for row in range(first, first + count)))
    os._exit(8)
"""


class Folder(RuleBasedStateMachine):
    """Start, go on, be killed in the middle of a write, change the experiment: what is kept is never a mixture."""

    ROWS = 12

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "run"
        self.seed = None  # whose folder it is
        self.rows = {}  # what must be there
        self.maybe = set()  # rows that a killed process may have finished
        self.open = None

    def teardown(self):
        self.close()
        shutil.rmtree(self.folder.parent)

    def close(self):
        if self.open is not None:
            self.open[0].close()
            self.open = None

    @initialize(seed=st.integers(0, 2))
    def start(self, seed):
        self.open = open_and_begin(self.folder, {"seed": seed})
        self.seed = seed

    @precondition(lambda self: self.open is None)
    @rule()
    def resume(self):
        self.open = open_and_begin(self.folder, {"seed": self.seed})
        self.settle()

    @precondition(lambda self: self.open is None)
    @rule(seed=st.integers(3, 5))
    def resume_something_else(self, seed):
        with pytest.raises(InvalidFile, match=f"seed is {self.seed} there and {seed} here"):
            open_and_begin(self.folder, {"seed": seed})

    @precondition(lambda self: self.open is not None)
    @rule()
    def stop(self):
        self.close()

    @precondition(lambda self: self.open is not None)
    @rule()
    def another_writer_is_refused(self):
        with pytest.raises(InvalidFile, match=rf"another process is working in this folder: process {os.getpid()} "):
            open_and_begin(self.folder, {"seed": self.seed})

    @precondition(lambda self: self.open is not None)
    @rule(data=st.data())
    def add(self, data):
        missing = self.open[1].missing(self.ROWS)
        if not missing:
            return
        rows = data.draw(st.sampled_from(missing))
        count = data.draw(st.integers(1, len(rows)))
        self.open[1].add(rows.start, count, b"".join(content(self.seed, r) for r in rows[:count]))
        self.rows.update({r: content(self.seed, r) for r in rows[:count]})

    @precondition(lambda self: self.open is not None and self.rows)
    @rule(data=st.data())
    def add_what_is_there(self, data):
        with pytest.raises(InvalidFile, match="are there already"):
            self.open[1].add(data.draw(st.sampled_from(sorted(self.rows))), 1, b"")

    @precondition(lambda self: self.open is None)
    @rule(data=st.data(), step=st.integers(0, 40))
    def be_killed_while_adding(self, data, step):
        free = [r for r in range(self.ROWS) if r not in self.rows and r not in self.maybe]
        if not free:
            return
        first = data.draw(st.sampled_from(free))
        call = [sys.executable, "-c", KILLED, str(self.folder), *map(str, (self.seed, first, 1, step))]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, check=False)
        assert done.returncode in (8, 9), done.stderr
        if done.returncode == 8:
            self.rows[first] = content(self.seed, first)
        else:
            self.maybe.add(first)

    def settle(self):
        """What the killed processes finished, seen from the folder itself."""
        for rows, kept in self.open[1].parts():
            if rows.start in self.maybe:
                assert kept == content(self.seed, rows.start)
                self.rows[rows.start] = kept
        self.maybe.clear()

    @invariant()
    def nothing_is_lost_and_nothing_mixed(self):
        if self.open is None:
            return
        store = self.open[1]
        kept = {}
        for rows, stored in store.parts():
            pieces = stored.split(b";")[:-1]
            assert len(pieces) == len(rows)
            kept.update({row: piece + b";" for row, piece in zip(rows, pieces, strict=True)})
        assert kept == self.rows
        missing = {row for rows in store.missing(self.ROWS) for row in rows}
        assert missing == set(range(self.ROWS)) - set(self.rows)
        assert store.damaged == []


Folder.TestCase.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestFolder = Folder.TestCase


def test_what_is_kept_survives_the_parts_going(tmp_path):
    stack, store = open_and_begin(tmp_path / "a", {"seed": 1})
    with stack:
        store.add(0, 5, b"x" * 1_000_000)
        store.conclude({"table": "abc"})
    assert (tmp_path / "a" / DATABASE).stat().st_size < 50_000  # no empty space is left
    stack, store = open_and_begin(tmp_path / "a", {"seed": 1})
    with stack:
        assert store.fact("table") == "abc" and store.fact("other") is None
        assert store.missing(5) == [range(5)]
    assert stored_identity(tmp_path / "a", "study") == {"seed": 1}


def test_somebody_elses_database_is_left_alone(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as base, base:
        base.execute("CREATE TABLE mine (x)")
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(InvalidFile, match=r"expected a database of allocopt's, got another one; nothing was changed"):
        open_and_begin(tmp_path, {"seed": 1})
    assert (tmp_path / DATABASE).read_bytes() == before
    (tmp_path / DATABASE).write_text("thesis, " * 1000)
    with pytest.raises(InvalidFile, match="the file is damaged or something else; nothing was changed"):
        open_and_begin(tmp_path, {"seed": 1})
    assert (tmp_path / DATABASE).read_text() == "thesis, " * 1000


def test_a_study_is_no_simulation(tmp_path):
    open_and_begin(tmp_path / "a", {"seed": 1})[0].close()
    with (
        pytest.raises(InvalidFile, match="expected a simulation, but it holds a study"),
        RunStore.open(tmp_path / "a", "simulation"),
    ):
        pass


def test_a_folder_that_is_removed_meanwhile_is_not_written_to(tmp_path):
    stack, store = open_and_begin(tmp_path / "a", {"seed": 1})
    with stack:
        shutil.move(tmp_path / "a", tmp_path / "b")
        with pytest.raises(InvalidFile, match="was removed or replaced while the study was running"):
            store.add(0, 1, b"x")


def test_reading_the_files_does_not_end_the_lock(tmp_path):
    """It would end that of the database, as POSIX has it."""
    stack, store = open_and_begin(tmp_path / "a", {"seed": 1})
    with stack:
        for file in (tmp_path / "a").iterdir():
            file.read_bytes()
        script = (
            "from pathlib import Path\nfrom allocopt.base.long_runs.store import RunStore\n"
            f"RunStore.open(Path({str(tmp_path / 'a')!r}), 'study').__enter__()"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (
            done.returncode == 1 and f"another process is working in this folder: process {os.getpid()} " in done.stderr
        )
        store.add(0, 1, b"x")
