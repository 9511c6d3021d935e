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
from scipy.linalg.lapack import dpotrf, dpotrs

from allocopt.canonical import Canonical, best_scale, whitener
from allocopt.errors import SolverFailed
from allocopt.progress import Monitor
from allocopt.validation import Array, IntArray, whole_number

__all__ = ["Iterate", "minimise", "solve"]

_DIAGONAL_SHIFT = 1e-14  # of the scaled Newton matrix: keeps Cholesky going when the support is degenerate
_BOUNDARY = 0.995  # fraction of the way to the boundary that a step may go
_STALLED = 15  # steps without halving gap or distance before we call it the limit of this arithmetic
_LEAST_CENTRE = 0.01  # of the tolerance
_ENOUGH = 0.25  # of the tolerance: leaves room for the certificate's allowance for rounding
_LEAST_LIFT = 1e-3  # a warm start closer to the boundary than this is a trap
_COUNTS = 0.1  # share of the largest g below which a constraint is not part of the dual
_GROWTH = 2.0  # relative increase of the cost that one step may bring
_MUCH = 100.0  # times cheaper that another start must be to replace the first choice
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
    max_iterations = whole_number("max_iterations", max_iterations, least=1)

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
        self.b = problem.targets @ basis if problem.ratios is None else self.a * problem.ratios[:, None]
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
    alike = 1.0 / np.einsum("ij,ij->i", white, white)
    choices = [np.minimum(np.minimum(alike, top), upper) for top in np.quantile(alike, (1.0, 0.5, 0.0))]
    worth = [float(choice.sum() * _Point(problem, choice).g.max()) for choice in choices]
    # arms that are useless for their size would dominate the cost: cut them down if that makes a great difference
    alpha: Array = choices[0] if worth[0] <= _MUCH * min(worth) else choices[int(np.argmin(worth))]
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
    warm: tuple[Array, Array, float] | None = None,
    max_iterations: int = 100,
    watch: Callable[[Array, Array, int], None] | None = None,
) -> Iterate:
    """Run the method until its own gap is below a quarter of ``tol`` or no longer shrinks.

    ``warm`` is (α, λ, how far they are from optimal, relatively) of a similar problem.
    """
    alpha = starting_point(problem) if warm is None else _lifted(problem, warm[0], warm[2])
    unit = float(alpha.sum())
    state = _start(_in_units(problem, alpha, unit), alpha / unit, warm, unit)
    best: Iterate | None = None
    # with bounds α cannot simply be scaled to feasibility: what is missing costs more than it does here
    enough = _ENOUGH * tol * (1.0 if problem.scalable else 0.1)
    since_better = 0
    least_distance = float("inf")
    step = 0
    for step in range(max_iterations + 1):
        tick()
        lam, gap = state.dual()
        if not np.isfinite(gap):
            break
        better = best is None or gap < 0.5 * best.gap or state.distance < 0.5 * least_distance
        since_better = 0 if better else since_better + 1
        least_distance = min(least_distance, state.distance)
        if best is None or gap < best.gap:
            best = Iterate(state.alpha * unit, lam * unit, gap, step)
        if watch is not None:
            watch(state.alpha * unit, lam * unit, step)
        if gap <= enough or since_better >= _STALLED * (1 if best.gap < 1e-3 else 2):
            break
        try:
            # if the predictor has been too greedy for a while, centre
            state = _predictor_corrector(state, tol, least_sigma=0.3 if since_better >= 3 else 1e-6)
        except SolverFailed:
            break
    if best is None:
        raise SolverFailed("Newton's method left the range of doubles at once")
    return Iterate(best.alpha, best.multipliers, best.gap, step)


def _in_units(problem: Canonical, alpha: Array, unit: float) -> Canonical:
    """The same problem in units in which the start costs 1, and in a basis in which its M is I."""
    basis = whitener(problem, alpha)
    if basis is None:
        raise SolverFailed("the information matrix of the start is numerically singular")
    return Canonical(
        problem.features @ basis * np.sqrt(unit),
        problem.targets @ basis,
        problem.base @ basis,
        None if problem.upper is None else problem.upper / unit,
        problem.offset / unit,
        None if problem.ratios is None else problem.ratios / np.sqrt(unit),
    )


def _start(problem: Canonical, alpha: Array, warm: tuple[Array, Array, float] | None, unit: float) -> _State:
    """Slacks and multipliers for an α, near the central path."""
    point = _Point(problem, alpha)
    near = 0.5 if warm is None else min(max(warm[2], _LEAST_LIFT), 0.5)
    s = np.maximum(1.0 / point.g - 1.0, min(near, 0.1))
    capped, caps = _caps(problem)
    mu = near / (len(alpha) + len(s) + len(caps))
    nu, z, v = mu / s, mu / alpha, mu / (caps - alpha[capped])
    if warm is not None:
        nu = np.maximum(nu, warm[1] / unit * point.g**2)
        z = np.maximum(z, 1.0 - nu @ ((point.b @ point.a.T) / point.g[:, None]) ** 2)
    return _State(problem, point, s, nu, z, v)


