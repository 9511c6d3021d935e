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

from allocopt.actions.oracle_spanner import Explored, oracle_spanner
from allocopt.actions.oracles import Incidence, Oracle
from allocopt.base.errors import InvalidInstance, SolverFailed
from allocopt.base.validation import Array, frozen, in_range, positive_number, vector, whole_number
from allocopt.model.program import AllocationProgram
from allocopt.solving.solve import solve

__all__ = ["OracleAllocation", "oracle_allocation"]

Basis = tuple[Array, Array, list[Any]]  # functionals, the arms that they are dual to, labels
Played = list[tuple[Array, Any, float]]  # arm, label, allocation

_ROUNDING = 1e-8
"""Both bounds are widened by this, relatively: square roots of eigenvalues that are known to 1e-15 of the largest."""


@dataclass(frozen=True, eq=False)
class OracleAllocation:
    """An interval that contains c(A, θ), and the feasible allocation that its upper end costs.

    Attributes
    ----------
    lower, upper : float
        lower <= c(A, θ) <= upper.
    arms, labels, gaps, allocation
        The arms that are played; ``allocation`` is inf on the optimal arm, which comes first.
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


def oracle_allocation(oracle: Oracle, theta: Any, C: float = 2.0, *, rounds: int = 20) -> OracleAllocation:
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
    # In units in which θ is about 1, because linear programming has absolute tolerances: c(A, sθ) = c(A, θ)/s.
    size = float(np.abs(parameter).max(initial=0.0))
    unit = 2.0 ** math.frexp(size)[1] if size > 0 else 1.0
    try:
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
    functionals, basis, names = _gap_spanner(arms, functionals, basis, names, 1.1)
    upper, played = _chord_upper(arms, (functionals, basis, names), steps)
    lower = _chord_lower(arms, functionals, basis)
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


def _gap_spanner(arms: Explored, functionals: Array, basis: Array, names: list[Any], C: float) -> Basis:
    """A spanner of the points q(x)/Δ_x: arms of small gap, in which no arm has a coefficient above C times its gap's share."""
    functionals, basis, unchanged, i = functionals.copy(), basis.copy(), 0, 0
    while unchanged < len(basis):
        up, down = arms.ratio(functionals[i]), arms.ratio(-functionals[i])
        R, x = max(up, down, key=lambda found: found[0])
        unchanged += 1
        if R * arms.gap(basis[i]) > C and (x != arms.best).any():
            values = functionals @ x
            functionals[i] /= values[i]
            values[i] = 0.0
            functionals -= np.outer(values, functionals[i])
            basis[i], names[i], unchanged = x, arms.pool[x.tobytes()][1], 0
        i = (i + 1) % len(basis)
    # afresh from the arms: the updates above gather rounding
    return np.asarray(np.linalg.inv(functionals @ basis.T) @ functionals), basis, names


def _chord_upper(arms: Explored, of: Basis, rounds: int) -> tuple[float, Played]:
    """Play basis arms only, with α_i = 1/β_i: ‖q(x)‖²_{H^-1} = Σ β_i p_i(x)², bounded by chords; best β by cuts."""
    functionals, basis, names = of
    plus, minus = arms.widths(functionals)
    costs = (arms.best - basis) @ arms.theta
    best, alpha = np.inf, np.ones(len(costs))
    for _ in range(rounds + 1):
        x, _, gaps = arms.others()
        cuts = plus * minus + (plus - minus) * (x @ functionals.T) / gaps[:, None]
        nu = np.full(len(cuts), 1.0 / len(cuts))
        for _ in range(300):  # of max over ν of (Σ √(cost_i (Cᵀν)_i))², the dual; any ν gives a valid β
            beta = np.sqrt(costs / (cuts.T @ nu))
            nu = nu * (cuts @ beta)
            nu /= nu.sum()
        beta = np.sqrt(costs / (cuts.T @ nu))
        worst = float(beta @ (plus * minus)) + arms.ratio((beta * (plus - minus)) @ functionals)[0]
        value = 2.0 * worst * float((costs / beta).sum())
        if value < best:
            best, alpha = value, 2.0 * worst / beta
    return best, list(zip(basis, names, alpha.tolist(), strict=True))


