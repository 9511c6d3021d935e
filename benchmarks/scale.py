r"""Large sets of arms: time in units of a pricing pass, the same arms again, memory, files, a cluster, growth, conditioning.

    python benchmarks/scale.py                  everything; writes benchmarks/SCALE.md and benchmarks/growth.png
    python benchmarks/scale.py --only memory    one section, which replaces its old text in SCALE.md
    python benchmarks/scale.py --quick          small sizes, printed only

Arms are those of `random_unit`: `default_rng(0)`, Gaussian unit-norm arms, then a unit θ. Whatever is measured for memory runs in
a process of its own, on a file that yet another process made. Temporary files (up to 1.1 GB) are removed at the end.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads; our own threads take the other cores

import argparse
import datetime
import importlib.metadata
import json
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import allocopt as ao
from allocopt.arms import LARGE, available_cores, block_rows, dask_npy
from allocopt.progress import Progress

HERE = Path(__file__).resolve().parent
TOL = 1e-6
TARGETS = {(20, 10**6): 12, (50, 10**6): 15, (100, 10**5): 60}
"""(d, k) → pricing passes that a certified solve may take."""
MEMORY = (50, 10**6)
MEMORY_SHARE = 1.25
MAPPED = (16, 10**7)
MAPPED_MEGABYTES = 400
GROWTH_ARMS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
GROWTH_DIMS = (5, 10, 20, 40, 80, 120)
GROWTH_FIXED = (20, 10_000)
"""d where k grows, k where d grows."""
AGAIN = ((5, 200), (20, 500), (20, 10**4), (20, 10**5), (20, 10**6), (50, 10**6))
AGAIN_REPEATS = 3
MOVE = 0.01  # relative change of the gaps
CONDITIONING = (20, 10**6)
NEAR_BEST = 50  # arms that get tiny gaps, in the families that have them
CENTRES = 1_000  # of the families of near-duplicates
ROOM = 2.0e9  # bytes of free disk that the temporary files ask for
SAMPLING = 0.002  # seconds between two looks at the memory


def say(message: str) -> None:
    """Progress, to stderr."""
    print(f"[{datetime.datetime.now():%H:%M:%S}] {message}", file=sys.stderr, flush=True)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict(met: bool) -> str:
    """One word."""
    return "met" if met else "**missed**"


def power(k: int) -> str:
    """A count of arms as people say it."""
    exponent = len(str(k)) - 1
    return f"1e{exponent}" if k == 10**exponent else f"{k:,}"


def span(counts: set[int]) -> str:
    """A few counts, as a range."""
    return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))


@dataclass
class Clock:
    """Wall-clock and processor seconds (all threads together); the latter hardly depend on what else the machine does."""

    wall: float = float("inf")
    processor: float = float("inf")

    @contextmanager
    def best(self) -> Iterator[None]:
        """Time the body; the fastest of all times so far is kept, by each clock."""
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.wall = min(self.wall, time.perf_counter() - wall)
        self.processor = min(self.processor, time.process_time() - processor)


# Instances


def unit_arms(dim: int, arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian unit-norm arms and a unit θ, seed 0."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(arms, dim))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    theta = rng.normal(size=dim)
    return rows, theta / np.linalg.norm(theta)


def make_file(path: str, dim: int, arms: int, dtype: str) -> dict[str, Any]:
    """`unit_arms`, made part by part into a .npy file; θ goes next to it."""
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(arms, dim))
    for start in range(0, arms, 250_000):
        rows = rng.normal(size=(min(250_000, arms - start), dim))
        out[start : start + len(rows)] = rows / np.linalg.norm(rows, axis=1)[:, None]
    out.flush()
    theta = rng.normal(size=dim)
    np.save(theta_of(path), theta / np.linalg.norm(theta))
    return {}


def theta_of(path: str) -> str:
    """The file of θ that belongs to a file of arms."""
    return f"{path}.theta.npy"


# Processes of their own


def in_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What one of the functions of `TASKS` returns in a fresh interpreter."""
    command = [sys.executable, str(Path(__file__).resolve()), "--task", json.dumps([function.__name__, *arguments])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{function.__name__}{arguments} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def memory() -> dict[str, float]:
    """VmRSS, RssAnon and RssFile of this process in MB."""
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon", "RssFile"):
            found[name] = float(value.split()[0]) * 1024 / 1e6
    return found


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """The largest of each figure of `memory` while the body runs."""
    peak = memory()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLING):
            for name, value in memory().items():
                peak[name] = max(peak[name], value)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def solve_file(path: str, mapped: bool) -> dict[str, Any]:
    """Solve for the arms of a file, loaded or mapped, and watch the memory from before they are opened."""
    import scipy.linalg

    import allocopt.solvers.streaming
    import allocopt.streamed  # noqa: F401  (imports are not what is measured)

    before = memory()
    with watched() as peak:
        arms = np.load(path, mmap_mode="r" if mapped else None)
        start = time.perf_counter()
        solution = ao.regret_constant(arms, np.load(theta_of(path)), tol=TOL)
        seconds = time.perf_counter() - start
    proven: dict[str, Any] = {}
    if mapped:
        with watched() as proving:
            proven = prove(solution)
        proven["peak"] = proving
    return {
        "proof": proven, "before": before, "peak": peak, "arms": arms.nbytes / 1e6, "seconds": seconds, "gap": solution.gap,
        "interval": [solution.lower, solution.upper], "status": solution.status.name,
        "passes": solution.stats["passes"], "scipy": scipy.__version__,
    }  # fmt: skip


