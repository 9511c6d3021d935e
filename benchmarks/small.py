r"""Small programs: `regret_constant` against what a user would write; `Allocator` and `solve_many` against a parametrised program.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small.py [--quick]

Prints markdown. Every allocopt time is from a vector of gaps to a certified solution (tol 1e-8). The peer is what a careful
user would embed in an algorithm: the compact SDP of `comparing/peers.py` for fixed arms and a fixed optimal arm, with what depends on
the gaps as cvxpy Parameters (DPP, so that canonicalisation happens once), solved by Clarabel with its default tolerances.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from comparing.peers import matrix_frac, slsqp
from scipy.linalg import null_space

import allocopt as ao
from allocopt.insight.instances import random_unit
from allocopt.model.programs import horizon_at_level
from allocopt.solving.allocator import Allocator
from allocopt.solving.batch import solve_many

MOVE = 0.01  # relative change of the gaps between warm-started solves
INSTANCES = 40
REPEATS = 7
BATCH = 4000
PEER_SOLVES = 15
FIRST_CALL = """
import time, numpy as np
import warnings
from allocopt.solving.allocator import Allocator
warnings.simplefilter("ignore")  # it says that it compiles
a = Allocator(np.eye(3))
t = time.perf_counter()
assert a.solve(np.array([0.0, 1.0, 2.0])).stats["compiled"]
print(time.perf_counter() - t)
"""


FIRST_PUBLIC_CALL = """
import time, numpy as np
import allocopt as ao
ao.regret_constant
arms = np.random.default_rng(0).normal(size=(20, 5))
t = time.perf_counter()
assert ao.regret_constant(arms, np.ones(5)).stats["road"] == "numpy"
print(time.perf_counter() - t)
"""


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def allocator_times(dim: int, arms: int, instances: int) -> tuple[float, float]:
    """Medians of a cold solve and of one warm-started after the gaps have moved by 1 %."""
    rng = np.random.default_rng(0)
    cold, warm = [], []
    for seed in range(instances):
        bandit = random_unit(dim, arms, seed=seed)
        gaps = np.array(bandit.gaps)
        Allocator(bandit.arms).solve(gaps)
        times = []
        for _ in range(REPEATS):
            allocator = Allocator(bandit.arms)  # knows nothing yet, not even the quotient
            times.append(seconds(lambda: allocator.solve(gaps)))
        cold.append(statistics.median(times))
        for _ in range(REPEATS):
            moved = gaps * (1.0 + MOVE * rng.uniform(-1, 1, arms))
            warm.append(seconds(lambda: allocator.solve(moved)))
            assert allocator.solve(moved).status is ao.Status.CERTIFIED
    return statistics.median(cold), statistics.median(warm)


def public_times(dim: int, arms: int, instances: int) -> tuple[float, float]:
    """Medians of `regret_constant` from arrays to a certified solution, and of SLSQP (its default accuracy) in the same run."""
    ours, theirs = [], []
    for seed in range(instances):
        bandit = random_unit(dim, arms, seed=seed)
        rows, theta = np.array(bandit.arms), np.array(bandit.theta)
        solution = ao.regret_constant(rows, theta)
        assert solution.status is ao.Status.CERTIFIED and (arms > 100 or solution.stats["road"] == "compiled")
        repeats = REPEATS if arms <= 100 else 3
        ours.append(statistics.median(seconds(lambda: ao.regret_constant(rows, theta)) for _ in range(repeats)))
        theirs.append(statistics.median(seconds(lambda: slsqp(rows, theta)) for _ in range(1 if arms > 100 else 3)))
    return statistics.median(ours), statistics.median(theirs)


def public_rows(quick: bool) -> list[tuple[str, str, str]]:
    """`regret_constant` at several sizes, and how many times as long the others take."""
    ao.precompile()
    rows = []
    for dim, arms, most, least in ((2, 3, 150, None), (5, 20, 300, 10), (10, 50, 1000, 10), (20, 200, None, 10)):
        ours, theirs = public_times(dim, arms, 3 if arms > 100 else 8 if quick else INSTANCES)
        rows.append((f"`regret_constant` ({dim},{arms})", f"{ours * 1e6:.0f} µs", "" if most is None else f"{most} µs"))
        if least is not None:
            ratio = f"{theirs * 1e6:.0f} µs ({theirs / ours:.0f}x)"
            rows.append((f"SLSQP, analytic Jacobian, ftol 1e-6 ({dim},{arms})", ratio, f"at least {least}x"))
    if not quick:
        bandit = random_unit(10, 200, seed=0)
        ours = statistics.median(seconds(lambda: ao.regret_constant(bandit.arms, bandit.theta)) for _ in range(REPEATS))
        theirs = seconds(lambda: matrix_frac(bandit.arms, bandit.theta))
        rows.append(("`regret_constant` (10,200)", f"{ours * 1e6:.0f} µs", ""))
        rows.append(("cvxpy matrix_frac (10,200)", f"{theirs:.1f} s ({theirs / ours:.0f}x)", "at least 1000x"))
        rows.append(("first `regret_constant` after import, empty cache", f"{first_public_call():.3f} s", "0.1 s"))
    return rows


def first_public_call() -> float:
    """The first `regret_constant` of a new process that finds no machine code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", FIRST_PUBLIC_CALL], env=environment, capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def named_times(name: str, dim: int, arms: int, instances: int) -> tuple[float, float]:
    """Medians of `solve`, from a named program to a certified solution, on the compiled road and on that of numpy."""
    ours, others = [], []
    for seed in range(instances):
        bandit = random_unit(dim, arms, seed=seed)
        items = np.random.default_rng(seed).normal(size=(arms, dim))
        program = {
            "best_arm": lambda b=bandit: ao.programs.best_arm(b),
            "top_m, m = 3": lambda b=bandit: ao.programs.top_m(b, 3),
            "transductive": lambda b=bandit, z=items: ao.programs.transductive(b.arms, z, b.theta),
            "duelling": lambda b=bandit: ao.programs.duelling(b),
        }[name]()  # fmt: skip
        assert ao.solve(program, road="compiled").stats["road"] == "compiled"
        for road, times in (("compiled", ours), ("numpy", others)):
            times.append(statistics.median(seconds(lambda: ao.solve(program, road=road)) for _ in range(REPEATS)))
    return statistics.median(ours), statistics.median(others)


