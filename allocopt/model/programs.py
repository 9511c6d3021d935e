"""The named programs, as users write them: ``allocopt.programs.regret(bandit)``.

Regret is Corollary 2 (`cor:regretlb`), horizon is Definition 9 (`def:opt`), optimism is Section 8 (`sec:optimism`) of the paper.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.validation import Array, in_range, positive_number, vector, whole_number
from allocopt.linear.span import spanning_coordinates
from allocopt.model.arms.opening import open_store
from allocopt.model.arms.spanning import store_rank
from allocopt.model.arms.store import ArmStore
from allocopt.model.arms.survey import SurveyReport, surveyed, with_gaps
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.model.levels import f_n
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.streamed_program import ArmBlocks, GapRule

__all__ = ["AllocationProgram", "best_arm", "g_optimal", "horizon", "optimism", "regret", "remaining"]


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
    assert bandit.store is not None
    _check_some_gap(len(bandit.optimal_arms) < bandit.n_arms, bandit.n_arms)
    rule = GapRule(bandit.theta, bandit.best_row)
    scale = 0.5 / bandit.noise_variance
    blocks = ArmBlocks(bandit.store, bandit.survey, rule, None, bandit.optimal_arms, scale, bandit)
    return AllocationProgram.over(blocks, Origin("regret", bandit))


def _streamed_with_gaps(
    store: ArmStore, gaps: Array | None, scale: float, origin: Origin, report: SurveyReport | None = None
) -> AllocationProgram:
    """A program over a store with given gaps (1 for all where None); ``report`` where it was surveyed before."""
    if report is None:
        report = surveyed(store)
    free = np.zeros(0, dtype=np.int64)
    if gaps is not None:
        in_range("gaps", gaps, InvalidInstance, each=True)
        _check_some_gap(bool(gaps.any()), len(gaps))
        free = np.flatnonzero(gaps == 0)
        report = with_gaps(report, gaps, store.shape[1])
    return AllocationProgram.over(ArmBlocks(store, report, GapRule(given=gaps is not None), gaps, free, scale), origin)


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
    rank = len(spanning_coordinates(x)) if store is None else store_rank(store)
    level = f_n(n, rank, constant)
    if store is not None:
        origin = Origin("horizon", gaps=delta, number=level, horizon=n, constant=float(constant))
        return _streamed_with_gaps(store, delta, 1.0 / level, origin)
    return horizon_at_level(x, delta, level, n, float(constant))


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
