r"""What makes an instance hard: who pays, who confuses, what it depends on, and what optimism would cost.

`hardness(bandit)` solves the regret program once; every other part of the report is computed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt import sensitivity as sensitive
from allocopt.bandit import LinearBandit
from allocopt.canonical import Canonical, whitener
from allocopt.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.program import best_arm
from allocopt.progress import Callback
from allocopt.reduction import spanning_coordinates
from allocopt.sensitivity import Alternative, Optimum, Removal, Sensitivity
from allocopt.solution import Solution, Status
from allocopt.solve import solve
from allocopt.tolerances import DEFAULT_TOL
from allocopt.validation import Array, positive_number, vector, whole_number

if TYPE_CHECKING:
    from allocopt.certificate import Enclosure

__all__ = ["Addition", "Confusing", "Geometry", "Hardness", "Informative", "StepCallback", "hardness"]

NEAR_TIE = 1e-3
"""Gaps below this share of the largest are called near ties: their constraints ask for 10⁶ times the precision."""

COLLINEAR = 1e-3
"""Sine of an angle below which two arms are called nearly collinear: what tells them apart is a millionth of H."""

StepCallback = Callable[[str, int, int], object]
"""Told before each step of a long computation: what comes now, how many steps are done, how many there are."""


@dataclass(frozen=True)
class Informative:
    """An arm of the support: it is played although it is known to be bad, for what it tells."""

    arm: int
    gap: float
    allocation: float
    """α: it is played α·log n times."""
    regret_share: float
    """αΔ/c. Weighted by the multipliers of the confusing arms, this is also its share of the evidence against them."""
    information_share: float
    """α||x||²_{H^-1}/r, its leverage: these add up to 1 over the support (r is the dimension of the quotient)."""


@dataclass(frozen=True)
class Confusing:
    """An arm whose constraint is tight: α is no smaller because this arm could otherwise be the best one."""

    arm: int
    gap: float
    multiplier: float
    """λ; they add up to c."""
    share: float
    """λ/c."""


@dataclass(frozen=True, eq=False)
class Addition:
    """c with one more arm (whose index is ``n_arms`` of the instance it was added to)."""

    vector: Array
    solution: Solution
    gap: float
    """Of the new arm; 0 if it is a best one."""
    change: float
    """The new c minus the old one."""
    note: str
    """What the arm does: nothing, inform, confuse, or take over as the best arm."""


@dataclass(frozen=True)
class Geometry:
    """The instance in numbers."""

    n_arms: int
    dim: int
    rank: int
    """Dimension of the span of the arms."""
    quotient_rank: int
    """r, what is left of it modulo the optimal arms: the dimensions to explore."""
    optimal_arms: int
    gap_min: float
    gap_median: float
    """Of the positive gaps."""
    gap_max: float
    near_ties: int
    """Arms with a positive gap below a thousandth of the largest."""
    condition: float
    """Of the matrix of arms, with its columns scaled to length 1."""
    least_sine: float
    """The smallest sine between different directions among the arms that matter (optimal, informative, confusing), in the
    coordinates in which the second moment of all arms is the identity; 1 if there is only one direction."""
    closest_arms: tuple[int, int] | None
    """The two arms with that sine."""


@dataclass(frozen=True, eq=False)
class Hardness:
    r"""The hardness report of one instance; made by `hardness`. Arms are given by their indices, `label` names them."""

    at: Optimum = field(repr=False)
    """The optimum everything else is derived from."""
    _optimistic: dict[float, Solution] = field(default_factory=dict, repr=False)

    @property
    def bandit(self) -> LinearBandit:
        """The instance."""
        return self.at.bandit

    @property
    def solution(self) -> Solution:
        """The certified solution of the regret program; idle arms are exactly 0 in it."""
        return self.at.solution

    @property
    def constant(self) -> float:
        """c(A,θ), the certified upper bound."""
        return self.solution.value

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the arms, where the bandit has them."""
        return self.bandit.labels

    def label(self, arm: int) -> str:
        """The name of an arm: its label, or "arm 3"."""
        return f"arm {arm}" if self.labels is None else self.labels[arm]

    @cached_property
    def proven(self) -> Enclosure:
        """The interval for c that the solution proves in exact arithmetic."""
        return self.solution.verify()

    @cached_property
    def ucb_constant(self) -> float:
        """Σ 2σ²/Δ: what UCB pays, which ignores the structure."""
        gaps = self.bandit.gaps[self.bandit.suboptimal_arms]
        return float(np.sum(2.0 * self.bandit.noise_variance / gaps))

    @property
    def ucb_ratio(self) -> float:
        """UCB's constant over c; inf where c = 0."""
        return self.ucb_constant / self.constant if self.constant > 0 else float("inf")

    @cached_property
    def best_arm(self) -> Solution | None:
        """The solution of the best-arm program; None where different arms tie, since no data tells them apart."""
        tied = self.at.vectors[self.bandit.optimal_arms]
        return solve(best_arm(self.bandit), tol=self.solution.tol) if (tied == tied[0]).all() else None

    @property
    def best_arm_time(self) -> float:
        """T*(θ): identifying the best arm with confidence 1 − δ takes T*·log(1/δ) plays; inf where different arms tie."""
        return float("inf") if self.best_arm is None else self.best_arm.value

    def optimism(self, width: float) -> Solution:
        """The certified solution of the optimism program of that width: what any such algorithm pays at least."""
        width = positive_number("width", width, InvalidOption)
        if width not in self._optimistic:
            self._optimistic[width] = sensitive.optimistic(self.at, width)
        return self._optimistic[width]

    def price_of_optimism(self, width: float) -> float:
        r"""What optimism with confidence sets ||θ̂ − θ||²_G <= a σ² log n pays at least, over c; 1 where both are 0.

        Always defined for ``width`` a > 1/2; raises `Infeasible` where no consistent play stays within such sets.

        Examples
        --------
        >>> from allocopt.instances import optimism_example
        >>> h = hardness(optimism_example(1e-4, a=1.0))
        >>> round(h.price_of_optimism(1.0), 6), round((4 + (2 - 1 / 16) / 1e-4) / 128, 6)
        (151.398438, 151.398438)
        """
        found = self.optimism(width)
        if found.status is Status.FAILED:
            raise SolverFailed(
                f"width: the optimism program for {width:g} could not be solved: {found.stats['reason']}"
            )
        return found.value / self.constant if self.constant > 0 else 1.0

    @cached_property
    def informative(self) -> tuple[Informative, ...]:
        """The arms of the support, the dearest first."""
        bounds, solution, gaps = self.at.bounds, self.solution, self.bandit.gaps
        if bounds is None:
            return ()
        problem = self.at.reduction.canonical
        basis = whitener(problem, bounds.alpha)
        if basis is None:
            raise SolverFailed("the information matrix of the optimal allocation is singular in double precision")
        rows = problem.features @ basis
        leverage = np.zeros(self.bandit.n_arms)
        leverage[self.at.arms] = bounds.alpha * np.einsum("ij,ij->i", rows, rows) / problem.rank
        cost = gaps[solution.support] * solution.allocation[solution.support]
        order = solution.support[np.argsort(-cost, kind="stable")]
        return tuple(
            Informative(
                i, float(gaps[i]), float(solution.allocation[i]),
                float(gaps[i] * solution.allocation[i] / cost.sum()), float(leverage[i]),
            )
            for i in order.tolist()
        )  # fmt: skip

    @cached_property
    def confusing(self) -> tuple[Confusing, ...]:
        """The arms whose constraints are tight, the largest multiplier first."""
        lam, binding = self.solution.multipliers, self.solution.binding
        order = binding[np.argsort(-lam[binding], kind="stable")]
        total = float(lam.sum())
        return tuple(
            Confusing(j, float(self.bandit.gaps[j]), float(lam[j]), float(lam[j]) / total) for j in order.tolist()
        )

    @cached_property
    def evidence(self) -> Array:
        """For every arm ½||θ − θ'||²_{H(α)}/σ² of its most confusing alternative: 1 on the confusing arms, more elsewhere; inf
        on optimal arms and on those that no θ' with the same optimal means makes better."""
        return sensitive.evidence(self.at)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The most confusing alternative of each confusing arm, in the order of ``confusing``."""
        return sensitive.alternatives(self.at, [entry.arm for entry in self.confusing])

    def alternative(self, arm: int) -> Alternative:
        """The most confusing alternative of any suboptimal arm.

        Examples
        --------
        >>> from allocopt.instances import counter_example
        >>> a = hardness(counter_example(0.01)).alternative(2)
        >>> a.theta.round(9), round(a.evidence, 9)
        (array([1. , 0.5]), 1.0)
        """
        return sensitive.alternatives(self.at, [self._arm(arm)])[0]

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """∂c/∂Δ and ∇_θ c, with what is to be said about them."""
        return sensitive.sensitivity(self.at)

    @property
    def gradient(self) -> Array | None:
        """∇_θ c; None where different arms tie for the best. ``sensitivity.note`` says when it is one of several."""
        return self.sensitivity.gradient

    @property
    def gap_derivatives(self) -> Array:
        """∂c/∂Δ; nan on the optimal arms."""
        return self.sensitivity.gap_derivatives

    @cached_property
    def leave_one_out(self) -> tuple[Removal, ...]:
        """c without each arm that matters, the largest increase first.

        These are the informative and the confusing arms, each re-solved and certified, and the best arm. Removing any other
        arm leaves c as it is: the same allocation and multipliers prove the same interval. A best arm whose removal
        leaves the span of the optimal arms unchanged is such an arm too. Without the only best arm the instance is another
        one, with other gaps; its row says so.
        """
        return self._leave_one_out(lambda what, done, total: None)

    def _leave_one_out(self, step: StepCallback) -> tuple[Removal, ...]:
        optimal = self.bandit.optimal_arms
        pivots = optimal if len(optimal) == 1 else np.array(self.at.reduction.quotient.pivot_arms, dtype=np.int64)
        arms = np.unique(np.concatenate([self.solution.support, self.solution.binding, pivots])).tolist()
        found = []
        for done, arm in enumerate(arms):
            step(f"without {self.label(arm)}", done, len(arms))
            found.append(sensitive.removal(self.at, arm))
        return tuple(sorted(found, key=lambda r: -r.change))

    def without(self, arm: int) -> Solution:
        """The certified solution of the instance without an arm, solved from scratch (to ``verify()`` or ``save()``)."""
        return sensitive.optimum(sensitive.without(self.bandit, self._arm(arm)), self.solution.tol).solution

    def with_arm(self, arm: Any, label: str = "added") -> Addition:
        """c with one more arm, a vector of d entries.

        Examples
        --------
        >>> from allocopt.instances import counter_example
        >>> h = hardness(counter_example(0.01, informative=False))
        >>> added = h.with_arm([0, 1])
        >>> round(h.constant, 6), round(added.solution.value, 6)
        (200.0, 8.0)
        """
        old = self.bandit
        row = vector("arm", arm, InvalidInstance, length=old.dim)
        labels = None if old.labels is None else (*old.labels, label)
        arms = np.concatenate([self.at.vectors, row[None, :]])
        arms.flags.writeable = False  # so that the bandit shares it
        new = LinearBandit(arms, old.theta, old.noise_variance, old.tie_tolerance, labels=labels)
        if old.n_arms not in new.optimal_arms and not np.array_equal(new.optimal_arms, old.optimal_arms):
            new = LinearBandit(arms, old.theta, old.noise_variance, old.tie_tolerance, old.optimal_arms, labels)
        found = sensitive.optimum(new, self.solution.tol).solution
        return Addition(row, found, float(new.gaps[-1]), found.value - self.constant, self._effect(new, found))

    def _effect(self, new: LinearBandit, found: Solution) -> str:
        index = self.bandit.n_arms
        if index in new.optimal_arms:
            alone = len(new.optimal_arms) == 1
            return (
                "it is the best arm now: another instance"
                if alone
                else "it ties for the best arm: its direction is free"
            )
        roles = [name for name, arms in (("informs", found.support), ("confuses", found.binding)) if index in arms]
        return (
            f"it {' and '.join(roles)}" if roles else "it changes nothing: neither cheap enough to inform nor confusing"
        )

    @cached_property
    def geometry(self) -> Geometry:
        """Gaps and directions in numbers."""
        b = self.bandit
        positive = b.gaps[b.suboptimal_arms]
        condition, sine, pair = _directions(self.at.vectors, np.unique(np.concatenate(
            [b.optimal_arms[:100], self.solution.support, self.solution.binding]
        )))  # fmt: skip
        near = int((positive < NEAR_TIE * b.gap_max).sum())
        return Geometry(
            b.n_arms, b.dim, b.rank, len(self.at.reduction.quotient.coordinates), len(b.optimal_arms), b.gap_min,
            float(np.median(positive)), b.gap_max, near, condition, sine, pair,
        )  # fmt: skip

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before these numbers are relied on."""
        g, b, found = self.geometry, self.bandit, self.solution
        said = []
        if found.status is not Status.CERTIFIED:
            said.append(f"{found.status.name}: {found.stats['reason']}")
        if g.optimal_arms > 1:
            said.append(
                f"{g.optimal_arms} arms are taken as optimal (means that agree to {b.tie_tolerance:g} of the terms they are "
                "summed from); c is that of the tie, and jumps when it is broken"
            )
        if g.near_ties:
            nearest = int(np.argmin(np.where(b.gaps > 0, b.gaps, np.inf)))
            said.append(
                f"near ties: {g.near_ties} gap(s) below {NEAR_TIE:g} of the largest; the smallest is {g.gap_min:.6g} "
                f"({g.gap_min / g.gap_max:.2g} of the largest), of {self.label(nearest)}"
            )
        if g.closest_arms is not None and g.least_sine < COLLINEAR:
            one, other = (self.label(i) for i in g.closest_arms)
            said.append(f"nearly collinear arms: {one} and {other}, sine {g.least_sine:.2g} (arms whitened)")
        if g.condition > 1.0 / COLLINEAR**2:
            said.append(f"the arms hardly span their {g.rank} dimensions: condition number {g.condition:.2g}")
        if self.sensitivity.note and self.gradient is not None:
            said.append(f"derivatives: {self.sensitivity.note}")
        return tuple(said)

    def compute(self, step: StepCallback | None = None, *, prove: bool = True) -> Hardness:
        """Compute every part now instead of when it is asked for; ``step`` is told what comes next."""
        tell = step or (lambda what, done, total: None)
        parts = ("proven", "best_arm", "informative", "confusing", "alternatives", "sensitivity", "warnings")
        for done, part in enumerate(parts[0 if prove else 1 :]):
            tell(part.replace("_", " "), done, len(parts))
            getattr(self, part)
        if "leave_one_out" not in self.__dict__:
            self.__dict__["leave_one_out"] = self._leave_one_out(tell)
        return self

    def to_html(self, **options: Any) -> str:
        """The report as one self-contained page; the options are those of `allocopt.report.page`."""
        from allocopt.report import page

        return page(self, **options)

    def _arm(self, arm: int) -> int:
        index = whole_number("arm", arm, InvalidInstance)
        if index >= self.bandit.n_arms:
            raise InvalidInstance(f"arm: expected an index below {self.bandit.n_arms}, got {index}")
        return index

    def __repr__(self) -> str:
        return (
            f"Hardness(c={self.constant:.10g}, n_arms={self.bandit.n_arms}, dim={self.bandit.dim}, "
            f"informative={len(self.solution.support)}, confusing={len(self.solution.binding)})"
        )


