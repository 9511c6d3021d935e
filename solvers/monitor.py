"""The monitor of a running solver: certifies what it reports, keeps the best bounds, calls the callback, and says when to stop."""

from __future__ import annotations

import time

from allocopt.base.validation import Array
from allocopt.certify.canonical import Bounds, Canonical
from allocopt.certify.certificate import evaluate
from allocopt.model.progress import Callback, Progress

__all__ = ["Monitor", "OutOfTime"]


class OutOfTime(Exception):
    """``max_seconds`` have passed; caught by ``solve``."""


class Monitor:
    """Certifies every pair (α, λ) that a solver reports, remembers the best bounds and says when to stop."""

    def __init__(
        self, problem: Canonical | None, method: str, tol: float, max_seconds: float | None, callback: Callback | None
    ) -> None:
        self.problem = problem
        self.method = method
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.started = time.perf_counter()
        self.best: Bounds | None = None

    @property
    def seconds(self) -> float:
        """Time since the solver started."""
        return time.perf_counter() - self.started

    @property
    def seconds_left(self) -> float:
        """Time until ``max_seconds`` (inf without one)."""
        return float("inf") if self.max_seconds is None else max(self.max_seconds - self.seconds, 0.0)

    def tick(self) -> None:
        """Raise `OutOfTime` when the time is over; solvers call it in every loop."""
        if self.seconds_left <= 0.0:
            raise OutOfTime

    def report(self, alpha: Array, multipliers: Array, iteration: int, row_multipliers: Array | None = None) -> Bounds:
        """Certify a pair (α, λ), or a triple (α, λ, μ), for the whole problem; returns what it proves."""
        assert self.problem is not None, "arms that are streamed certify themselves"
        return self.record(evaluate(self.problem, alpha, multipliers, row_multipliers), iteration)

    def record(self, bounds: Bounds, iteration: int) -> Bounds:
        """Remember certified bounds if they are the best so far, and tell the callback."""
        if self.best is None or bounds.gap < self.best.gap or self.best.upper == float("inf"):
            self.best = bounds
        if self.callback is not None:
            best = self.best
            alive = getattr(bounds, "alive", None)
            self.callback(Progress(self.method, iteration, best.lower, best.upper, best.gap, self.seconds, alive))
        return bounds

    @property
    def done(self) -> bool:
        """Whether the asked gap has been certified."""
        return self.best is not None and self.best.gap <= self.tol
