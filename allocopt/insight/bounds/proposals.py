r"""Alternatives that are worth listing: those of an allocation program (docs/finite-time.md, "Which alternatives?").

To make arm x better than x* by g costs an alternative (Δ_x + g)²/(2||x − x*||²_{H^-1}) of information, and has to cost
K(g) = kl(1 − V/(nΔ_x), B/(n g)) of it. So the expected pulls of a policy are feasible for the program with targets x − x*, radii
ρ_x = min over g of (Δ_x + g)²/(2 K(g)) and at most n pulls of x*; where its constraint binds, there is an alternative to list.
What is found here in doubles is a proposal; nothing rests on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import Infeasible, InvalidProgram, SolverFailed
from allocopt.base.tolerances import NOT_ZERO, SUPPORT
from allocopt.base.validation import Array, IntArray
from allocopt.certify.exact_arithmetic.divergence import divergence
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.solution import Solution
from allocopt.solving.solve import solve

BoolArray = NDArray[np.bool_]

__all__ = ["Hypothesis", "cheapest_alternatives", "propose"]

_TOL = 1e-6  # of the allocation program: its answer is only a proposal
_CAPPED_UP_TO = 1e9  # rounds; beyond, n pulls of x* and infinitely many are the same in doubles
_GRID, _ZOOMS = 160, 3  # points for g, and how often the grid closes in on the best of them
_FARTHEST = 1e4  # g up to this multiple of max(Δ_x, least g): (Δ + g)² outgrows any K(g) long before
_STEPS = 12  # of the search for V with LB(V) = V
_CLOSE = 1e-3  # relative: so well V is known when alternatives are proposed
_RANK = 1e-13  # singular values below this share are directions that no arm in use shows


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """What a policy is held to, in doubles: at most ``regret`` at alternatives that make arm x the best one."""

    bandit: LinearBandit
    variances: Array
    n: int
    regret: Array
    """B for each suboptimal arm."""

    @property
    def suboptimal(self) -> IntArray:
        """The arms that alternatives may make better."""
        return self.bandit.suboptimal_arms

    @cached_property
    def features(self) -> Array:
        """x/σ_x."""
        scaled: Array = self.bandit.arms_in_memory / np.sqrt(self.variances)[:, None]
        return scaled


def propose(held: Hypothesis) -> list[Array]:
    """Shifts θ' − θ of the alternatives that bind at about the best V of a common theorem: LB(V) = V, LB decreases."""
    found = _evenly(held)
    value, low, high = 0.0, 0.0, held.n * held.bandit.gap_max
    for _ in range(_STEPS):
        radii, advantages = cheapest_alternatives(held, value)
        asked = np.flatnonzero(np.isfinite(radii))
        bound = 0.0
        if len(asked):
            solution = _solution(held, asked, radii, held.n)
            bound = np.inf if solution is None else solution.upper
            if solution is not None:
                reach = held.bandit.gaps[held.suboptimal] + advantages
                found = _shifts(solution, reach[asked]) or found
        if bound >= value:
            low, high = value, min(high, bound)
        else:
            low, high = max(low, bound), value
        if high - low <= _CLOSE * high:
            break
        value = 0.5 * (low + high)
    return found + _keeping_means(held, low)


def _keeping_means(held: Hypothesis, value: float) -> list[Array]:
    """Alternatives at which the optimal arms keep their means: those of ever larger n, and better conditioned at any n."""
    radii, advantages = cheapest_alternatives(held, value)
    asked = np.flatnonzero(np.isfinite(radii))
    solution = _solution(held, asked, radii, math.inf) if len(asked) else None
    if solution is None:
        return []
    return _shifts(solution, (held.bandit.gaps[held.suboptimal] + advantages)[asked])


def _evenly(held: Hypothesis) -> list[Array]:
    """Alternatives against a policy that plays all arms alike: where no solution of a program can be had."""
    radii, advantages = cheapest_alternatives(held, 0.5 * held.n * held.bandit.gap_min)
    asked = np.flatnonzero(np.isfinite(radii))
    targets = held.bandit.arms_in_memory[held.suboptimal[asked]] - held.bandit._best_row
    weights = np.full(held.bandit.n_arms, 1.0)
    reach = (held.bandit.gaps[held.suboptimal] + advantages)[asked]
    return _cheapest(held.features, weights, np.zeros(held.bandit.n_arms, dtype=bool), targets, reach)