def hardness(bandit: LinearBandit, *, tol: float = DEFAULT_TOL, callback: Callback | None = None) -> Hardness:
    r"""What makes an instance hard, in one object.

    Parameters
    ----------
    bandit : LinearBandit
        With at least one suboptimal arm.
    tol : float
        Relative gap that c must be certified to. (The solver is asked for more: the derivatives are as exact as α and λ.)
    callback : callable, optional
        Told of the progress of the first solve, as in `solve`.

    Returns
    -------
    Hardness
        Its parts are computed when first asked for; ``compute()`` computes all.

    Examples
    --------
    >>> from allocopt.instances import counter_example
    >>> h = hardness(counter_example(0.01))
    >>> round(h.constant, 6), round(h.ucb_ratio, 6), h.gradient.round(6)
    (8.0, 25.25, array([-8., 24.]))
    >>> [(r.arm, r.role, round(r.value, 6)) for r in h.leave_one_out]
    [(1, 'informative', 200.0), (0, 'optimal', 2.020202), (2, 'confusing', 2.0)]
    """
    if not isinstance(bandit, LinearBandit):
        raise InvalidInstance(f"bandit: expected a LinearBandit, got a {type(bandit).__name__}")
    _ = bandit.arms_in_memory  # arms on a cluster are refused before anything is computed
    return Hardness(sensitive.optimum(bandit, positive_number("tol", tol), callback))


