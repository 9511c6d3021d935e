"""The points of a study: a grid or a random design over named parameters, and repeats over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import whole_number

__all__ = ["MOST_INSTANCES", "Design", "Point", "grid_values", "parameter_value", "random_values"]

MOST_INSTANCES = 10_000_000
"""A study may have so many instances: its table is put together in memory (about 100 bytes a row)."""

Point = dict[str, Any]
"""The parameters of one instance."""

_MOST_TRIED = 100  # values of an axis that are all tried before a study begins; of more, only the ends

_GRIDS = {"linspace": "n", "logspace": "n", "arange": "step"}
_DISTRIBUTIONS = ("uniform", "loguniform", "integer", "choice")


def parameter_value(key: str, value: Any) -> Any:
    """One value of a parameter as plain Python data: a bool, an int, a float, a string or a list of numbers."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not _is_unicode(value):
            raise InvalidOption(f"{key}: expected a text that UTF-8 can hold, got {value!r}")
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidOption(f"{key}: expected a whole number of at most 64 bits, got {value}")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidOption(f"{key}: expected a finite number, got {value!r}")
        return value
    if isinstance(value, list | tuple) and value:
        entries = [parameter_value(f"{key}[{i}]", v) for i, v in enumerate(value)]
        for i, entry in enumerate(entries):
            if isinstance(entry, bool) or not isinstance(entry, int | float):
                raise InvalidOption(f"{key}[{i}]: expected a number, as a list of numbers is one value, got {entry!r}")
        return [float(x) for x in entries]
    raise InvalidOption(f"{key}: expected a number, a string, true or false, or a list of numbers, got {_shown(value)}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _of_one_kind(key: str, values: Sequence[Any]) -> list[Any]:
    """Values of one kind, so that they fill one column; whole numbers among fractions become fractions."""
    if not values:
        raise InvalidOption(f"{key}: expected at least one value, got an empty list")
    checked = [parameter_value(f"{key}[{i}]", v) for i, v in enumerate(values)]
    kinds = {type(v) for v in checked}
    if kinds == {int, float}:
        return [float(v) for v in checked]
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidOption(f"{key}: expected values of one kind, got {names}")
    return checked


def _ends(key: str, value: Any, whole: bool = False, positive: bool = False) -> tuple[Any, Any]:
    """Two ends, the first below the second."""
    wanted = f"[start, stop], two {'positive ' if positive else ''}{'whole ' if whole else ''}numbers in rising order"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidOption(f"{key}: expected {wanted}, got {_shown(value)}")
    low, high = (parameter_value(key, v) for v in value)
    number = int if whole else (int, float)
    if any(isinstance(v, bool) or not isinstance(v, number) for v in (low, high)):
        raise InvalidOption(f"{key}: expected {wanted}, got {_shown(value)}")
    if low > high or (positive and low <= 0):
        hint = "; give the values themselves, not their exponents" if positive else ""
        raise InvalidOption(f"{key}: expected {wanted}, got {_shown(value)}{hint}")
    return low, high


def _one_of(key: str, table: Mapping[str, Any], names: Sequence[str]) -> str:
    found = [name for name in names if name in table]
    if len(found) != 1:
        raise InvalidOption(f"{key}: expected exactly one of {', '.join(names)}, got {_shown(dict(table))}")
    return found[0]


def _no_others(key: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InvalidOption(f"{key}.{unknown[0]}: unknown key (known here: {', '.join(known)})")


def grid_values(key: str, given: Any) -> list[Any]:
    """The values along one axis of a grid, from a list or a small table such as ``{linspace = [0, 1], n = 11}``.

    Examples
    --------
    >>> grid_values("grid.epsilon", {"logspace": [0.001, 0.1], "n": 3})
    [0.001, 0.01, 0.1]
    >>> grid_values("grid.dim", {"arange": [2, 9], "step": 3})
    [2, 5, 8]
    """
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, list | tuple):
        values = _of_one_kind(key, given)
    elif isinstance(given, Mapping):
        kind = _one_of(key, given, tuple(_GRIDS))
        _no_others(key, given, (kind, _GRIDS[kind]))
        if kind == "arange":
            low, high = _ends(f"{key}.arange", given[kind], whole=True)
            step = whole_number(f"{key}.step", given.get("step", 1), least=1)
            values = list(range(low, high, step)) if (high - low) // step <= MOST_INSTANCES else []
            if not values:
                raise InvalidOption(
                    f"{key}.arange: expected a stop above the start (it is left out), got {given[kind]!r}"
                )
        else:
            low, high = _ends(f"{key}.{kind}", given[kind], positive=kind == "logspace")
            if "n" not in given:
                raise InvalidOption(f"{key}.n: expected the number of values of the {kind}, got none")
            n = whole_number(f"{key}.n", given["n"], least=1)
            if n > MOST_INSTANCES:
                raise InvalidOption(f"{key}.n: expected at most {MOST_INSTANCES} values, got {n}")
            spaced = np.linspace(low, high, n) if kind == "linspace" else np.geomspace(low, high, n)
            values = [float(f"{x:.15g}") for x in spaced[:-1]]  # 0.01, not 0.010000000000000002
            values = [float(low), *values[1:], float(high)] if n > 1 else [float(low)]
    else:
        hint = "; a single value belongs to [fixed]" if isinstance(given, str | int | float) else ""
        raise InvalidOption(f"{key}: expected a list of values or a table such as {{linspace = [0, 1], n = 11}}, "
                            f"got {_shown(given)}{hint}")  # fmt: skip
    seen: set[str] = set()
    for value in values:
        if repr(value) in seen:
            raise InvalidOption(f"{key}: expected different values, got {value!r} twice; use repeats to repeat")
        seen.add(repr(value))
    return values


@dataclass(frozen=True)
class _Distribution:
    """What one parameter of a random design is drawn from."""

    kind: str
    of: tuple[Any, ...]

    def draw(self, n: int, rng: np.random.Generator) -> list[Any]:
        if self.kind == "choice":
            return [self.of[i] for i in rng.integers(0, len(self.of), n).tolist()]
        low, high = self.of
        if self.kind == "integer":
            return rng.integers(low, high, n, endpoint=True).tolist()  # type: ignore[no-any-return]
        if self.kind == "uniform":
            return rng.uniform(low, high, n).tolist()  # type: ignore[no-any-return]
        drawn = np.exp(rng.uniform(math.log(low), math.log(high), n))
        return np.clip(drawn, low, high).tolist()  # type: ignore[no-any-return]


def random_values(key: str, given: Any) -> _Distribution:
    """The distribution of one parameter, from a small table such as ``{uniform = [0, 1]}``.

    Examples
    --------
    >>> random_values("random.dim", {"integer": [2, 9]})
    _Distribution(kind='integer', of=(2, 9))
    """
    if not isinstance(given, Mapping):
        raise InvalidOption(
            f"{key}: expected a table such as {{uniform = [0, 1]}} ({', '.join(_DISTRIBUTIONS)}), got {_shown(given)}"
        )
    kind = _one_of(key, given, _DISTRIBUTIONS)
    _no_others(key, given, (kind,))
    if kind == "choice":
        values = given[kind].tolist() if isinstance(given[kind], np.ndarray) else given[kind]
        if not isinstance(values, list | tuple):
            raise InvalidOption(f"{key}.choice: expected a list of values, got {_shown(values)}")
        return _Distribution(kind, tuple(_of_one_kind(f"{key}.choice", values)))
    low, high = _ends(f"{key}.{kind}", given[kind], whole=kind == "integer", positive=kind == "loguniform")
    return _Distribution(kind, (low, high) if kind == "integer" else (float(low), float(high)))


@dataclass(frozen=True)
class Design:
    """All points of a study, made when asked for: ``design[i]`` is that of instance i.

    The last axis of a grid runs fastest, repeats faster still.

    Examples
    --------
    >>> design = Design({"a": 2.0}, {"epsilon": [0.1, 0.2]}, {}, None, 3, 7)
    >>> len(design), design[4]
    (6, {'a': 2.0, 'epsilon': 0.2, 'seed': 11})
    """

    fixed: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]
    random: Mapping[str, _Distribution]
    draws: int | None
    """How many points a random design has; None for a grid."""
    repeats: int | None
    """How many seeds each point gets; None where the family is given no seed."""
    seed: int
    _drawn: dict[str, list[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, distribution in self.random.items():
            # each parameter has a stream of its own, so that adding one leaves the others as they were
            stream = np.random.SeedSequence(self.seed, spawn_key=tuple(name.encode()))
            self._drawn[name] = distribution.draw(self.draws or 0, np.random.default_rng(stream))

    def __len__(self) -> int:
        return self.points * (self.repeats or 1)

    @property
    def points(self) -> int:
        """How many different points there are, repeats aside."""
        return self.draws if self.draws is not None else math.prod(len(values) for values in self.grid.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order of the table's columns."""
        return (*self.fixed, *self.grid, *self.random, *(("seed",) if self.repeats is not None else ()))

    def __getitem__(self, index: int) -> Point:
        index = range(len(self))[index]
        position = index // (self.repeats or 1)
        point = dict(self.fixed)
        if self.draws is not None:
            point |= {name: drawn[position] for name, drawn in self._drawn.items()}
        else:
            along = {}
            for name, values in reversed(list(self.grid.items())):
                position, i = divmod(position, len(values))
                along[name] = values[i]
            point |= {name: along[name] for name in self.grid}
        if self.repeats is not None:
            point["seed"] = self.seed + index
        return point

    def extremes(self, name: str) -> list[Any]:
        """Values of a parameter that stand for all: those of a list, the ends of a range or of a long list."""
        if name in self.fixed:
            return [self.fixed[name]]
        if name in self.grid:
            values = self.grid[name]
            return list(values) if len(values) <= _MOST_TRIED else [values[0], min(values), max(values)]
        if name in self.random:
            return list(dict.fromkeys(self.random[name].of))
        return [self.seed]

    def kind(self, name: str) -> type:
        """The type that all values of a parameter have."""
        return type(self.extremes(name)[0])
