r"""AllocationProgram, the one convex program behind everything, and its named constructors (`allocopt.programs`).

    minimise  Σ κ_i α_i   s.t.   ||t_j||²_{H(α)^-1} <= ρ_j for all j,   l <= α <= u,   H(α) = Σ α_i f_i f_iᵀ

Regret is Corollary 2 (`cor:regretlb`), horizon is Definition 9 (`def:opt`), optimism is Section 8 (`sec:optimism`) of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, InvalidProgram
from allocopt.base.validation import (
    Array,
    IntArray,
    frozen,
    in_range,
    index_array,
    matrix,
    not_vanishing,
    positive_number,
    vector,
    whole_number,
)
from allocopt.model.arms import ArmStore, open_store
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.model.levels import f_n

if TYPE_CHECKING:
    from allocopt.certify.pricing import SurveyReport
    from allocopt.linear.assumptions import Assumption

__all__ = ["AllocationProgram", "Origin", "best_arm", "g_optimal", "horizon", "optimism", "regret", "remaining"]


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

    def __post_init__(self) -> None:
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
    def n_arms(self) -> int:
        """k, the number of features."""
        return len(self.features)

    @property
    def n_targets(self) -> int:
        """m, the number of constraints."""
        return len(self.targets)

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return int(self.features.shape[1])

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
        return np.flatnonzero((self.costs == 0) & np.isinf(self.upper))

    @property
    def bounded(self) -> bool:
        """Whether any arm has a lower bound above 0 or a finite upper bound, so that α may not be scaled at will."""
        return bool(self.lower.any() or not np.isinf(self.upper).all())

    def __repr__(self) -> str:
        bounded = ", bounded" if self.bounded else ""
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


def _check_bandit(bandit: Any) -> LinearBandit:
    if not isinstance(bandit, LinearBandit):
        raise InvalidInstance(f"bandit: expected a LinearBandit, got a {type(bandit).__name__}")
    return bandit


def _check_learnable(arms: Array, gaps: Array) -> None:
    """Refuse instances in which there is nothing to learn, each with its own reason."""
    if not arms.any():
        raise InvalidInstance("arms: expected arms that span something, but every arm is the zero vector")
    if len(arms) == 1:
        raise InvalidInstance("arms: expected at least two arms, got one; with one arm there is nothing to choose")
    if (arms == arms[0]).all():
        raise InvalidInstance(f"arms: expected different arms, but all {len(arms)} are equal")
    _check_some_gap(bool(gaps.any()), len(gaps))


def _check_some_gap(some: bool, n_arms: int) -> None:
    if not some:
        raise InvalidInstance(
            f"gaps: expected a positive gap, but all {n_arms} are zero; every arm is optimal and c = 0"
        )


def _arm_program(
    arms: Array, gaps: Array, scale: float, origin: Origin, lower: Array | None = None, upper: Array | None = None
) -> AllocationProgram:
    """Costs Δ, one target per suboptimal arm with radius Δ²·scale."""
    in_range("arms", arms, InvalidInstance)
    in_range("gaps", gaps, InvalidInstance, each=True)
    _check_learnable(arms, gaps)
    suboptimal = np.flatnonzero(gaps > 0)
    radii = gaps[suboptimal] ** 2 * scale
    return AllocationProgram(arms, gaps, arms[suboptimal], radii, lower, upper, target_arms=suboptimal, origin=origin)  # type: ignore[arg-type]


def regret(bandit: LinearBandit) -> AllocationProgram:
    r"""The program whose value is c(A,θ): costs Δ_x, ||x||²_{H^-1} <= Δ_x²/(2σ²) for suboptimal x.

    Examples
    --------
    >>> import allocopt as ao
    >>> ao.programs.regret(ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0]))
    AllocationProgram(regret, n_arms=3, n_targets=2, dim=2)
    """
    b = _check_bandit(bandit)
    if b.store is not None:
        return _streamed_regret(b)
    return _arm_program(b.arms, b.gaps, 0.5 / b.noise_variance, Origin("regret", b))


def _streamed_regret(bandit: LinearBandit) -> AllocationProgram:
    from allocopt.certify.pricing import Gaps
    from allocopt.certify.streamed import StreamedProgram

    assert bandit.store is not None
    _check_some_gap(len(bandit.optimal_arms) < bandit.n_arms, bandit.n_arms)
    return StreamedProgram.of(
        bandit.store, bandit.seen, Gaps(bandit.theta, bandit.best_row), None, bandit.optimal_arms,
        0.5 / bandit.noise_variance, Origin("regret", bandit),
    )  # fmt: skip


def surveyed(store: ArmStore) -> SurveyReport:
    """A look at all arms of a store, which refuses those that no program can be made of."""
    from allocopt.certify.streamed import survey

    seen = survey(store, None)
    if seen.bad is not None:
        row, column = seen.bad
        raise InvalidInstance(f"arms: expected finite numbers, but row {row}, column {column} is not")
    in_range("arms", np.array([seen.largest]), InvalidInstance)
    not_vanishing("arms", seen.smallest, InvalidInstance)
    if seen.largest == 0:
        raise InvalidInstance("arms: expected arms that span something, but every arm is the zero vector")
    return seen


def _streamed_with_gaps(
    store: ArmStore, gaps: Array | None, scale: float, origin: Origin, seen: SurveyReport | None = None
) -> AllocationProgram:
    """A program over a store with given gaps (1 for all where None); ``seen`` where it was surveyed before."""
    from allocopt.certify.pricing import Gaps
    from allocopt.certify.streamed import StreamedProgram, with_gaps

    if seen is None:
        seen = surveyed(store)
    free = np.zeros(0, dtype=np.int64)
    if gaps is not None:
        in_range("gaps", gaps, InvalidInstance, each=True)
        _check_some_gap(bool(gaps.any()), len(gaps))
        free = np.flatnonzero(gaps == 0)
        seen = with_gaps(seen, gaps, store.shape[1])
    return StreamedProgram.of(store, seen, Gaps(given=gaps is not None), gaps, free, scale, origin)


def horizon(arms: Any, gaps: Any, n: float, *, constant: float = 1.0) -> AllocationProgram:
    r"""T_n(Δ) of Definition 9 (`def:opt`): ||x||²_{H^-1} <= Δ_x²/f_n for all arms, any gaps in [0, ∞)^k.

    ``constant`` is the universal constant in f_n, which the paper leaves open.

    Examples
    --------
    >>> horizon([[1, 0], [0, 1]], [0, 0.5], 1000).n_targets
    1
    """
    n = whole_number("n", n, InvalidOption, least=3)
    store, x, delta = _arms_and_gaps(arms, gaps)
    if store is None:
        from allocopt.linear.span import spanning_coordinates

        rank = len(spanning_coordinates(x))
    else:
        from allocopt.certify.streamed import store_rank

        rank = store_rank(store)
    level = f_n(n, rank, constant)
    if store is not None:
        origin = Origin("horizon", gaps=delta, number=level, horizon=n, constant=float(constant))
        return _streamed_with_gaps(store, delta, 1.0 / level, origin)
    return horizon_at_level(x, delta, level, n, float(constant))


def at_level(arms: Any, gaps: Any, level: float, seen: SurveyReport | None = None) -> AllocationProgram:
    """``horizon`` at a given level: 2 is the regret program of gaps that need not come from a θ.

    ``arms`` may be a store, and ``seen`` what `surveyed` said of it.
    """
    store, x, delta = _arms_and_gaps(arms, gaps)
    if store is not None:
        return _streamed_with_gaps(store, delta, 1.0 / level, Origin("horizon", gaps=delta, number=level), seen)
    return horizon_at_level(x, delta, level, None)


def _arms_and_gaps(arms: Any, gaps: Any) -> tuple[ArmStore | None, Array, Array]:
    """A store, or arms in memory, and gaps that fit them."""
    store = open_store(arms)
    x = arm_matrix(arms) if store is None else np.zeros((0, 0))
    k = len(x) if store is None else store.shape[0]
    delta = vector("gaps", gaps, InvalidInstance)
    if len(delta) != k:
        raise InvalidInstance(f"gaps: expected {k} entries, one per arm, got {len(delta)}")
    if (delta < 0).any():
        i = int(np.flatnonzero(delta < 0)[0])
        raise InvalidInstance(f"gaps: expected entries >= 0, but entry {i} is {float(delta[i])!r}")
    if store is None:
        in_range("arms", x, InvalidInstance)
        _check_learnable(x, delta)
    return store, x, delta


def horizon_at_level(
    arms: Array, gaps: Array, level: float, n: int | None, constant: float | None = None
) -> AllocationProgram:
    """``horizon`` with f_n given as a number (a proof file stores it so)."""
    origin = Origin("horizon", gaps=gaps, number=level, horizon=n, constant=constant)
    return _arm_program(arms, gaps, 1.0 / level, origin)


def best_arm(bandit: LinearBandit) -> AllocationProgram:
    r"""The characteristic time T*(θ) of best-arm identification: costs 1, ||x − x*||²_{H^-1} <= Δ_x²/(2σ²).

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> round(ao.solve(ao.programs.best_arm(b)).value, 6)
    8.0
    """
    b = _check_bandit(bandit)
    arms = b.arms_in_memory
    _check_learnable(arms, b.gaps)
    in_range("gaps", b.gaps, InvalidInstance, each=True)
    best = arms[b.optimal_arms[0]]
    if not (arms[b.optimal_arms] == best).all():
        raise InvalidInstance(
            f"bandit: expected a unique best arm, but arms {b.optimal_arms.tolist()} tie; no amount of data can tell "
            "them apart (T* is infinite)"
        )
    suboptimal = b.suboptimal_arms
    radii = b.gaps[suboptimal] ** 2 * (0.5 / b.noise_variance)
    return AllocationProgram(
        arms, np.ones(b.n_arms), arms[suboptimal] - best, radii,
        target_arms=suboptimal, origin=Origin("best_arm", b),
    )  # fmt: skip


def g_optimal(arms: Any) -> AllocationProgram:
    r"""G-optimal design: costs 1, ||x||²_{H^-1} <= 1 for all arms. The value is the rank of the arms (Kiefer–Wolfowitz).

    Examples
    --------
    >>> import allocopt as ao
    >>> round(ao.solve(ao.programs.g_optimal([[1, 0], [0, 1], [1, 1]])).value, 6)
    2.0
    """
    store = open_store(arms)
    if store is not None:
        return _streamed_with_gaps(store, None, 1.0, Origin("g_optimal"))
    x = arm_matrix(arms)
    in_range("arms", x, InvalidInstance)
    if not x.any():
        raise InvalidInstance("arms: expected arms that span something, but every arm is the zero vector")
    moving = np.flatnonzero(x.any(axis=1))
    return AllocationProgram(
        x, np.ones(len(x)), x[moving], np.ones(len(moving)), target_arms=moving, origin=Origin("g_optimal")
    )


def optimism(bandit: LinearBandit, width: float) -> AllocationProgram:
    r"""What any optimistic algorithm with confidence sets {||θ̂ − θ||²_G <= a σ² log n} pays at least.

    The regret program with T_x <= 4aσ²/Δ_x² (times log n): optimism stops playing an arm then. Always feasible
    for ``width`` a >= 1/2 (at 1/2 itself barely: finite-armed instances then have no room left, and end as FAILED with that
    reason); for less, consistency may be out of reach (`Infeasible`).

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.8]], [1, 0])
    >>> round(ao.solve(ao.programs.optimism(b, 1.0)).value, 6)
    20.0
    """
    b = _check_bandit(bandit)
    a = positive_number("width", width, InvalidOption)
    in_range("width", np.array([a]), InvalidOption)
    in_range("gaps", b.gaps, InvalidInstance, each=True)
    upper = np.full(b.n_arms, np.inf)
    suboptimal = b.suboptimal_arms
    upper[suboptimal] = 4.0 * a * b.noise_variance / b.gaps[suboptimal] ** 2
    return _arm_program(b.arms_in_memory, b.gaps, 0.5 / b.noise_variance, Origin("optimism", b, number=a), upper=upper)


def remaining(bandit: LinearBandit, pulls: Any, n: float) -> AllocationProgram:
    r"""The regret program given data: α >= pulls/log n. Its value is the least regret/log n from the start of play.

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> round(ao.solve(ao.programs.remaining(b, [50, 1], 1000)).value, 6)
    2.0
    """
    b = _check_bandit(bandit)
    counts = vector("pulls", pulls, InvalidInstance, length=b.n_arms)
    if (counts < 0).any():
        i = int(np.flatnonzero(counts < 0)[0])
        raise InvalidInstance(f"pulls: expected entries >= 0, but entry {i} is {float(counts[i])!r}")
    n = whole_number("n", n, InvalidOption, least=3)
    return remaining_at_log(b, counts, math.log(n), n)


def remaining_at_log(bandit: LinearBandit, pulls: Array, log_n: float, n: int | None) -> AllocationProgram:
    """``remaining`` with log n given as a number (a proof file stores it so)."""
    origin = Origin("remaining", bandit, pulls=pulls, number=log_n, horizon=n)
    return _arm_program(bandit.arms_in_memory, bandit.gaps, 0.5 / bandit.noise_variance, origin, lower=pulls / log_n)
