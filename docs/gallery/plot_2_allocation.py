"""
Who explores, and for whom
==========================

Forty random arms in five dimensions. Few of them are played (α), and few of the constraints bind (λ); the multipliers
add up to c.
"""

import allocopt as ao

bandit = ao.instances.random_unit(5, 40, seed=3)
solution = ao.solve(ao.programs.regret(bandit))
figure = ao.plots.allocation(solution, width=5)

# %%
# Shares of c:

rest = bandit.suboptimal_arms
paid = solution.allocation[rest] * bandit.gaps[rest]
print(
    f"c = {solution.value:.6f}, {(paid > 1e-6 * solution.value).sum()} arms pay for it, {len(solution.binding)} constraints bind"
)
print(f"Σλ = {solution.multipliers.sum():.6f}")
