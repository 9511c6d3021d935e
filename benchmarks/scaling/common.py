"""What all sections share: sizes, clocks, tables, instances."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
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