def prove(solution: Any) -> dict[str, Any]:
    """Prove a solution anew from its arms."""
    start = time.perf_counter()
    proof = solution.verify()
    seconds = time.perf_counter() - start
    assert solution.lower <= proof.upper and proof.lower <= solution.upper
    return {"seconds": seconds, "interval": [proof.lower, proof.upper], "gap": proof.gap, "notes": list(proof.notes)}


def solve_on_cluster(path: str) -> dict[str, Any]:
    """Solve on two worker processes, and prove it there; then again, and kill one of them in the middle of a pass."""
    from distributed import Client, LocalCluster

    theta = np.load(theta_of(path))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        arms = dask_npy(path)
        start = time.perf_counter()
        calm = ao.regret_constant(arms, theta, tol=TOL)
        seconds = time.perf_counter() - start
        with watched() as proving:
            proven = prove(calm)
        proven["peak"] = proving
        pids: dict[str, int] = client.run(os.getpid)
        killed: dict[str, Any] = {}
        finished: list[float] = []

        def kill_while_pricing() -> None:
            while not killed:
                for worker, keys in client.processing().items():
                    if worker in pids and any("_scan_chunk" in str(key) for key in keys):
                        os.kill(pids[worker], signal.SIGKILL)
                        killed.update(at=time.perf_counter() - start, chunks=sum("_scan_chunk" in str(k) for k in keys))
                        return
                time.sleep(0.01)

        def after_pass(progress: Progress) -> None:
            finished.append(time.perf_counter() - start)
            if len(finished) == 1:
                threading.Thread(target=kill_while_pricing, daemon=True).start()

        start = time.perf_counter()
        hurt = ao.regret_constant(arms, theta, tol=TOL, callback=after_pass)
        hurt_seconds = time.perf_counter() - start
        lost = [pid for pid in pids.values() if pid not in client.run(os.getpid).values()]
    return {
        "proof": proven, "seconds": seconds, "interval": [calm.lower, calm.upper], "status": calm.status.name, "killed": killed,
        "hurt_seconds": hurt_seconds, "hurt_interval": [hurt.lower, hurt.upper], "hurt_status": hurt.status.name,
        "passes_ended": finished, "lost": len(lost), "chunks": arms.numblocks[0], "gap": calm.gap,
    }  # fmt: skip


