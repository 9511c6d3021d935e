"""Every named program against a second writing (cvxpy's matrix_frac, Clarabel) on random instances: writes PROGRAMS.md.

python benchmarks/programs.py --instances 1000
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from programs_peer import KINDS, Case, case, peer_value

import allocopt as ao

SAME = 1e-5
"""Relative difference up to which the two writings agree: what Clarabel reaches on such programs."""


class Row(NamedTuple):
    """What one instance showed."""

    kind: str
    seed: int
    certified: bool
    enclosed: bool
    """Both `verify()` and the referee prove an interval, within the claimed one, without a complaint."""
    difference: float
    peer_sure: bool
    seconds: float
    peer_seconds: float


def run(task: tuple[str, int]) -> Row:
    """One instance; every second one with a variance per arm."""
    kind, seed = task
    asked = case(kind, seed, noise=seed % 2 == 0)
    start = time.perf_counter()
    try:
        s = ao.solve(asked.program)
    except ao.Infeasible:
        return _infeasible(kind, seed, asked, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    fast, exact = s.verify(), s.verify(exact=True)
    enclosed = exact.problems == () and s.lower <= exact.lower <= exact.upper <= s.upper
    enclosed = enclosed and max(fast.lower, exact.lower) <= min(fast.upper, exact.upper)
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        try:
            value, sure = peer_value(asked)
        except Exception:
            value, sure = float("nan"), False
    difference = abs(value - s.value) / s.value if s.value > 0 else abs(value)
    certified = s.status is ao.Status.CERTIFIED
    return Row(kind, seed, certified, enclosed, difference, sure, seconds, time.perf_counter() - start)


def _infeasible(kind: str, seed: int, asked: Case, seconds: float) -> Row:
    """It is proven that there is no allocation: the peer must not find one."""
    with warnings.catch_warnings(action="ignore"):
        try:
            value, sure = peer_value(asked)
        except Exception:
            value, sure = float("inf"), False
    found = sure and np.isfinite(value)
    return Row(kind, seed, not found, not found, 0.0, not found, seconds, 0.0)


def main() -> int:
    """All kinds; ends with 1 if anything disagrees that the peer is sure of."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--instances", type=int, default=1000)
    options.add_argument("--kind", action="append", choices=KINDS, help="only these; PROGRAMS.md is not written then")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = options.parse_args()
    tasks = [(kind, seed) for kind in asked.kind or KINDS for seed in range(asked.instances)]
    with Pool(asked.workers) as pool:
        rows = pool.map(run, tasks, chunksize=20)
    lines = [
        "# The named programs against a second writing",
        "",
        f"`make programs`: {asked.instances} random instances of each (d = 2…4, 4 to 9 arms, half with a variance per arm),",
        "solved and certified to 1e-8, proven by `verify()` and by the referee, and written once more from the definition for cvxpy",
        f'(matrix_frac, Clarabel). *Agree*: within {SAME:g}. *Unsure*: instances on which Clarabel itself did not say "optimal".',
        "",
        "| program | certified | both proofs enclose | agree | differ | unsure | largest difference | median | ms | ms, peer |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    wrong = 0
    for kind in asked.kind or KINDS:
        own = [row for row in rows if row.kind == kind]
        sure = [row for row in own if row.peer_sure]
        differ = [row for row in sure if not row.difference <= SAME]
        sizes = [row.difference for row in sure] or [0.0]
        wrong += len(differ) + sum(not row.enclosed or not row.certified for row in own)
        lines.append(
            f"| {kind} | {sum(r.certified for r in own)} | {sum(r.enclosed for r in own)} | {len(sure) - len(differ)} | {len(differ)} "
            f"| {len(own) - len(sure)} | {max(sizes):.1e} | {np.median(sizes):.1e} "
            f"| {1e3 * np.median([r.seconds for r in own]):.1f} | {1e3 * np.median([r.peer_seconds for r in own]):.1f} |"
        )
        for row in differ:
            print(f"{kind}, seed {row.seed}: the peer is off by {row.difference:.2e}")
        for row in own:
            if not row.certified or not row.enclosed:
                print(f"{kind}, seed {row.seed}: certified {row.certified}, enclosed {row.enclosed}")
    text = "\n".join(lines) + "\n"
    if not asked.kind:
        (Path(__file__).parent / "PROGRAMS.md").write_text(text, encoding="utf-8")
    print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
