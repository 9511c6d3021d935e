r"""The optimal allocation of side observations: a linear program, or a few of them, over the list of what arms show.

With N_e = Σ α_i/σ²_ie the targets ask for 1/N_j + 1/N_* <= ρ_j. Where the best arm shows itself 1/N_* is 0, and that is the covering
program N_j >= 1/ρ_j. Otherwise it is one for each s = N_*, with needs N_j >= r_j(s) = 1/(ρ_j − 1/s), and by duality its value is
V(s) = max_π (Σ π_j r_j(s) + π_* s) over the vertices π of one polyhedron: a maximum of smooth convex functions of a single number.
So the least of the largest of those found so far proposes the next s, whose linear program finds another vertex, or shows that
there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allocopt.base.errors import SolverFailed
from allocopt.base.validation import Array, IntArray
from allocopt.model.rows.sightings import Sightings
from allocopt.solvers.monitor import OutOfTime

__all__ = ["Covering", "proposals"]

_TIGHTEST = 1e-10  # HiGHS' smallest tolerances
_MOST_PROGRAMS = 60  # linear programs; five are the rule
_HALVINGS = 200  # of the logarithm of s, down to neighbouring doubles
_FARTHEST = (
    100.0  # how much nearer to where needs are infinite, or farther, the next s may be: programs there are badly scaled
)
_EQUILIBRATIONS = 4
_SAME = 1e-12  # relative difference of values up to which a vertex is none that is new


@dataclass(eq=False)
class Covering:
    """min Σ κ_i α_i s.t. N_e >= need_e for the arms e that the best one does not show, in the variables κ_i α_i."""

    seen: Sightings
    costs: Array
    radii: Array
    """ρ_j of every arm; of the best one, of no meaning."""
    known: Any = field(init=False)
    asked: IntArray = field(init=False)
    """The arms e that are not known for nothing."""
    matrix: Any = field(init=False)
    """N_e for one unit of cost of each arm."""
    players: IntArray = field(init=False)

    def __post_init__(self) -> None:
        from scipy.sparse import csr_matrix  # here: it takes a while to load

        seen = self.seen
        self.known, self.players = seen.known, seen.others
        self.asked = np.flatnonzero(~self.known)
        place = np.full(seen.n_arms + 1, -1)
        place[self.asked] = np.arange(len(self.asked))
        column = np.full(seen.n_arms, -1)
        column[self.players] = np.arange(len(self.players))
        kept = np.flatnonzero((place[seen.columns] >= 0) & (column[seen.owners] >= 0))
        worth = 1.0 / (seen.variances[kept] * self.costs[seen.owners[kept]])
        spots = place[seen.columns[kept]], column[seen.owners[kept]]
        self.matrix = csr_matrix((worth, spots), shape=(len(self.asked), len(self.players)))

    def cheapest(self, needs: Array, seconds: float) -> tuple[Array, Array]:
        """What is spent on each arm to meet some needs, and a price of each need at which no arm is worth more than it costs.

        Where the program is badly scaled, the better ones of two attempts.
        """
        best: tuple[float, Array] = np.inf, np.zeros(len(self.players))
        dual: tuple[float, Array] = 0.0, np.zeros(len(needs))
        for rows, columns in self._scalings(needs):
            spent, prices = self._solved(needs, rows, columns, seconds)
            with np.errstate(divide="ignore", invalid="ignore"):
                spent = spent * float((needs / (self.matrix @ spent)).max())
                prices = prices / float((self.matrix.T @ prices).max())
            cost, worth = float(spent.sum()), float(prices @ needs)
            best = (cost, spent) if cost < best[0] else best
            dual = (worth, prices) if worth > dual[0] else dual
            if best[0] <= dual[0] * (1.0 + _SAME):
                break
        if not np.isfinite(best[0]):
            raise SolverFailed("the linear program was not solved: it is too badly scaled")
        return best[1], dual[1]

    def _scalings(self, needs: Array) -> Iterator[tuple[Array, Array]]:
        """Factors of rows and columns: such that needs and costs are 1, then such that the largest entries of all are about 1."""
        rows, columns = 1.0 / needs, np.ones(len(self.players))
        entries = self.matrix.tocoo()
        sizes = entries.data * rows[entries.row]
        yield rows, columns / np.sqrt(sizes.max() * sizes.min())
        for _ in range(_EQUILIBRATIONS):
            for factors, own in ((rows, entries.row), (columns, entries.col)):
                top = np.zeros(len(factors))
                np.maximum.at(top, own, entries.data * rows[entries.row] * columns[entries.col])
                factors /= np.where(top > 0, np.sqrt(top), 1.0)
        yield rows, columns

    def _solved(self, needs: Array, rows: Array, columns: Array, seconds: float) -> tuple[Array, Array]:
        """The linear program in other units: x = (what is spent)/columns, every row times a factor."""
        from scipy.optimize import linprog
        from scipy.sparse import diags

        options: Any = {"primal_feasibility_tolerance": _TIGHTEST, "dual_feasibility_tolerance": _TIGHTEST}
        if np.isfinite(seconds):
            options["time_limit"] = seconds
        costs, least = columns / columns.max(), rows * needs
        matrix: Any = -(diags(rows) @ self.matrix @ diags(columns))
        found = linprog(
            costs, A_ub=matrix, b_ub=-least / least.max(), bounds=(0, None), method="highs-ds", options=options
        )
        if found.status == 1 and np.isfinite(seconds):
            raise OutOfTime
        if found.x is None or found.ineqlin.marginals is None:
            return np.zeros(len(columns)), np.zeros(len(rows))
        return np.maximum(found.x, 0.0) * columns, np.maximum(-found.ineqlin.marginals, 0.0) * rows

    def pair(self, spent: Array, prices: Array, boundary: tuple[int, float] | None = None) -> tuple[Array, Array]:
        """α, made feasible up to rounding, and λ_j = π_j ρ_j N_j²: then c_j of the certificate is π_j.

        ``boundary`` is an arm that the best one shows, with what its constraint is charged.
        """
        seen, star = self.seen, self.seen.best
        information = np.full(seen.n_arms, np.inf)
        information[self.asked] = self.matrix @ spent
        with np.errstate(divide="ignore"):
            norms = 1.0 / information + 1.0 / information[star]
        others = seen.others
        worst = float((norms[others] / self.radii[others]).max())
        alpha = np.zeros(seen.n_arms)
        alpha[self.players] = spent / self.costs[self.players] * (worst * (1.0 + 2.0**-50))
        alpha[star] = np.inf
        lam = np.zeros(seen.n_arms)
        lam[self.asked] = prices * self.radii[self.asked] * information[self.asked] ** 2
        lam[star] = 0.0
        if boundary is not None:
            lam[boundary[0]] = boundary[1]
        return alpha, lam


def proposals(covering: Covering, seconds_left: Any) -> Iterator[tuple[Array, Array]]:
    """Pairs (α, λ), each better than the last; where the best arm shows itself, one."""
    star = covering.seen.best
    if covering.known[star]:
        spent, prices = covering.cheapest(1.0 / covering.radii[covering.asked], seconds_left())
        yield covering.pair(spent, prices)
        return
    yield from _without_the_best(covering, seconds_left)


def _without_the_best(covering: Covering, seconds_left: Any) -> Iterator[tuple[Array, Array]]:
    """The same where the best arm must be seen elsewhere: the needs depend on s = N_*."""
    seen, asked = covering.seen, covering.asked
    here = int(np.searchsorted(asked, seen.best))
    radii = covering.radii[asked].copy()
    radii[here] = np.inf
    at_once = np.flatnonzero(covering.known)  # arms that the best one shows: 1/s <= ρ_j
    tightest = int(at_once[np.argmin(covering.radii[at_once])]) if len(at_once) else None
    least = 0.0 if tightest is None else 1.0 / float(covering.radii[tightest])
    pole = 1.0 / float(radii.min()) if np.isfinite(radii.min()) else 0.0

    def needs(s: float) -> Array:
        with np.errstate(divide="ignore"):
            result: Array = 1.0 / (radii - 1.0 / s)
        result[here] = s
        return result

    def slopes(s: float) -> Array:
        result: Array = -((needs(s) / s) ** 2)
        result[here] = 1.0
        return result

    start = max(least, pole)
    vertices: list[Array] = []
    s, wanted = max(2.0 * pole, least), 0.0
    for _ in range(_MOST_PROGRAMS):
        spent, prices = covering.cheapest(needs(s), seconds_left())
        value = float(prices @ needs(s))
        model = max((float(v @ needs(s)) for v in vertices), default=0.0)
        vertices.append(prices)
        steepness = [float(v @ slopes(s)) for v in vertices]
        mixed, charge = _stationary(vertices, [float(v @ needs(s)) for v in vertices], steepness)
        at_boundary = tightest is not None and charge > 0
        boundary = (tightest, charge * s) if tightest is not None and at_boundary else None
        yield covering.pair(spent, mixed, boundary)
        if value <= model * (1.0 + _SAME) and s == wanted:
            return
        wanted = _least_of_largest(vertices, needs, slopes, start, least > pole)
        near, far = (start, _FARTHEST * s) if least > pole else (start + (s - start) / _FARTHEST, _FARTHEST * s)
        s = min(max(wanted, near), far)


def _stationary(vertices: list[Array], values: list[float], steepness: list[float]) -> tuple[Array, float]:
    """The mean of the vertices that are largest here whose slope is 0, and its slope where there is none such."""
    top = max(values)
    active = [n for n, value in enumerate(values) if value >= top * (1.0 - 1e-9)]
    down, up = min(active, key=lambda n: steepness[n]), max(active, key=lambda n: steepness[n])
    if steepness[down] < 0 < steepness[up]:
        share = steepness[up] / (steepness[up] - steepness[down])
        return share * vertices[down] + (1.0 - share) * vertices[up], 0.0
    nearest = min(active, key=lambda n: abs(steepness[n]))
    return vertices[nearest], max(steepness[nearest], 0.0)


def _least_of_largest(vertices: list[Array], needs: Any, slopes: Any, start: float, closed: bool) -> float:
    """The s > start (or >= start where ``closed``) that minimises max_π (Σ π_j r_j(s) + π_* s), by halving."""

    def slope(s: float) -> float:
        own = needs(s)
        steepest = max(vertices, key=lambda v: float(v @ own))
        return float(steepest @ slopes(s))

    if closed and slope(start) >= 0:
        return start
    low, high = start * (1.0 + 1e-15), 4.0 * start
    while slope(high) < 0:
        low, high = high, 4.0 * high
        if high > 1e12 * start:
            return high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high
