r"""Primal–dual interior point (Mehrotra's predictor–corrector) for the canonical program, bounds included.

The constraints are written as h_j(α) = 1/g_j(α) >= 1. h is concave and, without a base, homogeneous of degree 1, so Newton's
method sees a gentler function than g. Unknowns: α with multipliers z (α >= 0) and v (α <= u); slacks s of the constraints
with multipliers ν = λ g². With T = b M^-1 aᵀ and K = a M^-1 aᵀ the derivatives of g are −T_ji² and 2 T_ji T_jl K_il, and one
Newton step is one dense positive definite system in α. Everything is computed in the basis in which M(α) = I: nothing else
keeps its digits when gaps are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from allocopt.canonical import Canonical, best_scale, whitener
from allocopt.errors import SolverFailed
from allocopt.progress import Monitor
from allocopt.validation import Array

__all__ = ["Iterate", "minimise", "solve"]

_DIAGONAL_SHIFT = 1e-14  # of the scaled Newton matrix: keeps Cholesky going when the support is degenerate
_BOUNDARY = 0.995  # fraction of the way to the boundary that a step may go
_STALLED = 6  # steps without halving the gap before we call it the limit of this arithmetic
_ROOM = 0.8  # the start's largest g


@dataclass(frozen=True, eq=False)
class Iterate:
    """A pair (α, λ) and the gap that it was seen to have inside the method (not a certificate)."""

    alpha: Array
    multipliers: Array
    gap: float
    steps: int


def solve(problem: Canonical, monitor: Monitor, *, max_iterations: int = 100) -> dict[str, float]:
    """Solve the whole program at once; O(k² (m + k)) a step, so for up to a couple of thousand arms."""

    def watch(alpha: Array, multipliers: Array, step: int) -> None:
        if monitor.callback is not None or monitor.max_seconds is not None:
            monitor.report(alpha, multipliers, step)

    result = minimise(problem, monitor.tol, monitor.tick, max_iterations=max_iterations, watch=watch)
    monitor.report(result.alpha, result.multipliers, result.steps)
    return {"iterations": result.steps}


class _Point:
    """α and what follows from it, in the basis in which M(α) = I."""

    def __init__(self, problem: Canonical, alpha: Array) -> None:
        basis = whitener(problem, alpha)
        if basis is None:
            raise SolverFailed("the information matrix is numerically singular")
        self.alpha = alpha
        self.a = problem.features @ basis
        self.b = problem.targets @ basis
        self.base = problem.base @ basis
        self.g = np.einsum("ij,ij->i", self.b, self.b)

    def weighted(self, weights: Array) -> Array:
        """Σ_j weights_j b_j b_jᵀ."""
        result: Array = self.b.T @ (weights[:, None] * self.b)
        return result


def starting_point(problem: Canonical) -> Array:
    """An interior α that meets the constraints with room to spare where the bounds allow it.

    Each arm adds a matrix of the same size in the metric of Σ_j b_j b_jᵀ, the information that would meet every constraint
    by itself. (For the regret program that is UCB's allocation 2/Δ²; from a uniform one Newton's method takes twice as long.)
    """
    upper = np.full(len(problem.features), np.inf) if problem.upper is None else 0.5 * problem.upper
    norm2 = np.einsum("ij,ij->i", problem.features, problem.features)
    # targets need not span: a trace of the features themselves makes the metric definite
    trace = 1e-6 * np.einsum("ij,ij->", problem.targets, problem.targets) / len(norm2)
    rows = np.concatenate([problem.targets, problem.features * np.sqrt(trace / norm2)[:, None]])
    metric = whitener(Canonical(rows, problem.targets, problem.base[:0]), np.ones(len(rows)))
    if metric is None:
        raise SolverFailed("the arms are numerically dependent")
    white = problem.features @ metric
    alpha: Array = np.minimum(1.0 / np.einsum("ij,ij->i", white, white), upper)
    for _ in range(60):
        worst = float(_Point(problem, alpha).g.max())
        if (worst <= _ROOM * 1.001 and (worst >= 0.5 * _ROOM or not problem.scalable)) or np.all(alpha >= upper):
            break
        alpha = np.minimum(alpha * (worst / _ROOM if problem.scalable else min(max(2.0, worst), 1e8)), upper)
    return alpha


def minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    *,
    start: Array | None = None,
    max_iterations: int = 100,
    watch: Callable[[Array, Array, int], None] | None = None,
) -> Iterate:
    """Run the method until its own gap is below ``tol``/10 or no longer shrinks."""
    alpha = starting_point(problem) if start is None else start
    unit = float(alpha.sum())  # work in units in which the start costs 1
    k, m = len(alpha), len(problem.targets)
    upper = np.full(k, np.inf) if problem.upper is None else problem.upper / unit
    finite = np.isfinite(upper)
    scaled = Canonical(
        problem.features * np.sqrt(unit),
        problem.targets,
        problem.base,
        None if problem.upper is None else upper,
        problem.offset / unit,
    )
    point = _Point(scaled, alpha / unit)
    pairs = k + m + int(finite.sum())
    s = nu = z = v = np.zeros(0)
    best: Iterate | None = None
    since_better = 0
    step = 0
    for step in range(max_iterations + 1):
        tick()
        alpha, a, b, g = point.alpha, point.a, point.b, point.g
        cross = b @ a.T  # T
        jacobian = (cross / g[:, None]) ** 2  # ∂h/∂α
        room = upper - alpha
        if step == 0:
            mu = 0.5 / pairs
            s = np.maximum(1.0 / g - 1.0, 0.1)
            nu, z, v = mu / s, mu / alpha, np.where(finite, mu / room, 0.0)
        lam = nu / g**2
        prices = nu @ jacobian
        gap = _own_gap(scaled, point, lam, prices)
        since_better = 0 if best is None or gap < 0.5 * best.gap else since_better + 1
        if best is None or gap < best.gap:
            best = Iterate(alpha * unit, lam * unit, gap, step)
        if watch is not None:
            watch(alpha * unit, lam * unit, step)
        if gap <= 0.1 * tol or since_better >= (_STALLED if best.gap < 1e-3 else 5 * _STALLED):
            break

        newton = 2.0 * (a @ a.T) * ((a @ point.weighted(lam)) @ a.T)
        newton += jacobian.T @ ((nu / s - 2.0 * nu * g)[:, None] * jacobian)
        newton[np.diag_indices(k)] += z / alpha + np.where(finite, v / room, 0.0)
        factor = _Factor(newton)
        dual_residual = 1.0 - prices - z + v
        primal_residual = s - 1.0 / g + 1.0

        def newton_step(to: tuple[Array, Array, Array]) -> tuple[Array, ...]:
            """The step that changes the products (ν s, z α, v (u − α)) by −``to``, to first order."""
            right = jacobian.T @ ((nu * primal_residual - to[0]) / s) - dual_residual - to[1] / alpha
            right[finite] += to[2][finite] / room[finite]
            d_alpha = factor.solve(right)
            d_s = jacobian @ d_alpha - primal_residual
            d_nu = -(to[0] + nu * d_s) / s
            d_z = -(to[1] + z * d_alpha) / alpha
            d_v = np.where(finite, (v * d_alpha - to[2]) / room, 0.0)
            return d_alpha, d_s, d_nu, d_z, d_v

        products = (nu * s, z * alpha, np.where(finite, v * np.where(finite, room, 0.0), 0.0))
        mu = sum(float(p.sum()) for p in products) / pairs
        d_alpha, d_s, d_nu, d_z, d_v = newton_step(products)
        primal = min(1.0, _limit(alpha, d_alpha), _limit(s, d_s), _limit(room, -d_alpha))
        dual = min(1.0, _limit(nu, d_nu), _limit(z, d_z), _limit(v, d_v))
        after = float((nu + dual * d_nu) @ (s + primal * d_s) + (z + dual * d_z) @ (alpha + primal * d_alpha))
        after += float((v + dual * d_v)[finite] @ (room - primal * d_alpha)[finite])
        sigma = min(max((max(after, 0.0) / (pairs * mu)) ** 3, 1e-6), 1.0)
        if since_better >= 3:
            sigma = max(sigma, 0.3)  # the predictor has been too greedy: centre
        centre = sigma * mu
        d_alpha, d_s, d_nu, d_z, d_v = newton_step(
            (
                products[0] + d_s * d_nu - centre,
                products[1] + d_alpha * d_z - centre,
                products[2] - d_alpha * d_v - centre,
            )
        )
        if not (np.all(np.isfinite(d_alpha)) and np.all(np.isfinite(d_nu))):
            break
        primal = min(1.0, _BOUNDARY * min(_limit(alpha, d_alpha), _limit(s, d_s), _limit(room, -d_alpha)))
        dual = min(1.0, _BOUNDARY * min(_limit(nu, d_nu), _limit(z, d_z), _limit(v, d_v)))
        point, s = _Point(scaled, alpha + primal * d_alpha), s + primal * d_s
        nu, z, v = nu + dual * d_nu, z + dual * d_z, v + dual * d_v
    assert best is not None
    return Iterate(best.alpha, best.multipliers, best.gap, step)


def _own_gap(problem: Canonical, point: _Point, lam: Array, prices: Array) -> float:
    """The relative gap as the method sees it: the certificate's formulas without its care for rounding."""
    strength, total, worst = float(lam @ point.g), float(lam.sum()), float(point.g.max())
    if problem.scalable:
        return float(point.alpha.sum()) * worst * total * float(prices.max()) / strength**2 - 1.0
    known = float(np.einsum("ij,ij->", point.base @ point.weighted(lam), point.base))
    # prices scale with λ, so the slope for λ itself (not λ/Σλ) is strength²/total − known
    lower = best_scale(strength**2 / total - known, prices, problem.upper)[1] + problem.offset
    value = float(point.alpha.sum()) * max(worst, 1.0) + problem.offset
    return abs(value - lower) / max(lower, 1e-300) + max(worst - 1.0, 0.0)


class _Factor:
    """Cholesky of the symmetrically scaled Newton matrix, with one step of iterative refinement."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        scaled = matrix * self.scale * self.scale[:, None]
        shift = _DIAGONAL_SHIFT
        while True:
            try:
                scaled[np.diag_indices(len(scaled))] = 1.0 + shift
                self.factor = sla.cho_factor(scaled, lower=True, check_finite=False)
                return
            except (sla.LinAlgError, ValueError):
                shift *= 100.0
                if not shift < 1.0:
                    raise SolverFailed("the Newton matrix is not positive definite in double precision") from None

    def _apply(self, right: Array) -> Array:
        result: Array = self.scale * sla.cho_solve(self.factor, self.scale * right, check_finite=False)
        return result

    def solve(self, right: Array) -> Array:
        """The solution for one right-hand side."""
        solution = self._apply(right)
        return solution + self._apply(right - self.matrix @ solution)


def _limit(values: Array, change: Array) -> float:
    """How far ``values + t·change`` stays non-negative."""
    falling = change < 0
    return float(np.min(values[falling] / -change[falling])) if falling.any() else float("inf")
