"""
What no policy can beat at this n
=================================

c·log n is no bound at finite n. This one is: a policy with less regret here has regret above 10·c·log n at an
instance that is listed.
"""

import math

import allocopt as ao

bandit = ao.instances.counter_example(0.2)
bounds = [ao.finite_time_bound(bandit, n, worst_regret=80 * math.log(n)) for n in (10**3, 10**4, 10**5, 10**6)]
result = ao.simulate("OptimalTracking", bandit, 10**5, runs=20, rng=0)
figure = ao.plots.bound_curve(bounds, constant=8.0, curves={"OptimalTracking": result}, width=5)

# %%
# The sentence that is proven at the last n:

print(bounds[-1])
assert bounds[-1].verify().holds
