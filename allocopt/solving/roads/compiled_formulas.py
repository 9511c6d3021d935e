"""Programs with a formula, compiled: what `solvers.closed_form` recognises, for targets that are features times ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.tolerances import EPS

__all__ = ["DIRECTIONS", "EQUAL_RATIOS", "NO_FORMULA", "closed_form"]

NO_FORMULA, DIRECTIONS, EQUAL_RATIOS = 0, 1, 2
_SAME = (
    64 * EPS
)  # sine of the angle below which two columns are one direction; relative difference of ratios that are one


def closed_form(columns: Any, ratios: Any) -> Any:
    """Which formula applies, and with `DIRECTIONS` the optimal pair as `compiled_certificate.certify` takes it: x, y, λ and g.

    Directions: every column lies along one of r independent ones. Each is a problem of its own: its longest feature is played until
    its longest target is met.
    """
    r, k = columns.shape
    x, y, lam, g = np.empty(2 * k), np.empty(2 * k), np.empty(k), np.empty(k)
    unit, lengths = np.empty((k, r)), np.empty(k)
    axes, cheapest, hardest = np.empty(r, np.int64), np.empty(r, np.int64), np.empty(r, np.int64)
    found = 0
    form = DIRECTIONS
    for i in range(k):
        x[i] = x[k + i] = y[i] = y[k + i] = lam[i] = 0.0  # np.zeros and np.ones take long to compile
        g[i] = 1.0
    for i in range(k):
        top = 0.0
        for c in range(r):
            top = max(top, abs(columns[c, i]))
        square = 0.0
        for c in range(r):
            square += (columns[c, i] / top) * (columns[c, i] / top)
        lengths[i] = top * math.sqrt(square)
        for c in range(r):
            unit[i, c] = columns[c, i] / lengths[i]
        own = -1
        for n in range(found):
            same = opposite = 0.0
            for c in range(r):
                same = max(same, abs(unit[i, c] - unit[axes[n], c]))
                opposite = max(opposite, abs(unit[i, c] + unit[axes[n], c]))
            if own < 0 and min(same, opposite) <= _SAME:
                own = n
        if own < 0 and found == r:
            form = NO_FORMULA
            break
        if own < 0:
            axes[found] = cheapest[found] = hardest[found] = i
            found += 1
            continue
        if lengths[i] > lengths[cheapest[own]]:
            cheapest[own] = i
        if ratios[i] * lengths[i] > ratios[hardest[own]] * lengths[hardest[own]]:
            hardest[own] = i
    if form == DIRECTIONS and found == r:
        for n in range(r):
            ratio = ratios[hardest[n]] * lengths[hardest[n]] / lengths[cheapest[n]]
            x[k + cheapest[n]] = lam[hardest[n]] = ratio * ratio
        return DIRECTIONS, (x, y, lam, g)
    least = most = ratios[0]
    for i in range(k):
        least, most = min(least, ratios[i]), max(most, ratios[i])
    return EQUAL_RATIOS if most - least <= _SAME * most else NO_FORMULA, (x, y, lam, g)
