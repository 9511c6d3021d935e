"""LinearBandit: arms, θ and the noise, with the gaps that every program is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from allocopt import precise
from allocopt.arms import ArmStore, open_store
from allocopt.errors import InvalidInstance
from allocopt.tolerances import EPS, TIE
from allocopt.validation import Array, IntArray, frozen, in_range, index_array, matrix, positive_number, vector

if TYPE_CHECKING:
    from allocopt.pricing import SurveyReport

__all__ = ["LinearBandit"]


@dataclass(frozen=True, eq=False)
class LinearBandit:
    r"""A finite-armed linear bandit: playing arm x gives ⟨x, θ⟩ plus Gaussian noise.

    Parameters
    ----------
    arms : array_like, shape (k, d)
        One row per arm. Copied, unless it is a float64 array that is read-only (and no view of one that is not), which is
        shared. Arrays of two million entries and more (float32 or float64, in memory or memory-mapped) are never copied: do
        not change them while results are in use; a solve that finds them changed says so. A Dask array stays where it is.
        float32 values are taken as exact. Whole numbers beyond 2^53 and long doubles that are no doubles are refused;
        Fractions and Decimals are rounded.
    theta : array_like, shape (d,)
        The parameter.
    noise_variance : float
        σ² of the reward noise. Multiplies every regret constant.
    tie_tolerance : float
        Arms whose mean differs from the best one by at most ``tie_tolerance`` · (Σ|x_i θ_i| + Σ|x*_i θ_i|) are taken as
        optimal: their gap is set to zero. At most 1. The default only bridges rounding of the inputs; 0 asks for exact ties.
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
    store: ArmStore | None = field(init=False, default=None, repr=False)
    """Where the arms are looked at block by block: for large sets, memory-mapped files and Dask arrays."""
    seen: SurveyReport = field(init=False, repr=False)
    best_mean: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store = open_store(self.arms)
        arms = arm_matrix(self.arms) if store is None else None
        k, d = (arms if store is None else store).shape  # type: ignore[union-attr]
        theta = vector("theta", self.theta, InvalidInstance)
        if len(theta) != d:
            raise InvalidInstance(f"theta: expected {d} entries (the arms have {d} columns), got {len(theta)}")
        if arms is not None:
            in_range("arms", arms, InvalidInstance)
        in_range("theta", theta, InvalidInstance)
        put = object.__setattr__
        put(self, "theta", theta)
        put(self, "noise_variance", positive_number("noise_variance", self.noise_variance, InvalidInstance))
        in_range("noise_variance", np.array([self.noise_variance]), InvalidInstance)
        put(self, "tie_tolerance", positive_number("tie_tolerance", self.tie_tolerance, InvalidInstance, zero=True))
        if self.tie_tolerance > 1:  # then any two means tie, however the terms are signed
            raise InvalidInstance(f"tie_tolerance: expected a number from 0 to 1, got {self.tie_tolerance!r}")
        put(self, "labels", checked_labels(self.labels, k))
        put(self, "store", store)
        if arms is not None:
            put(self, "arms", arms)
            self._settle(arms, theta)
        elif store is not None:
            put(self, "arms", getattr(store, "listed", store))
            self._settle_store(store, theta)

    def _settle(self, arms: Array, theta: Array) -> None:
        """Means, gaps and optimal arms of arms in memory."""
        means = arms @ theta
        gaps, tied = _gaps(arms, theta, means, self.tie_tolerance)
        optimal = tied if self.optimal_arms is None else self._given_optimal(np.flatnonzero(gaps == 0), len(arms))
        gaps[optimal] = 0.0
        self.__dict__.update(optimal_arms=optimal, means=frozen(means), gaps=frozen(gaps))

    def _settle_store(self, store: ArmStore, theta: Array) -> None:
        """The optimal arms of a large set, from one look at it; means and gaps are left for whoever asks."""
        from allocopt.streamed import survey

        seen = survey(store, theta, self.tie_tolerance)
        if seen.bad is not None:
            row, column = seen.bad
            raise InvalidInstance(f"arms: expected finite numbers, but row {row}, column {column} is not")
        in_range("arms", np.array([seen.largest]), InvalidInstance)
        rows = store.rows(seen.contenders)
        gaps, tied = _gaps(rows, theta, rows @ theta, self.tie_tolerance)
        optimal = seen.contenders[tied]
        if self.optimal_arms is not None:
            optimal = self._given_optimal(seen.contenders[gaps == 0], store.shape[0])
        best = precise.dot(rows[[int(np.argmin(gaps))]], theta)
        self.__dict__.update(optimal_arms=optimal, seen=seen, best_mean=(float(best[0][0]), float(best[1][0])))

    def _given_optimal(self, best: IntArray, n_arms: int) -> IntArray:
        optimal = index_array("optimal_arms", self.optimal_arms, n_arms, InvalidInstance)
        if not len(optimal):
            raise InvalidInstance("optimal_arms: expected at least one arm, got none")
        missed = np.setdiff1d(best, optimal)
        if len(missed):
            raise InvalidInstance(f"optimal_arms: arm {missed[0]} is optimal too (its gap is 0) but is not listed")
        return optimal

    @cached_property
    def means(self) -> Array:
        """⟨x, θ⟩ of every arm."""
        assert self.store is not None
        return frozen(np.concatenate(list(self.store.scan(_MeansTask(self.theta)))))

    @cached_property
    def gaps(self) -> Array:
        """Δ of every arm; exactly 0 for the optimal ones."""
        assert self.store is not None
        task = _GapsTask(self.theta, self.best_mean)
        gaps = np.concatenate(list(self.store.scan(task)))
        gaps[self.optimal_arms] = 0.0
        return frozen(gaps)

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return int(self.arms.shape[0])

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return int(self.arms.shape[1])

    @property
    def arms_in_memory(self) -> Array:
        """The arms as one float64 array; `MethodUnavailable` where they are on a cluster."""
        return self.arms if self.store is None else self.store.array()

    @cached_property
    def rank(self) -> int:
        """Dimension of the span of the arms (rows and columns equilibrated, so scales do not matter)."""
        from allocopt.certify.reduction import spanning_coordinates
        from allocopt.streamed import store_rank

        return len(spanning_coordinates(self.arms)) if self.store is None else store_rank(self.store)

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
        if "gaps" not in self.__dict__:  # of a large set: not computed for the sake of a text
            return f"LinearBandit(n_arms={self.n_arms}, dim={self.dim}, optimal_arms={self.optimal_arms.tolist()}, streamed)"
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
    except Exception:  # it has no length, or a user's own class raises something
        return False