def cheapest_alternatives(held: Hypothesis, value: float) -> tuple[Array, Array]:
    """For every suboptimal arm ρ_x = min over g of (Δ_x + g)²/(2 K(g)), and that g; inf where no g makes K positive."""
    gaps = held.bandit.gaps[held.suboptimal]
    missed = value / (float(held.n) * gaps)
    kept = np.where(missed < 1.0, 1.0 - missed, 1.0)  # of the others K is 0 whatever g
    log_rate = np.log(np.maximum(held.regret, NOT_ZERO)) - np.log(float(held.n))
    low = log_rate - np.log(kept)  # K(g) is 0 up to here
    high = np.log(_FARTHEST) + np.maximum(np.log(gaps), low)
    steps = np.linspace(0.0, 1.0, _GRID)[:, None]
    for _ in range(_ZOOMS):
        log_g = low + steps * (high - low)
        entropy = divergence(missed, log_rate - log_g)
        with np.errstate(divide="ignore", over="ignore"):
            radii = np.where(entropy > 0, (gaps + np.exp(log_g)) ** 2 / (2.0 * entropy), np.inf)
        best = radii.argmin(axis=0)
        columns = np.arange(len(gaps))
        low, high = log_g[np.maximum(best - 1, 0), columns], log_g[np.minimum(best + 1, _GRID - 1), columns]
    return radii[best, columns], np.exp(log_g[best, columns])


def _solution(held: Hypothesis, asked: IntArray, radii: Array, most: float) -> Solution | None:
    """Of the allocation program with at most so many pulls of optimal arms; None where no number of pulls is enough (LB = ∞)."""
    bandit = held.bandit
    targets = bandit.arms_in_memory[held.suboptimal[asked]] - bandit._best_row
    upper = np.full(bandit.n_arms, np.inf)
    if most <= _CAPPED_UP_TO:
        best = bandit.optimal_arms
        _, which, copies = np.unique(bandit.arms_in_memory[best], axis=0, return_inverse=True, return_counts=True)
        upper[best] = most / copies[which.ravel()]
    try:
        found = solve(AllocationProgram(held.features, bandit.gaps, targets, radii[asked], upper=upper), tol=_TOL)
    except (Infeasible, InvalidProgram, SolverFailed):
        return None
    return found if np.isfinite(found.upper) else None


def _shifts(solution: Solution, reach: Array) -> list[Array]:
    """The cheapest θ' − θ with ⟨x_j − x*, θ' − θ⟩ = ``reach[j]``, of every target j whose constraint binds."""
    program, lam = solution.program, solution.multipliers
    binding = np.flatnonzero(lam > SUPPORT * lam.max(initial=0.0))
    free = np.isinf(solution.allocation)
    weights = np.where(free, 0.0, solution.allocation)
    return _cheapest(program.features, weights, free, program.targets[binding], reach[binding])


def _cheapest(features: Array, weights: Array, free: BoolArray, targets: Array, reach: Array) -> list[Array]:
    """For every target t the y with ⟨t, y⟩ = ``reach`` that Σ weight ⟨f, y⟩² is least for, and that no free arm sees."""
    units = 1.0 / np.maximum(np.abs(features).max(axis=0), NOT_ZERO)
    fixed = _complement(features[free] * units)
    weighted = np.sqrt(weights)[:, None] * (features * units) @ fixed
    _, size, axes = np.linalg.svd(weighted, full_matrices=False)
    seen = size > _RANK * size.max(initial=0.0)
    root = axes[seen].T / size[seen]
    found = []
    for target, wanted in zip(targets * units @ fixed, reach.tolist(), strict=True):
        direction = root @ (root.T @ target)
        length = float(direction @ target)
        if length > 0:
            found.append(units * (fixed @ direction) * (wanted / length))
    return [s for s in found if np.isfinite(s).all() and s.any()]


def _complement(rows: Array) -> Array:
    """An orthonormal basis of the directions that no row shows."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, size, axes = np.linalg.svd(rows / np.maximum(np.linalg.norm(rows, axis=1), NOT_ZERO)[:, None])
    rank = int((size > _RANK * size.max(initial=0.0)).sum())
    result: Array = axes[rank:].T
    return result
