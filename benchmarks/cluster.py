"""What a cluster does, on this machine: 10⁸ arms on two workers of 1 GB, and long runs whose workers are killed every few seconds.

make cluster                          # writes benchmarks/CLUSTER.md
python benchmarks/cluster.py --quick  # a hundredth of the size
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from kept_alive import KeptAlive, kept_alive

import allocopt as ao
from allocopt.base.long_runs import cluster as cluster_calls
from allocopt.model.arms import dask_npy, on_dask

HERE = Path(__file__).parent
DIM, TOL = 8, 1e-6
WORKER_BYTES = 10**9


def make_arms(path: Path, arms: int) -> np.ndarray[Any, Any]:
    """Unit vectors in float32, a million at a time."""
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(arms, DIM))
    for start in range(0, arms, 10**6):
        rows = rng.standard_normal((min(10**6, arms - start), DIM), dtype=np.float32)
        out[start : start + len(rows)] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    out.flush()
    return rng.standard_normal(DIM)


def worker_processes() -> list[psutil.Process]:
    """Dask's workers: children of this process."""
    return [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]


@contextmanager
def watched() -> Iterator[dict[int, tuple[float, float]]]:
    """The most memory of each worker, in MB: all of it, and without pages of mapped files."""
    peak: dict[int, tuple[float, float]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            for process in worker_processes():
                try:
                    info = process.memory_info()
                except psutil.Error:
                    continue
                old = peak.get(process.pid, (0.0, 0.0))
                peak[process.pid] = max(old[0], info.rss / 1e6), max(old[1], (info.rss - info.shared) / 1e6)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


class Counting:
    """Counts what travels between this process and the workers."""

    def __init__(self) -> None:
        self.scans: list[dict[str, float]] = []
        self._plain = on_dask.results_in_order

    def __call__(self, client: Any, tasks: list[Any]) -> Iterator[Any]:
        """As the function it stands for."""
        started, back = time.perf_counter(), 0
        for result in self._plain(client, tasks):
            back += len(pickle.dumps(result))
            yield result
        self.scans.append({"tasks": len(tasks), "back": back, "seconds": time.perf_counter() - started})


def section_arms(arms: int, folder: Path, client: Any) -> str:
    """The file, the solve and the proof."""
    path = folder / "arms.npy"
    theta = make_arms(path, arms)
    array = dask_npy(path)
    count = on_dask.results_in_order = Counting()  # type: ignore[assignment]
    with watched() as peak:
        started = time.perf_counter()
        cpu = sum(sum(p.cpu_times()[:2]) for p in worker_processes())
        solution = ao.regret_constant(array, theta, tol=TOL, client=client)
        seconds = time.perf_counter() - started
        cpu = sum(sum(p.cpu_times()[:2]) for p in worker_processes()) - cpu
        started = time.perf_counter()
        proof = solution.verify()
        proving = time.perf_counter() - started
    on_dask.results_in_order = count._plain
    path.unlink()
    full = [scan for scan in count.scans if scan["tasks"] == array.numblocks[0]]
    memory = max(total for total, _ in peak.values()), max(own for _, own in peak.values())
    print(f"{arms} arms: {solution}, {seconds:.0f} s, proven in {proving:.0f} s, memory {memory}", flush=True)
    back = max(scan["back"] for scan in full)
    size = f"{arms:.0e} × {DIM} float32 ({arms * DIM * 4 / 1e9:.1f} GB)"
    first = [
        solution.status.name, f"{solution.gap:.1e}", f"{seconds:.0f}", f"{cpu:.0f}", solution.stats["passes"], len(full),
        f"[{proof.lower:.10g}, {proof.upper:.10g}]", f"{proof.gap:.1e}", f"{proving:.0f}",
    ]  # fmt: skip
    second = [
        array.numblocks[0], f"{back:.3g}", sum(int(s["tasks"]) for s in count.scans), f"{memory[0]:.0f}", f"{memory[1]:.0f}",
        f"{cpu / arms / len(full) * 1e9:.1f}",
    ]  # fmt: skip
    heads = (
        ["status", "certified gap", "seconds", "of processor time", "passes", "looks at all arms, in all", "proven interval", "gap",
         "proven in, s"],
        ["chunks", "bytes back a look, at most", "tasks in all", "most memory of a worker, MB", "of it not pages of the file, MB",
         "processor time, ns per arm and look"],
    )  # fmt: skip
    tables = "\n\n".join(table(head, line) for head, line in zip(heads, (first, second), strict=True))
    return f"""## {arms:.0e} arms

{size}, a mapped file; 2 workers of 1 thread, each with a limit of {WORKER_BYTES / 1e9:g} GB, above which Dask ends it.

{tables}
"""


def table(head: list[str], line: list[Any]) -> str:
    """A table of one row."""
    rows = (head, ["---"] * len(head), line)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


@contextmanager
def killing(local: KeptAlive, seconds: float) -> Iterator[list[int]]:
    """One of the workers that have come up is killed every few seconds, whatever it is doing."""
    killed: list[int] = []
    over = threading.Event()
    rng = random.Random(0)

    def attack() -> None:
        while not over.wait(rng.uniform(0.5 * seconds, 1.5 * seconds)):
            there = local.connected()
            if there:
                victim = rng.choice(there)
                with suppress(OSError):
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    thread = threading.Thread(target=attack, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def section_runs(size: int, folder: Path) -> str:
    """Long runs, undisturbed here and with workers killed on the cluster."""
    spec = {
        "family": {"name": "random-unit"},
        "fixed": {"dim": 3, "n_arms": 8},
        "repeats": size,
        "quantities": ["c", "ratio"],
    }
    bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])

    def study(name: str, **how: Any) -> str:
        return hashlib.sha256(ao.study(spec, folder / name, **how).path.read_bytes()).hexdigest()

    def simulation(name: str, **how: Any) -> str:
        found = ao.simulate("LinTS", bandit, 1000, size, rng=1, checkpoint=folder / name, keep_pulls=False, **how)
        return hashlib.sha256(found.regret.tobytes() + found.pulls.tobytes()).hexdigest()

    lines = []
    for title, run in ((f"study of {size:,} rows", study), (f"{size:,} simulations of 1,000 rounds", simulation)):
        started = time.perf_counter()
        here = run(f"{run.__name__}-here")
        alone = time.perf_counter() - started
        started = time.perf_counter()
        with kept_alive(2) as local, killing(local, 3.0) as killed:
            there = run(f"{run.__name__}-there", client=local.address)
        seconds = time.perf_counter() - started
        same = "identical" if here == there else "**DIFFERENT**"
        lines.append(f"| {title} | {alone:.0f} | {seconds:.0f} | {len(killed)} | {same} |")
        print(lines[-1], flush=True)
    return f"""## Long runs, a worker killed about every three seconds

Two workers, which are started again when they are killed; *here* is this machine without a cluster. The bytes of
the table, and of regret and pulls, are compared.

| | here, s | on the cluster, s | workers killed | |
|---|---|---|---|---|
{chr(10).join(lines)}
"""


