"""Arguments of users as checked arrays and numbers, or an error that says what was wrong with them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy import typing as np_typing
from numpy.typing import NDArray

from allocopt.base.conversion import NotAnArray, as_array, as_doubles, entries, place, unchanging
from allocopt.base.errors import AllocoptError, InvalidOption
from allocopt.base.tolerances import LARGEST, SMALLEST_ENTRY

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
ArrayLike: TypeAlias = np_typing.ArrayLike | Sequence[Any]
"""What users may pass for an array: whatever NumPy makes one of. (To type checkers, rows that mix 1 and 0.5 are lists of objects.)"""

__all__ = [
    "Array",
    "ArrayLike",
    "IntArray",
    "did_you_mean",
    "finite_number",
    "frozen",
    "in_range",
    "index_array",
    "matrix",
    "not_vanishing",
    "positive_number",
    "smallest_entry",
    "vector",
    "whole_number",
]


_MISSPELT = 0.9
"""From this likeness on (2 · common letters/all letters) a name is taken for another one with a slip of the keys."""


def _describe(value: object) -> str:
    """A few words on a value that was not what we wanted."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, str | bytes | int | float | complex | bool | None.__class__):
        text = repr(value.item() if isinstance(value, np.generic) else value)
        return text if len(text) <= 60 else text[:57] + "..."
    if isinstance(value, Sequence):
        try:
            return f"a {type(value).__name__} of {len(value)} items"
        except Exception:  # a user's own class may raise anything
            pass
    return f"a {type(value).__name__}"


