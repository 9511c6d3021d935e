r"""AllocationProgram, the one convex program behind everything; `programs` has its named instances.

minimise  Σ κ_i α_i   s.t.   ||t_j||²_{H(α)^-1} <= ρ_j for all j,   l <= α <= u,   H(α) = Σ α_i f_i f_iᵀ/σ_i²
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from allocopt.base.errors import InvalidProgram
from allocopt.base.lazy import lazy_fields, payload
from allocopt.base.validation import Array, IntArray, frozen, in_range, index_array, matrix, vector
from allocopt.linear.assumptions import Assumption
from allocopt.model.bandit import LinearBandit, checked_noise
from allocopt.model.contexts import ContextualBandit
from allocopt.model.streamed_program import ArmBlocks, BlockArray

__all__ = ["AllocationProgram", "Origin"]


@dataclass(frozen=True, eq=False)
class Origin:
    """What a program was made from, so that a proof can start from the user's own numbers instead of rounded ones."""

    kind: str = "general"
    bandit: LinearBandit | ContextualBandit | None = None
    gaps: Array | None = None
    pulls: Array | None = None
    number: float | None = None
    """f_n for horizon, log n for remaining, the width a for optimism, τ for threshold, ε for best_arm: the double that the
    program was built with."""
    horizon: int | None = None
    constant: float | None = None
    """The universal constant of f_n, where the level was computed from n."""
    items: LinearBandit | None = None
    """The items of a transductive program, with θ and the noise; the arms are the program's features."""
    count: int | None = None
    """m of top_m."""
    answer: int | None = None
    """The arm that is to be shown to be good enough, for best_arm with an ε."""
    answers: tuple[int, ...] = ()
    """The other arms that would do, where the value asked for is the least over all of them."""
    compared: IntArray | None = None
    """Targets that are differences x_i − x_j of arms (or items): (i, j) for each. They are exact, the program's rows rounded."""
    duels: IntArray | None = None
    """Features that are differences x_i − x_j of arms: (i, j) for each."""
    labels: tuple[str, ...] | None = None
    """The names of the features, where these are not the bandit's arms."""


_ARRAYS = ("features", "costs", "targets", "radii", "lower", "upper", "target_arms")


@lazy_fields(*_ARRAYS)
@dataclass(frozen=True, eq=False)
class AllocationProgram:
    r"""Minimise Σ κ_i α_i over l <= α <= u such that ||t_j||²_{H(α)^-1} <= ρ_j for every target.

    Parameters
    ----------
    features : array_like, shape (k, d)
        f_i: playing i once adds f_i f_iᵀ/σ_i² to the information matrix H.
    costs : array_like, shape (k,)
        κ_i >= 0. An arm of cost 0 without an upper bound is *free*: it gets α = inf and its direction is known exactly.
    targets : array_like, shape (m, d)
        t_j: the directions that must be known.
    radii : array_like, shape (m,)
        ρ_j > 0: how well.
    lower, upper : array_like, shape (k,), optional
        0 <= l <= u <= inf; by default 0 and inf.
    noise_variance : float or array_like, shape (k,), optional
        σ_i² > 0, by default 1. The certificate takes them as they are: no feature is divided by a rounded σ_i.

    Examples
    --------
    >>> p = AllocationProgram([[1, 0], [0, 1]], [1, 2], [[1, 1]], [0.5])
    >>> p.n_arms, p.n_targets
    (2, 1)

    Arms with noise of their own: four pulls of variance 4 are worth one of variance 1.

    >>> import allocopt as ao
    >>> p = AllocationProgram([[1, 0], [0, 1]], [1, 1], [[1, 0], [0, 1]], [1, 1], noise_variance=[4, 1])
    >>> ao.solve(p).allocation.round(6)
    array([4., 1.])
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
    noise_variance: Array | None = None
    """σ_i², one per arm; None where all are 1."""

    @classmethod
    def over(cls, blocks: ArmBlocks, origin: Origin) -> Self:
        """The program of arms that are looked at block by block; its arrays are made if somebody asks for them."""
        arrays: dict[str, Any] = {name: BlockArray(blocks, name) for name in _ARRAYS}
        return cls(**arrays, origin=origin, noise_variance=blocks.variances)

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
        noise = _checked_variances(self.noise_variance, costs, lower, upper)
        if self.target_arms is not None:
            put(self, "target_arms", _checked_target_arms(self.target_arms, features, targets, self.origin.compared))
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
        put(self, "noise_variance", noise)

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
        """What was taken for granted when the program was made: ties that are none exactly.

        Where targets are differences, or compared with τ, no gap is taken as 0.
        """
        origin = self.origin
        return (
            ()
            if origin.bandit is None or origin.compared is not None or origin.kind == "threshold"
            else origin.bandit.assumptions
        )

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

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the features, where there are any."""
        origin = self.origin
        return origin.labels if origin.labels is not None or origin.bandit is None else origin.bandit.labels

    def target_name(self, target: int) -> str:
        """What a target is, in words."""
        if self.target_arms is not None:
            return f"the target of arm {int(self.target_arms[target])}"
        if self.origin.compared is None:
            return f"target {target}"
        what = "item" if self.kind == "transductive" else "arm"
        j, i = self.origin.compared[target].tolist()
        return f"the difference of {what} {j} to {what} {i}"

    def __repr__(self) -> str:
        bounded = ", bounded" if self.bounded else "" if self.blocks is None else ", streamed"
        return (
            f"AllocationProgram({self.kind}, n_arms={self.n_arms}, n_targets={self.n_targets}, dim={self.dim}{bounded})"
        )


def _checked_variances(value: Any, costs: Array, lower: Array, upper: Array) -> Array | None:
    """One variance per arm, or None where all are 1.

    What the certificate computes with is κσ², l/σ² and u/σ²: these must be in the range of costs and bounds.
    """
    if value is None:
        return None
    given = checked_noise(value, len(costs), InvalidProgram)
    if isinstance(given, float):
        given = frozen(np.full(len(costs), given))
    if (given == 1.0).all():
        return None
    in_range("costs · noise_variance", costs * given, InvalidProgram, each=True)
    for name, bound in (("lower", lower), ("upper", upper)):
        in_range(f"{name}/noise_variance", bound / given, InvalidProgram, power=4)
    return given


def _checked_target_arms(value: Any, features: Array, targets: Array, compared: IntArray | None) -> IntArray:
    """One arm per target, in increasing order; unless targets are differences, they are these arms."""
    arms = index_array("target_arms", value, len(features), InvalidProgram)
    if len(arms) != len(targets) or not np.array_equal(arms, value):
        raise InvalidProgram(
            f"target_arms: expected {len(targets)} arms, one per target, in increasing order, got {len(arms)}"
            + (" in another order" if len(arms) == len(targets) else "")
        )
    differ = np.zeros(0) if compared is not None else np.flatnonzero((features[arms] != targets).any(axis=1))
    if len(differ):
        j = int(differ[0])
        raise InvalidProgram(
            f"target_arms: expected targets that are their arms, but target {j} is not arm {int(arms[j])}"
        )
    return arms
