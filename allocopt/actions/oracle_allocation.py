r"""c(A, θ) enclosed where the arms cannot be listed: only linear optimisation over them is used.

Write u = q(x) for the coordinates of an arm x in the quotient by the optimal arm, Δ for its gap. Whether
‖u‖²_{H^-1} <= Δ²/2 holds for *every* arm is a convex maximisation, hard in general. Three facts replace it:

* R = max over x != x* of p(x)/Δ_x is found exactly by Dinkelbach's method for linear p with p(x*) = 0 (x* is never in the way);
* so −R₋Δ <= p(x) <= R₊Δ, and p(x)² lies below its chord Δ·((R₊ − R₋) p(x) + R₊R₋ Δ): Δ times a linear function of x;
* 0/1 arms have (x_e − x*_e)² = |x_e − x*_e|, linear in x. With weights s >= 0 such that Σ s_e |x_e − x*_e| <= Δ_x for all
  arms (checked by the oracle), and Δ^e the smallest gap of an arm that differs from x* at e, with z = x − x*:
      Σ s_e z_e² <= Δ_x   and   Σ s_e Δ^e z_e² <= Δ_x².

Lower bound: if uᵀSu <= Δ_x for all arms, then Σ α_x Δ_x >= tr(S H(α)) for every allocation, and for any weights λ of targets
with Σ λ = 1, c >= (tr (S^½ Σ_j λ_j b_j b_jᵀ S^½)^½)², b_j = √2 q(x_j)/Δ_j: docs/math.md section 4 with the best y_j.
Upper bound: if uᵀWu <= Δ_x² for all arms, any allocation with H^-1 ⪯ W/2 is feasible.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.actions.chord_bounds import chord_lower, chord_upper, gap_spanner
from allocopt.actions.edge_bounds import EdgeBounds
from allocopt.actions.oracle_answers import Explored
from allocopt.actions.oracle_spanner import oracle_spanner
from allocopt.actions.oracles import Incidence, ListOracle, Oracle
from allocopt.base.errors import InvalidInstance, SlowWarning, SolverFailed, warn_caller
from allocopt.base.machine import duration_text, single_threaded
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, ArrayLike, frozen, in_range, positive_number, vector, whole_number
from allocopt.linear.span import column_units
from allocopt.model.tables import Table, Tabular, drawn

__all__ = ["OracleAllocation", "oracle_allocation"]

_ROUNDING = 1e-8
"""Both bounds are widened by this, relatively: square roots of eigenvalues that are known to 1e-15 of the largest."""


_SECONDS_A_ROUND = 1.2e-7  # times d³: measured from d = 60 to 264
_LONG = 10.0  # seconds


@dataclass(frozen=True, eq=False)
class OracleAllocation(Tabular):
    """An interval that contains c(A, θ), and the feasible allocation that its upper end costs.

    Attributes
    ----------
    lower, upper : float
        lower <= c(A, θ) <= upper.
    arms, labels, gaps, allocation : arrays and tuple
        The arms that are played; ``allocation`` is inf on the optimal arm, which comes first.
    gap_min : float
        The smallest positive gap of all arms.
    oracle_calls : int
        How often the oracle was asked.
    how : str
        In words: what is exact, and which argument gave each bound.
    """

    lower: float
    upper: float
    arms: Array
    labels: tuple[Any, ...]
    gaps: Array
    allocation: Array
    gap_min: float
    oracle_calls: int
    how: str

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.intervals` of this interval. Returns a matplotlib Figure."""
        return drawn("intervals", self, **options)

    def _table(self) -> Table:
        """The arms that are played."""
        facts = {
            "interval for c": f"[{self.lower:.10g}, {self.upper:.10g}]", "smallest gap": self.gap_min,
            "oracle calls": self.oracle_calls, "how": self.how,
        }  # fmt: skip
        columns: dict[str, Any] = {
            "arm": [str(label) for label in self.labels],
            "gap": self.gaps,
            "allocation": self.allocation,
        }
        return Table("Allocation over an oracle's arms", facts, columns)

    def __repr__(self) -> str:
        interval = f"[{self.lower:.10g}, {self.upper:.10g}]"
        return f"OracleAllocation({interval}, support={len(self.gaps) - 1}, oracle_calls={self.oracle_calls})"


