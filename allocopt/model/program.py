r"""AllocationProgram, the one convex program behind everything; `programs` has its named instances.

minimise  Σ κ_i α_i   s.t.   ||t_j||²_{H(α)^-1} <= ρ_j for all j,   l <= α <= u,   H(α) = Σ α_i f_i f_iᵀ/σ_i²

Where an arm shows several things, f_i f_iᵀ/σ_i² is Σ f fᵀ/σ_f² over the rows f of a matrix F_i. There may be linear constraints
Bα <= b besides.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import InvalidProgram
from allocopt.base.lazy import lazy_fields, payload
from allocopt.base.spelling import spelled_constructor
from allocopt.base.validation import Array, ArrayLike, IntArray, frozen, in_range, index_array, matrix, vector
from allocopt.linear.assumptions import Assumption
from allocopt.model.bandit import checked_noise
from allocopt.model.rows.constraints import LinearConstraints
from allocopt.model.rows.features import feature_rows, row_variances
from allocopt.model.rows.origin import Origin
from allocopt.model.rows.sightings import SightedArray, Sightings
from allocopt.model.streamed_program import ArmBlocks, BlockArray

__all__ = ["AllocationProgram", "Origin"]


OBSERVED = ("semi_bandit", "side_observations")
"""Programs in which what an arm shows is not its own row."""

_ARRAYS = ("features", "costs", "targets", "radii", "lower", "upper", "target_arms")
_ARRAYS_OF_ORIGIN = (*_ARRAYS, "noise_variance", "owners")


@spelled_constructor
@lazy_fields(*_ARRAYS)
@dataclass(frozen=True, eq=False)
class AllocationProgram:
    r"""Minimise Σ κ_i α_i over l <= α <= u such that ||t_j||²_{H(α)^-1} <= ρ_j for every target.

    Parameters
    ----------
    features : array_like, shape (k, d) or (k, p, d), or a list of vectors and matrices
        f_i: playing i once shows ⟨f_i, θ⟩ plus noise and adds f_i f_iᵀ/σ_i² to the information matrix H. A matrix F_i of shape
        (p_i, d) in place of a vector: playing i shows F_i θ plus noise, and adds F_iᵀF_i/σ_i². They are kept as ``features``,
        one row for each thing that is shown, with the arm of each row in ``owners``.
    costs : array_like, shape (k,)
        κ_i >= 0. An arm of cost 0 without an upper bound is *free*: it gets α = inf and its direction is known exactly.
    targets : array_like, shape (m, d)
        t_j: the directions that must be known.
    radii : array_like, shape (m,)
        ρ_j > 0: how well.
    lower, upper : array_like, shape (k,), optional
        0 <= l <= u <= inf; by default 0 and inf.
    noise_variance : float or array_like, shape (k,), optional
        σ_i² > 0, by default 1 (kept as None). The certificate takes them as they are: no feature is divided by a rounded σ_i. Where
        arms show several things, one for each row is possible, too, as a list with a number or a list for each arm.
    owners : array_like of int, optional
        Where ``features`` are the rows of matrices already: the arm of each row, in increasing order. None: one row each.
    constraints : tuple (B, b), optional
        Bα <= b, with B of shape (n, k), an array or a matrix of `scipy.sparse`. A floor is a row with −1, a band two rows. (An
        equality is a band of width 0, which few allocations in doubles are in exactly: make it as wide as you can bear.) An arm of
        cost 0 that occurs in a row is not free.
    target_arms : array of int or None
        The arm of each target, in increasing order, where targets belong to arms (as in regret programs).
    origin : Origin
        What a named program was made from: its ``kind``, ``bandit``, and further arguments.

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

    Arms that show several things: the second shows both coordinates at once.

    >>> p = AllocationProgram([[1, 0], [[1, 0], [0, 1]]], [1, 1], [[1, 0], [0, 1]], [0.5, 1])
    >>> p
    AllocationProgram(general, n_arms=2, n_targets=2, dim=2, n_rows=3)
    >>> round(ao.solve(p).value, 6)
    2.0

    A budget: at most half a pull of the first arm, which is the cheaper one.

    >>> p = AllocationProgram([[1, 0], [1, 0]], [1, 2], [[1, 0]], [1], constraints=([[1, 0]], [0.5]))
    >>> s = ao.solve(p)
    >>> round(s.value, 6), s.constraint_multipliers.round(6)
    (1.5, array([1.]))
    """

    features: Array
    costs: Array
    targets: Array
    radii: Array
    lower: Array = field(default=cast(Array, None))  # filled in below
    upper: Array = field(default=cast(Array, None))
    target_arms: IntArray | None = field(default=None, repr=False)
    origin: Origin = field(default_factory=Origin, repr=False)
    noise_variance: Array | None = None
    owners: IntArray | None = None
    constraints: LinearConstraints | None = None
    _checked: InitVar[bool] = field(default=False, kw_only=True)
    """Whether all that is given is read-only, finite and in range already, with neither bounds nor rows: saves small programs time."""

    if TYPE_CHECKING:  # what may be passed is more than what is kept

        def __init__(
            self,
            features: ArrayLike,
            costs: ArrayLike,
            targets: ArrayLike,
            radii: ArrayLike,
            lower: ArrayLike | None = None,
            upper: ArrayLike | None = None,
            target_arms: ArrayLike | None = None,
            origin: Origin = ...,
            noise_variance: ArrayLike | None = None,
            owners: ArrayLike | None = None,
            constraints: Any = None,
            **more: Any,
        ) -> None: ...

    @classmethod
    def _over(cls, blocks: ArmBlocks, origin: Origin) -> Self:
        """The program of arms that are looked at block by block; its arrays are made if somebody asks for them."""
        arrays: dict[str, Any] = {name: BlockArray(blocks, name) for name in _ARRAYS}
        return cls(**arrays, origin=origin, noise_variance=blocks.variances)

    def __post_init__(self, _checked: bool) -> None:
        if _checked:
            k = len(self.costs)
            object.__setattr__(self, "lower", frozen(np.zeros(k)))
            object.__setattr__(self, "upper", frozen(np.full(k, np.inf)))
        elif self._blocks is None and self._sightings is None:  # else they are made, and were checked, elsewhere
            self._check_arrays()
        if self.kind != "general" and self._sightings is None:
            self._keep_origin()

    def _keep_origin(self) -> None:
        """Forget the origin where `dataclasses.replace` has put other arrays in: it says what they mean, and how exact they are."""
        origin, blocks = self.origin, self._blocks
        given = None if blocks is not None else tuple(getattr(self, name) for name in _ARRAYS_OF_ORIGIN)
        made = origin.made
        if made is None:
            object.__setattr__(origin, "made", blocks if given is None else given)
        if made is None or given is None:
            return
        if isinstance(made, ArmBlocks):
            made = (*(getattr(made, name)() for name in _ARRAYS), made.variances, None)
        if not all(one is other or np.array_equal(one, other) for one, other in zip(made, given, strict=True)):
            if origin.compared is not None:  # targets belonged to arms as differences
                object.__setattr__(self, "target_arms", None)
            object.__setattr__(self, "origin", Origin(labels=self.labels))

    def _check_arrays(self) -> None:
        """Arrays as validated, read-only doubles."""
        put = object.__setattr__
        if self.origin.sightings is not None and self.origin.bandit is None:
            raise InvalidProgram("program: side observations of so many arms are solved as they are, without changes")
        features, owners = feature_rows(self.features, self.owners)
        if not features.size:
            raise InvalidProgram(f"features: expected at least one row and one column, got shape {features.shape}")
        k, d = len(features) if owners is None else int(owners[-1]) + 1, features.shape[1]
        costs = vector("costs", self.costs, InvalidProgram, length=k)
        targets = matrix("targets", self.targets, InvalidProgram)
        nothing_to_learn = self.origin.kind != "general" and targets.shape == (0, d)  # every arm is optimal
        if not (len(targets) or nothing_to_learn) or targets.shape[1] != d:
            raise InvalidProgram(
                f"targets: expected at least one row of {d} entries (as the features have), got shape {targets.shape}"
            )
        radii = vector("radii", self.radii, InvalidProgram, length=len(targets))
        _refuse_where("costs", costs, costs < 0, ">= 0")
        _refuse_where("radii", radii, radii <= 0, "> 0")
        lower, upper = _bounds(self.lower, self.upper, k)
        given = row_variances(self.noise_variance, owners, k)
        if owners is None:
            noise = _checked_variances(given, costs, lower, upper, "arms")
        else:
            noise = _checked_variances(given, costs[owners], lower[owners], upper[owners], "rows")
        if self.target_arms is not None:
            own = features if owners is None else None
            put(self, "target_arms", _checked_target_arms(self.target_arms, k, own, targets, self.origin.compared))
        for name, array, power, each in (
            ("features", features, 1, False), ("targets", targets, 1, False), ("costs", costs, 1, True),
            ("radii", radii, 4, True),
        ):  # fmt: skip
            in_range(name, array, InvalidProgram, power=power, each=each)
        for name, array in (
            ("features", features), ("costs", costs), ("targets", targets), ("radii", radii),
            ("lower", lower), ("upper", upper),
        ):  # fmt: skip
            put(self, name, frozen(array))
        put(self, "noise_variance", noise)
        put(self, "owners", owners)
        if self.constraints is not None:
            if self.kind in (
                "optimism",
                "remaining",
            ):  # whose bounds are rounded: linear constraints are about exact ones
                raise InvalidProgram(f"constraints: expected none in a program of kind {self.kind}")
            put(self, "constraints", LinearConstraints.checked(self.constraints, k))

    @property
    def _blocks(self) -> ArmBlocks | None:
        """Where the arms are looked at block by block, of large sets; None where all arrays are at hand."""
        features = payload(self, "features")
        return features.blocks if isinstance(features, BlockArray) else None

    @property
    def _sightings(self) -> Sightings | None:
        """Who shows whom, of so many side observations that no array of rows is made; None where all arrays are at hand."""
        features = payload(self, "features")
        return features.sightings if isinstance(features, SightedArray) else None

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return len(self.costs) if self._blocks is None else self._blocks.shape[0]

    @property
    def n_rows(self) -> int:
        """The number of rows of all features: k, unless arms show several things."""
        return self.n_arms if self.owners is None else len(self.owners)

    @property
    def n_targets(self) -> int:
        """m, the number of constraints."""
        return len(self.radii) if self._blocks is None else self._blocks.n_targets

    @property
    def n_multipliers(self) -> int:
        """How many multipliers a solution has: one per arm where targets belong to arms, else one per target."""
        return self.n_targets if self._blocks is None and self.target_arms is None else self.n_arms

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        if self._sightings is not None:
            return self._sightings.n_arms
        return int(self.features.shape[1]) if self._blocks is None else self._blocks.shape[1]

    @property
    def plays_what_it_compares(self) -> bool:
        """Whether targets that are differences are those of rows that playing an arm shows, so that they lie in the span of these."""
        return self.kind not in ("transductive", *OBSERVED)

    @property
    def row_owners(self) -> IntArray:
        """The arm of each row of ``features``, also where every arm has one."""
        return np.arange(len(self.features)) if self.owners is None else self.owners

    def shown(self, arm: int) -> Array:
        """F_i: what playing an arm shows, one row for each thing.

        Examples
        --------
        >>> AllocationProgram([[1, 0], [[1, 0], [0, 1]]], [1, 1], [[1, 1]], [1]).shown(1)
        array([[1., 0.],
               [0., 1.]])
        """
        rows: Array = self.features[self.row_owners == arm]
        return rows

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was taken for granted when the program was made: ties that are none exactly.

        Where targets are differences, or compared with τ, no gap is taken as 0.
        """
        origin = self.origin
        if origin.bandit is None or origin.compared is not None or origin.kind == "threshold":
            return ()
        return origin.bandit.assumptions

    @property
    def kind(self) -> str:
        """Which named program this is ("general" for one given by its arrays)."""
        return self.origin.kind

    @property
    def free(self) -> IntArray:
        """The arms that cost nothing, have no upper bound and occur in no linear constraint: α = inf."""
        if self._blocks is not None:
            return self._blocks.free
        free = (self.costs == 0) & np.isinf(self.upper)
        return np.flatnonzero(free if self.constraints is None else free & ~self.constraints.constrained)

    @property
    def bounded(self) -> bool:
        """Whether there are linear constraints, lower bounds above 0 or finite upper bounds, so that α may not be scaled at will."""
        if self._blocks is not None:
            return self._blocks.bounded
        limited = self.constraints is not None
        return bool(limited or self.lower.any() or not np.isinf(self.upper).all())

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
        rows = "" if self.owners is None else f", n_rows={self.n_rows}"
        bounded = (", bounded" if self.bounded else "") + ("" if self._blocks is None else ", streamed")
        if self.constraints is not None:
            rows += f", n_constraints={self.constraints.n_rows}"
        sizes = f"n_arms={self.n_arms}, n_targets={self.n_targets}, dim={self.dim}{rows}"
        return f"AllocationProgram({self.kind}, {sizes}{bounded})"