def _nothing(number: int) -> int:
    return number


def section_scheduler(client: Any) -> str:
    """What a task costs when it does nothing."""
    dask = __import__("dask")
    costs = []
    for count in (200, 2000):
        call = dask.delayed(_nothing, pure=False)
        started = time.process_time()  # of this process, in which client and scheduler are
        assert sum(1 for _ in cluster_calls.results_in_order(client, [call(i) for i in range(count)])) == count
        costs.append((count, (time.process_time() - started) / count * 1e3))
    lines = "\n".join(f"| {count} | {cost:.2f} |" for count, cost in costs)
    return f"""## A task that does nothing

Processor time of client and scheduler together, which are in one process here.

| tasks | ms a task |
|---|---|
{lines}
"""


def write(parts: dict[str, str]) -> None:
    """CLUSTER.md, where sections that were not made now stay as they are."""
    target = HERE / "CLUSTER.md"
    if target.exists():
        for section in target.read_text().split("<!-- ")[1:]:
            name, _, content = section.partition(" -->\n")
            parts.setdefault(name, content)
    head = "# On a cluster\n\n`make cluster`, on two cores that others use, too: counts and bytes are exact, seconds are not.\n\n"
    order = [name for name in ("arms", "runs", "scheduler") if name in parts]
    target.write_text(head + "\n".join(f"<!-- {name} -->\n{parts[name].strip()}\n" for name in order))


def main() -> None:
    """Everything, into CLUSTER.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=10**5, help="rows of the study, and simulations")
    parser.add_argument("--only", choices=("arms", "runs", "scheduler"))
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    size = 100 if options.quick else 1
    parts: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=WORKER_BYTES, dashboard_address=":0", silence_logs=60
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        if options.only in (None, "scheduler"):
            parts["scheduler"] = section_scheduler(client)
        if options.only in (None, "arms"):
            parts["arms"] = section_arms(10**8 // size, Path(name), client)
        if options.only in (None, "runs"):
            parts["runs"] = section_runs(options.runs // size, Path(name))
    text = "\n".join(parts.values())
    print(text)
    if not options.quick:
        write(parts)
    sys.exit(1 if "DIFFERENT" in text else 0)


if __name__ == "__main__":
    main()
