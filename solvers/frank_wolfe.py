r"""Lazy pairwise Frank–Wolfe on the simplex, for programs without bounds (docs/math.md sections 3 and 4).

    minimise over w in the simplex   F(w) = (1/p) log Σ_j c_j g_j(w)^p,     g_j(w) = b_jᵀ M(w)^-1 b_j

log g_j is convex, so F is. With π_j ∝ c_j g_j^p and T_ji = b_jᵀ M^-1 a_i its derivative in w_i is minus the price of i,
Σ_j π_j T_ji²/g_j. Prices average to 1 under w, so max_i price_i − 1 is the Frank–Wolfe gap of F. With λ_j ∝ π_j/g_j

    upper/lower = (max_j g_j · Σ_j π_j/g_j) · max_i price_i = (1 + slack of the smoothing) (1 + Frank–Wolfe gap).

With c = 1 a gap of tol needs p ~ log(m)/tol, and the number of steps grows with p. So c are multipliers: whenever the
Frank–Wolfe gap is below the slack, c ← π (the entropic proximal point method on λ); the slack vanishes at moderate p.

A step moves weight from the atom of the support with the least price to the best-priced feature; the change of M, of rank two
(or of as many rows as both have), gives every g_j along the segment in closed form. The best feature is looked for in the
support and in a short cached list; all features are priced only when those offer too little.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg as sla

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, whitener
from allocopt.solvers.interior_point import starting_point
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.settings import FrankWolfeSettings

__all__ = ["solve"]

_DEFAULT = FrankWolfeSettings()


def solve(problem: Canonical, monitor: Monitor, settings: FrankWolfeSettings = _DEFAULT) -> dict[str, float]:
    """Run until the gap is certified, all iterations are used up or nothing improves any more."""
    state = _State(problem, _start(problem, settings.core_from), settings)
    cached: IntArray = np.zeros(0, dtype=np.int64)
    promise = 0.0  # what a pair must offer to be taken without pricing every feature
    reported, reported_at = float("inf"), 0
    best, best_at, updates = float("inf"), 0, 0  # best estimated gap, its step, and updates of c since
    failures = 0  # line searches in a row that could not move
    iteration = priced_at = full_pricings = 0
    while iteration < settings.max_iterations:
        monitor.tick()
        pair, offer = state.best_pair(cached)
        if offer < promise or promise == 0.0 or iteration - priced_at >= settings.price_every:
            prices = state.all_prices()
            full_pricings += 1
            priced_at = iteration
            top, away = int(np.argmax(prices)), int(state.support[np.argmin(prices[state.support])])
            fw_gap, slack = float(prices[top]) - 1.0, state.slack()
            gap = (1.0 + fw_gap) * (1.0 + slack) - 1.0
            if (
                gap <= monitor.tol
                or gap <= settings.report_drop * reported
                or iteration - reported_at >= settings.report_every
            ):
                monitor.report(state.weights.copy(), state.multipliers, iteration)
                reported, reported_at = gap, iteration
                if monitor.done or gap <= max(
                    0.1 * monitor.tol, settings.rounding_gap
                ):  # or only rounding keeps the certified gap above tol
                    break
            if gap < settings.better * best:
                best, best_at, updates = gap, iteration, 0
            if updates > settings.max_idle_updates or iteration - best_at > settings.max_idle_steps:
                break
            if fw_gap <= settings.balance * slack or failures > 1:
                state.tighten(slack)
                promise, failures, updates, iteration = 0.0, 0, updates + 1, iteration + 1
                continue
            cached = _candidates(prices, state.support, settings.cached * problem.rank)
            pair, promise = (top, away), settings.lazy_share * float(prices[top] - prices[away])
        failures = 0 if state.step(*pair) else failures + 1
        promise = 0.0 if failures else promise
        iteration += 1
    if not monitor.done:
        state.refresh()
        monitor.report(state.weights.copy(), state.multipliers, iteration)
    return {"iterations": iteration, "full_pricings": full_pricings, "smoothing": state.power}


def _start(problem: Canonical, core_from: int) -> Array:
    """Weights to start from: all of the interior point's start, or a core set of it when there are many features."""
    weights = starting_point(problem)
    r = problem.rank
    if len(weights) > core_from * r:
        rows = problem.features @ _basis(problem, weights) * np.sqrt(problem.by_row(weights))[:, None]
        chosen: list[int] = []
        for _ in range(2):  # two well-conditioned bases: with one alone no weight could move
            order = sla.qr(rows.T, mode="r", pivoting=True, check_finite=False)[-1][:r]
            atoms = order.astype(np.int64) if problem.owners is None else np.unique(problem.owners[order])
            chosen.extend(int(i) for i in atoms)
            rows[problem.rows_of(atoms)] = 0.0
        core = np.zeros(len(weights))
        core[chosen] = weights[chosen]
        weights = core
    result: Array = weights / weights.sum()
    return result