def named_rows(quick: bool) -> list[tuple[str, str, str]]:
    """The named programs whose targets are not their arms."""
    rows = []
    for name, dim, arms in (("best_arm", 5, 20), ("top_m, m = 3", 5, 20), ("transductive", 5, 20), ("duelling", 4, 12)):
        ours, numpy_road = named_times(name, dim, arms, 5 if quick else 15)
        times = f"{ours * 1e6:.0f} µs ({numpy_road / ours:.0f} times as fast as the numpy road)"
        rows.append((f"`solve({name})` ({dim},{arms})", times, ""))
    return rows


def ordinary_time(dim: int, arms: int, instances: int) -> float:
    """Median of `allocopt.solve` on the same instances."""
    times = []
    for seed in range(instances):
        bandit = random_unit(dim, arms, seed=seed)
        times.append(seconds(lambda: ao.solve(horizon_at_level(bandit.arms, bandit.gaps, 2.0, None), road="numpy")))
    return statistics.median(times)


def batch_rate(dim: int, arms: int, n: int, shared: bool) -> float:
    """Instances per second of `solve_many` on all cores."""
    rng = np.random.default_rng(0)
    sets = rng.normal(size=(arms, dim) if shared else (n, arms, dim))
    means = (sets * rng.normal(size=(n, 1, dim))).sum(axis=2)
    gaps = means.max(axis=1, keepdims=True) - means
    solve_many(sets if shared else sets[:8], gaps[:8])
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        batch = solve_many(sets, gaps)
        rates.append(n / (time.perf_counter() - start))
        assert batch.certified.mean() > 0.999  # a near tie now and then is beyond doubles, by any method
    return statistics.median(rates)


