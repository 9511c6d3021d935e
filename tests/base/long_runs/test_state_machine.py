"""Start, kill, resume, change something, resume, damage something, resume: a folder never holds a mixture of two experiments."""

import contextlib
import os
import signal
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from allocopt.base.errors import InvalidFile
from allocopt.base.long_runs.store import DATABASE, RunStore

TOTAL = 12
REFUSED, FINISHED, FAILED = 3, 0, 4


def content(seed, row):
    return f"{seed}:{row};".encode()


def rows_of(seed, rows):
    return b"".join(content(seed, row) for row in rows)


class Killed(RunStore):
    """A store whose process is killed in the middle of its n-th transaction, or right after it."""

    moment = -1

    @contextlib.contextmanager
    def _transaction(self):
        with super()._transaction():
            yield
            self.tick()
        self.tick()

    def tick(self):
        Killed.moment -= 1
        if Killed.moment == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def work(folder, seed, moment, most):
    """What a process does with the folder: go on with what is missing, a few rows at a time."""
    Killed.moment = moment
    try:
        with Killed.open(folder, "study") as store:
            store.begin({"seed": seed})
            for rows, stored in store.parts():
                assert stored == rows_of(seed, rows)
            for gap in store.missing(TOTAL):
                for first in range(gap.start, gap.stop, most):
                    rows = range(first, min(first + most, gap.stop))
                    store.add(first, len(rows), rows_of(seed, rows))
    except InvalidFile as error:
        return REFUSED if "holds another study: seed is" in str(error) else FAILED
    return FINISHED


class Folder(RuleBasedStateMachine):
    seeds = Bundle("seeds")

    def __init__(self):
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name) / "run"
        self.owner = None
        self.finished = False

    def teardown(self):
        self.place.cleanup()

    @initialize(target=seeds, seed=st.integers(0, 3))
    def first(self, seed):
        return seed

    @rule(seed=st.integers(0, 3), moment=st.integers(-1, 14), most=st.integers(1, 5))
    def start(self, seed, moment, most):
        process = os.fork()
        if process == 0:
            code = FAILED
            try:
                code = work(self.folder, seed, moment, most)
            finally:
                os._exit(code)
        status = os.waitpid(process, 0)[1]
        killed = os.WIFSIGNALED(status)
        begun = self.manifest()
        if self.owner is None:
            self.owner = begun
            assert begun in (None, seed)
        if self.owner is not None and seed != self.owner:
            assert not killed and os.WEXITSTATUS(status) == REFUSED
        elif not killed:
            assert os.WEXITSTATUS(status) == FINISHED
            self.finished = True

    @rule(cut=st.integers(0, 40))
    def damage_a_part(self, cut):
        with contextlib.closing(self.database()) as base, base:
            found = [] if self.manifest() is None else base.execute("SELECT first, content FROM parts").fetchall()
            if found:
                first, stored = found[cut % len(found)]
                base.execute("UPDATE parts SET content = ? WHERE first = ?", (stored[:-1] + b"?", first))
                self.finished = False

    def database(self):
        self.folder.mkdir(exist_ok=True)
        return sqlite3.connect(self.folder / DATABASE)

    def manifest(self):
        if not (self.folder / DATABASE).exists():
            return None
        with contextlib.closing(self.database()) as base:
            if base.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                return None
            return int(base.execute("SELECT identity FROM manifest").fetchone()[0].split(":")[1].strip(" }"))

    @invariant()
    def what_is_there_is_of_one_experiment_and_complete(self):
        assert self.manifest() == self.owner
        if self.owner is None:
            return
        with RunStore.open(self.folder, "study") as store:
            store.begin({"seed": self.owner})
            there = list(store.parts())
            assert all(stored == rows_of(self.owner, rows) for rows, stored in there)
            missing = {row for gap in store.missing(TOTAL) for row in gap}
            assert missing | {row for rows, _ in there for row in rows} == set(range(TOTAL))
            assert not (self.finished and missing)


Folder.TestCase.settings = settings(max_examples=25, stateful_step_count=8, deadline=None)
test_a_folder_is_never_a_mixture = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")(Folder.TestCase)
