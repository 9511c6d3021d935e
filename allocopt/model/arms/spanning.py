"""What the arms of a store span: asked block by block, decided by the rows that come back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.linear.modulo import Modulo
from allocopt.linear.quotient_map import QuotientMap
from allocopt.linear.span import spanning_coordinates, spanning_rows
from allocopt.model.arms.store import ArmStore

__all__ = ["OutsideTask", "sampled_arms", "spanning_arms", "store_rank"]

SAMPLE = 64
"""Times d arms are looked at to find the rank and the scales."""


def sampled_arms(store: ArmStore) -> IntArray:
    """Arms at equal distances."""
    k, d = store.shape
    return np.arange(0, k, max(1, k // (SAMPLE * d)))


def store_rank(store: ArmStore) -> int:
    """The dimension of the span of all arms."""
    d = store.shape[1]
    few = store.rows(sampled_arms(store))
    if len(spanning_coordinates(few)) == d:
        return d
    rows = np.concatenate([few, spanning_arms(store, QuotientMap(np.ones(d), Modulo.of(few[:0], ()), np.ones(d)))[1]])
    return len(spanning_coordinates(rows))


@dataclass(frozen=True, eq=False)
class _SpanTask:
    """Arms of a block that seem to span it in the quotient, and their rows there without what may be rounding."""

    quotient: QuotientMap

    def __call__(self, start: int, block: Array) -> tuple[IntArray, Array]:
        """At most as many as there are coordinates."""
        modulo = self.quotient.modulo
        rows, terms = modulo.with_terms(block * self.quotient.units)
        rows = np.where(modulo.noise(rows, terms), 0.0, rows)
        chosen = spanning_rows(rows)
        return chosen + start, rows[chosen]


def spanning_arms(store: ArmStore, quotient: QuotientMap) -> tuple[IntArray, Array]:
    """Arms that seem to span all of them in the quotient, and their rows there."""
    found = list(store.scan(_SpanTask(quotient)))
    indices, rows = (np.concatenate([f[part] for f in found]) for part in range(2))
    chosen = spanning_rows(rows)
    return indices[chosen], rows[chosen]


@dataclass(frozen=True, eq=False)
class OutsideTask:
    """The arms of a block that do not lie in a span exactly, those with the largest shares first."""

    units: Array
    modulo: Modulo
    most: int

    def __call__(self, start: int, block: Array) -> tuple[IntArray, Array]:
        """Their indices and shares; at most a few dozen."""
        shares = self.modulo.shares(block * self.units).max(axis=1, initial=0.0)
        away = np.flatnonzero(shares > 0.0)
        away = away[np.argsort(-shares[away], kind="stable")[: self.most]]
        return away + start, shares[away]
