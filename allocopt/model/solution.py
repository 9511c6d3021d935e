"""Solution: an allocation, what it proves, and the program it was proven for."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.lazy import Lazy, lazy_fields, payload
from allocopt.base.validation import Array, IntArray
from allocopt.linear.assumptions import Assumption, assuming
from allocopt.model.program import AllocationProgram
from allocopt.model.rows.leftovers import costs_of, without_leftovers
from allocopt.model.tables import Table, Tabular, drawn

if TYPE_CHECKING:
    from allocopt.certify.enclosure import Enclosure

__all__ = ["Solution", "SparseVector", "Status", "arms_in_use", "noting"]


class Status(enum.Enum):
    """What the recomputed bounds say; no solver's own status is ever passed on."""

    CERTIFIED = "certified: proven for the given doubles, with a gap within the tolerance"
    CONDITIONAL = "conditional: proven, with a gap within the tolerance, under the assumptions that are listed"
    INACCURATE = "inaccurate: the bounds are proven, but their gap is above the tolerance"
    FAILED = "failed: no finite bounds could be proven"

    def __str__(self) -> str:
        return self.name


class SparseVector(Lazy):
    """A vector over all arms of which a few entries are known and the others are 0, or ∞; made in full if somebody asks for it.

    ``others`` is what the other entries are where they are not 0.
    """

    def __init__(
        self, length: int, places: IntArray, values: Array, infinite: IntArray, others: Lazy | None = None
    ) -> None:
        super().__init__(self._full)
        self.length, self.places, self.values, self.infinite, self.others = length, places, values, infinite, others

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseVector, (self.length, self.places, self.values, self.infinite, self.others)

    def _full(self) -> Array:
        full: Array = np.zeros(self.length) if self.others is None else np.array(self.others.value)
        full[self.places] = self.values
        full[self.infinite] = np.inf
        full.flags.writeable = False
        return full


