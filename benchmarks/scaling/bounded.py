"""Programs with bounds, frank-wolfe and large d: passes, memory and time beside the regret program of the same arms."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scaling.common import TOL, Clock, power, say, table, unit_arms, verdict
from scaling.processes import watched

import allocopt as ao
from allocopt.base.machine import available_cores

SIZES = ((20, 10**4), (20, 10**5), (20, 10**6))
PASSES = 60
SHARE = 1.25  # of the arms, in memory
LARGE_DIMS = ((100, 1000), (200, 2000), (300, 3000))


def give_back() -> None:
    """Return to the system what earlier solves have freed, or a later one would seem to need nothing."""
    gc.collect()
    with suppress(OSError, AttributeError):  # where the C library is another one
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def section_bounded(quick: bool, folder: Path) -> str:
    """optimism, remaining and frank-wolfe, block by block."""
    lines = []
    for dim, arms in SIZES[:2] if quick else SIZES:
        rows, theta = unit_arms(dim, arms)
        rows.flags.writeable = False
        bandit = ao.LinearBandit(rows, theta)
        rng = np.random.default_rng(1)
        everywhere, somewhere = rng.integers(0, 3, arms), np.where(rng.random(arms) < 1e-3, 5, 0)
        makes: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
            "regret": (lambda bandit=bandit: ao.programs.regret(bandit), {}),
            "regret, frank-wolfe": (lambda bandit=bandit: ao.programs.regret(bandit), {"method": "frank-wolfe"}),
            "optimism, a = 1": (lambda bandit=bandit: ao.programs.optimism(bandit, 1.0), {}),
            "optimism, a = 0.55": (lambda bandit=bandit: ao.programs.optimism(bandit, 0.55), {}),
            "remaining, pulls everywhere": (lambda b=bandit, p=everywhere: ao.programs.remaining(b, p, 10**6), {}),
            "remaining, pulls of few arms": (lambda b=bandit, p=somewhere: ao.programs.remaining(b, p, 10**6), {}),
        }
        for name, (make, how) in makes.items():
            solving, proving = Clock(), Clock()
            give_back()
            with watched() as peak:
                before = peak["VmRSS"]
                with solving.best():
                    solution = ao.solve(make(), tol=TOL, **how)
                grown = peak["VmRSS"] - before
            with proving.best():
                proof = solution.verify()
            passes, share = int(solution.stats["passes"]), 1 + max(grown, 0.0) * 1e6 / rows.nbytes
            met = solution.gap <= TOL and proof.gap <= TOL and passes <= PASSES and (arms < 10**5 or share <= SHARE)
            say(f"({dim}, {power(arms)}) {name}: {solving.processor:.3g} s, {passes} passes, memory {share:.2f}")
            lines.append([
                f"({dim}, {power(arms)})", name, f"{solving.processor:.3f}", str(passes), f"{solution.gap:.1e}", f"{share:.2f}",
                f"{proving.processor:.3f}", f"{proof.gap:.1e}", verdict(met),
            ])  # fmt: skip
    head = [
        "(d, k)",
        "program",
        "solve, processor s",
        "passes",
        "certified gap",
        "memory / arms",
        "verify, processor s",
        "proven gap",
        "",
    ]
    return f"""## Programs with bounds, and frank-wolfe

Certified {TOL:g}; at most {PASSES} passes over all arms, those that sum lower bounds included, and memory of at most {SHARE:g} times
the arms (from 1e5 arms on; below that the pool is larger than the arms). What memory earlier solves have freed is given back
first. Beside the arms it is that of the pool, of a block for each thread and, for remaining, of the pulls as doubles: 3 to 5 MB at
1e5 arms, 20 MB at 1e6. What lives at the same time is less (2 to 3 MB at 1e5, by tracemalloc): the rest is what malloc keeps for each
thread, which differs by about 0.5 MB from run to run.

{table(head, lines)}
"""


def section_large_dims(quick: bool, folder: Path) -> str:
    """Many dimensions: the first masters from multiplicative steps or from one even allocation as before; BLAS on one core or all."""
    import threadpoolctl

    from allocopt.solvers import multiplicative

    lines = []
    first_pair = multiplicative.first_pair
    cores = available_cores()
    for dim, arms in LARGE_DIMS[:1] if quick else LARGE_DIMS:
        rows, theta = unit_arms(dim, arms)
        program = ao.programs.regret(ao.LinearBandit(rows, theta))
        now, before, on_all, found = Clock(), Clock(), Clock(), {}
        for _ in range(2 if dim >= 200 else 5):
            for clock, pair, threads in (
                (now, first_pair, 1), (before, lambda *_: None, 1), (on_all, first_pair, cores),
            ):  # fmt: skip
                multiplicative.first_pair = pair  # type: ignore[assignment]
                with threadpoolctl.threadpool_limits(threads, user_api="blas"), clock.best():
                    found[clock is before] = ao.solve(program)
        multiplicative.first_pair = first_pair
        steps = [int(found[which].stats["iterations"]) for which in (True, False)]
        say(
            f"({dim}, {arms}): {before.processor:.3g} s before, {now.processor:.3g} s now; on all cores {on_all.wall:.3g} s"
        )
        lines.append([
            f"({dim}, {arms})", f"{before.processor:.2f}", str(steps[0]), f"{now.processor:.2f}", str(steps[1]),
            f"{before.processor / now.processor:.1f}", f"{now.wall:.2f}", f"{on_all.wall:.2f}", f"{on_all.processor:.2f}",
            f"{found[False].gap:.1e}", verdict(now.processor <= 0.5 * before.processor),
        ])  # fmt: skip
    head = [
        "(d, k)",
        "without, processor s",
        "Newton steps",
        "with, processor s",
        "Newton steps",
        "ratio",
        "wall s, one thread",
        f"wall s, {cores} threads",
        "their processor s",
        "certified gap",
        "at least 2",
    ]
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return f"""## Many dimensions

`regret_constant`, certified 1e-8, with the first master from multiplicative steps and without, in turns, on one thread; then with
them and as many threads of BLAS as there are cores. Load averages at the end: {load} on {cores} cores. What is left are products and
Cholesky factors of masters as large as the support (about 4d arms). From `threads_from` multiplications in a product on, products use
all threads of the BLAS of numpy; factorisations use one, since idle threads of the BLAS of scipy would spin on the cores.

{table(head, lines)}
"""
