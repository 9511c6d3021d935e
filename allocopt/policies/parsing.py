"""Policies from text, as the command line has them: ``UCB``, ``LinUCB:a=2``, ``LinUCB:radius=theoretical,norm_bound=2``."""

from __future__ import annotations

import dataclasses

from allocopt import policies
from allocopt.base.errors import InvalidOption, MethodUnavailable
from allocopt.base.spelling import spelled
from allocopt.base.validation import did_you_mean
from allocopt.policies.base import Policy

__all__ = ["parse"]


@spelled
def parse(text: str) -> Policy:
    """A policy from its name and, after a colon, parameters that differ from the default.

    Examples
    --------
    >>> parse("UCB:a=0.5")
    UCB(a=0.5)
    >>> parse("UCB:b=1")
    Traceback (most recent call last):
        ...
    allocopt.base.errors.InvalidOption: policy UCB: unknown parameter 'b' (known: a)
    """
    if not isinstance(text, str):
        raise InvalidOption(f"policy: expected text such as 'UCB:a=0.5', got a {type(text).__name__}")
    name, _, listed = text.partition(":")
    kind = _policy_class(name.strip())
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]  # every policy is a dataclass
    given: dict[str, float | str] = {}
    for item in listed.split(",") if listed.strip() else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise InvalidOption(f"policy {name}: expected parameters as name=value, got {item.strip()!r}")
        if key not in known:
            raise InvalidOption(
                f"policy {name}: unknown parameter {key!r} (known: {', '.join(known)}){did_you_mean(key, known)}"
            )
        if key in given:
            raise InvalidOption(f"policy {name}: parameter {key!r} is given twice")
        given[key] = _number_or_text(value)
    try:
        return kind(**given)
    except InvalidOption as error:
        raise InvalidOption(f"policy {name}: {error}") from None


def _policy_class(name: str) -> type[Policy]:
    if name not in policies.NAMES:
        hint = did_you_mean(name, policies.NAMES)
        raise InvalidOption(f"policy: expected one of {', '.join(policies.NAMES)}, got {name!r}{hint}")
    try:
        found: type[Policy] = getattr(policies, name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("allocopt"):
            raise
        raise MethodUnavailable(f"policy: {name} is not part of this installation") from None
    return found


def _number_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
