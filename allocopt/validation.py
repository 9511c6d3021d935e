"""Turning what a user passed into arrays, or into an error that says what was wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocopt.errors import AllocoptError, InvalidOption
from allocopt.tolerances import LARGEST

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "Array",
    "IntArray",
    "frozen",
    "in_range",
    "index_array",
    "matrix",
    "positive_number",
    "vector",
    "whole_number",
]


def _describe(value: object) -> str:
    """A few words on a value that was not what we wanted."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, str | bytes | int | float | complex | bool | None.__class__):
        text = repr(value.item() if isinstance(value, np.generic) else value)
        return text if len(text) <= 60 else text[:57] + "..."
    if isinstance(value, Sequence):
        return f"a {type(value).__name__} of {len(value)} items"
    return f"a {type(value).__name__}"


def _ragged(value: object) -> str | None:
    """Where a nested sequence stops being rectangular, if it does."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not len(value):
        return None
    lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, str | bytes) else None for row in value]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            return f"row {i} has {_items(length)} but row 0 has {_items(lengths[0])}"
    return None


def _items(length: int | None) -> str:
    return "no length (a single value)" if length is None else f"{length} entries"


def _array(name: str, value: object, ndim: int, error: type[AllocoptError], *, infinite: bool) -> Array:
    shape = {1: "a vector of numbers", 2: "a matrix of numbers (one row per vector)"}[ndim]
    try:
        raw = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raw = np.empty(0, dtype=object)
    ragged = _ragged(value) if raw.dtype == object else None
    if ragged:
        raise error(f"{name}: expected {shape}, but the rows have different lengths: {ragged}")
    if raw.dtype.kind not in "fiub" or (raw.dtype == np.longdouble and np.longdouble is not np.float64):
        raw = _as_float(name, raw, value, shape, error)
    if raw.ndim != ndim:
        raise error(f"{name}: expected {shape}, got {_describe(value)} with {raw.ndim} dimension(s)")
    shared = raw.dtype == np.float64 and not raw.flags.writeable  # this is how large arrays stay single
    result = raw if shared else np.array(raw, dtype=np.float64, order="C")
    bad = np.isnan(result) if infinite else ~np.isfinite(result)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"row {where[0]}, column {where[1]}" if ndim == 2 else f"entry {where[0]}"
        raise error(f"{name}: expected finite numbers, but {place} is {result[where]}")
    result.flags.writeable = False
    return result


def _as_float(name: str, raw: np.ndarray[Any, Any], value: object, shape: str, error: type[AllocoptError]) -> Array:
    """Object arrays of Fractions, Decimals or Python ints are welcome; strings, complex numbers and the rest are not."""
    if raw.dtype == object and raw.size and not any(isinstance(v, str | bytes | None.__class__) for v in raw.flat):
        try:
            return raw.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    if raw.dtype.kind == "f":
        return raw.astype(np.float64)
    culprit = next((v for v in raw.flat if isinstance(v, str | bytes | complex | None.__class__)), None)
    detail = f", which holds {_describe(culprit)}" if raw.ndim and raw.size else ""
    raise error(f"{name}: expected {shape}, got {_describe(value)}{detail}")


def matrix(name: str, value: object, error: type[AllocoptError]) -> Array:
    """A finite, read-only two-dimensional float64 array."""
    return _array(name, value, 2, error, infinite=False)


def vector(
    name: str, value: object, error: type[AllocoptError], *, length: int | None = None, infinite: bool = False
) -> Array:
    """A read-only one-dimensional float64 array, finite unless ``infinite``."""
    result = _array(name, value, 1, error, infinite=infinite)
    if length is not None and len(result) != length:
        raise error(f"{name}: expected {length} entries, got {len(result)}")
    return result


def index_array(name: str, value: object, size: int, error: type[AllocoptError]) -> IntArray:
    """Read-only sorted distinct indices into ``range(size)``."""
    try:
        raw = np.asarray(value)
    except (ValueError, TypeError):
        raw = np.empty(0, dtype=object)
    if raw.size == 0 and raw.ndim == 1:
        raw = raw.astype(np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iu":
        raise error(f"{name}: expected a list of whole numbers, got {_describe(value)}")
    result = np.unique(raw.astype(np.int64))
    if len(result) != len(raw):
        raise error(f"{name}: expected distinct indices, got repeated ones")
    if len(result) and (result[0] < 0 or result[-1] >= size):
        bad = int(result[0] if result[0] < 0 else result[-1])
        raise error(f"{name}: expected indices from 0 to {size - 1}, got {bad}")
    result.flags.writeable = False
    return result


def positive_number(
    name: str,
    value: object,
    error: type[AllocoptError] = InvalidOption,
    *,
    zero: bool = False,
    infinite: bool = False,
) -> float:
    """A float that is > 0 (>= 0 with ``zero``), finite unless ``infinite``."""
    wanted = f"a {'non-negative' if zero else 'positive'}{'' if infinite else ', finite'} number"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise error(f"{name}: expected {wanted}, got {_describe(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        raise error(f"{name}: expected {wanted}, got {_describe(value)}") from None
    if not (number > 0 or (zero and number == 0)) or (number == float("inf") and not infinite):
        raise error(f"{name}: expected {wanted}, got {number!r}")
    return number


def whole_number(name: str, value: object, error: type[AllocoptError] = InvalidOption, *, least: int = 0) -> int:
    """An int (or a float that is one, such as 1e6) that is at least ``least``."""
    wanted = f"a whole number >= {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise error(f"{name}: expected {wanted}, got {_describe(value)}")
    number: Any = value
    if not isinstance(value, int) and not math.isfinite(value):
        raise error(f"{name}: expected {wanted}, got {value!r}")
    if number != int(number) or number < least:
        raise error(f"{name}: expected {wanted}, got {_describe(number)}")
    return int(number)


def in_range(name: str, values: Array, error: type[AllocoptError], *, power: int = 1, each: bool = False) -> None:
    """Refuse magnitudes whose squares and quotients would leave the range of doubles.

    Of vectors only the largest entry counts; with ``each``, every positive finite entry does.
    """
    if each:  # costs, gaps, radii: none is negative
        size = values[np.isfinite(values) & (values != 0)]
        top, bottom = float(size.max(initial=0.0)), float(size.min(initial=np.inf))
    else:
        finite = values[np.isfinite(values)] if np.isinf(values).any() else values
        top = bottom = float(max(finite.max(initial=0.0), -finite.min(initial=0.0)))
    if top == 0.0:
        return
    limit = LARGEST**power
    if top > limit or bottom < 1 / limit:
        bad = top if top > limit else bottom
        raise error(f"{name}: expected magnitudes between {1 / limit:g} and {limit:g}, got {bad:g}; use other units")
    if values.ndim == 2:  # a row may be zero, or tiny beside the others, but its squares must not vanish
        with np.errstate(invalid="ignore"):
            rows = np.maximum(values.max(axis=1), -values.min(axis=1))
        vanishing = np.flatnonzero((rows > 0) & (rows < 1 / limit**2))
        if len(vanishing):
            i = int(vanishing[0])
            raise error(
                f"{name}: expected rows that are zero or of magnitude {1 / limit**2:g} at least, but row {i} is {rows[i]:g}"
            )


def frozen(array: Array) -> Array:
    """The same array, read-only."""
    array.flags.writeable = False
    return array
