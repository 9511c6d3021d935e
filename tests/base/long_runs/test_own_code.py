"""Results of two states of allocopt's own code never come into one table."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import allocopt
from allocopt.base.errors import MethodUnavailable
from allocopt.base.long_runs.children import Trouble
from allocopt.base.long_runs.identity import check_same, versions
from allocopt.base.long_runs.own_code import check_unchanged, code_digest

YESTERDAY = time.time() - 86400.0

STUDY = """
import os, sys
from pathlib import Path
import allocopt as ao
import allocopt.insight.study.quantities as loaded
from allocopt.insight.instances import random_unit

def family(seed):
    source = Path(loaded.__file__)
    if seed == 3 and os.environ["HOW"] == "edit":
        source.write_text(source.read_text() + "# edited\\n")
    return random_unit(2, 4, seed)

if __name__ == "__main__":
    try:
        print(ao.study({"family": family, "repeats": 8, "quantities": ["c"]}, sys.argv[1], workers=1).counts)
    except ao.AllocoptError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def package(tmp_path):
    """A package of two rooms, written yesterday."""
    for name in ("base/a.py", "cli/b.py"):
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n")
        os.utime(path, (YESTERDAY, YESTERDAY))
    return tmp_path / "pack"


def test_the_digest_is_that_of_what_decides_results(package):
    found = [code_digest.__wrapped__(package)]
    for name in ("cli/b.py", "base/a.py"):
        (package / name).write_text("x = 2\n")
        os.utime(package / name, (YESTERDAY, YESTERDAY))
        found.append(code_digest.__wrapped__(package))
    assert found[0] == found[1] != found[2]
    assert code_digest.__wrapped__(package / "nothing") is None


def test_code_that_is_younger_than_the_process_is_refused(package):
    check_unchanged(package=package)
    check_unchanged(YESTERDAY, package)
    with pytest.raises(MethodUnavailable, match=r"its own code \(base/a.py\) was changed after process \d+ had begun"):
        check_unchanged(YESTERDAY - 1.0, package)
    (package / "base" / "a.py").write_text("x = 1\n")
    with pytest.raises(MethodUnavailable, match=r"base/a\.py"):
        code_digest.__wrapped__(package)


def test_a_file_from_the_future_says_nothing(package):
    """The clock of the machine that wrote it is ahead; or this one was set back."""
    os.utime(package / "base" / "a.py", (time.time() + 3600.0,) * 2)
    check_unchanged(YESTERDAY, package)


def test_a_worker_with_other_code_or_another_numpy_is_refused_with_what_differs():
    here = versions()
    check_same(here, dict(here))
    other = {**here, "allocopt": {**here["allocopt"], "code": "0"}}
    with pytest.raises(MethodUnavailable, match="the code of allocopt has changed since"):
        check_same(other, here)
    with pytest.raises(MethodUnavailable, match=r'numpy is "1\.0" there and'):
        check_same({**here, "numpy": "1.0"}, here)


def test_what_a_trouble_knows_survives_the_way_from_a_worker():
    found = pickle.loads(pickle.dumps(Trouble("gone", outside=True)))
    assert found.outside and not found.late and str(found) == "gone"


def test_a_study_whose_code_is_edited_under_it_stops_and_goes_on_only_with_the_code_it_was_begun_with(tmp_path):
    source = Path(allocopt.__file__).parent
    shutil.copytree(source, tmp_path / "allocopt", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "allocopt" / "insight" / "study" / "quantities.py"
    before = edited.read_text()
    script = tmp_path / "script.py"
    script.write_text(STUDY)

    def started(how):
        command = [sys.executable, str(script), str(tmp_path / "s")]
        place = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "HOW": how}
        return subprocess.run(command, env=place, capture_output=True, text=True, timeout=120).stdout

    assert "insight/study/quantities.py) was changed after process" in started("edit")
    assert "the code of with.allocopt has changed since; nothing was changed" in started("leave")
    edited.write_text(before)
    assert started("leave") == "{'CERTIFIED': 8}\n"