def first_call() -> float:
    """The first compiled call with an empty cache, in a new process (which starts another one to help)."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def peer_times(dim: int, arms: int, solves: int) -> tuple[float, float]:
    """Median seconds of a parametrised re-solve after a move of 1 %, and its largest true gap (relative excess cost)."""
    import cvxpy as cp

    bandit = random_unit(dim, arms, seed=0)
    best = int(bandit.optimal_arms[0])
    others = np.flatnonzero(bandit.gaps > 0)
    rows = bandit.arms[others] @ null_space(bandit.arms[best][None, :])
    r, m = rows.shape[1], len(rows)
    products = np.einsum("ij,ik->jki", rows, rows).reshape(r * r, -1)
    delta, radii = cp.Parameter(m, nonneg=True), cp.Parameter(m, nonneg=True)
    alpha = cp.Variable(m, nonneg=True)
    covariance = cp.Variable((r, r), symmetric=True)
    information = cp.reshape(products @ alpha, (r, r), order="C")
    cone = cp.bmat([[information, np.eye(r)], [np.eye(r), covariance]]) >> 0
    constraints = [cone, products.T @ cp.vec(covariance, order="C") <= radii]
    problem = cp.Problem(cp.Minimize(delta @ alpha), constraints)
    assert problem.is_dcp(dpp=True)
    rng = np.random.default_rng(0)
    allocator = Allocator(bandit.arms, tol=1e-9)
    times, excess = [], []
    for n in range(solves + 2):
        gaps = np.array(bandit.gaps) * (1.0 + MOVE * rng.uniform(-1, 1, arms))
        delta.value, radii.value = gaps[others], gaps[others] ** 2 / 2
        spent = seconds(lambda: problem.solve(solver=cp.CLARABEL))
        found = np.maximum(np.asarray(alpha.value), 0.0)
        inverse = np.linalg.inv((rows * found[:, None]).T @ rows)
        worst = (np.einsum("ij,jk,ik->i", rows, inverse, rows) / radii.value).max()
        if n >= 2:  # the first solves canonicalise
            times.append(spent)
            excess.append(float(gaps[others] @ found) * worst / allocator.solve(gaps).lower - 1.0)
    return statistics.median(times), max(excess)


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description="Small programs: microseconds per solve, in markdown.")
    parser.add_argument("--quick", action="store_true", help="a few instances only; no first call with an empty cache")
    quick: bool = parser.parse_args().quick
    instances = 8 if quick else INSTANCES
    rows = public_rows(quick) + named_rows(quick)
    cold, warm = allocator_times(5, 20, instances)
    small_cold, small_warm = allocator_times(3, 6, instances)
    ordinary = ordinary_time(5, 20, instances)
    peer, excess = peer_times(5, 20, 5 if quick else PEER_SOLVES)
    rows += [
        ("`Allocator.solve` (5,20), cold", f"{cold * 1e6:.0f} µs", "100 µs"),
        ("`Allocator.solve` (5,20), gaps moved by 1 %", f"{warm * 1e6:.0f} µs", "30 µs"),
        ("`Allocator.solve` (3,6), cold", f"{small_cold * 1e6:.0f} µs", "100 µs"),
        ("`Allocator.solve` (3,6), gaps moved by 1 %", f"{small_warm * 1e6:.0f} µs", "100 µs"),
        ("`allocopt.solve` (5,20), road numpy", f"{ordinary * 1e6:.0f} µs", ""),
        (
            f"cvxpy, DPP, Clarabel (5,20), gaps moved by 1 % (true gap up to {excess:.0e})",
            f"{peer * 1e6:.0f} µs ({peer / warm:.0f}x)",
            "",
        ),
    ]
    n = BATCH // 8 if quick else BATCH
    for shared in (True, False):
        name = "shared arms" if shared else "arms of its own for each row"
        rate = batch_rate(5, 20, n, shared)
        rows.append((f"`solve_many` (5,20), {name}, {os.cpu_count()} cores", f"{rate:.0f} instances/s", "20000"))
    if not quick:
        rows.append(("first compiled call, empty cache", f"{first_call():.1f} s", "4.5 s"))
    print("| what | median | target |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