def _root(matrix: Array, power: float) -> Array:
    """A power of a positive semidefinite matrix; eigenvalues that are rounding count as zero, which lowers lower bounds."""
    values, vectors = np.linalg.eigh(matrix)
    big = values > 1e-13 * max(values[-1], 1e-300)
    result: Array = (vectors[:, big] * values[big] ** power) @ vectors[:, big].T
    return result


def _design_bound(S: Array, b: Array, steps: int) -> tuple[float, Array]:
    """(tr (S^½ Σ λ_j b_j b_jᵀ S^½)^½)² after some multiplicative steps on λ, and the H with tr(S H) equal to it."""
    half, back = _root(S, 0.5), _root(S, -0.5)
    rows = b @ half
    lam = np.full(len(b), 1.0 / len(b))
    for _ in range(steps):
        inverse = _root((rows * lam[:, None]).T @ rows, -0.5)
        lam = lam * np.einsum("ij,ij->i", rows @ inverse, rows)
        lam /= lam.sum()
    root = _root((rows * lam[:, None]).T @ rows, 0.5)
    trace = float(np.trace(root))
    return trace**2, trace * (back @ root @ back)


def _targets(arms: Explored, functionals: Array) -> Array:
    """b_j of the arms seen so far."""
    x, _, gaps = arms.others()
    return np.asarray(np.sqrt(2.0) * (x @ functionals.T) / gaps[:, None])


def _chord_lower(arms: Explored, functionals: Array, basis: Array) -> float:
    """S diagonal in the gap spanner, scaled by what its chords reach over all arms: one linear optimisation."""
    plus, minus = arms.widths(functionals)
    costs = (arms.best - basis) @ arms.theta
    linear = (costs * (plus - minus)) @ functionals - float(costs @ (plus * minus)) * arms.theta
    x, _ = arms.largest(linear)
    return _design_bound(np.diag(costs / float(linear @ (x - arms.best))), _targets(arms, functionals), 200)[0]


def _maximum(slope: Array, rows: Array, most: Array) -> Array:
    from scipy.optimize import linprog

    result = linprog(-slope / max(float(slope.max()), 1e-300), A_ub=rows, b_ub=most, method="highs")
    if result.x is None:
        raise SolverFailed(f"HiGHS could not solve the linear program of the edge weights: {result.message}")
    return np.asarray(result.x, dtype=np.float64)


