r"""The frame of a pair (α, λ): the basis in which the certificate computes every row, and bounds on the rounding errors there.

Letters and margins are those of the theorem in docs/certificates.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf

from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, whitener
from allocopt.linear import dense
from allocopt.linear.dense import squared_row_lengths
from allocopt.linear.floating import UNIT, gamma

__all__ = ["Frame", "frame_of", "images", "padding"]

_LARGE_ERROR = 1e-12  # of a row's image, relatively, beyond which a sharper bound is worth a second product
_LEAST_WEIGHT = 1e-4  # least weight 1/s_c, relative to the largest, in the diagonal D of docs/certificates.md
_AT_A_TIME = 1024  # rows that are summed at a time: fewer roundings in a row than in one long sum
_LARGEST_DRIFT = 0.1  # distance of BᵀMB from I beyond which nothing is claimed


def padding(r: int) -> float:
    """1 + γ for sums over r entries and some dozens of operations around them."""
    return 1.0 + gamma(4 * r + 64)


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
    target_error: float
    """ε: √Σ_j λ_j e_j², what the errors of the targets' images can add to √p for a row of length 1."""
    unit: float
    """Error of a row's image, per unit of |row| |basis|: γ_r + ρ."""
    cost: float
    """Σ α_i, rounded up."""
    plain_spectrum: Array | None = None
    """The diagonal of Σ_j λ_j z_j z_jᵀ without margins: for estimates."""
    base_slack: float = 0.0
    """What the error of the sum behind the base can add to Σ_i l_i p_i."""

    @cached_property
    def inflation(self) -> float:
        """A factor that makes up for the rounding of sums over r entries and of a dozen operations around them."""
        return padding(len(self.spectrum))

    @property
    def slope(self) -> float:
        """The dual bound of λ for prices of at most 1."""
        return self.strength * self.strength / self.inflation

    @property
    def largest_weight(self) -> float:
        """The largest entry of the spectrum."""
        return float(self.spectrum.max(initial=0.0))

    def most_constraint(self, norm2: Array, errors: Array) -> Array:
        """Upper bounds on g from |ŵ|² and the errors of ŵ."""
        roots = np.sqrt(norm2) * self.inflation + errors
        result: Array = roots * roots * (self.inflation / (1.0 - self.drift))
        return result

    def most_price(self, prices: Array, norm2: Array, errors: Array) -> Array:
        """Upper bounds on p from Σ_c D_c ŵ_c², |ŵ|² and the errors of ŵ."""
        length = np.sqrt(norm2) * self.inflation + errors
        shift = errors + self.drift / (1.0 - self.drift) * self.inflation * length
        roots = (
            np.sqrt(prices) * self.inflation
            + np.sqrt(self.largest_weight) * self.inflation * shift
            + self.target_error * (length + shift)
        )
        result: Array = roots * roots * self.inflation
        return result

    def plain_price(self, rows: Array) -> float:
        """The price of one variable, which may have several rows, without margins."""
        assert self.plain_spectrum is not None
        images = [row @ self.basis for row in rows]
        return max(float(sum((image * image) @ self.plain_spectrum for image in images)), 1e-300)

    def errors(self, rows: Array, norm2: Array) -> Array:
        """Bounds on |ŵ − Bᵀa| for rows a: by their lengths, and entry by entry (sharper, dearer) where that is much."""
        error: Array = (
            self.unit * self.inflation * float(np.linalg.norm(self.basis)) * np.sqrt(squared_row_lengths(rows))
        )
        large = np.flatnonzero(~(error <= _LARGE_ERROR * np.sqrt(norm2)))
        if len(large):
            sharp = np.sqrt(squared_row_lengths(np.abs(rows[large]) @ np.abs(self.basis))) * (
                self.unit * self.inflation
            )
            error[large] = np.fmin(error[large], sharp)
        return error


