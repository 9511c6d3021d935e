r"""Mehrotra's predictor–corrector where linear constraints Vα <= v hold; variables may cost nothing. Plain numpy.

As in `iteration`, constraints on g are written as h_j(α) = 1/g_j(α) >= 1. All that must not be negative is one vector,
F(α) = (h − 1, α, u − α, v − Vα), with slacks X > 0 that approach it and multipliers Y = (ν, z, the bounds', μ):
one Newton step is (−Σ ν_j ∇²h_j + Gᵀ diag(Y/X) G) dα = −c + Gᵀ(…), with G the derivative of F.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, diags_array

from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical, whitener
from allocopt.certify.limits.evaluation import best_multiple
from allocopt.linear.dense import squared_row_lengths
from allocopt.solvers.newton.curvature import ByEntries, Curvature, Factor, Whole, by_entries
from allocopt.solvers.settings import InteriorPointSettings

__all__ = ["Triple", "blended", "minimise", "starting_point", "tightened"]

_SLACK = 0.1  # least slack to begin with, relative to the terms of a row
_FURTHER = 1.25  # times as far inside as would just do: feasible in another basis, too
_NEGLIGIBLE = 1e-12  # multipliers below this share of the largest are none


@dataclass(frozen=True, eq=False)
class Triple:
    """An allocation, the multipliers of targets and of rows, and the gap that they were seen to have (not a certificate)."""

    alpha: Array
    multipliers: Array
    row_multipliers: Array
    gap: float
    steps: int


@dataclass(frozen=True, eq=False)
class _Point:
    """F and its derivative at an α."""

    values: Array
    """F(α)."""
    curvature: Curvature
    """The derivatives of h."""
    g: Array
    known: Array
    """Target times row of what is known already, in the basis in which M = I."""


class _Problem:
    """A canonical problem with the rows V of its limits, in units in which the start adds up to 1."""

    def __init__(self, problem: Canonical, start: Array) -> None:
        limits = problem.limits
        assert limits is not None
        self.unit = float(start.sum())
        k, n = problem.n_variables, len(limits.room)
        matrix = csr_array((limits.values * self.unit, (limits.places, limits.variables)), shape=(n, k))
        self.scale = np.maximum(limits.terms(start), np.abs(limits.room))
        self.scale[self.scale == 0.0] = 1.0
        self.matrix, self.room = csr_array(diags_array(1.0 / self.scale) @ matrix), limits.room / self.scale
        upper = None if problem.upper is None else problem.upper / self.unit
        self.scaled = replace(
            problem, features=problem.features * np.sqrt(self.unit), base=problem.compact_base, upper=upper
        )
        self.costs = np.ones(k) if problem.costs is None else problem.costs
        self.upper = np.full(k, np.inf) if upper is None else upper
        self.capped: IntArray = np.flatnonzero(np.isfinite(self.upper))
        self.m, self.k, self.n = len(problem.targets), k, n
        self.curves = ByEntries if by_entries(problem.rank, limits) else Whole

    def parts(self, stacked: Array) -> list[Array]:
        """(of targets, of variables, of upper bounds, of rows)."""
        m, k, c = self.m, self.k, len(self.capped)
        return [stacked[:m], stacked[m : m + k], stacked[m + k : m + k + c], stacked[m + k + c :]]

    def at(self, alpha: Array) -> _Point:
        """F and its derivative."""
        linear = [alpha, self.upper[self.capped] - alpha[self.capped], self.room - self.matrix @ alpha]
        if not self.m:
            basis: Array | None = np.eye(self.scaled.rank)
        else:
            basis = whitener(self.scaled, alpha)
        if basis is None:
            raise SolverFailed("the information matrix is numerically singular")
        a, b = self.scaled.features @ basis, self.scaled.targets @ basis
        g = squared_row_lengths(b)
        known = b @ (self.scaled.base @ basis).T
        return _Point(np.concatenate([1.0 / g - 1.0, *linear]), self.curves(self.scaled, a, b, g), g, known)

    def along(self, point: _Point, step: Array) -> Array:
        """G dα."""
        return np.concatenate([point.curvature.along(step), step, -step[self.capped], -(self.matrix @ step)])

    def back(self, point: _Point, y: Array) -> Array:
        """GᵀY."""
        nu, z, v, mu = self.parts(y)
        result: Array = point.curvature.back(nu) + z - self.matrix.T @ mu
        result[self.capped] -= v
        return result

    def factorised(self, point: _Point, y: Array, weights: Array) -> Factor:
        """The Newton matrix."""
        of_targets, of_alpha, of_caps, of_rows = self.parts(weights)
        diagonal = of_alpha.copy()
        diagonal[self.capped] += of_caps
        return point.curvature.factorised(y[: self.m], of_targets, diagonal, self.matrix, of_rows)

    def multipliers(self, point: _Point, nu: Array) -> Array:
        """λ of the constraints on g; what is left of ν where g is small would weigh more than it is worth."""
        return np.where(nu > _NEGLIGIBLE * nu.max(initial=0.0), nu, 0.0) / point.g / point.g

    def gap(self, point: _Point, alpha: Array, y: Array) -> float:
        """The certificate's formulas without its margins, and what the constraints lack."""
        nu, _, _, mu = self.parts(y)
        lam = self.multipliers(point, nu)
        strength, total = float(lam @ point.g), float(lam.sum())
        prices = point.curvature.back(lam * point.g * point.g)
        slope = strength * strength / max(total, NOT_ZERO) - float((lam @ point.known**2).sum())
        charges, rent = self.costs + self.matrix.T @ mu, float(mu @ self.room)
        if (charges[np.isinf(self.upper)] < 0).any():
            charges, rent = self.costs, 0.0
        dual = best_multiple(slope, prices, self.upper, charges)[1] - rent
        offset = self.scaled.offset / self.unit
        cost, lower = float(self.costs @ alpha) + offset, max(dual, 0.0) + offset
        lacking = max(
            0.0, float(-point.values[: self.m].min(initial=0.0)), float(-self.parts(point.values)[3].min(initial=0.0))
        )
        return abs(cost - lower) / max(lower, 1e-9 * cost, NOT_ZERO) + lacking


