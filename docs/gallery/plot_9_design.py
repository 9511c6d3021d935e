"""
A G-optimal design of a disc
============================

Which points should be measured so that everything is known equally well? For points of a disc: those at its rim; the
value is the dimension.
"""

import numpy as np
from matplotlib.figure import Figure

import allocopt as ao

rng = np.random.default_rng(1)
turn, radius = rng.uniform(0, 2 * np.pi, 400), np.sqrt(rng.uniform(0, 1, 400))
points = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
solution = ao.solve(ao.programs.g_optimal(points))
print(solution)  # its value is the rank, 2 (Kiefer and Wolfowitz)

# %%
# The few points that are measured, as area:

figure = Figure(figsize=(4, 4), layout="constrained")
axes = figure.add_subplot()
axes.scatter(*points.T, s=4, color="#8C8C8C")
axes.scatter(*points[solution.support].T, s=300 * solution.allocation[solution.support], color="#0072B2")
axes.set(aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
