"""What is reached where gaps are tiny or arms nearly equal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scaling.common import CENTRES, CONDITIONING, NEAR_BEST, TOL, power, say, table, unit_arms, verdict

import allocopt as ao


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
