"""
A schedule, round by round
==========================

An allocation says how often, a schedule when: the same whole pulls in two orders, drawn into axes of one figure.
"""

from matplotlib.figure import Figure

import allocopt as ao

bandit = ao.instances.random_unit(5, 20, seed=2)
solution = ao.solve(ao.programs.regret(bandit))

figure = Figure(figsize=(7, 3.4), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
for axes, order in zip(panels, ("explore-first", "tracking"), strict=True):
    schedule = ao.Schedule.from_solution(solution, horizon=10**6, order=order)
    ao.plots.schedule_plan(schedule, ax=axes)

# %%
# How sure is the value behind it? What the solve claims, and what its proof says in doubles, in balls of 128 bits and in rationals:

ao.plots.intervals(
    {
        "claimed": solution,
        "doubles": solution.verify(),
        "128 bits": solution.verify(precision=128),
        "rationals": solution.verify(exact=True),
    },
    quantity="c",
)
