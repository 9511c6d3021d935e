"""Reading proof files, as somebody else's claim: `load_solution`.

Loading trusts nothing: everything that a proof rests on is checked or refused, and a claim that the stored
allocation and multipliers do not prove is refused too. `allocopt/certify/referee.py` checks the same file without allocopt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import (
    AllocoptError,
    InvalidProof,
    NotProven,
    SlowWarning,
    warn_caller,
)
from allocopt.base.json_data import read_json
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, in_range, positive_number, vector
from allocopt.certify import referee
from allocopt.certify.enclosure import enclose
from allocopt.certify.proofs.programs import entry_of, index_list, program_of, with_infinity
from allocopt.certify.proofs.writing import FORMAT, LARGEST_DOUBLE, VERSIONS, double_above, double_below
from allocopt.certify.verdict import recertify, recertify_by_block
from allocopt.linear.assumptions import Assumption
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution, Status, noting

__all__ = ["load_solution"]

_BITS = 256  # of the balls that decide whether a witness proves a claim
_BYTES_OF_A_NUMBER = 1000  # in balls and rationals
_SECONDS_OF_A_NUMBER = 6e-6
_LONG = 60.0  # seconds of ball arithmetic that are announced
_SMALL = 10_000  # k d² up to which the referee takes a second or two at most


@spelled
def load_solution(path: str | PathLike[str]) -> Solution:
    """Read a proof file. Bounds and status are recomputed; `Solution.verify` then proves an interval.

    ``stats["claim"]`` is what the file claims; its entry ``wider`` says whether the allocation and multipliers prove more.
    Raises `InvalidFile` if the file cannot be read, `InvalidProof` if it contradicts itself, and `NotProven` if it assumes more
    than rounding or claims what its allocation and multipliers do not prove.
    """
    source = file_path(path)
    document = read_json(source, InvalidProof)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidProof(f'{source}: expected a proof file (a JSON object with "format": "{FORMAT}")')
    version = document.get("version")
    if version == 1 and isinstance(version, int) and not isinstance(version, bool):
        raise InvalidProof(f"{source}: this proof was made by an older version of allocopt; solve again")
    if version not in VERSIONS or isinstance(version, bool):
        wanted = " or ".join(map(str, VERSIONS))
        raise InvalidProof(f"{source}: expected version {wanted}, got {version!r}; update allocopt")
    try:
        for place, problem in _bad_numbers(document):
            raise InvalidProof(f"{place}: {problem}")
        return _checked(document)
    except AllocoptError as error:
        kind = type(error) if isinstance(error, InvalidProof) else InvalidProof
        raise kind(f"{source}: {error}") from None


def _checked(document: dict[str, Any]) -> Solution:
    """The solution in a document of this version, with everything that it rests on checked."""
    described = entry_of(document, "program", dict)
    program = program_of(described)
    small = program.n_rows * program.dim**2 <= _SMALL
    if not small:
        described.clear()  # lists of numbers take many times as much memory as the arrays that are made of them by now
    allocation = vector("allocation", with_infinity(entry_of(document, "allocation", list)), InvalidProof,
                        length=program.n_arms, infinite=True)  # fmt: skip
    multipliers = vector(
        "multipliers", entry_of(document, "multipliers", list), InvalidProof, length=program.n_multipliers
    )
    for name, values in (("allocation", allocation), ("multipliers", multipliers)):
        if (values < 0).any():
            i = int(np.flatnonzero(values < 0)[0])
            raise InvalidProof(f"{name}: expected entries >= 0, but entry {i} is {float(values[i])!r}")
        in_range(name, values, InvalidProof, power=4)
    unexpected = np.setxor1d(np.flatnonzero(np.isinf(allocation)), program.free)
    if len(unexpected):
        raise InvalidProof(f"allocation: arm {unexpected[0]} is infinite without being free, or the other way round")
    _check_quotient(entry_of(document, "quotient", dict), program)
    assumptions = [_assumption(a, program.n_arms) for a in entry_of(document, "assumptions", list)]
    method = entry_of(document, "method", str)
    tol = positive_number("tol", document.get("tol"), InvalidProof)
    claim = entry_of(document, "claim", dict)
    ends = vector("claim", with_infinity([claim.get("lower"), claim.get("upper")]), InvalidProof, infinite=True)
    lower, upper = float(ends[0]), float(ends[1])
    if not 0 <= lower <= upper or lower == math.inf:
        raise InvalidProof(f"claim: expected 0 <= lower <= upper, got [{lower!r}, {upper!r}]")
    status = _claimed_status(claim, lower, upper, tol, assumptions)

    given = allocation, multipliers, method, tol
    by_block = None if assumptions else recertify_by_block(program, *given)
    if by_block is not None and _within((by_block.lower, by_block.upper), lower, upper):
        found = by_block
    else:
        found = recertify(program, *given, {}, _row_multipliers(document, program))
    for needed in found.assumptions:
        _check_listed(needed, assumptions)
    proven = found.lower, found.upper
    if not _within(proven, lower, upper):  # these are rounded by a margin: balls decide where that is too little
        _check_balls(program)
        enclosure = enclose(found, _BITS)
        proven = enclosure.lower, enclosure.upper
    if not _within(proven, lower, upper) and small:
        verdict = referee.judge(document)  # balls have a width too
        proven = double_below(verdict.lower), double_above(verdict.upper)
    if not _within(proven, lower, upper):
        raise NotProven(
            f"claim: the file claims [{lower!r}, {upper!r}], but its allocation and multipliers prove "
            f"[{proven[0]!r}, {proven[1]!r}] only"
        )
    slack = 2.0 * (proven[1] - proven[0]) + 1e-12 * proven[1] if math.isfinite(proven[1]) else math.inf
    claimed = {"lower": lower, "upper": upper, "status": status, "wider": upper - lower > slack}
    return noting(found, claim=claimed)


def _check_balls(program: AllocationProgram) -> None:
    """Refuse what would not fit into memory in balls, and say how long they take where that is long."""
    numbers = program.n_rows * program.dim
    what = f"the claim: doubles do not decide whether it is proven, and {numbers:,} numbers in balls"
    check_memory(_BYTES_OF_A_NUMBER * numbers, what, InvalidProof)
    seconds = _SECONDS_OF_A_NUMBER * numbers
    if seconds > _LONG:
        text = (
            f"doubles do not decide whether the claim is proven; ball arithmetic takes about {duration_text(seconds)}"
        )
        warn_caller(text, SlowWarning)


def _row_multipliers(document: dict[str, Any], program: AllocationProgram) -> Array | None:
    """μ of the linear constraints, where the program has any."""
    if program.constraints is None:
        if "constraint_multipliers" in document:
            raise InvalidProof("constraint_multipliers: expected none, as the program has no constraints")
        return None
    rows = program.constraints.n_rows
    mu = vector("constraint_multipliers", entry_of(document, "constraint_multipliers", list), InvalidProof, length=rows)
    if (mu < 0).any():
        i = int(np.flatnonzero(mu < 0)[0])
        raise InvalidProof(f"constraint_multipliers: expected entries >= 0, but entry {i} is {float(mu[i])!r}")
    in_range("constraint_multipliers", mu, InvalidProof, power=4)
    return mu


def _within(proven: tuple[float, float], lower: float, upper: float) -> bool:
    """Whether a proven interval lies in the claimed one."""
    return lower <= proven[0] and proven[1] <= upper


def _claimed_status(
    claim: dict[str, Any], lower: float, upper: float, tol: float, assumptions: list[Assumption]
) -> str:
    """The status that a file claims, if it fits what the file says besides."""
    status = claim.get("status")
    if not isinstance(status, str) or status not in Status.__members__:
        raise InvalidProof(f"claim: expected a status ({', '.join(Status.__members__)}), got {status!r}")
    if status not in ("CERTIFIED", "CONDITIONAL"):
        return status
    if upper == math.inf or Fraction(upper) - Fraction(lower) > Fraction(tol) * Fraction(lower):
        raise NotProven(f"claim: the status is {status}, but the gap of [{lower!r}, {upper!r}] is above tol {tol!r}")
    if status == "CERTIFIED" and assumptions:
        raise NotProven("claim: the status is CERTIFIED, but assumptions are listed; that would be CONDITIONAL")
    if status == "CONDITIONAL" and not assumptions:
        raise NotProven("claim: the status is CONDITIONAL, but no assumption is listed")
    return status


def _check_quotient(quotient: dict[str, Any], program: AllocationProgram) -> None:
    """The witness for the referee; the proof here finds its own."""
    sizes = {"pivot_arms": program.n_rows, "pivot_columns": program.dim, "basis_arms": program.n_rows,
             "coordinates": program.dim}  # fmt: skip
    for name, size in sizes.items():
        index_list(f"quotient.{name}", entry_of(quotient, name, list), size)
    if set(quotient["pivot_columns"]) & set(quotient["coordinates"]):
        raise InvalidProof("quotient: a column is both eliminated and kept")
    if not set(program.row_owners[quotient["pivot_arms"]].tolist()) <= set(program.free.tolist()):
        raise InvalidProof("quotient.pivot_arms: an arm is not free")


def _assumption(stored: Any, n_arms: int) -> Assumption:
    """An assumption of a file; one that rounding does not explain is refused."""
    if not isinstance(stored, dict):
        raise InvalidProof(f"assumptions: expected objects, got a {type(stored).__name__}")
    kind, size, text = (entry_of(stored, name, str) for name in ("kind", "size", "text"))
    if kind not in ("tie", "dependence"):
        raise InvalidProof(f'assumptions: expected the kind "tie" or "dependence", got {kind!r}')
    arms = index_list("assumptions: arms", entry_of(stored, "arms", list), n_arms)
    try:
        exact = Fraction(
            *(int(part) for part in size.split("/"))
        )  # not Fraction(size): that would take 1e999999999 too
    except (ValueError, TypeError, ZeroDivisionError):
        raise InvalidProof(f'assumptions: expected a size "p/q", got {size[:60]!r}') from None
    result = Assumption(kind, tuple(arms), exact, text)
    if exact < 0 or not result.at_rounding_level:
        raise NotProven(
            f"assumptions: a {kind} of relative size {_short(exact)} is more than rounding explains; nothing is proven"
        )
    return result


def _check_listed(needed: Assumption, listed: list[Assumption]) -> None:
    """What the proof needs must be at rounding level, and in the file."""
    if not needed.at_rounding_level:
        raise NotProven(f"{needed.text}: more than rounding explains; nothing is proven")
    for a in listed:
        if a.kind == needed.kind and a.size >= needed.size and (a.kind != "tie" or set(needed.arms) <= set(a.arms)):
            return
    raise NotProven(f"{needed.text}, but the file lists no such assumption; nothing is proven")


def _short(x: Fraction) -> str:
    return f"{float(x):.3g}" if abs(x) <= LARGEST_DOUBLE else "beyond all doubles"


def _bad_numbers(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Numbers of a document that are none, or no doubles: booleans, NaN, 1e999, and integers that a double would round."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "n":  # the number of rounds may be any integer
                yield from _bad_numbers(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        kinds = set(map(type, value))
        nested = kinds == {list}
        if set(map(type, chain.from_iterable(value) if nested else value)) <= {float} and all(
            map(math.isfinite, chain.from_iterable(value) if nested else value)
        ):
            return
        for i, inner in enumerate(value):
            yield from _bad_numbers(inner, f"{place}[{i}]")
    elif isinstance(value, bool):
        yield place, f"expected a number, got {str(value).lower()}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield place, f'expected a finite number (or the text "inf"), got {value!r}'
    elif isinstance(value, int):
        try:
            exact = int(float(value)) == value
        except OverflowError:
            exact = False
        if not exact:
            yield place, f"expected a double, but {str(value)[:40]} is none"