def starting_point(problem: Canonical) -> Array:
    """An interior α by which every informative variable adds about as much, and the targets are met with room."""
    assert problem.limits is not None
    lengths = problem.by_variable(squared_row_lengths(problem.features))
    informative = lengths > 0
    alpha = np.zeros(problem.n_variables)
    cap = np.inf if problem.upper is None else 0.5 * problem.upper
    if len(problem.targets) and informative.any():
        trace = 1e-3 * float(squared_row_lengths(problem.targets).sum()) / max(int(informative.sum()), 1)
        rows = problem.features[squared_row_lengths(problem.features) > 0]
        rows = np.concatenate([problem.targets, rows * np.sqrt(trace / squared_row_lengths(rows))[:, None]])
        metric = whitener(replace(problem, features=rows, owners=None, base=problem.base[:0]), np.ones(len(rows)))
        if metric is None:
            raise SolverFailed("the arms are numerically dependent")
        images = problem.by_variable(squared_row_lengths(problem.features @ metric))
        alpha[informative] = 1.0 / images[informative]
        basis = whitener(problem, np.minimum(alpha, cap))
        if basis is None:
            raise SolverFailed("the information matrix is numerically singular")
        alpha *= 2.0 * max(float(squared_row_lengths(problem.targets @ basis).max()), 1e-3)
    largest = float(np.abs(problem.limits.values).max(initial=0.0))
    usual = float(np.abs(problem.limits.room).max(initial=0.0)) / largest if largest > 0 else 0.0
    alpha[~informative] = float(np.median(alpha[informative])) if informative.any() else usual or 1.0
    alpha[alpha <= 0] = usual or 1.0
    return np.minimum(alpha, cap)


def minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    settings: InteriorPointSettings,
    watch: Callable[[Array, Array, Array, int], None] | None = None,
) -> Triple:
    """Newton's method until its own gap is well below ``tol`` or stays the same; the best triple on the way."""
    with np.errstate(all="ignore"):
        return _minimise(problem, tol, tick, settings, watch)


