r"""The canonical program that every solver sees, and the two bounds that no solver is trusted for.

    minimise  Σ α_i   s.t.   g_j(α) = b_jᵀ M(α)^-1 b_j <= 1,   0 <= α <= u,   M(α) = BᵀB + Σ α_i a_i a_iᵀ

a are the rows of ``features``, b those of ``targets``, B those of ``base`` (what is already known: lower bounds and
arms that cost nothing). u is infinite unless ``upper`` is given. ``offset`` is the cost of the lower bounds.

`evaluate` is the certificate in doubles: the theorem of docs/certificates.md, whose letters are used here. Its bounds are those
of the program behind the canonical arrays, in exact arithmetic, with y_j = M^-1 b_j: rounding of the arrays (``error``) and of
everything that is computed here is part of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf

from allocopt import dense
from allocopt.certify.floating import UNIT, gamma
from allocopt.tolerances import SUPPORT
from allocopt.validation import Array, IntArray

__all__ = [
    "Bounds",
    "Canonical",
    "Frame",
    "best_scale",
    "evaluate",
    "frame",
    "images",
    "padding",
    "settle",
    "tidy",
    "violation",
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
    error: float = 0.0
    """ρ: relative error of every entry of ``features``, ``targets`` and ``base`` (docs/certificates.md)."""
    bound_error: float = 0.0
    """Relative error of ``upper`` and ``offset``, and of costs."""

    @property
    def rank(self) -> int:
        """r, the dimension of the quotient."""
        return int(self.features.shape[1])

    @cached_property
    def compact_base(self) -> Array:
        """At most r rows with the same BᵀB up to rounding: for proposals."""
        base = self.base
        return np.asarray(np.linalg.qr(base, mode="r")) if len(base) > self.rank else base

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
    """What a pair (α, λ) proves; ``rounding`` is the relative width that is due to rounding."""

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


def padding(r: int) -> float:
    """1 + γ for sums over r entries and some dozens of operations around them."""
    return 1.0 + gamma(4 * r + 64)


def whitener(problem: Canonical, alpha: Array) -> Array | None:
    """Upper triangular B with Bᵀ M(α) B = I up to rounding, or None where M(α) is singular."""
    regular, basis = dense.whitener(problem.features.T, alpha, problem.compact_base if len(problem.base) else None)
    return basis if regular else None


_LARGE_ERROR = 1e-12  # of a row's image, relatively, beyond which a sharper bound is worth a second product
_LEAST_WEIGHT = 1e-4  # of a direction, relative to the largest, in the dominance that makes a diagonal of a matrix
_LARGEST_DRIFT = 0.1  # distance of BᵀMB from I beyond which nothing is claimed


def _squared_lengths(rows: Array) -> Array:
    result: Array = np.einsum("ij,ij->i", rows, rows)
    return result


@dataclass(frozen=True, eq=False)
class Frame:
    """What (α, λ) fixes before any other row is looked at: a basis in which M(α) is close to I and Σ_j λ_j b_j b_jᵀ to a diagonal.

    There g_j is about |b_j|² and p_i about Σ_c ``spectrum``_c a_ic²: one product with the basis prices a row in both roles.
    """

    basis: Array
    spectrum: Array
    """D: diagonal, and not below Σ_j λ_j z_j z_jᵀ, where z_j are the computed images of the targets."""
    strength: float
    """A lower bound on Σ_j λ_j b_jᵀ M^-1 b_j, for λ that sums to 1."""
    drift: float
    """δ: an upper bound on the distance of BᵀMB from I."""
    wobble: float
    """ε: √Σ_j λ_j e_j², what the errors of the targets' images can add to √p for a row of length 1."""
    unit: float
    """Error of a row's image, per unit of |row| |basis|: γ_r + ρ."""
    cost: float
    """Σ α_i, rounded up."""
    plain_spectrum: Array | None = None
    """The diagonal of Σ_j λ_j z_j z_jᵀ without margins: for estimates."""

    @cached_property
    def up(self) -> float:
        """A factor that makes up for the rounding of sums over r entries and of a dozen operations around them."""
        return padding(len(self.spectrum))

    @property
    def slope(self) -> float:
        """The dual bound of λ for prices of at most 1."""
        return self.strength * self.strength / self.up

    @property
    def steepest(self) -> float:
        """The largest entry of the spectrum."""
        return float(self.spectrum.max(initial=0.0))

    def most_constraint(self, norm2: Array, errors: Array) -> Array:
        """Upper bounds on g from |ŵ|² and the errors of ŵ."""
        roots = np.sqrt(norm2) * self.up + errors
        result: Array = roots * roots * (self.up / (1.0 - self.drift))
        return result

    def most_price(self, prices: Array, norm2: Array, errors: Array) -> Array:
        """Upper bounds on p from Σ_c D_c ŵ_c², |ŵ|² and the errors of ŵ."""
        length = np.sqrt(norm2) * self.up + errors
        shift = errors + self.drift / (1.0 - self.drift) * self.up * length
        roots = np.sqrt(prices) * self.up + np.sqrt(self.steepest) * self.up * shift + self.wobble * (length + shift)
        result: Array = roots * roots * self.up
        return result

    def plain_price(self, row: Array) -> float:
        """The price of one row without margins."""
        assert self.plain_spectrum is not None
        image = row @ self.basis
        return max(float((image * image) @ self.plain_spectrum), 1e-300)

    def errors(self, rows: Array, norm2: Array) -> Array:
        """Bounds on |ŵ − Bᵀa| for rows a: by their lengths, and entry by entry (sharper, dearer) where that is much."""
        error: Array = self.unit * self.up * float(np.linalg.norm(self.basis)) * np.sqrt(_squared_lengths(rows))
        large = np.flatnonzero(~(error <= _LARGE_ERROR * np.sqrt(norm2)))
        if len(large):
            sharp = np.sqrt(_squared_lengths(np.abs(rows[large]) @ np.abs(self.basis))) * (self.unit * self.up)
            error[large] = np.fmin(error[large], sharp)
        return error