def frame_of(problem: Canonical, alpha: Array, multipliers: Array) -> Frame | None:
    """The frame of (α, λ), from the rows with α > 0 or λ > 0 alone; None where M(α) is numerically singular."""
    r = problem.rank
    inflation = padding(r)
    by_row = problem.by_row(alpha)
    used = np.flatnonzero(by_row > 0)
    asked = np.flatnonzero(multipliers > 0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        proposed = _proposed_basis(problem, alpha, used, asked, multipliers)
        if proposed is None:
            return None
        basis, lam = proposed
        for_errors = Frame(basis, np.zeros(r), 0.0, 0.0, 0.0, gamma(r + 2) + problem.error, 0.0)
        # δ: what is left of BᵀMB − I, what rounding did to the images of the support, and to their sum
        rows = np.concatenate([problem.features[used], problem.base])
        weights = np.concatenate([by_row[used], np.ones(len(problem.base))])
        images = rows @ basis
        norm2 = squared_row_lengths(images)
        errors = for_errors.errors(rows, norm2)
        gram, terms = _weighted_sum(images, weights)
        gram.flat[:: r + 1] -= 1.0
        distance = float(np.linalg.norm(gram)) * (1.0 + gamma(r * r)) + gamma(terms + 4) * (
            1.0 + float(weights @ norm2)
        )
        image_error = float(np.sqrt(weights @ (errors * errors)))
        summed = 0.0 if problem.sum_error is None else problem.sum_error.within(basis)
        drift = distance + image_error * (2.0 * float(np.sqrt(1.0 + distance)) + image_error) + summed
        drift = (drift + (problem.bound_error + 8.0 * UNIT) * (1.0 + drift)) * inflation * (1.0 + gamma(len(rows)))
        spent = by_row[used] if problem.owners is None else alpha
        cost = float(spent.sum()) * (1.0 + gamma(len(spent)) + problem.bound_error) * inflation
        if not drift <= _LARGEST_DRIFT:
            return None
        # the dual's numbers, of the targets with λ > 0
        rows = problem.targets[asked]
        images = rows @ basis
        norm2 = squared_row_lengths(images)
        errors = for_errors.errors(rows, norm2)
        least = np.maximum(np.sqrt(norm2) / inflation - errors, 0.0)
        strength = float(lam @ (least * least)) / inflation * (1.0 - gamma(len(asked) + 8)) / (1.0 + drift)
        target_error = float(np.sqrt(lam @ (errors * errors))) * inflation * (1.0 + gamma(len(asked)))
        spectrum = _dominating_diagonal(images, lam)
        most = (np.sqrt(norm2) * inflation + errors) / (1.0 - drift)
        base_slack = summed * float(lam @ (most * most)) * inflation * (1.0 + gamma(len(asked) + 8))
        plain = (images * images * lam[:, None]).sum(axis=0)
        if not (np.isfinite(strength * strength) and np.isfinite(spectrum).all() and np.isfinite(target_error)):
            return None
    return Frame(basis, spectrum, strength, drift, target_error, for_errors.unit, cost, plain, base_slack)


def _weighted_sum(images: Array, weights: Array) -> tuple[Array, int]:
    """Σ w ŵŵᵀ, in parts where there are many rows, and how many additions any of its entries went through."""
    parts = range(0, max(len(images), 1), _AT_A_TIME)
    ends = [slice(start, start + _AT_A_TIME) for start in parts]
    gram: Array = np.sum([(images[some] * weights[some, None]).T @ images[some] for some in ends], axis=0)
    return gram, min(len(images), _AT_A_TIME) + len(parts) - 1


def _proposed_basis(
    problem: Canonical, alpha: Array, used: IntArray, asked: IntArray, multipliers: Array
) -> tuple[Array, Array] | None:
    """A basis that makes M(α) about I and Σ_j λ_j b_j b_jᵀ about diagonal, and λ that sums to 1. Nothing rests on its quality."""
    basis = whitener(problem, alpha)
    if basis is None:
        return None
    # A second, nearly orthogonal, change of basis removes what the first one left: then M = I to rounding.
    support = problem.features[used] @ basis
    gram = (support * problem.by_row(alpha)[used][:, None]).T @ support
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
    inflation = padding(r)
    if not n:
        return np.zeros(r)
    matrix = (images * lam[:, None]).T @ images
    size = (images * images * lam[:, None]).sum(axis=0)
    root = np.sqrt(size)
    # each entry of the sum has an error of γ |z||z|ᵀ, at most the product of the roots
    off_diagonal = np.abs(matrix) + gamma(n + 4) * inflation * np.outer(root, root)
    off_diagonal.flat[:: r + 1] = 0.0
    # any weights will do; directions of rounding errors, which correlate with all others, must not weigh as these do
    weight = np.maximum(root, _LEAST_WEIGHT * root.max(initial=0.0))
    weight[weight == 0.0] = 1.0
    diagonal: Array = size * (1.0 + gamma(n + 4)) * inflation + inflation * weight * (off_diagonal / weight).sum(axis=1)
    return diagonal


def images(frame: Frame, rows: Array) -> tuple[Array, Array, Array]:
    """|ŵ|², Σ_c D_c ŵ_c² and the error of ŵ for every row."""
    squares = rows @ frame.basis
    squares *= squares
    norm2, prices = squares.sum(axis=1), squares @ frame.spectrum
    return norm2, prices, frame.errors(rows, norm2)
