r"""What a careful user would write today to compute c(A,θ) without allocopt, one function each.

All of them solve the same program in the same, sensible form. The optimal arm x* costs nothing, so its direction is
projected out with an orthonormal basis N of its complement; the rest is scaled by the gaps:

    minimise  Σ β_i   s.t.   b_jᵀ M(β)^-1 b_j <= 1,   M(β) = Σ β_i a_i a_iᵀ,   a_i = Nᵀx_i/√Δ_i,   b_j = √2 Nᵀx_j/Δ_j

and α_i = β_i/Δ_i. Nothing here uses allocopt. Each function is given the arms and θ and returns an `Answer`, whose seconds
run from the arrays to the allocation: projection, canonicalisation by cvxpy and the solver.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import minimize

__all__ = ["PEERS", "Answer", "compact_sdp", "matrix_frac", "plain_frank_wolfe", "slsqp"]

Array = NDArray[np.float64]


class Answer(NamedTuple):
    """What a peer says, unjudged."""

    allocation: Array
    """α, one entry per arm; inf on the optimal arm."""
    seconds: float
    status: str
    """In the words of the peer's own solver."""


@dataclass(frozen=True)
class _Projected:
    """The program above: rows a_i and b_j, and the way back to α."""

    features: Array
    targets: Array
    gaps: Array
    suboptimal: NDArray[np.int64]

    def allocation(self, beta: Array) -> Array:
        alpha = np.full(len(self.gaps), np.inf)
        alpha[self.suboptimal] = beta / self.gaps[self.suboptimal]
        return alpha


def _project(arms: Array, theta: Array) -> _Projected:
    """Project the optimal arm out and scale by the gaps."""
    means = arms @ theta
    best = int(np.argmax(means))
    gaps = means[best] - means
    suboptimal = np.flatnonzero(gaps > 0)
    rows = arms[suboptimal] @ null_space(arms[best][None, :])
    delta = gaps[suboptimal, None]
    return _Projected(rows / np.sqrt(delta), np.sqrt(2.0) * rows / delta, gaps, suboptimal)


def _outer_products(rows: Array) -> Array:
    """Column i is the r×r matrix of row i, as a vector."""
    r = rows.shape[1]
    products: Array = np.einsum("ij,ik->jki", rows, rows).reshape(r * r, -1)
    return products


def matrix_frac(arms: Array, theta: Array) -> Answer:
    """The program as one reads it: cvxpy's ``matrix_frac`` for every arm, Clarabel."""
    import cvxpy as cp

    start = time.perf_counter()
    p = _project(arms, theta)
    r = p.features.shape[1]
    beta = cp.Variable(len(p.features), nonneg=True)
    information = cp.reshape(_outer_products(p.features) @ beta, (r, r), order="C")
    problem = cp.Problem(cp.Minimize(cp.sum(beta)), [cp.matrix_frac(b, information) <= 1 for b in p.targets])
    problem.solve(solver=cp.CLARABEL)
    return Answer(p.allocation(_solved(beta)), time.perf_counter() - start, str(problem.status))


def compact_sdp(arms: Array, theta: Array) -> Answer:
    """One cone for all arms, [[M, I], [I, S]] ⪰ 0 and b_jᵀ S b_j <= 1: vectorised cvxpy, Clarabel."""
    import cvxpy as cp

    start = time.perf_counter()
    p = _project(arms, theta)
    r = p.features.shape[1]
    beta = cp.Variable(len(p.features), nonneg=True)
    covariance = cp.Variable((r, r), symmetric=True)
    information = cp.reshape(_outer_products(p.features) @ beta, (r, r), order="C")
    forms = _outer_products(p.targets).T @ cp.vec(covariance, order="C")
    cone = cp.bmat([[information, np.eye(r)], [np.eye(r), covariance]]) >> 0
    problem = cp.Problem(cp.Minimize(cp.sum(beta)), [cone, forms <= 1])
    problem.solve(solver=cp.CLARABEL)
    return Answer(p.allocation(_solved(beta)), time.perf_counter() - start, str(problem.status))