TASKS: dict[str, Callable[..., dict[str, Any]]] = {f.__name__: f for f in (make_file, solve_file, solve_on_cluster)}


# Sections: each returns its text


def pricing_pass(rows: np.ndarray, by_blas: Clock, in_blocks: Clock) -> None:
    """One k×d by d×(d−1) product with row norms, on all cores: by BLAS in one go, and in blocks that fit caches.

    The first is what one would write; the second is faster for large k, and where BLAS's threads have to share the cores.
    """
    k, d = rows.shape
    basis = np.random.default_rng(1).normal(size=(d, d - 1))
    image = np.ones((k, d - 1))
    with threadpoolctl.threadpool_limits(available_cores(), user_api="blas"), by_blas.best():
        np.matmul(rows, basis, out=image)
        np.einsum("ij,ij->i", image, image)
    del image
    step = block_rows(d)

    def norms(first: int) -> np.ndarray:
        block = rows[first : first + step] @ basis
        return np.asarray(np.einsum("ij,ij->i", block, block))

    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        ThreadPoolExecutor(available_cores()) as pool,
        in_blocks.best(),
    ):
        list(pool.map(norms, range(0, k, step)))


def section_passes(quick: bool, folder: Path) -> str:
    """Certified solves in units of one pricing pass."""
    targets = {(20, 10**5): 12, (50, 10**5): 15} if quick else TARGETS
    lines = []
    for (dim, arms), target in targets.items():
        rows, theta = unit_arms(dim, arms)
        by_blas, in_blocks, solving = Clock(), Clock(), Clock()
        for _ in range(4):
            pricing_pass(rows, by_blas, in_blocks)
            with solving.best():
                solution = ao.regret_constant(rows, theta, tol=TOL)
        ratio = solving.wall / min(by_blas.wall, in_blocks.wall)
        work = solving.processor / min(by_blas.processor, in_blocks.processor)
        say(f"({dim}, {power(arms)}): {solving.wall:.3g} s, {ratio:.3g} passes ({work:.3g} by processor time)")
        lines.append([
            f"({dim}, {power(arms)})", f"{by_blas.wall:.3f}", f"{in_blocks.wall:.3f}", f"{solving.wall:.2f}",
            str(solution.stats["passes"]), f"{solution.value:.9g}", f"{solution.gap:.1e}", f"{ratio:.1f}", f"{work:.1f}",
            str(target), verdict(ratio <= target and solution.gap <= TOL),
        ])  # fmt: skip
    head = ["(d, k)", "one pass by BLAS, s", "one pass in blocks, s", "solve, s", "passes", "value", "certified gap",
            "solve / pass", "by processor time", "at most", ""]  # fmt: skip
    return f"""## Time, in pricing passes

One pass: a k×d by d×(d−1) product and the norms of its rows on all {available_cores()} cores, by BLAS into memory that is there,
or in blocks that fit a core's cache; the unit is the faster of the two.
The solve is `regret_constant(arms, theta, tol={TOL:g})` from the array to the certificate; *passes* are those over all arms in which
it priced them, a first look for bad entries and the best arm comes on top. The fastest of 4 each, taken in turns.

{table(head, lines)}
"""


