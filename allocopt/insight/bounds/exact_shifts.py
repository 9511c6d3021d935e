"""θ'_j as numbers that a proof can begin from: doubles, or rationals at which the optimal arms keep their means exactly.

At n = 10^30 a mean of x* that moves by 1e-16, for no other reason than rounding, would give θ'_j away.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from allocopt.base.validation import Array
from allocopt.insight.bounds.search import Candidates
from allocopt.model.bandit import LinearBandit

__all__ = ["exact_parameters"]

_UNSEEN = 1e-9  # information on x* in n rounds, relative to K, that may be left to rounding
_ROUNDING = 1e-15  # of a mean, relative to its terms


def exact_parameters(bandit: LinearBandit, n: int, candidates: Candidates) -> list[tuple[Fraction, ...]]:
    """θ' of every candidate, exactly."""
    theta = [Fraction(x) for x in bandit.theta.tolist()]
    rows = bandit.arms_in_memory[bandit.gaps == 0]
    levels = candidates.terms.levels(0.0)
    found = []
    for shift, level in zip(candidates.shifts, levels, strict=True):
        doubles = [Fraction(x) for x in (bandit.theta + shift).tolist()]
        moved = np.abs(rows @ shift).max(initial=0.0)
        doubt = _ROUNDING * float((np.abs(rows) @ (np.abs(shift) + np.abs(bandit.theta))).max(initial=0.0))
        given_away = 0.5 * n * doubt**2 / float(np.min(bandit.noise_variance))
        if moved <= 100.0 * doubt and given_away > _UNSEEN * level:
            exact = _fixing(rows, [a - b for a, b in zip(doubles, theta, strict=True)])
            found.append(tuple(a + b for a, b in zip(theta, exact, strict=True)))
        else:
            found.append(tuple(doubles))
    return found


def _fixing(rows: Array, shift: list[Fraction]) -> list[Fraction]:
    """The shift with as many entries changed as it takes that no row sees it, exactly."""
    from flint import fmpq, fmpq_mat

    order = np.argsort(-np.abs(rows).max(axis=0), kind="stable")  # large entries make small corrections
    different = np.unique(rows, axis=0)[:, order]
    entries = [fmpq(*x.as_integer_ratio()) for x in different.ravel().tolist()]
    reduced, rank = fmpq_mat(*different.shape, entries).rref()
    columns = [next(c for c in range(len(order)) if reduced[i, c] != 0) for i in range(rank)]
    result = list(shift)
    for i, pivot in enumerate(columns):
        rest = (c for c in range(pivot + 1, len(order)) if c not in columns and reduced[i, c] != 0)
        terms = [Fraction(int(reduced[i, c].p), int(reduced[i, c].q)) * shift[order[c]] for c in rest]
        result[order[pivot]] = -sum(terms, Fraction(0))
    return result