def _solved(variable: Any) -> Array:
    """The value of a cvxpy variable; an error if the solver left none."""
    if variable.value is None:
        raise RuntimeError("the solver returned no point")
    return np.asarray(variable.value, dtype=np.float64)


def slsqp(arms: Array, theta: Array, ftol: float = 1e-6, max_iterations: int = 500) -> Answer:
    """SciPy's SLSQP with analytic derivatives, from UCB's allocation α = 2/Δ², which is feasible.

    The variables are multiples of that allocation and the objective is relative to its cost, so that everything is of
    order one; in our trials this was among the fastest of six ways to scale it. M is
    factorised once for values and Jacobian together.
    """
    start = time.perf_counter()
    p = _project(arms, theta)
    unit = 2.0 / p.gaps[p.suboptimal]
    weight: Array = unit / unit.sum()
    last: dict[bytes, Array] = {}

    def images(v: Array) -> Array:
        """a_iᵀ M^-1 b_j, remembered for the Jacobian."""
        key = v.tobytes()
        if key not in last:
            information = (p.features * (v * unit)[:, None]).T @ p.features
            last.clear()
            last[key] = p.features @ np.linalg.solve(information, p.targets.T)
        return last[key]

    def cost(v: Array) -> float:
        return float(weight @ v)

    def cost_gradient(_: Array) -> Array:
        return weight

    def slack(v: Array) -> Array:
        values: Array = 1.0 - (v * unit) @ images(v) ** 2
        return values

    def slack_jacobian(v: Array) -> Array:
        rows: Array = (images(v) ** 2).T * unit
        return rows

    constraint: Any = {"type": "ineq", "fun": slack, "jac": slack_jacobian}
    options: Any = {"maxiter": max_iterations, "ftol": ftol}
    result = minimize(
        cost,
        np.ones(len(unit)),
        jac=cost_gradient,
        method="SLSQP",
        bounds=[(0.0, None)] * len(unit),
        constraints=constraint,
        options=options,
    )
    status = "success" if result.success else str(result.message)
    return Answer(p.allocation(np.asarray(result.x) * unit), time.perf_counter() - start, status)


def plain_frank_wolfe(arms: Array, theta: Array, steps: int = 20_000, seconds: float = 10.0) -> Answer:
    """Frank–Wolfe on min_w max_j g_j(w) over the simplex: the worst target is linearised, step 2/(t+2), no gap.

    What is fair to it: the best iterate is kept, and the allocation is scaled so that its worst constraint is tight.
    """
    start = time.perf_counter()
    p = _project(arms, theta)
    w = np.full(len(p.features), 1.0 / len(p.features))
    best, best_value = w, np.inf
    for t in range(1, steps + 1):
        inverse = np.linalg.inv((p.features * w[:, None]).T @ p.features)
        g = np.einsum("ij,ij->i", p.targets @ inverse, p.targets)
        worst = int(np.argmax(g))
        if g[worst] < best_value:
            best, best_value = w.copy(), float(g[worst])
        if time.perf_counter() - start > seconds:
            break
        vertex = int(np.argmax(np.abs(p.features @ (inverse @ p.targets[worst]))))
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[vertex] += step
    return Answer(p.allocation(best * best_value), time.perf_counter() - start, f"{t} steps")


PEERS: dict[str, Callable[[Array, Array], Answer]] = {
    "cvxpy matrix_frac + Clarabel": matrix_frac,
    "compact SDP + Clarabel": compact_sdp,
    "SLSQP, ftol 1e-6 (default)": slsqp,
    "SLSQP, ftol 1e-8": partial(slsqp, ftol=1e-8),
    "plain Frank–Wolfe": plain_frank_wolfe,
}
"""By their names in the tables."""
