"""allocopt: compute, prove and use optimal allocations in linear bandits.

>>> import allocopt as ao
>>> s = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
>>> round(s.value, 6), s.status.name
(8.0, 'CERTIFIED')
"""

import importlib
import sys

from allocopt.base.version import __version__

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without loading typing
if TYPE_CHECKING:  # for type checkers and editors; at run time the tables below load what is asked for
    from allocopt import policies as policies
    from allocopt.actions import graphs as graphs
    from allocopt.actions.oracle_allocation import OracleAllocation as OracleAllocation
    from allocopt.actions.oracle_allocation import oracle_allocation as oracle_allocation
    from allocopt.actions.oracle_spanner import OracleSpanner as OracleSpanner
    from allocopt.actions.spanner import Spanner as Spanner
    from allocopt.actions.spanner import barycentric_spanner as barycentric_spanner
    from allocopt.base.errors import AllocoptError as AllocoptError
    from allocopt.base.errors import CompilingWarning as CompilingWarning
    from allocopt.base.errors import Infeasible as Infeasible
    from allocopt.base.errors import Interrupted as Interrupted
    from allocopt.base.errors import InvalidFile as InvalidFile
    from allocopt.base.errors import InvalidInstance as InvalidInstance
    from allocopt.base.errors import InvalidOption as InvalidOption
    from allocopt.base.errors import InvalidProgram as InvalidProgram
    from allocopt.base.errors import InvalidProof as InvalidProof
    from allocopt.base.errors import LicenseMissing as LicenseMissing
    from allocopt.base.errors import MethodUnavailable as MethodUnavailable
    from allocopt.base.errors import NotProven as NotProven
    from allocopt.base.errors import SlowWarning as SlowWarning
    from allocopt.base.errors import SolverFailed as SolverFailed
    from allocopt.base.version import bibtex as bibtex
    from allocopt.certify.enclosure import Enclosure as Enclosure
    from allocopt.certify.proofs.reading import load_solution as load_solution
    from allocopt.insight import constants as constants
    from allocopt.insight import instances as instances
    from allocopt.insight import plots as plots
    from allocopt.insight.bounds.bound import FiniteTimeBound as FiniteTimeBound
    from allocopt.insight.bounds.bound import finite_time_bound as finite_time_bound
    from allocopt.insight.bounds.reading import load_bound as load_bound
    from allocopt.insight.hardness.hardness import Hardness as Hardness
    from allocopt.insight.hardness.hardness import hardness as hardness
    from allocopt.insight.study.study import StudyResult as StudyResult
    from allocopt.insight.study.study import StudySpec as StudySpec
    from allocopt.insight.study.study import study as study
    from allocopt.model import arms as arms
    from allocopt.model import programs as programs
    from allocopt.model.bandit import LinearBandit as LinearBandit
    from allocopt.model.contexts import ContextualBandit as ContextualBandit
    from allocopt.model.program import AllocationProgram as AllocationProgram
    from allocopt.model.progress import Progress as Progress
    from allocopt.model.solution import Solution as Solution
    from allocopt.model.solution import Status as Status
    from allocopt.play.audit import Audit as Audit
    from allocopt.play.audit import audit as audit
    from allocopt.play.simulation.compare import Comparison as Comparison
    from allocopt.play.simulation.compare import compare as compare
    from allocopt.play.simulation.result import SimulationResult as SimulationResult
    from allocopt.play.simulation.result import load_simulation as load_simulation
    from allocopt.play.simulation.simulate import simulate as simulate
    from allocopt.policies.schedule.schedule import Schedule as Schedule
    from allocopt.solvers import settings as settings
    from allocopt.solving.allocator import Allocator as Allocator
    from allocopt.solving.batch import BatchSolution as BatchSolution
    from allocopt.solving.batch import solve_many as solve_many
    from allocopt.solving.roads.machine_code import precompile as precompile
    from allocopt.solving.solve import optimal_pulls as optimal_pulls
    from allocopt.solving.solve import regret_constant as regret_constant
    from allocopt.solving.solve import solve as solve

_MODULES = {
    "arms": "model.arms",
    "constants": "insight.constants",
    "graphs": "actions.graphs",
    "instances": "insight.instances",
    "plots": "insight.plots",
    "policies": "policies",
    "programs": "model.programs",
    "settings": "solvers.settings",
}
"""The public modules by name."""

_NAMES = {
    "actions.oracle_allocation": ("OracleAllocation", "oracle_allocation"),
    "actions.oracle_spanner": ("OracleSpanner",),
    "actions.spanner": ("Spanner", "barycentric_spanner"),
    "base.version": ("bibtex",),
    "base.errors": (
        "AllocoptError", "CompilingWarning", "Infeasible", "Interrupted", "InvalidFile", "InvalidInstance", "InvalidOption",
        "InvalidProgram", "InvalidProof", "LicenseMissing", "MethodUnavailable", "NotProven", "SlowWarning", "SolverFailed",
    ),
    "certify.enclosure": ("Enclosure",),
    "model.progress": ("Progress",),
    "certify.proofs.reading": ("load_solution",),
    "insight.bounds.bound": ("FiniteTimeBound", "finite_time_bound"),
    "insight.bounds.reading": ("load_bound",),
    "insight.hardness.hardness": ("Hardness", "hardness"),
    "insight.study.study": ("StudyResult", "StudySpec", "study"),
    "model.bandit": ("LinearBandit",),
    "model.contexts": ("ContextualBandit",),
    "model.program": ("AllocationProgram",),
    "model.solution": ("Solution", "Status"),
    "play.audit": ("Audit", "audit"),
    "policies.schedule.schedule": ("Schedule",),
    "play.simulation.compare": ("Comparison", "compare"),
    "play.simulation.result": ("SimulationResult", "load_simulation"),
    "play.simulation.simulate": ("simulate",),
    "solving.allocator": ("Allocator",),
    "solving.batch": ("BatchSolution", "solve_many"),
    "solving.roads.machine_code": ("precompile",),
    "solving.solve": ("optimal_pulls", "regret_constant", "solve"),
}  # fmt: skip
"""The public classes and functions by the module that holds them."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *sorted([*_MODULES, *_HOME])]


if not TYPE_CHECKING:  # or type checkers would believe in every name

    def __getattr__(name):
        """Load a public name when it is first asked for: ``import allocopt`` itself loads not even NumPy."""
        if name in _MODULES:
            value = importlib.import_module(f"allocopt.{_MODULES[name]}")
        elif name in _HOME:
            value = getattr(importlib.import_module(f"allocopt.{_HOME[name]}"), name)
        else:
            raise AttributeError(f"module 'allocopt' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
