"""Proof files: everything that `Solution.verify` needs, as JSON that any language can read.

Floats are written with Python's shortest round-trip representation, so the doubles come back to the bit; infinities are
the strings "inf". The bounds in the file are for human readers: loading recomputes them.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.bandit import LinearBandit, arm_matrix
from allocopt.errors import AllocoptError, InvalidFile, InvalidProof
from allocopt.program import (
    AllocationProgram,
    best_arm,
    g_optimal,
    horizon_at_level,
    optimism,
    regret,
    remaining_at_log,
)
from allocopt.solution import Solution
from allocopt.validation import Array, positive_number, vector, whole_number
from allocopt.writing import file_path, whole_file

__all__ = ["FORMAT", "VERSION", "load_solution", "save_solution"]

FORMAT = "allocopt-proof"
VERSION = 1


def save_solution(solution: Solution, path: str | PathLike[str]) -> None:
    """Write a proof file; the old file, if any, is replaced only once the new one is complete."""
    target = file_path(path)
    text = json.dumps(proof_document(solution), allow_nan=False, separators=(",", ":"))
    with whole_file(target, overwrite=True, what="the proof file") as out:
        out.write(text.encode("utf-8") + b"\n")


def proof_document(solution: Solution) -> dict[str, Any]:
    """The content of a proof file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": _describe(solution.program),
        "method": solution.method,
        "tol": solution.tol,
        "claim": {"lower": _number(solution.lower), "upper": _number(solution.upper), "status": solution.status.name},
        "allocation": _numbers(solution.allocation),
        "multipliers": _numbers(solution.multipliers),
    }


def _number(x: float) -> float | str:
    return float(x) if np.isfinite(x) else "inf"


def _numbers(values: Array) -> list[float | str]:
    return [_number(x) for x in values.tolist()]


def _describe(program: AllocationProgram) -> dict[str, Any]:
    origin = program.origin
    described: dict[str, Any] = {"kind": program.kind}
    if origin.bandit is not None:
        bandit = origin.bandit
        described |= {
            "arms": bandit.arms.tolist(),
            "theta": bandit.theta.tolist(),
            "noise_variance": bandit.noise_variance,
            "tie_tolerance": bandit.tie_tolerance,
            "optimal_arms": bandit.optimal_arms.tolist(),
        }
        if bandit.labels is not None:
            described["labels"] = list(bandit.labels)
    elif program.kind != "general":
        described["arms"] = program.features.tolist()
    if origin.gaps is not None:
        described["gaps"] = origin.gaps.tolist()
    if origin.pulls is not None:
        described["pulls"] = origin.pulls.tolist()
    if origin.number is not None:
        described[_NUMBER_NAMES[program.kind]] = origin.number
    if origin.horizon is not None:
        described["n"] = origin.horizon
    if program.kind == "general":
        for name in ("features", "targets"):
            described[name] = getattr(program, name).tolist()
        for name in ("costs", "radii", "lower", "upper"):
            described[name] = _numbers(getattr(program, name))
    return described


_NUMBER_NAMES = {"horizon": "f_n", "remaining": "log_n", "optimism": "width"}


