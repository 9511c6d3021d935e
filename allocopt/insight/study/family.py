"""The family of a study: one of `allocopt.instances` by its name, a user's function, or files."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allocopt.base.errors import AllocoptError, InvalidOption
from allocopt.insight import instances
from allocopt.insight.study.design import Design, Point
from allocopt.insight.study.files import instance_files
from allocopt.insight.study.function import check_signature, has_parameter, named_function, passed_function
from allocopt.insight.study.source import Source
from allocopt.model.bandit import LinearBandit

__all__ = ["NamedFamily", "checked_source"]


@dataclass(frozen=True)
class NamedFamily(Source):
    """A family of `allocopt.instances`."""

    name: str

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    def make(self, entry: Point) -> LinearBandit:
        return instances.FAMILIES[self.name].build(**entry)  # `check` has seen to the names

    @property
    def takes_seed(self) -> bool:
        return has_parameter(instances.FAMILIES[self.name].build, "seed")

    def check(self, design: Design) -> None:
        check_signature(f"family {self.name!r}", instances.FAMILIES[self.name].build, design)
        self._check_ranges(design)

    def _check_ranges(self, design: Design) -> None:
        """Refuse values that the family refuses by name, whatever the other parameters are.

        Combinations that cannot be are failed rows of the table: they are known only when they are made.
        """
        corners = [design[0], design[len(design) - 1]]
        for name in design.names:
            place = next((k for k in ("fixed", "grid", "random") if name in getattr(design, k)), None)
            for value in design.extremes(name):
                reasons = [self._refusal({**corner, name: value}) for corner in corners]
                if all(reason is not None and reason.startswith(f"{name}:") for reason in reasons):
                    raise InvalidOption(f"{f'{place}.{name}' if place else name}: out of range: {reasons[0]}")

    def _refusal(self, point: Point) -> str | None:
        try:
            self.make(point)
        except AllocoptError as error:
            return str(error)
        return None


def checked_source(given: Any, folder: Path, design: Design) -> tuple[Source, Design]:
    """The family of a spec, fit for its design; a family with seeds gets one for each instance, with repeats or without."""
    source = _source(given, folder)
    if source.takes_seed and "seed" not in design.names:
        design = dataclasses.replace(design, repeats=1)
    source.check(design)
    return source, design


def _source(given: Any, folder: Path) -> Source:
    kinds = ("name", "function", "instances")
    wanted = 'a table with one of name = "…", function = "file.py:function" or instances = "folder or .jsonl file"'
    if callable(given):
        return passed_function(given)
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in kinds:
        raise InvalidOption(f"family: expected {wanted}, got {dict(given) if isinstance(given, Mapping) else given!r}")
    kind, value = next(iter(given.items()))
    if kind == "function" and callable(value):
        return _source(value, folder)
    if kind == "instances" and isinstance(value, str | Path):
        return instance_files(folder / value)
    if not isinstance(value, str):
        raise InvalidOption(f"family.{kind}: expected a text, got {value!r}")
    if kind == "name":
        if value not in instances.FAMILIES:
            near = difflib.get_close_matches(value, instances.FAMILIES, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(instances.FAMILIES)}"
            raise InvalidOption(f"family.name: {value!r} is unknown ({hint})")
        return NamedFamily(value)
    return named_function(value, folder)
