"""Every public entry point at three sizes, with time and memory, so that no cliff can hide.

    python benchmarks/entry_points.py                       everything; writes benchmarks/ENTRY_POINTS.md
    python benchmarks/entry_points.py --only hardness       the entry of this name, else those whose name contains it
    python benchmarks/entry_points.py --sizes 100 10000     some of the sizes; others than those of the table are printed only

Each cell is a process of its own, with a limit on its time and memory; making the arms and loading the package are not counted. Arms
are those of `random_unit` in ten dimensions. A refusal is a legitimate cell: its words are listed below the table. Cells are kept line
by line in entry_points.jsonl, the last one counts, and the table is written anew after every row: a run may be stopped at any time.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import datetime
import json
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import allocopt as ao
from allocopt.base.machine import available_cores

HERE = Path(__file__).resolve().parent
KEPT = HERE / "entry_points.jsonl"
SIZES = (100, 10_000, 1_000_000)
DIM = 10
SECONDS = 120
CLOCK = 15 * SECONDS  # other processes may take most of the machine
MEMORY = 6 * 2**30
TICK = 0.01  # seconds of processor time that the system may count in
TOL = 1e-6
ROUNDS = 10_000


REMARKS = """What is slow, and why:

- `verify(exact=True)` is the referee in plain Python: about 0.7 ms an arm, in rationals, which it says beforehand. `verify()`
  proves the same block by block.
- `load_solution` reads numbers as text and proves them block by block: most of its time is Python's JSON.
- `finite_time_bound` solves linear programs with a column for every arm; nothing screens arms yet. It says beforehand how
  long it takes.
- Simulations look at every arm in every round: 10,000 rounds of a million arms are 10^11 multiplications.
- Programs that are not solved block by block (best_arm, top_m, threshold, duelling, narrow optimism, general bounds) keep the arms,
  their quotient and the canonical arrays of features and targets: about 1 GB for a million arms, twice that for top_m with m = 3.
