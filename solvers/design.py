r"""G-optimal designs by way of D-optimal ones: programs whose targets are their features, all times one ratio β.

The equivalence theorem of Kiefer and Wolfowitz (1960): α is optimal for min Σα s.t. β² a_jᵀ M(α)^-1 a_j <= 1 for all j if and only if
α/β² minimises

    Σ w_i − log det M(w)     over w >= 0,         M(w) = Σ w_i a_i a_iᵀ.

That is one smooth convex function in place of as many constraints as there are arms. With g_i = a_iᵀ M(w)^-1 a_i its gradient is 1 − g
and its Hessian (a_iᵀ M^-1 a_j)²; at the optimum z = 1 − g >= 0, w z = 0 and Σw = r, and λ = α are the multipliers of the G-optimal
program. For any w the *excess* ε = max g · Σw/r − 1 is 0 at the optimum only, and the certificate's gap is (1 + ε)² − 1.

- Newton's method along the central path w z = μ. Its matrix H + diag(z/w) has as many rows as there are points, but a product with
  H is two products of k×r by r×r, so the system is solved by conjugate gradients; preconditioned by its diagonal, and by
  Cholesky's factor over the points that may be in the support once these are few: then it is Newton's method on the support.
- Screening (Harman and Pronzato, Statistics & Probability Letters 77, 2007): no optimal design has a point with
  g_i Σw/r < 1 + ε/2 − (ε(4 + ε − 4/r))^½/2. Such points leave.

Designs with many optimal supports (more arms of one length than r(r+1)/2 make the Hessian singular) need no care: μ chooses
among them, and conjugate gradients see only directions that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from allocopt.base.errors import MethodUnavailable, SolverFailed
from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.linear.dense import factorised, squared_row_lengths, whitener
from allocopt.solvers import active_set
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.settings import DesignSettings

__all__ = ["common_ratio", "no_common_ratio", "solve"]

_DEFAULT = DesignSettings()
_SAME = 64 * EPS  # relative difference up to which ratios are one
_SCREENING_ROOM = 1e-9  # by which a point must miss the screening bound: more than the rounding of g


def common_ratio(problem: Canonical) -> float | None:
    """β, where every target is β times its feature and α may be scaled; else None."""
    if not problem.scalable:
        return None
    if problem.ratios is not None:
        least, most = float(problem.ratios.min(initial=np.inf)), float(problem.ratios.max(initial=0.0))
        return most if most - least <= _SAME * most else None
    if problem.features.shape != problem.targets.shape:
        return None
    i, j = np.unravel_index(int(np.argmax(np.abs(problem.features))), problem.features.shape)
    ratio = float(problem.targets[i, j] / problem.features[i, j])
    tolerance = _SAME * np.abs(problem.targets).max(axis=1, keepdims=True)
    return ratio if (np.abs(problem.targets - ratio * problem.features) <= tolerance).all() else None


def no_common_ratio(problem: Canonical) -> str | None:
    """What a problem that this method cannot solve lacks; None where it can."""
    if common_ratio(problem) is not None:
        return None
    return "needs targets that are the features times one number (G-optimal designs, equal gaps)"


@dataclass(eq=False)
class _Path:
    """A point of the way: rows that are still candidates, their places in the problem, weights w and slacks z."""

    rows: Array
    places: IntArray
    weights: Array
    slacks: Array


@dataclass(frozen=True, eq=False)
class _Seen:
    """The rows in the basis in which M(w) = I, their squared lengths g, and the excess ε."""

    images: Array
    g: Array
    excess: float


def solve(
    problem: Canonical, monitor: Monitor, settings: DesignSettings = _DEFAULT, start: Bounds | None = None
) -> dict[str, float | str]:
    """Follow the central path until the gap is certified; where it ends too early, active-set goes on from there.

    ``start`` is what the solution of a similar program proves for this one.
    """
    ratio = common_ratio(problem)
    if ratio is None:
        raise MethodUnavailable(f"method 'design' {no_common_ratio(problem)}; 'active-set' can solve any program")
    if start is not None and monitor.record(start, 0).gap <= monitor.tol:
        return {"iterations": 0}
    stats = _follow(problem, ratio, monitor, settings, None if start is None else start.alpha)
    if not monitor.done:
        known = monitor.best if monitor.best is not None and np.isfinite(monitor.best.upper) else None
        rest = active_set.solve(problem, monitor, start=known)
        stats = {**stats, "finished_by": "active-set", "passes": rest["passes"]}
    return stats


def _follow(
    problem: Canonical, ratio: float, monitor: Monitor, settings: DesignSettings, known: Array | None
) -> dict[str, float | str]:
    """The method itself, which reports what is worth judging."""
    n = len(problem.features)
    state = _first(problem, settings, known)
    goal, best, idle, products, steps, shortest = settings.goal * monitor.tol, np.inf, 0, 0, 0, np.inf
    watched = monitor.callback is not None or monitor.seconds_left < np.inf
    while state is not None and steps <= settings.max_iterations:
        monitor.tick()
        seen = _look(state)
        if seen is None:
            break
        idle = 0 if seen.excess < settings.progress * best else idle + 1
        best = min(best, seen.excess)
        if seen.excess <= goal or idle > settings.patience or (watched and not idle):
            alpha = np.zeros(n)
            alpha[state.places] = state.weights * ratio**2
            monitor.report(alpha, alpha, steps)
            if monitor.done or idle > settings.patience:
                break
            goal = min(goal, settings.next_goal * seen.excess)
        if seen.excess < settings.screen_every * shortest:
            shortest = seen.excess
            kept = _candidates(seen, float(state.weights.sum()), settings.worth_screening)
            if kept is not None:
                state = _Path(state.rows[kept], state.places[kept], state.weights[kept], state.slacks[kept])
                continue
        used = _step(state, seen, goal, settings, thorough=products > settings.hard * max(steps, 1))
        products, steps = products + used, steps + 1
    return {"iterations": steps, "products": products, "candidates": 0 if state is None else len(state.places)}


def _first(problem: Canonical, settings: DesignSettings, known: Array | None) -> _Path | None:
    """Equal weights, or those of a known design moved inwards by its excess; the slacks that belong to them."""
    n, r = problem.features.shape
    weights = np.full(n, r / n)
    if known is not None and known.any():
        given = known * (r / float(known.sum()))
        regular, basis = whitener(problem.features.T, given, None)
        if regular:
            excess = float(squared_row_lengths(problem.features @ basis).max()) - 1.0
            if excess < settings.close:
                weights = given + max(excess, settings.least_shift) * weights
    regular, basis = whitener(problem.features.T, weights, None)
    if not regular:
        raise SolverFailed("the information matrix of equal weights is numerically singular")
    rows = problem.features @ basis
    g = squared_row_lengths(rows)
    top = float(g.max())
    weights, g = weights * top, g / top  # so that no g is above 1
    excess = float(weights.sum()) / r - 1.0
    slacks = np.maximum(1.0 - g, settings.slack_share * excess / (1.0 + excess) + settings.least_slack)
    return _Path(rows / np.sqrt(top), np.arange(n), weights, slacks)


def _look(state: _Path) -> _Seen | None:
    """What the weights amount to; None where their M is numerically singular."""
    regular, basis = whitener(state.rows.T, state.weights, None)
    if not regular:
        return None
    images = state.rows @ basis
    g = squared_row_lengths(images)
    excess = float(g.max()) * float(state.weights.sum()) / images.shape[1] - 1.0
    return _Seen(images, g, excess) if np.isfinite(excess) else None


def _candidates(seen: _Seen, total: float, worth: float) -> IntArray | None:
    """The points that may support an optimal design; None where too few could leave."""
    r = seen.images.shape[1]
    excess = max(seen.excess, 0.0)
    bound = 1.0 + 0.5 * excess - 0.5 * float(np.sqrt(excess * (4.0 + excess - 4.0 / r)))
    kept = np.flatnonzero(seen.g * (total / r) >= bound - _SCREENING_ROOM)
    return kept if len(kept) <= worth * len(seen.g) else None


def _step(state: _Path, seen: _Seen, goal: float, settings: DesignSettings, *, thorough: bool) -> int:
    """One Newton step towards the point of the path with a smaller μ, in place; the number of products with the Hessian."""
    w, z, g = state.weights, state.slacks, seen.g
    n, r = seen.images.shape
    mu = float(w @ z) / n
    target = max(settings.sigma * mu, settings.least_centring * goal * r / n)
    scaling = z / w
    system = _System(seen.images, g, scaling, settings.most_thorough if thorough else settings.most_factorised)
    dw, products = system.solved(target / w - (1.0 - g), settings.accuracy, settings.most_products)
    dz = target / w - z - scaling * dw
    primal = min(
        _share_of_way(w, dw, settings.step_fraction), settings.growth * float(w.sum()) / max(float(dw.sum()), EPS)
    )
    dual = _share_of_way(z, dz, settings.step_fraction)
    state.weights = w + primal * dw
    state.slacks = z + dual * dz
    return products


def _share_of_way(x: Array, dx: Array, fraction: float) -> float:
    """How far to go: all the way, or a fraction of the way to where an entry becomes 0."""
    fastest = float((-dx / x).max())
    return 1.0 if fastest <= fraction else fraction / fastest


class _System:
    """The Newton matrix H + diag(d), H_ij = (a_i·a_j)², as products and a preconditioner."""

    def __init__(self, images: Array, g: Array, diagonal: Array, most: int) -> None:
        self.images, self.diagonal = images, diagonal
        self.whole = g * g + diagonal
        core = np.flatnonzero(diagonal < _FAR * g * g)
        self.core: IntArray = core if len(core) <= most else core[:0]
        """Points whose part of the matrix is factorised: the others are decided by the diagonal, nearly."""
        self.solve_core: Callable[[Array], Array] = np.copy
        if len(self.core):
            rows = images[self.core]
            matrix = rows @ rows.T
            matrix *= matrix
            matrix.flat[:: len(matrix) + 1] += diagonal[self.core]
            definite, factor = factorised(matrix)
            if definite:
                self.solve_core = lambda right: np.asarray(dpotrs(factor, right, lower=1)[0])
            else:
                self.core = self.core[:0]

    def times(self, v: Array) -> Array:
        """The matrix times a vector: Σ_j v_j (a_i·a_j)² = a_iᵀ (Σ_j v_j a_j a_jᵀ) a_i."""
        middle = (self.images * v[:, None]).T @ self.images
        result: Array = np.einsum("ij,ij->i", self.images @ middle, self.images)
        result += self.diagonal * v
        return result

    def roughly(self, right: Array) -> Array:
        """The preconditioner."""
        result: Array = right / self.whole
        if len(self.core):
            result[self.core] = self.solve_core(right[self.core])
        return result

    def solved(self, right: Array, accuracy: float, most: int) -> tuple[Array, int]:
        """Conjugate gradients, to a residual of that part of the right-hand side; and how many products that took."""
        x = self.roughly(right)
        wanted = accuracy**2 * float(right @ x)
        residual = right - self.times(x)
        direction = rough = self.roughly(residual)
        size, products = float(residual @ rough), 1
        while size > wanted and products < most:
            image = self.times(direction)
            along = size / float(direction @ image)
            x = x + along * direction
            residual = residual - along * image
            rough = self.roughly(residual)
            before, size = size, float(residual @ rough)
            direction = rough + (size / before) * direction
            products += 1
        return x, products


_FAR = 1e2  # of its part of H: a larger entry of the diagonal decides about a point alone
