r"""Bounds on c for 0/1 arms from edge weights s >= 0 with Σ s_e |x_e − x*_e| <= Δ_x for all arms.

Both bounds are valid for every such s and are improved by Frank–Wolfe steps over s; the constants below decide only how far.
"""

from __future__ import annotations

import numpy as np

from allocopt.actions.chord_bounds import Played
from allocopt.actions.design_bound import design_bound, matrix_power, targets_seen
from allocopt.actions.oracle_answers import Explored
from allocopt.base.errors import SolverFailed
from allocopt.base.tolerances import NOT_ZERO
from allocopt.base.validation import Array
from allocopt.model.program import AllocationProgram
from allocopt.solving.solve import solve

__all__ = ["EdgeBounds"]

_MOST_CUT_ROUNDS = 30
"""Linear programs per corner, each with the arm that the last one violated most. What is then still violated is divided out."""
_CUT_SLACK = 1e-6
"""Violation of the weights' constraints, relatively, that is divided out instead of being cut off by another program."""
_LEAST_GAIN = 1e-5
"""Relative growth of the lower bound in a round below which further rounds are not worth their oracle calls."""
_STEP_LENGTHS = (0.0, 0.02, 0.08, 0.25, 0.6)
"""Shares of the way to the corner that are tried, the best of which is taken; 0 keeps what there is."""
_DESIGN_STEPS, _LAST_DESIGN_STEPS = 60, 300
"""Multiplicative steps of each design bound while s is sought, and of the final one."""
_TOWARDS_MIDDLE = 0.1
"""Share of an even corner that is mixed into s for the upper bound, so that W is not singular at its beginning."""
_TIGHT = 1e-6
"""Relative distance of the two bounds at which the upper one is not improved any further."""
_IDLE = 1e-6
"""Multipliers below this share of the largest do not keep their direction y for the next round."""
_SINGULAR = 1e-12
"""Smallest eigenvalue of W or H, relative to the largest, from which its inverse keeps at least four digits."""
_ELLIPSOID_ROUNDS = 3
"""Programs per ellipsoid, each with the directions that the last allocation knew too little of."""
_ROUGH_TOL = 1e-2
"""Of these programs: roughly is enough, since the allocation is scaled until it is valid."""
_NEARLY_VALID = 1.01
"""Factor of that scaling below which another program would gain less than its own tolerance."""
_LACKING = 0.5
"""Directions whose yᵀH^-1 y exceeds this, where yᵀWy = 1 allows ½, become constraints of the next program."""


def _best_weights(slope: Array, rows: Array, most: Array) -> Array:
    """s >= 0 that maximises ⟨slope, s⟩ subject to rows·s <= most."""
    from scipy.optimize import linprog  # here: it takes a fifth of a second to load

    result = linprog(-slope / max(float(slope.max()), NOT_ZERO), A_ub=rows, b_ub=most, method="highs")
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
        for _ in range(_MOST_CUT_ROUNDS):
            x, _, gaps = self.arms.others()
            rows = np.abs(x - self.arms.best)
            use = rows.any(axis=0)
            s = np.zeros(len(slope))
            s[use] = np.maximum(_best_weights(slope[use], rows[:, use], gaps), 0.0)
            seen = len(self.arms.pool)
            t = self.arms.ratio(self.sign * s, float(s @ self.arms.best))[0]
            if t <= 1 + _CUT_SLACK or len(self.arms.pool) == seen:
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
            tries = [s + step * (corner - s) for step in (_STEP_LENGTHS if k else (0.0,))]
            b = targets_seen(self.arms, self.functionals)
            bounds = [design_bound((self.Z.T * t) @ self.Z, b, _DESIGN_STEPS) for t in tries]
            i = int(np.argmax([bound[0] for bound in bounds]))
            s, (value, H) = tries[i], bounds[i]
            if value <= best * (1 + _LEAST_GAIN):
                break
            best = value
        return max(best, design_bound((self.Z.T * s) @ self.Z, b, _LAST_DESIGN_STEPS)[0]), s

    def upper(self, s: Array, rounds: int, lower: float) -> tuple[float, Played]:
        """The cheapest allocation found with H^-1 ⪯ W/2, W = Zᵀ diag(s_e Δ^e) Z; its cost is convex in s."""
        first = np.zeros(len(s))
        for e, unit in enumerate(np.eye(len(s))):
            R, x = self.arms.ratio(self.sign[e] * unit, self.arms.best[e])
            first[e] = 1.0 / R if (x != self.arms.best).any() else 0.0
        s = (1.0 - _TOWARDS_MIDDLE) * s + _TOWARDS_MIDDLE * self.corner(np.ones(len(s)))
        best: tuple[float, Played] = (np.inf, [])
        y = np.eye(len(self.functionals))
        for k in range(rounds + 1):
            value, played, lam, y = self._ellipsoid(s * first, y)
            best = min(best, (value, played), key=lambda found: found[0])
            if best[0] <= lower * (1 + _TIGHT):
                break
            corner = self.corner(first * (lam @ (y @ self.Z.T) ** 2))
            y = np.vstack([np.eye(len(y[0])), y[lam > _IDLE * lam.max()]])
            s = s + (corner - s) * 2.0 / (k + 4)
        return best

    def _ellipsoid(self, weights: Array, y: Array) -> tuple[float, Played, Array, Array]:
        """Cheapest α with yᵀH^-1 y <= yᵀWy/2 for all y, by cuts; the worst y left over scales α until all hold."""
        W = (self.Z.T * weights) @ self.Z
        spectrum = np.linalg.eigvalsh(W)
        if spectrum[0] <= _SINGULAR * spectrum[-1]:  # no H will do; the next s is less extreme
            return np.inf, [], np.ones(len(y)), y
        back = matrix_power(W, -0.5)
        x, labels, gaps = self.arms.others()
        q = x @ self.functionals.T
        best: tuple[float, Played] = (np.inf, [])
        for _ in range(_ELLIPSOID_ROUNDS):
            program = AllocationProgram(q, gaps, y, 0.5 * np.einsum("ij,ij->i", y @ W, y))
            solution = solve(program, tol=_ROUGH_TOL)
            alpha, lam = solution.allocation, solution.multipliers / program.radii
            H = (q * alpha[:, None]).T @ q
            if not np.linalg.cond(H) < 1.0 / _SINGULAR:
                break
            values, vectors = np.linalg.eigh(back @ np.linalg.inv(H) @ back)
            factor = 2.0 * float(values[-1])
            if (cost := factor * float(alpha @ gaps)) < best[0]:
                best = cost, [(x[i], labels[i], factor * float(alpha[i])) for i in np.flatnonzero(alpha)]
            if factor < _NEARLY_VALID:
                break
            y = np.vstack([y, (back @ vectors[:, values > _LACKING]).T])
        return *best, lam, program.targets
