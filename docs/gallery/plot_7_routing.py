"""
Routing: which edges pay for exploration
========================================

Arms are the paths from one corner of a grid to the other, and a played path shows the sum of its edge costs. Solid:
the shortest path. The width of an edge is what optimal play spends on it.
"""

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

import allocopt as ao

rng = np.random.default_rng(4)
grid = nx.DiGraph()
for x in range(4):
    for y in range(4):
        for neighbour in ((x + 1, y), (x, y + 1)):
            if max(neighbour) < 4:
                grid.add_edge((x, y), neighbour, weight=float(rng.uniform(1, 2)))

paths = ao.graphs.path_arms(grid, (0, 0), (3, 3))
solution = ao.solve(ao.programs.regret(paths.bandit()))
spent = np.where(np.isfinite(solution.allocation), solution.allocation, 0) @ paths.arms  # of every edge
shortest = paths.arms[int(solution.optimal_arms[0])] > 0

figure = Figure(figsize=(4.5, 4.5), layout="constrained")
axes = figure.add_subplot()
for edge, often, best in zip(paths.edges, spent, shortest, strict=True):
    (x0, y0), (x1, y1) = edge
    axes.plot([x0, x1], [y0, y1], color="#56B4E9", linewidth=0.5 + 14 * often / spent.max(), solid_capstyle="round")
    if best:
        axes.plot([x0, x1], [y0, y1], color="#D55E00", linewidth=2)
axes.set(aspect="equal", xticks=[], yticks=[], title=f"{len(paths.arms)} paths, c = {solution.value:.1f}")

# %%
# The constant, and the three paths that cost most:

print(solution)
played = solution.support
dearest = np.argsort(-solution.allocation[played] * solution.program.costs[played])
for i in played[dearest[:3]]:
    print(f"{solution.allocation[i]:.3f} pulls / log n of {solution.labels[i]}")
