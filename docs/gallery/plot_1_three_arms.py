"""
Three arms: why optimism fails
==============================

The paper's example. The arm e₂ looks hopeless, and is the only one worth exploring.
"""

import allocopt as ao

bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0], labels=["best", "informative", "confusing"])
solution = ao.solve(ao.programs.regret(bandit))
figure = ao.plots.geometry(bandit, solution, width=6)
