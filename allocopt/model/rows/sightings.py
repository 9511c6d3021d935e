"""Sightings: which arms playing an arm shows, and how noisily, kept as a list instead of an array with a column for every arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from allocopt.base.conversion import NotAnArray, as_array
from allocopt.base.errors import InvalidInstance
from allocopt.base.lazy import Lazy
from allocopt.base.machine import check_memory
from allocopt.base.validation import Array, IntArray, frozen

__all__ = ["SightedArray", "Sightings"]

_MOST_ENTRIES = 10**8  # of an array that is made when somebody asks for it: 0.8 GB
_BYTES_OF_AN_ENTRY = 80.0  # of a list of what is shown
_AT_ONCE = 2**24  # entries of a table that are counted at once


@dataclass(frozen=True, eq=False)
class Sightings:
    """Rows of a program of side observations: playing ``owners[n]`` shows the mean of arm ``columns[n]``.

    Rows are in the order of their owners, and of what they show. An arm that shows nothing has one row, whose column is k.

    Examples
    --------
    >>> seen = Sightings.checked(np.array([1.0, 0.5, 0.0]), [[1, np.inf, 2], [np.inf] * 3, [np.inf, 1, np.inf]])
    >>> seen.owners.tolist(), seen.columns.tolist(), seen.variances.tolist()
    ([0, 0, 1, 2], [0, 2, 3, 1], [1.0, 2.0, 1.0, 1.0])
    >>> seen.shown, seen.best
    ([[0, 2], [], [1]], 0)
    """

    means: Array
    owners: IntArray
    columns: IntArray
    variances: Array
    """σ² of each row; 1 where it shows nothing."""

    @classmethod
    def checked(cls, means: Array, variances: Any) -> Self:
        """From σ²_ij: an array with inf where playing i does not show j, or a matrix of `scipy.sparse` that lists what is shown."""
        k = len(means)
        players, seen, values = _listed(variances, k)
        wrong = np.flatnonzero(~(values > 0))
        if len(wrong):
            i, j, value = int(players[wrong[0]]), int(seen[wrong[0]]), float(values[wrong[0]])
            raise InvalidInstance(
                f"variances: expected entries > 0, inf where an arm is not seen, but entry [{i}, {j}] is {value!r}"
            )
        finite = np.isfinite(values)
        players, seen, values = players[finite], seen[finite], values[finite]
        blind = np.setdiff1d(np.arange(k), players)
        owners, columns = np.concatenate([players, blind]), np.concatenate([seen, np.full(len(blind), k)])
        order = np.lexsort((columns, owners))
        noise = np.concatenate([values, np.ones(len(blind))])[order]
        return cls(means, owners[order], columns[order], frozen(noise))

    @property
    def n_arms(self) -> int:
        """k."""
        return len(self.means)

    @cached_property
    def best(self) -> int:
        """The arm of the largest mean."""
        return int(np.argmax(self.means))

    @cached_property
    def others(self) -> IntArray:
        """All other arms: those that are to be told from it."""
        return np.delete(np.arange(self.n_arms), self.best)

    @property
    def shown(self) -> list[list[int]]:
        """What every arm shows."""
        ends = np.searchsorted(self.owners, np.arange(1, self.n_arms))
        return [[j for j in part.tolist() if j < self.n_arms] for part in np.split(self.columns, ends)]

    @cached_property
    def known(self) -> Any:
        """Whether each arm is shown by the best one, so that its mean is known for nothing."""
        known = np.zeros(self.n_arms + 1, dtype=bool)
        known[self.columns[self.owners == self.best]] = True
        return known[:-1]

    @cached_property
    def unseen(self) -> IntArray:
        """Arms whose means must be known, but which no arm shows."""
        needed = np.ones(self.n_arms, dtype=bool)
        needed[self.columns[self.columns < self.n_arms]] = False
        return np.flatnonzero(needed)

    def features(self) -> Array:
        """A unit vector for every row."""
        rows = self._empty(len(self.owners))
        at = np.flatnonzero(self.columns < self.n_arms)
        rows[at, self.columns[at]] = 1.0
        return frozen(rows)

    def targets(self) -> Array:
        """e_j − e_* for all arms j but the best."""
        rows = self._empty(self.n_arms - 1)
        rows[np.arange(self.n_arms - 1), self.others] = 1.0
        rows[:, self.best] = -1.0
        return frozen(rows)

    def norms(self, counts: Array) -> Array:
        """||e_j − e_*||²_{G^-1} = 1/N_j + 1/N_* for all arms j but the best, of so much information from each row (n/σ²)."""
        information = np.bincount(self.columns, counts, self.n_arms + 1)
        with np.errstate(divide="ignore"):
            unknown = 1.0 / information
        norms: Array = unknown[self.others] + unknown[self.best]
        return norms

    def quotient_norms(self, counts: Array) -> Array:
        """The same in the limit of endless plays of the best arm."""
        return self.norms(np.where(self.owners == self.best, np.inf, counts))

    def _empty(self, n_rows: int) -> Array:
        if n_rows * self.n_arms > _MOST_ENTRIES:
            raise InvalidInstance(
                f"variances: expected at most {_MOST_ENTRIES:,} entries in an array of rows, got {n_rows * self.n_arms:,}; "
                "`solve` with method 'auto' does without that array"
            )
        return np.zeros((n_rows, self.n_arms))


class SightedArray(Lazy):
    """The features or the targets of a program of side observations, made when somebody asks for them."""

    def __init__(self, sightings: Sightings, name: str) -> None:
        super().__init__(getattr(sightings, name))
        self.sightings = sightings


def sightings_of(program: Any) -> Sightings | None:
    """Who shows whom, of a program whose arrays are those of its origin: `dataclasses.replace` may have put others there."""
    seen: Sightings | None = program.origin.sightings
    if seen is None or program._sightings is not None:  # arrays that were never made were never replaced
        return seen
    gaps = program.origin.bandit.gaps
    variances = 1.0 if program.noise_variance is None else program.noise_variance
    same = (
        np.array_equal(program.costs, gaps)
        and np.array_equal(program.radii, gaps[seen.others] ** 2 / 2)
        and np.array_equal(program.target_arms, seen.others)
        and np.array_equal(program.owners, seen.owners)
        and bool((seen.variances == variances).all())
        and np.array_equal(program.targets, seen.targets())
        and np.array_equal(program.features, seen.features())
    )
    return seen if same else None


def _listed(given: Any, k: int) -> tuple[IntArray, IntArray, Array]:
    """Row, column and value of every variance that may be finite."""
    wanted = f"variances: expected numbers of shape ({k}, {k}), one row for each arm played"
    if hasattr(given, "tocoo") and len(getattr(given, "shape", ())) == 2:  # a matrix of scipy.sparse
        if given.shape != (k, k) or given.dtype.kind not in "fiu":
            raise InvalidInstance(f"{wanted}, got shape {given.shape}")
        listed = given.tocoo(copy=True)
        listed.sum_duplicates()
        return listed.row.astype(np.int64), listed.col.astype(np.int64), listed.data.astype(np.float64)
    try:
        raw = as_array(given)
    except NotAnArray as problem:
        raise InvalidInstance(f"variances: {problem}") from None
    if raw.shape != (k, k) or raw.dtype.kind not in "fiu":
        raise InvalidInstance(f"{wanted}, got shape {raw.shape}")
    _check_size(raw, k)
    players, seen = (found.astype(np.int64) for found in np.nonzero(raw != np.inf))
    return players, seen, raw[players, seen].astype(np.float64)


def _check_size(table: NDArray[Any], k: int) -> None:
    """Refuse a table that shows too much to be listed, as soon as so much of it was seen."""
    shown, at_once = 0, max(_AT_ONCE // max(k, 1), 1)
    for first in range(0, k, at_once):
        shown += int(np.count_nonzero(table[first : first + at_once] != np.inf))
        what = f"variances: listing what {k:,} arms show, {shown:,} entries or more,"
        check_memory(_BYTES_OF_AN_ENTRY * shown + table.size, what, InvalidInstance)