def _directions(arms: Array, some: Any) -> tuple[float, float, tuple[int, int] | None]:
    """The condition number of all arms, and the smallest sine between different directions among some of them."""
    coordinates = list(spanning_coordinates(arms))
    rows = arms[:, coordinates]
    basis = whitener(Canonical(rows, rows, rows[:0]), np.ones(len(rows)))
    if basis is None:
        return float("inf"), 0.0, None
    stretch = np.linalg.svd(basis * np.linalg.norm(rows, axis=0)[:, None], compute_uv=False)
    white = rows[some] @ basis
    length = np.linalg.norm(white, axis=1)
    index, unit = some[length > 0], white[length > 0] / length[length > 0, None]
    best, pair = 1.0, None
    for i in range(len(unit) - 1):
        # the rest of each vector after projection: accurate for small angles, where 1 − cos² is not
        cosine = unit[i + 1 :] @ unit[i]
        sine = np.linalg.norm(unit[i + 1 :] - cosine[:, None] * unit[i], axis=1)
        sine[sine <= 1e-15 * len(coordinates)] = np.inf  # the same direction: duplicates and multiples
        j = int(np.argmin(sine))
        if sine[j] < best:
            best, pair = float(sine[j]), (int(index[i]), int(index[i + 1 + j]))
    return float(stretch[0] / stretch[-1]), best, pair
