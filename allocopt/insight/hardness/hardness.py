r"""What makes an instance hard: informative and confusing arms, what c depends on, and what optimism would cost.

`hardness(bandit)` solves the regret program once; every other part of the report is computed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.base.validation import Array, ArrayLike, positive_number, vector, whole_number
from allocopt.insight.hardness import alternatives as confusing_parameters
from allocopt.insight.hardness import sensitivity as derivatives
from allocopt.insight.hardness.alternatives import Alternative
from allocopt.insight.hardness.arm_geometry import COLLINEAR, NEAR_TIE, Geometry, geometry
from allocopt.insight.hardness.leave_one_out import Removal, removal, without
from allocopt.insight.hardness.optimum import Optimum, optimistic, optimum
from allocopt.insight.hardness.report_page import page
from allocopt.insight.hardness.roles import Confusing, Informative, confusing, informative
from allocopt.insight.hardness.sensitivity import Sensitivity
from allocopt.linear.assumptions import Assumption, assuming, sentences
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import best_arm
from allocopt.model.programs.instead import no_bandit
from allocopt.model.progress import Callback
from allocopt.model.solution import Solution, Status
from allocopt.model.status_text import caveat, why_not
from allocopt.model.tables import Table, Tabular, drawn
from allocopt.solving.solve import solve

if TYPE_CHECKING:
    from allocopt.certify.enclosure import Enclosure

__all__ = ["Addition", "Hardness", "StepCallback", "hardness"]

StepCallback = Callable[[str, int, int], object]
"""Told before each step of a long computation: what comes now, how many steps are done, how many there are."""


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


@dataclass(frozen=True, eq=False)
class Hardness(Tabular):
    r"""The hardness report of one instance; made by `hardness`. Arms are given by their indices, `label` names them.

    Everything is computed when it is first asked for; ``compute()`` does all at once. In the order of a report: ``constant`` with
    ``proven`` and ``status``; ``informative`` arms, played for what they tell; ``confusing`` arms, whose constraints are tight,
    and the ``alternatives`` θ' that confuse; ``gradient`` and ``gap_derivatives``, what c depends on; ``leave_one_out``, c without
    each arm; ``price_of_optimism(a)``; ``geometry`` and ``warnings``.
    """

    _at: Optimum = field(repr=False)
    """The optimum everything else is derived from."""
    _optimistic: dict[float, Solution] = field(default_factory=dict, repr=False)
    """Solutions of the optimism program by width, kept once they are computed."""
    _removed: dict[int, Removal] = field(default_factory=dict, repr=False)
    """c without an arm, by arm, kept once it is computed."""

    @property
    def bandit(self) -> LinearBandit:
        """The instance."""
        return self._at.bandit

    @property
    def solution(self) -> Solution:
        """The certified solution of the regret program; idle arms are exactly 0 in it."""
        return self._at.solution

    @property
    def constant(self) -> float:
        """c(A,θ), the certified upper bound."""
        return self.solution.value

    @property
    def status(self) -> Status:
        """What is proven of c."""
        return self.solution.status

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the status, and with it every other part of the report, assumes; empty where it is CERTIFIED."""
        return self.solution.assumptions

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the arms, where the bandit has them."""
        return self.bandit.labels

    def label(self, arm: int) -> str:
        """The name of an arm: its label, or "arm 3"."""
        index = self._arm(arm)
        return f"arm {index}" if self.labels is None else self.labels[index]

    @cached_property
    def proven(self) -> Enclosure:
        """The interval for c that the solution proves in exact arithmetic."""
        return self.solution.verify()

    @cached_property
    def ucb_constant(self) -> float:
        """Σ 2σ²/Δ, with each arm's own σ² where these differ: what UCB pays, which ignores the structure."""
        suboptimal = self.bandit.suboptimal_arms
        return float(np.sum(2.0 * self.bandit.variance_of_each[suboptimal] / self.bandit.gaps[suboptimal]))

    @property
    def ucb_ratio(self) -> float:
        """UCB's constant over c; inf where c = 0."""
        return self.ucb_constant / self.constant if self.constant > 0 else float("inf")

    @cached_property
    def best_arm(self) -> Solution | None:
        """The solution of the best-arm program; None where different arms tie, since no data tells them apart."""
        tied = self._at.vectors[self.bandit.optimal_arms]
        return solve(best_arm(self.bandit), tol=self.solution.tol) if (tied == tied[0]).all() else None

    @property
    def best_arm_time(self) -> float:
        """T*(θ): identifying the best arm with confidence 1 − δ takes T*·log(1/δ) plays; inf where different arms tie."""
        return float("inf") if self.best_arm is None else self.best_arm.value

    def optimism(self, width: float) -> Solution:
        """The certified solution of the optimism program of that width: what any such algorithm pays at least."""
        width = positive_number("width", width, InvalidOption)
        if width not in self._optimistic:
            self._optimistic[width] = optimistic(self._at, width)
        return self._optimistic[width]

    def price_of_optimism(self, width: float) -> float:
        r"""What optimism with confidence sets ||θ̂ − θ||²_G <= a σ² log n pays at least, over c; 1 where both are 0.

        Always defined for ``width`` a > 1/2; raises `Infeasible` where no consistent play stays within such sets.

        Examples
        --------
        >>> from allocopt.insight.instances import optimism_example
        >>> h = hardness(optimism_example(1e-4, a=1.0))
        >>> round(h.price_of_optimism(1.0), 6), round((4 + (2 - 1 / 16) / 1e-4) / 128, 6)
        (151.398438, 151.398438)
        """
        found = self.optimism(width)
        if found.status is Status.FAILED:
            raise SolverFailed(f"width: the optimism program for {width:g} could not be solved: {why_not(found)}")
        return found.value / self.constant if self.constant > 0 else 1.0

    @cached_property
    def informative(self) -> tuple[Informative, ...]:
        """The arms of the support, the largest share of the regret first."""
        return informative(self._at)

    @cached_property
    def confusing(self) -> tuple[Confusing, ...]:
        """The arms whose constraints are tight, the largest multiplier first."""
        return confusing(self._at)

    @cached_property
    def evidence(self) -> Array:
        """For every arm ½||θ − θ'||²_{H(α)}/σ² of its most confusing alternative: 1 on the confusing arms, more elsewhere; inf
        on optimal arms and on those that no θ' with the same optimal means makes better."""
        return confusing_parameters.evidence(self._at)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The most confusing alternative of each confusing arm, in the order of ``confusing``."""
        return confusing_parameters.alternatives(self._at, [entry.arm for entry in self.confusing])

    def alternative(self, arm: int) -> Alternative:
        """The most confusing alternative of any suboptimal arm.

        Examples
        --------
        >>> from allocopt.insight.instances import counter_example
        >>> a = hardness(counter_example(0.01)).alternative(2)
        >>> a.theta.round(9), round(a.evidence, 9)
        (array([1. , 0.5]), 1.0)
        """
        return confusing_parameters.alternatives(self._at, [self._arm(arm)])[0]

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """∂c/∂Δ and ∇_θ c, with what is to be said about them."""
        return derivatives.sensitivity(self._at)

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
        return tuple(sorted(self._removals(lambda what, done, total: None), key=lambda r: -r.change))

    def _removals(self, step: StepCallback) -> list[Removal]:
        """What `leave_one_out` lists, in the order of the arms; each is computed once, after ``step`` was told."""
        optimal = self.bandit.optimal_arms
        pivots = optimal if len(optimal) == 1 else np.array(self._at.reduction.quotient.pivot_arms, dtype=np.int64)
        arms = np.unique(np.concatenate([self.solution.support, self.solution.binding, pivots])).tolist()
        for done, arm in enumerate(arms):
            if arm not in self._removed:
                step(f"without {self.label(arm)}", done, len(arms))
                self._removed[arm] = removal(self._at, arm)
        return [self._removed[arm] for arm in arms]

    def without(self, arm: int) -> Solution:
        """The certified solution of the instance without an arm, solved from scratch (to ``verify()`` or ``save()``)."""
        return optimum(without(self.bandit, self._arm(arm)), self.solution.tol).solution

    def with_arm(self, arm: ArrayLike, label: str = "added") -> Addition:
        """c with one more arm, a vector of d entries (where arms have a σ² each, of the largest of these).

        Examples
        --------
        >>> from allocopt.insight.instances import counter_example
        >>> h = hardness(counter_example(0.01, informative=False))
        >>> added = h.with_arm([0, 1])
        >>> round(h.constant, 6), round(added.solution.value, 6)
        (200.0, 8.0)
        """
        old = self.bandit
        row = vector("arm", arm, InvalidInstance, length=old.dim)
        if not isinstance(label, str):
            raise InvalidInstance(f"label: expected a text, got {label!r}")
        labels = None if old.labels is None else (*old.labels, label)
        arms = np.concatenate([self._at.vectors, row[None, :]])
        arms.flags.writeable = False  # so that the bandit shares it
        each = old.variances
        noise = old.noise_variance if each is None else np.append(each, each.max())
        new = LinearBandit(arms, old.theta, noise, old.tie_tolerance, labels=labels)
        if old.n_arms not in new.optimal_arms and not np.array_equal(new.optimal_arms, old.optimal_arms):
            new = LinearBandit(arms, old.theta, noise, old.tie_tolerance, old.optimal_arms, labels)
        found = optimum(new, self.solution.tol).solution
        return Addition(row, found, float(new.gaps[-1]), found.value - self.constant, self._effect(new, found))

    def _effect(self, new: LinearBandit, found: Solution) -> str:
        index = self.bandit.n_arms
        if index in new.optimal_arms:
            if len(new.optimal_arms) == 1:
                return "it is the best arm now: another instance"
            known = new.rank == self.bandit.rank and len(found.coordinates) == len(self.solution.coordinates)
            return (
                f"it ties for the best arm: its direction {'was' if known else 'is'} free{' before' if known else ''}"
            )
        roles = [name for name, arms in (("informs", found.support), ("confuses", found.binding)) if index in arms]
        return (
            f"it {' and '.join(roles)}" if roles else "it changes nothing: neither cheap enough to inform nor confusing"
        )

    @cached_property
    def geometry(self) -> Geometry:
        """Gaps and directions in numbers."""
        return geometry(self._at)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before these numbers are relied on."""
        g, b, found = self.geometry, self.bandit, self.solution
        said = []
        if caveat(found):
            said.append(
                ": ".join([caveat(found), *(["; ".join(sentences(found.assumptions))] if found.assumptions else [])])
            )
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
        if step is not None and not callable(step):
            raise InvalidOption(f"step: expected a function, got a {type(step).__name__}")
        tell = step or (lambda what, done, total: None)
        parts = ("proven", "best_arm", "informative", "confusing", "alternatives", "sensitivity", "warnings")
        for done, part in enumerate(parts[0 if prove else 1 :]):
            tell("proving the interval" if part == "proven" else part.replace("_", " "), done, len(parts))
            getattr(self, part)
        self._removals(tell)
        return self

    def to_html(self, **options: Any) -> str:
        """The report as one self-contained page; the options are those of `allocopt.insight.hardness.report_page.page`."""
        return page(self, **options)

    def plot(self, **options: Any) -> Any:
        """The geometry of the instance in two or three dimensions, else gaps against information. Returns a matplotlib Figure."""
        if self.bandit.dim in (2, 3):
            return drawn("geometry", self.bandit, self.solution, self.alternatives, **options)
        return drawn("gap_information" if len(self.bandit.suboptimal_arms) else "allocation", self.solution, **options)

    def _table(self) -> Table:
        """The arms that are played for their information or whose constraint is tight."""
        played, tight = {e.arm: e for e in self.informative}, {e.arm: e for e in self.confusing}
        arms = sorted(played.keys() | tight.keys(), key=lambda i: self.bandit.gaps[i])
        columns: dict[str, Any] = {"arm": arms}
        if self.labels is not None:
            columns["label"] = [self.labels[i] for i in arms]
        columns |= {
            "gap": self.bandit.gaps[arms],
            "allocation": [played[i].allocation if i in played else 0.0 for i in arms],
            "share of regret": [played[i].regret_share if i in played else 0.0 for i in arms],
            "multiplier": [tight[i].multiplier if i in tight else 0.0 for i in arms],
        }
        facts = {
            "c": f"{self.constant:.10g}", "status": self.status.name, "UCB pays": f"{self.ucb_ratio:.6g} times as much",
            "best-arm time": self.best_arm_time, **dict.fromkeys(self.warnings, ""),
        }  # fmt: skip
        return Table("Hardness", facts, columns)

    def _arm(self, arm: int) -> int:
        index = whole_number("arm", arm, InvalidInstance)
        if index >= self.bandit.n_arms:
            raise InvalidInstance(f"arm: expected an index below {self.bandit.n_arms}, got {index}")
        return index

    def __repr__(self) -> str:
        assumed = f" {assuming(self.assumptions)}" if self.assumptions else ""
        return (
            f"Hardness(c={self.constant:.10g}, status={self.status.name}{assumed}, "
            f"n_arms={self.bandit.n_arms}, dim={self.bandit.dim}, "
            f"informative={len(self.solution.support)}, confusing={len(self.solution.binding)})"
        )


@spelled
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
    >>> from allocopt.insight.instances import counter_example
    >>> h = hardness(counter_example(0.01))
    >>> round(h.constant, 6), round(h.ucb_ratio, 6), h.gradient.round(6)
    (8.0, 25.25, array([-8., 24.]))
    >>> [(r.arm, r.role, round(r.value, 6)) for r in h.leave_one_out]
    [(1, 'informative', 200.0), (0, 'optimal', 2.020202), (2, 'confusing', 2.0)]
    """
    if not isinstance(bandit, LinearBandit):
        raise no_bandit(bandit)
    _ = bandit.arms_in_memory  # arms on a cluster are refused before anything is computed
    return Hardness(optimum(bandit, positive_number("tol", tol), callback))