def _ragged(value: object) -> str | None:
    """Where a nested sequence stops being rectangular, if it does."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not _length(value):
        return None
    lengths = [_length(row) for row in value]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            return f"row {i} has {_items(length)} but row 0 has {_items(lengths[0])}"
    return None


def _length(row: object) -> int | None:
    try:
        return None if isinstance(row, str | bytes) else len(row)  # type: ignore[arg-type]
    except Exception:  # it has none, or a user's own class raises something
        return None


def _items(length: int | None) -> str:
    return "no length (a single value)" if length is None else f"{length} entries"


def _array(name: str, value: object, ndim: int, error: type[AllocoptError], *, infinite: bool) -> Array:
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == ndim:  # nothing to convert
        result: Array = value
    else:
        result = _converted(name, value, ndim, error)
    if not unchanging(result):  # a read-only array is shared instead of copied, however large it is
        result = np.array(result, order="C")
    if not (~np.isnan(result) if infinite else np.isfinite(result)).all():
        bad = np.isnan(result) if infinite else ~np.isfinite(result)
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise error(f"{name}: expected finite numbers, but {place(where)} is {result[where]}")
    result.flags.writeable = False
    return result


def _converted(name: str, value: object, ndim: int, error: type[AllocoptError]) -> Array:
    """An array of doubles of so many dimensions from whatever users pass."""
    shape = {1: "a vector of numbers", 2: "a matrix of numbers (one row per vector)"}[ndim]
    try:
        raw = as_array(value)
    except NotAnArray as problem:
        ragged = _ragged(value)
        if ragged is None:
            raise error(f"{name}: {problem}") from None
        raise error(f"{name}: expected {shape}, but the rows have different lengths: {ragged}") from None
    if raw.dtype == object and (ragged := _ragged(value)):
        raise error(f"{name}: expected {shape}, but the rows have different lengths: {ragged}")
    if raw.dtype == object and raw.ndim and raw.size:
        raw = entries(name, raw, error, shape)
    if raw.dtype.kind not in "fiub":
        hint = "; write its .arms" if name == "arms" and hasattr(value, "arms") else ""
        raise error(f"{name}: expected {shape}, got {_describe(value)}{_odd_entry(value, raw)}{hint}")
    if raw.ndim != ndim:
        raise error(f"{name}: expected {shape}, got {_describe(value)} with {raw.ndim} dimension(s)")
    doubles = as_doubles(name, raw, error, given=value)
    if raw.dtype != np.float64:  # made here: nobody else has it, so that it need not be copied once more
        doubles.flags.writeable = False
    return doubles


def _odd_entry(value: Any, raw: np.ndarray[Any, Any]) -> str:
    """The first entry that is no number, of an array that holds something else than numbers."""
    if not raw.ndim or not raw.size:
        return ""
    given = np.asarray(value, dtype=object).flat if isinstance(value, list | tuple) else raw.flat
    odd = (entry for entry in given if not isinstance(entry, int | float | np.integer | np.floating))
    return f", which holds {_describe(next(odd, raw.flat[0]))}"


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
    if type(value) is np.ndarray and value.dtype == np.int64 and value.ndim == 1 and _increasing_below(value, size):
        result = value.copy()
        result.flags.writeable = False
        return result
    try:
        raw = as_array(value)
    except NotAnArray as problem:
        raise error(
            f"{name}: {str(problem).replace('expected numbers', 'expected a list of whole numbers', 1)}"
        ) from None
    if raw.size == 0 and raw.ndim == 1:
        raw = raw.astype(np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iu":
        raise error(f"{name}: expected a list of whole numbers, got {_describe(value)}")
    if len(raw) and (raw.min() < 0 or raw.max() >= size):
        bad = int(raw.min() if raw.min() < 0 else raw.max())
        raise error(f"{name}: expected indices from 0 to {size - 1}, got {bad}")
    result = np.unique(raw.astype(np.int64))
    if len(result) != len(raw):
        raise error(f"{name}: expected distinct indices, got repeated ones")
    result.flags.writeable = False
    return result


def _increasing_below(indices: IntArray, size: int) -> bool:
    """Whether whole numbers increase from 0 at least to below ``size``."""
    if not len(indices):
        return True
    return bool(indices[0] >= 0 and indices[-1] < size and (indices[1:] > indices[:-1]).all())


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


def finite_number(name: str, value: object, error: type[AllocoptError] = InvalidOption) -> float:
    """A finite float of either sign."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise error(f"{name}: expected a finite number, got {_describe(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        raise error(f"{name}: expected a finite number, got {_describe(value)}") from None
    if not math.isfinite(number):
        raise error(f"{name}: expected a finite number, got {number!r}")
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
    if values.size and _all_ordinary(values):
        return
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
    if power == 1 and not each:  # vectors: their entries are multiplied with each other
        least = smallest_entry(values)
        if least < SMALLEST_ENTRY:
            at = place(tuple(int(i) for i in np.argwhere(np.abs(values) == least)[0]))
            not_vanishing(name, least, error, at)


def _all_ordinary(values: Array) -> bool:
    """Whether all entries are 0 or of a magnitude that is refused nowhere: what is most often the case, and quickly seen."""
    size = np.abs(values)
    if not size.max() <= LARGEST:
        return False
    least = size.min()
    if least == 0.0:
        positive = size[size > 0.0]
        least = positive.min() if len(positive) else np.inf
    return bool(least >= 1.0 / LARGEST)


def smallest_entry(values: Array) -> float:
    """The smallest magnitude of an entry that is not zero; inf where all are zero."""
    return float(np.min(np.abs(values), where=values != 0, initial=np.inf))


def not_vanishing(name: str, least: float, error: type[AllocoptError], where: str = "one") -> None:
    """Refuse entries whose products with each other would leave the range of doubles; ``least`` is the smallest."""
    if least < SMALLEST_ENTRY:
        raise error(
            f"{name}: expected entries that are zero or of magnitude {SMALLEST_ENTRY:g} at least, but {where} is {least:g}; "
            "use other units or 0"
        )


def frozen(array: Array) -> Array:
    """The same array, read-only."""
    array.flags.writeable = False
    return array


def did_you_mean(name: object, known: Iterable[str], words: str = "did you mean") -> str:
    """What to add to an error about an unknown name: the known one that is nearest, or nothing where none is near.

    Capitals, hyphens, underscores and spaces do not count. A known name of three letters or more that is short for it comes before
    a longer one that is merely like it.

    Examples
    --------
    >>> did_you_mean("tolerance", ["tol", "tie_tolerance"])
    " (did you mean 'tol'?)"
    >>> did_you_mean("interior_pint", ["interior-point", "active-set"])
    " (did you mean 'interior-point'?)"
    >>> did_you_mean("magic", ["interior-point", "active-set"])
    ''
    """
    plain = {_plain(entry): entry for entry in known}
    given = _plain(str(name))
    near = difflib.get_close_matches(given, plain, 1, _MISSPELT)
    near = near or sorted((entry for entry in plain if len(entry) >= 3 and given.startswith(entry)), key=len)[-1:]
    near = near or difflib.get_close_matches(given, plain, 1)
    return f" ({words} {plain[near[0]]!r}?)" if near else ""


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")
