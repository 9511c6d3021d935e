"""The quotient by the free arms as one linear map, for arms that are looked at block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.certify.reduction import divide_out
from allocopt.tolerances import EPS
from allocopt.validation import Array, IntArray

__all__ = ["QuotientMap"]


@dataclass(frozen=True, eq=False)
class QuotientMap:
    """R^d → R^d / span(pivot rows), in the coordinates kept, each times a power of two."""

    pivot_rows: Array
    pivot_columns: tuple[int, ...]
    local: IntArray
    """Which of the coordinates that are not pivots are kept."""
    scale: Array

    def __call__(self, rows: Array) -> Array:
        """Some rows in the quotient, as accurately as `reduction.divide_out` makes them."""
        result: Array = divide_out(rows, self.pivot_rows, list(self.pivot_columns))[:, self.local] * self.scale
        return result

    def rough(self, basis: Array, longest: float) -> tuple[Array, float]:
        """The map followed by a change of basis as one matrix C, and a bound on the error of |x C| for rows so long."""
        d = self.pivot_rows.shape[1]
        keep = np.setdiff1d(np.arange(d), self.pivot_columns)[self.local]
        whole = np.zeros((d, len(keep)))
        whole[keep, np.arange(len(keep))] = 1.0
        condition = 1.0
        if self.pivot_columns:
            block = self.pivot_rows[:, self.pivot_columns]
            whole[list(self.pivot_columns)] = -np.linalg.solve(block, self.pivot_rows[:, keep])
            condition = float(np.linalg.cond(block)) if len(block) > 1 else 1.0
        whole *= self.scale
        size = float(np.linalg.norm(np.abs(whole) @ np.abs(basis)))
        return whole @ basis, 8.0 * EPS * np.sqrt(d) * condition * size * longest
