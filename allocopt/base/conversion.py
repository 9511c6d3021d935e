"""Numbers that a user passed as doubles, without changing any of them.

NumPy drops masks, rounds whole numbers beyond 2^53 and long doubles, and passes on whatever an object raises when it is asked
for an array. Here each of these is refused instead, with the place of the entry.

Fractions and Decimals become the nearest double, as the literal 0.1 does. Whole numbers are meant exactly, in whatever type
they come.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import AllocoptError
from allocopt.base.machine import check_memory

__all__ = ["NotAnArray", "as_array", "as_doubles", "entries", "first_changed", "place", "unchanging"]

Raw = np.ndarray[Any, Any]
Doubles = NDArray[np.float64]

_WHOLE = 2.0**53
"""Up to here every whole number is a double."""
_NESTED = 4  # levels of lists that are looked through for masked arrays: one more than any argument has
_MANY, _BYTES = 10**6, 10.0  # entries from which their size as doubles is looked at, and what each takes
MASKED = "a masked array; fill or drop the masked entries first"


class NotAnArray(Exception):
    """Why something cannot be read as an array; callers put the argument's name in front."""


def as_array(value: object) -> Raw:
    """An array of whatever type NumPy finds; `NotAnArray` where entries are masked or the object cannot be converted."""
    if _holds_mask(value, _NESTED):
        raise NotAnArray(f"expected numbers, got {MASKED}")
    try:
        raw = np.asanyarray(value)  # which keeps the mask of what an object's __array__ returns
        if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
            raise NotAnArray(f"expected numbers, got {MASKED}")
        return np.asarray(raw)
    except NotAnArray:
        raise
    except Exception as problem:  # an object's own __array__ may raise anything
        text = " ".join(str(problem).split())
        reason = f"{type(problem).__name__}: {text[:100]}" if text else type(problem).__name__
        raise NotAnArray(
            f"expected numbers, got a {type(value).__name__} that cannot be made an array ({reason})"
        ) from None


def _holds_mask(value: object, depth: int) -> bool:
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))  # where nothing is masked, nothing is lost
    if not depth or not isinstance(value, list | tuple):
        return False
    kinds = set(map(type, value))  # much faster than to ask every entry
    if not _containers(kinds):
        return False
    if kinds <= {list, tuple} and depth > 1 and not _containers(set(map(type, chain.from_iterable(value)))):
        return False  # rows of numbers
    return any(_holds_mask(part, depth - 1) for part in value)


def _containers(kinds: set[type]) -> bool:
    return any(issubclass(kind, list | tuple | np.ma.MaskedArray) for kind in kinds)


def as_doubles(name: str, raw: Raw, error: type[AllocoptError], *, given: object = None, first_row: int = 0) -> Doubles:
    """An array of numbers as float64; ``error`` where that changes one. The array itself where it is float64 already.

    ``given`` is what the array was made from: lists of whole numbers and floats are rounded before anyone sees their array.
    Rows are counted from ``first_row``.
    """
    if raw.dtype != np.float64 and raw.size > _MANY:
        check_memory(_BYTES * raw.size, f"{name}: {raw.size:,} entries of type {raw.dtype} as doubles", error)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        doubles = np.asarray(raw, dtype=np.float64)
    changed = first_changed(raw, doubles)
    if changed is None and raw.dtype == np.float64 and given is not None and not isinstance(given, np.ndarray):
        raw = _entries_as_given(given, doubles)
        changed = first_changed(raw, doubles)
    if changed is not None:
        raise error(f"{name}: {_no_double(raw[changed], float(doubles[changed]), place(changed, first_row))}")
    return doubles


