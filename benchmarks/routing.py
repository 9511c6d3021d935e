"""Online routing on k × k grids: what listing the paths costs, and what an oracle does where they cannot be listed.

    python benchmarks/routing.py [--seed 0] [--picture benchmarks/routing.png]

Edges lead right and down, their mean delays are uniform on [0.5, 1.5]; an arm is a path from corner to corner. Prints two
tables in markdown and draws the optimal exploration of the 5 × 5 grid.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import math
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import allocopt as ao
from allocopt.actions.graphs import GraphArms, path_arms, shortest_path_oracle
from allocopt.actions.oracle_allocation import oracle_allocation
from allocopt.actions.oracle_spanner import oracle_spanner
from allocopt.model.status_text import caveat

LISTED = (3, 4, 5, 6, 7)
"""Grids whose c(A, θ) is computed from the list of all paths."""
SPANNED = (*LISTED, 10, 13, 18)
"""Grids that a spanner is found for: 13 has more than 1e6 paths, 18 more than 1e9."""
ENCLOSED = {3: 20, 4: 20, 5: 20, 6: 20, 7: 20, 10: 4, 13: 2}
"""Grids whose c(A, θ) is enclosed by oracle calls only, and the rounds of improvement that they get."""


def grid(k: int, seed: int) -> Any:
    """The k × k grid with random delays."""
    rng = np.random.default_rng([seed, k])
    G = nx.DiGraph()
    for i in range(k):
        for j in range(k):
            for v in ((i, j + 1), (i + 1, j)):
                if max(v) < k:
                    G.add_edge((i, j), v, weight=float(rng.uniform(0.5, 1.5)))
    return G


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path(__file__).with_name("routing.png"))
    options = parser.parse_args()

    rows, enclosed = [], []
    for k in SPANNED:
        G, source, target = grid(k, options.seed), (0, 0), (k - 1, k - 1)
        oracle = shortest_path_oracle(G, source, target)
        start = time.perf_counter()
        spanner = oracle_spanner(oracle, C=2)
        seconds = time.perf_counter() - start
        c, listing = "not listed", "–"
        if k in LISTED:
            start = time.perf_counter()
            arms = path_arms(G, source, target)
            solution = ao.solve(ao.programs.regret(arms.bandit()))
            listing = f"{time.perf_counter() - start:.2f}"
            c = f"{solution.value:.6g}" + (f" ({caveat(solution)})" if caveat(solution) else "")
            if k == 5:
                draw(G, arms, solution, options.picture)
        d = oracle.dim
        rows.append([f"{k} × {k}", f"{oracle.count():,}", str(d), str(spanner.dim), c, listing, str(len(spanner.arms)),
                     f"{spanner.C:.3f}", f"{spanner.oracle_calls:,}", f"{d * d * math.log2(d):,.0f}", f"{seconds:.2f}"])  # fmt: skip
        if k in ENCLOSED:
            start = time.perf_counter()
            theta = -np.array([G.edges[edge]["weight"] for edge in oracle.edges])
            a = oracle_allocation(oracle, theta, rounds=ENCLOSED[k])
            seconds = time.perf_counter() - start
            enclosed.append([f"{k} × {k}", f"{oracle.count():,}", c, f"{a.lower:.6g}", f"{a.upper:.6g}", f"{a.upper / a.lower:.3f}",
                             f"{a.oracle_calls:,}", f"{seconds:.1f}"])  # fmt: skip
    print("### Spanners of paths by oracle calls only (C = 2)\n")
    print(table(["grid", "paths", "edges d", "rank", "c (listed)", "s to list and solve", "spanner", "C verified",
                 "oracle calls", "d² log₂ d", "s for the spanner"], rows))  # fmt: skip
    print("\n### c(A, θ) enclosed by oracle calls only\n")
    print(table(["grid", "paths", "c (listed)", "lower", "upper", "upper/lower", "oracle calls", "s"], enclosed))
    print(f"\nPicture: {options.picture}")


def draw(G: Any, arms: GraphArms, solution: ao.Solution, path: Path) -> None:
    """The grid with every edge as wide as the exploration that crosses it; the optimal path apart, in another colour."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    finite = np.isfinite(solution.allocation)
    traffic = arms.arms[finite].T @ solution.allocation[finite]
    best = arms.arms[~finite].any(axis=0)
    many = int((solution.allocation[finite] > 0.1).sum())
    figure, axes = plt.subplots(figsize=(9, 9))
    for edge, load, optimal in zip(arms.edges, traffic, best, strict=True):
        (i, j), (p, q) = edge
        axes.plot([j, q], [-i, -p], color="0.85", linewidth=1, zorder=1)
        if load > 1e-9 * traffic.max():
            width = 18 * load / traffic.max()
            axes.plot([j, q], [-i, -p], color="tab:blue", alpha=0.75, linewidth=width, zorder=2, solid_capstyle="butt")
        if optimal:
            axes.plot([j, q], [-i, -p], color="tab:orange", linewidth=2.5, linestyle=(0, (4, 2)), zorder=4)
        delay, number = G.edges[edge]["weight"], f"{load:.1f}" if load > 1e-9 * traffic.max() else "0"
        across = i == p
        axes.text((j + q) / 2 + (0 if across else 0.12), -(i + p) / 2 + (0.2 if across else 0), f"{delay:.2f}\n({number})",
                  ha="center" if across else "left", va="center", fontsize=9, color="0.15", zorder=6,
                  bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7})  # fmt: skip
    spots = np.array([(j, -i) for i, j in G.nodes])
    axes.scatter(spots[:, 0], spots[:, 1], s=70, color="white", edgecolor="0.2", zorder=5)
    side = int(-spots[:, 1].min())
    axes.annotate("source", (0, 0), (-0.12, 0.14), ha="right", fontsize=11)
    axes.annotate("target", (side, -side), (side + 0.12, -side - 0.2), ha="left", fontsize=11)
    axes.plot(
        [],
        [],
        color="tab:blue",
        linewidth=8,
        alpha=0.75,
        label="exploration α through the edge, per log n (in brackets)",
    )
    axes.plot(
        [], [], color="tab:orange", linewidth=2.5, linestyle=(0, (4, 2)), label="shortest path (played otherwise)"
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    axes.set_title(
        f"Optimal exploration of {len(arms.arms)} paths: regret {solution.value:.4g} · log n\n"
        f"at each edge its mean delay; {many} suboptimal paths get more than 0.1 · log n plays"
    )
    axes.set_aspect("equal")
    axes.set_xlim(-0.75, side + 0.75)
    axes.set_ylim(-side - 0.35, 0.5)
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
