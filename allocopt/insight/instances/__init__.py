"""Named families of instances, with the value of c in closed form where one is known (docs/instances.md derives each).

Tests, the demo, the benchmarks and studies share them. `build` makes an instance from a name and plain numbers, as a file can
give them; the functions behind the names can be called as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_type_hints

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import did_you_mean
from allocopt.insight.instances.exact import (
    circle,
    circle_value,
    counter_example,
    counter_example_value,
    equal_gaps,
    equal_gaps_value,
    finite_armed,
    hypercube,
    hypercube_value,
    optimism_example,
    optimism_example_value,
    soare,
    soare_value,
    spaced_gaps,
    spaced_gaps_value,
)
from allocopt.insight.instances.random_sets import (
    clustered,
    grid_paths,
    independent_value,
    near_ties,
    random_unit,
    spectral,
)
from allocopt.model.bandit import LinearBandit

__all__ = ["FAMILIES", "REQUIRED", "Family", "Parameter", "build", "circle", "clustered", "counter_example"]
__all__ += ["equal_gaps", "finite_armed", "grid_paths", "hypercube", "known_value", "near_ties", "optimism_example"]
__all__ += ["random_unit", "soare", "spaced_gaps", "spectral"]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""Stands where a parameter has no default."""


class Parameter(NamedTuple):
    """A family's parameter: its default (or `REQUIRED`) and its type."""

    default: Any
    annotation: type


@dataclass(frozen=True)
class Family:
    """A named family of instances.

    Attributes
    ----------
    name : str
        Its name on the command line and in studies.
    build : callable
        Makes the instance from scalars given by keyword.
    summary : str
        What its instances are, in a sentence.
    closed_form : callable or None
        c from the same parameters (None for those it does not cover), where a closed form is known.

    Examples
    --------
    >>> FAMILIES["hypercube"].parameters["scale"]
    Parameter(default=1.0, annotation=<class 'float'>)
    """

    name: str
    build: Callable[..., LinearBandit]
    """Makes the instance from scalars given by keyword."""
    summary: str
    closed_form: Callable[..., float | None] | None = None
    """c from the same parameters (None for those it does not cover); None where no closed form is known at all."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name → (default or `REQUIRED`, type), from the signature of ``build``."""
        hints = get_type_hints(self.build)
        return MappingProxyType(
            {
                name: Parameter(REQUIRED if p.default is inspect.Parameter.empty else p.default, hints[name])
                for name, p in inspect.signature(self.build).parameters.items()
            }
        )


_LISTED = (
    Family(
        "counter-example", counter_example, "the paper's example in d dimensions: c = 2a²(d−1)", counter_example_value
    ),
    Family("optimism-example", optimism_example, "where optimism fails: c = 128a² for small ε", optimism_example_value),
    Family("finite-armed", spaced_gaps, "orthogonal arms, gaps evenly spaced: c = Σ 2/Δ", spaced_gaps_value),
    Family("equal-gaps", equal_gaps, "random arms with one gap Δ: c = 2(d−1)/Δ", equal_gaps_value),
    Family("circle", circle, "evenly spaced on the unit circle: c = 2/(1 − cos(2π/k))", circle_value),
    Family("soare", soare, "best-arm identification's hard case: c = d − 2 + 1/(1 − cos ω)", soare_value),
    Family("hypercube", hypercube, "all sign vectors, equal weights: c = (d−1)/scale", hypercube_value),
    *(
        Family(name, make, summary, partial(independent_value, make))
        for name, make, summary in (
            ("random-unit", random_unit, "uniform on the unit sphere"),
            ("clustered", clustered, "clusters of arms around random unit vectors"),
            ("near-ties", near_ties, "a few arms with one tiny, exact gap"),
            ("spectral", spectral, "nodes of a graph, a smooth signal as means"),
            ("grid-paths", grid_paths, "shortest paths on a grid with random costs"),
        )
    ),
)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({family.name: family for family in _LISTED})
"""Every family by name."""


@spelled
def build(name: str, **parameters: Any) -> LinearBandit:
    """The instance of a named family; its parameters are given by keyword.

    Examples
    --------
    >>> build("counter-example", epsilon=0.1).n_arms
    3
    """
    return _checked(name, parameters).build(**parameters)


@spelled
def known_value(name: str, **parameters: Any) -> float | None:
    """c of that instance in closed form, or None where it is not known.

    Examples
    --------
    >>> known_value("counter-example", epsilon=0.25, a=2, dim=5), known_value("random-unit", dim=5, n_arms=20)
    (32.0, None)
    """
    closed_form = _checked(name, parameters).closed_form
    return None if closed_form is None else closed_form(**parameters)


def _checked(name: str, parameters: Mapping[str, Any]) -> Family:
    """The family, once the names of its parameters are known to be right (their values are checked by ``build``)."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise InvalidOption(
            f"family: expected one of {', '.join(FAMILIES)}, got {name!r}{did_you_mean(name, FAMILIES)}"
        )
    family = FAMILIES[name]
    for given in parameters:
        if given not in family.parameters:
            known = ", ".join(family.parameters)
            meant = did_you_mean(given, family.parameters)
            raise InvalidOption(f"{given}: not a parameter of the family {name!r} (it has: {known}){meant}")
    for wanted, parameter in family.parameters.items():
        if parameter.default is REQUIRED and wanted not in parameters:
            raise InvalidOption(f"{wanted}: the family {name!r} needs it, got none")
    return family


def __dir__() -> list[str]:
    return sorted(__all__)