def entries(name: str, raw: Raw, error: type[AllocoptError], wanted: str) -> Doubles:
    """An array of Python objects as float64: Fractions, Decimals and ints are welcome, whatever float() knows is possible."""
    doubles = np.empty(raw.shape)
    for at, entry in np.ndenumerate(raw):
        try:
            if isinstance(entry, str | bytes | complex | np.complexfloating | np.ma.MaskedArray | None.__class__):
                raise TypeError
            doubles[at] = float(entry)
        except Exception:  # the objects are the user's
            raise error(f"{name}: expected {wanted}, but {place(at)} is {_shown(entry)}") from None
        if _changed(entry, float(doubles[at])):
            raise error(f"{name}: {_no_double(entry, float(doubles[at]), place(at))}")
    return doubles


def first_changed(raw: Raw, doubles: Doubles) -> tuple[int, ...] | None:
    """Where the first whole number or long double is that became another number."""
    if raw.dtype == object:
        return next((at for at, x in np.ndenumerate(raw) if _changed(x, float(doubles[at]))), None)
    if raw.dtype.kind in "iu" and raw.dtype.itemsize == 8:
        if raw.size and int(raw.min()) > -_WHOLE and int(raw.max()) < _WHOLE:
            return None
        large = np.argwhere(np.abs(doubles) >= _WHOLE)
        values = raw[tuple(large.T)]
        size = values.astype(np.uint64)  # of negative ones: 2^64 less their size
        size = np.where(values < 0, ~size + np.uint64(1), size)
        odd_part = size // (size & (~size + np.uint64(1)))
        wrong = np.flatnonzero(odd_part >= np.uint64(2**53))
        return tuple(int(i) for i in large[wrong[0]]) if len(wrong) else None
    if raw.dtype.kind == "f" and raw.dtype.itemsize > 8:
        rounded = np.argwhere((doubles.astype(raw.dtype) != raw) & ~np.isnan(raw))
        return tuple(int(i) for i in rounded[0]) if len(rounded) else None
    return None


def _changed(entry: Any, double: float) -> bool:
    """Whether a whole number or a long double is not the double that it became."""
    if isinstance(entry, float):
        return False
    if isinstance(entry, np.longdouble):
        return bool(entry != np.longdouble(double)) and not bool(np.isnan(entry))
    if not _WHOLE <= abs(double) < np.inf:
        return False
    try:
        return bool(int(entry) == entry) and int(entry) != int(double)
    except Exception:  # no whole number, then
        return False


def _entries_as_given(given: object, doubles: Doubles) -> Raw:
    """The entries as they were before NumPy found a type for all of them; only where one is large enough to matter."""
    if not (np.abs(doubles) >= _WHOLE).any():
        return doubles
    try:
        objects = np.asarray(given, dtype=object)
    except Exception:  # then there is nothing more to be seen
        return doubles
    return objects if objects.shape == doubles.shape else doubles


def _no_double(entry: Any, double: float, where: str) -> str:
    return (
        f"expected numbers that are doubles, but {where} is {_shown(entry)} and the nearest double is "
        f"{_shown(int(double) if abs(double) < np.inf and double == int(double) else double)}; use other units or round it"
    )


def _shown(entry: object) -> str:
    try:
        text = " ".join((str(entry) if isinstance(entry, np.generic | int) else repr(entry)).split())
    except Exception:  # also where an int has too many digits
        text = f"a {type(entry).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def place(index: tuple[int, ...], first_row: int = 0) -> str:
    """An index in words."""
    words = {0: (), 1: ("entry",), 2: ("row", "column"), 3: ("set", "row", "column")}.get(len(index))
    if words is None:
        return f"entry {index}"
    if not words:
        return "it"
    return ", ".join(f"{w} {int(i) + (first_row if w == 'row' else 0)}" for w, i in zip(words, index, strict=True))


def unchanging(array: Raw) -> bool:
    """Whether an array, and whatever it is a view of, is read-only: then its memory need not be copied to stay as it is."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        if part.base is None:
            return bool(part.flags.owndata)
        part = part.base
    return isinstance(part, bytes)  # a mapped file, or another buffer, may be written to by others
