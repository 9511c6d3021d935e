"""Numbers and arrays as JSON can hold them: infinities are the strings "inf" and "-inf", nan is null."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["json_data", "json_number"]


def json_number(x: float) -> float | str | None:
    """A number for a JSON document.

    Examples
    --------
    >>> json_number(2), json_number(float("inf")), json_number(float("nan"))
    (2.0, 'inf', None)
    """
    number = float(x)
    if math.isfinite(number):
        return number
    return None if math.isnan(number) else "inf" if number > 0 else "-inf"


def json_data(value: Any, other: Callable[[Any], Any] = lambda value: value) -> Any:
    """Mappings, sequences, arrays and numbers within each other as plain JSON data; ``other`` converts what is none of these.

    Examples
    --------
    >>> json_data({"x": np.array([1.0, np.inf]), "n": 3})
    {'x': [1.0, 'inf'], 'n': 3}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): json_data(entry, other) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_data(entry, other) for entry in value]
    if isinstance(value, float):
        return json_number(value)
    return other(value)
