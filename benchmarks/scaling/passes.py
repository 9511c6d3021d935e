"""Time in units of a pricing pass, from scratch and from the last solution."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import threadpoolctl
from scaling.common import AGAIN, AGAIN_REPEATS, MOVE, TARGETS, TOL, Clock, power, say, span, table, unit_arms, verdict

import allocopt as ao
from allocopt.base.machine import available_cores
from allocopt.model.arms.blocks import block_rows


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
    step = block_rows(k, d)

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
