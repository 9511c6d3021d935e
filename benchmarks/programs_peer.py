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
)  # fmt: skip


class Case(NamedTuple):
    """A program of this package, and the arrays that it must amount to; several where the least value counts."""

    program: AllocationProgram
    writings: list[tuple[Array, Array, Array, Array]]


def case(kind: str, seed: int, noise: bool = True) -> Case:
    """A random instance of a kind, with a variance per arm where the kind has it and ``noise`` asks for it."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
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
    return Case(made, [(rows, within, arms[worse], within[worse] ** 2 / 2)])


def peer_value(writings: list[tuple[Array, Array, Array, Array]]) -> tuple[float, bool]:
    """The least value over the writings by Clarabel, and whether it said "optimal" of all of them."""
    found = [_value(*written) for written in writings]
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
