r"""Rows modulo a few pivot rows, every entry proven to a few units in the last place, zeros proven to be zeros.

With pivot rows F and as many pivot columns P such that F_P is regular, and K the other columns, the quotient of a row x is
q(x) = x_K − x_P C with C = F_P^-1 F_K. Subtraction cancels digits, and whether *all* of them cancelled decides ranks, so
nothing is left to a tolerance: an entry is computed in doubles where the bound on its rounding error says that this is
enough, else in double-double arithmetic, else in rationals. The result has a relative error of at most `ENTRY_ERROR` in
every entry, and an entry is 0 only if it is exactly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocopt.base.validation import Array, IntArray
from allocopt.linear import double_double as precise
from allocopt.linear.floating import ENTRY_ERROR, NOISE, PAIR_ERROR, TINY, UNIT

__all__ = ["Modulo", "rational_rows"]

_FEW = 1000  # entries that are computed in rationals even where the caller did not ask for it


@dataclass(frozen=True, eq=False)
class Modulo:
    """The quotient map of some pivot rows; ``columns`` are those of the result."""

    pivot_rows: Array
    """n × d, independent."""
    pivot_columns: tuple[int, ...]
    columns: IntArray

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels with C in doubles; rationals are made again where they are needed."""
        return _restored, (self.pivot_rows, self.pivot_columns, self.columns, self.rule)

    @classmethod
    def of(cls, pivot_rows: Array, pivot_columns: Any, columns: Any = None) -> Modulo:
        """By default all columns but the pivots' are kept. Raises ZeroDivisionError where the pivot rows are dependent."""
        width = pivot_rows.shape[1]
        kept = np.setdiff1d(np.arange(width), pivot_columns) if columns is None else np.asarray(columns, dtype=np.int64)
        made = cls(pivot_rows, tuple(int(c) for c in pivot_columns), kept)
        made.rule  # noqa: B018  (raises for dependent rows)
        return made

    @property
    def n(self) -> int:
        """How many pivots there are."""
        return len(self.pivot_columns)

    @cached_property
    def exact_rule(self) -> Any:
        """C in rationals."""
        from flint import fmpq_mat

        rows = rational_rows(self.pivot_rows)
        block = fmpq_mat([[row[c] for c in self.pivot_columns] for row in rows])
        return block.solve(fmpq_mat([[row[c] for c in self.columns.tolist()] for row in rows]))

    @cached_property
    def rule(self) -> tuple[Array, Array]:
        """C as double-double numbers, to `PAIR_ERROR` each."""
        if not self.n or not len(self.columns):
            return np.zeros((self.n, len(self.columns))), np.zeros((self.n, len(self.columns)))
        if self.n == 1:
            pivot = self.pivot_rows[:, list(self.pivot_columns)]
            if pivot[0, 0] == 0.0:
                raise ZeroDivisionError
            top = self.pivot_rows[:, self.columns]
            zero = np.zeros_like(top)
            return precise.divide((top, zero), (np.broadcast_to(pivot, top.shape), zero))
        exact = self.exact_rule
        high = np.array([[_nearest(exact[i, j]) for j in range(exact.ncols())] for i in range(self.n)])
        low = [[_nearest(exact[i, j] - _rational(high[i, j])) for j in range(exact.ncols())] for i in range(self.n)]
        return high, np.array(low)

    def __call__(self, rows: Array) -> Array:
        """q of every row."""
        return self.with_terms(rows)[0]

    def with_terms(self, rows: Array, rationals: bool = True) -> tuple[Array, Array]:
        """q of every row, and for every entry the sum of the absolute values of the terms that it is the sum of.

        Without ``rationals``, entries below 2^-90 of their terms that may or may not be 0 are nan.
        """
        kept = rows[:, self.columns]
        if not self.n or not kept.size:
            return kept, np.abs(kept)
        high, low = self.rule
        factors = rows[:, list(self.pivot_columns)]
        terms = np.abs(kept) + np.abs(factors) @ np.abs(high)
        quotient = kept - factors @ high
        # rounding of C, of each product, of the sum and of the difference, all relative to the terms
        doubtful = (self.n + 4) * UNIT * terms + TINY > ENTRY_ERROR * np.abs(quotient)
        has_terms = terms > 0
        if not has_terms.all():  # products may have vanished without being 0
            has_terms |= (factors != 0.0).astype(np.float64) @ (high != 0.0).astype(np.float64) > 0
        i, j = np.nonzero(doubtful & has_terms)
        if len(i):
            quotient[i, j] = self._in_pairs(kept[i, j], factors[i], high[:, j].T, low[:, j].T)
            error = (self.n + 2) * PAIR_ERROR * terms[i, j] + TINY
            undecided = np.flatnonzero(error > 0.5 * ENTRY_ERROR * np.abs(quotient[i, j]))
            if len(undecided):
                self._by_rationals(rows, quotient, i[undecided], j[undecided], rationals)
        return quotient, terms

    def _in_pairs(self, kept: Array, factors: Array, high: Array, low: Array) -> Array:
        """x_K − x_P C for single entries, in double-double arithmetic, rounded once."""
        total: precise.Pair = (kept, np.zeros_like(kept))
        for p in range(self.n):
            product = precise.multiply((factors[:, p], np.zeros_like(kept)), (high[:, p], low[:, p]))
            total = precise.add(total, precise.negative(product))
        return total[0]

    def _by_rationals(self, rows: Array, quotient: Array, i: IntArray, j: IntArray, rationals: bool) -> None:
        """Entries in rationals, rounded to the nearest double."""
        if self.n == 1:  # most often all of it cancels: x_K f_P = x_P f_K, and products of doubles are exact as pairs
            column = self.pivot_columns[0]
            left = precise.two_product(rows[i, self.columns[j]], np.full(len(i), self.pivot_rows[0, column]))
            right = precise.two_product(rows[i, column], self.pivot_rows[0, self.columns[j]])
            safe = np.abs(left[0]) > 2.0**-900  # where the pairs are exact
            same = (left[0] == right[0]) & (left[1] == right[1]) & safe
            quotient[i[same], j[same]] = 0.0
            i, j = i[~same], j[~same]
        elif len(i):  # copies of pivot rows are many where there are any
            some, back = np.unique(i, return_inverse=True)
            copy = np.zeros(len(some), dtype=bool)
            for pivot_row in self.pivot_rows:
                copy |= (rows[some] == pivot_row).all(axis=1)
            quotient[i[copy[back]], j[copy[back]]] = 0.0
            i, j = i[~copy[back]], j[~copy[back]]
            zero = self._proven_zero(rows, i, j)
            quotient[i[zero], j[zero]] = 0.0
            i, j = i[~zero], j[~zero]
        if not rationals and len(i) > _FEW:
            quotient[i, j] = np.nan
            return
        for row, column in zip(i.tolist(), j.tolist(), strict=True):
            quotient[row, column] = _nearest(self.exact_entry(rows[row], column))

    def _proven_zero(self, rows: Array, i: IntArray, j: IntArray) -> NDArray[np.bool_]:
        """Which of some entries are proven to be 0 without rationals: where C has small denominators, as it has for whole numbers.

        D x_c − Σ_p (D C_p) x_p with whole numbers D and D C below 2^53 is a sum of products that are exact as pairs. Adding
        doubles with their errors, again and again, leaves nothing but zeros if the sum is 0.
        """
        result = np.zeros(len(i), dtype=bool)
        for place in np.unique(j).tolist():
            here = np.flatnonzero(j == place)
            column = [self.exact_rule[p, place] for p in range(self.n)]
            common = math.lcm(*(int(c.q) for c in column))
            whole = [int(c.p) * (common // int(c.q)) for c in column]
            if max(common, *(abs(w) for w in whole)) >= 2**53:
                continue
            some = rows[i[here]]
            factors = [
                (float(common), int(self.columns[place])),
                *zip([-float(w) for w in whole], self.pivot_columns, strict=True),
            ]
            parts = [part for f, c in factors for part in precise.two_product(some[:, c], np.full(len(here), f))]
            for _ in range(len(parts) + 2):
                for n in range(1, len(parts)):
                    parts[n], parts[n - 1] = precise.two_sum(parts[n], parts[n - 1])
            tiny = np.min([np.where(some[:, c] != 0, np.abs(some[:, c]), 1.0) for _, c in factors], axis=0) < 2.0**-900
            result[here] = (np.array(parts) == 0.0).all(axis=0) & ~tiny
        return result

    def exact_entry(self, row: Any, place: int) -> Any:
        """One entry of q(row) as a rational, of a row of doubles or rationals; ``place`` counts in ``columns``."""
        value = _rational(row[self.columns[place]])
        for p, column in enumerate(self.pivot_columns):
            if row[column] != 0:
                value -= _rational(row[column]) * self.exact_rule[p, place]
        return value

    @cached_property
    def _exact_pivots(self) -> tuple[Any, list[list[Any]]]:
        """F_P^-1 and F_K in rationals."""
        from flint import fmpq_mat

        rows = rational_rows(self.pivot_rows)
        block = fmpq_mat([[row[c] for c in self.pivot_columns] for row in rows])
        return block.inv(), [[row[c] for c in self.columns.tolist()] for row in rows]

    def exact_share(self, row: Any, place: int) -> Fraction:
        """|entry| relative to |x_c| + Σ |coefficient · pivot entry|, with the coefficients of the pivot rows."""
        entry = abs(self.exact_entry(row, place))
        if entry == 0:
            return Fraction(0)
        terms = abs(_rational(row[self.columns[place]]))
        if self.n:
            from flint import fmpq_mat

            inverse, entries = self._exact_pivots
            coefficients = fmpq_mat([[_rational(row[c]) for c in self.pivot_columns]]) * inverse
            for p in range(self.n):
                terms += abs(coefficients[0, p] * entries[p][place])
        share = entry / terms
        return Fraction(int(share.p), int(share.q))

    def shares(self, rows: Array) -> Array:
        """`exact_share` of all entries in floating point: exactly 0 where the entry is, else a number to look closer by."""
        rest = self.with_terms(rows, rationals=False)[0]
        unknown = np.isnan(rest)
        if unknown.any():  # negligible beside entries that are known not to be 0; if there are none, rationals decide
            if (rest[~unknown] != 0.0).any():
                rest[unknown] = 0.0
            else:
                rest = self(rows)
        if not rest.any():
            return np.zeros_like(rest)
        terms = np.abs(rows[:, self.columns])
        if self.n:
            with np.errstate(all="ignore"):
                coefficients = self._coefficients(rows[:, list(self.pivot_columns)])
                terms = terms + np.abs(coefficients) @ np.abs(self.pivot_rows[:, self.columns])
        shares: Array = np.divide(np.abs(rest), terms, out=np.zeros_like(rest), where=(rest != 0.0) & (terms > 0.0))
        shares[(rest != 0.0) & ~(shares > 0.0)] = 1.0  # nothing is known of it here
        return shares

    def _coefficients(self, factors: Array) -> Array:
        """x_P F_P^-1 of every row, in floating point."""
        block = self.pivot_rows[:, list(self.pivot_columns)]
        try:
            return np.asarray(np.linalg.solve(block.T, factors.T).T)
        except np.linalg.LinAlgError:  # regular, but not in doubles
            inverse = self._exact_pivots[0]
            rounded = np.array([[_nearest(inverse[i, j]) for j in range(self.n)] for i in range(self.n)])
            return np.asarray(factors @ rounded)

    def noise(self, quotient: Array, terms: Array) -> Any:
        """Which entries are not 0 but so small, relative to their terms, that rounding of the input may be all they are."""
        return (quotient != 0.0) & (np.abs(quotient) <= NOISE * terms)


def _restored(
    pivot_rows: Array, pivot_columns: tuple[int, ...], columns: IntArray, rule: tuple[Array, Array]
) -> Modulo:
    made = Modulo(pivot_rows, pivot_columns, columns)
    object.__setattr__(made, "rule", rule)  # fills the cached property
    return made


def _rational(number: Any) -> Any:
    """A double as the rational that it is; rationals as they are."""
    from flint import fmpq

    return number if isinstance(number, fmpq) else fmpq(*float(number).as_integer_ratio())


def rational_rows(rows: Array) -> list[list[Any]]:
    """A matrix of doubles as the rationals that they are."""
    return [[_rational(x) for x in row] for row in rows.tolist()]


def _nearest(number: Any) -> float:
    """A rational rounded to the nearest double."""
    return int(number.p) / int(number.q)
