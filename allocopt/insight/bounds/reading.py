"""`load_bound`: a proof file of a finite-time bound, read as somebody else's claim and proven anew, or refused."""

from __future__ import annotations

import math
from fractions import Fraction
from os import PathLike
from typing import Any

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import AllocoptError, InvalidProof, NotProven
from allocopt.base.json_data import read_json
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import LARGEST
from allocopt.base.validation import positive_number, whole_number
from allocopt.insight.bounds.bound import MOST_ROUNDS, FiniteTimeBound
from allocopt.insight.bounds.writing import FORMAT, VERSION
from allocopt.model.bandit import LinearBandit

__all__ = ["load_bound"]

_MOST_DIGITS = 20_000  # of the text of one fraction; d doubles together have some hundred each


@spelled
def load_bound(path: str | PathLike[str]) -> FiniteTimeBound:
    """Read a proof file that `FiniteTimeBound.save` wrote, and prove its claim: in rationals and balls, without a solver.

    Raises `InvalidFile` if the file cannot be read, `InvalidProof` if it is malformed, and `NotProven` if its alternatives and
    weights do not prove the value that it claims.
    """
    source = file_path(path)
    document = read_json(source, InvalidProof)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidProof(f'{source}: expected the proof file of a bound (a JSON object with "format": "{FORMAT}")')
    try:
        bound = _bound(document)
    except AllocoptError as error:
        raise InvalidProof(f"{source}: {error}") from None
    check = bound.verify()
    if not check.holds:
        raise NotProven(
            f"{source}: claim: the file claims {bound.value!r}, but its alternatives and weights do not prove that "
            f"(they are short of it by {-check.surplus:.3g})"
        )
    return bound


def _bound(document: dict[str, Any]) -> FiniteTimeBound:
    """The bound that a document describes, every entry checked."""
    _only("the file", document, {"format", "version", "instance", "n", "alternatives", "claim"})
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise InvalidProof(f"version: expected {VERSION}, got {version!r}; update allocopt")
    bandit = _instance(_entry(document, "instance", dict))
    n = document.get("n")
    if not isinstance(n, int):  # 1000.0 is a claim about another number of rounds, if it is large
        raise InvalidProof(f"n: expected a whole number >= 1, got {str(n)[:40]}")
    rounds = whole_number("n", n, InvalidProof, least=1)
    if rounds > MOST_ROUNDS:
        raise InvalidProof("n: expected at most 10^100 rounds")
    listed = _entry(document, "alternatives", list)
    parameters, regrets, weights = [], [], []
    for j, alternative in enumerate(listed):
        where = f"alternatives[{j}]"
        if not isinstance(alternative, dict):
            raise InvalidProof(f"{where}: expected an object, got a {type(alternative).__name__}")
        _only(where, alternative, {"theta", "regret", "weight"})
        parameters.append(_parameter(where, _entry(alternative, "theta", list), bandit.dim))
        regret = math.inf if alternative.get("regret") == "inf" else alternative.get("regret")
        regrets.append(positive_number(f"{where}.regret", regret, InvalidProof, zero=True, infinite=True))
        weights.append(positive_number(f"{where}.weight", alternative.get("weight"), InvalidProof, zero=True))
    claim = _entry(document, "claim", dict)
    _only("claim", claim, {"value"})
    value = positive_number("claim.value", claim.get("value"), InvalidProof, zero=True)
    return FiniteTimeBound(bandit, rounds, value, tuple(parameters), tuple(regrets), tuple(weights))


def _instance(described: dict[str, Any]) -> LinearBandit:
    _only("instance", described, {"arms", "theta", "noise_variance", "labels"})
    return LinearBandit(
        _entry(described, "arms", list),
        _entry(described, "theta", list),
        described.get("noise_variance"),  # type: ignore[arg-type]
        labels=described.get("labels"),
    )


def _parameter(where: str, entries: list[Any], dim: int) -> tuple[Fraction, ...]:
    """θ' from numbers and from texts "p/q"."""
    if len(entries) != dim:
        raise InvalidProof(f"{where}.theta: expected {dim} entries, got {len(entries)}")
    return tuple(_fraction(f"{where}.theta", x) for x in entries)


def _fraction(where: str, x: Any) -> Fraction:
    try:
        if isinstance(x, str) and len(x) <= _MOST_DIGITS:
            over, under = x.split("/")  # not Fraction(x): that would take 1e999999999 too
            number = Fraction(int(over), int(under))
        elif isinstance(x, int | float) and not isinstance(x, bool):
            number = Fraction(x)
        else:
            raise ValueError
    except (ValueError, OverflowError, ZeroDivisionError):
        raise InvalidProof(f'{where}: expected numbers or texts "p/q", got {str(x)[:40]!r}') from None
    if abs(number) > Fraction(LARGEST):
        raise InvalidProof(f"{where}: expected magnitudes up to {LARGEST:g}")
    return number


def _entry(document: dict[str, Any], name: str, kind: type) -> Any:
    if name not in document:
        raise InvalidProof(f'"{name}" is missing')
    if not isinstance(document[name], kind):
        raise InvalidProof(f'"{name}": expected a {kind.__name__}, got a {type(document[name]).__name__}')
    return document[name]


def _only(where: str, document: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(document) - known)
    if unknown:
        raise InvalidProof(f"{where}: {unknown[0]!r} is nothing that this version knows")
