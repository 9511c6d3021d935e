"""
A certified band around a closed form
=====================================

c of the paper's example is 8 as long as the informative arm is worth its price, and falls when ε grows beyond. The
grey line is the formula, the line on top what was computed, with a band between its two proven bounds, which is too
narrow to be seen.
"""

import numpy as np

import allocopt as ao

points = np.geomspace(1e-3, 0.9, 25)
solved = [ao.solve(ao.programs.regret(ao.instances.counter_example(e))) for e in points]
figure = ao.plots.family_curve(
    points,
    [s.lower for s in solved],
    [s.upper for s in solved],
    parameter="ε",
    quantity="c  [regret / log n]",
    reference=lambda e: ao.instances.known_value("counter-example", epsilon=e),
    width=5,
)