def _basis(problem: Canonical, weights: Array) -> Array:
    basis = whitener(problem, weights)
    if basis is None:
        raise SolverFailed("the information matrix is numerically singular")
    return basis


def _unsuited(basis: Array, ill_conditioned: float = _DEFAULT.ill_conditioned) -> bool:
    """Whether M^-1 = V Vᵀ, or M, is large; by the singular values of V, whose squares may be beyond the range of doubles."""
    sizes = np.linalg.svd(basis, compute_uv=False)
    limit = math.sqrt(ill_conditioned)
    return not 1.0 / limit <= float(sizes[-1]) <= float(sizes[0]) <= limit


def _candidates(prices: Array, support: IntArray, count: int) -> IntArray:
    """The ``count`` best-priced features outside the support."""
    prices = prices.copy()
    prices[support] = -np.inf
    count = min(count, len(prices) - len(support))
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    return np.argpartition(-prices, count - 1)[:count].astype(np.int64)


class _State:
    """w, M(w)^-1 and g in a basis in which M was the identity not long ago, and the multipliers c and power p of F."""

    def __init__(self, problem: Canonical, weights: Array, settings: FrankWolfeSettings) -> None:
        self.settings = settings
        self.white = problem  # the problem in the current basis
        self.weights = weights
        self.support: IntArray = np.flatnonzero(weights > 0)
        self.power = self.settings.first_power
        self.log_c = np.zeros(len(problem.targets))
        self.last_slack = float("inf")
        self.age = 0  # rank-two updates since M^-1 was computed afresh
        self.inverse = np.zeros((0, 0))
        self.g = np.zeros(0)
        self.refresh()

    def refresh(self) -> None:
        """Compute M^-1 and g afresh; change the basis where it no longer suits M."""
        basis = _basis(self.white, self.weights)
        if not self.inverse.size or _unsuited(basis, self.settings.ill_conditioned):
            features, targets = self.white.features @ basis, self.white.targets @ basis
            self.white = Canonical(features, targets, self.white.base, owners=self.white.owners)
            basis = np.eye(len(basis))
        self.inverse = basis @ basis.T
        images = self.white.targets @ basis
        self.g = np.einsum("ij,ij->i", images, images)
        self.age = 0
        self._weigh()

    def _weigh(self) -> None:
        """π from g, the targets that matter, and λ of the certificate (up to scale)."""
        score = self.log_c + self.power * np.log(self.g)
        share = np.exp(score - score.max())
        self.pi = share / share.sum()
        self.on = np.flatnonzero(self.pi > self.settings.negligible)
        self.multipliers = self.pi / self.g

    def slack(self) -> float:
        """How far the smoothed maximum is from the maximum: max g · Σ π/g − 1."""
        return float(self.g.max()) * float(self.multipliers.sum()) - 1.0

    def prices(self, which: IntArray | None) -> Array:
        """Σ_j π_j T_ji²/g_j for the features ``which`` (all of them when None)."""
        white, on = self.white, self.on
        images = (white.targets[on] @ self.inverse) * np.sqrt(self.multipliers[on])[:, None]
        if white.owners is not None and which is not None:
            order = np.unique(which)
            rows = white.features[white.rows_of(order)]
            each = np.einsum("ij,ij->i", rows @ (images.T @ images), rows)
            sums = np.zeros(white.n_variables)
            np.add.at(sums, white.owners[white.rows_of(order)], each)
            gathered: Array = sums[which]
            return gathered
        features = white.features if which is None else white.features[which]
        return white.by_variable(np.einsum("ij,ij->i", features @ (images.T @ images), features))

    def all_prices(self) -> Array:
        """The prices of all features, from an inverse that is computed afresh where it is old or has drifted."""
        if self.age >= self.settings.refresh_every:
            self.refresh()
        prices = self.prices(None)
        if self.age > 0 and not abs(float(self.weights @ prices) - 1.0) <= self.settings.drift:
            self.refresh()
            prices = self.prices(None)
        return prices

    def best_pair(self, cached: IntArray) -> tuple[tuple[int, int], float]:
        """Where to and where from, among the support and ``cached``, and the difference of their prices."""
        local = np.concatenate([self.support, cached])
        prices = self.prices(local)
        towards, away = int(np.argmax(prices)), int(np.argmin(prices[: len(self.support)]))
        return (int(local[towards]), int(local[away])), float(prices[towards] - prices[away])

    def tighten(self, slack: float) -> None:
        """c ← π, and a larger p where the last such update left too much slack."""
        self.log_c = np.log(np.maximum(self.pi, self.settings.multiplier_floor * max(slack, EPS) / len(self.pi)))
        if slack > self.settings.slack_shrink * self.last_slack:
            self.power = min(self.power * self.settings.power_growth, self.settings.max_power)
        self.last_slack = slack
        self._weigh()

    def step(self, towards: int, away: int) -> bool:
        """Move weight between two features, by as much as lowers F most; False if that is not at all."""
        segment = self._segment(towards, away)
        room = float(self.weights[away])
        t = self._search(segment, room)
        if not t > 0.0:
            self.age = self.settings.refresh_every  # the slope disagrees with the prices: drift
            return False
        moved = segment.move(self.g, t)
        self.inverse = self.inverse + segment.inverse_change(t)
        self.weights[towards] += t
        self.weights[away] = 0.0 if t >= room else room - t
        self.support = np.flatnonzero(self.weights > 0)
        self.age += 1
        if moved.min() > 0.0 and np.all(np.isfinite(moved)):
            self.g = moved
            self._weigh()
        else:  # drift
            self.refresh()
        return True

    def _segment(self, towards: int, away: int) -> _Segment | _MatrixSegment:
        """How M^-1 and g change when weight is moved between two atoms."""
        white = self.white
        if white.owners is None:
            first, second = white.features[towards], white.features[away]
            u, v = self.inverse @ first, self.inverse @ second
            return _Segment(
                white.targets @ u, white.targets @ v, u @ first, v @ second, u @ second, self.settings.singular, (u, v)
            )
        first, second = (white.features[white.rows_of(np.array([atom]))] for atom in (towards, away))
        return _MatrixSegment(white.targets, self.inverse, first, second, self.settings.singular)

    def _search(self, segment: _Segment | _MatrixSegment, room: float) -> float:
        """The t in [0, room] where F's slope vanishes (to ``search_accuracy``), by Newton's method within a bracket."""
        low, high = 0.0, room
        t, small = 0.0, 0.0
        for trial in range(self.settings.search_trials):
            slope, curvature = segment.slope(self.g, self.log_c, self.power, t)
            if trial == 0:
                small = -self.settings.search_accuracy * slope
            if abs(slope) <= small or (slope < 0.0 and t >= room):
                return t
            if slope < 0.0:
                low = t
            else:
                high = t
            if high <= 0.0:  # not a direction of descent
                return 0.0
            # At the far end M may be singular (no slope there); where p is large Newton's step may leave the bracket: bisect.
            t = t - slope / curvature if 0.0 < curvature < np.inf else np.inf
            if t >= high and high >= room and trial % 3 != 2:
                t = room
            elif trial % 3 == 2 or not low < t < high:
                t = 0.5 * (low + high)
        return low


