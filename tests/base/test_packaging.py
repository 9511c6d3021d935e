"""What is released: sdist and wheel without links, all tests and pages in the sdist, one version everywhere."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import allocopt as ao

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An sdist, and the wheel that is built from it; of a copy, because builds work in the folder of the project, one at a time."""
    folder, copy = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("source") / "allocopt"
    ignored = shutil.ignore_patterns(
        ".venv", ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_the_wheel_contains_every_solver(built):
    names = set(zipfile.ZipFile(built[1]).namelist())
    expected = {f"allocopt/solvers/{f.name}" for f in (ROOT / "solvers").glob("*.py")}
    assert {"allocopt/solvers/active_set.py", "allocopt/py.typed"} <= names
    assert expected <= names
    proofs = {f.relative_to(ROOT).as_posix() for f in (ROOT / "allocopt" / "insight" / "constants").rglob("*.json")}
    assert proofs and proofs <= names


@pytest.mark.slow
def test_the_wheel_contains_every_module_of_the_package(built):
    """A new folder must be listed in pyproject.toml."""
    names = set(zipfile.ZipFile(built[1]).namelist())
    modules = {f.relative_to(ROOT).as_posix() for f in (ROOT / "allocopt").rglob("*.py")}
    modules |= {"allocopt/" + f.relative_to(ROOT).as_posix() for f in (ROOT / "solvers").rglob("*.py")}
    assert modules - names == set()


@pytest.mark.slow
def test_neither_the_sdist_nor_the_wheel_has_a_link(built):
    with tarfile.open(built[0]) as sdist:
        assert [m.name for m in sdist.getmembers() if m.issym() or m.islnk()] == []
    assert [
        i.filename for i in zipfile.ZipFile(built[1]).infolist() if (i.external_attr >> 16) & 0o170000 == 0o120000
    ] == []


@pytest.mark.slow
def test_the_sdist_has_all_tests_and_pages_and_the_wheel_passes_them(built, tmp_path):
    with tarfile.open(built[0]) as sdist:
        sdist.extractall(tmp_path / "sdist", filter="data")
    zipfile.ZipFile(built[1]).extractall(tmp_path / "wheel")
    (root,) = (tmp_path / "sdist").iterdir()
    for folder, pattern in (("tests", "*.py"), ("docs", "*.md"), ("docs", "*.py"), ("benchmarks", "*.py")):
        here = {f.relative_to(ROOT) for f in (ROOT / folder).rglob(pattern) if "generated" not in f.parts}
        assert {f for f in here if not (root / f).exists()} == set()
    tests = ["tests/test_public_names.py", "tests/cli/test_cli.py", "tests/play/simulation/test_limits.py", "solvers"]
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "wheel"), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_the_version_is_that_of_the_project():
    assert ao.__version__ == PROJECT["version"]


def test_citation_and_changelog_speak_of_the_same_version():
    cited = dict(re.findall(r"^(version|date-released): (\S+)$", text("CITATION.cff"), re.MULTILINE))
    heading = re.search(r"^## (\S+) \((\S+)\)$", text("CHANGELOG.md"), re.MULTILINE)
    assert cited["version"] == heading[1] == PROJECT["version"]
    assert heading[2] == cited.get("date-released", "unreleased")


def test_the_classifiers_name_the_versions_of_python_that_are_required():
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    versions = [tuple(map(int, v.split("."))) for v in named]
    assert versions[0] == least and [minor for _, minor in versions] == list(range(least[1], least[1] + len(versions)))
    assert all(f"{v}" in text("docs/project/support.md") for v in named)
