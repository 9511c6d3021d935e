"""
Regret over time
================

Policies on the paper's example. c·log n is what the best policies pay in the end; optimism (LinUCB) and Thompson
sampling pay more and more.
"""

import allocopt as ao

bandit = ao.instances.counter_example(0.05)
curves = {name: ao.simulate(name, bandit, 10**5, 30, rng=0) for name in ("OptimalTracking", "LinTS", "LinUCB:a=2")}
figure = ao.plots.regret_curves(curves, constant=8.0, width=5)

# %%
# Is the difference real? The same seed is the same noise, so that the policies are compared run by run:

print(ao.compare(curves["OptimalTracking"], curves["LinUCB:a=2"]).verdict)
