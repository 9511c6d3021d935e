"""The names that users see: none is lost, each loads by itself, and every error is one of allocopt's own."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import allocopt as ao
from allocopt.base import errors

CONTRACT = [
    "regret_constant",
    "optimal_pulls",
    "solve",
    "solve_many",
    "Allocator",
    "BatchSolution",
    "barycentric_spanner",
    "Spanner",
    "oracle_allocation",
    "OracleAllocation",
    "OracleSpanner",
    "Schedule",
    "simulate",
    "SimulationResult",
    "load_simulation",
    "audit",
    "Audit",
    "hardness",
    "Hardness",
    "study",
    "StudySpec",
    "StudyResult",
    "graphs",
    "instances",
    "plots",
    "policies",
    "programs",
    "arms",
    "load_solution",
    "LinearBandit",
    "AllocationProgram",
    "Solution",
    "Status",
    "Progress",
    "Enclosure",
    "AllocoptError",
    "Infeasible",
    "Interrupted",
    "InvalidFile",
    "InvalidInstance",
    "InvalidOption",
    "InvalidProgram",
    "InvalidProof",
    "LicenseMissing",
    "MethodUnavailable",
    "NotProven",
    "SolverFailed",
]


@pytest.mark.parametrize("name", CONTRACT)
def test_every_name_of_the_contract_is_there(name):
    assert name in ao.__all__
    assert getattr(ao, name) is not None


def test_every_public_name_loads_and_is_listed():
    assert sorted(set(ao.__all__)) == sorted(ao.__all__)
    for name in ao.__all__:
        assert getattr(ao, name) is not None
    assert set(ao.__all__) <= set(dir(ao))
    with pytest.raises(AttributeError, match="module 'allocopt' has no attribute 'nothing'"):
        ao.nothing  # noqa: B018


def test_a_name_is_the_same_whatever_was_loaded_before():
    """A function that has its module's name is not hidden when the module is loaded first, nor a module by a function."""
    script = """
import importlib, sys
import allocopt
names = allocopt.__all__ if sys.argv[1] == "forwards" else reversed(allocopt.__all__)
if sys.argv[1] == "modules first":
    for module in set(allocopt._TABLE.values()):
        importlib.import_module(module)
print(sorted(f"{name} {getattr(allocopt, name)!r}".split(" at 0x")[0] for name in names))
"""
    found = {
        subprocess.run([sys.executable, "-c", script, order], capture_output=True, text=True, check=True).stdout
        for order in ("forwards", "backwards", "modules first")
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_public_and_caught_as_an_error_of_allocopt(name):
    error = getattr(errors, name)
    assert getattr(ao, name) is error
    assert issubclass(error, KeyboardInterrupt if name == "Interrupted" else ao.AllocoptError)


def test_what_is_wrong_with_a_value_is_a_value_error_too():
    for error in (ao.InvalidInstance, ao.InvalidProgram, ao.InvalidOption, ao.InvalidFile, ao.Infeasible):
        assert issubclass(error, ValueError)
    assert issubclass(ao.NotProven, ao.InvalidProof) and issubclass(ao.InvalidProof, ao.InvalidFile)
    assert ao.Interrupted(None).solution is None


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert ao.__version__ == project["project"]["version"]
