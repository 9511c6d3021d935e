"""LinearConstraints: Bα <= b on the allocation of a program, kept as the entries of B that are not 0."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from allocopt.base.errors import InvalidProgram, SlowWarning, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.validation import Array, IntArray, frozen, in_range, matrix, vector
from allocopt.linear.dense import group_sums
from allocopt.linear.floating import TINY, gamma

__all__ = ["LinearConstraints"]

_BYTES_OF_AN_ENTRY, _SECONDS_OF_AN_ENTRY = 100.0, 1e-6  # as measured, listing and solving
_LONG = 10.0  # seconds
_WANTED = (
    "expected a pair (B, b): B with a row for each constraint and a column for each arm, b with an entry for each row"
)


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """Bα <= b, row by row; the entries of B that are not 0 are listed in the order of its rows.

    Examples
    --------
    >>> rows = LinearConstraints.checked(([[1, 1, 0], [0, 0, -2]], [5, -1]), 3)
    >>> rows.n_rows, rows.n_arms
    (2, 3)
    >>> rows.used(np.array([1.0, 2.0, 3.0]))
    array([ 3., -6.])
    >>> rows.met_by(np.array([1.0, 4.0, 0.5])), rows.met_by(np.array([1.0, 4.5, 0.5]))
    (True, False)
    """

    places: IntArray
    """The row of each entry."""
    arms: IntArray
    """Its column."""
    values: Array
    limits: Array
    """b."""
    n_arms: int

    @classmethod
    def checked(cls, given: Any, n_arms: int) -> Self:
        """The constraints of a program, from (B, b) with B dense or sparse."""
        if isinstance(given, cls):
            if given.n_arms != n_arms:
                raise InvalidProgram(f"constraints: expected columns for {n_arms} arms, got {given.n_arms}")
            return given
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise InvalidProgram(f"constraints: {_WANTED}, got {_described(given)}")
        limits = vector("constraints: b", given[1], InvalidProgram)
        places, arms, values, shape = _entries(given[0])
        if shape != (len(limits), n_arms) or not len(limits):
            raise InvalidProgram(
                f"constraints: {_WANTED}; there are {n_arms} arms, B has shape {shape} and b {len(limits)} entries"
            )
        return cls.listed(places, arms, values, limits, n_arms)

    @classmethod
    def listed(cls, places: Any, arms: Any, values: Any, limits: Any, n_arms: int) -> Self:
        """From entries, each with its row and its arm, none of them twice."""
        entries = vector("constraints: B", values, InvalidProgram)
        rows, columns = np.asarray(places, dtype=np.int64), np.asarray(arms, dtype=np.int64)
        at_most = vector("constraints: b", limits, InvalidProgram)
        for name, array in (("constraints: B", entries), ("constraints: b", at_most)):
            in_range(name, np.abs(array), InvalidProgram, each=True)
        kept = np.flatnonzero(entries)
        place = rows[kept] * n_arms + columns[kept]
        order = kept if (np.diff(place) > 0).all() else kept[np.argsort(place, kind="stable")]
        return cls(rows[order], columns[order], frozen(entries[order]), at_most, n_arms)

    @property
    def n_rows(self) -> int:
        """The number of constraints."""
        return len(self.limits)

    @property
    def constrained(self) -> Any:
        """Whether each arm occurs in a constraint."""
        return np.bincount(self.arms, minlength=self.n_arms) > 0

    def used(self, allocation: Array) -> Array:
        """Bα, rounded. Arms that occur in no row may be infinite."""
        return group_sums(self.places, self.values * allocation[self.arms], self.n_rows)

    def terms(self, allocation: Array) -> Array:
        """|B|α for α >= 0: what the rounding of Bα is relative to."""
        return group_sums(self.places, np.abs(self.values) * allocation[self.arms], self.n_rows)

    def unmet(self, allocation: Array) -> IntArray:
        """The rows that an allocation violates, decided without error: in rationals where doubles do not tell."""
        error = gamma(len(self.values) + 8) * (self.terms(allocation) + np.abs(self.limits)) + TINY
        excess = self.used(allocation) - self.limits
        unsure = np.flatnonzero(np.abs(excess) <= error)
        wrong = excess > error
        for row in unsure.tolist():
            wrong[row] = self.exact_excess(row, allocation) > 0
        return np.flatnonzero(wrong)

    def met_by(self, allocation: Array) -> bool:
        """Whether Bα <= b, exactly."""
        return not len(self.unmet(allocation))

    def exact_excess(self, row: int, allocation: Array) -> Fraction:
        """(Bα − b) of a row, exactly."""
        start, stop = np.searchsorted(self.places, (row, row + 1))
        played = allocation[self.arms[start:stop]]
        products = (
            Fraction(c) * Fraction(x) for c, x in zip(self.values[start:stop].tolist(), played.tolist(), strict=True)
        )
        return sum(products, Fraction(0)) - Fraction(float(self.limits[row]))

    def __repr__(self) -> str:
        return f"LinearConstraints(n_rows={self.n_rows}, n_arms={self.n_arms}, entries={len(self.values)})"


def _entries(given: Any) -> tuple[IntArray, IntArray, Array, tuple[int, ...]]:
    """Row, column and value of every entry of B that is not 0, and its shape."""
    if hasattr(given, "tocoo") and len(getattr(given, "shape", ())) == 2:  # a matrix of scipy.sparse
        _check_size(given.nnz)
        listed = given.tocoo(copy=True)
        listed.sum_duplicates()
        places, arms = listed.row.astype(np.int64), listed.col.astype(np.int64)
        values = vector("constraints: B", listed.data, InvalidProgram)
        shape = tuple(int(n) for n in given.shape)
    else:
        dense = matrix("constraints: B", given, InvalidProgram)
        _check_size(int(np.count_nonzero(dense)))
        places, arms = (found.astype(np.int64) for found in np.nonzero(dense))
        values, shape = dense[places, arms], dense.shape
    return places, arms, values, shape


def _check_size(entries: int) -> None:
    """Refuse more entries than fit into memory, and say before it starts where they take long."""
    what = f"constraints: B: {entries:,} entries that are not 0"
    check_memory(_BYTES_OF_AN_ENTRY * entries, what, InvalidProgram)
    seconds = _SECONDS_OF_AN_ENTRY * entries
    if seconds > _LONG:
        warn_caller(f"{what}: solving takes about {duration_text(seconds)}", SlowWarning)


def _described(given: Any) -> str:
    return f"{len(given)} things" if isinstance(given, tuple | list) else f"a {type(given).__name__}"
