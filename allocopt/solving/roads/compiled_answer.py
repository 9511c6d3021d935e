"""The compiled road of `solve`: a small program whose targets are its arms, solved and certified by the kernel.

What comes out is the Solution that the numpy road would have made, up to its last digits: the same theorem, the same margins, the
same assumptions. Parts of it that take longer than the solve itself are made when somebody asks for them.
"""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import numpy as np

from allocopt.base.lazy import Lazy, LazyParts
from allocopt.base.validation import Array
from allocopt.certify.reduction import comes_from_means
from allocopt.certify.verdict import recertify, widened
from allocopt.linear.floating import GAP_ERROR
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution, Status
from allocopt.solving.compiled_rows import quotient_rows

__all__ = ["MOST_ARMS", "compiled_answer", "does_not_fit", "solution_of", "targets_are_arms"]

MOST_ARMS = 100  # the compiled method takes all arms at once, O(k³) a step: more of them are for the ordinary methods


def does_not_fit(program: AllocationProgram) -> str | None:
    """Why a program is not for compiled code; None where it is."""
    if program._blocks is not None:
        return "arms that are not in memory"
    if program.n_arms > MOST_ARMS:
        return f"more than {MOST_ARMS} arms"
    if program.owners is not None:
        return "arms that show several things"
    if program.bounded:
        return "bounds on the allocation"
    return None


def targets_are_arms(program: AllocationProgram) -> bool:
    """Whether every target is a row of the features: the kernel's form "arms", which divides out those that cost nothing."""
    return program.target_arms is not None and program.origin.compared is None


def compiled_answer(program: AllocationProgram, tol: float, kernel: ModuleType) -> Solution | str:
    """The certified solution of a program that fits, or the reason why compiled code does not have it."""
    started = time.perf_counter()
    features = program.features
    costs = program.costs.copy()  # numba tells arrays that may be written to from those that may not
    k = len(costs)
    radii = np.zeros(k)  # the kernel finds the program invalid where it divides by one of these zeros
    radii[program.target_arms] = program.radii
    own, rows = np.empty(features.shape), np.empty(features.shape)
    kernel.units(features, own)
    rank = quotient_rows(kernel, own, costs, rows)
    if rank < 0:
        return str(kernel.REASONS[-rank])
    variances = np.ones(k) if program.noise_variance is None else program.noise_variance.copy()
    alpha, multipliers, info = np.zeros(k), np.zeros(k), np.empty(kernel.INFO)
    error = GAP_ERROR if comes_from_means(program) else 0.0
    code = kernel.solve_quotient(
        rows, rank, costs, error, variances, radii, 0.0, tol, False, alpha, multipliers, info, True
    )
    if code == kernel.INVALID:
        return "arms without a target"
    if code not in (kernel.CERTIFIED, kernel.CERTIFIED_BY_FORMULA):
        return str(kernel.REASONS[code])
    report = info.tolist()
    report[:2] = widened(report[0], report[1], report[2], tol)
    report.append(time.perf_counter() - started)
    return solution_of(program, tol, alpha, multipliers, report, code == kernel.CERTIFIED_BY_FORMULA)


def _recertified(program: Any, allocation: Array, multipliers: Array, method: str, tol: float) -> Solution:
    """The same pair, certified as those of proof files are."""
    return recertify(program.value if isinstance(program, Lazy) else program, allocation, multipliers, method, tol, {})


def solution_of(
    program: Any, tol: float, allocation: Array, multipliers: Array, report: list[float], formula: bool = False
) -> Solution:
    """A Solution from what the kernel returned with a code that says certified; ``program`` may be a Lazy one."""
    lower, upper, rounding, steps, warm, seconds = report
    method = "closed-form" if formula else "interior-point"
    stats: dict[str, Any] = {
        "iterations": int(steps), "road": "compiled", "compiled": True, "warm": warm > 0, "seconds": seconds,
        "rounding": rounding,
    }  # fmt: skip
    if formula:
        stats["formula"] = "independent directions"
    binding: Any = LazyParts(_recertified, program, allocation, multipliers, method, tol)
    coordinates: Any = binding  # one of its parts, too
    assumptions = () if isinstance(program, Lazy) else program.assumptions
    status = Status.CONDITIONAL if assumptions else Status.CERTIFIED
    return Solution(
        program, allocation, multipliers, lower, upper, status, method, tol, binding, coordinates, stats, assumptions
    )
