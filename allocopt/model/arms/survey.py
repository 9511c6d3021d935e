"""One look at all arms of a store: sizes, bad entries, and the arms that may be best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray, in_range, not_vanishing, smallest_entry
from allocopt.model.arms.store import ArmStore

__all__ = ["SurveyReport", "check_survey", "largest_entries", "survey", "surveyed", "with_gaps"]

KEEP = 40
"""The KEEP·d arms of the largest means (or smallest gaps) are remembered, and as many violators of each pricing pass."""
_LONGER = 4.0  # the first look assumes the best arm is at most this many times as long as the longest arm of a block
_GAPS_AT_A_TIME = 100_000  # so that looking for the smallest takes no memory to speak of
_NONE: IntArray = np.zeros(0, dtype=np.int64)
_EMPTY: Array = np.zeros(0)


@dataclass(frozen=True, eq=False)
class SurveyReport:
    """What one look at the arms tells."""

    largest: float
    """The largest absolute entry; nan or inf if there is one."""
    longest: float
    """The largest Euclidean length."""
    sizes: Array
    """The largest absolute entry of every column."""
    top: IntArray
    """Arms of the largest means (or smallest gaps), for first guesses."""
    top_means: Array
    bad: tuple[int, int] | None = None
    """Where the first entry is that is not finite."""
    contenders: IntArray = field(default_factory=lambda: _NONE)
    """Arms that may tie for the best mean."""
    best_mean_lower: float = -np.inf
    """A lower bound on the best mean."""
    best_mean_upper: float = -np.inf
    """An upper bound on every mean plus the tolerance for ties of its own arm."""
    longest_best_arm: float = 0.0
    """An upper bound on the length of an arm of the best mean."""
    complete: bool = True
    """Whether no contender is missing; one can be where a block's arms are much shorter than the best arm."""
    smallest: float = np.inf
    """The smallest absolute entry that is not 0."""


@dataclass(frozen=True, eq=False)
class SurveyTask:
    """Sizes, bad entries, and the arms of the largest means, with all that may tie for the best."""

    theta: Array | None
    keep: int
    tie_tolerance: float = 0.0

    def __call__(self, start: int, block: Array) -> SurveyReport:
        """Look at a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.maximum(block.max(axis=0), -block.min(axis=0))
            largest = float(sizes.max())  # nan if any entry is nan
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
            longest = float(lengths.max())
        if not np.isfinite(largest):
            row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY, (start + row, column))
        if not np.isfinite(longest):  # far out of range, which the caller refuses
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY)
        smallest = smallest_entry(block)
        if self.theta is None:
            return SurveyReport(largest, longest, sizes, _NONE, _EMPTY, smallest=smallest)
        means = block @ self.theta
        top = largest_entries(means, self.keep)
        rounding, tie = _mean_errors(self.theta, self.tie_tolerance)
        error = rounding * lengths
        best_mean_lower = float((means - error).max())
        longest_best_arm = float(lengths[means + error >= best_mean_lower].max())
        most = means + error + tie * lengths
        contenders = np.flatnonzero(most >= best_mean_lower - _LONGER * tie * longest)
        return SurveyReport(
            largest, longest, sizes, top + start, means[top], None, contenders + start,
            best_mean_lower, float(most.max()), longest_best_arm, smallest=smallest,
        )  # fmt: skip


def _mean_errors(theta: Array, tie_tolerance: float) -> tuple[float, float]:
    """Rounding error of a mean and the tolerance for ties, each per unit of the arm's length: Σ|x_i θ_i| <= |x||θ|."""
    size = float(np.linalg.norm(theta))
    return (len(theta) + 2) * EPS * size, tie_tolerance * size


@dataclass(frozen=True, eq=False)
class ContenderTask:
    """All arms that may tie for the best mean, given a lower bound on that mean and an upper bound on the length of its arm."""

    theta: Array
    tie_tolerance: float
    best_mean_lower: float
    longest_best_arm: float

    def __call__(self, start: int, block: Array) -> IntArray:
        """Their indices."""
        rounding, tie = _mean_errors(self.theta, self.tie_tolerance)
        most = block @ self.theta + (rounding + tie) * np.sqrt(np.einsum("ij,ij->i", block, block))
        return np.flatnonzero(most >= self.best_mean_lower - tie * self.longest_best_arm) + start


def merge_surveys(reports: Sequence[SurveyReport], keep: int, tie: float = 0.0) -> SurveyReport:
    """The survey of all blocks together; ``tie`` is what the tolerance for ties amounts to per unit of an arm's length."""
    for report in reports:
        if report.bad is not None:
            return report
    top = np.concatenate([r.top for r in reports])
    means = np.concatenate([r.top_means for r in reports])
    order = np.argsort(-means, kind="stable")[:keep]
    best_mean_lower = max(r.best_mean_lower for r in reports)
    longest_best_arm = max(r.longest_best_arm for r in reports if r.best_mean_upper >= best_mean_lower)
    close = [r for r in reports if r.best_mean_upper + tie * longest_best_arm >= best_mean_lower]
    return SurveyReport(
        max(r.largest for r in reports), max(r.longest for r in reports), np.max([r.sizes for r in reports], axis=0),
        top[order], means[order], None,
        np.concatenate([r.contenders for r in close]),
        best_mean_lower, max(r.best_mean_upper for r in reports), longest_best_arm,
        all(longest_best_arm <= _LONGER * r.longest for r in close), min(r.smallest for r in reports),
    )  # fmt: skip


def survey(store: ArmStore, theta: Array | None, tie_tolerance: float = 0.0) -> SurveyReport:
    """One look at all arms: sizes, bad entries, the arms of the largest means."""
    keep = KEEP * store.shape[1]
    task = SurveyTask(theta, keep, tie_tolerance)
    reports = list(store.scan(task))
    if theta is None:
        return merge_surveys(reports, keep)
    report = merge_surveys(reports, keep, tie_tolerance * float(np.linalg.norm(theta)))
    if report.complete:
        return report
    again = ContenderTask(theta, tie_tolerance, report.best_mean_lower, report.longest_best_arm)
    return replace(report, contenders=np.concatenate(list(store.scan(again))))


def with_gaps(report: SurveyReport, gaps: Array, dim: int) -> SurveyReport:
    """A survey of the arms alone, and the arms of the smallest gaps."""
    keep = KEEP * dim
    parts = range(0, len(gaps), _GAPS_AT_A_TIME)
    few = np.concatenate([start + _smallest(gaps[start : start + _GAPS_AT_A_TIME], keep) for start in parts])
    few = few[np.argsort(gaps[few], kind="stable")[:keep]]
    return replace(report, top=few, top_means=-gaps[few])


def check_survey(report: SurveyReport) -> None:
    """Refuse arms with entries that are not finite, or out of the promised range."""
    if report.bad is not None:
        row, column = report.bad
        raise InvalidInstance(f"arms: expected finite numbers, but row {row}, column {column} is not")
    in_range("arms", np.array([report.largest]), InvalidInstance)
    not_vanishing("arms", report.smallest, InvalidInstance)


def surveyed(store: ArmStore) -> SurveyReport:
    """A look at all arms of a store, which refuses those that no program can be made of."""
    report = survey(store, None)
    check_survey(report)
    if report.largest == 0:
        raise InvalidInstance("arms: expected arms that span something, but every arm is the zero vector")
    return report


def largest_entries(values: Array, count: int) -> IntArray:
    """Places of the ``count`` largest values."""
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, count)[:count])


def _smallest(values: Array, count: int) -> IntArray:
    """Places of the ``count`` smallest values."""
    return largest_entries(-values, count)
