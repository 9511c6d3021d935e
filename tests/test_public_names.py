"""The names that users see: exactly these, each found when it is asked for, by programs and by type checkers alike."""

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest

import allocopt as ao

CONTRACT = [
    "AllocationProgram",
    "Allocator",
    "AllocoptError",
    "Audit",
    "BatchSolution",
    "Comparison",
    "CompilingWarning",
    "ContextualBandit",
    "Enclosure",
    "FiniteTimeBound",
    "Hardness",
    "Infeasible",
    "Interrupted",
    "InvalidFile",
    "InvalidInstance",
    "InvalidOption",
    "InvalidProgram",
    "InvalidProof",
    "LicenseMissing",
    "LinearBandit",
    "MethodUnavailable",
    "NotProven",
    "OracleAllocation",
    "OracleSpanner",
    "Progress",
    "Schedule",
    "SlowWarning",
    "SimulationResult",
    "Solution",
    "SolverFailed",
    "Spanner",
    "Status",
    "StudyResult",
    "StudySpec",
    "__version__",
    "arms",
    "constants",
    "audit",
    "barycentric_spanner",
    "bibtex",
    "compare",
    "finite_time_bound",
    "graphs",
    "hardness",
    "instances",
    "load_bound",
    "load_simulation",
    "load_solution",
    "optimal_pulls",
    "oracle_allocation",
    "plots",
    "policies",
    "precompile",
    "programs",
    "regret_constant",
    "settings",
    "simulate",
    "solve",
    "solve_many",
    "study",
]
"""Names may be added, with the documentation that they need; none may go or be renamed."""

FUNCTIONS = sorted(name for name in ao.__all__ if inspect.isfunction(getattr(ao, name)))


def test_the_public_names_are_those_of_the_contract():
    assert sorted(ao.__all__) == sorted(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_every_public_name_is_listed_and_found(name):
    assert name in dir(ao)
    value = getattr(ao, name)
    if isinstance(value, types.ModuleType):
        assert value.__name__.rpartition(".")[2] == name
    elif name != "__version__":
        assert value.__name__ == name and value.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'allocopt' has no attribute 'regret_constants'"):
        ao.regret_constants  # noqa: B018


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_public_function_hides_a_module(name):
    assert importlib.util.find_spec(f"allocopt.{name}") is None


def test_type_checkers_find_each_name_where_it_is_found_at_run_time():
    tree = ast.parse(Path(ao.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    declared = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            assert alias.asname == alias.name  # or strict type checkers take it for a private one
            declared[alias.name] = getattr(importlib.import_module(line.module), alias.name)
    assert sorted(declared) == sorted(set(ao.__all__) - {"__version__"})
    assert all(getattr(ao, name) is value for name, value in declared.items())


def test_importing_the_package_loads_neither_numpy_nor_anything_heavier():
    heavy = [
        "numpy",
        "scipy",
        "numba",
        "matplotlib",
        "cvxpy",
        "networkx",
        "pyarrow",
        "pandas",
        "dask",
        "flint",
        "cloudpickle",
    ]
    code = f"import sys, allocopt; print([name for name in {[*heavy, 'typer', 'rich']} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_without_anything_heavy():
    heavy = ["numba", "matplotlib", "cvxpy", "networkx", "pyarrow", "pandas", "dask", "scipy.optimize", "cloudpickle"]
    code = f"import sys, allocopt.cli.shell.commands; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_is_the_same_whatever_was_loaded_before():
    """A function that has its module's name is not hidden when the module is loaded first, nor a module by a function."""
    script = """
import importlib, sys
import allocopt
names = allocopt.__all__ if sys.argv[1] == "forwards" else reversed(allocopt.__all__)
if sys.argv[1] == "modules first":
    for module in {*allocopt._MODULES.values(), *allocopt._NAMES}:
        importlib.import_module(f"allocopt.{module}")
print(sorted(f"{name} {getattr(allocopt, name)!r}".split(" at 0x")[0] for name in names))
"""
    found = {
        subprocess.run([sys.executable, "-c", script, order], capture_output=True, text=True, check=True).stdout
        for order in ("forwards", "backwards", "modules first")
    }
    assert len(found) == 1
