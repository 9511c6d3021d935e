"""A Dask cluster on this machine whose workers may be killed at any moment: whoever is gone is started again at once.

Dask's own nannies give up a worker that dies before it has come up, which random kills do sooner or later.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil

__all__ = ["KeptAlive", "kept_alive"]


class KeptAlive:
    """A scheduler in this process, and workers of one thread each in others."""

    def __init__(self, scheduler: Any, workers: int, memory: int | None) -> None:
        self.address: str = scheduler.scheduler_address
        self.started = 0
        self._memory = "0" if memory is None else str(memory)
        self._over = threading.Event()
        self._names: dict[int, str] = {}
        self._scheduler = scheduler
        self._processes = [self._start() for _ in range(workers)]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.started += 1
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1",
                   "--no-dashboard", "--memory-limit", self._memory, "--name", f"worker-{self.started}"]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._names[process.pid] = command[-1]
        return process

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self._processes = [p if p.poll() is None else self._start() for p in self._processes]

    def computing(self) -> list[psutil.Process]:
        """The workers, at work or coming up, and the children of theirs in which users' functions run."""
        found = []
        for process in self._processes:
            with contextlib.suppress(psutil.Error):
                worker = psutil.Process(process.pid)
                found += [worker, *worker.children(recursive=True)]
        return found

    def connected(self) -> list[int]:
        """The workers that have come up, by the numbers of their processes."""
        names = {worker["name"] for worker in self._scheduler.scheduler_info["workers"].values()}
        return [process.pid for process in self._processes if self._names[process.pid] in names]

    def close(self) -> None:
        """End all workers, for good."""
        self._over.set()
        self._thread.join()
        for process in self._processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def kept_alive(workers: int = 2, memory: int | None = None) -> Iterator[KeptAlive]:
    """Such a cluster, for a while."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=60) as scheduler:
        local = KeptAlive(scheduler, workers, memory)
        try:
            yield local
        finally:
            local.close()
