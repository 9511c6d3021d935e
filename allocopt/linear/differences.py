"""Spans of differences of rows, exactly: the differences themselves need not be doubles.

A difference x − z is the quotient of (1, x) by (1, z): rows get a column of ones, one of them is divided out, and what is decided
without error of rows (`linear.modulo`, `linear.span`) is decided of their differences.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.linear.modulo import Modulo, rational_rows
from allocopt.linear.span import Span, column_units, span_of

__all__ = ["differences_lie_in", "largest_share_of_differences", "span_of_duels"]


def differences_lie_in(span: Span, items: Array, reference: int) -> bool:
    """Whether all differences of items to one of them lie in a span, exactly; ``items`` are in the units of the span's rows."""
    pivots = np.pad(span.modulo.pivot_rows, ((0, 0), (1, 0)))
    lifted = np.pad(items, ((0, 0), (1, 0)), constant_values=1.0)
    columns = [0, *(c + 1 for c in span.modulo.pivot_columns)]
    modulo = Modulo.of(np.concatenate([lifted[[reference]], pivots]), columns, span.modulo.columns + 1)
    return not modulo(lifted).any()


def largest_share_of_differences(modulo: Modulo, rows: Array, pairs: IntArray) -> tuple[Fraction, int, int]:
    """The largest share |rest|/terms over the differences x_i − x_j and all columns, exactly; the pair and the column that have it."""
    exact = rational_rows(rows)
    best, where, column = Fraction(0), 0, 0
    for n, (i, j) in enumerate(pairs.tolist()):
        difference = [x - y for x, y in zip(exact[i], exact[j], strict=True)]
        for place in range(len(modulo.columns)):
            share = modulo.exact_share(difference, place)
            if share > best:
                best, where, column = share, n, place
    return best, where, column


def span_of_duels(arms: Array, duels: IntArray) -> Span:
    """Duels (i, j), i < j, and columns that span all x_i − x_j; what holds up to rounding only is not decided."""
    lifted = np.pad(arms * column_units(arms), ((0, 0), (1, 0)), constant_values=0.5)
    first = np.zeros(1, dtype=np.int64)
    reference = Span(first, (0,), Modulo.of(lifted[first], [0]))
    rest = np.arange(1, len(arms))
    differences, terms = reference.modulo.with_terms(lifted[rest])
    cleaned = np.where(reference.modulo.noise(differences, terms), 0.0, differences)
    found = span_of(lifted, rest, reference, cleaned)
    if found.assumptions:
        raise SolverFailed(
            "the differences of arms are dependent up to rounding only: which of them can be estimated cannot be decided"
        )
    place = {(i, j): n for n, (i, j) in enumerate(duels.tolist())}
    basis = np.array([place[0, int(arm)] for arm in found.rows], dtype=np.int64)
    return Span(basis, tuple(c - 1 for c in found.columns), Modulo(lifted[:0], (), np.zeros(0, dtype=np.int64)))
