"""Every constraint of T_n is met by a complete schedule, and the check is that of the definition."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from schedules import EASY, orders, playable, regret, seeds
from strategies import bandits

import allocopt as ao
from allocopt.insight.instances import counter_example, finite_armed
from allocopt.linear.information import Directions
from allocopt.model.levels import f_n
from allocopt.policies.schedule.rounding import LONGEST
from allocopt.policies.schedule.schedule import Schedule


@given(bandits(), st.integers(3, LONGEST), orders)
def test_a_complete_schedule_meets_every_constraint(bandit, n, order):
    s = Schedule.from_solution(playable(bandit), n, order=order)
    assert s.pulls.sum() == s.length == n
    check = s.check()
    if s.complete:
        assert check.met
        assert (s.pulls[s.solution.support] == np.ceil(s.allocation[s.solution.support])).all()
        assert not len(check.unmet)
    else:
        assert any("does not fit" in note for note in s.notes)
    np.testing.assert_allclose(check.radii, bandit.gaps[check.arms] ** 2 / f_n(n, bandit.rank), rtol=1e-12)
    assert (check.finite_norms >= check.norms * (1 - 1e-6)).all()


@given(bandits(kinds=EASY), st.integers(10**6, 10**12), st.floats(1e-3, 1e3))
def test_the_norms_are_those_of_the_definition(bandit, n, variance):
    """Against plain linear algebra: G_t with the real counts, and with optimal arms that are played ever more often."""
    assume(bandit.rank == bandit.dim)
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    s = Schedule.from_solution(playable(noisy), n, order="explore-first")
    counts = s.pulls.astype(float)
    assume(np.linalg.cond(bandit.arms[counts > 0]) < 1e3)
    assume(np.linalg.matrix_rank(bandit.arms[counts > 0]) == bandit.dim)
    assume(s.complete and counts.max() < 1e10)
    check = s.check()
    x = bandit.arms[check.arms]

    def norms(counts):
        factor = np.linalg.qr(bandit.arms * np.sqrt(counts)[:, None], mode="r")
        return (np.linalg.solve(factor.T, x.T) ** 2).sum(axis=0)

    np.testing.assert_allclose(check.finite_norms, norms(counts), rtol=1e-6)
    counts[s.free_arms] = 1e7 * counts.max()
    # what is left of the finite plays is tiny against the radii, though not against a norm of zero
    np.testing.assert_allclose(check.norms / check.radii, norms(counts) / check.radii, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(check.radii, noisy.gaps[check.arms] ** 2 / (variance * f_n(n, bandit.rank)), rtol=1e-12)
    np.testing.assert_array_equal(check.slack, check.radii - check.norms)
    np.testing.assert_array_equal(check.finite_slack, check.radii - check.finite_norms)


def test_the_excess_of_finite_plays_vanishes():
    solution = regret(counter_example(0.01))
    excess = []
    for n in (10**3, 10**5, 10**7):
        check = Schedule.from_solution(solution, n).check()
        excess.append(((check.finite_norms - check.norms) / check.radii).max())
    assert excess[0] > 20 * excess[1] > 400 * excess[2] > 0


def test_pulls_are_not_enough_one_pull_earlier():
    """The check can fail: one pull less than ⌈T⌉ of the arm that decides."""
    s = Schedule.from_solution(regret(counter_example(0.01)), 10**6, order="explore-first")
    needed = int(s.required[1])
    assert s.check(needed).met
    before = s.check(needed - 1)
    assert not before.met
    assert before.unmet.tolist() == [2]
    assert before.worst > 1
    assert not np.isfinite(s.check(0).norms).any()


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.integers(3, 10**12), orders)
def test_finite_armed_bandits_play_f_n_over_the_squared_gap(gaps, n, order):
    s = Schedule.from_solution(playable(finite_armed([0.0, *gaps])), n, order=order)
    level = f_n(n, len(gaps) + 1)
    wanted = level / 2 * 2 / np.array(gaps) ** 2
    np.testing.assert_allclose(s.allocation[1:], wanted, rtol=1e-7)
    assume(s.complete)
    assert (
        np.abs(s.pulls[1:] - np.ceil(wanted)) <= 1e-6 * wanted + (wanted % 1 < 1e-6) + (wanted % 1 > 1 - 1e-6)
    ).all()
    constant = sum(2 / g for g in gaps)
    assert level / 2 * constant * (1 - 1e-9) <= s.regret <= (level / 2 * constant) * (1 + 1e-7) + sum(gaps)


@given(seeds, st.integers(2, 5), st.integers(3, 10**9))
def test_lemma_opt_holds_for_schedules(seed, d, n):
    """Σ T <= 2 d³ f_n Δ_max/Δ_min³; ceilings add at most one pull an arm of the support."""
    rng = np.random.default_rng(seed)
    arms, gaps = rng.normal(size=(3 * d, d)), rng.uniform(0.05, 1, 3 * d)
    gaps[: 1 + seed % 2] = 0.0
    solution = ao.optimal_pulls(arms, gaps, n)
    s = Schedule.from_solution(solution, n)
    bound = 2 * d**3 * f_n(n, d) * gaps.max() / gaps[gaps > 0].min() ** 3
    explored = int(s.pulls.sum() - s.pulls[gaps == 0].sum())
    assert explored <= bound + len(solution.support)
    assert s.scale == 1.0
    assert s.losses is solution.program.costs


@given(seeds, st.integers(2, 4), st.floats(-8, -1))
def test_lemma_t_bound_holds_for_the_passes(seed, d, exponent):
    """After m·f_n passes the counts are min(m·f_n, ⌈T⌉), and norms are at most 1.01·max(ε², Δ²)/f_n."""
    rng = np.random.default_rng(seed)
    arms, gaps = rng.normal(size=(3 * d, d)), rng.uniform(0.1, 1, 3 * d)
    gaps[0], gaps[1] = 0.0, 10.0**exponent
    n, epsilon = 10**15, 0.05
    s = Schedule.from_solution(ao.optimal_pulls(arms, gaps, n), n)
    passes = math.ceil(1e6 * d**2 / epsilon**2 * f_n(n, d))
    truncated = np.minimum(s.required, passes)
    t = int(truncated.sum())
    assume(t <= n)
    np.testing.assert_array_equal(s.pulls_at(t), truncated)
    assert (s.check(t).finite_norms <= 1.01 * np.maximum(epsilon**2, gaps[1:] ** 2) / f_n(n, d)).all()


@pytest.mark.parametrize("seed", range(20))
def test_side_observations_are_checked_without_their_matrix(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    variances = np.where(rng.random((k, k)) < 0.5, rng.uniform(0.5, 2.0, (k, k)), np.inf)
    variances[np.arange(k), rng.permutation(k)] = 1.0  # every arm is seen by some arm
    program = ao.programs.side_observations(rng.permutation(k) / k, variances)
    schedule = Schedule.from_solution(ao.solve(program), 1000)
    t = int(rng.integers(0, schedule.length + 1))
    found = schedule.check(t)
    counts = (schedule.pulls_at(t)[program.owners] / program.noise_variance).astype(float)
    free = np.flatnonzero(np.isin(program.owners, schedule.free_arms))
    dense = Directions.of(program.features, program.targets, free)
    np.testing.assert_allclose(found.finite_norms, dense.norms(counts), rtol=1e-9)
    np.testing.assert_allclose(found.norms, dense.quotient_norms(counts), rtol=1e-9)
