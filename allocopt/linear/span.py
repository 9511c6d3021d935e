r"""Which rows and columns span a set of rows: proposed in floating point, then checked entry by entry, exactly.

One rule for the whole package. With basis rows F (pivot rows) and as many columns P, a row x *lies in the span* if
x_c = x_P F_P^-1 F_c in every other column c, exactly; it lies there *up to rounding* if the difference is at most
`ROUNDING_LEVEL` times the terms |x_c| + Σ |coefficient · F_c|, in its own column, which no change of units alters. The first
needs no assumption, the second is an `Assumption` with its exact size, and whatever is larger is outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import scipy.linalg as sla

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import RANK
from allocopt.base.validation import Array, IntArray
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import ENTRY_ERROR
from allocopt.linear.modulo import Modulo
from allocopt.linear.scaling import equilibrated

__all__ = ["Span", "column_units", "free_span", "largest_share", "outside_span", "span_of", "spanning_coordinates"]

_SUSPECT = 1e-9  # ratio of the weakest to the strongest pivot below which the columns are chosen again
_CERTIFIABLE = 16.0 * ENTRY_ERROR  # relative size of a direction that entries with rounding can still be shown to span
_CLEARLY = 1e-3  # shares above this are no rounding, whatever the error of a share in floating point
_MANY = 4096  # shares that are compared exactly; the exact ones are close to those in floating point


def column_units(*matrices: Array) -> Array:
    """A power of two for every column that brings its largest entry to [1/2, 1): nothing depends on units after that."""
    top = np.max([np.abs(m).max(axis=0, initial=0.0) for m in matrices], axis=0)
    units: Array = np.ldexp(1.0, -np.frexp(np.where(top > 0, top, 0.5))[1])
    return units


@dataclass(frozen=True, eq=False)
class Span:
    """Rows and columns that span some rows, and the quotient map that they define."""

    rows: IntArray
    columns: tuple[int, ...]
    modulo: Modulo
    """Modulo these rows (and the free pivots), in the columns that are left."""
    assumptions: tuple[Assumption, ...] = field(default=())


def spanning_coordinates(rows: Array, sizes: Array | None = None) -> tuple[int, ...]:
    """Columns that seem to determine all others on the span of ``rows``; as many as the rank in floating point.

    Rows and columns are equilibrated by powers of two, so units do not matter. A sample of rows is looked at first: if it
    spans everything, the others cannot change the answer. ``sizes`` are those of the numbers that each row was computed
    from, where these are larger than the row itself: what rounding did to it is relative to them; columns then have the units
    in which those numbers are of one size.
    """
    k, d = rows.shape
    size = 8 * d + 32
    if k > 4 * size:
        few = np.linspace(0, k - 1, size).astype(np.int64)
        found = _spanning_coordinates(rows[few], None if sizes is None else sizes[few])
        if len(found) == d:
            return found
    return _spanning_coordinates(rows, sizes)


def _spanning_coordinates(rows: Array, sizes: Array | None) -> tuple[int, ...]:
    balanced = equilibrated(rows)[0] if rows.size else rows
    if len(balanced) > 4 * balanced.shape[1]:
        balanced = np.asarray(np.linalg.qr(balanced, mode="r"))
    if not balanced.any():
        return ()
    columns, weakest = _pivot_columns(balanced, RANK)
    if weakest > _SUSPECT:
        return columns
    # small rows, and rows and columns of which little is left, were scaled up together with their rounding
    even = rows * column_units(rows) if sizes is None else rows
    size = np.sqrt(squared_row_lengths(even)) if sizes is None else sizes
    even = even[size > 0] / size[size > 0][:, None]
    fewer, _ = _pivot_columns(even * column_units(even) if sizes is None else even, _CERTIFIABLE)
    return fewer if len(fewer) <= len(columns) else columns


def _pivot_columns(rows: Array, tolerance: float) -> tuple[tuple[int, ...], float]:
    """The columns that pivoted QR takes for independent, and the share of the weakest of them in the strongest."""
    factor, order = sla.qr(rows, mode="r", pivoting=True, check_finite=False)[-2:]
    diagonal = np.abs(np.diag(factor)) / abs(factor[0, 0])
    rank = int((diagonal > tolerance).sum())
    return tuple(sorted(int(c) for c in order[:rank])), float(diagonal[rank - 1])


def spanning_rows(rows: Array) -> IntArray:
    """As many rows as there are columns, that seem to be independent (all of them where there are fewer)."""
    if not rows.any():
        return np.zeros(0, dtype=np.int64)
    order = sla.qr(equilibrated(rows)[0].T, mode="r", pivoting=True, check_finite=False)[-1]
    return np.sort(order[: rows.shape[1]]).astype(np.int64)


def free_span(rows: Array, arms: IntArray) -> Span:
    """Rows that span those of the free ``arms``, with pivot columns; ``rows`` have columns in `column_units`.

    Every other free arm is checked to lie in the span. Complete pivoting proposes; what it misses is added.
    """
    free = rows[arms]
    pivots, columns = _complete_pivoting(free)
    while True:
        modulo = _modulo(rows, arms[pivots], columns)
        share = modulo.shares(free)
        if not share.any() or not _beyond(modulo, free, share):
            return Span(arms[pivots], tuple(columns), modulo, _assumed(modulo, free, arms, share, "free arms"))
        i, j = np.unravel_index(int(np.argmax(share)), share.shape)
        pivots.append(int(i))
        columns.append(int(modulo.columns[j]))


def span_of(rows: Array, arms: IntArray, free: Span, quotient_rows: Array) -> Span:
    """Free pivots and further ``arms`` that span the rows of all ``arms`` modulo the free ones.

    ``quotient_rows`` are their rows in the quotient, with entries that may be rounding set to 0: they propose. Then every arm is
    checked to lie in the span.
    """
    kept = free.modulo.columns
    sizes = np.sqrt(squared_row_lengths(rows[arms]))
    local = list(spanning_coordinates(quotient_rows, sizes)) if quotient_rows.size else []
    while True:
        dropped = [c for c in range(len(kept)) if c not in local]
        if not dropped:  # nothing to check: the certificate proves that the arms span every column
            return Span(arms[:0], tuple(int(c) for c in kept[local]), Modulo(rows[:0], (), np.zeros(0, dtype=np.int64)))
        basis = arms[spanning_rows(quotient_rows[:, local])] if local else arms[:0]
        if len(basis) < len(local):
            raise SolverFailed("the rank of the arms could not be decided")
        whole = _modulo(rows, np.concatenate([free.rows, basis]), [*free.columns, *kept[local].tolist()])
        share = whole.shares(rows[arms])
        if not share.any() or not _beyond(whole, rows[arms], share):
            break
        local = sorted([*local, int(np.flatnonzero(kept == whole.columns[np.argmax(share.max(axis=0))])[0])])
    assumed = _assumed(whole, rows[arms], arms, share, "arms")
    return Span(basis, tuple(int(c) for c in kept[local]), whole, assumed)


def outside_span(span: Span, rows: Array) -> Array:
    """For every row how far it is from the span: 0 if it lies in it exactly, else the largest share of its entries."""
    shares: Array = span.modulo.shares(rows).max(axis=1, initial=0.0)
    return shares


def largest_share(modulo: Modulo, rows: Array) -> tuple[Fraction, int]:
    """The largest share |rest|/terms over all rows and columns, exactly, and the row that has it."""
    return _exact_largest(modulo, rows, modulo.shares(rows))


def _exact_largest(modulo: Modulo, rows: Array, share: Array) -> tuple[Fraction, int]:
    """The largest share, exactly, among all entries or, where these are very many, the ones that seem largest."""
    places = np.argwhere(share > 0.0)
    if len(places) > _MANY:
        places = places[np.argsort(-share[share > 0.0], kind="stable")[:_MANY]]
    best, where = Fraction(0), -1
    for i, j in places.tolist():
        exact = modulo.exact_share(rows[i], j)
        if exact > best:
            best, where = exact, i
    return best, where


def _beyond(modulo: Modulo, rows: Array, share: Array) -> bool:
    """Whether the largest share is more than rounding, exactly where it is close."""
    if float(share.max()) > _CLEARLY:
        return True
    return _exact_largest(modulo, rows, share)[0] > ROUNDING_LEVEL


def _assumed(modulo: Modulo, rows: Array, arms: IntArray, share: Array, what: str) -> tuple[Assumption, ...]:
    size, where = _exact_largest(modulo, rows, share)
    if not size:
        return ()
    count = int((share > 0).any(axis=1).sum())
    text = (
        f"{count} of the {what} are combinations of the others only up to {float(size):.3g}, relative to the terms of these "
        "combinations; they are taken as exactly that"
    )
    return (Assumption("dependence", (int(arms[where]),), size, text),)


def _modulo(rows: Array, pivots: IntArray, columns: list[int]) -> Modulo:
    try:
        return Modulo.of(rows[pivots].reshape(len(pivots), rows.shape[1]), columns)
    except ZeroDivisionError:
        raise SolverFailed(
            "the rank of the arms could not be decided: the rows that seem to span them do not"
        ) from None


def _complete_pivoting(free_rows: Array) -> tuple[list[int], list[int]]:
    """Rows that seem to span ``free_rows``, with a pivot column each (on rows of equal size)."""
    top = np.abs(free_rows).max(axis=1, initial=0.0, keepdims=True)
    work = free_rows / np.where(top > 0, top, 1.0)
    rows: list[int] = []
    columns: list[int] = []
    for _ in range(min(work.shape)):
        i, j = np.unravel_index(int(np.argmax(np.abs(work))), work.shape)
        if abs(work[i, j]) <= RANK:
            break
        rows.append(int(i))
        columns.append(int(j))
        work = work - np.outer(work[:, j] / work[i, j], work[i])
        work[:, j] = 0.0
        work[i] = 0.0
    return rows, columns
