"""Processes of their own: peak memory, arms in files, a cluster with a worker that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scaling.common import HERE, SAMPLING, TOL, make_file, theta_of

import allocopt as ao
from allocopt.model.arms import dask_npy
from allocopt.model.progress import Progress


def in_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What one of the functions of `TASKS` returns in a fresh interpreter."""
    command = [sys.executable, str(HERE / "scale.py"), "--task", json.dumps([function.__name__, *arguments])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{function.__name__}{arguments} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def memory() -> dict[str, float]:
    """VmRSS, RssAnon and RssFile of this process in MB."""
    found = {}
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
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
                    if worker in pids and any("_scan_group" in str(key) for key in keys):
                        os.kill(pids[worker], signal.SIGKILL)
                        killed.update(at=time.perf_counter() - start, chunks=sum("_scan_group" in str(k) for k in keys))
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
