"""LinearBandit: arms, θ and the noise, with the gaps that every program is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from allocopt import precise
from allocopt.errors import InvalidInstance
from allocopt.tolerances import EPS, TIE
from allocopt.validation import Array, IntArray, frozen, in_range, index_array, matrix, positive_number, vector

__all__ = ["LinearBandit"]


@dataclass(frozen=True, eq=False)
class LinearBandit:
    r"""A finite-armed linear bandit: playing arm x gives ⟨x, θ⟩ plus Gaussian noise.

    Parameters
    ----------
    arms : array_like, shape (k, d)
        One row per arm. Copied, unless it is a read-only float64 array, which is shared.
    theta : array_like, shape (d,)
        The parameter.
    noise_variance : float
        σ² of the reward noise. Multiplies every regret constant.
    tie_tolerance : float
        Arms whose mean differs from the best one by at most ``tie_tolerance`` · (Σ|x_i θ_i| + Σ|x*_i θ_i|) are taken as
        optimal: their gap is set to zero. The default only bridges rounding of the inputs; 0 asks for exact ties.
    optimal_arms : sequence of int, optional
        Take exactly these arms as optimal instead of applying ``tie_tolerance`` (used when a proof is re-checked).
    labels : sequence of str, optional
        A name for each arm; shown with every result.

    Examples
    --------
    >>> b = LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> b.optimal_arms, b.gaps.round(6)
    (array([0]), array([0. , 1. , 0.1]))
    """

    arms: Array
    theta: Array
    noise_variance: float = 1.0
    tie_tolerance: float = TIE
    optimal_arms: IntArray = field(default=cast(IntArray, None))  # filled in below
    labels: tuple[str, ...] | None = None
    means: Array = field(init=False, repr=False)
    gaps: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        arms = arm_matrix(self.arms)
        theta = vector("theta", self.theta, InvalidInstance)
        if len(theta) != arms.shape[1]:
            raise InvalidInstance(
                f"theta: expected {arms.shape[1]} entries (the arms have {arms.shape[1]} columns), got {len(theta)}"
            )
        in_range("arms", arms, InvalidInstance)
        in_range("theta", theta, InvalidInstance)
        put = object.__setattr__
        put(self, "arms", arms)
        put(self, "theta", theta)
        put(self, "noise_variance", positive_number("noise_variance", self.noise_variance, InvalidInstance))
        in_range("noise_variance", np.array([self.noise_variance]), InvalidInstance)
        put(self, "tie_tolerance", positive_number("tie_tolerance", self.tie_tolerance, InvalidInstance, zero=True))
        means = arms @ theta
        gaps, tied = _gaps(arms, theta, means, self.tie_tolerance)
        if self.optimal_arms is None:
            optimal = tied
        else:
            optimal = index_array("optimal_arms", self.optimal_arms, len(arms), InvalidInstance)
            if not len(optimal):
                raise InvalidInstance("optimal_arms: expected at least one arm, got none")
            missed = np.setdiff1d(np.flatnonzero(gaps == 0), optimal)
            if len(missed):
                raise InvalidInstance(f"optimal_arms: arm {missed[0]} is optimal too (its gap is 0) but is not listed")
        gaps[optimal] = 0.0
        put(self, "labels", checked_labels(self.labels, len(arms)))
        put(self, "optimal_arms", optimal)
        put(self, "means", frozen(means))
        put(self, "gaps", frozen(gaps))

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return len(self.arms)

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return int(self.arms.shape[1])

    @cached_property
    def rank(self) -> int:
        """Dimension of the span of the arms (rows and columns equilibrated, so scales do not matter)."""
        from allocopt.reduction import spanning_coordinates

        return len(spanning_coordinates(self.arms))

    @property
    def suboptimal_arms(self) -> IntArray:
        """Indices of the arms with a positive gap."""
        return np.flatnonzero(self.gaps > 0)

    @property
    def gap_min(self) -> float:
        """Δ_min, the smallest positive gap (inf if every arm is optimal)."""
        positive = self.gaps[self.gaps > 0]
        return float(positive.min()) if len(positive) else float("inf")

    @property
    def gap_max(self) -> float:
        """Δ_max."""
        return float(self.gaps.max())

    def __repr__(self) -> str:
        return (
            f"LinearBandit(n_arms={self.n_arms}, dim={self.dim}, optimal_arms={self.optimal_arms.tolist()}, "
            f"gap_min={self.gap_min:.6g}, gap_max={self.gap_max:.6g}, noise_variance={self.noise_variance:g})"
        )


def checked_labels(labels: Any, n_arms: int) -> tuple[str, ...] | None:
    """Labels as a tuple of one string per arm, or None."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Sequence) or not all(isinstance(x, str) for x in labels):
        raise InvalidInstance(f"labels: expected a list of {n_arms} strings, got a {type(labels).__name__}")
    if len(labels) != n_arms:
        raise InvalidInstance(f"labels: expected {n_arms} strings, one per arm, got {len(labels)}")
    return tuple(labels)


def arm_matrix(arms: Any) -> Array:
    """Arms as a validated matrix with at least one row and one column."""
    result = matrix("arms", arms, InvalidInstance) if not _is_empty(arms) else None
    if result is None or result.size == 0:
        raise InvalidInstance("arms: expected at least one arm with at least one coordinate, got none")
    return result


def _is_empty(value: Any) -> bool:
    try:
        return len(value) == 0
    except TypeError:
        return False


def _gaps(arms: Array, theta: Array, means: Array, tie_tolerance: float) -> tuple[Array, IntArray]:
    """Gaps that are right to the last digits, and the arms that tie for the best mean.

    ``max(means) − means`` loses all digits of a small gap. Rows where that could matter are summed again in
    double-double arithmetic, so a gap of 1e-12 is as accurate as one of 1.
    """
    magnitude = np.abs(arms) @ np.abs(theta)
    doubt = (arms.shape[1] + 2) * EPS * magnitude
    best = int(np.argmax(means))
    contenders = np.flatnonzero(means + doubt >= means[best] - doubt[best])
    hi, lo = precise.dot(arms[contenders], theta)
    best = int(contenders[np.lexsort((lo, hi))[-1]])
    top = precise.dot(arms[best : best + 1], theta)
    gaps = means[best] - means
    # relative error of the plain difference; 1e-14 keeps the gap's rounding below that of the solve itself
    inaccurate = np.flatnonzero(doubt + doubt[best] > 1e-14 * np.abs(gaps))
    hi, lo = precise.dot(arms[inaccurate], theta)
    ones = np.ones(len(inaccurate))
    gaps[inaccurate] = precise.difference((top[0] * ones, top[1] * ones), (hi, lo))
    gaps = np.maximum(gaps, 0.0)
    tied = np.flatnonzero(gaps <= tie_tolerance * (magnitude + magnitude[best]))
    return gaps, tied