class EdgeBounds:
    """Both bounds from edge weights s with Σ s_e |x_e − x*_e| <= Δ_x for all arms, each improved by Frank–Wolfe over s."""

    def __init__(self, arms: Explored, functionals: Array, basis: Array) -> None:
        self.arms, self.functionals = arms, functionals
        # x − x* = Z q(x), because some linear functional is 1 on all arms: the flow out of the source, the number of edges
        self.Z = (basis - arms.best).T
        self.sign = np.where(arms.best > 0, -1.0, 1.0)  # |x_e − x*_e| = sign_e x_e + x*_e

    def corner(self, slope: Array) -> Array:
        """Maximise ⟨slope, s⟩ by linear programs with cuts; what is returned satisfies the constraints of all arms."""
        for _ in range(30):
            x, _, gaps = self.arms.others()
            rows = np.abs(x - self.arms.best)
            use = rows.any(axis=0)
            s = np.zeros(len(slope))
            s[use] = np.maximum(_maximum(slope[use], rows[:, use], gaps), 0.0)
            seen = len(self.arms.pool)
            t = self.arms.ratio(self.sign * s, float(s @ self.arms.best))[0]
            if t <= 1 + 1e-6 or len(self.arms.pool) == seen:
                break
        return s / max(t, 1.0)

    def lower(self, rounds: int) -> tuple[float, Array]:
        """The best lower bound and its weights; the bound is concave in s, with the diagonal of Z H Zᵀ as its slope."""
        s = self.corner(np.ones(len(self.sign)))
        if (s == 0).any():  # away from the boundary, so that S is not singular
            s = 0.5 * (s + self.corner(1.0 * (s == 0)))
        best, H = 0.0, np.zeros(0)
        for k in range(rounds + 1):
            corner = s if k == 0 else self.corner(np.einsum("ei,ei->e", self.Z @ H, self.Z))
            tries = [s + step * (corner - s) for step in ((0.0, 0.02, 0.08, 0.25, 0.6) if k else (0.0,))]
            b = _targets(self.arms, self.functionals)
            bounds = [_design_bound((self.Z.T * t) @ self.Z, b, 60) for t in tries]
            i = int(np.argmax([bound[0] for bound in bounds]))
            s, (value, H) = tries[i], bounds[i]
            if value <= best * (1 + 1e-5):
                break
            best = value
        return max(best, _design_bound((self.Z.T * s) @ self.Z, b, 300)[0]), s

    def upper(self, s: Array, rounds: int, lower: float) -> tuple[float, Played]:
        """The cheapest allocation found with H^-1 ⪯ W/2, W = Zᵀ diag(s_e Δ^e) Z; its cost is convex in s."""
        first = np.zeros(len(s))
        for e, unit in enumerate(np.eye(len(s))):
            R, x = self.arms.ratio(self.sign[e] * unit, self.arms.best[e])
            first[e] = 1.0 / R if (x != self.arms.best).any() else 0.0
        s = 0.9 * s + 0.1 * self.corner(np.ones(len(s)))
        best: tuple[float, Played] = (np.inf, [])
        y = np.eye(len(self.functionals))
        for k in range(rounds + 1):
            value, played, lam, y = self._ellipsoid(s * first, y)
            best = min(best, (value, played), key=lambda found: found[0])
            if best[0] <= lower * (1 + 1e-6):
                break
            corner = self.corner(first * (lam @ (y @ self.Z.T) ** 2))
            y = np.vstack([np.eye(len(y[0])), y[lam > 1e-6 * lam.max()]])
            s = s + (corner - s) * 2.0 / (k + 4)
        return best

    def _ellipsoid(self, weights: Array, y: Array) -> tuple[float, Played, Array, Array]:
        """Cheapest α with yᵀH^-1 y <= yᵀWy/2 for all y, by cuts; the worst y left over scales α until all hold."""
        W = (self.Z.T * weights) @ self.Z
        spectrum = np.linalg.eigvalsh(W)
        if spectrum[0] <= 1e-12 * spectrum[-1]:  # no H will do; the next s is less extreme
            return np.inf, [], np.ones(len(y)), y
        back = _root(W, -0.5)
        x, labels, gaps = self.arms.others()
        q = x @ self.functionals.T
        best: tuple[float, Played] = (np.inf, [])
        for _ in range(3):
            program = AllocationProgram(q, gaps, y, 0.5 * np.einsum("ij,ij->i", y @ W, y))
            solution = solve(program, tol=1e-2)  # roughly is enough: the scaling below makes it valid
            alpha, lam = solution.allocation, solution.multipliers / program.radii
            H = (q * alpha[:, None]).T @ q
            if not np.linalg.cond(H) < 1e12:
                break
            values, vectors = np.linalg.eigh(back @ np.linalg.inv(H) @ back)
            factor = 2.0 * float(values[-1])
            if (cost := factor * float(alpha @ gaps)) < best[0]:
                best = cost, [(x[i], labels[i], factor * float(alpha[i])) for i in np.flatnonzero(alpha)]
            if factor < 1.01:
                break
            y = np.vstack([y, (back @ vectors[:, values > 0.5]).T])
        return *best, lam, program.targets
