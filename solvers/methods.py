"""The table of methods: what each can solve, how it scales and what it can be tuned by, as data.

`allocopt.solve` chooses by it, its error messages are made of it, and ``allocopt methods`` prints it. A method's own module loads
when it is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from allocopt.base.errors import InvalidOption, SlowWarning, warn_caller
from allocopt.base.machine import duration_text
from allocopt.base.validation import did_you_mean
from allocopt.certify.canonical import Canonical
from allocopt.solvers.closed_form import EqualGaps, no_formula, structure
from allocopt.solvers.design import no_common_ratio
from allocopt.solvers.settings import (
    ActiveSetSettings,
    ClosedFormSettings,
    ConicSettings,
    DesignSettings,
    FrankWolfeSettings,
    InteriorPointSettings,
    Settings,
    StreamingSettings,
    by_blocks,
    designs_by_blocks,
    weights_by_blocks,
)

__all__ = ["AUTO", "AUTO_BY_BLOCKS", "METHODS", "Method", "backend", "checked_settings", "say_if_long"]

_SECONDS_OF_DIMENSIONS = 1.5e-7  # times the cube of their number: masters of random arms, as measured from 100 to 300
_BY_MASTERS = ("interior-point", "active-set", "design", "streaming")
_LONG = 30.0  # seconds


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    name: str
    module: str
    summary: str
    settings: type[Settings]
    """The record of what it can be tuned by."""
    bounds: bool
    """Whether it can handle lower or upper bounds on the allocation."""
    starts: bool
    """Whether it can begin from the solution of a similar program."""
    constraints: bool = False
    """Whether it can handle linear constraints Bα <= b."""
    most_arms: int | None = None
    """More arms than this would exhaust time or memory: refused before solving."""
    needs: Callable[[Canonical], str | None] | None = None
    """What else a problem must have: says what is missing, or None."""
    block_by_block: bool = False
    """Whether it takes arms that are looked at block by block, and these only."""
    by_blocks: str | None = None
    """The method that stands for this one where arms are looked at block by block; None where they are read into memory."""
    settings_by_blocks: Callable[[Any], Settings] | None = None
    """Translates settings of this method into settings of that one."""

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its settings."""
        return tuple(setting.name for setting in self.settings.listed())

    def lacks(self, problem: Canonical) -> str | None:
        """Why this method cannot solve a problem whose arms are in memory, or None if it can."""
        if self.block_by_block:
            return "takes arms that are looked at block by block (those of this program are in memory)"
        if not self.constraints and problem.limits is not None:
            return "cannot handle linear constraints on the allocation"
        if not self.bounds and not problem.scalable:
            return "cannot handle lower or upper bounds on the allocation"
        if self.most_arms is not None and len(problem.features) > self.most_arms:
            what = "arms" if problem.owners is None else "rows of all arms together"
            return f"takes at most {self.most_arms} {what} (this program has {len(problem.features)})"
        return None if self.needs is None else self.needs(problem)

    def for_blocks(self, settings: Settings | None) -> tuple[Method, Settings | None] | None:
        """The method, and its settings, for arms that are looked at block by block; None where there is none."""
        if self.block_by_block:
            return self, settings
        if self.by_blocks is None:
            return None
        translated = self.settings_by_blocks
        return METHODS[self.by_blocks], None if translated is None else translated(settings or self.settings())


METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method(
            "closed-form", "closed_form", "formulas: independent directions, one-dimensional quotient, equal gaps",
            ClosedFormSettings, bounds=False, starts=False, needs=no_formula,
        ),
        Method(
            "design", "design", "G-optimal designs and equal gaps as D-optimal designs; O(k r^2) a product, screened",
            DesignSettings, bounds=False, starts=True, needs=no_common_ratio, by_blocks="streaming",
            settings_by_blocks=designs_by_blocks,
        ),
        Method(
            "interior-point", "interior_point", "primal-dual Newton on the whole program, O(k^3) a step",
            InteriorPointSettings, bounds=True, starts=True, constraints=True, most_arms=4000,
        ),
        Method(
            "active-set", "active_set", "interior point on a few arms, priced against all; O(k r^2) a pass",
            ActiveSetSettings, bounds=True, starts=True, constraints=True, by_blocks="streaming", settings_by_blocks=by_blocks,
        ),
        Method(
            "streaming", "streaming", "active-set on a pool of arms; each pass looks at all of them, block by block",
            StreamingSettings, bounds=True, starts=True, block_by_block=True,
        ),
        Method(
            "frank-wolfe", "frank_wolfe", "pairwise steps on a smoothed maximum; any-time, first order",
            FrankWolfeSettings, bounds=False, starts=False, by_blocks="streaming", settings_by_blocks=weights_by_blocks,
        ),
        Method(
            "conic", "conic", "cvxpy: CLARABEL (default), SCS or a licensed MOSEK",
            ConicSettings, bounds=True, starts=False, constraints=True, most_arms=5000,
        ),
    )
}  # fmt: skip

AUTO: tuple[tuple[str, int | None], ...] = (("closed-form", None), ("interior-point", 100), ("active-set", None))
"""`auto` takes the first of these that applies and whose number of arms is not exceeded."""
AUTO_BY_BLOCKS = "streaming"
"""`auto` where arms are looked at block by block."""


def backend(method: Method) -> Callable[..., dict[str, Any]]:
    """The ``solve(problem, monitor, settings=…, start=…)`` of a method."""
    solve: Callable[..., dict[str, Any]] = importlib.import_module(f"allocopt.solvers.{method.module}").solve
    return solve


def checked_settings(method: Method, settings: Any, options: Mapping[str, Any]) -> Settings | None:
    """The settings of a method from a record or from keywords; None where neither was given, and the defaults hold."""
    unknown = [name for name in options if name not in method.options]
    if unknown:
        known = ", ".join(method.options) or "none"
        meant = did_you_mean(unknown[0], method.options)
        raise InvalidOption(f"{unknown[0]}: not an option of method {method.name!r} (it has: {known}){meant}")
    record = method.settings.__name__
    if settings is not None:
        if not isinstance(settings, method.settings):
            raise InvalidOption(
                f"settings: expected a record of type {record} for method {method.name!r}, got {type(settings).__name__}"
            )
        if options:
            name = next(iter(options))
            raise InvalidOption(f"{name}: expected it as a keyword or as a part of settings, got both")
        return settings
    return method.settings(**options) if options else None


def say_if_long(method: Method, rank: int, problem: Canonical | None = None) -> None:
    """Warn before it starts where there are so many dimensions that a method's Newton matrices take long."""
    seconds = _SECONDS_OF_DIMENSIONS * rank**3
    if seconds <= _LONG:
        return
    designs = method.name == "closed-form" and problem is not None and isinstance(structure(problem), EqualGaps)
    if method.name in _BY_MASTERS or designs:
        warn_caller(
            f"solving in {rank:,} dimensions takes about {duration_text(seconds)} or more; max_seconds= ends it with what is "
            "proven by then",
            SlowWarning,
        )