def section_memory(quick: bool, folder: Path) -> str:
    """Peak memory with the arms in memory."""
    dim, arms = (50, 10**5) if quick else MEMORY
    path = str(folder / "memory.npy")
    in_process(make_file, path, dim, arms, "float64")
    found = in_process(solve_file, path, False)
    beyond = found["peak"]["VmRSS"] - found["before"]["VmRSS"]
    share = beyond / found["arms"]
    say(f"memory at ({dim}, {power(arms)}): {beyond:.0f} MB for {found['arms']:.0f} MB of arms")
    head = ["(d, k)", "arms, MB", "before loading, MB", "peak, MB", "peak − before, MB", "over arms", "at most", ""]
    line = [
        f"({dim}, {power(arms)})", f"{found['arms']:.0f}", f"{found['before']['VmRSS']:.0f}",
        f"{found['peak']['VmRSS']:.0f}", f"{beyond:.0f}", f"{share:.3f}",
        *(("-", "") if quick else (f"{MEMORY_SHARE}", verdict(share <= MEMORY_SHARE))),  # small sets: fixed costs weigh
    ]  # fmt: skip
    return f"""## Memory, arms in memory

VmRSS of /proc/self/status, looked at every {SAMPLING * 1e3:g} ms by a thread, in a new process that loads the arms with
`np.load` from a file made by another one. *Before* is the interpreter with all imports. Certified gap {found["gap"]:.1e}.

{table(head, [line])}
"""


def section_mapped(quick: bool, folder: Path) -> str:
    """Arms in a file, in one process and on a cluster."""
    dim, arms = (16, 10**6) if quick else MAPPED
    path = str(folder / "mapped.npy")
    say(f"making {power(arms)} × {dim} float32")
    in_process(make_file, path, dim, arms, "float32")
    one = in_process(solve_file, path, True)
    anonymous = one["peak"]["RssAnon"]
    say(f"mapped: {one['seconds']:.1f} s, peak RssAnon {anonymous:.0f} MB")
    head = ["k × d", "file, MB", "seconds", "passes", "certified gap", "peak RssAnon, MB", "of it after the imports, MB",
            "peak RssFile, MB", "at most, MB", ""]  # fmt: skip
    line = [
        f"{power(arms)} × {dim}", f"{one['arms']:.0f}", f"{one['seconds']:.1f}", str(one["passes"]), f"{one['gap']:.1e}",
        f"{anonymous:.0f}", f"{anonymous - one['before']['RssAnon']:.0f}", f"{one['peak']['RssFile']:.0f}",
        str(MAPPED_MEGABYTES), verdict(anonymous <= MAPPED_MEGABYTES and one["status"] == "CERTIFIED"),
    ]  # fmt: skip
    say("the same on a cluster of 2 worker processes, then with one of them killed")
    two = in_process(solve_on_cluster, path)
    middle = two["passes_ended"][0] < two["killed"]["at"] < two["passes_ended"][1]
    names = ("one process, mapped", "2 worker processes", "2 worker processes, one killed")
    intervals = (one["interval"], two["interval"], two["hurt_interval"])
    seconds = (one["seconds"], two["seconds"], two["hurt_seconds"])
    statuses = (one["status"], two["status"], two["hurt_status"])
    lines = [
        [name, f"{spent:.1f}", status, f"[{ends[0]!r}, {ends[1]!r}]", "yes" if ends == intervals[0] else "**no**"]
        for name, spent, status, ends in zip(names, seconds, statuses, intervals, strict=True)
    ]
    proofs = [
        [
            name, f"{found['seconds']:.1f}", f"{found['proof']['seconds']:.1f}", f"{found['gap']:.1e}",
            f"{found['proof']['gap']:.1e}", f"[{found['proof']['interval'][0]!r}, {found['proof']['interval'][1]!r}]",
            f"{found['proof']['peak']['RssAnon']:.0f}", str(MAPPED_MEGABYTES),
            verdict(
                found["proof"]["peak"]["RssAnon"] <= MAPPED_MEGABYTES
                and found["proof"]["gap"] <= TOL
                and not found["proof"]["notes"]
            ),
        ]
        for name, found in zip(names, (one, two), strict=False)
    ]  # fmt: skip
    proof_head = ["where", "solve, s", "verify(), s", "gap claimed", "gap proven", "proven interval", "peak RssAnon, MB",
                  "at most, MB", ""]  # fmt: skip
    proper = middle and two["lost"] == 1 and intervals[2] == intervals[0]
    return f"""## Arms in a file that is never loaded

float32, mapped by `np.load(..., mmap_mode="r")` in a new process. RssAnon of /proc/self/status is what is resident beyond the page
cache (RssFile, which the system takes back when it needs it), looked at every {SAMPLING * 1e3:g} ms; imports included.

{table(head, [line])}

The same file as a Dask array (`allocopt.arms.dask_npy(path)`, {two["chunks"]} chunks) on
`LocalCluster(n_workers=2, threads_per_worker=1, processes=True)`; then once more, and a worker gets `kill -9` while it prices
its chunks.

{table(["where", "seconds", "status", "interval", "same to the bit"], lines)}

The worker was killed {two["killed"]["at"]:.2f} s after the start, with {two["killed"]["chunks"]} of its chunks under way; the
passes that reported ended at {", ".join(f"{t:.2f}" for t in two["passes_ended"])} s.
Killed in the middle of a pass, finished with the same certificate: {verdict(proper)}.

`solution.verify()` of both, from the file and on the workers: the whole certificate anew, block by block. The memory is that of the
process that asks, while it proves (on a cluster, blocks are in the workers').

{table(proof_head, proofs)}
"""


