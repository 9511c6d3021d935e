"""C·c(A,θ')·log n as what a policy may pay at an alternative: so many times what the best policies pay there in the end."""

from __future__ import annotations

import math
from collections.abc import Callable

from allocopt.base.validation import positive_number, whole_number
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.solving.solve import solve

__all__ = ["times_optimal"]

_TOL = 1e-6  # of c(A,θ'): B_j is a demand, not a claim
_LEAST_ROUNDS = 3  # log n is no sensible scale for fewer


def times_optimal(factor: float, n: float) -> Callable[[LinearBandit], float]:
    """B as a function of the alternative: ``factor`` · c(A,θ') · log n; inf (no demand) where c is 0, or not to be had.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.instances.counter_example(0.2)
    >>> round(times_optimal(10, 10**6)(bandit) / ao.regret_constant(bandit.arms, bandit.theta).value, 6)
    138.155106
    """
    times = positive_number("factor", factor)
    log_n = math.log(whole_number("n", n, least=_LEAST_ROUNDS))

    def allowed(alternative: LinearBandit) -> float:
        if not len(alternative.suboptimal_arms):
            return math.inf
        c = solve(regret(alternative), tol=_TOL).upper
        return times * c * log_n if c > 0 else math.inf

    return allowed