class _Segment:
    """g_j along M + t (a_s a_sᵀ − a_v a_vᵀ): g + t (c1 + t c2)/E(t) by Woodbury's formula for two rows."""

    def __init__(
        self, x: Array, y: Array, kss: float, kvv: float, ksv: float, singular: float, images: tuple[Array, Array]
    ) -> None:
        self.singular = singular
        self.images = images  # u = M^-1 a_s and v = M^-1 a_v
        self.kss, self.kvv, self.ksv = kss, kvv, ksv
        self.c1 = y * y - x * x
        self.c2 = x * x * kvv + y * y * kss - 2.0 * ksv * x * y
        self.e1 = kss - kvv
        self.e2 = max(kss * kvv - ksv * ksv, 0.0)

    def determinant(self, t: float) -> float:
        """E(t) = det M(t)/det M."""
        return 1.0 + t * self.e1 - t * t * self.e2

    def move(self, g: Array, t: float) -> Array:
        """g at t."""
        result: Array = g + (t / self.determinant(t)) * (self.c1 + t * self.c2)
        return result

    def slope(self, g: Array, log_c: Array, power: float, t: float) -> tuple[float, float]:
        """First and second derivative of F at t; inf where M(t) is not positive definite."""
        e, e_slope = self.determinant(t), self.e1 - 2.0 * t * self.e2
        if e <= self.singular:
            return float("inf"), float("inf")
        rise = (t / e) * (self.c1 + t * self.c2)
        at = g + rise
        if at.min() <= 0.0:
            return float("inf"), float("inf")
        first = (self.c1 + (2.0 * t) * self.c2 - e_slope * rise) / e
        second = (2.0 / e) * (self.c2 - e_slope * first + self.e2 * rise) / at
        first /= at
        return _smoothed(at, first, second, log_c, power)

    def inverse_change(self, t: float) -> Array:
        """M(t)^-1 − M^-1."""
        u, v = self.images
        left = (1.0 - t * self.kvv) * u + t * self.ksv * v
        right = (1.0 + t * self.kss) * v - t * self.ksv * u
        change: Array = (t / self.determinant(t)) * (np.outer(right, v) - np.outer(left, u))
        return 0.5 * (change + change.T)


