"""Writing proof files: everything that `Solution.verify` needs, as JSON that any language can read.

Floats are written with Python's shortest round-trip representation, so the doubles come back to the bit; infinities are
the strings "inf".
"""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path, whole_file
from allocopt.base.errors import Infeasible, InvalidOption, MethodUnavailable, SlowWarning, SolverFailed, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.validation import Array
from allocopt.certify import referee
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.enclosure import Enclosure, check_witness
from allocopt.certify.reduction import Quotient, reduce, within_bounds
from allocopt.certify.verdict import recertify
from allocopt.model.arms import DaskArms
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.program import OBSERVED, AllocationProgram
from allocopt.model.programs import g_optimal, horizon_at_level, optimism, regret, remaining_at_log
from allocopt.model.rows.constraints import LinearConstraints
from allocopt.model.rows.sightings import Sightings
from allocopt.model.solution import Solution

__all__ = ["FORMAT", "VERSIONS", "double_above", "double_below", "exact_enclosure", "proof_document", "save_solution"]

FORMAT = "allocopt-proof"
VERSIONS = (2, 3, 4)
"""4 where there are linear constraints, 3 where an arm shows something else than one row of its own, which readers of older versions
would not know; else 2."""
_BYTES_OF_A_RATIONAL = 1200  # with what is computed from it on the way
_SECONDS_OF_A_PRODUCT = 8e-6  # of the k d² that the referee makes in plain Python
_LONG = 60.0  # seconds that are announced
LARGEST_DOUBLE = Fraction(np.finfo(np.float64).max.item())