def _caps(problem: Canonical) -> tuple[IntArray, Array]:
    """The arms with an upper bound, and the bounds."""
    if problem.upper is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    capped = np.flatnonzero(np.isfinite(problem.upper))
    return capped, problem.upper[capped]


@dataclass(frozen=True, eq=False)
class _Step:
    """Changes of α, s, ν, z and v."""

    alpha: Array
    s: Array
    nu: Array
    z: Array
    v: Array


class _State:
    """(α, s, ν, z, v), the residuals of the optimality conditions there, and the Newton system."""

    def __init__(self, problem: Canonical, point: _Point, s: Array, nu: Array, z: Array, v: Array) -> None:
        self.problem, self.point, self.alpha = problem, point, point.alpha
        self.s, self.nu, self.z, self.v = s, nu, z, v
        self.capped, caps = _caps(problem)
        self.room = caps - self.alpha[self.capped]
        self.jacobian = ((point.b @ point.a.T) / point.g[:, None]) ** 2  # ∂h/∂α
        self.prices = nu @ self.jacobian
        self.dual_residual = 1.0 - self.prices - z
        self.dual_residual[self.capped] += v
        self.primal_residual = s - 1.0 / point.g + 1.0
        self.products = (nu * s, z * self.alpha, v * self.room)
        self.pairs = len(nu) + len(z) + len(v)
        self.mu = float(sum(p.sum() for p in self.products)) / self.pairs

    @property
    def distance(self) -> float:
        """How far from optimal, as residuals and products see it."""
        residuals = np.abs(self.dual_residual) @ self.alpha + np.abs(self.primal_residual) @ self.nu
        return float(self.mu * self.pairs + residuals)

    def dual(self) -> tuple[Array, float]:
        """λ and the relative gap that (α, λ) has, by the certificate's formulas without its care for rounding."""
        g = self.point.g
        # λ = ν/g² of a constraint with tiny g counts for nothing but weighs in Σλ: the dual is better off without it
        kept = np.where(g > _COUNTS * g.max(), self.nu, 0.0)
        lam = kept / g / g  # not g², which may underflow
        return lam, _own_gap(self.problem, self.point, lam, kept @ self.jacobian)

    def factorise(self) -> None:
        """Set up the Newton matrix: one for predictor and corrector."""
        a, g, k = self.point.a, self.point.g, len(self.alpha)
        newton = 2.0 * (a @ a.T) * ((a @ self.point.weighted(self.nu / g / g)) @ a.T)
        newton += _weighted_gram(self.jacobian, self.nu / self.s - 2.0 * self.nu * g)
        diagonal = self.z / self.alpha
        diagonal[self.capped] += self.v / self.room
        newton.flat[:: k + 1] += diagonal
        self.factor = _Factor(newton)

    def step(self, to: tuple[Array, Array, Array]) -> _Step:
        """The step that changes the products (ν s, z α, v (u − α)) by −``to`` and removes the residuals, to first order."""
        right = self.jacobian.T @ ((self.nu * self.primal_residual - to[0]) / self.s)
        right -= self.dual_residual + to[1] / self.alpha
        right[self.capped] += to[2] / self.room
        alpha = self.factor.solve(right)
        s = self.jacobian @ alpha - self.primal_residual
        nu = -(to[0] + self.nu * s) / self.s
        z = -(to[1] + self.z * alpha) / self.alpha
        v = (self.v * alpha[self.capped] - to[2]) / self.room
        return _Step(alpha, s, nu, z, v)

    def lengths(self, step: _Step) -> tuple[float, float]:
        """How far primal and dual may go along a step before something positive stops being so."""
        primal = _limit((self.alpha, self.s, self.room), (step.alpha, step.s, -step.alpha[self.capped]))
        return primal, _limit((self.nu, self.z, self.v), (step.nu, step.z, step.v))

    def moved(self, step: _Step, primal: float, dual: float) -> _State:
        """The state after a step of these lengths."""
        if not (np.isfinite(step.alpha).all() and np.isfinite(step.nu).all()):
            raise SolverFailed("the Newton step is not finite")
        return _State(
            self.problem,
            _Point(self.problem, self.alpha + primal * step.alpha),
            self.s + primal * step.s,
            self.nu + dual * step.nu,
            self.z + dual * step.z,
            self.v + dual * step.v,
        )


