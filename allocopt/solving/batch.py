"""solve_many: thousands of small programs at once, on all cores; a bad row is a failed row, never an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.machine import available_cores
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.base.validation import Array, ArrayLike, in_range, positive_number, whole_number
from allocopt.certify.verdict import recertify
from allocopt.linear.assumptions import Assumption, assuming
from allocopt.linear.floating import GAP_ERROR
from allocopt.model.arms.survey import surveyed
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import at_level, regret
from allocopt.model.solution import Solution, Status
from allocopt.model.tables import Table, Tabular
from allocopt.solving.allocator import MOST_ARMS, why_not_compiled
from allocopt.solving.compiled_rows import in_units, quotient_rows
from allocopt.solving.ordinary_rows import Rows
from allocopt.solving.roads.batch_input import instances, say_if_long, variances_of
from allocopt.solving.roads.machine_code import compiled_kernel, say_if_slow

__all__ = ["BatchSolution", "solve_many"]

_CHUNK = 64  # rows handed to a thread at a time: some milliseconds of work, so that progress is seen

BatchCallback = Callable[[int, int], object]
"""Called with (rows done, rows in all) from the calling thread; what it raises stops the batch."""


@dataclass(frozen=True, eq=False)
class BatchSolution(Tabular):
    """The certified answers to a batch, one row each; ``solution(i)`` is a row as a `Solution`.

    Attributes
    ----------
    lower, upper : array, shape (n,)
        Certified bounds of each row, ``upper`` the cost of ``allocation``; nan where the row was no valid instance.
    allocation : array, shape (n, k)
        α; inf on free arms.
    multipliers : array, shape (n, k)
        λ.
    status : array of Status, shape (n,)
        What is proven of each row.
    reasons : mapping
        Row → why it is not CERTIFIED, or what it assumes.
    not_compiled : mapping
        Row → why the compiled kernel left it to `allocopt.solve`.
    arms : array, shape (k, d) or (n, k, d)
        The arms that all rows share, or those of each.
    gaps : array, shape (n, k)
        Δ of every arm.
    levels : array, shape (n,)
        2σ² of each row, or the level that was asked for.
    tol : float
        The relative gap that was asked for.
    assumptions : mapping
        Row → what it takes for granted, where it is CONDITIONAL.
    bandits : tuple of LinearBandit
        The rows as bandits, where they were given so.
    """

    lower: Array
    upper: Array
    allocation: Array
    multipliers: Array
    status: NDArray[np.object_]
    reasons: Mapping[int, str]
    not_compiled: Mapping[int, str]
    arms: Array
    gaps: Array
    levels: Array
    """2σ² of each row, or the level that was asked for; 2 where a bandit has a variance per arm."""
    tol: float
    assumptions: Mapping[int, tuple[Assumption, ...]]
    bandits: tuple[LinearBandit, ...] = ()

    @property
    def value(self) -> Array:
        """The upper bounds."""
        return self.upper

    @property
    def gap(self) -> Array:
        """(upper − lower)/lower per row; inf where nothing is proven."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(self.lower > 0, (self.upper - self.lower) / self.lower, np.inf)
        gap[self.upper == self.lower] = 0.0
        return gap

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which rows are CERTIFIED."""
        return np.array([s is Status.CERTIFIED for s in self.status], dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.lower)

    def _table(self) -> Table:
        names = [s.name for s in self.status]
        columns: dict[str, Any] = {
            "row": np.arange(len(self)),
            "value": self.upper,
            "lower": self.lower,
            "gap": self.gap,
        }
        columns |= {"status": names, "reason": [self.reasons.get(i, "") for i in range(len(self))]}
        facts = {name.lower(): names.count(name) for name in sorted(set(names))}
        first = np.argsort(self.certified, kind="stable")[:100].tolist()
        return Table(f"{len(self):,} programs", facts, columns, first)

    def solution(self, row: int) -> Solution:
        """One row as a `Solution`, e.g. to ``verify()`` or ``save()`` it; its bounds are computed anew."""
        if row not in range(-len(self), len(self)):
            raise InvalidOption(f"row: expected a number from 0 to {len(self) - 1}, got {row!r}")
        row = int(row) % len(self)
        if np.isnan(self.upper[row]):
            raise InvalidInstance(f"row {row} is no valid instance: {self.reasons[row]}")
        if self.bandits:
            program = regret(self.bandits[row])
        else:
            arms = self.arms if len(self.arms.shape) == 2 else self.arms[row]
            program = at_level(arms, self.gaps[row], float(self.levels[row]))
        allocation, multipliers = self.allocation[row], self.multipliers[row]
        return recertify(program, allocation, multipliers, "interior-point", self.tol, {"row": row})

    def __repr__(self) -> str:
        counts = {s.name: sum(t is s for t in self.status) for s in Status}
        named = "".join(f", {name}={count}" for name, count in counts.items() if count)
        return f"BatchSolution(n={len(self)}, n_arms={self.gaps.shape[1]}{named})"


@spelled
def solve_many(
    arms: ArrayLike,
    gaps: ArrayLike | None = None,
    *,
    level: float = 2.0,
    tol: float = DEFAULT_TOL,
    workers: int | None = None,
    callback: BatchCallback | None = None,
) -> BatchSolution:
    r"""Solve the regret (horizon) programs of many gap vectors, or of many bandits, at once.

    Parameters
    ----------
    arms : array_like, shape (k, d) or (n, k, d), or a sequence of LinearBandit
        Arms that all rows share, or those of each row. Bandits must have equally many arms and coordinates; they bring
        their own gaps and noise, which may be one variance per arm.
    gaps : array_like, shape (n, k)
        One vector of gaps in [0, ∞)^k per row; not with bandits.
    level : float
        The constraints are ||x||²_{H^-1} <= Δ_x²/level: 2σ² for the regret constant, f_n for the horizon program. Bandits
        bring their own (2σ²).
    tol : float
        Relative gap to reach.
    workers : int, optional
        Cores to use; all of them by default. The results do not depend on it.
    callback : callable, optional
        Called with (rows done, rows in all) now and then.

    Returns
    -------
    BatchSolution
        A row that cannot be solved has status FAILED and its reason in ``reasons``.

    Examples
    --------
    >>> batch = solve_many([[1, 0], [0, 1], [0.99, 0.02]], [[0, 1, 0.01], [0, 1, 0.1], [0, -1, 0]])
    >>> batch.value.round(6), [s.name for s in batch.status]
    (array([ 8.,  2., nan]), ['CERTIFIED', 'CERTIFIED', 'FAILED'])
    >>> batch.reasons[2]
    'gaps: expected entries >= 0, but entry 1 is -1.0'
    """
    tol = positive_number("tol", tol)
    level = positive_number("level", level)
    in_range("level", np.array([level]), InvalidOption)
    threads = available_cores() if workers is None else whole_number("workers", workers, least=1)
    if callback is not None and not callable(callback):
        raise InvalidOption(f"callback: expected a function, got a {type(callback).__name__}")
    own, shared, delta, levels = instances(arms, gaps, level)
    bandits: tuple[LinearBandit, ...] = tuple(cast("Sequence[LinearBandit]", arms)) if gaps is None else ()
    n, k = delta.shape
    say_if_long(n, k, int(own.shape[-1]), threads)
    lower, upper = np.full(n, np.nan), np.full(n, np.nan)
    allocation, multipliers = np.zeros((n, k)), np.zeros((n, k))
    status = np.full(n, Status.FAILED, dtype=object)
    reasons: dict[int, str] = {}
    not_compiled: dict[int, str] = {}

    listed = isinstance(own, np.ndarray)
    if k <= MOST_ARMS and listed:
        say_if_slow("solve_many")
    kernel = compiled_kernel() if k <= MOST_ARMS and listed else None
    if kernel is None:
        not_compiled = dict.fromkeys(range(n), why_not_compiled(k, listed))
    else:
        info = np.full((n, kernel.INFO), np.nan)
        codes = np.zeros(n, dtype=np.int64)
        gap_error = GAP_ERROR if bandits else 0.0
        sets = in_units(own[None] if shared else own)
        variances = variances_of(bandits, n, k)
        work = _Work(kernel, sets, delta, gap_error, variances, levels, tol, allocation, multipliers, info, codes)
        _run(work, n, threads, callback)
        lower[:], upper[:] = info[:, 0], info[:, 1]
        status[codes == kernel.CERTIFIED] = Status.CERTIFIED
        not_compiled = {int(i): kernel.REASONS[int(codes[i])] for i in np.flatnonzero(codes != kernel.CERTIFIED)}
    report = None if listed else surveyed(own)
    done = n - len(not_compiled)
    assumptions = {i: b.assumptions for i, b in enumerate(bandits) if b.assumptions}
    for i in assumptions:
        if status[i] is Status.CERTIFIED:
            status[i] = Status.CONDITIONAL
    with closing(Rows(own, shared, delta, levels, tol, report, bandits).solve(not_compiled, threads)) as rows:
        for row in rows:
            i = row.index
            lower[i], upper[i], status[i] = row.lower, row.upper, row.status
            allocation[i], multipliers[i] = row.allocation, row.multipliers
            if row.reason is not None:
                reasons[i] = row.reason
            if row.assumptions:
                assumptions[i] = row.assumptions
            done += 1
            if callback is not None:
                callback(done, n)
    for i, assumed in assumptions.items():
        if status[i] is Status.CONDITIONAL:
            reasons[i] = assuming(assumed)
    for array in (lower, upper, allocation, multipliers, status, delta, levels):
        array.flags.writeable = False
    ordered = dict(sorted(reasons.items()))
    return BatchSolution(
        lower,
        upper,
        allocation,
        multipliers,
        status,
        ordered,
        not_compiled,
        getattr(own, "listed", own),
        delta,
        levels,
        tol,
        dict(sorted(assumptions.items())),
        bandits,
    )


@dataclass(frozen=True, eq=False)
class _Work:
    """The arrays of a batch; threads fill disjoint rows of the last four."""

    kernel: ModuleType
    sets: Array
    gaps: Array
    gap_error: float
    variances: Array
    levels: Array
    tol: float
    allocation: Array
    multipliers: Array
    info: Array
    codes: NDArray[np.int64]

    def __call__(self, rows: range) -> int:
        """Solve some rows, each from a cold start so that nothing depends on its neighbours; the number that is certified."""
        kernel, tol = self.kernel, self.tol
        levels = self.levels.tolist()
        shared = len(self.sets) == 1
        known: dict[bytes, tuple[Array, int]] = {}
        work = np.empty(self.sets.shape[1:])
        for i in rows:
            gaps = self.gaps[i]
            if shared:
                key = (gaps == 0.0).tobytes()
                if key not in known:
                    work = np.empty(self.sets.shape[1:])
                    known[key] = work, quotient_rows(kernel, self.sets[0], gaps, work)
                work, rank = known[key]
            else:
                rank = quotient_rows(kernel, self.sets[i], gaps, work)
            if rank < 0:
                self.codes[i] = -rank
                continue
            self.codes[i] = kernel.solve_quotient(
                work,
                rank,
                gaps,
                self.gap_error,
                self.variances[i],
                gaps,
                levels[i],
                tol,
                False,
                self.allocation[i],
                self.multipliers[i],
                self.info[i],
            )
        return int((self.codes[rows.start : rows.stop] == kernel.CERTIFIED).sum())


def _run(work: _Work, n: int, threads: int, callback: BatchCallback | None) -> None:
    """Solve all rows, in chunks; the callback is called after each chunk."""
    chunks = [range(i, min(i + _CHUNK, n)) for i in range(0, n, _CHUNK)]
    if threads == 1 or len(chunks) <= 1:
        _report(map(work, chunks), n, callback)
        return
    with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
        futures = [pool.submit(work, chunk) for chunk in chunks]
        try:
            _report((f.result() for f in as_completed(futures)), n, callback)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _report(finished: Iterable[int], n: int, callback: BatchCallback | None) -> None:
    done = 0
    for count in finished:
        done += count
        if callback is not None:
            callback(done, n)
