"""The proof files that ship with the rows: written once by a solver, read and proven again without one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidFile, InvalidOption, NotProven
from allocopt.base.spelling import spelled
from allocopt.base.validation import did_you_mean
from allocopt.certify.proofs.reading import load_solution
from allocopt.certify.referee import judge, read
from allocopt.insight.constants.combinatorial import COMBINATORIAL
from allocopt.insight.constants.constant import Constant, Finding, finding
from allocopt.insight.constants.designs import DESIGNS
from allocopt.insight.constants.identification import IDENTIFICATION
from allocopt.insight.constants.regret import REGRET
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution
from allocopt.solving.solve import solve

__all__ = ["CONSTANTS", "Proven", "check", "named", "proof_file", "proven", "write_proofs"]

TOL = 1e-11
"""Relative width of the intervals; ten times that where it is not to be had."""

CONSTANTS: tuple[Constant, ...] = (*REGRET, *COMBINATORIAL, *IDENTIFICATION, *DESIGNS)
"""Every row of the page."""


@dataclass(frozen=True)
class Proven:
    """A row with what its proof file proves.

    Attributes
    ----------
    constant : Constant
        The row.
    solution : Solution
        What the proof file holds, certified anew when it was read.
    finding : Finding
        What that says of the printed number.
    """

    constant: Constant
    solution: Solution
    finding: Finding


@spelled
def named(name: str) -> Constant:
    """The row of a name.

    Examples
    --------
    >>> named("end-of-optimism-section").printed.digits
    '128'
    """
    for constant in CONSTANTS:
        if constant.name == name:
            return constant
    hint = did_you_mean(name, [c.name for c in CONSTANTS])
    raise InvalidOption(
        f"name: expected one of the {len(CONSTANTS)} names that `allocopt constants` lists, got {name!r}{hint}"
    )


@spelled
def proof_file(constant: Constant) -> Any:
    """Where a row's proof file is, as a resource of the package."""
    if not isinstance(constant, Constant):
        raise InvalidOption(
            f"constant: expected one of constants.CONSTANTS, or named(...), got a {type(constant).__name__}"
        )
    return files("allocopt.insight.constants") / "proofs" / constant.group / f"{constant.name}.json"


@spelled
def proven(constant: Constant) -> Proven:
    """A row with its interval, proven anew from its proof file; no solver runs.

    Examples
    --------
    >>> row = proven(named("end-of-optimism-section"))
    >>> row.solution.lower <= 128 * (1 + 1e-12) and row.solution.upper >= 128 * (1 - 1e-12), row.finding.verdict.value
    (True, 'agrees')
    """
    with as_file(proof_file(constant)) as path:
        solution = load_solution(path)
    if not same_program(solution.program, constant.program()):
        raise NotProven(f"{constant.name}: the proof file is about another program than the row")
    return Proven(constant, solution, finding(constant, solution))


@spelled
def check(constant: Constant) -> list[str]:
    """What is wrong with the proof of a row, by the referee in rationals and by the certificate in doubles: nothing, if it holds."""
    try:
        proven(constant)
    except InvalidFile as reason:
        return [str(reason)]
    verdict = judge(read(proof_file(constant).read_text(encoding="utf-8")))
    return list(verdict.problems)


def same_program(one: AllocationProgram, other: AllocationProgram) -> bool:
    """Whether two programs are the same to the bit."""
    names = ("features", "costs", "targets", "radii", "lower", "upper", "noise_variance")
    limits = [() if c is None else (c.places, c.arms, c.values, c.limits) for c in (one.constraints, other.constraints)]
    if len(limits[0]) != len(limits[1]) or not all(map(np.array_equal, *limits)):
        return False
    return all(_same(getattr(one, name), getattr(other, name)) for name in names)


def _same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def write_proofs(folder: Path) -> list[str]:
    """Solve every row and write its proof file below ``folder``; the names of the rows that are not certified."""
    unsure = []
    for constant in CONSTANTS:
        solution = solve(constant.program(), tol=TOL)
        if solution.status.name != "CERTIFIED":  # many arms that show much: rounding alone is about as wide
            solution = solve(constant.program(), tol=10 * TOL)
        if solution.status.name != "CERTIFIED":
            unsure.append(constant.name)
        place = folder / constant.group
        place.mkdir(parents=True, exist_ok=True)
        solution.save(place / f"{constant.name}.json", overwrite=True)
    return unsure
