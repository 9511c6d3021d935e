"""Programs out of proof files, made again by the functions that made them; whatever contradicts itself is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidProof
from allocopt.base.validation import Array, finite_number, positive_number, vector, whole_number
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

__all__ = ["entry_of", "index_list", "program_of", "with_infinity"]

_LEVEL_TOLERANCE = 1e-12  # of f_n and log n, which another machine's logarithm may round otherwise


def program_of(described: dict[str, Any]) -> AllocationProgram:
    """The program that a file describes."""
    return _limited(_rebuild(described), described)


def entry_of(document: dict[str, Any], name: str, kind: type) -> Any:
    """An entry of a JSON object, which must be there and of a type."""
    if name not in document:
        raise InvalidProof(f'"{name}" is missing')
    if not isinstance(document[name], kind):
        raise InvalidProof(f'"{name}": expected a {kind.__name__}, got a {type(document[name]).__name__}')
    return document[name]


def index_list(name: str, values: list[Any], size: int) -> list[int]:
    """Distinct indices below ``size``, in the order of the file."""
    for i in values:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < size:
            raise InvalidProof(f"{name}: expected indices from 0 to {size - 1}, got {i!r}")
    if len(set(values)) < len(values):
        raise InvalidProof(f"{name}: expected distinct indices, got repeated ones")
    return values


def _rounds(described: dict[str, Any]) -> int | None:
    n = described.get("n")
    return None if n is None else whole_number("n", n, InvalidProof, least=3)


def _check_level(name: str, stored: float, computed: float) -> None:
    if not (math.isfinite(computed) and abs(stored - computed) <= _LEVEL_TOLERANCE * computed):
        raise InvalidProof(f"{name}: {stored!r} does not follow from n: that would be {computed!r}")


def with_infinity(values: list[Any]) -> list[Any]:
    """Numbers among which the string "inf" stands for infinity."""
    return [np.inf if v == "inf" else v for v in values]


def _limited(program: AllocationProgram, described: dict[str, Any]) -> AllocationProgram:
    """The program with the linear constraints of the file, if it has any."""
    if "constraints" not in described:
        return program
    rows = entry_of(described, "constraints", list)
    places: list[int] = []
    arms: list[int] = []
    values: list[Any] = []
    limits: list[float] = []
    for n, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidProof(f"constraints[{n}]: expected an object, got a {type(row).__name__}")
        own = index_list(f"constraints[{n}].arms", entry_of(row, "arms", list), program.n_arms)
        coefficients = entry_of(row, "coefficients", list)
        if len(coefficients) != len(own):
            raise InvalidProof(f"constraints[{n}]: expected {len(own)} coefficients, got {len(coefficients)}")
        places, arms, values = places + [n] * len(own), arms + own, values + coefficients
        limits.append(finite_number(f"constraints[{n}].limit", row.get("limit"), InvalidProof))
    given = LinearConstraints.listed(places, arms, values, limits, program.n_arms)
    return replace(program, constraints=given)


def _rebuild(described: dict[str, Any]) -> AllocationProgram:
    kind = entry_of(described, "kind", str)
    if kind == "general":
        arrays = {name: entry_of(described, name, list) for name in ("features", "costs", "targets", "radii", "lower")}
        noise = entry_of(described, "noise_variance", list) if "noise_variance" in described else None
        return AllocationProgram(
            **arrays, upper=with_infinity(entry_of(described, "upper", list)), noise_variance=noise
        )
    if kind == "g_optimal":
        return g_optimal(_arms(described))
    if kind == "horizon":
        arms = _arms(described)
        gaps = vector("gaps", entry_of(described, "gaps", list), InvalidProof, length=len(arms))
        if (gaps < 0).any():
            raise InvalidProof("gaps: expected entries >= 0")
        level, n, constant = positive_number("f_n", described.get("f_n"), InvalidProof), _rounds(described), None
        if n is not None:
            constant = positive_number("constant", described.get("constant"), InvalidProof, zero=True)
            _check_level("f_n", level, f_n(n, max(len(spanning_coordinates(arms)), 1), constant))
        return horizon_at_level(arms, gaps, level, n, constant)
    if kind == "transductive":
        arms, items, theta = (entry_of(described, name, list) for name in ("arms", "items", "theta"))
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
    means = vector("means", entry_of(described, "means", list), InvalidProof)
    shown = entry_of(described, "shown", list)
    if len(shown) != len(means) or not all(isinstance(own, list) for own in shown):
        raise InvalidProof(f"shown: expected {len(means)} lists, one for each arm, got {len(shown)} things")
    for i, own in enumerate(shown):
        if index_list(f"shown[{i}]", own, len(means)) != sorted(own):
            raise InvalidProof(f"shown[{i}]: expected arms in increasing order")
    columns = [j for own in shown for j in own or [len(means)]]
    owners = [i for i, own in enumerate(shown) for _ in own or [0]]
    noise = vector("noise_variance", entry_of(described, "noise_variance", list), InvalidProof, length=len(columns))
    seen = Sightings(means, np.array(owners, dtype=np.int64), np.array(columns, dtype=np.int64), noise)
    return observed_sightings(seen, described.get("labels"))


def _contextual_bandit(described: dict[str, Any]) -> ContextualBandit:
    """The contexts of a file, which stores their arms one after the other, and how many each has."""
    arms = arm_matrix(entry_of(described, "arms", list))
    sizes = [whole_number("contexts", n, InvalidProof, least=1) for n in entry_of(described, "contexts", list)]
    if sum(sizes) != len(arms):
        raise InvalidProof(f"contexts: expected numbers of arms that add up to {len(arms)}, got {sum(sizes)}")
    return ContextualBandit(
        np.split(arms, np.cumsum(sizes)[:-1]),
        entry_of(described, "theta", list),
        entry_of(described, "weights", list),
        described.get("noise_variance"),  # type: ignore[arg-type]
        described.get("tie_tolerance"),  # type: ignore[arg-type]
        entry_of(described, "optimal_arms", list),
        entry_of(described, "labels", list),
    )


def _arms(described: dict[str, Any]) -> Array:
    """The arms of a file as an array that nobody changes: very many are then looked at block by block, without a copy."""
    return arm_matrix(entry_of(described, "arms", list))


def _rebuild_from_bandit(kind: str, described: dict[str, Any]) -> AllocationProgram:
    bandit = LinearBandit(
        _arms(described),
        entry_of(described, "theta", list),
        described.get("noise_variance"),  # type: ignore[arg-type]
        described.get("tie_tolerance"),  # type: ignore[arg-type]
        entry_of(described, "optimal_arms", list),
        described.get("labels"),
    )
    if kind == "semi_bandit":
        program = semi_bandit(bandit.arms, bandit.theta, bandit._one_variance("semi-bandits"), bandit.labels)
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
        pulls = vector("pulls", entry_of(described, "pulls", list), InvalidProof, length=bandit.n_arms)
        if (pulls < 0).any():
            raise InvalidProof("pulls: expected entries >= 0")
        log_n = positive_number("log_n", described.get("log_n"), InvalidProof)
        n = _rounds(described)
        if n is not None:
            _check_level("log_n", log_n, math.log(n))
        return remaining_at_log(bandit, pulls, log_n, n)
    return regret(bandit) if kind == "regret" else best_arm(bandit)
