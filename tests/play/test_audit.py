"""The audit: the lower bound's test for every arm, against brute force, on schedules and on policies that fail it."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import bandits

import allocopt as ao
from allocopt.insight.instances import counter_example, finite_armed
from allocopt.play.audit import audit
from allocopt.policies.schedule.schedule import Schedule

EASY = (
    "plain",
    "integers",
    "duplicates",
    "collinear",
    "rank-deficient",
    "as many arms as dimensions",
    "zero is optimal",
)
seeds = st.integers(0, 2**32 - 1)


def counts_of(bandit, seed, most=50):
    return np.random.default_rng(seed).integers(1, most, bandit.n_arms)


@given(bandits(kinds=EASY), seeds, st.floats(1e-2, 1e2))
def test_evidence_is_the_theorems_ratio(bandit, seed, variance):
    """2σ² log n · ||x − x*||²_{G^-1}/Δ², by the pseudo-inverse (every arm is played, so every direction is in its range)."""
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    assume(len(np.unique(bandit.arms[bandit.optimal_arms], axis=0)) == 1)
    counts = counts_of(bandit, seed)
    n = int(counts.sum())
    gram = bandit.arms.T @ (counts[:, None] * bandit.arms)
    values = np.linalg.svd(gram, compute_uv=False)
    assume(values[bandit.rank - 1] > 1e-6 * values[0])
    report = audit(noisy, counts, n)
    difference = bandit.arms - bandit.arms[bandit.optimal_arms[0]]
    squared = np.einsum("ij,jk,ik->i", difference, np.linalg.pinv(gram, rcond=1e-9), difference)
    s = bandit.suboptimal_arms
    expected = 2 * variance * math.log(n) * squared[s] / bandit.gaps[s] ** 2
    np.testing.assert_allclose(report.evidence[0, s], expected, rtol=1e-5)
    assert (report.evidence[0, bandit.optimal_arms] == 0).all()
    assert set(report.under_explored) == set(s[report.evidence[0, s] > 1])
    assert (np.diff(report.evidence[0, report.under_explored]) <= 0).all()


@given(bandits(kinds=("plain", "duplicates", "as many arms as dimensions")), st.integers(10**9, 10**12))
def test_a_schedule_of_the_paper_passes_its_own_audit(bandit, n):
    """At level f_n > 2 log n the constraints hold with room, for x in place of x − x*; the difference is O(1/n)."""
    solution = ao.solve(ao.programs.regret(bandit))
    schedule = Schedule.from_solution(solution, n)
    assume(
        schedule.complete
        and schedule.pulls[schedule.free_arms].min() > 1e5 * schedule.allocation[solution.support].max(initial=1)
    )
    report = audit(bandit, schedule.pulls, n, solution=solution)
    assert not len(report.under_explored)
    assert report.regret[0] == pytest.approx(schedule.regret)
    ratio = report.exploration[0, solution.support]
    assert (ratio >= schedule.scale / math.log(n) * (1 - 1e-6)).all()


@given(bandits(kinds=("plain", "as many arms as dimensions")), st.integers(10**8, 10**12))
def test_half_of_the_optimal_allocation_is_under_explored(bandit, n):
    """The audit can fail: below the lower bound's own allocation some binding arm lacks evidence."""
    solution = ao.solve(ao.programs.regret(bandit))
    assume(np.isfinite(solution.allocation).sum() > 0)
    pulls = np.where(np.isinf(solution.allocation), 0.0, 0.5 * solution.allocation * math.log(n))
    assume(pulls.sum() < 1e-5 * n)
    pulls[solution.optimal_arms[0]] = n - pulls.sum()
    report = audit(bandit, pulls, n, solution=solution)
    assert set(report.under_explored) & set(solution.binding)
    assert report.evidence.max() == pytest.approx(2, rel=1e-2)
    np.testing.assert_allclose(report.regret_ratio, 0.5, rtol=1e-6)