- The HTML report solves again without each of the arms in use, and draws pictures; it keeps the canonical arrays of all arms.
- `side_observations` of a million arms solves linear programs with as many variables.
- `ContextualBandit` looks at every context by itself, in some 60 µs: that is most of the rows with 333,333 contexts of three arms.
"""


class Set:
    """Arms of one size, and what other entry points begin from; made before the clock starts."""

    def __init__(self, n_arms: int) -> None:
        self.n = n_arms
        rng = np.random.default_rng(0)
        self.arms = rng.normal(size=(n_arms, DIM))
        self.arms /= np.linalg.norm(self.arms, axis=1)[:, None]
        self.arms.flags.writeable = False
        theta = rng.normal(size=DIM)
        self.theta = theta / np.linalg.norm(theta)
        self.pulls = rng.integers(0, 5, n_arms).astype(np.float64)
        self.folder = Path(tempfile.mkdtemp())

    @cached_property
    def bandit(self) -> ao.LinearBandit:
        """The bandit of these arms."""
        return ao.LinearBandit(self.arms, self.theta)

    @cached_property
    def solution(self) -> ao.Solution:
        """The regret program, solved."""
        return ao.solve(ao.programs.regret(self.bandit), tol=TOL)

    @cached_property
    def in_plane(self) -> ao.Solution:
        """The regret program of the first two coordinates, solved."""
        return ao.regret_constant(self.arms[:, :2], self.theta[:2], tol=TOL)

    @cached_property
    def proof(self) -> Path:
        """Its proof file."""
        path = self.folder / "proof.json"
        self.solution.save(path)
        return path

    @cached_property
    def simulated(self) -> ao.SimulationResult:
        """A hundred rounds."""
        return ao.simulate("LinUCB", self.bandit, 100, runs=2, rng=0)

    @cached_property
    def audited(self) -> ao.Audit:
        """Some pulls of every arm, beside the optimal ones."""
        return ao.audit(self.bandit, self.pulls, int(self.pulls.sum()), solution=self.solution)

    def in_triples(self) -> ao.ContextualBandit:
        """Contexts of three arms."""
        return ao.ContextualBandit(list(self.arms[: self.n // 3 * 3].reshape(-1, 3, DIM)), self.theta)

    def ring(self) -> Any:
        """Variances with which every arm shows itself and the next one."""
        from scipy import sparse

        places = np.arange(self.n)
        both = np.concatenate([places, places]), np.concatenate([places, (places + 1) % self.n])
        return sparse.csr_matrix((np.ones(2 * self.n), both))

    def solved(self, make: Callable[..., Any], *more: Any, **how: Any) -> ao.Solution:
        """One of the programs, made and solved."""
        found = ao.solve(make(self.bandit, *more), tol=TOL, **how)
        if found.status.name not in ("CERTIFIED", "CONDITIONAL"):
            raise RuntimeError(f"{found.status.name}: {found.stats.get('reason')}")
        return found

    def duels(self) -> ao.LinearBandit:
        """So few arms that their pairs are as many as the arms."""
        few = max(int(np.sqrt(2 * self.n)), 3)
        return ao.LinearBandit(self.arms[:few], self.theta)


def studied(s: Set) -> Any:
    """A study of two instances of this size."""
    spec = {
        "quantities": ["c"], "repeats": 2, "family": {"name": "random-unit"}, "grid": {"dim": [DIM], "n_arms": [s.n]},
    }  # fmt: skip
    return ao.study(spec, s.folder / "study", workers=1)


ENTRIES: dict[str, tuple[str, Callable[[Set], Any]]] = {
    # name: (what is made before the clock starts, what is measured)
    "LinearBandit": ("", lambda s: s.bandit),
    "regret_constant": ("", lambda s: ao.regret_constant(s.arms, s.theta, tol=TOL)),
    "solve regret": ("bandit", lambda s: s.solved(ao.programs.regret)),
    "solve regret, variances": ("", lambda s: ao.regret_constant(s.arms, s.theta, 0.5 + s.pulls, tol=TOL)),
    "solve regret, frank-wolfe 1e-3": (
        "bandit", lambda s: ao.solve(ao.programs.regret(s.bandit), method="frank-wolfe", tol=1e-3),
    ),
    "solve horizon": ("bandit", lambda s: ao.optimal_pulls(s.arms, s.bandit.gaps, 10**6, tol=TOL)),
    "solve g_optimal": ("", lambda s: ao.solve(ao.programs.g_optimal(s.arms), tol=TOL)),
    "solve optimism": ("bandit", lambda s: s.solved(ao.programs.optimism, 1.0)),
    "solve optimism, narrow": ("bandit", lambda s: s.solved(ao.programs.optimism, 0.49)),
    "solve remaining": ("bandit", lambda s: s.solved(ao.programs.remaining, s.pulls, 10**6)),
    "solve best_arm": ("bandit", lambda s: s.solved(ao.programs.best_arm)),
    "solve top_m": ("bandit", lambda s: s.solved(ao.programs.top_m, 3)),
    "solve threshold": ("bandit", lambda s: s.solved(ao.programs.threshold, 0.05)),
    "solve duelling (as many pairs)": ("", lambda s: ao.solve(ao.programs.duelling(s.duels()), tol=TOL)),
    "solve transductive (1,000 arms, as many items)": (
        "", lambda s: ao.solve(ao.programs.transductive(s.arms[:1000], s.arms, s.theta), tol=TOL),
    ),
    "solve contextual (in ten contexts)": (
        "", lambda s: ao.solve(
            ao.programs.contextual(ao.ContextualBandit(np.array_split(s.arms, 10), s.theta)), tol=TOL),
    ),
    "solve general, l and u": (
        "bandit", lambda s: ao.solve(
            ao.AllocationProgram(s.arms, np.ones(s.n), s.arms[:1000], np.ones(min(s.n, 1000)), np.full(s.n, 1e-7),
                                 np.full(s.n, 1e3)), tol=TOL),
    ),
    "solve general, two rows an arm": (
        "", lambda s: ao.solve(
            ao.AllocationProgram(s.arms.reshape(-1, 2, DIM), np.ones(s.n // 2), s.arms[:1000], np.ones(min(s.n, 1000))), tol=TOL),
    ),
    "solve semi_bandit": (
        "", lambda s: ao.solve(ao.programs.semi_bandit(np.abs(s.arms) > 0.2, np.abs(s.theta)), tol=TOL),
    ),
    "solve side_observations (a ring)": (
        "", lambda s: ao.solve(ao.programs.side_observations(s.arms[:, 0], s.ring()), tol=TOL),
    ),
    "solve contextual (contexts of three arms)": ("", lambda s: ao.solve(ao.programs.contextual(s.in_triples()), tol=TOL)),
    "solve contextual, budget (contexts of three arms)": (
        "", lambda s: ao.solve(ao.programs.contextual(s.in_triples(), budget=1e9 * s.n), tol=TOL),
    ),
    "Allocator.solve": ("bandit", lambda s: ao.Allocator(s.arms).solve(s.bandit.gaps)),
    "solve_many, 5 gap vectors": ("bandit", lambda s: ao.solve_many(s.arms, np.tile(s.bandit.gaps, (5, 1)), tol=TOL)),
    "Solution.verify": ("solution", lambda s: s.solution.verify()),
    "Solution.verify exact": ("solution", lambda s: s.solution.verify(exact=True)),
    "Solution.save": ("solution", lambda s: s.solution.save(s.folder / "p.json")),
    "load_solution": ("proof", lambda s: ao.load_solution(s.proof)),
    "Solution repr, table": ("solution", lambda s: (repr(s.solution), s.solution._repr_html_())),
    "Solution.to_frame, to_latex": ("solution", lambda s: (s.solution.to_frame(), s.solution.to_latex())),
    "barycentric_spanner": ("", lambda s: ao.barycentric_spanner(s.arms)),
    "hardness, summary": ("bandit", lambda s: repr(ao.hardness(s.bandit))),
    "hardness, report as HTML": ("bandit", lambda s: ao.hardness(s.bandit).to_html()),
    "finite_time_bound": ("bandit", lambda s: ao.finite_time_bound(s.bandit, 10**4, 200.0)),
    "audit": ("solution", lambda s: ao.audit(s.bandit, s.pulls, int(s.pulls.sum()), solution=s.solution)),
    "Schedule.from_solution": ("solution", lambda s: ao.Schedule.from_solution(s.solution, 10**6)),
    "plots.allocation": ("solution", lambda s: s.solution.plot()),
    "plots.geometry (in the plane)": (
        "in_plane", lambda s: ao.plots.geometry(s.in_plane.program.origin.bandit, s.in_plane),
    ),
    "plots.gap_information": ("bandit", lambda s: ao.plots.gap_information(s.bandit)),
    "plots.audit_bars": ("audited", lambda s: ao.plots.audit_bars(s.audited)),
    "plots.pulls_over_time, SimulationResult.plot": (
        "simulated", lambda s: (ao.plots.pulls_over_time(s.simulated), s.simulated.plot()),
    ),
    "compare": ("simulated", lambda s: repr(ao.compare(s.simulated, s.simulated))),
    "simulate LinUCB": ("bandit", lambda s: ao.simulate("LinUCB", s.bandit, ROUNDS, runs=1, rng=0)),
    "simulate LinTS": ("bandit", lambda s: ao.simulate("LinTS", s.bandit, ROUNDS, runs=1, rng=0)),
    "simulate EndOfOptimism": ("bandit", lambda s: ao.simulate("EndOfOptimism", s.bandit, ROUNDS, runs=1, rng=0)),
    "study of two instances": ("", studied),
    "instances.random_unit": ("", lambda s: ao.instances.random_unit(DIM, s.n)),
}  # fmt: skip


def resident() -> float:
    """MB of this process in memory."""
    return float(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(name: str, size: int) -> dict[str, Any]:
    """One cell, in this process."""
    before, run = ENTRIES[name]
    run(Set(SIZES[0]))  # what loads and compiles belongs to no size
    s = Set(size)
    if before:
        getattr(s, before)
    start, over, peak = resident(), threading.Event(), [0.0]

    def watch() -> None:
        while not over.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter(), time.process_time()
    try:
        run(s)
    finally:
        seconds = time.perf_counter() - started[0], time.process_time() - started[1]
        over.set()
        watcher.join()
    return {"seconds": seconds[0], "processor": seconds[1], "memory": max(max(peak[0], resident()) - start, 0.0)}


def child(name: str, size: int) -> None:
    """What a process of its own does: one cell, as one line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    warnings.simplefilter("ignore")
    try:
        found = measured(name, size)
    except ao.AllocoptError as refusal:
        found = {"refused": f"{type(refusal).__name__}: {refusal}"}
    except MemoryError as failure:
        found = {"failed": f"MemoryError: {failure}"}
    except Exception as failure:
        found = {"failed": f"{type(failure).__name__}: {failure}"}
    print(json.dumps(found))


