"""Playing all cells (policy, instance, horizon) within a budget of processor time, each resumable on its own.

Horizons are played in increasing order. What a run costs is tried for short ones, and continued from there for longer ones.
Every horizon has its share of the budget, which is poured over its cells until each has the runs that it may have at most, or its
share is used up. Cells that cannot have `LEAST_RUNS` are left out, and said to be.
The runs of a cell are written down before it is played, so that a second call goes on with the same ones.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from allocopt import policies, simulate
from allocopt.base.atomic_files import whole_file
from allocopt.base.errors import SolverFailed
from allocopt.base.long_runs.processes import finished_results
from arena.entries import CLAIM_OPTIMALITY, INSTANCES, POLICIES, Entry

__all__ = ["HORIZONS", "SEED", "Arena", "Cell", "Played"]

SEED = 2017  # the year of the paper; the same for all policies, so that run i meets the same noise
HORIZONS = {
    10**3: (0.10, 400), 10**4: (0.14, 400), 10**5: (0.20, 200), 10**6: (0.26, 100), 10**7: (0.24, 40), 10**8: (0.06, 100),
}  # fmt: skip
"""n → share of the budget, most runs of a cell."""
LEAST_RUNS = 4
BLOCKWISE_FROM = 10**6  # below, all policies meet the same noise round by round
ONLY_BLOCKWISE_FROM = 10**8
OVERHEAD = 0.03  # seconds of a cell beside its rounds: the folder, the state
TRIED_TO = 10**4  # horizons for which a run of every cell is tried
SOLVE_OFTEN = ("AllocationTracking", "OSSB", "OAM")  # costs of these do not grow like their rounds
LATEST = 1.1  # of the budget: nothing is begun after this
SLOW_TRIAL = 0.3  # seconds of a run, beyond which it is not tried for ten times as many rounds
LONGEST_TRIAL = 10**5  # rounds up to which a cell whose time was not noted is tried for it
SLOWEST_TRIAL = 20.0  # seconds for one run, beyond which a cell is left out


class Cell(NamedTuple):
    """A policy on an instance for so many rounds."""

    policy: str
    instance: str
    horizon: int

    @property
    def blockwise(self) -> bool:
        """Whether its rounds are drawn block by block."""
        return self.horizon >= BLOCKWISE_FROM and policies.parse(self.policy).run_blocks is not None

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return re.sub(r"[^0-9A-Za-z.=()-]+", "_", f"{self.policy} {self.instance} {self.horizon}")


class Played(NamedTuple):
    """What came of a cell."""

    cell: Cell
    regret: np.ndarray
    """Of each run, after the last round."""
    seconds: float
    """Of processor time, of one run."""
    failure: str = ""
    """Why it could not be played."""


def play(cell: Cell, runs: int, folder: str) -> Played:
    """Play a cell, or read what is left of it; in a worker."""
    bandit = _bandit(cell.instance)
    path = Path(folder) / cell.folder
    timing = path.with_name(f"{path.name}.json")  # names have points of their own
    here_before, begun = path.exists(), time.process_time()
    try:
        r = simulate(
            cell.policy, bandit, cell.horizon, runs, rng=SEED, times=[cell.horizon], keep_pulls=False, workers=1,
            blockwise=cell.blockwise, checkpoint=path,
        )  # fmt: skip
    except SolverFailed as failure:
        return Played(cell, np.zeros(0), np.inf, str(failure))
    if timing.exists():
        seconds = float(json.loads(timing.read_text())["seconds"])
    else:
        seconds = (time.process_time() - begun) / runs
        if here_before:  # then a part was read, and not played
            seconds = trial(cell)[1] if cell.horizon <= LONGEST_TRIAL else np.nan
        with whole_file(timing, overwrite=True, what="the time") as out:
            out.write(json.dumps({"seconds": seconds}).encode())
    return Played(cell, r.final_regret, seconds)


def trial(cell: Cell, seed: int = 0) -> tuple[Cell, float]:
    """Seconds of one run, without what a simulation costs beside its runs; less exact if it is slow."""
    bandit = _bandit(cell.instance)

    def seconds(runs: int) -> float:
        begun = time.process_time()
        simulate(
            cell.policy, bandit, cell.horizon, runs, rng=seed, times=[cell.horizon], blockwise=cell.blockwise, workers=1
        )
        return time.process_time() - begun

    try:
        simulate(
            cell.policy, bandit, 10, 1, rng=seed, blockwise=cell.blockwise, workers=1
        )  # compiles, or loads what was compiled
        first = seconds(1)
    except SolverFailed:
        return cell, 0.01  # playing it will say so
    one = min(first, seconds(1)) if first < SLOW_TRIAL else first
    return cell, max((seconds(4) - one) / 3.0, 0.1 * one) if one < 0.02 else one


def _bandit(name: str) -> Any:
    return next(e.bandit for e in INSTANCES if e.name == name)


@dataclass
class Arena:
    """The cells of a call, and what is known of them."""

    budget: float
    """Seconds of wall clock."""
    workers: int
    folder: Path
    entries: tuple[Entry, ...] = INSTANCES
    names: tuple[str, ...] = POLICIES
    longest: int = 10**8
    client: Any = None
    say: Callable[[str], None] = print
    played: dict[Cell, Played] = field(default_factory=dict)
    left_out: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    late: float = np.inf
    """When nothing is begun any more."""
    seconds: dict[Cell, float] = field(default_factory=dict)
    """Of one run, as tried or played."""

    def play(self) -> None:
        """All horizons, shortest first; what is left of the wall clock is shared out anew before each."""
        shares = {n: share for n, (share, _) in HORIZONS.items() if n <= self.longest}
        started, efficiency = time.perf_counter(), 1.0
        self.late = started + LATEST * self.budget
        for n, share in shares.items():
            begun = time.perf_counter()
            left = max(self.budget - (begun - started), 0.05 * self.budget)
            wall = left * share / sum(x for m, x in shares.items() if m >= n)
            wanted = self._wanted(n, self.workers * wall * efficiency)
            tasks = [(cell, runs, str(self.folder)) for cell, runs in sorted(wanted.items(), key=lambda x: -x[1])]
            used = 0.0
            for found in self._results(play, self._in_time(tasks)):
                if found.failure:
                    self.failed[found.cell] = found.failure
                    continue
                self.played[found.cell] = found
                if n > TRIED_TO and np.isfinite(found.seconds):
                    self.seconds[found.cell] = found.seconds
                used += np.nan_to_num(found.seconds) * len(found.regret)
            took = time.perf_counter() - begun
            missing = [cell for cell in wanted if cell not in self.played and cell not in self.failed]
            self.left_out += missing
            if took > 5.0:  # others may use the machine as well
                efficiency = min(1.0, max(0.4, used / (self.workers * took)))
            self.say(
                f"n = {n:.0e}: {len(wanted) - len(missing)} cells, {sum(wanted.values())} runs, {took:.0f} s (planned {wall:.0f} s)"
                + (f"; {len(missing)} cells were too late, the next call plays them" if missing else "")
            )

    def _in_time(self, tasks: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Tasks, as long as there is time to begin one."""
        return (task for task in tasks if time.perf_counter() < self.late)

    def _results(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        if self.client is not None:
            yield from self.client.gather([self.client.submit(function, *task, pure=False) for task in tasks])
        elif self.workers == 1:
            yield from (function(*task) for task in tasks)
        else:
            yield from finished_results(function, iter(tasks), self.workers)

    def _wanted(self, n: int, seconds: float) -> dict[Cell, int]:
        """Runs of each cell, from the plan that is there or by pouring ``seconds`` over the cells."""
        path = self.folder / f"plan-{n}.json"
        cells = [Cell(p, e.name, n) for p in self.names for e in self.entries]
        if n >= ONLY_BLOCKWISE_FROM:
            cells = [c for c in cells if c.blockwise and c.policy in CLAIM_OPTIMALITY]
        known: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}
        new = [c for c in cells if c.folder not in known]
        if new:
            begun = time.perf_counter()
            costs = self._costs(new)
            rest = seconds - self.workers * (time.perf_counter() - begun) - OVERHEAD * len(new)
            tried = {c: x for c, x in costs.items() if x <= SLOWEST_TRIAL}
            poured = pour(tried, max(rest, 0.2 * seconds), HORIZONS[n][1])
            # what there was no time to try is not planned: the next call tries it
            known |= {c.folder: [poured.get(c, 0), costs[c]] for c in new if np.isfinite(costs[c])}
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path, overwrite=True, what="the plan") as out:
                out.write(json.dumps(known, indent=0).encode())
        self.seconds |= {c: known[c.folder][1] for c in cells if c.folder in known}
        wanted = {c: int(known.get(c.folder, [0])[0]) for c in cells}
        self.left_out += [c for c in cells if not wanted[c]]
        return {c: runs for c, runs in wanted.items() if runs}

    def _costs(self, cells: list[Cell]) -> dict[Cell, float]:
        """Seconds of one run of each cell: tried where that is quick, else continued from n/100 and n/10 as rounds and solves go."""
        unknown = []
        for cell in cells:
            small, large = (self.seconds.get(cell._replace(horizon=cell.horizon // x), np.inf) for x in (100, 10))
            quick = cell.horizon == min(HORIZONS) or large < SLOW_TRIAL
            if quick and (cell.horizon <= TRIED_TO or cell.blockwise):
                unknown.append(cell)
            else:
                grows = large + 10.0 * max(large - small, 0.0) if np.isfinite(large) else np.inf
                self.seconds[cell] = max(grows, 3.0 * large) if cell.policy in SOLVE_OFTEN else 10.0 * large
        self.seconds |= dict(self._results(trial, self._in_time([(cell,) for cell in unknown])))
        return {cell: self.seconds.get(cell, np.inf) for cell in cells}


def pour(costs: dict[Cell, float], seconds: float, most: int) -> dict[Cell, int]:
    """Runs of each cell: as many seconds to each as to any other, but no more than ``most`` runs; none below `LEAST_RUNS`."""
    left, waiting, runs = seconds, sorted(costs, key=lambda c: costs[c]), {}
    for place, cell in enumerate(waiting):
        share = left / (len(waiting) - place)
        count = min(most, int(share / costs[cell]))
        if count >= LEAST_RUNS:
            runs[cell] = count
            left -= count * costs[cell]
    return runs