def save_solution(solution: Solution, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a proof file; an old one is kept unless ``overwrite``, and replaced only once the new one is complete."""
    target = file_path(path)
    text = json.dumps(proof_document(solution), allow_nan=False, separators=(",", ":"))
    with whole_file(target, overwrite=overwrite, what="the proof file") as out:
        out.write(text.encode("utf-8") + b"\n")


def proof_document(solution: Solution, witness: Quotient | None = None) -> dict[str, Any]:
    """The content of a proof file; ``witness`` is the quotient that the solution's assumptions are about, if not that of `reduce`."""
    solution = _gathered(solution)
    program = solution.program
    if witness is None and program._blocks is not None and solution.assumptions:
        # arms that depend on each other up to rounding were judged by a sample: the file judges them as it lists them
        given = solution.allocation, solution.multipliers
        solution = recertify(program, *given, solution.method, solution.tol, dict(solution.stats))
    quotient = _witness(solution) if witness is None else witness
    assumptions, status = solution.assumptions, solution.status
    observed = program.owners is not None or program.kind in OBSERVED
    document = {
        "format": FORMAT,
        "version": VERSIONS[-1] if program.constraints is not None else VERSIONS[observed],
        "program": _describe(solution.program),
        "quotient": {
            "pivot_arms": list(quotient.pivot_arms),
            "pivot_columns": list(quotient.pivot_columns),
            "basis_arms": list(quotient.basis_arms),
            "coordinates": list(quotient.coordinates),
        },
        "assumptions": [a.as_json() for a in assumptions],
        "method": solution.method,
        "tol": solution.tol,
        "claim": {"lower": _number(solution.lower), "upper": _number(solution.upper), "status": status.name},
        "allocation": _numbers(solution.allocation),
        "multipliers": _numbers(_by_target(solution)),
    }
    if solution.constraint_multipliers is not None:
        document["constraint_multipliers"] = _numbers(solution.constraint_multipliers)
    return document


def _by_target(solution: Solution) -> Array:
    """λ as proof files hold them: one per target where the program is given by its arrays, which do not say whose they are."""
    program = solution.program
    if program.kind != "general" or program.target_arms is None:
        return solution.multipliers
    multipliers: Array = solution.multipliers[program.target_arms]
    return multipliers


def _gathered(solution: Solution) -> Solution:
    """The solution with its arms in this process, where they are on a cluster."""
    blocks, origin = solution.program._blocks, solution.program.origin
    if blocks is None or not isinstance(blocks.store, DaskArms):
        return solution
    arms = blocks.store.gathered("a proof file, or an exact proof,")
    if origin.bandit is not None:
        b = origin.bandit
        here = LinearBandit(arms, b.theta, b.noise_variance, b.tie_tolerance, b.optimal_arms, b.labels)
        program = _same_program(here, solution.program)
    elif origin.gaps is not None:
        assert origin.number is not None
        program = horizon_at_level(arms, origin.gaps, origin.number, origin.horizon, origin.constant)
    else:
        program = g_optimal(arms)
    return dataclasses.replace(solution, program=program)


def _same_program(bandit: LinearBandit, program: AllocationProgram) -> AllocationProgram:
    """The program of another that was made from a bandit, for the same bandit elsewhere."""
    origin = program.origin
    if program.kind == "regret":
        return regret(bandit)
    if program.kind == "optimism":
        assert origin.number is not None
        return optimism(bandit, origin.number)
    if program.kind == "remaining":
        assert origin.number is not None and origin.pulls is not None
        return remaining_at_log(bandit, origin.pulls, origin.number, origin.horizon)
    raise MethodUnavailable(f"program: a proof file of kind {program.kind!r} needs arms in memory, got a Dask array")


def _witness(solution: Solution) -> Quotient:
    """The quotient for the arms in use: where some may be left out because of bounds, these may span less than all do."""
    program = solution.program
    if program._sightings is not None:
        return _witness_by_sight(program._sightings)
    if program._blocks is not None and program.kind != "general" and not solution.assumptions:
        return StreamedProblem(program).witness  # the same, without arrays of all arms
    unused = solution.allocation == 0
    limited = program.kind == "general" or program.constraints is not None
    if limited and unused.any() and program.bounded:
        upper = np.where(unused, 0.0, program.upper)
        try:
            return reduce(within_bounds(program, np.minimum(program.lower, upper), upper)).quotient
        except (Infeasible, SolverFailed):
            pass  # then nothing is proven by these arms
    return reduce(program).quotient


def _witness_by_sight(seen: Sightings) -> Quotient:
    """What the best arm shows is known, and the first row that shows each other arm spans the rest."""
    free = np.flatnonzero((seen.owners == seen.best) & (seen.columns < seen.n_arms))
    left = np.flatnonzero(~seen.known)
    columns, first = np.unique(seen.columns, return_index=True)
    basis = first[np.searchsorted(columns, left)]
    return Quotient(*(tuple(x.tolist()) for x in (free, seen.columns[free], basis, left)))


def exact_enclosure(solution: Solution, precision: int | None = None) -> Enclosure:
    """The interval that the referee proves for a solution; only the two ends are rounded, outwards, to doubles."""
    if precision is not None:
        raise InvalidOption("precision: expected none with exact=True, which works in rationals")
    if solution.program._sightings is not None:  # the referee would list every row in full
        raise InvalidOption(
            "exact: expected False for side observations of so many arms; verify() proves them in balls"
        )
    _check_exact(solution.program)
    check_witness(solution)
    verdict = referee.judge(proof_document(solution))
    return Enclosure(
        double_below(verdict.lower), double_above(verdict.upper), solution.assumptions, 0, tuple(verdict.problems)
    )


def _check_exact(program: AllocationProgram) -> None:
    """Refuse what would not fit into memory as rationals, and say how long the referee takes where that is long."""
    numbers = program.n_rows * program.dim
    check_memory(_BYTES_OF_A_RATIONAL * numbers, f"exact: {numbers:,} numbers as rationals", InvalidOption)
    seconds = _SECONDS_OF_A_PRODUCT * numbers * program.dim
    if seconds > _LONG:
        text = f"a proof in rationals takes about {duration_text(seconds)}; verify() proves an interval in seconds"
        warn_caller(text, SlowWarning)


def double_below(x: Fraction) -> float:
    """The largest double that is not above x."""
    if x > LARGEST_DOUBLE:
        return float(LARGEST_DOUBLE)
    y = float(x)
    return y if Fraction(y) <= x else math.nextafter(y, -math.inf)


def double_above(x: Fraction | None) -> float:
    """The smallest double that is not below x."""
    if x is None or x > LARGEST_DOUBLE:
        return math.inf
    y = float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def _number(x: float) -> float | str:
    return float(x) if np.isfinite(x) else "inf"


def _numbers(values: Array) -> list[float | str]:
    return [_number(x) for x in values.tolist()]


def _describe(program: AllocationProgram) -> dict[str, Any]:
    origin = program.origin
    described: dict[str, Any] = {"kind": program.kind}
    if origin.sightings is not None:
        seen = origin.sightings
        described |= {"means": seen.means.tolist(), "shown": seen.shown, "noise_variance": seen.variances.tolist()}
        if origin.labels is not None:
            described["labels"] = list(origin.labels)
    elif origin.bandit is not None:
        bandit = origin.bandit
        described |= {
            "arms": bandit.arms.tolist(),
            "theta": bandit.theta.tolist(),
            "noise_variance": np.asarray(bandit.noise_variance).tolist(),
            "tie_tolerance": bandit.tie_tolerance,
            "optimal_arms": bandit.optimal_arms.tolist(),
        }
        if isinstance(bandit, ContextualBandit):
            described |= {"contexts": list(bandit.sizes), "weights": bandit.weights.tolist()}
        if bandit.labels is not None:
            described["labels"] = list(bandit.labels)
    elif program.kind != "general":
        described["arms"] = program.features.tolist()
    if origin.items is not None:
        described |= {
            "items": origin.items.arms.tolist(),
            "theta": origin.items.theta.tolist(),
            "noise_variance": _variances(program, origin.items.noise_variance),
        }
        if origin.labels is not None:
            described["labels"] = list(origin.labels)
    if origin.count is not None:
        described["m"] = origin.count
    if origin.answer is not None:
        described["answer"] = origin.answer
    if origin.gaps is not None:
        described["gaps"] = origin.gaps.tolist()
    if origin.pulls is not None:
        described["pulls"] = origin.pulls.astype(np.float64).tolist()
    if origin.number is not None:
        described[_NUMBER_NAMES[program.kind]] = origin.number
    if origin.horizon is not None:
        described["n"] = origin.horizon
    if origin.constant is not None:
        described["constant"] = origin.constant
    if program.kind == "general":
        described["features"] = program.features.tolist()
        if program.owners is not None:  # a matrix for every arm
            described["features"] = [program.shown(i).tolist() for i in range(program.n_arms)]
        described["targets"] = program.targets.tolist()
        for name in ("costs", "radii", "lower", "upper"):
            described[name] = _numbers(getattr(program, name))
        if program.noise_variance is not None:
            described["noise_variance"] = program.noise_variance.tolist()
    if program.constraints is not None:
        described["constraints"] = _constraints(program.constraints)
    return described


def _constraints(given: LinearConstraints) -> list[dict[str, Any]]:
    """Every row of Bα <= b by its entries that are not 0."""
    starts = np.searchsorted(given.places, np.arange(given.n_rows + 1)).tolist()
    return [
        {"arms": given.arms[a:b].tolist(), "coefficients": given.values[a:b].tolist(), "limit": limit}
        for a, b, limit in zip(starts[:-1], starts[1:], given.limits.tolist(), strict=True)
    ]


def _variances(program: AllocationProgram, common: float | Array) -> Any:
    """σ², as one number or one per arm."""
    return np.asarray(common if program.noise_variance is None else program.noise_variance).tolist()


_NUMBER_NAMES = {
    "horizon": "f_n", "remaining": "log_n", "optimism": "width", "threshold": "tau", "best_arm": "epsilon",
}  # fmt: skip