@dataclass(frozen=True, eq=False)
class _MeansTask:
    theta: Array

    def __call__(self, start: int, block: Array) -> Array:
        """Means of a block."""
        return block @ self.theta


@dataclass(frozen=True, eq=False)
class _GapsTask:
    theta: Array
    best: tuple[float, float]

    def __call__(self, start: int, block: Array) -> Array:
        """Accurate gaps of a block."""
        means = block @ self.theta
        doubt = (block.shape[1] + 2) * EPS * (np.abs(block) @ np.abs(self.theta)) + EPS * abs(self.best[0])
        return _refined(block, self.theta, self.best[0] - means, doubt, self.best)


def _refined(arms: Array, theta: Array, gaps: Array, doubt: Array, best: tuple[float, float]) -> Array:
    """Gaps, summed again in double-double arithmetic where plain differences are not accurate.

    1e-14 keeps the gap's rounding below that of the solve itself.
    """
    inaccurate = np.flatnonzero(doubt > 1e-14 * np.abs(gaps))
    ones = np.ones(len(inaccurate))
    top = (best[0] * ones, best[1] * ones)
    gaps[inaccurate] = precise.difference(top, precise.dot(arms[inaccurate], theta))
    return np.maximum(gaps, 0.0)


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
    gaps = _refined(arms, theta, means[best] - means, doubt + doubt[best], (float(top[0][0]), float(top[1][0])))
    tied = np.flatnonzero(gaps <= tie_tolerance * (magnitude + magnitude[best]))
    return gaps, tied
