"""Every number that a method can be tuned by: one record a method, each field with its default, its range and its meaning.

>>> from allocopt.solvers.settings import InteriorPointSettings
>>> InteriorPointSettings(max_iterations=50).step_fraction
0.995

``solve(program, "interior-point", settings=InteriorPointSettings(max_iterations=50))`` and
``solve(program, "interior-point", max_iterations=50)`` are the same. ``allocopt methods`` prints all of them. No setting can
make an answer wrong: bounds and status come from the certificate, whatever a method does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled_constructor
from allocopt.base.tolerances import LARGEST
from allocopt.base.validation import positive_number, whole_number

__all__ = [
    "FORMULATIONS",
    "POOL_METHODS",
    "SOLVERS",
    "ActiveSetSettings",
    "ClosedFormSettings",
    "ConicSettings",
    "DesignSettings",
    "FrankWolfeSettings",
    "InteriorPointSettings",
    "Setting",
    "Settings",
    "StreamingSettings",
]

SOLVERS = ("CLARABEL", "SCS", "MOSEK")
FORMULATIONS = ("compact", "lmi")
POOL_METHODS = ("auto", "active-set", "design", "frank-wolfe")


# How a field is written: its default, what it means, and what is checked


def _checked(default: Any, meaning: str, check: Callable[[str, Any], Any]) -> Any:
    return field(default=default, metadata={"meaning": meaning, "check": check})


def _whole(default: int, meaning: str, least: int = 1) -> Any:
    return _checked(default, meaning, lambda name, value: whole_number(name, value, least=least))


def _positive(default: float, meaning: str) -> Any:
    return _checked(default, meaning, positive_number)


def _share(default: float, meaning: str) -> Any:
    """A number in (0, 1)."""

    def check(name: str, value: Any) -> float:
        try:
            number = positive_number(name, value)
        except InvalidOption as error:
            raise InvalidOption(str(error).replace("a positive, finite number", _BELOW_ONE)) from None
        if not number < 1.0:
            raise InvalidOption(f"{name}: expected {_BELOW_ONE}, got {number!r}")
        if number < 1.0 / LARGEST:  # its square, and what is divided by it, would leave the range of doubles
            raise InvalidOption(f"{name}: expected at least {1.0 / LARGEST:g}, got {number!r}")
        return number

    return _checked(default, meaning, check)


def _at_least_one(default: float, meaning: str) -> Any:
    """A factor that is 1 or more."""

    def check(name: str, value: Any) -> float:
        number = positive_number(name, value)
        if not number >= 1.0:
            raise InvalidOption(f"{name}: expected a number of at least 1, got {number!r}")
        return number

    return _checked(default, meaning, check)


def _one_of(default: str, meaning: str, choices: tuple[str, ...], normal: Callable[[str], str]) -> Any:
    def check(name: str, value: Any) -> str:
        found = normal(value) if isinstance(value, str) else value
        if found not in choices:
            raise InvalidOption(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
        return str(found)

    return _checked(default, meaning, check)


_BELOW_ONE = "a number between 0 and 1"
_Record = TypeVar("_Record", bound="Settings")


@dataclass(frozen=True)
class Setting:
    """One field of a record: for `allocopt methods`, which lists them.

    Attributes
    ----------
    name : str
        What it is called, as a keyword of `solve` too.
    default : object
        Its value where none is given.
    meaning : str
        What it does.
    """

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Settings:
    """What all records share: every value is checked when a record is made."""

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, one.metadata["check"](one.name, getattr(self, one.name)))

    @classmethod
    def listed(cls) -> tuple[Setting, ...]:
        """The fields with their defaults and meanings."""
        return tuple(Setting(f.name, f.default, f.metadata["meaning"]) for f in fields(cls))


def _explained(kind: type[_Record]) -> type[_Record]:
    """A record whose ``help()`` lists its fields, from what is said of them where they are declared."""
    lines = (f"{f.name} : {f.type}, default {f.default!r}\n    {f.metadata['meaning']}" for f in fields(kind))
    text = "\n".join(["", "", "Parameters", "----------", *lines, ""])
    kind.__doc__ = f"{kind.__doc__}{text}".rstrip().replace("\n", "\n    ").replace("\n        \n", "\n\n")
    return spelled_constructor(kind)


@dataclass(frozen=True)
class ClosedFormSettings(Settings):
    """A formula has nothing to tune."""


@_explained
@dataclass(frozen=True)
class InteriorPointSettings(Settings):
    """Mehrotra's predictor–corrector; `allocopt.solvers.newton` has the steps.

    The compiled kernel of `Allocator` and `solve_many` takes the defaults, with its own limit on the number of steps.
    """

    max_iterations: int = _whole(100, "Newton steps at most")
    # steps
    step_fraction: float = _share(0.995, "part of the way to the boundary that a step may go")
    growth: float = _positive(2.0, "relative increase of the cost that one step may bring")
    # centring
    least_sigma: float = _share(1e-6, "centring parameter sigma at least")
    stalled_sigma: float = _share(0.3, "sigma at least once steps have brought little")
    stalled_after: int = _whole(3, "steps that bring little before sigma is raised")
    least_centring: float = _share(0.01, "duality measure aimed at, at least, as a part of tol")
    # stopping
    gap_fraction: float = _share(0.25, "part of tol at which to stop: the certificate needs room for rounding")
    bounded_gap_fraction: float = _share(0.1, "times that where bounds forbid scaling the allocation to feasibility")
    cautious_step_fraction: float = _share(0.9, "step_fraction of a second run, where the first one ends far away")
    cautious_sigma: float = _share(0.5, "sigma of that run at least: its steps stay in the middle")
    stall_steps: int = _whole(15, "steps without halving gap or distance that end the method")
    stall_gap: float = _positive(1e-3, "gap above which it gets twice as many")
    negligible_constraint: float = _share(0.1, "part of the largest constraint below which one has no multiplier")
    # start
    cold_distance: float = _share(0.5, "gap that a start is taken to have at most")
    start_slack: float = _share(0.1, "slack of the constraints at the start at least, where it is not close")
    metric_trace: float = _share(1e-6, "of the features in the metric of the targets, which need not span")
    start_level: float = _share(0.8, "largest constraint at a cold start, where 1 is tight")
    cheaper_start: float = _at_least_one(100.0, "times cheaper that a start with smaller entries must be")
    warm_shift: float = _share(0.1, "part of its gap that a known solution is moved inwards by")
    least_warm_shift: float = _share(1e-3, "moved inwards by this at least: the boundary is a trap")
    trace: float = _share(1e-9, "of the mean, given to every arm while a known solution is looked at")


@_explained
@dataclass(frozen=True)
class ActiveSetSettings(Settings):
    """Interior point on a few arms and constraints (the master), priced against all; counts are in units of the rank."""

    max_passes: int = _whole(200, "pricing passes over all arms at most")
    # which arms are in the master
    first_members: int = _whole(2, "times the rank: arms and constraints in the first master")
    sample: int = _whole(40, "times the rank: arms looked at for the first allocation of a large problem")
    first_steps: int = _whole(20, "multiplicative steps to the first allocation, where there are no bounds")
    first_power: float = _positive(1.0, "power of the smoothed maximum in the first of them")
    first_growth: float = _at_least_one(1.15, "growth of that power from step to step")
    first_played: int = _whole(4, "times the rank: arms of the largest first allocation in the first master")
    entering: int = _whole(2, "times the rank: arms and constraints that enter after a pass")
    spare: int = _whole(3, "times the rank: may stay before idle ones leave")
    widening: int = _whole(4, "times the rank: random arms that enter where a master is singular")
    # very many arms
    pool: int = _whole(40, "times the rank: arms of a pool that is solved to the end between looks at all arms")
    pool_from: int = _whole(20, "times larger than a pool, from which a problem is solved by pools")
    # how masters are solved
    threads_from: float = _positive(4e7, "multiplications in a master's product from which BLAS uses all its threads")
    rough_gap: float = _positive(0.03, "gap to which masters are solved at first")
    close_gap: float = _positive(0.3, "gap below which they are solved to the end")
    warm_gap: float = _positive(10.0, "gap above which the last master says too little about the next")
    progress: float = _share(0.9, "part of the best gap that a pass must reach to count as progress")
    # who is idle
    idle_share: float = _share(1e-7, "of the largest allocation or multiplier, below which one is idle")
    small_share: float = _share(1e-2, "the same where its price or constraint is far from tight")
    far_from_tight: float = _share(0.05, "relative distance from tight that is far")
    removal_loss: float = _at_least_one(2.0, "times larger that constraints may become when idle arms leave")
    full_share: float = _share(0.9, "of its upper bound, from which an arm counts as played as much as it may")
    violation: float = _share(1e-12, "relative, below which a violated constraint or price is rounding")
    room_within_bounds: float = _share(0.8, "constraints that the first arms must be able to reach within their bounds")


@_explained
@dataclass(frozen=True)
class DesignSettings(Settings):
    """A D-optimal design along the central path: Newton steps by conjugate gradients, candidates screened."""

    max_iterations: int = _whole(100, "Newton steps at most")
    # steps
    sigma: float = _share(0.1, "part of the last mu that a step aims at")
    step_fraction: float = _share(0.995, "part of the way to the boundary that a step may go")
    growth: float = _positive(2.0, "relative increase of the total weight that one step may bring")
    least_centring: float = _share(0.01, "mu aimed at, at least, as a part of the goal")
    # the linear system
    accuracy: float = _share(0.2, "residual of a Newton system, relative")
    most_products: int = _whole(60, "products with the Hessian in one step at most")
    most_factorised: int = _whole(300, "candidates up to which the support's matrix is factorised")
    most_thorough: int = _whole(2000, "the same where conjugate gradients are slow")
    hard: int = _whole(20, "products a step, on average, from which they count as slow")
    # candidates
    screen_every: float = _share(0.5, "part of the excess at the last screening at which points are screened again")
    worth_screening: float = _share(0.8, "part of the candidates that may stay for screening to be worth it")
    # start
    close: float = _positive(1.0, "excess up to which a known design is a start")
    least_shift: float = _share(1e-4, "share of equal weights that is mixed into it at least")
    slack_share: float = _share(0.1, "slack of a point at the start at least, as a part of the excess")
    least_slack: float = _share(1e-9, "and in any case")
    # stopping
    goal: float = _share(0.25, "part of tol that the excess must reach: the gap is twice the excess")
    next_goal: float = _share(0.25, "part of the excess to reach next, where rounding spoils a certificate")
    progress: float = _share(0.9, "part of the best excess that a step must reach to count as progress")
    patience: int = _whole(12, "steps without progress that end the method")


@_explained
@dataclass(frozen=True)
class FrankWolfeSettings(Settings):
    """Lazy pairwise Frank–Wolfe on a smoothed maximum of the constraints (power p, multipliers c)."""

    max_iterations: int = _whole(200_000, "steps at most")
    # smoothing
    first_power: float = _at_least_one(10.0, "power p at the start: smooth enough for long steps")
    power_growth: float = _at_least_one(1.2, "growth of p when new multipliers c did not do their work")
    max_power: float = _at_least_one(1e9, "p at most: beyond, it is noise in doubles")
    slack_shrink: float = _share(0.9, "part of the last slack that new multipliers must reach, or p grows")
    balance: float = _share(0.5, "multipliers are renewed once the Frank-Wolfe gap is below this part of the slack")
    multiplier_floor: float = _share(
        0.1, "no multiplier below this part of slack/m: a target that is needed comes back"
    )
    negligible: float = _share(1e-15, "targets with a smaller weight do not change prices in doubles")
    # pricing
    lazy_share: float = _share(0.5, "part of what the last full pricing offered that a cached pair must promise")
    cached: int = _whole(2, "times the rank: cached candidates")
    price_every: int = _whole(50, "steps between full pricings at most: certificates come from them")
    core_from: int = _whole(8, "times the rank: arms beyond which it starts from a core set")
    # arithmetic
    refresh_every: int = _whole(50, "rank-two updates of the inverse before it is computed afresh")
    drift: float = _share(1e-10, "error of the mean price beyond which the inverse is computed afresh")
    ill_conditioned: float = _at_least_one(1e2, "size of the inverse beyond which the basis is changed")
    singular: float = _share(1e-12, "relative determinant below which a line search does not go")
    search_accuracy: float = _share(0.1, "part of the first slope at which a line search ends")
    search_trials: int = _whole(30, "trials of a line search at most")
    # reports and stopping
    report_drop: float = _share(0.8, "part of the last reported gap at which it reports again")
    report_every: int = _whole(2000, "steps after which it reports anyway")
    better: float = _share(0.99, "part of the best gap that counts as progress")
    rounding_gap: float = _positive(1e-13, "gap that is noise in doubles")
    max_idle_steps: int = _whole(20_000, "steps without progress that end the method")
    max_idle_updates: int = _whole(100, "new multipliers without progress that end the method")


def _record(default: Settings, meaning: str) -> Any:
    """The settings of another method."""
    kind = type(default)

    def check(name: str, value: Any) -> Settings:
        if not isinstance(value, kind):
            a = "an" if kind.__name__[0] in "AEIOU" else "a"
            raise InvalidOption(f"{name}: expected {a} {kind.__name__}, got a {type(value).__name__}")
        return value

    return _checked(default, meaning, check)


@_explained
@dataclass(frozen=True)
class StreamingSettings(Settings):
    """A pool of some thousand arms, solved by a method of its own; only passes that price it touch all arms, block by block."""

    max_passes: int = _whole(200, "passes over all arms at most")
    entering: int = _whole(12, "times the rank: arms that enter the pool for price and constraint each")
    rough_gap: float = _positive(1e-2, "gap to which a pool is solved while it is a mere sample")
    close_gap: float = _positive(0.1, "gap over all arms below which pools are solved to the end")
    tol_share: float = _share(0.3, "part of tol that the pool's own gap may take")
    widenings: int = _whole(4, "times that a pool which cannot be solved gets more arms")
    pool_method: str = _one_of(
        "auto", "auto (design where it applies, else active-set) or one of these", POOL_METHODS, str
    )
    pool: ActiveSetSettings = _record(ActiveSetSettings(), "settings of active-set on the pool")  # noqa: RUF009  # frozen
    design: DesignSettings = _record(DesignSettings(), "settings of design on the pool")  # noqa: RUF009
    frank_wolfe: FrankWolfeSettings = _record(FrankWolfeSettings(), "settings of frank-wolfe on the pool")  # noqa: RUF009


def by_blocks(settings: ActiveSetSettings) -> StreamingSettings:
    """What settings of active-set mean for arms that are looked at block by block: passes over all arms, the rest for the pool."""
    return StreamingSettings(
        max_passes=settings.max_passes,
        pool_method="active-set",
        pool=replace(settings, max_passes=ActiveSetSettings.max_passes),
    )


def designs_by_blocks(settings: DesignSettings) -> StreamingSettings:
    """What settings of design mean for arms that are looked at block by block: they are those of every pool."""
    return StreamingSettings(pool_method="design", design=settings)


def weights_by_blocks(settings: FrankWolfeSettings) -> StreamingSettings:
    """What settings of frank-wolfe mean for arms that are looked at block by block: they are those of every pool."""
    return StreamingSettings(pool_method="frank-wolfe", frank_wolfe=settings)


@_explained
@dataclass(frozen=True)
class ConicSettings(Settings):
    """A semidefinite program for a conic solver, again and again in the basis that the last answer suggests."""

    solver: str = _one_of("CLARABEL", "CLARABEL, SCS or (licensed) MOSEK", SOLVERS, str.upper)
    formulation: str = _one_of("compact", "compact: one cone; lmi: one for each target", FORMULATIONS, str)
    max_rounds: int = _whole(8, "solves at most: two or three gain anything with Clarabel, four with SCS")
    worthwhile: float = _share(0.5, "part of the last gap that a round must reach for another one")
    tol_fraction: float = _share(1e-2, "the solver's own tolerance as a part of tol: its residuals are not our gap")
    tightest: float = _positive(1e-11, "solver's tolerance at least: below, steps are rounding noise")
    loosest: float = _positive(1e-10, "solver's tolerance at most: multipliers need the last digits")
    scs_tightest: float = _positive(1e-9, "the same for SCS: beyond, a first-order method takes too long")
    scs_iterations: int = _whole(3_000, "SCS's iterations a round: enough to find a better basis")
    mix: float = _share(1e-8, "share of the first allocation that keeps the information matrix definite")
    span: float = _share(1e-10, "singular values of the targets below this part of the largest are none")


def __dir__() -> list[str]:
    return sorted(__all__)
