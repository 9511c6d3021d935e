"""Numbers in text, none of which is rounded unseen."""

from __future__ import annotations

import re

__all__ = ["exact_number", "number_or_none"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")


def number_or_none(cell: str) -> float | int | None:
    """A number, None for anything else."""
    try:
        return exact_number(cell)
    except ValueError:
        return None


def exact_number(text: str) -> float | int:
    """A number; whole ones that are no doubles stay as they are, so that they are refused with their place."""
    if "_" in text or not text.isascii():  # Python's own literals: in a table, 1_0 is a mistake
        raise ValueError(text)
    number = float(text)
    if abs(number) >= 2.0**53 and _WHOLE.fullmatch(text.strip()):
        whole = int(text)
        return whole if whole != number else number
    return number
