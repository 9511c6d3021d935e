r"""AllocationProgram, the one convex program behind everything; `programs` has its named instances.

minimise  Σ κ_i α_i   s.t.   ||t_j||²_{H(α)^-1} <= ρ_j for all j,   l <= α <= u,   H(α) = Σ α_i f_i f_iᵀ
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from allocopt.base.errors import InvalidProgram
from allocopt.base.lazy import lazy_fields, payload
from allocopt.base.validation import Array, IntArray, frozen, in_range, index_array, matrix, vector
from allocopt.linear.assumptions import Assumption
from allocopt.model.bandit import LinearBandit
from allocopt.model.streamed_program import ArmBlocks, BlockArray

__all__ = ["AllocationProgram", "Origin"]


@dataclass(frozen=True, eq=False)
class Origin:
    """What a program was made from, so that a proof can start from the user's own numbers instead of rounded ones."""

    kind: str = "general"
    bandit: LinearBandit | None = None
    gaps: Array | None = None
    pulls: Array | None = None
    number: float | None = None
    """f_n for horizon, log n for remaining, the width a for optimism: the double that the program was built with."""
    horizon: int | None = None
    constant: float | None = None
    """The universal constant of f_n, where the level was computed from n."""


_ARRAYS = ("features", "costs", "targets", "radii", "lower", "upper", "target_arms")