def test_optimism_on_the_counter_example_is_found_out():
    """It stops playing e2, so x3 is never told apart from x1 cheaply: more and more evidence is missing."""
    times = np.array([10**4, 10**5, 10**6])
    pulls = np.array([[n - 2 - 200, 2, 200] for n in times])
    report = audit(counter_example(0.01), pulls, times)
    assert report.under_explored[0] == 2
    assert (np.diff(report.evidence[:, 2]) > 0).all()
    np.testing.assert_allclose(report.regret, 2 + 0.01 * 200)
    assert report.over_explored.tolist() == [2]  # the optimal allocation never plays it
    assert np.isinf(report.exploration[-1, 2])
    assert report.excess[-1, 2] == pytest.approx(2.0)
    assert report.excess[-1, 1] == pytest.approx(2 - 8 * math.log(10**6))


def test_finite_armed_ratios_by_hand():
    gaps = np.array([0.0, 0.5, 0.25])
    n = 10_000
    report = audit(finite_armed(gaps), [n - 300, 100, 200], n)
    expected = 2 * math.log(n) * (1 / np.array([100, 200]) + 1 / (n - 300)) / gaps[1:] ** 2
    np.testing.assert_allclose(report.evidence[0, 1:], expected, rtol=1e-12)
    np.testing.assert_allclose(
        report.exploration[0, 1:], np.array([100, 200]) / (2 / gaps[1:] ** 2 * math.log(n)), rtol=1e-7
    )
    rows = report.table()
    assert [r.arm for r in rows] == [2, 1, 0]
    assert rows[0].evidence == report.evidence[0, 2]
    assert (rows[0].n, rows[0].gap, rows[0].pulls, rows[0].label) == (n, 0.25, 200.0, None)
    assert rows[2].optimal_pulls == math.inf
    assert not any(math.isnan(x) for r in rows for x in r if isinstance(x, float))


def test_directions_that_were_never_explored_are_infinitely_uncertain():
    report = audit(ao.LinearBandit(np.eye(3), [1, 0.5, 0.2]), [90, 10, 0], 100)
    assert report.evidence[0, 2] == math.inf
    assert report.under_explored[0] == 2
    assert np.isfinite(report.evidence[0, 1])
    nothing = audit(ao.LinearBandit([[1, 0], [0, 1], [0.5, 0]], [1, 0]), [0, 100, 0], 100)
    assert nothing.evidence.tolist() == [[0, math.inf, math.inf]]


def test_runs_are_averaged():
    bandit = counter_example(0.1)
    runs = np.array([[[80, 15, 5], [900, 60, 40]], [[90, 5, 5], [940, 40, 20]]])
    mean = runs.mean(axis=0)
    report = audit(bandit, runs, [100, 1000])
    assert report.runs == 2
    np.testing.assert_array_equal(report.evidence, audit(bandit, mean, [100, 1000]).evidence)
    last = audit(bandit, runs[:, 1], 1000)
    assert last.runs == 2
    np.testing.assert_array_equal(last.evidence[0], report.evidence[1])
    np.testing.assert_array_equal(report.under_explored_at(0), audit(bandit, mean[0], 100).under_explored)
    assert report.table(0)[0].n == 100
    assert "regret/(c log n)" in repr(report)
    for bad in (2, "x"):
        with pytest.raises(ao.InvalidOption, match="time: expected a position from 0 to 1"):
            report.table(bad)


@given(bandits(kinds=("exact ties",), max_dim=4, max_arms=8), seeds)
def test_with_ties_the_distance_is_to_the_convex_hull_of_the_optimal_arms(bandit, seed):
    counts = counts_of(bandit, seed)
    n = int(counts.sum())
    report = audit(bandit, counts, n)
    gram = bandit.arms.T @ (counts[:, None] * bandit.arms)
    assume(np.linalg.cond(gram) < 1e6)
    inverse = np.linalg.inv(gram)
    best = bandit.arms[bandit.optimal_arms]
    for i in bandit.suboptimal_arms[:2].tolist():

        def squared(w, i=i):
            p = np.abs(w) / max(np.abs(w).sum(), 1e-300)
            return float((bandit.arms[i] - p @ best) @ inverse @ (bandit.arms[i] - p @ best))

        starts = [np.full(len(best), 1.0), *np.eye(len(best)) + 1e-3]
        found = min(minimize(squared, w, method="SLSQP", tol=1e-12).fun for w in starts)
        expected = 2 * math.log(n) * found / bandit.gaps[i] ** 2
        assert report.evidence[0, i] <= expected * (1 + 1e-6)
        assert report.evidence[0, i] >= expected * (1 - 1e-2)