def _minimise(
    problem: Canonical,
    tol: float,
    tick: Callable[[], None],
    settings: InteriorPointSettings,
    watch: Callable[[Array, Array, Array, int], None] | None,
) -> Triple:
    start = starting_point(problem)
    own = _Problem(problem, start)
    alpha = start / own.unit
    point = own.at(alpha)
    x = np.maximum(point.values, _SLACK)
    x[own.m : own.m + own.k] = alpha
    x[own.m + own.k : own.m + own.k + len(own.capped)] = point.values[own.m + own.k : own.m + own.k + len(own.capped)]
    y = settings.cold_distance / len(x) / x
    best: Triple | None = None
    idle, least_distance, lacking = 0, np.inf, np.inf
    for step in range(settings.max_iterations + 1):
        tick()
        gap = own.gap(point, alpha, y)
        if not np.isfinite(gap):
            break
        nu, _, _, mu = own.parts(y)
        distance = (
            float(x @ y) + float(np.abs(x - point.values) @ y) + float(np.abs(own.costs - own.back(point, y)) @ alpha)
        )
        lacks = -float(point.values.min(initial=0.0))
        nearer = (
            lacks < 0.5 * lacking and lacks > 0.0
        )  # slowly, where there is hardly any room: constraints come to hold step by step
        halved = best is None or gap < 0.5 * best.gap or distance < 0.5 * least_distance or nearer
        idle, least_distance = 0 if halved else idle + 1, min(least_distance, distance)
        lacking = lacks if nearer else lacking
        if best is None or gap < best.gap:
            lam = own.multipliers(point, nu) * own.unit
            best = Triple(alpha * own.unit, lam, mu * own.unit / own.scale, gap, step)
            if watch is not None:
                watch(best.alpha, best.multipliers, best.row_multipliers, step)
        if gap <= 0.05 * tol or idle >= 3 * settings.stall_steps:
            break
        try:
            least = (
                settings.least_centring * tol * float(own.costs @ alpha) / len(x)
            )  # a smaller μ only spoils the Newton matrix
            dx, dy, dalpha = _direction(own, point, x, y, settings.least_sigma, least)
        except SolverFailed:
            break
        primal, dual = (
            min(1.0, settings.step_fraction / max(float((-d / z).max()), NOT_ZERO)) for d, z in ((dx, x), (dy, y))
        )
        x, y, alpha = x + primal * dx, y + dual * dy, alpha + primal * dalpha
        try:
            point = own.at(alpha)
        except SolverFailed:
            break
    if best is None:
        raise SolverFailed("Newton's method left the range of doubles at once")
    return best


def _direction(
    own: _Problem, point: _Point, x: Array, y: Array, least_sigma: float, least_target: float
) -> tuple[Array, Array, Array]:
    """Mehrotra's direction in X, Y and α."""
    weights, residual = y / x, x - point.values
    factor = own.factorised(point, y, weights)
    mu, wanted = float(x @ y) / len(x), np.zeros(len(x))
    for corrector in range(2):
        right = own.back(point, wanted / x + weights * residual) - own.costs
        dalpha = factor.solve(right)
        dx = own.along(point, dalpha) - residual
        dy = -y + (wanted - y * dx) / x
        if corrector == 0:
            primal, dual = (min(1.0, 1.0 / max(float((-d / z).max()), NOT_ZERO)) for d, z in ((dx, x), (dy, y)))
            after = float((x + primal * dx) @ (y + dual * dy)) / len(x)
            sigma = min(max((max(after, 0.0) / mu) ** 3, least_sigma), 1.0)
            wanted = max(sigma * mu, least_target) - min(primal, dual) * dx * dy
    return dx, dy, dalpha


def tightened(problem: Canonical, alpha: Array, by: float) -> Canonical:
    """The problem with every target, bound and row tightened by a part of its terms at α."""
    limits = problem.limits
    assert limits is not None
    narrower = replace(limits, room=limits.room - by * (np.abs(limits.room) + limits.sizes + limits.terms(alpha)))
    upper = None if problem.upper is None else problem.upper * (1.0 - by)
    return replace(problem, targets=problem.targets * (1.0 + by), limits=narrower, upper=upper)


def blended(feasible: Callable[[Array], bool], wanted: Array, inside: Array) -> Array | None:
    """An allocation that is feasible, hardly further than the first one, on the way from the one wanted to one that is inside.

    None where the latter is not feasible.
    """
    if not feasible(inside):
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = max(low, 1e-14) * 8.0 if low < 1e-3 * high else 0.5 * (low + high)
        if middle >= high or high - low <= 0.02 * high:
            break
        low, high = (low, middle) if feasible(wanted + middle * (inside - wanted)) else (middle, high)
    further = wanted + min(_FURTHER * high, 1.0) * (inside - wanted)
    return further if feasible(further) else wanted + high * (inside - wanted)
