"""The wheel holds the real top-level folder solvers/ as allocopt.solvers."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import allocopt as ao

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
    proofs = {f.relative_to(ROOT).as_posix() for f in (ROOT / "allocopt" / "insight" / "constants").rglob("*.json")}
    assert proofs and proofs <= names


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert ao.__version__ == project["project"]["version"]
