r"""The canonical program that every solver sees, and the two bounds that no solver is trusted for.

    minimise  Σ α_i   s.t.   g_j(α) = b_jᵀ M(α)^-1 b_j <= 1,   0 <= α <= u,   M(α) = BᵀB + Σ α_i a_i a_iᵀ

a are the rows of ``features``, b those of ``targets``, B those of ``base`` (what is already known: lower bounds and
arms that cost nothing). u is infinite unless ``upper`` is given. ``offset`` is the cost of the lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf

from allocopt import dense
from allocopt.tolerances import DATA, EPS, SUPPORT
from allocopt.validation import Array

__all__ = [
    "Bounds",
    "Canonical",
    "Frame",
    "best_scale",
    "conversion_error",
    "evaluate",
    "frame",
    "settle",
    "tidy",
    "whitener",
]


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
        return np.sqrt(_squared_lengths(self.features))

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
    """Upper triangular B with Bᵀ M(α) B = I up to rounding, or None where M(α) is singular."""
    regular, basis = dense.whitener(problem.features.T, alpha, problem.base if len(problem.base) else None)
    return basis if regular else None


_LARGE_ERROR = 1e-12  # of a converted row, beyond which a sharper bound is worth a second product


def _squared_lengths(rows: Array) -> Array:
    result: Array = np.einsum("ij,ij->i", rows, rows)
    return result


@dataclass(frozen=True, eq=False)
class Frame:
    """What (α, λ) fixes before any other row is looked at: the basis in which M(α) = I and Σ_j λ_j b_j b_jᵀ is diagonal.

    There g_j = |b_j|² and p_i = Σ_c ``spectrum``_c a_ic²: one product with the basis prices a row in both roles.
    """

    basis: Array
    spectrum: Array
    strength: float
    """Σ_j λ_j g_j, for λ that sums to 1."""
    known: float
    """Σ_j λ_j |B y_j|²."""
    drift: float
    """Relative rounding error of M."""
    dual_drift: float
    """Relative rounding error of the dual's numbers."""

    @property
    def slope(self) -> float:
        """The dual bound of λ for prices of at most 1, with its rounding taken off."""
        exact = self.strength * self.strength * (1.0 - min(2.0 * self.dual_drift, 1.0))
        return exact - self.known * (1.0 + 4 * EPS * len(self.spectrum))

    def padded_prices(self, prices: Array, norm2: Array, errors: Array) -> Array:
        """Prices that are surely not too small; ``errors`` are the relative errors of the rows."""
        # √p is a norm of the row too, but one in which an error of the row can weigh more than the row itself does
        steepest = float(self.spectrum.max(initial=0.0))
        weighted = errors * np.sqrt(steepest * norm2 / np.maximum(prices, 1e-300))
        padded: Array = prices * (1.0 + np.minimum(2.0 * weighted + weighted * weighted + self.dual_drift, 1e3))
        padded += self.summation_error(prices, norm2)
        return padded

    def summation_error(self, prices: Array, norm2: Array) -> Array:
        """What rounding does to Σ_c spectrum_c a_c²: each a_c has an error of some eps |a| (Cauchy and Schwarz)."""
        unit = 8.0 * EPS * len(self.spectrum)
        most = norm2 * float(self.spectrum.max(initial=0.0))
        result: Array = unit * np.sqrt(prices * most) + unit * unit * most
        return result

    def padded_constraints(self, g: Array, errors: Array) -> Array:
        """g that are surely not too small."""
        return g * (1.0 + 2.0 * errors + self.drift)


def frame(problem: Canonical, alpha: Array, multipliers: Array) -> Frame | None:
    """The frame of (α, λ), from the rows with α > 0 or λ > 0 alone; None where M(α) is numerically singular."""
    basis = whitener(problem, alpha)
    if basis is None:
        return None
    r = problem.rank
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # A second, nearly orthogonal, change of basis removes what the first one left: then M = I to rounding.
        used = np.flatnonzero(alpha > 0)
        rows, weights = problem.features[used], alpha[used]
        support = rows @ basis
        gram = (support * weights[:, None]).T @ support
        white_base = problem.base @ basis
        gram += white_base.T @ white_base
        factor, singular = dpotrf(gram, lower=0, clean=1)
        if singular:
            return None
        regular, second = dense.triangular_inverse(factor)
        if not regular:
            return None
        basis = basis @ second
        norm2 = _squared_lengths(support @ second)
        drift = 2.0 * float((weights * norm2) @ conversion_error(rows, basis, norm2)) + 8.0 * EPS * r
        if not drift <= 0.1:
            return None
        asked = np.flatnonzero(multipliers > 0)
        rows = problem.targets[asked]
        images = rows @ basis
        g = _squared_lengths(images)
        lam = np.where(g > 0, multipliers[asked], 0.0)
        total = float(lam.sum())
        if not total > 0:
            return Frame(basis, np.zeros(r), 0.0, 0.0, drift, drift)
        lam = lam / total
        strength = float(lam @ g)
        if not np.isfinite(strength * strength):
            return None
        error = conversion_error(rows, basis, g)
        dual_drift = 2.0 * float((lam * g) @ error) / max(strength, 1e-300) + 2.0 * drift
        # by singular values of the rows √λ_j b_j: squares of small ones would drown in the rounding of large ones
        rows = images * np.sqrt(lam)[:, None]
        if len(rows) > 4 * r:
            rows = np.asarray(np.linalg.qr(rows, mode="r"))
        values, axes = np.linalg.svd(rows, full_matrices=True)[1:]
        spectrum = np.zeros(r)
        spectrum[: len(values)] = values * values
        basis = basis @ axes.T
        white_base = problem.base @ basis
        known = float(np.sum(_squared_lengths(white_base.T) * spectrum))
    return Frame(basis, spectrum, strength, known, drift, dual_drift)


