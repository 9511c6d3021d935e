"""The wheel holds the real top-level folder solvers/ as allocopt.solvers."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_contains_every_solver(tmp_path):
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"allocopt/solvers/{f.name}" for f in (ROOT / "solvers").glob("*.py")}
    assert {"allocopt/solvers/active_set.py", "allocopt/py.typed"} <= names
    assert expected <= names
