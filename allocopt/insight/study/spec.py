"""StudySpec: what a study computes, declared as data and checked before anything runs."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.base.json_data import json_data
from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.base.validation import positive_number, whole_number
from allocopt.insight.study.design import MOST_INSTANCES, Design, Point, grid_values, parameter_value, random_values
from allocopt.insight.study.family import checked_source
from allocopt.insight.study.quantities import QUANTITIES, WITH_WIDTH
from allocopt.insight.study.source import Source
from allocopt.solving.refine import method_names

__all__ = ["RESERVED", "StudySpec"]

RESERVED = ("instance", "quantity", "value", "lower", "upper", "status", "reason")
"""Columns of the table, besides one for each parameter."""

_KEYS = (
    "name", "quantities", "tol", "method", "width", "repeats", "seed", "row_seconds", "row_gigabytes", "family", "fixed", "grid",
    "random",
)  # fmt: skip
ROW_SECONDS = 600.0
ROW_GIGABYTES = 4.0


@dataclass(frozen=True)
class StudySpec:
    """A sweep: which family of instances, at which parameters, and which quantities of each. Made by `from_toml` or `from_dict`.

    Attributes
    ----------
    name : str
        What the study is called.
    source : Family or function
        What makes an instance from its parameters.
    design : sequence of mappings
        The parameters of each instance.
    quantities : tuple of str
        What is computed of each instance.
    tol : float
        The relative gap that is asked for.
    method : str
        The method of `solve`.
    width : float, str or None
        The confidence width of "optimism" and "price": a number, or the name of the parameter that it is.
    row_seconds, row_gigabytes : float
        What an instance that a user's function makes may take, in time and memory, before it is a FAILED row.
    document : mapping or None
        The spec as it was given, in plain data.

    Examples
    --------
    >>> spec = StudySpec.from_dict({
    ...     "family": {"name": "counter-example"},
    ...     "grid": {"epsilon": {"logspace": [0.001, 0.1], "n": 3}, "informative": [True, False]},
    ...     "quantities": ["c", "ucb", "ratio"],
    ... })
    >>> len(spec.design), spec.design[1]
    (6, {'epsilon': 0.001, 'informative': False})
    """

    name: str
    source: Source
    design: Design
    quantities: tuple[str, ...]
    tol: float = DEFAULT_TOL
    method: str = "auto"
    width: float | str | None = None
    row_seconds: float = ROW_SECONDS
    row_gigabytes: float = ROW_GIGABYTES
    document: Mapping[str, Any] | None = None

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> StudySpec:
        """Read and check a spec; paths in it are relative to its own folder. `InvalidFile` says which key is wrong."""
        source = file_path(path)
        try:
            content = tomllib.loads(source.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise InvalidFile(f"{source}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise InvalidFile(f"{source}: expected TOML text, but it is not UTF-8 text") from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidFile(f"{source}: not valid TOML: {error}") from None
        try:
            return cls.from_dict({"name": source.stem, **content}, folder=source.parent)
        except InvalidOption as error:
            raise InvalidFile(f"{source}: {error}") from None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, folder: str | PathLike[str] = ".") -> StudySpec:
        """Check a spec given as nested dictionaries, with the keys of the TOML file. ``family`` may be a function.

        ``folder`` is where relative paths start.
        """
        if not isinstance(content, Mapping):
            raise InvalidOption(
                f"spec: expected a dictionary or the path of a TOML file, got a {type(content).__name__}"
            )
        _check_keys("", content, _KEYS)
        name = content.get("name", "study")
        if not isinstance(name, str) or not name:
            raise InvalidOption(f"name: expected a text, got {name!r}")
        quantities = _quantities(content.get("quantities"))
        tol = positive_number("tol", content.get("tol", DEFAULT_TOL))
        method = content.get("method", "auto")
        if not isinstance(method, str) or (method != "auto" and method not in method_names()):
            raise InvalidOption(f"method: expected auto or one of {', '.join(method_names())}, got {method!r}")
        design = _design(content)
        source, design = checked_source(content.get("family"), Path(folder), design)
        width = _width(content.get("width"), quantities, design)
        seconds = positive_number("row_seconds", content.get("row_seconds", ROW_SECONDS))
        gigabytes = positive_number("row_gigabytes", content.get("row_gigabytes", ROW_GIGABYTES))
        document = json_data(content, _function_name)
        return cls(name, source, design, quantities, tol, method, width, seconds, gigabytes, document)

    @cached_property
    def n_instances(self) -> int:
        """How many instances the study has."""
        return len(self.design) if self.source.names is None else len(self.source.names)

    @property
    def parameters(self) -> Mapping[str, type]:
        """The columns of the table that say which instance a row is of, and the type of their values."""
        return {"source": str} if self.source.names is not None else {x: self.design.kind(x) for x in self.design.names}

    def point(self, index: int) -> Point:
        """The parameters of an instance: its values in those columns."""
        return self.design[index] if self.source.names is None else {"source": self.source.names[index]}

    def canonical(self) -> dict[str, Any]:
        """What makes this study this study: two studies with the same canonical form have the same table."""
        d = self.design
        return {
            "family": self.source.identity(),
            "fixed": dict(d.fixed),
            "grid": {name: list(values) for name, values in d.grid.items()},
            "random": {name: [x.kind, *x.of] for name, x in d.random.items()},
            "draws": d.draws,
            "repeats": d.repeats,
            "seed": d.seed,
            "quantities": list(self.quantities),
            "tol": self.tol,
            "method": self.method,
            "width": self.width,
            "columns": list(self.parameters),
            **({} if self.source.harmless else {"row_seconds": self.row_seconds, "row_gigabytes": self.row_gigabytes}),
        }


def _check_keys(prefix: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise InvalidOption(f"{prefix}{key}: unknown key ({hint})")


def _quantities(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise InvalidOption(f"quantities: expected a list of names out of {', '.join(QUANTITIES)}, got {given!r}")
    for x in given:
        if not isinstance(x, str) or x not in QUANTITIES:
            near = difflib.get_close_matches(str(x), QUANTITIES, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(QUANTITIES)}"
            raise InvalidOption(f"quantities: {x!r} is unknown ({hint})")
    if len(set(given)) < len(given):
        raise InvalidOption(f"quantities: expected each once, got {', '.join(given)}")
    return tuple(given)


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, Mapping):
        raise InvalidOption(f"{key}: expected a table of parameters, got {table!r}")
    for name in table:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidOption(f"{key}.{name}: expected a parameter's name (letters, digits and _)")
        if name in RESERVED:
            raise InvalidOption(f"{key}.{name}: the table has a column of its own with this name; rename the parameter")
    return table


def _design(content: Mapping[str, Any]) -> Design:
    """The points; every parameter has one place only."""
    fixed = {name: parameter_value(f"fixed.{name}", v) for name, v in _table(content, "fixed").items()}
    grid, drawn = _table(content, "grid"), _table(content, "random")
    if "grid" in content and "random" in content:
        raise InvalidOption("random: expected either [grid] or [random], got both")
    draws = None
    if "random" in content:
        if "n" not in drawn:
            raise InvalidOption("random.n: expected the number of points to draw, got none")
        draws = whole_number("random.n", drawn["n"], least=1)
        drawn = {name: v for name, v in drawn.items() if name != "n"}
    axes = {name: grid_values(f"grid.{name}", v) for name, v in grid.items()}
    distributions = {name: random_values(f"random.{name}", v) for name, v in drawn.items()}
    repeats = whole_number("repeats", content["repeats"], least=1) if "repeats" in content else None
    seed = whole_number("seed", content.get("seed", 0))
    if seed >= 2**62:
        raise InvalidOption(f"seed: expected a whole number below 2**62, got {seed}")
    for name in fixed:
        if name in axes or name in distributions:
            raise InvalidOption(f"fixed.{name}: the parameter varies too, in [{'grid' if name in axes else 'random'}]")
    if repeats is not None and "seed" in (*fixed, *axes, *distributions):
        raise InvalidOption("repeats: each repeat gets a seed of its own, so the parameter seed must not be given")
    points = 1
    for values in axes.values():
        points *= len(values)
    total = (points if draws is None else draws) * (repeats or 1)
    if total > MOST_INSTANCES:
        key = "repeats" if repeats is not None else "grid" if draws is None else "random.n"
        raise InvalidOption(f"{key}: expected at most {MOST_INSTANCES} instances in all, got {total}; split the study")
    return Design(fixed, axes, distributions, draws, repeats, seed)


def _width(given: Any, quantities: tuple[str, ...], design: Design) -> float | str | None:
    wanting = [q for q in quantities if q in WITH_WIDTH]
    if given is None:
        if wanting:
            raise InvalidOption(
                f"width: expected the confidence width of {wanting[0]!r} (a number, or the name of a parameter), got none"
            )
        return None
    if not wanting:
        raise InvalidOption(f"width: only {' and '.join(WITH_WIDTH)} have a width, and neither is among the quantities")
    if not isinstance(given, str):
        return positive_number("width", given)
    if given not in design.names:
        raise InvalidOption(
            f"width: expected a number or the name of a parameter ({', '.join(design.names) or 'there is none'}), got {given!r}"
        )
    for value in design.extremes(given):
        positive_number(f"width (parameter {given})", value)
    return given


def _function_name(value: Any) -> Any:
    """Where a function was given, its name: JSON cannot hold the function."""
    if not callable(value):
        return value
    return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__name__)}"
