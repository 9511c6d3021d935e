"""Programs whose arms are read block by block: where the arms are, their costs and radii, and arrays that are made when asked for.

The programs whose costs are gaps (1 for G-optimal designs), with a target for every arm of a positive one: regret and horizon;
with lower bounds remaining, with upper bounds optimism.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from allocopt.base.lazy import Lazy
from allocopt.base.validation import Array, IntArray
from allocopt.linear.floating import UNIT
from allocopt.linear.gaps import plain_mean_error, refined_gaps
from allocopt.model.arms.store import ArmStore
from allocopt.model.arms.survey import SurveyReport
from allocopt.model.bandit import LinearBandit

__all__ = ["ArmBlocks", "BlockArray", "GapRule"]


@dataclass(frozen=True, eq=False)
class GapRule:
    """How the cost of an arm is found: its gap from θ, its entry of a given vector (which comes with each block), or 1."""

    theta: Array | None = None
    best_row: Array = field(default_factory=lambda: np.zeros(0))
    """An arm of the largest mean."""
    given: bool = False

    @property
    def best(self) -> float:
        """The largest mean, in plain arithmetic."""
        assert self.theta is not None
        return float(self.best_row @ self.theta)

    def plain_error(self, sizes: Array) -> float:
        """A bound on the rounding error of a gap in plain arithmetic, for arms with entries of at most these sizes."""
        if self.theta is None:
            return 0.0
        bound = plain_mean_error(sizes[None], self.theta) + plain_mean_error(self.best_row[None], self.theta)
        return float(bound[0]) * (1.0 + 8.0 * UNIT)

    def careful(self, rows: Array, given: Array | None) -> Array:
        """Gaps of some rows, each with a relative error of at most `GAP_ERROR`."""
        if self.theta is None:
            return np.ones(len(rows)) if given is None else given
        plain_error = plain_mean_error(rows, self.theta) + float(plain_mean_error(self.best_row[None], self.theta)[0])
        return refined_gaps(rows, self.theta, self.best_row, self.best - rows @ self.theta, plain_error)


@dataclass(frozen=True, eq=False)
class ArmBlocks:
    """A program over arms in a store: the store, the survey of its arms, and how an arm's cost and radius follow from its row."""

    store: ArmStore
    survey: SurveyReport
    gap_rule: GapRule
    given: Array | None
    """The gaps, where these are given and do not come from θ."""
    free: IntArray
    """The arms that cost nothing."""
    scale: float
    """The radius of an arm is scale · Δ²."""
    bandit: LinearBandit | None = None
    variances: Array | None = None
    """σ² of every arm, where these differ: then ``scale`` is 1/2."""
    pulls: Array | None = None
    """l of every arm times ``pulls_divisor``, where there are lower bounds."""
    pulls_divisor: float = 1.0
    width: float | None = None
    """a, where α of an arm is at most 4aσ²/Δ²."""

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""
        return self.store.shape

    @property
    def n_targets(self) -> int:
        """The number of arms with a positive gap."""
        return self.store.shape[0] - len(self.free)

    @property
    def bounded(self) -> bool:
        """Whether there are lower or upper bounds on the allocation."""
        return self.pulls is not None or self.width is not None

    def lower_of(self, indices: IntArray) -> Array:
        """l of some arms."""
        return np.zeros(len(indices)) if self.pulls is None else self.pulls[indices] / self.pulls_divisor

    def upper_of(self, indices: IntArray, gaps: Array) -> Array:
        """u of some arms, whose gaps are known."""
        if self.width is None:
            return np.full(len(indices), np.inf)
        bandit = self.bandit
        assert bandit is not None
        noise = bandit.noise_variance if self.variances is None else self.variances[indices]
        with np.errstate(divide="ignore"):
            most: Array = 4.0 * self.width * noise / gaps**2
        return most

    def gaps_of(self, indices: IntArray, rows: Array) -> Array:
        """Accurate gaps of some arms, whose rows are at hand."""
        return self.gap_rule.careful(rows, None if self.given is None else self.given[indices])

    def features(self) -> Array:
        """All arms in memory."""
        return self.store.array()

    def costs(self) -> Array:
        """The gaps (ones for G-optimal designs)."""
        if self.bandit is not None:
            return self.bandit.gaps
        return np.ones(self.shape[0]) if self.given is None else self.given

    def target_arms(self) -> IntArray:
        """The arms with a positive gap."""
        return np.setdiff1d(np.arange(self.shape[0]), self.free, assume_unique=True)

    def targets(self) -> Array:
        """The rows of these arms."""
        return self.features()[self.target_arms()]

    def radii(self) -> Array:
        """scale · Δ²."""
        radii: Array = self.costs()[self.target_arms()] ** 2 * self.scale
        return radii

    def lower(self) -> Array:
        """l, zeros where there are no lower bounds."""
        return np.broadcast_to(0.0, self.shape[0]) if self.pulls is None else self.pulls / self.pulls_divisor

    def upper(self) -> Array:
        """u, infinite where there are no upper bounds and on free arms."""
        if self.width is None:
            return np.broadcast_to(np.inf, self.shape[0])
        return self.upper_of(np.arange(self.shape[0]), self.costs())


class BlockArray(Lazy):
    """One array of a program over blocks, made when somebody asks for it."""

    def __init__(self, blocks: ArmBlocks, name: str) -> None:
        super().__init__(getattr(blocks, name))
        self.blocks = blocks
