r"""The canonical program that every solver sees, and the two bounds that no solver is trusted for.

    minimise  Σ α_i   s.t.   g_j(α) = b_jᵀ M(α)^-1 b_j <= 1,   0 <= α <= u,   M(α) = BᵀB + Σ α_i a_i a_iᵀ

a are the rows of ``features``, b those of ``targets``, B those of ``base`` (what is already known: lower bounds and
arms that cost nothing). u is infinite unless ``upper`` is given. ``offset`` is the cost of the lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from allocopt.tolerances import DATA, EPS
from allocopt.validation import Array

__all__ = ["Bounds", "Canonical", "best_scale", "evaluate", "whitener"]


@dataclass(frozen=True, eq=False)
class Canonical:
    """Canonical arrays; see the module's text. Rows of ``features`` and ``targets`` are non-zero and span R^r."""

    features: Array
    targets: Array
    base: Array
    upper: Array | None = None
    offset: float = 0.0
    ratios: Array | None = None
    """Where target j is ratios[j] times feature j: products with the targets then follow from those with the features."""

    @property
    def rank(self) -> int:
        """r, the dimension of the quotient."""
        return int(self.features.shape[1])

    @cached_property
    def feature_lengths(self) -> Array:
        """Euclidean lengths of the features."""
        return _row_norms(self.features)

    @property
    def scalable(self) -> bool:
        """Whether α may be multiplied by any factor: no upper bounds and nothing known beforehand."""
        return self.upper is None and not len(self.base)


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a pair (α, λ) proves, in floating point; ``rounding`` is the relative error already allowed for."""

    upper: float
    lower: float
    alpha: Array
    """The feasible allocation that ``upper`` is the cost of (without ``offset``)."""
    multipliers: Array
    """λ scaled so that it is dual feasible; its sum is the value when nothing is bounded."""
    constraints: Array
    """g_j at the α that was passed."""
    prices: Array
    """p_i = Σ_j λ_j (a_iᵀ M^-1 b_j)² with the scaled λ: at most 1 for arms without upper bound."""
    rounding: float

    @property
    def gap(self) -> float:
        """(upper − lower)/lower; 0 when both are 0, inf when nothing is proven."""
        if not (np.isfinite(self.upper) and self.lower > 0):
            return 0.0 if self.upper == self.lower == 0 else float("inf")
        return (self.upper - self.lower) / self.lower


def whitener(problem: Canonical, alpha: Array) -> Array | None:
    """Upper triangular B with Bᵀ M(α) B = I up to rounding, or None where M(α) is singular.

    By Cholesky's factorisation of M where that is accurate, else by QR of the rows √α_i a_i: M has the square of their
    condition number. Rows are then sorted by length, which makes Householder QR stable however different their scales are.
    """
    used = np.flatnonzero(alpha > 0)
    features = problem.features if len(used) == len(alpha) else problem.features[used]
    weights = alpha if len(used) == len(alpha) else alpha[used]
    gram = features.T @ (features * weights[:, None])
    if len(problem.base):
        gram += problem.base.T @ problem.base
    scale = np.sqrt(gram.diagonal())
    if not scale.min(initial=0.0 if not len(scale) else np.inf) > 0:
        return None
    factor, failed = dpotrf(gram / scale / scale[:, None], lower=0, clean=1)
    if not failed and factor.diagonal().min() > _ACCURATE:
        return _triangular_inverse(factor * scale)
    rows = features * np.sqrt(weights)[:, None]
    if len(problem.base):
        rows = np.concatenate([problem.base, rows])
    if len(rows) < problem.rank:
        return None
    length = np.einsum("ij,ij->i", rows, rows)
    factor = np.asarray(np.linalg.qr(rows[np.argsort(-length)] / scale, mode="r"))
    diagonal = np.abs(factor.diagonal())
    if not np.all(np.isfinite(diagonal)) or diagonal.min() <= 8 * EPS * EPS * diagonal.max():
        return None
    return _triangular_inverse(factor * scale)


_LARGE_ERROR = 1e-12  # of a converted row, beyond which a sharper bound is worth a second product
_ACCURATE = 0.03  # diagonal of the scaled Cholesky factor above which M loses at most three digits


def _triangular_inverse(factor: Array) -> Array | None:
    inverse, failed = dtrtri(factor, lower=0)
    if failed or not np.isfinite(inverse).all():
        return None
    result: Array = inverse
    return result


def _row_norms(rows: Array) -> Array:
    norms: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def evaluate(problem: Canonical, alpha: Array, multipliers: Array) -> Bounds:
    r"""Both bounds of math.md section 4 from any α >= 0 and any λ >= 0, in O((k+m) r²).

    The lower bound: for λ >= 0, y_j = M^-1 b_j and any scale q >= 0 of the pair,
    value >= q ((Σλ_j b_jᵀy_j)²/Σλ_j − Σλ_j |B y_j|²) − Σ_i u_i (q p_i − 1)_+, which is concave and piecewise linear in q.
    """
    features, targets, r = problem.features, problem.targets, problem.rank
    failed = Bounds(float("inf"), problem.offset, alpha, multipliers, np.full(len(targets), np.inf),
                    np.zeros(len(features)), float("inf"))  # fmt: skip
    basis = whitener(problem, alpha)
    if basis is None:
        return failed
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # A second, nearly orthogonal, change of basis removes what the first one left: then M = I to rounding.
        used = np.flatnonzero(alpha > 0)
        support = features[used] @ basis
        gram = (support * alpha[used, None]).T @ support
        white_base = problem.base @ basis
        gram += white_base.T @ white_base
        factor, singular = dpotrf(gram, lower=0, clean=1)
        second = None if singular else _triangular_inverse(factor)
        if second is None:
            return failed
        white_base = white_base @ second
        basis = basis @ second
        white_features = features @ basis
        feature_norm2 = np.einsum("ij,ij->i", white_features, white_features)
        if problem.ratios is None:
            white_targets = targets @ basis
            g = np.einsum("ij,ij->i", white_targets, white_targets)
        else:
            g = feature_norm2 * problem.ratios**2
        if not np.all(np.isfinite(g)):
            return failed

        # Rounding: a row x becomes xB with an error of a few eps·|x||B|, which is large relatively where xB is small.
        feature_error = _conversion_error(features, problem.feature_lengths, basis, feature_norm2)
        target_error = feature_error
        if problem.ratios is None:
            target_error = _conversion_error(targets, _row_norms(targets), basis, g)
        drift = 2.0 * float((alpha * feature_norm2) @ feature_error) + 4.0 * EPS * r  # of M, in the basis where M = I
        if drift > 0.1:
            return failed

        lam = np.where(g > 0, multipliers, 0.0)
        total = float(lam.sum())
        prices = np.zeros(len(features))
        lower = 0.0
        rounding = drift
        if total > 0:
            lam = lam / total
            on = lam > 0
            rows = white_targets[on] if problem.ratios is None else white_features[on] * problem.ratios[on, None]
            directions = np.sqrt(lam[on, None]) * rows
            square = directions.T @ directions if on.sum() > r else None
            images = white_features @ (directions.T if square is None else _square_root(square))
            prices = np.einsum("ij,ij->i", images, images)
            strength = float(lam @ g)
            dual_drift = 2.0 * float((lam * g) @ target_error) / max(strength, 1e-300) + 2.0 * drift
            known = float(np.einsum("ij,ij->", white_base @ directions.T, white_base @ directions.T))
            slope = strength**2 * (1.0 - min(2.0 * dual_drift, 1.0)) - known * (1.0 + 4 * EPS * r)
            padded = prices * (1.0 + np.minimum(2.0 * feature_error + dual_drift, 1e3))
            q, lower = best_scale(slope, padded, problem.upper)
            rounding = max(rounding, dual_drift)
            # Multipliers in the scale of the dual: λ' = q B²/Λ² λ with y' chosen accordingly (Σλ' = value when scalable).
            lam = lam * q * strength**2
            prices = prices * q
        inflated = g * (1.0 + 2.0 * target_error + drift)
    alpha, upper = _make_feasible(problem, alpha, inflated)
    upper = (upper + problem.offset) * (1.0 + DATA)
    lower = (max(lower, 0.0) + problem.offset) * (1.0 - DATA)
    return Bounds(upper, lower, alpha, lam, g, prices, rounding + 2.0 * DATA)


def _conversion_error(rows: Array, lengths: Array, basis: Array, norm2: Array) -> Array:
    """Relative rounding error of ``rows @ basis``: normwise, and entry by entry (sharper, dearer) where that is large."""
    unit = 4.0 * EPS * np.sqrt(len(basis))
    size = np.sqrt(np.maximum(norm2, 1e-300))
    error: Array = unit * float(np.linalg.norm(basis, 2)) * lengths / size
    large = np.flatnonzero(error > _LARGE_ERROR)
    if len(large):
        error[large] = np.minimum(error[large], unit * _row_norms(np.abs(rows[large]) @ np.abs(basis)) / size[large])
    return error


def _square_root(matrix: Array) -> Array:
    """Some S with S Sᵀ = matrix (positive semidefinite)."""
    values, vectors = np.linalg.eigh(matrix)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def best_scale(slope: float, prices: Array, upper: Array | None) -> tuple[float, float]:
    """The q >= 0 that maximises q·slope − Σ u_i (q p_i − 1)_+, and the maximum."""
    if slope <= 0:
        return 0.0, 0.0
    if upper is None:
        q = 1.0 / float(prices.max())
        return q, q * slope
    infinite = ~np.isfinite(upper)
    cap = 1.0 / float(prices[infinite].max(initial=0.0)) if prices[infinite].max(initial=0.0) > 0 else np.inf
    bounded = np.flatnonzero(~infinite & (prices > 0))
    order = bounded[np.argsort(-prices[bounded])]  # breakpoints 1/p_i, increasing
    remaining = slope - np.cumsum(upper[order] * prices[order])  # slope after each breakpoint
    stop = np.flatnonzero(remaining <= 0)
    q = 1.0 / float(prices[order[stop[0]]]) if len(stop) else np.inf
    q = min(q, cap)
    if not np.isfinite(q):
        return 0.0, 0.0  # unbounded dual: the program is infeasible, which `feasible` reports; nothing is claimed here
    over = upper[order] * np.maximum(q * prices[order] - 1.0, 0.0)
    return q, q * slope - float(over.sum())


def _make_feasible(problem: Canonical, alpha: Array, constraints: Array) -> tuple[Array, float]:
    """Scale α up (within its bounds) until every constraint holds; inf where that cannot be done."""
    worst = float(constraints.max())
    if problem.scalable:
        scaled = alpha * worst
        return scaled, float(scaled.sum())
    upper = np.full(len(alpha), np.inf) if problem.upper is None else problem.upper
    alpha = np.minimum(alpha, upper)
    for enlarge in (_grow, _fill):
        high = 0.0 if worst <= 1.0 else max(2.0 * (worst - 1.0), 1e-15)
        while _violation(problem, enlarge(alpha, upper, high)) > 1.0 and high < 1e12:
            high = max(4.0 * high, 1e-15)
        if high >= 1e12:
            continue
        low = 0.0
        for _ in range(60):
            if high - low <= 1e-3 * high + 1e-16:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _violation(problem, enlarge(alpha, upper, middle)) > 1.0 else (low, middle)
        feasible = enlarge(alpha, upper, high)
        return feasible, float(feasible.sum())
    return alpha, float("inf")


def _grow(alpha: Array, upper: Array, by: float) -> Array:
    return np.minimum(upper, alpha * (1.0 + by))


def _fill(alpha: Array, upper: Array, by: float) -> Array:
    """Move towards the upper bounds; arms without one grow in proportion."""
    room = np.where(np.isfinite(upper), upper - alpha, alpha)
    filled: Array = np.minimum(upper, alpha + np.where(np.isfinite(upper), min(by, 1.0), by) * room)
    return filled


def _violation(problem: Canonical, alpha: Array) -> float:
    """max_j g_j(α), padded for rounding."""
    basis = whitener(problem, alpha)
    if basis is None:
        return float("inf")
    white = problem.targets @ basis
    g = np.einsum("ij,ij->i", white, white)
    error = 4.0 * EPS * np.sqrt(problem.rank) * np.linalg.norm(basis, 2) * _row_norms(problem.targets)
    return float(np.max(g + 2.0 * error * np.sqrt(g))) * (1.0 + 8 * EPS * problem.rank)