class _MatrixSegment:
    """g_j along M + t (F_sᵀF_s − F_vᵀF_v) for atoms of several rows.

    With directions e_c that M^-1 makes orthonormal and F_sᵀF_s − F_vᵀF_v = Σ_c μ_c e_c e_cᵀ it is g_j − Σ_c z_jc² t μ_c/(1 + t μ_c),
    z_jc = b_jᵀ M^-1 e_c.
    """

    def __init__(self, targets: Array, inverse: Array, first: Array, second: Array, singular: float) -> None:
        self.singular = singular
        rows = np.concatenate([first, second])
        images = rows @ inverse
        values, axes = np.linalg.eigh(images @ rows.T)
        inside = values > EPS * len(rows) * values[-1]
        axes = axes[:, inside]
        root = axes * np.sqrt(values[inside])
        signs = np.where(np.arange(len(rows)) < len(first), 1.0, -1.0)
        self.mu, turn = np.linalg.eigh(root.T @ (signs[:, None] * root))
        self.images = turn.T @ (axes / np.sqrt(values[inside])).T @ images  # rows M^-1 e_c
        self.squares = (targets @ self.images.T) ** 2

    def move(self, g: Array, t: float) -> Array:
        """g at t."""
        result: Array = g - self.squares @ (t * self.mu / (1.0 + t * self.mu))
        return result

    def slope(self, g: Array, log_c: Array, power: float, t: float) -> tuple[float, float]:
        """First and second derivative of F at t; inf where M(t) is not positive definite."""
        left = 1.0 + t * self.mu
        if left.min() <= self.singular:
            return float("inf"), float("inf")
        at = self.move(g, t)
        if at.min() <= 0.0:
            return float("inf"), float("inf")
        first, second = -self.squares @ (self.mu / left**2) / at, self.squares @ (2.0 * self.mu**2 / left**3) / at
        return _smoothed(at, first, second, log_c, power)

    def inverse_change(self, t: float) -> Array:
        """M(t)^-1 − M^-1."""
        factors = t * self.mu / (1.0 + t * self.mu)
        change: Array = -(self.images.T * factors) @ self.images
        return 0.5 * (change + change.T)


def _smoothed(at: Array, first: Array, second: Array, log_c: Array, power: float) -> tuple[float, float]:
    """First and second derivative of F from g and the derivatives of g over g."""
    score = log_c + power * np.log(at)
    share = np.exp(score - score.max())
    share /= share.sum()
    slope = float(share @ first)
    curvature = float(share @ second) + (power - 1.0) * float(share @ (first * first)) - power * slope**2
    return slope, curvature
