"""Two descriptions of what results depend on: whether they are the same, and in words what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["MOST_LISTED", "canonical_text", "differences"]

MOST_LISTED = 64
"""Entries of a container that are described, and compared, one by one; of more there is a digest."""
_UNSAID = ("dict", "list", "tuple", "closure", "globals", "keywords", "members", "state", "arguments")
"""Steps of a path that a user need not be told."""


def canonical_text(description: Any) -> str:
    """The one text of a description; equal texts mean equal descriptions, 1, 1.0 and True being different."""
    return json.dumps(description, separators=(",", ":"), allow_nan=False)


def differences(there: Any, here: Any, most: int = 3) -> list[str]:
    """In words, what differs between two descriptions.

    Examples
    --------
    >>> differences({"tol": 1e-8, "seed": 1}, {"tol": 1e-6, "seed": 1})
    ['tol is 1e-08 there and 1e-06 here']
    """
    found: list[str] = []
    for text in _differing("", there, here):
        if text not in found:
            found.append(text)
        if len(found) == most:
            break
    return found


def _differing(path: str, there: Any, here: Any) -> Iterator[str]:
    if canonical_text(there) == canonical_text(here):
        return
    if isinstance(there, dict) and isinstance(here, dict):
        shared = [key for key in here if key in there]
        inner = [text for key in shared for text in _differing(_step(path, key), there[key], here[key])]
        only = ([key for key in there if key not in here], [key for key in here if key not in there])
        if any(only):
            first, second = (", ".join(map(str, keys)) or "nothing" for keys in only)
            inner.append(f"{path + ' has ' if path else ''}{first} there and {second} here")
        yield from inner or [f"the order of {path} differs"]
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here) <= MOST_LISTED:
        yield from (
            t for i, pair in enumerate(zip(there, here, strict=True)) for t in _differing(f"{path}[{i}]", *pair)
        )
    elif path.endswith(".code"):
        yield f"the code of {path.removesuffix('.code')} has changed since"
    elif path.endswith(".sha256"):
        yield f"the content of {path.removesuffix('.sha256')} has changed since"
    else:
        shown = [_short(_as_said(value)) for value in (there, here)]
        yield f"{path} is {shown[0]} there and {shown[1]} here" if shown[0] != shown[1] else f"{path} differs"


def _step(path: str, key: str) -> str:
    return path if path and key in _UNSAID else f"{path}.{key}" if path else key


def _as_said(value: Any) -> Any:
    """A description in the words of whoever gave the value, where that is easy."""
    if isinstance(value, dict) and len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind in ("list", "tuple", "dict") and not isinstance(inner, int):
            return [_as_said(x) for x in inner] if isinstance(inner, list) else inner
    return value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