def _bounds(lower: Array | None, upper: Array | None, k: int) -> tuple[Array, Array]:
    """Bounds as validated vectors: 0 and inf where none are given."""
    least = np.zeros(k) if lower is None else vector("lower", lower, InvalidProgram, length=k)
    most = np.full(k, np.inf) if upper is None else vector("upper", upper, InvalidProgram, length=k, infinite=True)
    if lower is not None or upper is not None:
        _refuse_where("lower", least, least < 0, ">= 0")
        _refuse_where("upper", most, most < least, ">= lower")
        in_range("lower", least, InvalidProgram, power=4)
        in_range("upper", most, InvalidProgram, power=4)
    return least, most


def _refuse_where(name: str, values: Array, bad: NDArray[np.bool_], wanted: str) -> None:
    """Refuse the first entry that is bad."""
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise InvalidProgram(f"{name}: expected entries {wanted}, but entry {i} is {float(values[i])!r}")


def _checked_variances(value: Any, costs: Array, lower: Array, upper: Array, what: str) -> Array | None:
    """One variance per arm (or row: ``what``), or None where all are 1.

    What the certificate computes with is κσ², l/σ² and u/σ²: these must be in the range of costs and bounds.
    """
    if value is None:
        return None
    given = checked_noise(value, len(costs), InvalidProgram, what)
    if isinstance(given, float):
        given = frozen(np.full(len(costs), given))
    if (given == 1.0).all():
        return None
    in_range("costs · noise_variance", costs * given, InvalidProgram, each=True)
    for name, bound in (("lower", lower), ("upper", upper)):
        in_range(f"{name}/noise_variance", bound / given, InvalidProgram, power=4)
    return given


def _checked_target_arms(
    value: Any, n_arms: int, features: Array | None, targets: Array, compared: IntArray | None
) -> IntArray:
    """One arm per target, in increasing order; unless targets are differences, they are these arms (``features``)."""
    arms = index_array("target_arms", value, n_arms, InvalidProgram)
    if len(arms) != len(targets) or not np.array_equal(arms, value):
        raise InvalidProgram(
            f"target_arms: expected {len(targets)} arms, one per target, in increasing order, got {len(arms)}"
            + (" in another order" if len(arms) == len(targets) else "")
        )
    if compared is not None:
        return arms
    if features is None:
        raise InvalidProgram("target_arms: expected arms of one row each, whose targets they are, got arms of several")
    differ = np.flatnonzero((features[arms] != targets).any(axis=1))
    if len(differ):
        j = int(differ[0])
        raise InvalidProgram(
            f"target_arms: expected targets that are their arms, but target {j} is not arm {int(arms[j])}"
        )
    return arms