@lazy_fields(*_ARRAYS)
@dataclass(frozen=True, eq=False)
class AllocationProgram:
    r"""Minimise Σ κ_i α_i over l <= α <= u such that ||t_j||²_{H(α)^-1} <= ρ_j for every target.

    Parameters
    ----------
    features : array_like, shape (k, d)
        f_i: playing i once adds f_i f_iᵀ to the information matrix H.
    costs : array_like, shape (k,)
        κ_i >= 0. An arm of cost 0 without an upper bound is *free*: it gets α = inf and its direction is known exactly.
    targets : array_like, shape (m, d)
        t_j: the directions that must be known.
    radii : array_like, shape (m,)
        ρ_j > 0: how well.
    lower, upper : array_like, shape (k,), optional
        0 <= l <= u <= inf; by default 0 and inf.

    Examples
    --------
    >>> p = AllocationProgram([[1, 0], [0, 1]], [1, 2], [[1, 1]], [0.5])
    >>> p.n_arms, p.n_targets
    (2, 1)
    """

    features: Array
    costs: Array
    targets: Array
    radii: Array
    lower: Array = field(default=cast(Array, None))  # filled in below
    upper: Array = field(default=cast(Array, None))
    target_arms: IntArray | None = field(default=None, repr=False)
    """For programs whose targets belong to arms: the arm of each target."""
    origin: Origin = field(default_factory=Origin, repr=False)

    @classmethod
    def over(cls, blocks: ArmBlocks, origin: Origin) -> Self:
        """The program of arms that are looked at block by block; its arrays are made if somebody asks for them."""
        arrays: dict[str, Any] = {name: BlockArray(blocks, name) for name in _ARRAYS}
        return cls(**arrays, origin=origin)

    def __post_init__(self) -> None:
        if self.blocks is None:
            self._check_arrays()

    def _check_arrays(self) -> None:
        """Arrays as validated, read-only doubles."""
        put = object.__setattr__
        features = matrix("features", self.features, InvalidProgram)
        if not features.size:
            raise InvalidProgram(f"features: expected at least one row and one column, got shape {features.shape}")
        k, d = features.shape
        costs = vector("costs", self.costs, InvalidProgram, length=k)
        targets = matrix("targets", self.targets, InvalidProgram)
        if not len(targets) or targets.shape[1] != d:
            raise InvalidProgram(
                f"targets: expected at least one row of {d} entries (as the features have), got shape {targets.shape}"
            )
        radii = vector("radii", self.radii, InvalidProgram, length=len(targets))
        lower = np.zeros(k) if self.lower is None else self.lower
        upper = np.full(k, np.inf) if self.upper is None else self.upper
        lower = vector("lower", lower, InvalidProgram, length=k)
        upper = vector("upper", upper, InvalidProgram, length=k, infinite=True)
        for name, values, bad, wanted in (
            ("costs", costs, costs < 0, ">= 0"),
            ("radii", radii, radii <= 0, "> 0"),
            ("lower", lower, lower < 0, ">= 0"),
            ("upper", upper, upper < lower, ">= lower"),
        ):
            if bad.any():
                i = int(np.flatnonzero(bad)[0])
                raise InvalidProgram(f"{name}: expected entries {wanted}, but entry {i} is {float(values[i])!r}")
        if self.target_arms is not None:
            put(self, "target_arms", _checked_target_arms(self.target_arms, features, targets, self.kind))
        for name, array, power, each in (
            ("features", features, 1, False), ("targets", targets, 1, False), ("costs", costs, 1, True),
            ("radii", radii, 4, True), ("lower", lower, 4, False), ("upper", upper, 4, False),
        ):  # fmt: skip
            in_range(name, array, InvalidProgram, power=power, each=each)
        for name, array in (
            ("features", features), ("costs", costs), ("targets", targets), ("radii", radii),
            ("lower", lower), ("upper", upper),
        ):  # fmt: skip
            put(self, name, frozen(array))

    @property
    def blocks(self) -> ArmBlocks | None:
        """Where the arms are looked at block by block, of large sets; None where all arrays are at hand."""
        features = payload(self, "features")
        return features.blocks if isinstance(features, BlockArray) else None

    @property
    def n_arms(self) -> int:
        """k, the number of features."""
        return len(self.features) if self.blocks is None else self.blocks.shape[0]

    @property
    def n_targets(self) -> int:
        """m, the number of constraints."""
        return len(self.targets) if self.blocks is None else self.blocks.n_targets

    @property
    def n_multipliers(self) -> int:
        """How many multipliers a solution has: one per arm where targets belong to arms, else one per target."""
        return self.n_targets if self.blocks is None and self.target_arms is None else self.n_arms

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return int(self.features.shape[1]) if self.blocks is None else self.blocks.shape[1]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was taken for granted when the program was made: ties that are none exactly."""
        return () if self.origin.bandit is None else self.origin.bandit.assumptions

    @property
    def kind(self) -> str:
        """Which named program this is ("general" for one given by its arrays)."""
        return self.origin.kind

    @property
    def free(self) -> IntArray:
        """The arms that cost nothing and have no upper bound: α = inf."""
        if self.blocks is not None:
            return self.blocks.free
        return np.flatnonzero((self.costs == 0) & np.isinf(self.upper))

    @property
    def bounded(self) -> bool:
        """Whether any arm has a lower bound above 0 or a finite upper bound, so that α may not be scaled at will."""
        return self.blocks is None and bool(self.lower.any() or not np.isinf(self.upper).all())

    def __repr__(self) -> str:
        bounded = ", bounded" if self.bounded else "" if self.blocks is None else ", streamed"
        return (
            f"AllocationProgram({self.kind}, n_arms={self.n_arms}, n_targets={self.n_targets}, dim={self.dim}{bounded})"
        )


def _checked_target_arms(value: Any, features: Array, targets: Array, kind: str) -> IntArray:
    """One arm per target, in increasing order; but for best arms, whose targets are differences, the targets are its arms."""
    arms = index_array("target_arms", value, len(features), InvalidProgram)
    if len(arms) != len(targets) or not np.array_equal(arms, value):
        raise InvalidProgram(
            f"target_arms: expected {len(targets)} arms, one per target, in increasing order, got {len(arms)}"
            + (" in another order" if len(arms) == len(targets) else "")
        )
    differ = np.zeros(0) if kind == "best_arm" else np.flatnonzero((features[arms] != targets).any(axis=1))
    if len(differ):
        j = int(differ[0])
        raise InvalidProgram(
            f"target_arms: expected targets that are their arms, but target {j} is not arm {int(arms[j])}"
        )
    return arms
