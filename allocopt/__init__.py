"""allocopt: compute, prove and use optimal allocations in linear bandits.

>>> import allocopt as ao
>>> s = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
>>> round(s.value, 6), s.status.name
(8.0, 'CERTIFIED')
"""

from allocopt import graphs, programs
from allocopt.allocator import Allocator
from allocopt.bandit import LinearBandit
from allocopt.batch import BatchSolution, solve_many
from allocopt.certificate import Enclosure
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
    SolverFailed,
)
from allocopt.oracle_allocation import OracleAllocation, oracle_allocation
from allocopt.oracle_spanner import OracleSpanner
from allocopt.program import AllocationProgram
from allocopt.progress import Progress
from allocopt.proof import load_solution
from allocopt.solution import Solution, Status
from allocopt.solve import optimal_pulls, regret_constant, solve
from allocopt.spanner import Spanner, barycentric_spanner

__version__ = "0.1.0"

__all__ = [
    "AllocationProgram",
    "Allocator",
    "AllocoptError",
    "BatchSolution",
    "Enclosure",
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
    "OracleAllocation",
    "OracleSpanner",
    "Progress",
    "Solution",
    "SolverFailed",
    "Spanner",
    "Status",
    "__version__",
    "barycentric_spanner",
    "graphs",
    "load_solution",
    "optimal_pulls",
    "oracle_allocation",
    "programs",
    "regret_constant",
    "solve",
    "solve_many",
]
