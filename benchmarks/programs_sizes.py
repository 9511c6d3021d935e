"""The named programs at size: how long they take to be made, solved to 1e-8 and proven; a section of PROGRAMS.md.

python benchmarks/programs_sizes.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix

import allocopt as ao
from allocopt.base.validation import Array
from allocopt.model.program import AllocationProgram

PAGE = Path(__file__).parent / "PROGRAMS.md"
TITLE = "## At size"


def unit_rows(seed: int, k: int, d: int) -> Array:
    """Random arms of length 1."""
    rows = np.random.default_rng(seed).normal(size=(k, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def bandit(k: int, d: int) -> ao.LinearBandit:
    """A bandit of such arms, its θ of length 1."""
    return ao.LinearBandit(unit_rows(3, k, d), unit_rows(4, 1, d)[0])


def contexts(m: int, k: int, d: int, one_best: bool) -> AllocationProgram:
    """Contexts of random arms; with one optimal arm in all of them nothing is learnt for free about other directions."""
    rows = unit_rows(1, m * k, d).reshape(m, k, d)
    theta = np.eye(d)[0]
    if one_best:
        rows *= 0.9
        rows[:, 0] = theta
    return ao.programs.contextual(ao.ContextualBandit(tuple(rows), theta))


def grid_paths(n: int) -> AllocationProgram:
    """The paths from corner to corner of a grid with random weights, every edge of a path seen."""
    rng, graph = np.random.default_rng(8), nx.DiGraph()
    for i in range(n):
        for j in range(n):
            for other in ((i + 1, j), (i, j + 1)):
                if max(other) < n:
                    graph.add_edge((i, j), other, weight=float(rng.uniform(0.5, 1.5)))
    return ao.graphs.path_arms(graph, (0, 0), (n - 1, n - 1)).semi_bandit()


def neighbours(k: int, shown: int, shows_itself: bool = True) -> AllocationProgram:
    """Arms that show themselves and some others, with variances of their own."""
    rng = np.random.default_rng(9)
    means = rng.uniform(size=k)
    places = np.unique(np.concatenate([rng.integers(0, k * k, shown * k), np.arange(k) * (k + 1)]))
    if not shows_itself:
        places = places[places != int(np.argmax(means)) * (k + 1)]
    variances = csr_matrix((rng.uniform(0.5, 2.0, len(places)), (places // k, places % k)), shape=(k, k))
    return ao.programs.side_observations(means, variances)


CASES: dict[str, Callable[[], AllocationProgram]] = {
    "contextual, 1,000 contexts × 50 arms in R²⁰, one optimal arm": lambda: contexts(1000, 50, 20, True),
    "contextual, 1,000 contexts × 50 arms in R²⁰, optimal arms span": lambda: contexts(1000, 50, 20, False),
    "best_arm, 10⁴ arms in R²⁰": lambda: ao.programs.best_arm(bandit(10**4, 20)),
    "best_arm, ε = 0.2, 200 arms in R¹⁰": lambda: ao.programs.best_arm(bandit(200, 10), 0.2),
    "top_m, m = 10 of 10⁴ arms in R²⁰": lambda: ao.programs.top_m(bandit(10**4, 20), 10),
    "threshold, 10⁴ arms in R²⁰": lambda: ao.programs.threshold(bandit(10**4, 20), 0.3),
    "transductive, 10³ arms, 10⁴ items in R²⁰": lambda: ao.programs.transductive(
        unit_rows(5, 1000, 20), unit_rows(6, 10**4, 20), unit_rows(7, 1, 20)[0]
    ),
    "duelling, 300 arms (44,850 duels) in R¹⁰": lambda: ao.programs.duelling(bandit(300, 10)),
    "semi_bandit, the 252 paths of a 6×6 grid": lambda: grid_paths(6),
    "side_observations, 300 arms that show 5 others each": lambda: neighbours(300, 5),
    "side_observations, 10⁴ arms that show 5 others each": lambda: neighbours(10**4, 5),
    "side_observations, 10⁴ arms, the best not shown by itself": lambda: neighbours(10**4, 5, shows_itself=False),
}


def section() -> tuple[list[str], int]:
    """The table, and how many programs were not certified."""
    lines = [
        TITLE,
        "",
        "`python benchmarks/programs_sizes.py`: seconds to make the program, to solve it (certified 1e-8), and to prove it anew.",
        "",
        "| program | targets | made | solved | `verify()` | gap | method |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    unsure = 0
    for name, make in CASES.items():
        at = [time.perf_counter()]
        program = make()
        at.append(time.perf_counter())
        s = ao.solve(program)
        at.append(time.perf_counter())
        s.verify()
        at.append(time.perf_counter())
        unsure += s.status is not ao.Status.CERTIFIED
        made, solved, proven = np.diff(at)
        lines.append(
            f"| {name} | {program.n_targets:,} | {made:.2f} | {solved:.2f} | {proven:.2f} | {s.gap:.0e} | {s.method} |"
        )
    return lines, unsure


def main() -> int:
    """Put the section at the end of PROGRAMS.md, in place of an older one."""
    lines, unsure = section()
    before = PAGE.read_text(encoding="utf-8").split(TITLE)[0].rstrip("\n")
    PAGE.write_text(before + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 1 if unsure else 0


if __name__ == "__main__":
    sys.exit(main())
