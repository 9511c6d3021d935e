"""The named programs written a second time: plain arrays from their definition, and cvxpy's matrix_frac with Clarabel."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from allocopt import ContextualBandit, LinearBandit, programs
from allocopt.base.validation import Array
from allocopt.model.program import AllocationProgram

KINDS = (
    "regret", "best_arm", "best_arm_epsilon", "top_m", "threshold", "transductive", "duelling", "contextual",
    "contextual_budget", "side_observations", "semi_bandit", "constrained",
)  # fmt: skip


class Case(NamedTuple):
    """A program of this package, and the arrays that it must amount to; several where the least value counts."""

    program: AllocationProgram
    writings: list[tuple[Array, Array, Array, Array]]
    owners: Array | None = None
    """The arm of each row, where arms show several things."""
    limits: tuple[Array, Array] | None = None
    """B and b of linear constraints."""


def case(kind: str, seed: int, noise: bool = True) -> Case:
    """A random instance of a kind, with a variance per arm where the kind has it and ``noise`` asks for it."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    if kind in ("side_observations", "semi_bandit", "constrained"):
        return _observed(kind, rng)
    d, k = int(rng.integers(2, 5)), int(rng.integers(4, 10))
    arms, theta = rng.normal(size=(k, d)), rng.normal(size=d)
    each = np.exp(rng.normal(size=k)) if noise and kind != "duelling" else np.full(k, np.exp(rng.normal()))
    rows, mean = arms / np.sqrt(each)[:, None], arms @ theta
    gap, ones, best = mean.max() - mean, np.ones(k), int(np.argmax(mean))
    bandit = LinearBandit(arms, theta, each)
    others = np.flatnonzero(gap > 0)
    if kind == "regret":
        return Case(programs.regret(bandit), [(rows, gap, arms[others], gap[others] ** 2 / 2)])
    if kind == "best_arm":
        return Case(programs.best_arm(bandit), [(rows, ones, arms[others] - arms[best], gap[others] ** 2 / 2)])
    if kind == "best_arm_epsilon":
        epsilon = float(rng.uniform(0.1, 1.5))
        written = []
        for i in np.flatnonzero(gap < epsilon):
            rest = [j for j in range(k) if j != i]
            written.append((rows, ones, arms[rest] - arms[i], (mean[i] - mean[rest] + epsilon) ** 2 / 2))
        return Case(programs.best_arm(bandit, epsilon), written)
    if kind == "top_m":
        m = int(rng.integers(1, k))
        order = np.argsort(-mean)
        i, j = np.repeat(order[:m], k - m), np.tile(order[m:], m)
        return Case(programs.top_m(bandit, m), [(rows, ones, arms[i] - arms[j], (mean[i] - mean[j]) ** 2 / 2)])
    if kind == "threshold":
        tau = float(rng.normal())
        return Case(programs.threshold(bandit, tau), [(rows, ones, arms, (mean - tau) ** 2 / 2)])
    if kind == "transductive":
        items = rng.normal(size=(int(rng.integers(2, 8)), d))
        value = items @ theta
        z, lead = items[np.argmax(value)], value.max() - value
        rest = lead > 0
        made = programs.transductive(arms, items, theta, each)
        return Case(made, [(rows, ones, items[rest] - z, lead[rest] ** 2 / 2)])
    if kind == "duelling":
        i, j = np.triu_indices(k, 1)
        rows = (arms[i] - arms[j]) / np.sqrt(each[0])
        return Case(
            programs.duelling(bandit), [(rows, (gap[i] + gap[j]) / 2, arms[others] - arms[best], gap[others] ** 2 / 2)]
        )
    cut = np.sort(rng.choice(np.arange(1, k), size=int(rng.integers(0, min(3, d))), replace=False))
    within = np.concatenate([part.max() - part for part in np.split(mean, cut)])
    made = programs.contextual(ContextualBandit(np.split(arms, cut), theta, None, each))  # type: ignore[arg-type]
    worse = np.flatnonzero(within > 0)
    written = [(rows, within, arms[worse], within[worse] ** 2 / 2)]
    if kind == "contextual":
        return Case(made, written)
    bandit = ContextualBandit(np.split(arms, cut), theta, np.exp(rng.normal(size=len(cut) + 1)), each)  # type: ignore[arg-type]
    shares = bandit.weights / bandit.weights.sum()
    context = np.repeat(np.arange(bandit.n_contexts), bandit.sizes)
    even = float(np.exp(rng.uniform(3, 7)) * max(_even(rows, arms[worse], within[worse] ** 2 / 2), 1e-3))
    limits = (context[None, :] == np.arange(bandit.n_contexts)[:, None]).astype(float), even * shares
    return Case(programs.contextual(bandit, even), written, None, limits)


def _even(rows: Array, targets: Array, radii: Array) -> float:
    """How many plays of everything alike meet the targets: a budget of that order is neither generous nor hopeless."""
    inverse = np.linalg.inv(rows.T @ rows)
    return float((np.einsum("ij,jl,il->i", targets, inverse, targets) / radii).max())


