"""The compiled road of programs whose targets are not their arms (best arm, top m, transductive, duelling, by arrays).

No arm is free there, so nothing is divided out: rows are brought into units, scaled by costs and radii as `certify.reduction` scales
them, and handed to the kernel, whose certificate is proof of their rank.
"""

from __future__ import annotations

import time
from types import ModuleType

import numpy as np

from allocopt.base.tolerances import LARGEST
from allocopt.base.validation import Array
from allocopt.certify.reduction import comes_from_means
from allocopt.certify.verdict import widened
from allocopt.linear.floating import GAP_ERROR
from allocopt.linear.span import column_units
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution
from allocopt.solving.roads.compiled_answer import solution_of

__all__ = ["answer_of_targets", "lacks"]

_MOST_ENTRIES = 100_000  # of the matrix of targets x arms: beyond it BLAS is as fast as compiled loops
_WIDER = 8.0  # than the compiled certificate's margins are those of the other one, whose sums over targets are bounded by a diagonal


def lacks(program: AllocationProgram) -> str | None:
    """Why compiled code does not take the targets of a program that fits otherwise; None where it does."""
    if not program.n_targets:
        return "no targets"
    if program.n_arms * program.n_targets > _MOST_ENTRIES:
        return f"more than {_MOST_ENTRIES} pairs of an arm and a target"
    if (program.costs == 0).any():
        return "arms that cost nothing, and targets that are not the arms"
    return None


def answer_of_targets(program: AllocationProgram, tol: float, kernel: ModuleType) -> Solution | str:
    """The certified solution, or the reason why compiled code does not have it."""
    started = time.perf_counter()
    units = column_units(program.features, program.targets)
    features, targets = program.features * units + 0.0, program.targets * units + 0.0  # −0.0 becomes 0.0
    columns = features.any(axis=0)
    which, asked = np.flatnonzero(features.any(axis=1)), np.flatnonzero(targets.any(axis=1))
    if len(which) < np.count_nonzero(columns) or targets[:, ~columns].any() or not len(asked):
        return str(kernel.REASONS[kernel.NEEDS_ORDINARY_PATH])
    if max(map(_most_nonzero, (features, targets))) <= 1:
        return "a formula"
    weights = program.costs if program.noise_variance is None else program.costs * program.noise_variance
    features = features[np.ix_(which, columns)] / np.sqrt(weights[which])[:, None]
    targets = targets[np.ix_(asked, columns)] / np.sqrt(program.radii[asked])[:, None]
    # what each target costs at least, by the arm that shows most: about the size of the value
    unit = float((targets**2).sum() / (features**2).sum(axis=1).max())
    if not 1.0 / LARGEST < unit < LARGEST:
        return str(kernel.REASONS[kernel.NEEDS_ORDINARY_PATH])
    arms = program.target_arms
    places = asked if arms is None else arms[asked]
    alpha, multipliers, info = np.empty(program.n_arms), np.empty(program.n_multipliers), np.empty(kernel.INFO)
    error = GAP_ERROR if comes_from_means(program) else 0.0
    costs = program.costs.copy()  # numba tells arrays that may be written to from those that may not
    given = (
        np.ascontiguousarray(features.T) * np.sqrt(unit),
        np.ascontiguousarray(targets.T),
        unit,
        which,
        places.copy(),
    )
    code = kernel.solve_targets(*given, costs, error, tol, alpha, multipliers, info)
    if code != kernel.CERTIFIED:
        return str(kernel.REASONS[code])
    report = info.tolist()
    report[:2] = widened(report[0], report[1], _WIDER * report[2], tol)
    report.append(time.perf_counter() - started)
    return solution_of(program, tol, alpha, multipliers, report)


def _most_nonzero(rows: Array) -> int:
    """The most entries that differ from 0 in a row: where it is 1, arms are orthogonal or parallel."""
    return int(np.count_nonzero(rows, axis=1).max())
