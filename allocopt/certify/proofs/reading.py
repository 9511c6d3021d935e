"""Reading proof files, as somebody else's claim: `load_solution`.

Loading trusts nothing: everything that a proof rests on is checked or refused, and a claim that the stored
allocation and multipliers do not prove is refused too. `allocopt/certify/referee.py` checks the same file without allocopt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import (
    AllocoptError,
    InvalidProof,
    NotProven,
)
from allocopt.base.json_data import read_json
from allocopt.base.validation import Array, finite_number, in_range, positive_number, vector, whole_number
from allocopt.certify import referee
from allocopt.certify.enclosure import enclose
from allocopt.certify.proofs.writing import FORMAT, LARGEST_DOUBLE, VERSIONS, double_above, double_below
from allocopt.certify.verdict import recertify
from allocopt.linear.assumptions import Assumption
from allocopt.linear.span import spanning_coordinates
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.model.contexts import ContextualBandit
from allocopt.model.levels import f_n
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import (
    best_arm,
    contextual,
    duelling,
    g_optimal,
    horizon_at_level,
    optimism,
    regret,
    remaining_at_log,
    semi_bandit,
    threshold,
    top_m,
    transductive,
)
from allocopt.model.programs.observations import observed_sightings
from allocopt.model.rows.constraints import LinearConstraints
from allocopt.model.rows.sightings import Sightings
from allocopt.model.solution import Solution, Status, noting

__all__ = ["load_solution"]

_BITS = 256  # of the balls that decide whether a witness proves a claim
_SMALL = 10_000  # k d² up to which the referee takes a second or two at most
_LEVEL_TOLERANCE = 1e-12  # of f_n and log n, which another machine's logarithm may round otherwise


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
    program = _limited(_rebuild(_entry(document, "program", dict)), document["program"])
    allocation = vector("allocation", _with_inf(_entry(document, "allocation", list)), InvalidProof,
                        length=program.n_arms, infinite=True)  # fmt: skip
    multipliers = vector(
        "multipliers", _entry(document, "multipliers", list), InvalidProof, length=program.n_multipliers
    )
    for name, values in (("allocation", allocation), ("multipliers", multipliers)):
        if (values < 0).any():
            i = int(np.flatnonzero(values < 0)[0])
            raise InvalidProof(f"{name}: expected entries >= 0, but entry {i} is {float(values[i])!r}")
        in_range(name, values, InvalidProof, power=4)
    unexpected = np.setxor1d(np.flatnonzero(np.isinf(allocation)), program.free)
    if len(unexpected):
        raise InvalidProof(f"allocation: arm {unexpected[0]} is infinite without being free, or the other way round")
    _check_quotient(_entry(document, "quotient", dict), program)
    assumptions = [_assumption(a, program.n_arms) for a in _entry(document, "assumptions", list)]
    method = _entry(document, "method", str)
    tol = positive_number("tol", document.get("tol"), InvalidProof)
    claim = _entry(document, "claim", dict)
    ends = vector("claim", _with_inf([claim.get("lower"), claim.get("upper")]), InvalidProof, infinite=True)
    lower, upper = float(ends[0]), float(ends[1])
    if not 0 <= lower <= upper or lower == math.inf:
        raise InvalidProof(f"claim: expected 0 <= lower <= upper, got [{lower!r}, {upper!r}]")
    status = _claimed_status(claim, lower, upper, tol, assumptions)

    found = recertify(program, allocation, multipliers, method, tol, {}, _row_multipliers(document, program))
    for needed in found.assumptions:
        _check_listed(needed, assumptions)
    proven = found.lower, found.upper
    if not _within(proven, lower, upper):  # these are rounded by a margin: balls decide where that is too little
        enclosure = enclose(found, _BITS)
        proven = enclosure.lower, enclosure.upper
    if not _within(proven, lower, upper) and program.n_rows * program.dim**2 <= _SMALL:
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


def _row_multipliers(document: dict[str, Any], program: AllocationProgram) -> Array | None:
    """μ of the linear constraints, where the program has any."""
    if program.constraints is None:
        if "constraint_multipliers" in document:
            raise InvalidProof("constraint_multipliers: expected none, as the program has no constraints")
        return None
    rows = program.constraints.n_rows
    mu = vector("constraint_multipliers", _entry(document, "constraint_multipliers", list), InvalidProof, length=rows)
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
        index_list(f"quotient.{name}", _entry(quotient, name, list), size)
    if set(quotient["pivot_columns"]) & set(quotient["coordinates"]):
        raise InvalidProof("quotient: a column is both eliminated and kept")
    if not set(program.row_owners[quotient["pivot_arms"]].tolist()) <= set(program.free.tolist()):
        raise InvalidProof("quotient.pivot_arms: an arm is not free")


def index_list(name: str, values: list[Any], size: int) -> list[int]:
    """Distinct indices below ``size``, in the order of the file."""
    for i in values:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < size:
            raise InvalidProof(f"{name}: expected indices from 0 to {size - 1}, got {i!r}")
    if len(set(values)) < len(values):
        raise InvalidProof(f"{name}: expected distinct indices, got repeated ones")
    return values


def _assumption(stored: Any, n_arms: int) -> Assumption:
    """An assumption of a file; one that rounding does not explain is refused."""
    if not isinstance(stored, dict):
        raise InvalidProof(f"assumptions: expected objects, got a {type(stored).__name__}")
    kind, size, text = (_entry(stored, name, str) for name in ("kind", "size", "text"))
    if kind not in ("tie", "dependence"):
        raise InvalidProof(f'assumptions: expected the kind "tie" or "dependence", got {kind!r}')
    arms = index_list("assumptions: arms", _entry(stored, "arms", list), n_arms)
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
    """Numbers of a document that are none, or no doubles: booleans, and integers that a double would round."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "n":  # the number of rounds may be any integer
                yield from _bad_numbers(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        if set(map(type, value)) <= {float}:
            return
        for i, inner in enumerate(value):
            yield from _bad_numbers(inner, f"{place}[{i}]")
    elif isinstance(value, bool):
        yield place, f"expected a number, got {str(value).lower()}"
    elif isinstance(value, int):
        try:
            exact = int(float(value)) == value
        except OverflowError:
            exact = False
        if not exact:
            yield place, f"expected a double, but {str(value)[:40]} is none"


def _entry(document: dict[str, Any], name: str, kind: type) -> Any:
    if name not in document:
        raise InvalidProof(f'"{name}" is missing')
    if not isinstance(document[name], kind):
        raise InvalidProof(f'"{name}": expected a {kind.__name__}, got a {type(document[name]).__name__}')
    return document[name]


def _rounds(described: dict[str, Any]) -> int | None:
    n = described.get("n")
    return None if n is None else whole_number("n", n, InvalidProof, least=3)


def _check_level(name: str, stored: float, computed: float) -> None:
    if not abs(stored - computed) <= _LEVEL_TOLERANCE * computed:
        raise InvalidProof(f"{name}: {stored!r} does not follow from n: that would be {computed!r}")


def _with_inf(values: list[Any]) -> list[Any]:
    return [np.inf if v == "inf" else v for v in values]


def _limited(program: AllocationProgram, described: dict[str, Any]) -> AllocationProgram:
    """The program with the linear constraints of the file, if it has any."""
    if "constraints" not in described:
        return program
    rows = _entry(described, "constraints", list)
    places: list[int] = []
    arms: list[int] = []
    values: list[Any] = []
    limits: list[float] = []
    for n, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidProof(f"constraints[{n}]: expected an object, got a {type(row).__name__}")
        own = index_list(f"constraints[{n}].arms", _entry(row, "arms", list), program.n_arms)
        coefficients = _entry(row, "coefficients", list)
        if len(coefficients) != len(own):
            raise InvalidProof(f"constraints[{n}]: expected {len(own)} coefficients, got {len(coefficients)}")
        places, arms, values = places + [n] * len(own), arms + own, values + coefficients
        limits.append(finite_number(f"constraints[{n}].limit", row.get("limit"), InvalidProof))
    given = LinearConstraints.listed(places, arms, values, limits, program.n_arms)
    return replace(program, constraints=given)


def _rebuild(described: dict[str, Any]) -> AllocationProgram:
    kind = _entry(described, "kind", str)
    if kind == "general":
        arrays = {name: _entry(described, name, list) for name in ("features", "costs", "targets", "radii", "lower")}
        noise = _entry(described, "noise_variance", list) if "noise_variance" in described else None
        return AllocationProgram(**arrays, upper=_with_inf(_entry(described, "upper", list)), noise_variance=noise)
    if kind == "g_optimal":
        return g_optimal(_entry(described, "arms", list))
    if kind == "horizon":
        arms = arm_matrix(_entry(described, "arms", list))
        gaps = vector("gaps", _entry(described, "gaps", list), InvalidProof, length=len(arms))
        if (gaps < 0).any():
            raise InvalidProof("gaps: expected entries >= 0")
        level, n, constant = positive_number("f_n", described.get("f_n"), InvalidProof), _rounds(described), None
        if n is not None:
            constant = positive_number("constant", described.get("constant"), InvalidProof, zero=True)
            _check_level("f_n", level, f_n(n, max(len(spanning_coordinates(arms)), 1), constant))
        return horizon_at_level(arms, gaps, level, n, constant)
    if kind == "transductive":
        arms, items, theta = (_entry(described, name, list) for name in ("arms", "items", "theta"))
        variances: Any = described.get("noise_variance")
        return transductive(arms, items, theta, variances, labels=described.get("labels"))
    if kind == "contextual":
        return contextual(_contextual_bandit(described))
    if kind == "side_observations":
        return _rebuild_sightings(described)
    if kind not in ("semi_bandit", "regret", "best_arm", "optimism", "remaining", "top_m", "threshold", "duelling"):
        raise InvalidProof(f'"kind": {kind!r} is not a program that this version knows')
    return _rebuild_from_bandit(kind, described)


def _rebuild_sightings(described: dict[str, Any]) -> AllocationProgram:
    """Side observations from the list of what every arm shows."""
    means = vector("means", _entry(described, "means", list), InvalidProof)
    shown = _entry(described, "shown", list)
    if len(shown) != len(means) or not all(isinstance(own, list) for own in shown):
        raise InvalidProof(f"shown: expected {len(means)} lists, one for each arm, got {len(shown)} things")
    for i, own in enumerate(shown):
        if index_list(f"shown[{i}]", own, len(means)) != sorted(own):
            raise InvalidProof(f"shown[{i}]: expected arms in increasing order")
    columns = [j for own in shown for j in own or [len(means)]]
    owners = [i for i, own in enumerate(shown) for _ in own or [0]]
    noise = vector("noise_variance", _entry(described, "noise_variance", list), InvalidProof, length=len(columns))
    seen = Sightings(means, np.array(owners, dtype=np.int64), np.array(columns, dtype=np.int64), noise)
    return observed_sightings(seen, described.get("labels"))


def _contextual_bandit(described: dict[str, Any]) -> ContextualBandit:
    """The contexts of a file, which stores their arms one after the other, and how many each has."""
    arms = arm_matrix(_entry(described, "arms", list))
    sizes = [whole_number("contexts", n, InvalidProof, least=1) for n in _entry(described, "contexts", list)]
    if sum(sizes) != len(arms):
        raise InvalidProof(f"contexts: expected numbers of arms that add up to {len(arms)}, got {sum(sizes)}")
    return ContextualBandit(
        np.split(arms, np.cumsum(sizes)[:-1]),
        _entry(described, "theta", list),
        _entry(described, "weights", list),
        described.get("noise_variance"),  # type: ignore[arg-type]
        described.get("tie_tolerance"),  # type: ignore[arg-type]
        _entry(described, "optimal_arms", list),
        _entry(described, "labels", list),
    )


def _rebuild_from_bandit(kind: str, described: dict[str, Any]) -> AllocationProgram:
    bandit = LinearBandit(
        _entry(described, "arms", list),
        _entry(described, "theta", list),
        described.get("noise_variance"),  # type: ignore[arg-type]
        described.get("tie_tolerance"),  # type: ignore[arg-type]
        _entry(described, "optimal_arms", list),
        described.get("labels"),
    )
    if kind == "semi_bandit":
        program = semi_bandit(bandit.arms, bandit.theta, bandit.one_variance("semi-bandits"), bandit.labels)
        if not np.array_equal(program.free, bandit.optimal_arms):
            raise InvalidProof(f"optimal_arms: expected {program.free.tolist()}, got {bandit.optimal_arms.tolist()}")
        return program
    if kind == "top_m":
        return top_m(bandit, whole_number("m", described.get("m"), InvalidProof, least=1))
    if kind == "threshold":
        return threshold(bandit, finite_number("tau", described.get("tau"), InvalidProof))
    if kind == "duelling":
        return duelling(bandit)
    if kind == "best_arm" and ("epsilon" in described or "answer" in described):
        epsilon = positive_number("epsilon", described.get("epsilon"), InvalidProof)
        return best_arm(bandit, epsilon, whole_number("answer", described.get("answer"), InvalidProof))
    if kind == "optimism":
        return optimism(bandit, positive_number("width", described.get("width"), InvalidProof))
    if kind == "remaining":
        pulls = vector("pulls", _entry(described, "pulls", list), InvalidProof, length=bandit.n_arms)
        if (pulls < 0).any():
            raise InvalidProof("pulls: expected entries >= 0")
        log_n = positive_number("log_n", described.get("log_n"), InvalidProof)
        n = _rounds(described)
        if n is not None:
            _check_level("log_n", log_n, math.log(n))
        return remaining_at_log(bandit, pulls, log_n, n)
    return regret(bandit) if kind == "regret" else best_arm(bandit)
