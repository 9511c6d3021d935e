"""
Three arms, and the one that looks hopeless
===========================================

The paper's example, as a picture. The area of a point is what optimal play spends on it; the ring marks the arm whose
constraint binds. In the lower panel is what optimal play cannot rule out: it touches the line beyond which the
confusing arm would be the best one.
"""

import allocopt as ao

bandit = ao.LinearBandit([[1, 0], [0, 1], [0.8, 0.4]], [1, 0], labels=["best", "informative", "confusing"])
solution = ao.solve(ao.programs.regret(bandit))
figure = ao.plots.geometry(bandit, solution, ao.hardness(bandit).alternatives, width=5)

# %%
# The numbers behind it, with their proof:

print(solution)
print(solution.verify())
