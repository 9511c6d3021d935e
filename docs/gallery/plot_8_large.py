"""
A hundred thousand arms
=======================

The same call, block by block. The callback shows how lower and upper bound close in on each other, pass after pass
over all arms.
"""

import numpy as np
from matplotlib.figure import Figure

import allocopt as ao

rng = np.random.default_rng(0)
arms, theta = rng.normal(size=(100_000, 20)), rng.normal(size=20)
seen = []
solution = ao.regret_constant(arms, theta, tol=1e-8, callback=lambda p: seen.append((p.lower, p.upper)))
print(solution, "after", solution.stats["passes"], "passes")

# %%
# The gap after each pass:

bounds = np.array([b for b in seen if np.isfinite(b[1]) and b[0] > 0])
figure = Figure(figsize=(5, 3), layout="constrained")
axes = figure.add_subplot()
axes.semilogy(np.arange(1, len(bounds) + 1), bounds[:, 1] / bounds[:, 0] - 1, "o-", color="#0072B2")
axes.axhline(1e-8, color="#8C8C8C", linestyle=":")
axes.set(xlabel="pass over 100,000 arms", ylabel="certified gap", xticks=np.arange(1, len(bounds) + 1))