def evaluate(problem: Canonical, alpha: Array, multipliers: Array) -> Bounds:
    r"""Both bounds of math.md section 4 from any α >= 0 and any λ >= 0, in O((k+m) r²).

    The lower bound: for λ >= 0, y_j = M^-1 b_j and any scale q >= 0 of the pair,
    value >= q ((Σλ_j b_jᵀy_j)²/Σλ_j − Σλ_j |B y_j|²) − Σ_i u_i (q p_i − 1)_+, which is concave and piecewise linear in q.
    """
    features, targets = problem.features, problem.targets
    failed = Bounds(float("inf"), problem.offset, alpha, multipliers, np.full(len(targets), np.inf),
                    np.zeros(len(features)), float("inf"))  # fmt: skip
    seen = frame(problem, alpha, multipliers)
    if seen is None:
        return failed
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares = features @ seen.basis
        squares *= squares
        norm2, prices = squares.sum(axis=1), squares @ seen.spectrum
        feature_error = conversion_error(features, seen.basis, norm2)
        if problem.ratios is None:
            g = _squared_lengths(targets @ seen.basis)
            target_error = conversion_error(targets, seen.basis, g)
        else:
            g, target_error = norm2 * problem.ratios**2, feature_error
        if not np.all(np.isfinite(g)):
            return failed
        lam = np.where(g > 0, multipliers, 0.0)
        total = float(lam.sum())
        lower = 0.0
        if total > 0:
            padded = seen.padded_prices(prices, norm2, feature_error)
            q, lower = best_scale(seen.slope, padded, problem.upper)
            # Multipliers in the scale of the dual: λ' = q B²/Λ² λ with y' chosen accordingly (Σλ' = value when scalable).
            lam = lam / total * q * seen.strength * seen.strength
            prices = prices * q
        inflated = seen.padded_constraints(g, target_error)
    alpha, upper = _make_feasible(problem, alpha, inflated)
    upper = (upper + problem.offset) * (1.0 + DATA)
    lower = (max(lower, 0.0) + problem.offset) * (1.0 - DATA)
    return Bounds(upper, lower, alpha, lam, g, prices, max(seen.drift, seen.dual_drift) + 2.0 * DATA)


def tidy(problem: Canonical, bounds: Bounds, tol: float) -> Bounds:
    """Set to zero what complementarity says is zero, as long as the recomputed certificate is not worse for it."""
    alpha, lam = bounds.alpha, bounds.multipliers
    idle = (alpha < SUPPORT * alpha.max()) & (bounds.prices < 1.0 - SUPPORT)
    slack = (lam < SUPPORT * lam.max()) & (bounds.constraints < (1.0 - SUPPORT) * bounds.constraints.max())
    if not (idle & (alpha > 0)).any() and not (slack & (lam > 0)).any():
        return bounds
    tidied = settle(problem, evaluate(problem, np.where(idle, 0.0, alpha), np.where(slack, 0.0, lam)))
    return tidied if tidied.gap <= max(bounds.gap, 0.5 * tol) else bounds


def settle(problem: Canonical, bounds: Bounds) -> Bounds:
    """Bounds that follow from the feasible allocation itself, so that what is stored proves what is claimed."""
    return bounds if problem.scalable else evaluate(problem, bounds.alpha, bounds.multipliers)


def conversion_error(rows: Array, basis: Array, norm2: Array) -> Array:
    """Relative rounding error of ``rows @ basis``: normwise, and entry by entry (sharper, dearer) where that is large."""
    unit = 4.0 * EPS * np.sqrt(len(basis))
    size = np.sqrt(np.maximum(norm2, 1e-300))
    error: Array = unit * float(np.linalg.norm(basis)) * np.sqrt(_squared_lengths(rows)) / size
    large = np.flatnonzero(error > _LARGE_ERROR)
    if len(large):
        sharp = np.sqrt(_squared_lengths(np.abs(rows[large]) @ np.abs(basis)))
        error[large] = np.minimum(error[large], unit * sharp / size[large])
    return error


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
    error = 4.0 * EPS * np.sqrt(problem.rank) * np.linalg.norm(basis, 2) * np.sqrt(_squared_lengths(problem.targets))
    return float(np.max(g + 2.0 * error * np.sqrt(g))) * (1.0 + 8 * EPS * problem.rank)