def section_growth(quick: bool, folder: Path) -> str:
    """Time against k and against d, with fitted exponents, and the picture."""
    fixed_dim, fixed_arms = GROWTH_FIXED
    counts = GROWTH_ARMS[:5] if quick else GROWTH_ARMS
    dims = GROWTH_DIMS[:4] if quick else GROWTH_DIMS
    arms_clocks = [growth_point(fixed_dim, k) for k in counts]
    dim_clocks = [growth_point(d, fixed_arms) for d in dims]
    by_arms, by_dim = ([clock.processor for clock in clocks] for clocks in (arms_clocks, dim_clocks))
    fits = [exponent(sizes, seconds) for sizes, seconds in ((counts, by_arms), (dims, by_dim))]
    ends = [exponent(sizes[-3:], seconds[-3:]) for sizes, seconds in ((counts, by_arms), (dims, by_dim))]
    draw(folder / "growth.png" if quick else HERE / "growth.png", counts, by_arms, dims, by_dim)
    lines = [
        [power(k), f"{c.processor:.3g}", f"{c.wall:.3g}", "", "", ""] for k, c in zip(counts, arms_clocks, strict=True)
    ]
    for line, d, c in zip(lines, dims, dim_clocks, strict=False):
        line[3:] = [str(d), f"{c.processor:.3g}", f"{c.wall:.3g}"]
    seconds = ["processor seconds", "wall clock"]
    head = [f"k (d = {fixed_dim})", *seconds, f"d (k = {power(fixed_arms)})", *seconds]
    return f"""## Growth

Seconds to a certified {TOL:g}, the fastest of 4 (one run where that takes over 5 s); fitted and drawn are processor seconds of
all threads together, which hardly depend on what else the machine does. Fitted: time ~ k^{fits[0]:.2f} and
time ~ d^{fits[1]:.2f} over all sizes, k^{ends[0]:.2f} and d^{ends[1]:.2f} over the three largest. From {LARGE:,} entries on
(k = {LARGE // fixed_dim:,} here) arms are looked at block by block; below, they are an array like any other.

{table(head, lines)}

![time against k and against d](growth.png)
"""


def growth_point(dim: int, arms: int) -> Clock:
    """Seconds of a certified solve."""
    rows, theta = unit_arms(dim, arms)
    clock = Clock()
    for _ in range(4):
        with clock.best():
            solution = ao.regret_constant(rows, theta, tol=TOL)
        assert solution.gap <= TOL, (dim, arms, solution)
        if clock.processor > 5.0:
            break
    say(f"({dim}, {arms:,}): {clock.wall:.3g} s, {clock.processor:.3g} s of processors")
    return clock


