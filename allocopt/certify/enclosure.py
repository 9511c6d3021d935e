"""Enclosure: what `Solution.verify` proves, anew, from the user's doubles and the solution's allocation and multipliers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidOption, InvalidProof
from allocopt.base.lazy import payload
from allocopt.base.validation import Array
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.certify.reduction import reduce
from allocopt.certify.verdict import by_sight, fits_balls, in_balls, recertify
from allocopt.linear.assumptions import Assumption
from allocopt.model.solution import Solution, SparseVector, arms_in_use
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["Enclosure", "check_witness", "enclose"]

_MOST_BITS = 100_000  # of precision that `verify` accepts


@dataclass(frozen=True)
class Enclosure(Tabular):
    """A proven interval for the optimal value, with what it rests on.

    Attributes
    ----------
    lower, upper : float
        The ends: doubles, rounded outwards.
    assumptions : tuple of Assumption
        What the proof takes for granted, with exact sizes; empty if nothing.
    precision : int
        Bits of the arithmetic: 53 for the theorem on doubles, more for balls, 0 for rationals.
    problems : tuple of str
        Why the referee does not follow the claim of the solution, where it was asked and does not.
    """

    lower: float
    upper: float
    assumptions: tuple[Assumption, ...]
    """What the proof takes for granted, with exact sizes; empty if nothing."""
    precision: int
    """Bits of the arithmetic: 53 for the theorem on doubles, more for balls, 0 for rationals."""
    problems: tuple[str, ...] = ()
    """Why the referee does not follow the claim of the solution, where it was asked and does not."""

    @property
    def tied_gaps(self) -> Mapping[int, float]:
        """Arms taken as optimal whose exact gap is not zero, with that gap relative to its terms."""
        return MappingProxyType({i: float(a.size) for a in self.assumptions if a.kind == "tie" for i in a.arms})

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions as sentences."""
        return (*(a.text for a in self.assumptions), *self.problems)

    @property
    def midpoint(self) -> float:
        """The middle of the interval."""
        return self.lower + 0.5 * (self.upper - self.lower)

    @property
    def gap(self) -> float:
        """(upper − lower)/lower."""
        if self.upper == self.lower:
            return 0.0
        return (self.upper - self.lower) / self.lower if self.lower > 0 and math.isfinite(self.upper) else math.inf

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.intervals` of this interval; it takes several as well. Returns a matplotlib Figure."""
        return drawn("intervals", self, **options)

    def _table(self) -> Table:
        arithmetic = {0: "exact rationals", 53: "doubles, with every rounding error bounded"}
        facts = {
            "lower": repr(self.lower), "upper": repr(self.upper), "gap": f"{self.gap:.2g}",
            "arithmetic": arithmetic.get(self.precision, f"balls of {self.precision} bits"),
            "assuming": "; ".join(a.text for a in self.assumptions) or "nothing",
        }  # fmt: skip
        if self.problems:
            facts["not confirmed"] = "; ".join(self.problems)
        return Table("Proven interval", facts, {name: [text] for name, text in facts.items()})

    def _repr_html_(self) -> str:
        shown = self._table()
        return Table(shown.title, shown.facts).html()

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper


def enclose(solution: Solution, precision: int | None = None) -> Enclosure:
    """The interval that a solution's allocation and multipliers prove for its program.

    With ``precision``, in balls of so many bits; by default in doubles, with the theorem's margins, and in balls where these are
    wider than what the solution claims.
    """
    if precision is not None:
        whole = isinstance(precision, int) and not isinstance(precision, bool)
        if not whole or not 64 <= precision <= _MOST_BITS:
            raise InvalidOption(
                f"precision: expected a whole number of bits from 64 to {_MOST_BITS}, got {precision!r}"
            )
    check_witness(solution)
    lower, upper, assumptions, bits = _proven(solution, precision)
    return Enclosure(lower, upper, assumptions, bits)


def check_witness(solution: Solution) -> None:
    """Refuse what proves nothing: a solution may have been changed since it was found (`dataclasses.replace`).

    The inequalities hold for allocations and multipliers >= 0 only: a negative multiplier would prove too high a lower bound.
    """
    program = solution.program
    _check_entries(solution, "allocation", program.n_arms)
    unplayable = np.setdiff1d(solution.optimal_arms, program.free)
    if len(unplayable):
        raise InvalidProof(f"allocation: arm {unplayable[0]} is infinite without being free")
    _check_entries(solution, "multipliers", program.n_multipliers, infinite=False)
    if solution.constraint_multipliers is not None:
        rows = 0 if program.constraints is None else program.constraints.n_rows
        _check_entries(solution, "constraint_multipliers", rows, infinite=False)


def _check_entries(solution: Solution, name: str, length: int, *, infinite: bool = True) -> None:
    """Entries >= 0, as many as there have to be; of a vector of which a few entries are kept, these."""
    given = None if name == "constraint_multipliers" else payload(solution, name)
    sparse = given if isinstance(given, SparseVector) else None
    values: Array = getattr(solution, name) if sparse is None else sparse.values
    entries = len(values) if sparse is None else sparse.length
    if entries != length:
        raise InvalidProof(f"{name}: expected {length} entries, got {entries}")
    good = (values >= 0) & (infinite | np.isfinite(values))
    if not good.all():
        i = int(np.flatnonzero(~good)[0])
        place = i if sparse is None else int(sparse.places[i])
        raise InvalidProof(f"{name}: expected numbers >= 0, but entry {place} is {float(values[i])!r}")


def _proven(solution: Solution, precision: int | None) -> tuple[float, float, tuple[Assumption, ...], int]:
    """What a solution's allocation and multipliers prove, anew: lower and upper bound, assumptions, bits of the arithmetic."""
    program = solution.program
    if precision is None and program._blocks is not None:
        problem = StreamedProblem(program)
        bounds = problem.proven(*arms_in_use(solution))
        return bounds.lower, bounds.upper, problem.assumptions, 53
    if program._sightings is not None:
        found = by_sight(program._sightings, solution.allocation, solution.multipliers, precision or 128)
        return found.lower, found.upper, (), precision or 128
    if precision is None:
        given = solution.allocation, solution.multipliers, solution.method, solution.tol
        again = recertify(program, *given, {}, solution.constraint_multipliers)
        within = solution.lower <= again.lower and again.upper <= solution.upper
        if within or solution.gap == math.inf or not fits_balls(reduce(program)):
            return again.lower, again.upper, again.assumptions, 53
    reduction = reduce(program)
    witness = solution.allocation, solution.multipliers, precision, solution.constraint_multipliers
    lower, upper, bits = in_balls(reduction, *witness)
    return lower, upper, reduction.assumptions, bits
