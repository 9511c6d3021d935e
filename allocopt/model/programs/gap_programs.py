"""Programs whose costs are gaps, with a target for every arm of a positive one; and designs, where every arm costs 1.

Regret is Corollary 2 (`cor:regretlb`), horizon is Definition 9 (`def:opt`), optimism is Section 8 (`sec:optimism`) of the paper.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, InvalidProgram
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, ArrayLike, frozen, in_range, positive_number, vector, whole_number
from allocopt.linear.span import spanning_coordinates
from allocopt.model.arms.opening import open_store
from allocopt.model.arms.spanning import store_rank
from allocopt.model.arms.store import ArmStore
from allocopt.model.arms.survey import SurveyReport, surveyed, with_gaps
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.model.contexts import ContextualBandit
from allocopt.model.levels import f_n
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.programs.learnable import check_bandit, check_different, half_precision
from allocopt.model.rows.constraints import LinearConstraints
from allocopt.model.streamed_program import ArmBlocks, GapRule

__all__ = [
    "at_level",
    "contextual",
    "g_optimal",
    "horizon",
    "horizon_at_level",
    "optimism",
    "regret",
    "remaining",
    "remaining_at_log",
]

_PULLS_AT_ONCE = 10_000
_ALWAYS_FEASIBLE = 0.5  # the width of optimism from which every arm at its upper bound meets its own constraint


def _arm_program(
    arms: Array, gaps: Array, scale: float, origin: Origin, lower: Array | None = None, upper: Array | None = None,
    variances: Array | None = None, *, checked: bool,
) -> AllocationProgram:  # fmt: skip
    """Costs Δ, one target per suboptimal arm with radius Δ²·scale.

    ``checked``: arms and gaps are those of a bandit, or as `_arms_and_gaps` returns them.
    """
    if not checked:
        in_range("arms", arms, InvalidInstance)
    in_range("gaps", gaps, InvalidInstance, each=True)
    suboptimal = np.flatnonzero(gaps > 0)
    if not (checked and len(suboptimal) and origin.bandit is not None):  # whose gaps say that they differ
        check_different(arms)
    targets, radii = arms[suboptimal], gaps[suboptimal] ** 2 * scale
    if checked and lower is None and upper is None and variances is None:  # then all is but this
        in_range("radii", radii, InvalidProgram, power=4, each=True)
        suboptimal.flags.writeable = False
        return AllocationProgram(
            arms, gaps, frozen(targets), frozen(radii), target_arms=suboptimal, origin=origin, _checked=True
        )
    return AllocationProgram(
        arms, gaps, targets, radii, lower, upper, target_arms=suboptimal, origin=origin, noise_variance=variances
    )


@spelled
def regret(bandit: LinearBandit) -> AllocationProgram:
    r"""The program whose value is c(A,θ): costs Δ_x, ||x||²_{H^-1} <= Δ_x²/(2σ²) for suboptimal x.

    With a variance per arm H = Σ α_x x xᵀ/σ_x² and ||x||²_{H^-1} <= Δ_x²/2: pulls are weighed by what they tell.

    Examples
    --------
    >>> import allocopt as ao
    >>> ao.programs.regret(ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0]))
    AllocationProgram(regret, n_arms=3, n_targets=2, dim=2)
    """
    b = check_bandit(bandit)
    if b._store is not None:
        return _streamed_regret(b, Origin("regret", b))
    scale, origin = half_precision(b.noise_variance), Origin("regret", b)
    return _arm_program(b.arms, b.gaps, scale, origin, variances=b.variances, checked=True)


@spelled
def contextual(bandit: ContextualBandit, budget: float | None = None) -> AllocationProgram:
    r"""The asymptotic regret of a contextual linear bandit (Hao, Lattimore & Szepesvári 2020).

    Over all pairs (context, arm): costs Δ^m_x within the context, ||x||²_{H^-1} <= (Δ^m_x)²/(2σ²) for the suboptimal arms of
    every context. The optimal arm of *every* context is free, so what is learnt in one context helps in all: the value is 0
    where these span everything, and with one context it is c(A,θ). How often contexts come does not matter asymptotically.

    ``budget`` z: the plays in context m are at most z times its share ρ_m of the weights (Tirinzoni, Pirotta, Restelli & Lazaric
    2020). These are linear constraints Σ_a α_{m,a} <= z ρ_m, with z ρ_m rounded to a double. Then optimal arms cost nothing but are
    not free, the value decreases in z to that without a budget, and small budgets are `Infeasible`.
    ``solution.constraint_multipliers`` are what one more play in each context is worth.

    Examples
    --------
    >>> import allocopt as ao
    >>> one = [[1, 0], [0, 1], [0.9, 0.2]]
    >>> b = ao.ContextualBandit([one, [[0.5, 0], [0.4, 0.1]]], [1, 0])
    >>> round(ao.solve(ao.programs.contextual(b)).value, 6)
    8.0
    >>> other = ao.ContextualBandit([one, [[0, 0.5], [0.4, 0.1]]], [1, -0.1])
    >>> other.optimal_arms  # (1, 0) and (0.4, 0.1): they span, so nothing has to be explored
    array([0, 4])
    >>> ao.solve(ao.programs.contextual(other)).value
    0.0
    >>> [round(ao.solve(ao.programs.contextual(b, budget=z)).value, 4) for z in (500, 1e3, 1e5)]
    [16.4769, 10.8664, 8.0208]
    """
    if not isinstance(bandit, ContextualBandit):
        raise InvalidInstance(f"bandit: expected a ContextualBandit, got a {type(bandit).__name__}")
    origin = Origin("contextual", bandit)
    program = _arm_program(
        bandit.arms,
        bandit.gaps,
        half_precision(bandit.noise_variance),
        origin,
        variances=bandit.variances,
        checked=False,
    )
    if budget is None:
        return program
    limits = positive_number("budget", budget, InvalidOption) * (bandit.weights / bandit.weights.sum())
    pairs = np.arange(bandit.n_arms)
    context = np.repeat(np.arange(bandit.n_contexts), bandit.sizes)
    rows = LinearConstraints.listed(context, pairs, np.ones(bandit.n_arms), limits, bandit.n_arms)
    return replace(program, constraints=rows)


def _streamed_regret(bandit: LinearBandit, origin: Origin, **bounds: Any) -> AllocationProgram:
    """The regret program over blocks of arms; ``bounds`` are those of `ArmBlocks`."""
    assert bandit._store is not None
    if bandit._survey.largest == 0.0:
        check_different(np.zeros((1, bandit.dim)))
    rule = GapRule(bandit.theta, bandit._best_row)
    scale = half_precision(bandit.noise_variance)
    blocks = ArmBlocks(
        bandit._store, bandit._survey, rule, None, bandit.optimal_arms, scale, bandit, bandit.variances, **bounds
    )
    return AllocationProgram._over(blocks, origin)


def _streamed_with_gaps(
    store: ArmStore, gaps: Array | None, scale: float, origin: Origin, report: SurveyReport | None = None
) -> AllocationProgram:
    """A program over a store with given gaps (1 for all where None); ``report`` where it was surveyed before."""
    if report is None:
        report = surveyed(store)
    free = np.zeros(0, dtype=np.int64)
    if gaps is not None:
        in_range("gaps", gaps, InvalidInstance, each=True)
        free = np.flatnonzero(gaps == 0)
        report = with_gaps(report, gaps, store.shape[1])
    return AllocationProgram._over(ArmBlocks(store, report, GapRule(given=gaps is not None), gaps, free, scale), origin)


@spelled
def horizon(arms: ArrayLike, gaps: ArrayLike, n: float, *, constant: float = 1.0) -> AllocationProgram:
    r"""T_n(Δ) of Definition 9 (`def:opt`): ||x||²_{H^-1} <= Δ_x²/f_n for all arms, any gaps in [0, ∞)^k.

    ``constant`` is the universal constant in f_n, which the paper leaves open.

    Examples
    --------
    >>> horizon([[1, 0], [0, 1]], [0, 0.5], 1000).n_targets
    1
    """
    n = whole_number("n", n, InvalidOption, least=3)
    store, x, delta = _arms_and_gaps(arms, gaps)
    rank = len(spanning_coordinates(x)) if store is None else store_rank(store)
    level = f_n(n, rank, constant)
    origin = Origin("horizon", gaps=delta, number=level, horizon=n, constant=float(constant))
    if store is not None:
        return _streamed_with_gaps(store, delta, 1.0 / level, origin)
    return _arm_program(x, delta, 1.0 / level, origin, checked=True)


def at_level(arms: Any, gaps: Any, level: float, report: SurveyReport | None = None) -> AllocationProgram:
    """``horizon`` at a given level: 2 is the regret program of gaps that need not come from a θ.

    ``arms`` may be a store, and ``report`` what `surveyed` said of it.
    """
    store, x, delta = _arms_and_gaps(arms, gaps)
    if store is not None:
        return _streamed_with_gaps(store, delta, 1.0 / level, Origin("horizon", gaps=delta, number=level), report)
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
        check_different(x)
    return store, x, delta


def horizon_at_level(
    arms: Array, gaps: Array, level: float, n: int | None, constant: float | None = None
) -> AllocationProgram:
    """``horizon`` with f_n given as a number (a proof file stores it so)."""
    origin = Origin("horizon", gaps=gaps, number=level, horizon=n, constant=constant)
    store = open_store(arms)
    if store is not None:
        return _streamed_with_gaps(store, gaps, 1.0 / level, origin)
    return _arm_program(arms, gaps, 1.0 / level, origin, checked=False)


@spelled
def g_optimal(arms: ArrayLike) -> AllocationProgram:
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


@spelled
def optimism(bandit: LinearBandit, width: float) -> AllocationProgram:
    r"""What any optimistic algorithm with confidence sets {||θ̂ − θ||²_G <= a σ² log n} pays at least.

    The regret program with T_x <= 4aσ²/Δ_x² (times log n): optimism stops playing an arm then. Always feasible
    for ``width`` a >= 1/2 (at 1/2 itself barely: finite-armed instances then have no room left, and end as FAILED with that
    reason); for less, consistency may be out of reach (`Infeasible`).

    With a variance per arm the set is {||θ̂ − θ||²_G <= a log n} for G = Σ T_x x xᵀ/σ_x². Optimism plays x only while its width
    2(a log n)^½ ||x||_{G^-1} is at least Δ_x, and ||x||²_{G^-1} <= σ_x²/T_x: so T_x <= 4aσ_x²/Δ_x² (times log n), with x's own σ_x².

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.8]], [1, 0])
    >>> round(ao.solve(ao.programs.optimism(b, 1.0)).value, 6)
    20.0
    """
    b = check_bandit(bandit)
    a = positive_number("width", width, InvalidOption)
    in_range("width", np.array([a]), InvalidOption)
    if b._store is not None and a >= _ALWAYS_FEASIBLE:
        return _streamed_regret(b, Origin("optimism", b, number=a), width=a)
    in_range("gaps", b.gaps, InvalidInstance, each=True)
    upper = np.full(b.n_arms, np.inf)
    suboptimal = b.suboptimal_arms
    upper[suboptimal] = 4.0 * a * b.variance_of_each[suboptimal] / b.gaps[suboptimal] ** 2
    origin = Origin("optimism", b, number=a)
    return _arm_program(
        b.arms_in_memory,
        b.gaps,
        half_precision(b.noise_variance),
        origin,
        upper=upper,
        variances=b.variances,
        checked=True,
    )


@spelled
def remaining(bandit: LinearBandit, pulls: ArrayLike, n: float) -> AllocationProgram:
    r"""The regret program given data: α >= pulls/log n. Its value is the least regret/log n from the start of play.

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> round(ao.solve(ao.programs.remaining(b, [50, 1], 1000)).value, 6)
    2.0
    """
    b = check_bandit(bandit)
    counts = vector("pulls", pulls, InvalidInstance, length=b.n_arms)
    if (counts < 0).any():
        i = int(np.flatnonzero(counts < 0)[0])
        raise InvalidInstance(f"pulls: expected entries >= 0, but entry {i} is {float(counts[i])!r}")
    n = whole_number("n", n, InvalidOption, least=3)
    return remaining_at_log(b, counts, math.log(n), n)


def _in_few_bytes(counts: Array) -> Array:
    """The same numbers; whole ones in the smallest type that holds them: eight bytes each are a part of what the arms take.

    What is computed from them divides by log n and is in doubles again.
    """
    most = float(counts.max())
    if most >= 2**32:
        return counts
    small: Array = counts.astype(np.min_scalar_type(int(most)))
    # part by part: whether all are whole should not take the memory that this is to spare
    parts = (slice(first, first + _PULLS_AT_ONCE) for first in range(0, len(counts), _PULLS_AT_ONCE))
    return small if all(np.array_equal(small[part], counts[part]) for part in parts) else counts


def remaining_at_log(bandit: LinearBandit, pulls: Array, log_n: float, n: int | None) -> AllocationProgram:
    """``remaining`` with log n given as a number (a proof file stores it so)."""
    if bandit._store is not None:
        pulls = _in_few_bytes(pulls)
    origin = Origin("remaining", bandit, pulls=pulls, number=log_n, horizon=n)
    if bandit._store is not None:
        extremes = np.array([pulls.max(), pulls.min(initial=pulls.max(), where=pulls > 0)])
        in_range("lower", extremes / log_n, InvalidProgram, power=4)
        given = pulls if pulls.any() else None
        return _streamed_regret(bandit, origin, pulls=given, pulls_divisor=log_n)
    return _arm_program(
        bandit.arms_in_memory,
        bandit.gaps,
        half_precision(bandit.noise_variance),
        origin,
        lower=pulls / log_n,
        variances=bandit.variances,
        checked=True,
    )