@lazy_fields("program", "allocation", "multipliers", "binding", "coordinates")
@dataclass(frozen=True, eq=False, init=False)
class Solution(Tabular):
    """A certified answer: an allocation that is feasible, and multipliers that show how far from optimal it can be.

    The optimal value lies in [``lower``, ``upper``]: both bounds are recomputed from the program's data, with margins for rounding.
    ``verify()`` proves an interval in exact arithmetic; ``save()`` writes a proof file.

    Attributes
    ----------
    program : AllocationProgram
        What was solved; ``program.kind`` is its name.
    allocation : array, shape (k,)
        α: how often to play each arm (per log n for regret programs); inf on free arms, which cost nothing.
    multipliers : array
        λ of the constraints ||t_j||²_{H^-1} <= ρ_j: what it costs to know target j a little better. One per arm where targets belong
        to arms, else one per target; 0 where the constraint is not tight; their sum is the value where there are no bounds on α.
    lower, upper : float
        Certified bounds of the optimal value; ``upper`` is the cost of ``allocation``.
    status : Status
        CERTIFIED (gap within ``tol``), CONDITIONAL (so, under ``assumptions``), INACCURATE (bounds hold, gap too large), FAILED.
    method : str
        The method that found it; the certificate does not depend on it.
    tol : float
        The relative gap that was asked for.
    binding : array of int
        The arms (targets, where these are not arms) whose constraint is tight: those that make exploration necessary;
        ``binding_names`` says what each of them is.
    coordinates : tuple of int
        The coordinates that span what is left after the free arms are divided out: their number is the dimension that has to be
        explored, less than d − (free directions) where the arms are rank-deficient.
    stats : mapping
        What the method counted (``iterations``, ``seconds``, …), and ``reason`` where the status is neither CERTIFIED nor CONDITIONAL.
    assumptions : tuple of Assumption
        What the bounds take for granted (a tie up to rounding, say), each with ``text`` and its exact ``size``; empty where CERTIFIED.
    constraint_multipliers : array or None
        μ >= 0, one per row of Bα <= b: what one more unit of b is worth; None where the program has no linear constraints.

    Examples
    --------
    >>> import allocopt as ao
    >>> s = ao.regret_constant([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])
    >>> s.allocation.round(6), s.binding, s.multipliers.round(6), s.coordinates
    (array([inf,  8.,  0.]), array([2]), array([0., 0., 8.]), (1,))
    """

    program: AllocationProgram
    allocation: Array
    """α, one entry per arm; inf on free arms (cost 0 and no upper bound)."""
    multipliers: Array
    """λ of the constraints g_j/ρ_j <= 1, per arm where targets belong to arms and per target otherwise; Σλ = value without bounds."""
    lower: float
    upper: float
    status: Status
    method: str
    tol: float
    binding: IntArray
    """The arms (targets, where these are not arms) whose constraint is tight."""
    coordinates: tuple[int, ...] = ()
    """The coordinates that span the quotient; fewer than d − (free directions) if the arms are rank-deficient."""
    stats: Mapping[str, Any] = field(default_factory=dict)
    """Counters, seconds, and ``reason`` where the status is neither CERTIFIED nor CONDITIONAL."""
    assumptions: tuple[Assumption, ...] = ()
    """What the bounds take for granted; empty where the status is CERTIFIED."""
    constraint_multipliers: Array | None = None
    """μ >= 0, one per row of Bα <= b: what one more unit of b is worth; None where the program has no linear constraints."""

    def __init__(
        self, program: AllocationProgram, allocation: Array, multipliers: Array, lower: float, upper: float,
        status: Status, method: str, tol: float, binding: IntArray, coordinates: tuple[int, ...] = (),
        stats: Mapping[str, Any] = MappingProxyType({}), assumptions: tuple[Assumption, ...] = (),
        constraint_multipliers: Array | None = None,
    ) -> None:  # fmt: skip
        # Written out, with lazy fields at the place that `base.lazy` keeps them in, because an Allocator makes a Solution every
        # 20 µs: the constructor that dataclass writes takes 4 µs, this one takes 1.
        for given in (allocation, multipliers, constraint_multipliers):
            if given is not None and not isinstance(given, Lazy):
                given.setflags(write=False)
        put = object.__setattr__  # as dataclass does for frozen classes
        put(self, "_program", program)
        put(self, "_allocation", allocation)
        put(self, "_multipliers", multipliers)
        put(self, "lower", lower)
        put(self, "upper", upper)
        put(self, "status", status)
        put(self, "method", method)
        put(self, "tol", tol)
        put(self, "_binding", binding)
        put(self, "_coordinates", coordinates)
        put(self, "stats", MappingProxyType(dict(stats)))
        put(self, "assumptions", assumptions)
        put(self, "constraint_multipliers", constraint_multipliers)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by its fields (a mapping proxy cannot be); vectors of a few entries stay so."""
        values = {
            f.name: getattr(self, f.name) for f in fields(Solution) if f.name not in ("allocation", "multipliers")
        }
        for name in ("allocation", "multipliers"):
            given = payload(self, name)
            values[name] = given if isinstance(given, SparseVector) else getattr(self, name)
        values["stats"] = dict(self.stats)
        return Solution, tuple(values[f.name] for f in fields(Solution))

    @property
    def value(self) -> float:
        """The cost of ``allocation``: the upper bound."""
        return self.upper

    @property
    def gap(self) -> float:
        """(upper − lower)/lower, the relative width that ``tol`` is compared with."""
        if np.isfinite(self.upper) and self.lower > 0:
            return (self.upper - self.lower) / self.lower
        return 0.0 if self.upper == self.lower else float("inf")

    @cached_property
    def support(self) -> IntArray:
        """Arms that are played finitely often: 0 < α < inf, but for what the solver left of a zero.

        Left out are arms without which no constraint, nor the value, would change by more than 1e-6 relatively (together): which of
        these a solution has depends on the method that found it. ``allocation`` has them all.
        """
        alpha = payload(self, "allocation")
        if isinstance(alpha, SparseVector) and alpha.others is None:
            arms, pulls = alpha.places[alpha.values > 0], alpha.values[alpha.values > 0]
        else:
            arms = np.flatnonzero((self.allocation > 0) & np.isfinite(self.allocation))
            pulls = self.allocation[arms]
        return without_leftovers(self, arms, pulls)

    @cached_property
    def optimal_arms(self) -> IntArray:
        """Arms that cost nothing (α = inf): for bandit programs, those that were taken as optimal.

        Where every pull costs, as in the programs of pure exploration, there are none: see ``answer_arms``.
        """
        alpha = payload(self, "allocation")
        if isinstance(alpha, SparseVector):
            return alpha.infinite
        return np.flatnonzero(np.isinf(self.allocation))

    @cached_property
    def answer_arms(self) -> IntArray:
        """The arms that are the right answer: the best one, the m best, those above the threshold, the best items (transductive).

        Copies of the best arm are right too. With an ε it is the arm that can be shown to be good enough at the least cost. Empty
        for programs that ask for no arm (designs, programs made by hand).
        """
        from allocopt.model.programs.answer import answer_arms

        return answer_arms(self.program)

    @property
    def binding_names(self) -> tuple[str, ...]:
        """What each entry of ``binding`` is: an arm's name, or what has to be told apart ("arm 0 over arm 3")."""
        from allocopt.model.programs.answer import target_names

        return target_names(self.program, self.binding)

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the arms, where the bandit has them."""
        return self.program.labels

    def verify(self, precision: int | None = None, *, exact: bool = False) -> Enclosure:
        """Prove an interval for the value, in exact rationals and ball arithmetic, from the numbers the user passed.

        Only the allocation and multipliers of this solution are used; no solver and no floating-point bound is trusted.
        ``precision`` is the number of bits to work with (chosen automatically by default). With ``exact`` the referee
        (`allocopt.certify.referee`) is asked instead, which rounds nothing until the end: slow beyond some hundred arms, and
        `SlowWarning` says beforehand how long where that is minutes.
        """
        if exact:
            from allocopt.certify.proofs.writing import exact_enclosure

            return exact_enclosure(self, precision)
        from allocopt.certify.enclosure import enclose

        return enclose(self, precision)

    def save(self, path: str | PathLike[str], overwrite: bool = False) -> None:
        """Write a JSON proof file that ``load_solution(path).verify()`` can check without a solver.

        A file that exists is kept, with an error, unless ``overwrite``; then it is replaced once the new one is complete.
        """
        from allocopt.certify.proofs.writing import save_solution

        save_solution(self, path, overwrite=overwrite)

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.allocation` of this solution: α and the multipliers as bars. Returns a matplotlib Figure."""
        return drawn("allocation", self, **options)

    def _dearest_binding(self) -> IntArray:
        """``binding``, the largest multiplier first."""
        return self.binding[np.argsort(-self.multipliers[self.binding], kind="stable")]

    def _table(self) -> Table:
        """The arms that are played or whose constraint is tight, the dearest first."""
        from allocopt.model.programs.answer import answer_names, listed, target_names

        program = self.program
        per_arm = program.target_arms is not None or program._blocks is not None
        arms = np.union1d(self.support, self.optimal_arms)
        arms = np.union1d(arms, self.binding) if per_arm else arms
        costs, alpha = costs_of(self, arms), self.allocation[arms]
        paid = costs * np.where(np.isfinite(alpha), alpha, 0.0)
        order = np.lexsort((-paid, np.isfinite(alpha)))
        columns: dict[str, Any] = {"arm": arms[order]}
        if self.labels is not None:
            columns["label"] = [self.labels[i] for i in arms[order].tolist()]
        columns |= {"cost": costs[order], "allocation": alpha[order], "share": (paid / max(paid.sum(), 1e-300))[order]}
        if per_arm:
            columns |= {"multiplier": self.multipliers[arms[order]], "binding": np.isin(arms[order], self.binding)}
        facts = {
            "value": f"{self.value:.10g}", "proven interval": f"[{self.lower:.12g}, {self.upper:.12g}]",
            "gap": f"{self.gap:.2g} (asked: {self.tol:g})", "status": self.status.name,
            "program": f"{program.kind}, {program.n_arms:,} arms in {program.dim} dimensions", "method": self.method,
        }  # fmt: skip
        if len(self.answer_arms):
            facts["answer"] = listed(answer_names(program, self.answer_arms))
        if not per_arm and len(self.binding):
            facts["binding"] = listed(target_names(program, self._dearest_binding()))
        if self.assumptions:
            facts["assuming"] = assuming(self.assumptions)
        if "reason" in self.stats:
            facts["reason"] = str(self.stats["reason"])
        return Table("Optimal allocation", facts, columns)

    def __repr__(self) -> str:
        assumed = f" {assuming(self.assumptions)}" if self.assumptions else ""
        return (
            f"Solution(value={self.value:.10g}, gap={self.gap:.2g}, status={self.status.name}{assumed}, "
            f"method={self.method!r}, support={len(self.support)} of {self.program.n_arms} arms)"
        )


def noting(solution: Solution, **more: Any) -> Solution:
    """A solution that nobody else has yet, with more in its ``stats``."""
    object.__setattr__(solution, "stats", MappingProxyType({**solution.stats, **more}))
    return solution


def arms_in_use(solution: Solution) -> tuple[IntArray, Array, Array]:
    """The arms with 0 < α < ∞ or λ > 0, and α and λ of these (where every constraint belongs to an arm)."""
    alpha, lam = payload(solution, "allocation"), payload(solution, "multipliers")
    if isinstance(alpha, SparseVector) and isinstance(lam, SparseVector) and alpha.places is lam.places:
        at = np.flatnonzero((alpha.values > 0) | (lam.values > 0))
        return alpha.places[at], alpha.values[at], lam.values[at]
    played = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    arms = np.flatnonzero((played > 0) | (solution.multipliers > 0))
    return arms, played[arms], solution.multipliers[arms]
