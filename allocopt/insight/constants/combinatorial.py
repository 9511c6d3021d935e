"""Published Graves–Lai values of combinatorial bandits: arms are sets, and the reward of each of their elements is seen."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np

from allocopt.insight.constants.constant import Constant, Number
from allocopt.insight.constants.regret import finitely_many
from allocopt.model import programs
from allocopt.model.program import AllocationProgram

__all__ = ["COMBINATORIAL"]

_GROUP = "combinatorial"
_SOURCE = "CombinatorialBandits.jl (github.com/dourouc05/CombinatorialBandits.jl), test/policies_graves_lai.jl"


def matchings(n: int) -> AllocationProgram:
    """Perfect matchings of K_{n,n}, every edge of which is seen; mean 2 on the edges of one of them, 1 on all others."""
    columns = list(permutations(range(n)))
    arms = np.zeros((len(columns), n, n))
    for arm, chosen in zip(arms, columns, strict=True):
        arm[range(n), chosen] = 1.0
    return programs.semi_bandit(arms.reshape(-1, n * n), (np.ones((n, n)) + np.eye(n)).ravel(), noise_variance=0.5)


COMBINATORIAL = (
    *(
        Constant(
            name=f"graves-lai-1-sets-of-{d}", group=_GROUP, source=_SOURCE,
            place=f"m-sets, d = {d}, m = 1: Σ 1/(θ_m − θ_i)", quantity="the Graves–Lai value", printed=Number(f"{d - 1}", exact=True),
            instance=f"{d} orthogonal arms, means 2, 1, …, 1, σ² = 1/2",
            program=partial(finitely_many, (0.0,) + (1.0,) * (d - 1), 0.5),
            remark=(
                "Σ 2σ²/Δ with σ² = 1/2. (The test draws Normal(p, 1/2), whose variance is 1/4; its program, Σ 1/t_e <= Δ², is that of "
                "variance 1/2.)"
            ),
        )
        for d in (2, 3, 4)
    ),
    *(
        Constant(
            name=f"graves-lai-matchings-{n}", group=_GROUP, source=_SOURCE,
            place=f"bipartite_target_values, n = {n}" + (" (no test runs it)" if n > 3 else ""),
            quantity="the Graves–Lai value", printed=Number(printed),
            instance=f"perfect matchings of K_{{{n},{n}}}, every edge seen, means 2 on the diagonal and 1 elsewhere, σ² = 1/2",
            program=partial(matchings, n),
            remark=(
                f"n(n − 1)/2 = {n * (n - 1) // 2}. A matching with l edges off the diagonal loses l, and asks for Σ 1/t_e <= l² over "
                "these. Half a play of every transposition makes t_e = 1/2, and 2l <= l², as l >= 2; each of the n(n − 1)/2 costs 1. "
                "Less is not enough: the transposition of i and j asks for 1/t + 1/t' <= 4 of its two edges, so t + t' >= 1."
            ),
        )
        for n, printed in ((2, "1.0"), (3, "3.0"), (4, "6.0"), (5, "27.8697"))
    ),
)  # fmt: skip
"""The rows about arms that are sets."""