@spelled
def oracle_allocation(oracle: Oracle, theta: ArrayLike, C: float = 2.0, *, rounds: int = 20) -> OracleAllocation:
    """A certified interval for the regret constant c(A, θ) of arms that only an oracle knows.

    Parameters
    ----------
    oracle : Oracle
        Paths, spanning trees, matchings or listed arms (of others the second-best arm cannot be found: refused). General
        graphs work only as long as no direction asked for has a negative cycle; acyclic ones always.
    theta : array_like, shape (d,)
        The parameter; means ⟨x, θ⟩ are maximised, so for routing it is minus the edge costs. The best arm must be unique.
    C : float
        For the barycentric spanner that coordinates are taken in; more than 1.
    rounds : int
        How often each bound is improved; every round is valid in itself.

    Examples
    --------
    >>> from allocopt.actions.oracles import list_oracle
    >>> a = oracle_allocation(list_oracle([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), [1, 0, 0.5])
    >>> round(a.lower, 6), round(a.upper, 6)  # Σ 2/Δ = 2 + 4
    (6.0, 6.0)
    """
    steps = whole_number("rounds", rounds, least=0)
    parameter = vector("theta", theta, InvalidInstance)
    in_range("theta", parameter, InvalidInstance)
    if isinstance(oracle, ListOracle):
        in_range("arms", oracle.arms, InvalidInstance)
        # as entries of 0/1 arms are: what is rounding is judged beside entries of at most 1
        columns = column_units(oracle.arms)
        if len(parameter) == len(columns) and (columns != 1).any():
            found = oracle_allocation(ListOracle(oracle.arms * columns), parameter / columns, C, rounds=steps)
            return dataclasses.replace(found, arms=frozen(found.arms / columns))
    _warn_if_long(len(parameter), steps)
    # In units in which θ is about 1, because linear programming has absolute tolerances: c(A, sθ) = c(A, θ)/s.
    size = float(np.abs(parameter).max(initial=0.0))
    unit = 2.0 ** math.frexp(size)[1] if size > 0 else 1.0
    try:
        with single_threaded():  # thousands of decompositions of small matrices, for which threads are slower
            found = _allocate(oracle, parameter / unit, C, steps)
    except np.linalg.LinAlgError as error:
        raise SolverFailed(f"the bounds could not be computed in double precision: {error}") from None
    return dataclasses.replace(
        found,
        lower=found.lower / unit,
        upper=found.upper / unit,
        gaps=frozen(found.gaps * unit),
        allocation=frozen(found.allocation / unit**2),
        gap_min=found.gap_min * unit,
    )


def _warn_if_long(dim: int, steps: int) -> None:
    """Say so before it starts where the bounds take long: each round decomposes matrices of the dimension of the arms."""
    seconds = _SECONDS_A_ROUND * dim**3 * (steps + 1)
    if seconds > _LONG:
        warn_caller(
            f"oracle_allocation: {steps} rounds in {dim} dimensions will take about {duration_text(seconds)}; "
            "rounds= takes fewer, which leaves a wider interval",
            SlowWarning,
        )


def _allocate(oracle: Oracle, theta: Array, C: float, steps: int) -> OracleAllocation:
    """The same for a θ of ordinary size."""
    arms = Explored(oracle, theta)
    spanner = oracle_spanner(oracle, positive_number("C", C))
    arms.counted.calls += spanner.oracle_calls
    arms.pool |= {x.tobytes(): (x, label) for x, label in zip(spanner.arms, spanner.labels, strict=True)}
    # coordinates of the quotient by x*: drop the spanner arm that x* has most of
    functionals, basis, names = spanner.functionals, spanner.arms, list(spanner.labels)
    if arms.best.any():
        weights = functionals @ arms.best
        p = int(np.argmax(np.abs(weights)))
        functionals = np.delete(functionals - np.outer(weights / weights[p], functionals[p]), p, axis=0)
        basis, names = np.delete(basis, p, axis=0), names[:p] + names[p + 1 :]
    if not names:
        zero = np.zeros(1)
        return OracleAllocation(0.0, 0.0, arms.best[None], (arms.label,), zero, zero + np.inf, arms.gap_min,
                                arms.counted.calls, "every arm is a multiple of the best one: nothing to explore")  # fmt: skip
    functionals, basis, names = gap_spanner(arms, functionals, basis, names)
    upper, played = chord_upper(arms, (functionals, basis, names), steps)
    lower = chord_lower(arms, functionals, basis)
    way_up = way_down = "chords in a gap spanner"
    if isinstance(oracle, Incidence):
        edges = EdgeBounds(arms, functionals, basis)
        better, s = edges.lower(steps)
        if better > lower:
            lower, way_down = better, "edge weights below the gaps"
        cost, found = edges.upper(s, steps, lower)
        if cost < upper:
            upper, played, way_up = cost, found, "edge weights below the gaps, times the smallest gap at each edge"
    if lower * (1 - _ROUNDING) > upper * (1 + _ROUNDING):
        raise SolverFailed(f"rounding: the lower bound {lower:.6g} exceeds the upper bound {upper:.6g}")
    x, labels, alpha = zip((arms.best, arms.label, np.inf), *played, strict=True)
    rows = np.array(x)
    how = (
        "The optimal arm, the second-best gap, the rank and every linear-fractional maximum are exact up to rounding; "
        f"the interval is valid but not tight. Lower bound by {way_down}, upper bound by {way_up}."
    )
    return OracleAllocation(
        lower * (1 - _ROUNDING), upper * (1 + _ROUNDING), frozen(rows), labels, frozen((arms.best - rows) @ arms.theta),
        frozen(np.array(alpha)), arms.gap_min, arms.counted.calls, how,
    )  # fmt: skip
