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
from allocopt.policies.schedule.rounding import LONGEST, ceilings, efficient_apportionment, whole_pulls
from allocopt.policies.schedule.schedule import Schedule


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


def one_by_one(weights, rounds, spent):
    """The rule itself: each round to the arm of smallest count per weight, ties to the larger weight, then the lower index."""
    counts = list(spent)
    able = [i for i, w in enumerate(weights) if w > 0]
    while sum(counts) < rounds:
        counts[min(able, key=lambda i: (counts[i] / weights[i], -weights[i], i))] += 1
    return counts


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]), min_size=1, max_size=5).filter(any), st.integers(0, 60), seeds
)
def test_efficient_apportionment_hands_out_the_rounds_one_by_one(weights, extra, seed):
    spent = np.random.default_rng(seed).integers(0, 8, len(weights))
    rounds = int(spent.sum()) + extra
    assert efficient_apportionment(weights, rounds, spent).tolist() == one_by_one(weights, rounds, spent.tolist())


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8).filter(any), st.integers(0, 1000), st.integers(-20, 20))
def test_the_scale_of_the_weights_does_not_matter(weights, rounds, exponent):
    w = np.array(weights)
    assume((w[w > 0] > 1e-200).all())
    np.testing.assert_array_equal(
        efficient_apportionment(w, rounds), efficient_apportionment(np.ldexp(w, exponent), rounds)
    )


@given(st.lists(st.one_of(st.floats(0, 1e15), st.just(math.inf)), min_size=1))
def test_ceilings_are_the_least_whole_numbers_that_are_enough(pulls):
    found = ceilings(np.array(pulls))
    for wanted, given_pulls in zip(pulls, found.tolist(), strict=True):
        assert given_pulls >= wanted
        assert given_pulls == wanted if math.isinf(wanted) else given_pulls == math.ceil(wanted)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=9))
def test_whole_pulls_come_back_as_they_are(pulls):
    found = whole_pulls("played", [float(x) for x in pulls], len(pulls))
    assert found.dtype == np.int64
    assert found.tolist() == pulls


@pytest.mark.parametrize(
    ("words", "weights", "rounds", "spent"),
    [
        ("weights: expected numbers >= 0", [-1.0, 1.0], 5, None),
        ("weights: expected numbers >= 0 of which one is positive", [0.0, 0.0], 5, None),
        ("rounds: expected a whole number >= 0", [1.0], -1, None),
        (f"rounds: expected at most {LONGEST}", [1.0], LONGEST + 1, None),
        ("rounds: expected at least the 6 that at_least has, got 5", [1.0, 1.0], 5, [3, 3]),
        ("at_least: expected entries that are whole numbers, but entry 1 is 0.5", [1.0, 1.0], 5, [1, 0.5]),
        (f"at_least: expected at most {LONGEST} rounds in all", [1.0, 1.0], 5, [LONGEST, 1]),
    ],
)
def test_what_cannot_be_apportioned_is_refused_by_name(words, weights, rounds, spent):
    with pytest.raises(ao.InvalidOption, match=f"^{words}"):
        efficient_apportionment(weights, rounds, spent)
