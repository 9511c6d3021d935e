"""Rounding: the best there is, and what it loses."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from schedules import orders, regret, seeds
from strategies import bandits

import allocopt as ao
from allocopt.play.schedule.rounding import efficient_apportionment
from allocopt.play.schedule.schedule import Schedule


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=4), st.integers(0, 9), seeds)
def test_efficient_apportionment_is_the_best_there_is(weights, extra, seed):
    w = np.array(weights)
    n = len(w) + extra
    spent = np.random.default_rng(seed).integers(0, 2, len(w)) * (seed % 2)
    counts = efficient_apportionment(w, n, spent)
    assert counts.sum() == n
    assert (counts >= spent).all()
    best = max(
        (np.array(c) / w).min()
        for c in product(range(n + 1), repeat=len(w))
        if sum(c) == n and (np.array(c) >= spent).all()
    )
    assert (counts / w).min() == pytest.approx(best, rel=1e-12)


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=40), st.integers(1, 10**15))
def test_efficient_apportionment_loses_at_most_one_round_an_arm(weights, n):
    w = np.array(weights)
    assume(n >= len(w))
    counts = efficient_apportionment(w, n)
    assert counts.sum() == n
    assert counts.min() >= 1
    assert (counts / (n * w / w.sum())).min() >= (1 - len(w) / n) * (1 - 1e-12)


@given(
    bandits(kinds=("plain", "duplicates", "rank-deficient", "as many arms as dimensions")),
    st.integers(20, 10**9),
    orders,
)
def test_designs_spend_exactly_the_horizon_and_lose_little(bandit, n, order):
    for program in (ao.programs.g_optimal(bandit.arms), ao.programs.best_arm(bandit)):
        solution = ao.solve(program)
        support = len(solution.support)
        if n < support:
            continue
        s = Schedule.from_solution(solution, n, order=order)
        assert s.pulls.sum() == n
        check = s.check()
        np.testing.assert_allclose(check.radii, program.radii * solution.value / n, rtol=1e-6)
        if n > support:
            assert check.worst <= (1 + 1e-6) / (1 - support / n)
        np.testing.assert_allclose(check.norms, check.finite_norms)


def test_efficient_rounding_of_a_regret_solution_keeps_its_number_of_pulls():
    solution = regret(ao.LinearBandit(np.eye(4), [1, 0.5, 0.4, 0.3]))
    s = Schedule.from_solution(solution, 10**5, rounding="efficient")
    assert s.pulls[1:].sum() == math.ceil(s.allocation[1:].sum())
    s = Schedule.from_solution(solution, 10**5, rounding="efficient", exploration=50)
    assert s.pulls[1:].sum() == 50
    assert not s.check().met
    assert s.pulls.sum() == 10**5