def cell(name: str, size: int) -> dict[str, Any]:
    """One cell, in a process of its own."""
    command = [sys.executable, __file__, "--cell", name, str(size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLOCK)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {CLOCK} s on the clock"}
    if done.returncode == -signal.SIGXCPU:
        return {"failed": f"more than {SECONDS} s of processor time"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        return {"failed": last[0]}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def shown(found: dict[str, Any], notes: list[str]) -> str:
    """A cell of the table; words go below it."""
    for what in ("refused", "failed"):
        if what in found:
            if found[what] not in notes:
                notes.append(found[what])
            return f"{what} [{notes.index(found[what]) + 1}]"
    if "processor" not in found:
        return "not measured"
    seconds = found["processor"]
    short = f"{seconds * 1e3:.3g} ms" if seconds >= TICK else f"< {TICK * 1e3:g} ms"
    time_text = short if seconds < 1 else f"{seconds:.3g} s"
    return f"{time_text}, {found['memory']:.0f} MB"


def page(rows: dict[str, list[dict[str, Any]]], sizes: list[int]) -> str:
    """The table as Markdown."""
    notes: list[str] = []
    lines = ["| entry point | " + " | ".join(f"{n:,} arms" for n in sizes) + " |", "|---|" + "--:|" * len(sizes)]
    lines += [f"| {name} | " + " | ".join(shown(found, notes) for found in row) + " |" for name, row in rows.items()]
    lines += ["", *(f"{i}. {note}" for i, note in enumerate(notes, 1))]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write ENTRY_POINTS.md where everything was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cell", nargs=2, metavar=("NAME", "SIZE"))
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options = parser.parse_args()
    if options.cell:
        child(options.cell[0], int(options.cell[1]))
        return
    for name in ENTRIES:
        if name == options.only or (options.only in name and options.only not in ENTRIES):
            found = [
                {"name": name, "arms": n, "date": f"{datetime.date.today()}", **cell(name, n)} for n in options.sizes
            ]
            print(f"{name}: {[shown(x, []) + ' ' + x.get('refused', x.get('failed', '')) for x in found]}", flush=True)
            with KEPT.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(x) + "\n" for x in found if x["arms"] in SIZES)
            write_table()


def write_table() -> None:
    """ENTRY_POINTS.md from the cells that are kept."""
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    kept = {(x["name"], x["arms"]): x for x in map(json.loads, lines)}
    rows = {name: [kept.get((name, n), {}) for n in SIZES] for name in ENTRIES}
    dates = sorted({x["date"] for x in kept.values()})
    about = (
        f"`make entry-points`, {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}: allocopt {ao.__version__}, Python "
        f"{platform.python_version()}, {available_cores()} cores. Arms of `random_unit` in {DIM} dimensions; answers certified to "
        f"{TOL:g} where nothing else is said; simulations play {ROUNDS:,} rounds. Processor time, in which other processes do not "
        f"count, and how much memory grew while it ran; the arms themselves are {8 * DIM * SIZES[-1] / 1e6:.0f} MB for a million. "
        f"Each cell is a process of its own, which ends after {SECONDS} s or with {MEMORY / 2**30:.0f} GB."
    )
    (HERE / "ENTRY_POINTS.md").write_text(
        f"# Every entry point at every size\n\n{about}\n\n{page(rows, list(SIZES))}\n{REMARKS}", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
