"""The wheel holds the real top-level folder solvers/ as allocopt.solvers."""

import importlib
import re
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


def test_every_import_in_the_documents_works():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = [
        found
        for page in pages
        for found in re.findall(r"^ *from (allocopt[\w.]*) import ([\w, ]+)$", page.read_text("utf-8"), re.M)
    ]
    assert len(lines) >= 5
    for module, names in lines:
        loaded = importlib.import_module(module)
        for name in names.split(","):
            assert getattr(loaded, name.strip(), None) is not None, (module, name)


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert ao.__version__ == project["project"]["version"]
