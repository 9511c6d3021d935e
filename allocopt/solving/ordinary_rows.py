"""Rows of a batch that compiled code does not take: `allocopt.solve` for each, in worker processes once it takes long."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.base.errors import AllocoptError
from allocopt.base.long_runs.processes import WorkerDied, finished_results, may_start_processes
from allocopt.base.machine import single_threaded
from allocopt.base.validation import Array
from allocopt.linear.assumptions import Assumption
from allocopt.model.arms.survey import SurveyReport
from allocopt.model.bandit import LinearBandit, arm_matrix
from allocopt.model.programs import regret
from allocopt.model.solution import Status
from allocopt.solving.allocator import ordinary_solution
from allocopt.solving.solve import solve

__all__ = ["Row", "Rows"]

_ALONE = 2.0  # seconds of work in this process before worker processes are started, which takes about as long
_CHUNK = 8  # rows handed to a process at a time


@dataclass(frozen=True, eq=False)
class Row:
    """The answer to one row; where it is no valid instance there are no numbers, and ``reason`` says why."""

    index: int
    lower: float
    upper: float
    status: Status
    allocation: Array
    multipliers: Array
    reason: str | None
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows are: arms of all, or an array with the arms of each; gaps and levels, one per row."""

    arms: Any
    shared: bool
    gaps: Array
    levels: Array
    tol: float
    survey: SurveyReport | None = None
    """What is known of shared arms that are in a store."""
    bandits: tuple[LinearBandit, ...] = ()
    """The rows as bandits, where they were given so."""

    def solve(self, reasons: Mapping[int, str], workers: int) -> Generator[Row, None, None]:
        """Some of the rows, as they are finished; ``reasons`` says for each why it is not compiled.

        A row does not depend on where it is solved. Arms in a store stay in this process: pricing them uses all cores already.
        """
        left = dict(reasons)
        start = time.perf_counter()
        alone = workers == 1 or self.survey is not None or not may_start_processes()
        for i, why in reasons.items():
            if not alone and len(left) > _CHUNK and time.perf_counter() - start > _ALONE:
                break
            yield self._row(i, why)
            del left[i]
        if len(left):
            yield from self._solve_elsewhere(left, workers)

    def _solve_elsewhere(self, left: dict[int, str], workers: int) -> Generator[Row, None, None]:
        indices = list(left)
        chunks = [indices[i : i + _CHUNK] for i in range(0, len(indices), _CHUNK)]
        calls = ((self._part(chunk), chunk, [left[i] for i in chunk]) for chunk in chunks)
        found = finished_results(_solved, calls, min(workers, len(chunks)))
        try:
            for rows in found:
                for row in rows:
                    del left[row.index]
                    yield row
        except WorkerDied:  # killed, or out of memory: the remaining rows are solved in this process
            for i, why in left.items():
                yield self._row(i, why)
        finally:
            found.close()

    def _part(self, chunk: Sequence[int]) -> Rows:
        arms = self.arms if self.shared else self.arms[chunk]
        bandits = tuple(self.bandits[i] for i in chunk) if self.bandits else ()
        return Rows(arms, self.shared, self.gaps[chunk], self.levels[chunk], self.tol, bandits=bandits)

    def _row(self, i: int, why: str, name: int | None = None) -> Row:
        name = i if name is None else name
        try:
            arms = self.arms if self.shared else arm_matrix(self.arms[i])
            # BLAS on one thread, as in a worker process: the last bits depend on it
            with single_threaded() if self.survey is None else nullcontext():
                if self.bandits:
                    s = solve(regret(self.bandits[i]), tol=self.tol)
                else:
                    s = ordinary_solution(arms, self.gaps[i], float(self.levels[i]), self.tol, why, self.survey)
        except AllocoptError as error:
            nothing = np.full(self.gaps.shape[1], np.nan)
            return Row(name, np.nan, np.nan, Status.FAILED, nothing, nothing, str(error))
        reason = None if s.status in (Status.CERTIFIED, Status.CONDITIONAL) else str(s.stats["reason"])
        return Row(name, s.lower, s.upper, s.status, s.allocation, s.multipliers, reason, s.assumptions)


def _solved(part: Rows, names: Sequence[int], reasons: Sequence[str]) -> list[Row]:
    """Solve a chunk in a worker process."""
    return [part._row(i, why, name) for i, (name, why) in enumerate(zip(names, reasons, strict=True))]