def frame(problem: Canonical, alpha: Array, multipliers: Array) -> Frame | None:
    """The frame of (α, λ), from the rows with α > 0 or λ > 0 alone; None where M(α) is numerically singular."""
    r = problem.rank
    up = padding(r)
    used = np.flatnonzero(alpha > 0)
    asked = np.flatnonzero(multipliers > 0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        proposed = _proposed_basis(problem, alpha, used, asked, multipliers)
        if proposed is None:
            return None
        basis, lam = proposed
        nothing = Frame(basis, np.zeros(r), 0.0, 0.0, 0.0, gamma(r + 2) + problem.error, 0.0)
        # δ: what is left of BᵀMB − I, what rounding did to the images of the support, and to their sum
        rows = np.concatenate([problem.features[used], problem.base])
        weights = np.concatenate([alpha[used], np.ones(len(problem.base))])
        images = rows @ basis
        norm2 = _squared_lengths(images)
        errors = nothing.errors(rows, norm2)
        gram = (images * weights[:, None]).T @ images
        gram.flat[:: r + 1] -= 1.0
        seen = float(np.linalg.norm(gram)) * (1.0 + gamma(r * r)) + gamma(len(rows) + 4) * (
            1.0 + float(weights @ norm2)
        )
        wrong = float(np.sqrt(weights @ (errors * errors)))
        drift = seen + wrong * (2.0 * float(np.sqrt(1.0 + seen)) + wrong)
        drift = (drift + (problem.bound_error + 8.0 * UNIT) * (1.0 + drift)) * up * (1.0 + gamma(len(rows)))
        cost = float(alpha[used].sum()) * (1.0 + gamma(len(used)) + problem.bound_error) * up
        if not drift <= _LARGEST_DRIFT:
            return None
        # the dual's numbers, of the targets with λ > 0
        rows = problem.targets[asked]
        images = rows @ basis
        norm2 = _squared_lengths(images)
        errors = nothing.errors(rows, norm2)
        least = np.maximum(np.sqrt(norm2) / up - errors, 0.0)
        strength = float(lam @ (least * least)) / up * (1.0 - gamma(len(asked) + 8)) / (1.0 + drift)
        wobble = float(np.sqrt(lam @ (errors * errors))) * up * (1.0 + gamma(len(asked)))
        spectrum = _dominating_diagonal(images, lam)
        plain = (images * images * lam[:, None]).sum(axis=0)
        if not (np.isfinite(strength * strength) and np.isfinite(spectrum).all() and np.isfinite(wobble)):
            return None
    return Frame(basis, spectrum, strength, drift, wobble, nothing.unit, cost, plain)


def _proposed_basis(
    problem: Canonical, alpha: Array, used: IntArray, asked: IntArray, multipliers: Array
) -> tuple[Array, Array] | None:
    """A basis that makes M(α) about I and Σ_j λ_j b_j b_jᵀ about diagonal, and λ that sums to 1. Nothing rests on its quality."""
    basis = whitener(problem, alpha)
    if basis is None:
        return None
    # A second, nearly orthogonal, change of basis removes what the first one left: then M = I to rounding.
    support = problem.features[used] @ basis
    gram = (support * alpha[used][:, None]).T @ support
    white_base = problem.compact_base @ basis
    gram += white_base.T @ white_base
    factor, singular = dpotrf(gram, lower=0, clean=1)
    if singular:
        return None
    regular, second = dense.triangular_inverse(factor)
    if not regular:
        return None
    basis = basis @ second
    total = float(multipliers[asked].sum())
    if not 0 < total < np.inf:  # λ that cannot be scaled to sum to 1 proves nothing
        return basis, np.zeros(len(asked))
    lam = multipliers[asked] / total
    # by singular values of the rows √λ_j b_j: squares of small ones would drown in the rounding of large ones
    rows = (problem.targets[asked] @ basis) * np.sqrt(lam)[:, None]
    if len(rows) > 4 * problem.rank:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    if not np.isfinite(rows).all():
        return None
    axes = np.linalg.svd(rows, full_matrices=True)[2]
    return basis @ axes.T, lam


def _dominating_diagonal(images: Array, lam: Array) -> Array:
    """D with D − Σ_j λ_j z_j z_jᵀ positive semidefinite: by diagonal dominance after scaling to a diagonal of ones."""
    n, r = images.shape
    up = padding(r)
    if not n:
        return np.zeros(r)
    matrix = (images * lam[:, None]).T @ images
    size = (images * images * lam[:, None]).sum(axis=0)
    root = np.sqrt(size)
    # each entry of the sum has an error of γ |z||z|ᵀ, at most the product of the roots
    off = np.abs(matrix) + gamma(n + 4) * up * np.outer(root, root)
    off.flat[:: r + 1] = 0.0
    # any weights will do; directions of rounding errors, which correlate with all others, must not weigh as these do
    weight = np.maximum(root, _LEAST_WEIGHT * root.max(initial=0.0))
    weight[weight == 0.0] = 1.0
    diagonal: Array = size * (1.0 + gamma(n + 4)) * up + up * weight * (off / weight).sum(axis=1)
    return diagonal


def evaluate(problem: Canonical, alpha: Array, multipliers: Array) -> Bounds:
    r"""Both bounds from any α >= 0 and any λ >= 0, in O((k+m) r²): the theorem of docs/certificates.md.

    The lower bound: for λ >= 0, y_j = M^-1 b_j and any scale q >= 0 of the pair,
    value >= q ((Σλ_j b_jᵀy_j)²/Σλ_j − Σλ_j |B y_j|²) − Σ_i u_i (q p_i − 1)_+, which is concave and piecewise linear in q.
    """
    features, targets = problem.features, problem.targets
    up = padding(problem.rank)
    failed = Bounds(float("inf"), problem.offset * (1.0 - 2.0 * problem.bound_error) / up, alpha, multipliers,
                    np.full(len(targets), np.inf), np.zeros(len(features)), float("inf"))  # fmt: skip
    seen = frame(problem, alpha, multipliers)
    if seen is None:
        return failed
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norm2, prices, errors = images(seen, features)
        if problem.ratios is None:
            g = _squared_lengths(targets @ seen.basis)
            most = seen.most_constraint(g, seen.errors(targets, g))
        else:
            squares = problem.ratios**2
            g, most = norm2 * squares, seen.most_constraint(norm2, errors) * squares * up
        if not np.all(np.isfinite(most)):
            return failed
        lower, lam, rounding = 0.0, multipliers, 2.0 * seen.drift
        if seen.strength > 0:
            padded = seen.most_price(prices, norm2, errors)
            known = 0.0
            if len(problem.base):
                base2, base_prices, base_errors = images(seen, problem.base)
                known = float(seen.most_price(base_prices, base2, base_errors).sum()) * (1.0 + gamma(len(base2))) * up
            outer = None if problem.upper is None else problem.upper * ((1.0 + 4.0 * problem.bound_error) * up)
            q, lower = best_scale(seen.slope - known, padded, outer)
            # Multipliers in the scale of the dual: λ' = q B²/Λ² λ with y' chosen accordingly (Σλ' = value when scalable). The
            # bounds do not depend on their scale, so it is that without margins.
            total = max(float(multipliers.sum()), 1e-300)
            strength = float(multipliers @ g) / total
            rate = 1.0 / seen.plain_price(features[int(np.argmax(prices))]) if problem.scalable else q
            lam = multipliers / total * (rate * strength * strength)
            rounding += float(padded.max(initial=0.0)) / max(float(prices.max(initial=0.0)), 1e-300) - 1.0
            prices = prices * q
    alpha, upper = _make_feasible(problem, alpha, most, seen.cost)
    # costs of what is fixed are rounded too, and so is the way back to the program's own units
    upper = (upper + problem.offset * (1.0 + gamma(len(features) + 4))) * (1.0 + problem.bound_error) * up
    lower = lower / up + problem.offset * (1.0 - 2.0 * problem.bound_error - gamma(len(features) + 4)) / up
    return Bounds(upper, max(lower, 0.0), alpha, lam, g, prices, rounding)


def images(seen: Frame, rows: Array) -> tuple[Array, Array, Array]:
    """|ŵ|², Σ_c D_c ŵ_c² and the error of ŵ for every row."""
    squares = rows @ seen.basis
    squares *= squares
    norm2, prices = squares.sum(axis=1), squares @ seen.spectrum
    return norm2, prices, seen.errors(rows, norm2)


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


def best_scale(slope: float, prices: Array, upper: Array | None) -> tuple[float, float]:
    """The q >= 0 that maximises q·slope − Σ u_i (q p_i − 1)_+, and the maximum."""
    if slope <= 0:
        return 0.0, 0.0
    if upper is None:
        q = 1.0 / float(prices.max())
        return q, q * slope * (1.0 - 4.0 * UNIT)
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
    over = float((upper[order] * np.maximum(q * prices[order] * (1.0 + 4.0 * UNIT) - 1.0, 0.0)).sum())
    return q, q * slope * (1.0 - 4.0 * UNIT) - over * (1.0 + gamma(len(order) + 8))


def _make_feasible(problem: Canonical, alpha: Array, constraints: Array, cost: float) -> tuple[Array, float]:
    """Scale α up (within its bounds) until every constraint holds for sure, and its cost; inf where that cannot be done.

    ``constraints`` are upper bounds on g at α, and ``cost`` one on its cost.
    """
    worst = float(constraints.max())
    if problem.scalable:
        worst *= (1.0 + 32.0 * UNIT) * (
            1.0 + problem.bound_error
        )  # so that α stays feasible when it is rounded on its way back
        return alpha * worst, cost * worst * (1.0 + 4.0 * UNIT)
    upper = np.full(len(alpha), np.inf) if problem.upper is None else problem.upper
    alpha = np.minimum(alpha, upper)
    for enlarge in (_grow, _fill):
        high = 0.0 if worst <= 1.0 else max(2.0 * (worst - 1.0), 1e-15)
        while violation(problem, enlarge(alpha, upper, high)) > 1.0 and high < 1e12:
            high = max(4.0 * high, 1e-15)
        if high >= 1e12:
            continue
        low = 0.0
        for _ in range(60):
            if high - low <= 1e-3 * high + 1e-16:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if violation(problem, enlarge(alpha, upper, middle)) > 1.0 else (low, middle)
        feasible = enlarge(alpha, upper, high)
        return feasible, float(feasible.sum()) * (1.0 + gamma(len(feasible)))
    return alpha, float("inf")


def _grow(alpha: Array, upper: Array, by: float) -> Array:
    return np.minimum(upper, alpha * (1.0 + by))


def _fill(alpha: Array, upper: Array, by: float) -> Array:
    """Move towards the upper bounds; arms without one grow in proportion."""
    room = np.where(np.isfinite(upper), upper - alpha, alpha)
    filled: Array = np.minimum(upper, alpha + np.where(np.isfinite(upper), min(by, 1.0), by) * room)
    return filled


def violation(problem: Canonical, alpha: Array) -> float:
    """An upper bound on max_j g_j(α)."""
    seen = frame(problem, alpha, np.zeros(len(problem.targets)))
    if seen is None:
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        g = _squared_lengths(problem.targets @ seen.basis)
        most = seen.most_constraint(g, seen.errors(problem.targets, g))
    return float(np.max(most)) if np.isfinite(most).all() else float("inf")