def exponent(sizes: Any, seconds: list[float]) -> float:
    """The slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def draw(path: Path, counts: Any, by_arms: list[float], dims: Any, by_dim: list[float]) -> None:
    """The log–log picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    fixed_dim, fixed_arms = GROWTH_FIXED
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axes, sizes, seconds, name, label, title, colour in (
        (left, counts, by_arms, "k", "number of arms k", f"d = {fixed_dim}", "#0072B2"),
        (right, dims, by_dim, "d", "dimension d", f"k = {fixed_arms:,}", "#D55E00"),
    ):
        axes.loglog(sizes, seconds, "o", color=colour, label="measured", zorder=3)
        for part, style, which in ((slice(None), "--", "all"), (slice(-3, None), "-", "three largest")):
            x, y = np.log(sizes[part]), np.log(seconds[part])
            line = np.exp(np.polyval(np.polyfit(x, y, 1), x))
            fit = f"$\\sim {name}^{{{exponent(sizes[part], seconds[part]):.2f}}}$ ({which})"
            axes.loglog(sizes[part], line, style, color="#555555", linewidth=1.2, label=fit)
        axes.set(xlabel=label, ylabel=f"processor seconds to a certified {TOL:g}", title=title)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(True, which="major", alpha=0.3)
    left.axvline(LARGE / fixed_dim, color="#009E73", linestyle=":", label="block by block from here")
    right.xaxis.set_major_formatter(plain)
    right.xaxis.set_minor_locator(NullLocator())
    right.set_xticks(dims)
    for axes in (left, right):
        axes.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=150)


