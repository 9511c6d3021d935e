"""LinearBandit: arms, θ and the noise, with the gaps that every program is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from allocopt.base.errors import AllocoptError, InvalidInstance
from allocopt.base.spelling import spelled_constructor
from allocopt.base.tolerances import LARGEST, TIE
from allocopt.base.validation import (
    Array,
    ArrayLike,
    IntArray,
    frozen,
    in_range,
    index_array,
    matrix,
    positive_number,
    vector,
)
from allocopt.linear.assumptions import Assumption
from allocopt.linear.gaps import (
    best_of,
    error_of_mean,
    exact_gap,
    magnitudes,
    plain_mean_error,
    refined_gaps,
    tie_share,
)
from allocopt.linear.span import spanning_coordinates
from allocopt.model.arms.names import by_column_names, checked_labels, index_labels
from allocopt.model.arms.opening import open_store
from allocopt.model.arms.spanning import store_rank
from allocopt.model.arms.store import ArmStore
from allocopt.model.arms.survey import SurveyReport, check_survey, survey
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["LinearBandit"]

_MOST_TIES = 20  # assumptions of ties that are listed one by one


@spelled_constructor
@dataclass(frozen=True, eq=False)
class LinearBandit(Tabular):
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
        The parameter. A pandas Series beside a DataFrame of arms goes by the names of its columns, and is refused where they
        are others; where one of the two has no names (or just 0, 1, 2, …), by position.
    noise_variance : float or array_like, shape (k,)
        σ² of the reward noise: one number, which multiplies every regret constant, or one per arm. Equal numbers per arm are
        kept as the one number that they are.
    tie_tolerance : float
        Arms whose mean differs from the best one by at most ``tie_tolerance`` · (Σ|x_i θ_i| + Σ|x*_i θ_i|) are taken as
        optimal: their gap is set to zero. At most 1. The default only bridges rounding of the inputs; 0 asks for exact ties.
    optimal_arms : sequence of int, optional
        Take exactly these arms as optimal instead of applying ``tie_tolerance`` (used when a proof is re-checked).
        `dataclasses.replace` hands them on: write ``replace(bandit, theta=…, optimal_arms=None)`` to have them found anew.
    labels : sequence or array of str, optional
        A name for each arm, by default those of a DataFrame's index; shown with every result.

    Examples
    --------
    >>> b = LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    >>> b.optimal_arms, b.gaps.round(6)
    (array([0]), array([0. , 1. , 0.1]))
    """

    arms: Array
    theta: Array
    noise_variance: float | Array = 1.0
    tie_tolerance: float = TIE
    optimal_arms: IntArray = field(default=cast(IntArray, None))  # filled in below
    labels: tuple[str, ...] | None = None
    _store: ArmStore | None = field(init=False, default=None, repr=False)
    """Where the arms are looked at block by block: for large sets, memory-mapped files and Dask arrays."""
    _survey: SurveyReport = field(init=False, repr=False)
    _best_row: Array = field(init=False, repr=False)
    """An arm of the largest mean, in exact arithmetic."""

    if TYPE_CHECKING:  # what may be passed is more than what is kept

        def __init__(
            self,
            arms: ArrayLike | ArmStore,
            theta: ArrayLike,
            noise_variance: ArrayLike = 1.0,
            tie_tolerance: float = TIE,
            optimal_arms: ArrayLike | None = None,
            labels: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        store = open_store(self.arms)
        arms = _in_order(self.arms, self.theta) if store is None else None
        k, d = (arms if store is None else store).shape  # type: ignore[union-attr]
        theta = vector("theta", by_column_names(self.arms, self.theta), InvalidInstance)
        if len(theta) != d:
            raise InvalidInstance(f"theta: expected {d} entries (the arms have {d} columns), got {len(theta)}")
        if arms is not None:
            in_range("arms", arms, InvalidInstance)
        in_range("theta", theta, InvalidInstance)
        noise_variance = checked_noise(self.noise_variance, k, InvalidInstance)
        tie_tolerance = positive_number("tie_tolerance", self.tie_tolerance, InvalidInstance, zero=True)
        if tie_tolerance > 1:  # then any two means tie, however the terms are signed
            raise InvalidInstance(f"tie_tolerance: expected a number from 0 to 1, got {tie_tolerance!r}")
        self._put(
            theta=theta, noise_variance=noise_variance, tie_tolerance=tie_tolerance,
            labels=checked_labels(index_labels(self.arms) if self.labels is None else self.labels, k), _store=store,
        )  # fmt: skip
        if arms is not None:
            self._put(arms=arms)
            self._settle(arms, theta)
        elif store is not None:
            self._put(arms=getattr(store, "listed", store))
            self._settle_store(store, theta)

    def _settle(self, arms: Array, theta: Array) -> None:
        """Means, gaps and optimal arms of arms in memory."""
        means = arms @ theta
        gaps, best, tied = _gaps(arms, theta, means, self.tie_tolerance)
        optimal = tied if self.optimal_arms is None else self._given_optimal(np.flatnonzero(gaps == 0), len(arms))
        gaps[optimal] = 0.0
        self._put(optimal_arms=optimal, _best_row=frozen(arms[best].copy()), means=frozen(means), gaps=frozen(gaps))

    def _settle_store(self, store: ArmStore, theta: Array) -> None:
        """The optimal arms of a large set, from one look at it; means and gaps are left for whoever asks."""
        report = survey(store, theta, self.tie_tolerance)
        check_survey(report)
        rows = store.rows(report.contenders)
        gaps, best, tied = _gaps(rows, theta, rows @ theta, self.tie_tolerance)
        optimal = report.contenders[tied]
        if self.optimal_arms is not None:
            optimal = self._given_optimal(report.contenders[gaps == 0], store.shape[0])
        self._put(optimal_arms=optimal, _survey=report, _best_row=frozen(rows[best].copy()))

    def _put(self, **values: Any) -> None:
        """Fields that follow from the others, and cached properties that are known already."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The optimal arms that are so only up to the tolerance for ties, with their exact gaps (relative to their terms)."""
        if len(self.optimal_arms) == 1:
            return ()
        rows = self.arms[self.optimal_arms] if self._store is None else self._store.rows(self.optimal_arms)
        different, group = np.unique(rows, axis=0, return_inverse=True)
        shares = [tie_share(row, self.theta, self._best_row) for row in different]
        inexact = sorted((i for i, share in enumerate(shares) if share), key=lambda i: -shares[i])
        found = []
        for i in inexact[:_MOST_TIES]:
            gap = exact_gap(different[i], self.theta, self._best_row)
            arms = self.optimal_arms[group == i] if len(inexact) <= _MOST_TIES else self.optimal_arms
            text = (
                f"arm {int(arms[0])} is taken as optimal; its exact gap is {int(gap.p) / int(gap.q):.3g}, "
                f"{float(shares[i]):.3g} relative to the terms of the two means"
            )
            found.append(Assumption("tie", tuple(int(a) for a in arms), shares[i], text))
        if len(inexact) > _MOST_TIES:
            text = f"{len(inexact)} arms are taken as optimal with gaps of at most {float(found[0].size):.3g}, relative to their terms"
            found = [Assumption("tie", found[0].arms, found[0].size, text)]
        return tuple(found)

    def _given_optimal(self, best: IntArray, n_arms: int) -> IntArray:
        optimal = index_array("optimal_arms", self.optimal_arms, n_arms, InvalidInstance)
        if not len(optimal):
            raise InvalidInstance("optimal_arms: expected at least one arm, got none")
        missed = np.setdiff1d(best, optimal)
        if len(missed):
            raise InvalidInstance(
                f"optimal_arms: arm {missed[0]} is optimal too (its gap is 0) but is not listed; None finds them anew"
            )
        return optimal

    @cached_property
    def means(self) -> Array:
        """⟨x, θ⟩ of every arm."""
        assert self._store is not None
        return frozen(np.concatenate(list(self._store.scan(_MeansTask(self.theta)))))

    @cached_property
    def gaps(self) -> Array:
        """Δ of every arm; exactly 0 for the optimal ones."""
        assert self._store is not None
        task = _GapsTask(self.theta, self._best_row)
        gaps = np.concatenate(list(self._store.scan(task)))
        gaps[self.optimal_arms] = 0.0
        return frozen(gaps)

    @property
    def variances(self) -> Array | None:
        """σ² of every arm, where they differ; None where ``noise_variance`` is one number."""
        return None if isinstance(self.noise_variance, float) else self.noise_variance

    @property
    def variance_of_each(self) -> Array:
        """σ² of every arm, differ they or not."""
        return np.broadcast_to(self.noise_variance, self.n_arms)

    def _one_variance(self, what: str) -> float:
        """σ², where one number holds for all arms; `InvalidInstance` says what needs that otherwise."""
        if isinstance(self.noise_variance, float):
            return self.noise_variance
        raise InvalidInstance(f"noise_variance: expected one number for {what}, got one per arm")

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
        return self.arms if self._store is None else self._store.array()

    def check_unchanged(self) -> None:
        """`InvalidInstance` if the arms of a large set, which are shared with the caller, are no longer what they were."""
        if self._store is not None:
            self._store.check_unchanged()

    @cached_property
    def rank(self) -> int:
        """Dimension of the span of the arms (rows and columns equilibrated, so scales do not matter)."""
        return len(spanning_coordinates(self.arms)) if self._store is None else store_rank(self._store)

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

    def plot(self, **options: Any) -> Any:
        """Its solved regret program: `allocopt.plots.geometry` in 2 or 3 dimensions, else `gap_information`. A matplotlib Figure."""
        return drawn("geometry" if self.dim in (2, 3) else "gap_information", self, **options)

    def _table(self) -> Table:
        """One row per arm, the best ones first."""
        gaps = self.gaps
        columns: dict[str, Any] = {"arm": np.arange(self.n_arms)}
        if self.labels is not None:
            columns["label"] = list(self.labels)
        columns |= {"mean": self.means, "gap": gaps}
        if self.variances is not None:
            columns["σ²"] = self.variances
        facts = {
            "arms": f"{self.n_arms:,} in {self.dim} dimensions", "optimal": _few_of(self.optimal_arms),
            "smallest gap": f"{self.gap_min:.6g}", "largest gap": f"{self.gap_max:.6g}",
            "noise variance": noise_text(self.noise_variance),
        }  # fmt: skip
        return Table("Linear bandit", facts, columns, np.argsort(gaps, kind="stable")[:100].tolist())

    def __repr__(self) -> str:
        if self._store is not None and "gaps" not in vars(self):  # of a large set: not computed for the sake of a text
            return f"LinearBandit(n_arms={self.n_arms}, dim={self.dim}, optimal_arms={self.optimal_arms.tolist()}, streamed)"
        return (
            f"LinearBandit(n_arms={self.n_arms}, dim={self.dim}, optimal_arms={self.optimal_arms.tolist()}, "
            f"gap_min={self.gap_min:.6g}, gap_max={self.gap_max:.6g}, noise_variance={noise_text(self.noise_variance)})"
        )


def _few_of(arms: IntArray, most: int = 8) -> str:
    """Some arms in words, the first of them where they are many."""
    shown = ", ".join(str(i) for i in arms[:most].tolist())
    return f"{shown}, … ({len(arms):,} in all)" if len(arms) > most else shown


def checked_noise(value: Any, n_arms: int, error: type[AllocoptError], what: str = "arms") -> float | Array:
    """σ² as one number, also where it is given once per arm and is the same; else as a read-only vector."""
    name = "noise_variance"
    if type(value) is float and 1.0 / LARGEST <= value <= LARGEST:
        return value
    if np.ndim(value) == 0 if isinstance(value, np.ndarray) else not _is_listed(value):
        number = positive_number(name, value, error)
        in_range(name, np.array([number]), error)
        return number
    each = vector(name, value, error)
    if len(each) != n_arms:
        raise error(
            f"{name}: expected a positive, finite number, or one for each of the {n_arms} {what}, got {len(each)} numbers"
        )
    if not (each > 0).all():
        i = int(np.flatnonzero(~(each > 0))[0])
        raise error(f"{name}: expected positive, finite numbers, but entry {i} is {float(each[i])!r}")
    in_range(name, each, error, each=True)
    return float(each[0]) if (each == each[0]).all() else frozen(each)


def _is_listed(value: Any) -> bool:
    """Whether a value is a sequence of numbers rather than one."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)


def noise_text(noise_variance: float | Array) -> str:
    """σ² in a few characters; a range where it differs from arm to arm."""
    if isinstance(noise_variance, float):
        return f"{noise_variance:g}"
    return f"{noise_variance.min():g}…{noise_variance.max():g}"


def _in_order(arms: Any, theta: Any) -> Array:
    """`arm_matrix`, which says so where the arms were given for theta."""
    try:
        return arm_matrix(arms)
    except InvalidInstance as problem:
        if getattr(theta, "ndim", 0) != 2 and not (isinstance(theta, list | tuple) and theta and _is_listed(theta[0])):
            raise
        raise InvalidInstance(f"{problem}; theta is a matrix: two arguments are swapped, write arms first") from None


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
    best_row: Array

    def __call__(self, start: int, block: Array) -> Array:
        """Accurate gaps of a block."""
        best = float(self.best_row @ self.theta)
        plain_error = plain_mean_error(block, self.theta) + float(plain_mean_error(self.best_row[None], self.theta)[0])
        return refined_gaps(block, self.theta, self.best_row, best - block @ self.theta, plain_error)


def _gaps(arms: Array, theta: Array, means: Array, tolerance: float) -> tuple[Array, int, IntArray]:
    """Gaps to the best mean, the arm that has it, and all that tie for it."""
    size = magnitudes(arms, theta)
    plain_error = error_of_mean(size, len(theta))
    best = best_of(arms, theta, means, plain_error)
    gaps = refined_gaps(arms, theta, arms[best], means[best] - means, plain_error + plain_error[best], best)
    return gaps, best, np.flatnonzero(gaps <= tolerance * (size + size[best]))
