"""JSON: numbers and arrays as it can hold them ("inf" and "-inf" are strings, nan is null), and files read strictly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidFile

__all__ = ["json_data", "json_number", "read_json"]


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


def read_json(source: Path, refusal: type[InvalidFile] = InvalidFile) -> Any:
    """A JSON file's content, or `InvalidFile` with what is wrong and where; a key that is there twice raises ``refusal``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise refusal(f"{source}: the key {twice!r} is there twice; which one is meant?")
        return result

    try:
        return json.loads(source.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except InvalidFile:
        raise
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