def load_solution(path: str | PathLike[str]) -> Solution:
    """Read a proof file. Bounds and status are recomputed; `Solution.verify` then proves an interval.

    Raises `InvalidFile` if the file cannot be read and `InvalidProof` if it contradicts itself.
    """
    from allocopt.solve import recertify

    source = file_path(path)
    document = read_json(source)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidProof(f'{source}: expected a proof file (a JSON object with "format": "{FORMAT}")')
    if document.get("version") != VERSION:
        raise InvalidProof(f"{source}: expected version {VERSION}, got {document.get('version')!r}; update allocopt")
    try:
        program = _rebuild(_entry(document, "program", dict))
        allocation = vector("allocation", _with_inf(_entry(document, "allocation", list)), InvalidProof,
                            length=program.n_arms, infinite=True)  # fmt: skip
        length = program.n_targets if program.target_arms is None else program.n_arms
        multipliers = vector("multipliers", _entry(document, "multipliers", list), InvalidProof, length=length)
        for name, values in (("allocation", allocation), ("multipliers", multipliers)):
            if (values < 0).any():
                i = int(np.flatnonzero(values < 0)[0])
                raise InvalidProof(f"{name}: expected entries >= 0, but entry {i} is {float(values[i])!r}")
        unexpected = np.setxor1d(np.flatnonzero(np.isinf(allocation)), program.free)
        if len(unexpected):
            raise InvalidProof(
                f"allocation: arm {unexpected[0]} is infinite without being free, or the other way round"
            )
        method = _entry(document, "method", str)
        tol = positive_number("tol", document.get("tol"), InvalidProof)
        claim = _entry(document, "claim", dict)
        ends = vector("claim", _with_inf([claim.get("lower"), claim.get("upper")]), InvalidProof, infinite=True)
        stats = {"claim": {"lower": float(ends[0]), "upper": float(ends[1])}}
        return recertify(program, allocation, multipliers, method, tol, stats)
    except AllocoptError as error:
        raise InvalidProof(f"{source}: {error}") from None


def read_json(source: Path) -> Any:
    """A JSON file's content, or `InvalidFile` with what is wrong and where."""
    try:
        return json.loads(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidFile(f"{source}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidFile(f"{source}: expected JSON text, but it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise InvalidFile(
            f"{source}: not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise InvalidFile(f"{source}: not valid JSON: nested too deeply") from None
    except ValueError:
        raise InvalidFile(f"{source}: not valid JSON: it holds a number of thousands of digits") from None


def _entry(document: dict[str, Any], name: str, kind: type) -> Any:
    if name not in document:
        raise InvalidProof(f'"{name}" is missing')
    if not isinstance(document[name], kind):
        raise InvalidProof(f'"{name}": expected a {kind.__name__}, got a {type(document[name]).__name__}')
    return document[name]


def _rounds(described: dict[str, Any]) -> int | None:
    n = described.get("n")
    return None if n is None else whole_number("n", n, InvalidProof, least=3)


def _with_inf(values: list[Any]) -> list[Any]:
    return [np.inf if v == "inf" else v for v in values]


def _rebuild(described: dict[str, Any]) -> AllocationProgram:
    kind = _entry(described, "kind", str)
    if kind == "general":
        arrays = {name: _entry(described, name, list) for name in ("features", "costs", "targets", "radii", "lower")}
        return AllocationProgram(**arrays, upper=_with_inf(_entry(described, "upper", list)))  # type: ignore[arg-type]
    if kind == "g_optimal":
        return g_optimal(_entry(described, "arms", list))
    if kind == "horizon":
        arms = arm_matrix(_entry(described, "arms", list))
        gaps = vector("gaps", _entry(described, "gaps", list), InvalidProof, length=len(arms))
        if (gaps < 0).any():
            raise InvalidProof("gaps: expected entries >= 0")
        return horizon_at_level(
            arms, gaps, positive_number("f_n", described.get("f_n"), InvalidProof), _rounds(described)
        )
    if kind not in ("regret", "best_arm", "optimism", "remaining"):
        raise InvalidProof(f'"kind": {kind!r} is not a program that this version knows')
    bandit = LinearBandit(
        _entry(described, "arms", list),
        _entry(described, "theta", list),
        described.get("noise_variance", 1.0),
        described.get("tie_tolerance", 0.0),
        _entry(described, "optimal_arms", list),
        described.get("labels"),
    )
    if kind == "optimism":
        return optimism(bandit, positive_number("width", described.get("width"), InvalidProof))
    if kind == "remaining":
        pulls = vector("pulls", _entry(described, "pulls", list), InvalidProof, length=bandit.n_arms)
        if (pulls < 0).any():
            raise InvalidProof("pulls: expected entries >= 0")
        log_n = positive_number("log_n", described.get("log_n"), InvalidProof)
        return remaining_at_log(bandit, pulls, log_n, _rounds(described))
    return regret(bandit) if kind == "regret" else best_arm(bandit)
