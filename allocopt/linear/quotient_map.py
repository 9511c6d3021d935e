"""QuotientMap: rows modulo the free arms, in units and coordinates of the program's choice, as arrays or as one matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array
from allocopt.linear.floating import TINY, gamma
from allocopt.linear.modulo import Modulo

__all__ = ["QuotientMap"]

_AT_A_TIME = 1024  # rows


@dataclass(frozen=True, eq=False)
class QuotientMap:
    """R^d → R^d / span(pivot rows), in the coordinates kept, after a power of two for every column and another for every result."""

    units: Array
    modulo: Modulo
    scale: Array

    def __call__(self, rows: Array) -> Array:
        """Some rows in the quotient, to `ENTRY_ERROR`; a part of them at a time, since the way there takes several arrays."""
        result = np.empty((len(rows), len(self.scale)))
        for first in range(0, len(rows), _AT_A_TIME):
            some = slice(first, first + _AT_A_TIME)
            np.multiply(self.modulo(rows[some] * self.units), self.scale, out=result[some])
        return result

    def image_with_error(self, basis: Array, sizes: Array) -> tuple[Array, float]:
        """The map followed by a change of basis as one matrix C, and a bound on the error of x C for rows within these sizes."""
        d, r = len(self.units), len(self.scale)
        small = basis * self.scale[:, None]
        whole, most = np.zeros((d, r)), np.zeros((d, r))
        whole[self.modulo.columns] = small
        most[self.modulo.columns] = np.abs(small)
        if self.modulo.n:
            rule = self.modulo.rule[0]
            pivots = list(self.modulo.pivot_columns)
            whole[pivots] = -(rule @ small)
            most[pivots] = np.abs(rule) @ np.abs(small)
        whole *= self.units[:, None]
        most *= self.units[:, None]
        # rounding of C and of its products with the basis, then of the products with a row and of their sum
        return whole, gamma(d + r + 64) * float(sizes @ np.sqrt(np.einsum("ij,ij->i", most, most))) + TINY
