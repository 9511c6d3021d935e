"""What tests of schedules share: solutions that can be played, orders, counts, and the paper's passes, literally."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import allocopt as ao
from allocopt.policies.schedule.play_order import ORDERS

EASY = (
    "plain",
    "integers",
    "duplicates",
    "collinear",
    "rank-deficient",
    "as many arms as dimensions",
    "zero is optimal",
    "exact ties",
)
orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 2**32 - 1)


def regret(bandit):
    return ao.solve(ao.programs.regret(bandit))


def playable(bandit):
    """The regret solution of a generated bandit; a FAILED one has no schedule (and is refused, see below)."""
    solution = regret(bandit)
    assume(solution.status is not ao.Status.FAILED)
    return solution


def counted(arms, n_arms):
    return np.bincount(np.array(arms, dtype=int), minlength=n_arms)


def passes(quota, free, rounds):
    """The paper's success phase, literally: pass after pass over the arms that are not done."""
    played, sequence = np.zeros(len(quota), dtype=int), []
    while len(sequence) < rounds:
        now = [i for i in range(len(quota)) if i in free or played[i] < quota[i]]
        if not now:
            break
        for i in now:
            played[i] += 1
            sequence.append(i)
    return sequence[:rounds]


LABELS = ["left", '<script>alert("1")</script>', "[bold]x, y[/bold]"]
INSTANCE = {"arms": [[1, 0], [0, 1], [0.75, 0.5]], "theta": [1, 0], "labels": LABELS}
