"""allocopt: compute, prove and use optimal allocations in linear bandits.

>>> import allocopt as ao
>>> s = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
>>> round(s.value, 6), s.status.name
(8.0, 'CERTIFIED')
"""

from typing import TYPE_CHECKING, Any

from allocopt import arms, policies, programs
from allocopt.allocator import Allocator
from allocopt.audit import Audit, audit
from allocopt.bandit import LinearBandit
from allocopt.batch import BatchSolution, solve_many
from allocopt.certify.proof import load_solution
from allocopt.errors import (
    AllocoptError,
    Infeasible,
    Interrupted,
    InvalidFile,
    InvalidInstance,
    InvalidOption,
    InvalidProgram,
    InvalidProof,
    LicenseMissing,
    MethodUnavailable,
    NotProven,
    SolverFailed,
)
from allocopt.hardness import Hardness, hardness
from allocopt.oracle_allocation import OracleAllocation, oracle_allocation
from allocopt.oracle_spanner import OracleSpanner
from allocopt.program import AllocationProgram
from allocopt.progress import Progress
from allocopt.schedule import Schedule
from allocopt.simulate import SimulationResult, load_simulation, simulate
from allocopt.solution import Solution, Status
from allocopt.solve import optimal_pulls, regret_constant, solve
from allocopt.spanner import Spanner, barycentric_spanner
from allocopt.study import StudyResult, StudySpec, study

if TYPE_CHECKING:
    from allocopt import graphs, instances, plots
    from allocopt.certify.enclosure import Enclosure

__version__ = "0.1.0"

__all__ = [
    "AllocationProgram",
    "Allocator",
    "AllocoptError",
    "Audit",
    "BatchSolution",
    "Enclosure",
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
    "SimulationResult",
    "Solution",
    "SolverFailed",
    "Spanner",
    "Status",
    "StudyResult",
    "StudySpec",
    "__version__",
    "arms",
    "audit",
    "barycentric_spanner",
    "graphs",
    "hardness",
    "instances",
    "load_simulation",
    "load_solution",
    "optimal_pulls",
    "oracle_allocation",
    "plots",
    "policies",
    "programs",
    "regret_constant",
    "simulate",
    "solve",
    "solve_many",
    "study",
]


def __getattr__(name: str) -> Any:
    """What takes time to load is loaded when it is first asked for."""
    import importlib

    if name in ("graphs", "instances", "plots"):
        return importlib.import_module(f"allocopt.{name}")
    if name == "Enclosure":
        return importlib.import_module("allocopt.certify.enclosure").Enclosure
    raise AttributeError(f"module 'allocopt' has no attribute {name!r}")
