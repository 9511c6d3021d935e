"""Allocator: solves the regret program of fixed arms for one vector of gaps after another, in microseconds, each certified."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, SolverFailed
from allocopt.base.lazy import Lazy
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.base.validation import Array, ArrayLike, in_range, positive_number, vector
from allocopt.model.arms import ListedArms, open_store
from allocopt.model.arms.survey import SurveyReport, surveyed
from allocopt.model.bandit import arm_matrix
from allocopt.model.programs import at_level, horizon_at_level
from allocopt.model.progress import Callback
from allocopt.model.solution import Solution, Status, noting
from allocopt.solving.compiled_rows import in_units, quotient_rows
from allocopt.solving.roads.compiled_answer import MOST_ARMS, solution_of
from allocopt.solving.roads.machine_code import compiled_kernel, pinned_road, say_if_slow
from allocopt.solving.roads.machine_code import why_not_compiled as no_machine_code
from allocopt.solving.solve import solve

__all__ = ["MOST_ARMS", "Allocator", "compiled_kernel", "ordinary_solution", "why_not_compiled"]

_MANY_ARMS = (
    1000  # from which arms are priced block by block: their quotient is then part of a pass, not made every time
)
_MOST_QUOTIENTS = 256  # sets of free arms to remember; a few dozen bytes per entry of the arms each


def why_not_compiled(n_arms: int, listed: bool, road: str | None = None) -> str:
    """Why compiled code is not used: too many arms, no numba, or (not ``listed``) arms that are no array in memory."""
    if n_arms > MOST_ARMS:
        return f"more than {MOST_ARMS} arms"
    return no_machine_code(road) if listed else "arms that are not in memory"


def ordinary_solution(
    arms: Any,
    gaps: Array,
    level: float,
    tol: float,
    reason: str,
    report: SurveyReport | None = None,
    last: Solution | None = None,
    callback: Callback | None = None,
    road: str | None = None,
) -> Solution:
    """The answer of `allocopt.solve`, with the reason why it was asked in ``stats``; raises where the gaps are bad.

    ``report`` is the survey of arms that are in a store, ``last`` a solution to begin from if the same arms are free there.
    """
    program = at_level(arms, gaps, level, report)
    start = last if last is not None and np.array_equal(last.program.free, program.free) else None
    found = solve(program, tol=tol, callback=callback, start=start, road=road)
    return noting(found, compiled=False, not_compiled=reason)


class Allocator:
    r"""Solves the regret (horizon) program of fixed arms for one vector of gaps after another.

    Parameters
    ----------
    arms : array_like, shape (k, d)
        One row per arm.
    level : float
        The constraints are ||x||²_{H^-1} <= Δ_x²/level: 2σ² for the regret constant (the default is σ² = 1), f_n for the
        horizon program.
    tol : float
        Relative gap (upper − lower)/lower to reach.

    Notes
    -----
    Up to 100 arms are solved by compiled code (numba; the first call ever compiles it, later ones load it from disk). What
    that code cannot certify, and larger sets, go to `allocopt.solve`; ``stats["compiled"]`` says which it was, and
    ``stats["not_compiled"]`` why. Either begins from the last solution where the same arms are free (``stats["warm"]``).
    The environment variable ALLOCOPT_ROAD is read when an allocator is made, and holds for all its solves. Sets of millions of
    arms are used where they are: in memory, memory-mapped, on Dask. An allocator may be used by several threads.

    Examples
    --------
    >>> import numpy as np
    >>> allocator = Allocator([[1, 0], [0, 1], [0.99, 0.02]])
    >>> s = allocator.solve([0, 1, 0.01])
    >>> round(s.value, 6), s.status.name, s.allocation.round(6)
    (8.0, 'CERTIFIED', array([inf,  8.,  0.]))
    """

    @spelled
    def __init__(self, arms: ArrayLike, *, level: float = 2.0, tol: float = DEFAULT_TOL) -> None:
        self.level = positive_number("level", level)
        self.tol = positive_number("tol", tol)
        in_range("level", np.array([self.level]), InvalidOption)
        store = open_store(arms)
        self._listed: Array | None = None
        if store is None:
            listed = arm_matrix(arms)
            # refuses arms that are invalid whatever the gaps
            horizon_at_level(listed, np.ones(len(listed)), self.level, None)
            store = ListedArms(listed) if len(listed) >= _MANY_ARMS else None
            self._listed = listed
        self._source: Any = listed if store is None else store
        self._survey = None if store is None else surveyed(store)
        self.arms: Any = getattr(self._source, "listed", self._source)
        self.n_arms, self.dim = self._source.shape
        self._road = pinned_road()  # once: asking the environment takes as long as a fortieth of a solve
        self._own = np.zeros((0, 0))
        if self.n_arms <= MOST_ARMS and store is None:
            say_if_slow("Allocator")
            self._own = in_units(self.arms[None])[0]
        self._quotients: dict[bytes, tuple[Array, int]] = {}
        self._last: tuple[bytes, Array, Array] | None = None
        self._last_ordinary: Solution | None = None
        self._variances = np.ones(self.n_arms)  # σ² is part of the level

    def __repr__(self) -> str:
        return f"Allocator(n_arms={self.n_arms}, dim={self.dim}, level={self.level:g}, tol={self.tol:g})"

    @spelled
    def solve(self, gaps: ArrayLike, *, callback: Callback | None = None) -> Solution:
        r"""The certified solution for these gaps.

        Parameters
        ----------
        gaps : array_like, shape (k,)
            Any vector in [0, ∞)^k. Arms of gap 0 are free (α = inf); there may be none or several.
        callback : callable, optional
            As in `allocopt.solve`: told of certified bounds on the way. Compiled solves do not call it.

        Returns
        -------
        Solution

        Examples
        --------
        >>> allocator = Allocator([[1, 0], [0, 1]], level=4.0)
        >>> round(allocator.solve([0, 0.5]).value, 6)
        8.0
        """
        started = time.perf_counter()
        if callback is not None and not callable(callback):
            raise InvalidOption(f"callback: expected a function, got a {type(callback).__name__}")
        if type(gaps) is np.ndarray and gaps.dtype == np.float64 and gaps.ndim == 1:
            delta = gaps.copy()
        else:
            delta = np.array(vector("gaps", gaps, InvalidInstance))
        k = self.n_arms
        if len(delta) != k:
            raise InvalidInstance(f"gaps: expected {k} entries, one per arm, got {len(delta)}")
        kernel = compiled_kernel(self._road) if len(self._own) else None
        if kernel is None:
            return self._ordinary(delta, why_not_compiled(k, self._survey is None, self._road), callback)
        free = delta.astype(bool).tobytes()  # which arms are free: 0 for those
        rows, rank = self._quotients.get(free) or self._quotient(kernel, free, delta)
        if rank < 0:
            return self._ordinary(delta, kernel.REASONS[-rank], callback)
        last = self._last
        info = np.empty(kernel.INFO)
        warm = last is not None and last[0] == free
        if warm and last is not None:
            alpha, multipliers = last[1].copy(), last[2].copy()
        else:
            alpha, multipliers = np.zeros(k), np.zeros(k)
        given = rows, rank, delta, 0.0, self._variances, delta, self.level, self.tol
        code = kernel.solve_quotient(*given, warm, alpha, multipliers, info)
        if code != kernel.CERTIFIED and warm:  # the last solution may have been a bad starting point
            code = kernel.solve_quotient(*given, False, alpha, multipliers, info)
        if code != kernel.CERTIFIED:
            return self._ordinary(delta, kernel.REASONS[code], callback)
        self._last = (free, alpha, multipliers)
        report = info.tolist()
        report.append(time.perf_counter() - started)
        delta.setflags(write=False)
        program = Lazy(horizon_at_level, self.arms, delta, self.level, None)
        return solution_of(program, self.tol, alpha, multipliers, report)

    def _quotient(self, kernel: ModuleType, free: bytes, gaps: Array) -> tuple[Array, int]:
        """The arms modulo the free ones, which does not depend on the other gaps."""
        rows = np.empty_like(self._own)
        found = rows, quotient_rows(kernel, self._own, gaps, rows)
        if len(self._quotients) >= _MOST_QUOTIENTS:
            self._quotients.clear()
        self._quotients[free] = found
        return found

    def _ordinary(self, gaps: Array, reason: str, callback: Callback | None) -> Solution:
        """`ordinary_solution` in up to three ways, until one is certified; else the one of the smallest gap."""
        gaps.flags.writeable = False  # it is a copy already
        # without the last solution where it was a bad starting point; from an array, which is a little more accurate than blocks
        ways: list[tuple[Any, SurveyReport | None, Solution | None]] = [
            (self._source, self._survey, self._last_ordinary)
        ]
        if self._last_ordinary is not None:
            ways.append((self._source, self._survey, None))
        if self._listed is not None and self._survey is not None:
            ways.append((self._listed, None, None))
        best: Solution | None = None
        failure: SolverFailed | None = None
        for source, report, last in ways:
            try:
                solution = ordinary_solution(
                    source, gaps, self.level, self.tol, reason, report, last, callback, self._road
                )
            except SolverFailed as error:
                failure = error
                continue
            if best is None or solution.gap < best.gap:
                best = solution
            if solution.status in (Status.CERTIFIED, Status.CONDITIONAL):
                self._last_ordinary = solution
                break
        if best is None:
            assert failure is not None
            raise failure
        return best