def _weighted_gram(rows: Array, weights: Array) -> Array:
    """Σ_j weights_j rows_j rows_jᵀ, as two products of a matrix with its own transpose: BLAS does these at half the cost."""
    up, down = weights > 0, weights < 0
    scaled = rows[up] * np.sqrt(weights[up])[:, None]
    result: Array = scaled.T @ scaled
    if down.any():
        scaled = rows[down] * np.sqrt(-weights[down])[:, None]
        result -= scaled.T @ scaled
    return result


def _predictor_corrector(state: _State, tol: float, least_sigma: float) -> _State:
    """One step of Mehrotra's method."""
    if not state.room.all():
        raise SolverFailed("an arm reached its upper bound to the last digit")
    state.factorise()
    guess = state.step(state.products)
    primal, dual = (min(1.0, length) for length in state.lengths(guess))
    after = float((state.nu + dual * guess.nu) @ (state.s + primal * guess.s))
    after += float((state.z + dual * guess.z) @ (state.alpha + primal * guess.alpha))
    after += float((state.v + dual * guess.v) @ (state.room - primal * guess.alpha[state.capped]))
    sigma = min(max((max(after, 0.0) / (state.pairs * state.mu)) ** 3, least_sigma), 1.0)
    cost = float(state.alpha.sum())
    # below a share of the tolerance a smaller μ gains nothing and only spoils the Newton matrix
    centre = max(sigma * state.mu, _LEAST_CENTRE * tol * cost / state.pairs)
    # the second-order term is right for a full step; of a short one only its share is, and all of it leads astray
    share = min(primal, dual)
    step = state.step(
        (
            state.products[0] + share * guess.s * guess.nu - centre,
            state.products[1] + share * guess.alpha * guess.z - centre,
            state.products[2] - share * guess.alpha[state.capped] * guess.v - centre,
        )
    )
    primal, dual = (min(1.0, _BOUNDARY * length) for length in state.lengths(step))
    growth = float(step.alpha.sum())
    if growth > 0:  # h is nearly homogeneous: a bad direction can lead any distance away at no loss of feasibility
        primal = min(primal, _GROWTH * cost / growth)
    return state.moved(step, primal, dual)


def _lifted(problem: Canonical, alpha: Array, distance: float) -> Array:
    """A known α moved into the interior by about as much as it is away from the optimum, and scaled to feasibility."""
    lift = min(max(distance, _LEAST_LIFT), 0.5)
    alpha = alpha + lift * alpha.sum() / len(alpha)
    if problem.upper is not None:
        alpha = np.minimum(alpha, (1.0 - 0.5 * lift) * problem.upper)
    if problem.scalable:
        alpha = alpha * float(_Point(problem, alpha).g.max()) * (1.0 + lift)
    return alpha


def _own_gap(problem: Canonical, point: _Point, lam: Array, prices: Array) -> float:
    """The relative gap as the method sees it: the certificate's formulas without its care for rounding."""
    strength, total, worst = float(lam @ point.g), float(lam.sum()), float(point.g.max())
    if problem.scalable:
        return float(point.alpha.sum()) * worst * total * float(prices.max()) / (strength * strength) - 1.0
    known = float(np.einsum("ij,ij->", point.base @ point.weighted(lam), point.base))
    # prices scale with λ, so the slope for λ itself (not λ/Σλ) is strength²/total − known
    lower = best_scale(strength * strength / total - known, prices, problem.upper)[1] + problem.offset
    value = float(point.alpha.sum()) * max(worst, 1.0) + problem.offset
    return abs(value - lower) / max(lower, 1e-300) + max(worst - 1.0, 0.0)


class _Factor:
    """Cholesky of the symmetrically scaled Newton matrix, with one step of iterative refinement."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        scaled = matrix * self.scale * self.scale[:, None]
        shift = _DIAGONAL_SHIFT
        while True:
            np.fill_diagonal(scaled, 1.0 + shift)
            self.factor, failed = dpotrf(scaled.T, lower=1)  # the transpose, which is the same, is as LAPACK wants it
            if not failed:
                return
            shift *= 100.0
            if not shift < 1.0:
                raise SolverFailed("the Newton matrix is not positive definite in double precision")

    def _apply(self, right: Array) -> Array:
        result: Array = self.scale * dpotrs(self.factor, self.scale * right, lower=1)[0]
        return result

    def solve(self, right: Array) -> Array:
        """The solution for one right-hand side."""
        solution = self._apply(right)
        return solution + self._apply(right - self.matrix @ solution)


def _limit(values: tuple[Array, ...], changes: tuple[Array, ...]) -> float:
    """How far ``values + t·changes`` stays non-negative."""
    fastest = min(float((change / value).min(initial=0.0)) for value, change in zip(values, changes, strict=True))
    return -1.0 / fastest if fastest < 0 else float("inf")