def _observed(kind: str, rng: np.random.Generator) -> Case:
    """Arms that show several things, and linear constraints."""
    k = int(rng.integers(3, 8))
    if kind == "side_observations":
        means = rng.normal(size=k)
        variances = np.where(rng.random((k, k)) < 0.4, np.exp(rng.normal(size=(k, k))), np.inf)
        np.fill_diagonal(variances, np.where(rng.random(k) < 0.8, np.exp(rng.normal(size=k)), np.inf))
        lonely = np.isinf(variances).all(axis=0)
        variances[np.argmin(means), lonely] = 1.0  # everything is seen somewhere
        i, j = np.nonzero(np.isfinite(variances))
        gap, best = means.max() - means, int(np.argmax(means))
        rest = np.flatnonzero(gap > 0)
        rows = np.eye(k)[j] / np.sqrt(variances[i, j])[:, None]
        written = [(rows, gap, np.eye(k)[rest] - np.eye(k)[best], gap[rest] ** 2 / 2)]
        return Case(programs.side_observations(means, variances), written, i)
    if kind == "semi_bandit":
        d = int(rng.integers(3, 7))
        arms = np.unique((rng.random((3 * k, d)) < 0.5).astype(float), axis=0)
        arms = arms[arms.any(axis=1)]
        theta, noise = rng.normal(size=d), float(np.exp(rng.normal()))
        gap, best = (arms @ theta).max() - arms @ theta, int(np.argmax(arms @ theta))
        i, e = np.nonzero(arms)
        rest = np.flatnonzero(gap > 0)
        written = [(np.eye(d)[e] / np.sqrt(noise), gap, arms[rest] - arms[best], gap[rest] ** 2 / 2)]
        return Case(programs.semi_bandit(arms, theta, noise), written, i)
    d, m, n = int(rng.integers(2, 5)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    rows, costs = rng.normal(size=(k + d, d)), np.exp(rng.normal(size=k + d))
    targets, radii = rng.normal(size=(m, d)), np.exp(rng.normal(size=m))
    plain = AllocationProgram(rows, costs, targets, radii)
    even = _even(rows, targets, radii)
    matrix = np.where(rng.random((n, k + d)) < 0.6, rng.choice([1.0, 1.0, 0.5, -0.5], size=(n, k + d)), 0.0)
    limits = (
        matrix,
        even * (matrix.sum(axis=1) + rng.uniform(0.1, 2.0, size=n) * (1.0 + np.abs(matrix).sum(axis=1)) / 4),
    )
    made = AllocationProgram(rows, plain.costs, targets, radii, constraints=limits)
    return Case(made, [(rows, costs, targets, radii)], None, limits)


def peer_value(asked: Case) -> tuple[float, bool]:
    """The least value over the writings by Clarabel, and whether it said "optimal" of all of them."""
    if asked.owners is not None or asked.limits is not None:
        return _limited_value(*asked.writings[0], asked.owners, asked.limits)
    found = [_value(*written) for written in asked.writings]
    return min(value for value, _ in found), all(sure for _, sure in found)


def _value(rows: Array, costs: Array, targets: Array, radii: Array) -> tuple[float, bool]:
    free = costs == 0
    if free.any():  # known exactly: only what is orthogonal to these rows is left
        _, sizes, axes = np.linalg.svd(rows[free])
        basis = axes[int((sizes > 1e-10 * sizes[0]).sum()) :].T
        rows, targets = rows[~free] @ basis, targets @ basis
        costs = costs[~free]
        if not basis.shape[1]:
            return 0.0, True
    unit = float((np.einsum("ij,ij->i", targets, targets) / radii).max())  # so that the solver sees numbers around 1
    goals = targets / np.sqrt(radii * unit)[:, None]
    a = rows / np.sqrt(costs)[:, None]  # cost 1 each
    alpha = cp.Variable(len(a), nonneg=True)
    information = a.T @ cp.diag(alpha) @ a
    problem: Any = cp.Problem(cp.Minimize(cp.sum(alpha)), [cp.matrix_frac(t, information) <= 1 for t in goals])
    problem.solve(solver="CLARABEL")
    return float(problem.value) * unit, problem.status == "optimal"


def _limited_value(
    rows: Array, costs: Array, targets: Array, radii: Array, owners: Array | None, limits: tuple[Array, Array] | None
) -> tuple[float, bool]:
    """The same for arms of several rows, and with linear constraints."""
    own = np.arange(len(costs)) if owners is None else owners
    matrix, most = (np.zeros((0, len(costs))), np.zeros(0)) if limits is None else limits
    free = (costs == 0) & ~matrix.any(axis=0)
    if free[own].any():
        _, sizes, axes = np.linalg.svd(rows[free[own]])
        basis = axes[int((sizes > 1e-10 * sizes[0]).sum()) :].T
        if not basis.shape[1]:
            return 0.0, True
        rows, targets = rows @ basis, targets @ basis
    asked = np.abs(targets).max(axis=1) > 1e-12
    targets, radii = targets[asked], radii[asked]
    if not len(targets):
        return 0.0, True
    unit = float((np.einsum("ij,ij->i", targets, targets) / radii).max())
    goals = targets / np.sqrt(radii * unit)[:, None]
    alpha = cp.Variable(len(costs), nonneg=True)
    information = rows.T @ cp.diag(alpha[own]) @ rows
    rules = [cp.matrix_frac(t, information) <= 1 for t in goals] + [alpha[np.flatnonzero(free)] == 0]
    rules += [matrix @ alpha <= most / unit] if len(most) else []
    problem: Any = cp.Problem(cp.Minimize(costs @ alpha), rules)
    problem.solve(solver="CLARABEL")
    return float(problem.value) * unit, problem.status == "optimal"