def conditioning_families(quick: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, arms, θ."""
    dim, arms = (20, 10**5) if quick else CONDITIONING
    rows, theta = unit_arms(dim, arms)
    yield "uniform on the sphere", rows, theta
    best = int(np.argmax(rows @ theta))
    rng = np.random.default_rng(2)
    for least in (1e-4, 1e-6, 1e-8):
        # arms around the best one whose gaps begin at `least`: they decide what has to be explored
        sideways = rng.normal(size=(NEAR_BEST, dim))
        sideways -= np.outer(sideways @ theta, theta)
        near = rows.copy()
        near[np.arange(best + 1, best + 1 + NEAR_BEST) % arms] = (
            rows[best] + 0.05 * sideways - least * np.outer(1.0 + np.arange(NEAR_BEST), theta)
        )
        yield f"{NEAR_BEST} arms near the best, gaps from {least:g}", near, theta
        del near
    for width in (1e-3, 1e-5, 1e-7):
        member = rng.integers(0, CENTRES, arms)
        yield f"{CENTRES} clusters, width {width:g}", rows[member] + width * rng.normal(size=(arms, dim)), theta


def section_conditioning(quick: bool, folder: Path) -> str:
    """What is reached where gaps are tiny or arms nearly equal."""
    lines = []
    for name, rows, theta in conditioning_families(quick):
        start = time.perf_counter()
        bandit = ao.LinearBandit(rows, theta)
        solution = ao.solve(ao.programs.regret(bandit), tol=1e-8)
        seconds = time.perf_counter() - start
        say(f"{name}: gap {solution.gap:.1e} in {seconds:.2f} s")
        lines.append([
            name, f"{bandit.gap_min / bandit.gap_max:.1e}", f"{solution.value:.9g}", f"{solution.gap:.1e}",
            verdict(solution.gap <= TOL), str(solution.stats["passes"]), f"{seconds:.2f}",
        ])  # fmt: skip
    dim, arms = (20, 10**5) if quick else CONDITIONING
    head = ["family", "Δ_min/Δ_max", "value", "certified gap", f"{TOL:g}", "passes", "seconds"]
    return f"""## Conditioning

(d, k) = ({dim}, {power(arms)}), asked for 1e-8; the gap is that of the bounds recomputed over all arms, their rounding included.

{table(head, lines)}
"""


def section_again(quick: bool, folder: Path) -> str:
    """The same arms with other gaps: `Allocator` from scratch, and from its last solution."""
    lines = []
    for dim, arms in AGAIN[:2] if quick else AGAIN:
        rows, theta = unit_arms(dim, arms)
        means = rows @ theta
        gaps = means.max() - means
        rng = np.random.default_rng(1)
        times: dict[bool, list[float]] = {False: [], True: []}
        passes: dict[bool, set[int]] = {False: set(), True: set()}
        for _ in range(AGAIN_REPEATS):
            allocator = ao.Allocator(rows)
            for warm in (False, True, True):
                moved = gaps * (1.0 + MOVE * rng.uniform(-1, 1, arms))
                start = time.perf_counter()
                solution = allocator.solve(moved)
                times[warm].append(time.perf_counter() - start)
                passes[warm].add(solution.stats["passes"])
                assert solution.status is ao.Status.CERTIFIED
                assert solution.stats.get("warm", False) is warm
        cold, warm_time = (float(np.median(times[warm])) for warm in (False, True))
        say(f"({dim}, {power(arms)}): {cold:.4f} s, again {warm_time:.4f} s")
        lines.append([
            f"({dim}, {power(arms)})", f"{1e3 * cold:.1f}", span(passes[False]),
            f"{1e3 * warm_time:.1f}", span(passes[True]), f"{cold / warm_time:.1f}",
        ])  # fmt: skip
    head = ["(d, k)", "from scratch, ms", "passes", "again, ms", "passes", "ratio"]
    return f"""## The same arms again

`Allocator.solve`, certified 1e-8, after the gaps have moved by up to {100 * MOVE:g} %: from scratch, and from the last
solution. Medians.

{table(head, lines)}
"""


SECTIONS = {
    "passes": section_passes,
    "again": section_again,
    "memory": section_memory,
    "mapped": section_mapped,
    "growth": section_growth,
    "conditioning": section_conditioning,
}


def mark(name: str) -> str:
    """The line of SCALE.md before a section."""
    return f"<!-- {name}: python benchmarks/scale.py --only {name} -->"


def written(found: dict[str, str], old: str, seconds: float) -> str:
    """SCALE.md with the sections found; those that were not measured keep their old text."""
    parts = {}
    for name in SECTIONS:
        if name in found:
            parts[name] = found[name]
        elif mark(name) in old:
            rest = old.partition(mark(name))[2]
            ends = [rest.index(mark(other)) for other in SECTIONS if mark(other) in rest]
            parts[name] = rest[: min(ends, default=len(rest))].strip() + "\n"
    packages = " · ".join(
        f"{p} {importlib.metadata.version(p)}" for p in ("numpy", "scipy", "dask", "distributed", "allocopt")
    )
    head = f"""# Large sets of arms

Written by `python benchmarks/scale.py` (or one section at a time by `--only {"|".join(SECTIONS)}`), last in {seconds:.0f} s on
{datetime.date.today()}: {available_cores()} cores, python {platform.python_version()} · {packages}.
Times depend on what else the machine does; ratios within a table were measured in one run.
"""
    body = "\n".join(f"{mark(name)}\n\n{text}" for name, text in parts.items())
    return f"{head}\n{body}"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is written")
    parser.add_argument("--only", choices=list(SECTIONS), help="one section; the others keep their text in SCALE.md")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, *arguments = json.loads(options.task)
        print(json.dumps(TASKS[name](*arguments)))
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="allocopt-scale-") as folder:
        free = shutil.disk_usage(folder).free
        if free < ROOM:
            parser.error(f"{folder}: {free / 1e9:.1f} GB of disk are free, {ROOM / 1e9:g} are needed; set TMPDIR")
        found = {}
        for name, section in SECTIONS.items():
            if options.only in (None, name):
                say(name)
                found[name] = section(options.quick, Path(folder))
    target = HERE / "SCALE.md"
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    text = written(found, "" if options.quick else old, time.perf_counter() - began)
    print(text)
    if not options.quick:
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
