r"""Audit of a policy's pulls by Theorem 1 (`thm:lower`): what it explores too little to be consistent, and what too much.

For a consistent policy and every suboptimal x, limsup log(n) ||x − x*||²_{Ḡ_n^-1} <= Δ_x²/(2σ²), Ḡ_n = E[G_n]. The left side
over the right one is the *evidence ratio* of x at n: above 1, the data that the policy collects by round n do not rule out,
at the confidence 1/n that consistency needs, that x is the best arm. The theorem speaks of n → ∞, so look at several n:
a ratio that stays above 1 or grows is a policy that pays with more than logarithmic regret elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array, as_doubles
from allocopt.base.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, ArrayLike, IntArray, frozen, positive_number, whole_number
from allocopt.linear.assumptions import assuming
from allocopt.linear.information import squared_norms, whitening
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.model.programs.instead import no_bandit
from allocopt.model.solution import Solution, Status
from allocopt.model.tables import Table, Tabular, drawn
from allocopt.solving.solve import solve

__all__ = ["Audit", "AuditRow", "audit"]

_SUM_TOLERANCE = 1e-9  # relative difference that Σ pulls and n may have: means over runs are rounded


class AuditRow(NamedTuple):
    """One arm at one time."""

    n: int
    arm: int
    label: str | None
    gap: float
    pulls: float
    optimal_pulls: float
    """α_x log n; inf on optimal arms."""
    evidence: float
    exploration: float
    excess: float


@dataclass(frozen=True, eq=False)
class Audit(Tabular):
    """What `audit` found; arrays have one row per time and one column per arm.

    Attributes
    ----------
    bandit : LinearBandit
        The instance that was played.
    solution : Solution
        Of the regret program: α and c.
    n : array of int, shape (m,)
        The times.
    pulls : array, shape (m, k)
        Mean over the runs.
    runs : int
        How many runs there were.
    evidence : array, shape (m, k)
        2σ² log(n) ||x − x*||²_{G^-1}/Δ_x²: above 1 there is too little to tell x from the best arm; inf where nothing was learnt.
    exploration : array, shape (m, k)
        pulls/(α_x log n): 1 is optimal, above is too much; inf where an optimal allocation has none.
    under, over : float
        Arms are called under-explored above the evidence ``under``, and over-explored above the exploration ``over``.
    """

    bandit: LinearBandit
    solution: Solution
    """Of the regret program: α and c, with ``solution.assumptions``."""
    n: IntArray
    pulls: Array
    """Mean over the runs."""
    runs: int
    evidence: Array
    """2σ² log(n) ||x − x*||²_{G^-1}/Δ_x²: above 1 is too little; inf where x − x* is outside the range of G, 0 on optimal arms."""
    exploration: Array
    """pulls/(α_x log n), equal arms taken together: 1 is optimal; inf where an optimal allocation has none, 0 on optimal arms."""
    under: float
    over: float
    """Arms are called under-explored above the evidence ``under``, and over-explored above the exploration ``over``."""

    @property
    def optimal_pulls(self) -> Array:
        """α_x log n, inf on optimal arms."""
        return _times_log(self.solution.allocation, self.n)

    @property
    def excess(self) -> Array:
        """Δ_x (pulls − α_x log n), the regret beyond (or, negative, below) that of the optimal allocation."""
        wanted = np.where(np.isinf(self.optimal_pulls), 0.0, self.optimal_pulls)
        result: Array = self.bandit.gaps * (self.pulls - wanted)
        return result

    @property
    def regret(self) -> Array:
        """Mean regret at each time."""
        result: Array = self.pulls @ self.bandit.gaps
        return result

    @property
    def regret_ratio(self) -> Array:
        """regret/(c log n) at each time: 1 is what the lower bound allows.

        Where c = 0 nothing has to be explored: the ratio is inf for any regret, and 1 where there is none.
        """
        allowed = self.solution.value * np.log(self.n)
        without = np.where(self.regret > 0, np.inf, 1.0)
        result: Array = np.divide(self.regret, allowed, out=without, where=allowed > 0)
        return result

    @property
    def under_explored(self) -> IntArray:
        """At the last time: arms whose evidence ratio is above ``under``, worst first."""
        return self.under_explored_at(-1)

    @property
    def over_explored(self) -> IntArray:
        """At the last time: arms whose exploration ratio is above ``over``, by excess regret, largest first."""
        return self.over_explored_at(-1)

    def under_explored_at(self, time: int) -> IntArray:
        """The same at the time of that position."""
        ratio = self.evidence[self._time(time)]
        found = np.flatnonzero(ratio > self.under)
        return found[np.argsort(-ratio[found], kind="stable")]

    def over_explored_at(self, time: int) -> IntArray:
        """The same at the time of that position."""
        at = self._time(time)
        found = np.flatnonzero(self.exploration[at] > self.over)
        return found[np.argsort(-self.excess[at][found], kind="stable")]

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.audit_bars` of this audit; options as there. Returns a matplotlib Figure."""
        return drawn("audit_bars", self, **options)

    def table(self, time: int = -1) -> list[AuditRow]:
        """One row per arm at the time of that position, arms with the least evidence first."""
        at = self._time(time)
        labels = self.bandit.labels
        wanted, excess = self.optimal_pulls[at], self.excess[at]
        return [
            AuditRow(
                int(self.n[at]),
                i,
                None if labels is None else labels[i],
                float(self.bandit.gaps[i]),
                float(self.pulls[at, i]),
                float(wanted[i]),
                float(self.evidence[at, i]),
                float(self.exploration[at, i]),
                float(excess[i]),
            )
            for i in np.argsort(-self.evidence[at], kind="stable").tolist()
        ]

    def _table(self) -> Table:
        """At the last time, arms with the least evidence first."""
        rows = self.table()
        columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in AuditRow._fields}
        if self.bandit.labels is None:
            del columns["label"]
        facts = {
            "rounds": int(self.n[-1]), "runs": self.runs, "regret/(c log n)": float(self.regret_ratio[-1]),
            "under-explored arms": len(self.under_explored), "over-explored arms": len(self.over_explored),
        }  # fmt: skip
        return Table("Audit", facts, columns)

    def _time(self, time: int) -> int:
        if not isinstance(time, int | np.integer) or not -len(self.n) <= time < len(self.n):
            raise InvalidOption(f"time: expected a position from 0 to {len(self.n) - 1}, got {time!r}")
        return time % len(self.n)

    def __repr__(self) -> str:
        assumed = assuming(self.solution.assumptions)
        return (
            f"Audit(n={self.n.tolist() if len(self.n) <= 5 else f'{len(self.n)} times'}, runs={self.runs}, "
            f"under_explored={len(self.under_explored)} of {self.bandit.n_arms} arms, "
            f"over_explored={len(self.over_explored)}, regret/(c log n)={self.regret_ratio[-1]:.4g}"
            f"{f', c {assumed}' if assumed else ''})"
        )