def test_a_tied_arm_that_is_never_played_leaves_its_direction_unknown():
    bandit = ao.LinearBandit([[1, 0], [1, 1], [0.5, 0]], [1, 0])
    assert audit(bandit, [90, 0, 10], 100).evidence[0, 2] == math.inf
    assert audit(bandit, [45, 45, 10], 100).evidence[0, 2] < math.inf


def test_equal_arms_are_judged_together():
    arms = [[1, 0], [0, 1], [0, 1]]
    bandit = ao.LinearBandit(arms, [1, 0.5])
    n = 1000
    one, other = (audit(bandit, [n - 60, *split], n) for split in ([60, 0], [20, 40]))
    np.testing.assert_allclose(one.exploration, other.exploration)
    np.testing.assert_allclose(one.exploration[0, 1:], 60 / (8 * math.log(n)), rtol=1e-7)


GOOD = {"bandit": counter_example(0.1), "pulls": [80, 15, 5], "n": 100}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("bandit", {"bandit": "x"}), ("pulls", {"pulls": [80, 20]}), ("pulls", {"pulls": [81, 20, -1]}),
        ("pulls", {"pulls": [80, 15, math.nan]}), ("pulls", {"pulls": [80, 15, 6]}), ("pulls", {"pulls": "x"}),
        ("pulls", {"pulls": [[1], [2, 3]]}), ("pulls", {"pulls": [[[80, 15, 5]]]}), ("pulls", {"pulls": [True, False, True]}),
        ("pulls", {"pulls": []}), ("pulls", {"pulls": [80, 15, 5], "n": [100]}), ("n", {"n": 2}), ("n", {"n": "x"}),
        ("n", {"n": []}), ("n", {"n": [[100]]}), ("n", {"n": 100.5}), ("n", {"n": [100, None]}), ("under", {"under": 0}),
        ("over", {"over": -1}), ("solution", {"solution": "x"}),
        ("solution", {"solution": ao.solve(ao.programs.g_optimal(np.eye(2)))}),
        ("solution", {"solution": ao.regret_constant(np.eye(3), [1, 0, 0.5])}),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(name, what):
    with pytest.raises(ao.AllocoptError, match=f"^{name}: ") as refused:
        audit(**{**GOOD, **what})
    assert "\n" not in str(refused.value)


def test_a_failed_solution_is_refused():
    solution = dataclasses.replace(
        ao.solve(ao.programs.regret(GOOD["bandit"])), status=ao.Status.FAILED, stats={"reason": "because"}
    )
    with pytest.raises(ao.InvalidOption, match="because"):
        audit(**GOOD, solution=solution)


def test_where_every_arm_is_optimal_every_policy_is():
    found = audit(ao.LinearBandit([[1, 0], [1, 1]], [1, 0]), [50, 50], 100)
    assert found.regret_ratio.tolist() == [1.0] and not len(found.under_explored)


def test_where_c_is_zero_the_ratio_is_one_without_regret_and_infinite_with():
    bandit = ao.LinearBandit([[1.0, 0.0], [0.5, 0.0]], [1.0, 0.0])  # the best arm tells everything
    found = ao.audit(bandit, [[10, 0], [90, 10]], [10, 100])
    assert found.solution.value == 0
    assert found.regret_ratio.tolist() == [1.0, np.inf]
    assert "=inf" in repr(found)
