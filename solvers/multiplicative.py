r"""A first allocation by multiplicative steps on a smoothed maximum, for programs without bounds: cheap, and it tells who matters.

With F(α) = (1/p) log Σ_j g_j(α)^p + log Σα, π_j ∝ g_j^p and λ_j = π_j/g_j, the derivative of F in α_i is (1 − price_i)/Σα, where
price_i = Σα Σ_j λ_j (a_iᵀM^-1b_j)² averages to 1 under α. So α_i ← α_i price_i^η raises what is worth more than it costs and lowers
the rest; η = 1/(1 + p) keeps it from overshooting (for p → 0 that is Titterington's algorithm for D-optimal designs). p grows from
step to step. One step takes four products of all rows with r×r, less than a Newton step on a few times r arms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allocopt.base.validation import Array
from allocopt.certify.canonical import Canonical, whitener
from allocopt.linear.dense import squared_row_lengths

__all__ = ["first_pair"]

_LEAST_LENGTH = 1e-12  # squared length of the shortest row, relative to the longest


def first_pair(
    problem: Canonical, steps: int, power: float, growth: float, late: Callable[[], bool] = lambda: False
) -> tuple[Array, Array] | None:
    """α and λ after some steps; None where α has bounds, rows are of very different lengths, or numbers leave the range of doubles.

    They end early where ``late()``, but never before the first one: an answer that is late should have bounds, too.
    """
    if not problem.scalable:
        return None
    lengths = problem.by_variable(squared_row_lengths(problem.features))
    if not float(lengths.min()) >= _LEAST_LENGTH * float(lengths.max()):
        return None  # the first α would be that of the shortest rows alone
    with np.errstate(all="ignore"):
        pair = _stepped(problem, 1.0 / lengths, steps, power, growth, late)
    return pair if pair is not None and all(np.isfinite(x).all() and x.any() for x in pair) else None


def _stepped(
    problem: Canonical, alpha: Array, steps: int, power: float, growth: float, late: Callable[[], bool]
) -> tuple[Array, Array] | None:
    """The steps themselves, from a first α; None where the information matrix becomes numerically singular."""
    multipliers = np.zeros(len(problem.targets))
    a, b, image = np.empty(problem.features.shape), np.empty(problem.targets.shape), np.empty(problem.features.shape)
    for step in range(steps):
        if step and late():
            break
        basis = whitener(problem, alpha)
        if basis is None:
            return None
        np.matmul(problem.features, basis, out=a)
        if problem.ratios is None:
            np.matmul(problem.targets, basis, out=b)
        else:
            np.multiply(a, problem.ratios[:, None], out=b)
        g = squared_row_lengths(b)
        worst = float(g.max())
        if not 0 < worst < np.inf:
            return None
        share = (g / worst) ** power
        multipliers = share / g / float(share.sum())
        b *= np.sqrt(multipliers)[:, None]
        total = float(alpha.sum())
        prices = problem.by_variable(np.einsum("ij,ij->i", np.matmul(a, b.T @ b, out=image), a)) * total
        alpha = alpha * prices ** (1.0 / (1.0 + power))
        alpha *= total / float(alpha.sum())
        power *= growth
    return (alpha, multipliers) if np.isfinite(alpha).all() else None