@spelled
def audit(
    bandit: LinearBandit,
    pulls: ArrayLike,
    n: Any,
    *,
    solution: Solution | None = None,
    under: float = 1.0,
    over: float = 2.0,
) -> Audit:
    r"""Hold a policy's pull counts against the lower bound and the optimal allocation.

    Parameters
    ----------
    bandit : LinearBandit
        With its noise variance. Several optimal arms are allowed: x must then be told apart from the nearest point of
        their convex hull (what an alternative in which x is best has to beat), and from each of them G must know the
        direction at all; equal arms are one arm.
    pulls : array_like
        Counts after n rounds: (k,), or (runs, k) for several independent runs. With several n: (times, k) or
        (runs, times, k). Runs are averaged, as the theorem's Ḡ_n is an expectation.
    n : int or sequence of int
        The round, or the rounds, of the counts; each row of counts sums to its n.
    solution : Solution, optional
        Of the regret program of this bandit, if you have it already.
    under, over : float
        An arm is under-explored when its evidence ratio is above ``under``, over-explored when it has more than ``over`` times
        the pulls of the optimal allocation. That allocation need not be unique: an arm that could replace another
        (other than an equal one) may be called over-explored although the policy is as good.

    Examples
    --------
    >>> import allocopt as ao
    >>> from allocopt.play.audit import audit
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
    >>> report = audit(bandit, [999_000, 2, 998], 10**6)  # optimism hardly ever plays e2
    >>> report.under_explored, report.evidence.round(2)
    (array([2, 1]), array([[ 0.  , 11.52, 46.08]]))
    """
    if not isinstance(bandit, LinearBandit):
        raise no_bandit(bandit, pulls, "audit(bandit, pulls, n)")
    times, counts, runs = _counts(pulls, n, bandit.n_arms)
    under = positive_number("under", under)
    over = positive_number("over", over)
    solved = solve(regret(bandit)) if solution is None else _same_bandit(solution, bandit)
    if solved.status is Status.FAILED:
        raise InvalidOption(f"bandit: its optimal allocation could not be computed: {solved.stats.get('reason')}")
    log_n = np.log(times.astype(np.float64))
    known = counts if bandit.variances is None else counts / bandit.variances
    distances = np.stack([_squared_distances(bandit, row) for row in known])
    evidence = np.zeros_like(counts)
    s = bandit.suboptimal_arms
    variance = bandit.noise_variance if bandit.variances is None else 1.0
    evidence[:, s] = 2.0 * variance * log_n[:, None] * distances / bandit.gaps[s] ** 2
    exploration = _exploration(bandit, solved.allocation, counts, times)
    return Audit(bandit, solved, times, frozen(counts), runs, frozen(evidence), frozen(exploration), under, over)


