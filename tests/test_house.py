"""The house stays in order: small folders, files and functions, plain construction, imports that can be seen.

The direction of the rooms is a contract of import-linter (pyproject.toml), which ``make lint`` checks.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_ENTRIES = 13  # in a folder
MOST_LINES = {"allocopt": 400, "solvers": 400, "tests": 500}  # in a file
MOST_LINES_OF_A_FUNCTION = 60  # where algorithms and certificates are, docstring included

HEAVY = (
    "numba", "matplotlib", "cvxpy", "dask", "distributed", "networkx", "flint", "pyarrow", "pandas",
    "scipy.optimize", "scipy.stats", "scipy.sparse",  # a fifth of a second and 25 ms, for what is rarely asked
    "cloudpickle",
)  # fmt: skip
"""Packages that are loaded when they are needed: the only ones that may be imported inside a function."""

ALLOWED_INSIDE = {
    # the two methods of a solution that reach up into the room of the certificates
    ("allocopt/model/solution.py", "allocopt.certify"),
    # what a program asks for, in the room of the named programs, which are made of what a solution is made of
    ("allocopt/model/solution.py", "allocopt.model.programs.answer"),
    # these load numba
    ("allocopt/cli/simulate.py", "allocopt.play.simulation.conditions"),
    ("allocopt/cli/simulate.py", "allocopt.play.simulation.simulate"),
    ("allocopt/cli/simulate.py", "allocopt.policies.parsing"),
    ("allocopt/solving/roads/machine_code.py", "allocopt.solving.kernel"),
    ("allocopt/policies/schedule/schedule.py", "allocopt.policies.schedule.following"),
    # python-flint, which most solves do without
    ("allocopt/certify/verdict.py", "allocopt.certify.exact_arithmetic.balls"),
    ("allocopt/certify/verdict.py", "allocopt.certify.exact_arithmetic.sightings"),
    ("allocopt/solving/second_try.py", "allocopt.certify.exact_arithmetic.well_conditioned"),
}


def files(*folders):
    """Python files to hold to a rule, without those that are reached through the link allocopt/solvers a second time."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "allocopt/solvers/" not in path.as_posix())


def folders():
    found = [ROOT / "allocopt", ROOT / "solvers"]
    for room in list(found):
        found += [p for p in room.rglob("*") if p.is_dir() and not p.is_symlink() and p.name != "__pycache__"]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def test_every_folder_with_modules_is_a_package_that_is_installed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    inside = {f for f in folders() if (ROOT / f / "__init__.py").exists()}
    assert set(listed) == {("allocopt/" * (not f.startswith("allocopt")) + f).replace("/", ".") for f in inside}


def tree(name):
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", folders())
def test_a_folder_can_be_taken_in_at_a_glance(folder):
    entries = sorted(p.name for p in (ROOT / folder).iterdir() if p.name != "__pycache__")
    assert len(entries) <= MOST_ENTRIES, entries


@pytest.mark.parametrize("name", files("allocopt", "solvers", "tests"))
def test_a_file_is_short(name):
    lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES[name.partition("/")[0]]


@pytest.mark.parametrize("name", files("solvers", "allocopt/certify"))
def test_a_function_is_short_where_algorithms_and_certificates_are(name):
    functions = [node for node in ast.walk(tree(name)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert {f: n for f, n in lengths.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def _is_dict_of_an_object(node):
    named = isinstance(node, ast.Attribute) and node.attr == "__dict__"
    return named or (isinstance(node, ast.Call) and ast.unparse(node.func) == "vars")


@pytest.mark.parametrize("name", files("allocopt", "solvers"))
def test_objects_are_made_by_their_class(name):
    """Neither object.__new__, which skips the checks of a class, nor writing into the dictionary of an instance."""
    found = []
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Attribute) and node.attr == "__new__":
            found.append(ast.unparse(node))
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("update", "setdefault")
            and _is_dict_of_an_object(node.value)
        ):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_dict_of_an_object(node.value):
            found.append(ast.unparse(node))
    assert found == []


@pytest.mark.parametrize("name", files("allocopt", "solvers"))
def test_nobody_asks_whether_something_is_streamed(name):
    """Small, compiled and streamed arms are behind one protocol."""
    asked = [
        ast.unparse(node)
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and "Streamed" in ast.unparse(node.args[1])
    ]
    assert asked == []


@pytest.mark.parametrize("name", files("allocopt", "solvers"))
def test_imports_are_at_the_top_but_for_heavy_packages(name):
    """An import inside a function hides what a module depends on."""
    hidden = set()
    for function in ast.walk(tree(name)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    hidden |= {alias.name for alias in node.names}
                if isinstance(node, ast.ImportFrom):
                    hidden |= {f"{node.module}.{alias.name}" for alias in node.names}
    allowed = [*HEAVY, *(module for file, module in ALLOWED_INSIDE if file == name)]
    assert sorted(m for m in hidden if not any(m == a or m.startswith(f"{a}.") for a in allowed)) == []
