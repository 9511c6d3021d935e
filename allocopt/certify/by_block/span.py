"""What all arms of a store span modulo the free ones: proposed by a sample, then by arms of all blocks, checked on all arms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.linear.assumptions import ROUNDING_LEVEL, Assumption
from allocopt.linear.quotient_map import QuotientMap
from allocopt.linear.span import Span, largest_share, span_of
from allocopt.model.arms.spanning import OutsideTask, spanning_arms
from allocopt.model.arms.store import ArmStore

__all__ = ["SpanOfAll", "span_of_all"]

_MOST_OUTSIDE = 40  # arms outside a span, those that seem farthest, whose distances are compared exactly


@dataclass(frozen=True, eq=False)
class SpanOfAll:
    """Coordinates that determine all others on the span of the arms, arms that show it, and what was assumed."""

    columns: tuple[int, ...]
    basis_arms: IntArray
    assumptions: tuple[Assumption, ...]


def span_of_all(store: ArmStore, known: Span, pivot_rows: Array, units: Array, sample: IntArray) -> SpanOfAll:
    """The span of all arms; ``known`` is that of the free ones, with its ``pivot_rows``, and columns are in ``units``."""
    span, basis = _span_of_some(store, known, pivot_rows, units, sample)
    if not len(span.modulo.columns):  # the sample spans every coordinate
        return SpanOfAll(span.columns, basis, ())
    every_column = QuotientMap(units, known.modulo, np.ones(len(known.modulo.columns)))
    some = np.union1d(sample, spanning_arms(store, every_column)[0])  # the sample may be poor
    while True:
        span, basis = _span_of_some(store, known, pivot_rows, units, some)
        if not len(span.modulo.columns):
            return SpanOfAll(span.columns, basis, ())
        outside = _farthest_outside(store, span, units)
        if not len(outside):
            return SpanOfAll(span.columns, basis, ())
        size, place = largest_share(span.modulo, store.rows(outside) * units)
        if size <= ROUNDING_LEVEL:
            text = (
                f"arms are combinations of {len(span.columns) + len(pivot_rows)} of them only up to {float(size):.3g}, relative "
                "to the terms of these combinations; they are taken as exactly that"
            )
            return SpanOfAll(span.columns, basis, (Assumption("dependence", (int(outside[place]),), size, text),))
        some = np.union1d(some, outside[[max(place, 0)]])


def _span_of_some(
    store: ArmStore, known: Span, pivot_rows: Array, units: Array, some: IntArray
) -> tuple[Span, IntArray]:
    """The span of some arms, and those of them that show it."""
    n = len(pivot_rows)
    rows = store.rows(some) * units
    both = np.concatenate([pivot_rows, rows])
    quotient, terms = known.modulo.with_terms(rows)
    cleaned = np.where(known.modulo.noise(quotient, terms), 0.0, quotient)
    span = span_of(both, np.arange(n, len(both)), Span(np.arange(n), known.columns, known.modulo), cleaned)
    return span, some[span.rows - n]


def _farthest_outside(store: ArmStore, span: Span, units: Array) -> IntArray:
    """Arms that do not lie in the span exactly, a few of those that seem farthest from it."""
    found = list(store.scan(OutsideTask(units, span.modulo, _MOST_OUTSIDE)))
    arms, shares = (np.concatenate([part[n] for part in found]) for n in range(2))
    farthest: IntArray = arms[np.argsort(-shares, kind="stable")[:_MOST_OUTSIDE]]
    return farthest