def _counts(pulls: Any, n: Any, n_arms: int) -> tuple[IntArray, Array, int]:
    """Times, mean counts per time, and how many runs they are the mean of."""
    try:
        several = np.ndim(n) == 1
        listed = list(n) if several else [n]
    except (ValueError, TypeError):
        raise InvalidOption("n: expected a whole number >= 3 or a list of them") from None
    try:
        raw = as_array(pulls)
    except NotAnArray as problem:
        reason = (
            "expected an array of counts, got rows of different lengths" if "inhomogeneous" in str(problem) else problem
        )
        raise InvalidInstance(f"pulls: {reason}") from None
    if np.ndim(n) > 1 or not listed:
        raise InvalidOption("n: expected a whole number >= 3 or a list of them")
    times = np.array(
        [whole_number("n", x.item() if isinstance(x, np.generic) else x, InvalidOption, least=3) for x in listed]
    )
    shape = (len(times), n_arms) if several else (n_arms,)
    if raw.dtype.kind not in "fiu":
        raise InvalidInstance(
            f"pulls: expected an array of counts, got a {type(pulls).__name__} that holds something else{_its_pulls(pulls)}"
        )
    if raw.shape[-len(shape) :] != shape or raw.ndim > len(shape) + 1 or not raw.size:
        with_runs = ", ".join(["runs", *map(str, shape)])
        raise InvalidInstance(f"pulls: expected shape {shape} or ({with_runs}), got {raw.shape}")
    values = as_doubles("pulls", raw, InvalidInstance, given=pulls).reshape(-1, len(times), n_arms)
    if not np.isfinite(values).all() or (values < 0).any():
        bad = values[~np.isfinite(values) | (values < 0)][0]
        raise InvalidInstance(f"pulls: expected finite counts >= 0, but one is {float(bad)!r}")
    sums = values.sum(axis=2)
    wrong = np.argwhere(np.abs(sums - times) > _SUM_TOLERANCE * times)
    if len(wrong):
        run, time = wrong[0].tolist()
        where = f" (run {run})" if len(values) > 1 else ""
        raise InvalidInstance(
            f"pulls: expected counts that sum to n = {times[time]}{where}, got {sums[run, time]:.10g}"
        )
    return times, values.mean(axis=0), len(values)


def _its_pulls(given: Any) -> str:
    """What to write for a result that has pulls."""
    if not hasattr(given, "pulls"):
        return ""
    several = ", or its .pulls_at(n) for other rounds than the last" if hasattr(given, "pulls_at") else ""
    return f"; write its .pulls{several}"


def _same_bandit(solution: Any, bandit: LinearBandit) -> Solution:
    if not isinstance(solution, Solution) or solution.program.kind != "regret":
        kind = solution.program.kind if isinstance(solution, Solution) else type(solution).__name__
        raise InvalidOption(f"solution: expected a Solution of the regret program, got {kind}")
    other = solution.program.origin.bandit
    assert other is not None
    same = other is bandit or (
        np.array_equal(other.arms, bandit.arms)
        and np.array_equal(other.gaps, bandit.gaps)
        and np.array_equal(other.noise_variance, bandit.noise_variance)
    )
    if not same:
        raise InvalidOption("solution: expected one of the bandit that is audited, got one of another bandit")
    return solution


def _squared_distances(bandit: LinearBandit, counts: Array) -> Array:
    """min ||x − p||²_{G^-1} over p in the convex hull of the optimal arms, for every suboptimal x."""
    best = np.unique(bandit.arms[bandit.optimal_arms], axis=0)
    x = bandit.arms[bandit.suboptimal_arms]
    distances: Array = np.stack([squared_norms(bandit.arms, counts, x - p) for p in best]).max(axis=0)
    if len(best) == 1:
        return distances
    known = np.flatnonzero(np.isfinite(distances))
    if len(known):
        white, _ = whitening(bandit.arms, counts)
        for i in known.tolist():
            distances[i] = _nearest(white(x[i] - best))
    return distances


def _nearest(points: Array) -> float:
    """The least ||p||² over the convex hull of the points, by non-negative least squares (Lawson and Hanson's LDP)."""
    from scipy.optimize import nnls  # here: it takes a fifth of a second to load

    size = np.sqrt(np.einsum("ij,ij->i", points, points)).max()
    if size == 0:
        return 0.0
    scaled = points / size
    system = np.concatenate([scaled.T, np.ones((1, len(points)))])
    goal = np.concatenate([np.zeros(points.shape[1]), [1.0]])
    try:
        weights = nnls(system, goal, maxiter=100 * len(points))[0]
    except RuntimeError as failure:
        raise SolverFailed(f"bandit: no nearest point in the hull of the {len(points)} tied arms: {failure}") from None
    nearest = (weights / weights.sum()) @ scaled
    return float(nearest @ nearest) * float(size) ** 2


def _exploration(bandit: LinearBandit, allocation: Array, counts: Array, times: IntArray) -> Array:
    """pulls/(α log n), with the pulls and the α of equal arms added up; 0 on optimal arms."""
    group = np.unique(bandit.arms, axis=0, return_inverse=True)[1].ravel()
    pooled = np.stack([np.bincount(group, weights=row) for row in counts])
    wanted: Array = np.bincount(group, weights=allocation).astype(np.float64)
    suboptimal = bandit.suboptimal_arms
    have = pooled[:, group[suboptimal]]
    want = _times_log(wanted[group[suboptimal]], times)
    ratios = np.zeros_like(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios[:, suboptimal] = np.where(have > 0, have / want, 0.0)
    return ratios


def _times_log(allocation: Array, times: IntArray) -> Array:
    result: Array = allocation * np.log(times.astype(np.float64))[:, None]
    return result
