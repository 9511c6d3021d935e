"""Closed forms and laws of docs/math.md section 6, each over instances that are hard to be right on."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.instances import counter_example, finite_armed, optimism_example, soare
from allocopt.model.levels import f_n
from allocopt.model.programs import horizon_at_level

EASY = ("plain", "integers", "duplicates", "collinear", "as many arms as dimensions", "zero is optimal")
seeds = st.integers(0, 2**32 - 1)


def regret(bandit, **how):
    return ao.solve(ao.programs.regret(bandit), **how)


def near(solution, value, slack=1e-12):
    """The value is proven to the tolerance, and the interval contains it, up to the rounding of the value itself."""
    return answered(solution) and solution.lower * (1 - slack) <= value <= solution.upper * (1 + slack)


def same(one, other, slack=1e-9):
    """Both values are proven to the tolerance, and their intervals have a number in common: [0, inf] is no answer."""
    assert answered(one)
    assert answered(other)
    return one.lower <= other.upper * (1 + slack) and other.lower <= one.upper * (1 + slack)


@given(bandits())
def test_every_certified_interval_contains_the_proven_one(bandit):
    s = regret(bandit)
    e = s.verify()
    assert e.lower <= e.upper
    assert answered(s)
    if not e.notes and not e.tied_gaps:
        # both are intervals for the same number; the floating one allows for its own rounding
        assert s.lower <= e.midpoint <= s.upper
        assert e.gap <= 3 * s.tol


@given(bandits(kinds=EASY), st.floats(0.51, 5.0))
def test_bounded_programs_are_proven_too(bandit, width):
    for program in (ao.programs.optimism(bandit, width), ao.programs.remaining(bandit, np.ones(bandit.n_arms), 1000)):
        s = ao.solve(program, tol=1e-7)
        assert answered(s)
        e = s.verify()
        assert s.lower <= e.midpoint <= s.upper
        assert e.gap <= 1e-6
        assert (s.allocation >= program.lower).all()
        assert (s.allocation <= program.upper).all()


@given(bandits())
def test_allocation_is_feasible_as_the_definition_says(bandit):
    """||x||²_{H^-1} <= Δ²/2 in the original coordinates, with a finite α on the free arms that grows."""
    assume(np.linalg.matrix_rank(bandit.arms) == bandit.dim)
    assume(np.linalg.cond(bandit.arms) < 1e2)
    assume(len(bandit.suboptimal_arms))
    assume(bandit.gap_min > 1e-5 * bandit.gap_max)
    s = regret(bandit)
    assert answered(s)
    excess = []
    for large in (1e3, 1e6):
        alpha = np.where(np.isinf(s.allocation), large * s.allocation[s.support].max(initial=1.0), s.allocation)
        rows = bandit.arms * np.sqrt(alpha)[:, None]
        factor = np.linalg.qr(rows, mode="r")
        x = bandit.arms[bandit.suboptimal_arms]
        norms = (np.linalg.solve(factor.T, x.T) ** 2).sum(axis=0)
        excess.append((norms / (bandit.gaps[bandit.suboptimal_arms] ** 2 / 2) - 1).max())
    assert excess[1] <= max(1e-3 * excess[0] * 10, 1e-6)


@given(st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=8))
def test_orthogonal_arms_give_the_finite_armed_constant(gaps):
    s = regret(finite_armed([0.0, *gaps]))
    assert s.method == "closed-form"
    assert near(s, sum(2 / g for g in gaps), 1e-11)


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.01, 3)), min_size=1, max_size=8))
def test_one_dimensional_quotient_has_a_closed_form(rest):
    arms = np.array([[1.0, 0.0], *[[1.0 - gap, y] for y, gap in rest]])
    gaps = 1.0 - arms[1:, 0]
    y = arms[1:, 1]
    assume(np.abs(y).max() > 1e-3)
    y = arms[1:, 1] = np.where(np.abs(y) > 1e-100, y, 0.0)
    useful = y != 0
    value = (2 * y**2 / gaps**2).max() * (gaps[useful] / y[useful] ** 2).min()
    for method in ("closed-form", "interior-point", "active-set"):
        assert near(regret(ao.LinearBandit(arms, [1, 0]), method=method), value, 1e-11)


@given(seeds, st.integers(2, 6), st.floats(1e-3, 1e3))
def test_equal_gaps_give_the_kiefer_wolfowitz_value(seed, d, gap):
    rng = np.random.default_rng(seed)
    arms = np.zeros((3 * d, d))
    arms[:, :-1] = rng.normal(size=(3 * d, d - 1))
    arms[:, -1] = -gap
    arms[0] = 0.0
    arms[0, 0] = 1.0  # x* = e_1 has mean 0, so x* is divided out and d − 1 dimensions are left
    s = regret(ao.LinearBandit(arms, np.eye(d)[-1]))
    assert near(s, 2 * (d - 1) / gap, 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 0.05, 0.01, 1e-4, 1e-6])
@pytest.mark.parametrize(
    ("method", "tol"),
    [("closed-form", 1e-8), ("interior-point", 1e-8), ("active-set", 1e-8), ("conic", 1e-8), ("frank-wolfe", 1e-3)],
)
def test_the_papers_counter_example_is_8_by_every_method(epsilon, method, tol):
    s = regret(counter_example(epsilon), method=method, tol=tol)
    assert answered(s)
    assert s.value == pytest.approx(8, rel=max(tol, 1e-8))
    s = regret(counter_example(epsilon, informative=False), method=method, tol=tol)
    assert answered(s)
    assert s.value == pytest.approx(2 / epsilon, rel=max(tol, 1e-8))


@given(st.integers(2, 6), st.floats(1.1, 4.0), st.floats(-6, -1.3))
def test_the_counter_example_in_d_dimensions(d, a, exponent):
    epsilon = 10.0**exponent
    assume(epsilon < 0.9 / a**2)
    s = regret(counter_example(epsilon, a, d))
    assert s.value == pytest.approx(2 * a**2 * (d - 1), rel=1e-8)
    s = regret(counter_example(epsilon, a, d, informative=False))
    assert s.value == pytest.approx(2 * (d - 1) / epsilon, rel=1e-8)


@given(st.floats(0.5, 4.0), st.floats(-6, -3))
def test_price_of_optimism_has_its_closed_form(a, exponent):
    epsilon = 10.0**exponent
    assume(epsilon < 0.9 / (8 * a) ** 2)
    bandit = optimism_example(epsilon, a)
    assert regret(bandit).value == pytest.approx(128 * a**2, rel=1e-7)
    s = ao.solve(ao.programs.optimism(bandit, a))
    assert s.value == pytest.approx(4 * a + (2 - 1 / (16 * a)) / epsilon, rel=1e-7)


@given(bandits(kinds=EASY), st.floats(1e-3, 1e3))
def test_scaling_theta_divides_the_constant(bandit, factor):
    scaled = ao.LinearBandit(bandit.arms, factor * bandit.theta)
    assert near(regret(scaled), regret(bandit).value / factor, 1e-7)


@given(bandits(kinds=EASY), st.floats(1e-3, 1e3))
def test_noise_variance_multiplies_the_constant(bandit, variance):
    noisy = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    assert near(regret(noisy), variance * regret(bandit).value, 1e-7)


@given(bandits(kinds=("plain", "duplicates", "near tie")), seeds)
def test_a_change_of_basis_changes_nothing(bandit, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(bandit.dim, bandit.dim)) + 2 * np.eye(bandit.dim)
    assume(np.linalg.cond(q) < 100)
    moved = ao.LinearBandit(bandit.arms @ q, np.linalg.solve(q, bandit.theta))
    assume(moved.gap_min > 1e-6 * moved.gap_max)
    assert near(regret(moved), regret(bandit).value, 1e-6)


@given(bandits(), seeds)
def test_duplicated_arms_change_nothing(bandit, seed):
    rng = np.random.default_rng(seed)
    extra = rng.integers(0, bandit.n_arms, 3)
    twice = ao.LinearBandit(np.concatenate([bandit.arms, bandit.arms[extra]]), bandit.theta)
    assert same(regret(bandit), regret(twice))


@given(bandits(), seeds)
def test_the_order_of_the_arms_does_not_matter(bandit, seed):
    order = np.random.default_rng(seed).permutation(bandit.n_arms)
    assert same(regret(bandit), regret(ao.LinearBandit(bandit.arms[order], bandit.theta)))


@given(bandits())
def test_the_constant_is_at_most_that_of_ucb(bandit):
    s = regret(bandit)
    assert answered(s)
    assert s.lower <= np.sum(2 / bandit.gaps[bandit.suboptimal_arms]) * (1 + 1e-9)


@given(bandits(), st.integers(3, 10**9))
def test_horizon_solution_is_the_regret_solution_times_half_the_level(bandit, n):
    s = ao.optimal_pulls(bandit.arms, bandit.gaps, n)
    level = f_n(n, bandit.rank)
    c = regret(bandit)
    assert answered(s)
    assert answered(c)
    assert s.lower <= level / 2 * c.upper * (1 + 1e-9)
    assert level / 2 * c.lower <= s.upper * (1 + 1e-9)
    assert set(s.optimal_arms) == set(np.flatnonzero(bandit.gaps == 0))


@given(seeds, st.integers(2, 5), st.integers(3, 10**6))
def test_gaps_need_not_come_from_a_parameter_and_lemma_opt_holds(seed, d, n):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(d, 3 * d))
    arms, gaps = rng.normal(size=(k, d)), rng.uniform(0, 1, k) * (rng.uniform(size=k) > 0.2)
    assume((gaps > 0).any())
    assume(gaps[gaps > 0].min() > 1e-3)
    s = ao.optimal_pulls(arms, gaps, n)
    assert answered(s)
    positive = gaps[gaps > 0]
    level = f_n(n, np.linalg.matrix_rank(arms))
    assert s.allocation[gaps > 0].sum() <= 2 * d**3 * level * positive.max() / positive.min() ** 3


@given(seeds, st.integers(2, 4), st.floats(-8, -1))
def test_truncated_pulls_nearly_meet_the_constraints(seed, d, exponent):
    """Lemma 17 (`lem:t-bound`), with the factor 1.01 that it needs: truncation at m·f_n costs at most 1/m in a tight constraint."""
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(3 * d, d))
    gaps = rng.uniform(0.1, 1, 3 * d)
    gaps[0], gaps[1] = 0.0, 10.0**exponent
    epsilon, level = 0.05, f_n(1000, d)
    s = ao.optimal_pulls(arms, gaps, 1000)
    assert answered(s)
    m = 1e6 * d**2 / epsilon**2
    truncated = np.minimum(s.allocation, m * level)
    norms = np.einsum("ij,ji->i", arms, np.linalg.solve(arms.T @ (truncated[:, None] * arms), arms.T))
    assert (norms <= 1.01 * np.maximum(epsilon**2, gaps**2) / level).all()


@given(bandits())
def test_g_optimal_value_is_the_rank(bandit):
    s = ao.solve(ao.programs.g_optimal(bandit.arms))
    assert near(s, bandit.rank, 1e-9)


@pytest.mark.parametrize(("d", "value"), [(2, 220.150), (6, 222.250)])
def test_best_arm_time_of_soares_family(d, value):
    assert ao.solve(ao.programs.best_arm(soare(d))).value == pytest.approx(value, abs=5e-4)


@given(bandits(kinds=("plain",)), st.integers(0, 100))
def test_envelope_theorem_gives_the_derivative_in_each_gap(bandit, pick):
    """∂c/∂Δ_j = α_j − 2λ_j/Δ_j, and ⟨θ, ∇_θ c⟩ = −c."""

    def solve(gaps):
        return ao.solve(horizon_at_level(bandit.arms, gaps, 2.0, None), tol=1e-10)

    s = solve(bandit.gaps)
    assume(s.gap < 1e-9)
    sub = bandit.suboptimal_arms
    derivative = s.allocation[sub] - 2 * s.multipliers[sub] / bandit.gaps[sub]
    assert derivative @ bandit.gaps[sub] == pytest.approx(-s.value, rel=1e-8)
    j = pick % len(sub)
    step = 1e-4 * bandit.gaps[sub[j]]
    ends = []
    for sign in (1, -1):
        moved = bandit.gaps.copy()
        moved[sub[j]] += sign * step
        ends.append(solve(moved).value)
    left, right = (s.value - ends[1]) / step, (ends[0] - s.value) / step
    slack = 1e-3 * s.value / bandit.gaps[sub[j]]
    # c need not be smooth: the derivative lies between the one-sided ones
    assert min(left, right) - slack <= derivative[j] <= max(left, right) + slack


def test_tight_tolerance_is_reached_on_well_conditioned_instances():
    from allocopt.insight.instances import random_unit

    for d, k in ((5, 20), (10, 50)):
        s = regret(random_unit(d, k), tol=1e-10)
        assert answered(s)
        assert s.gap <= 1e-10


@pytest.mark.parametrize("ratio", [1e-12, 1e-13, 3e-14])
def test_hopeless_instances_report_a_true_gap(ratio):
    rng = np.random.default_rng(1)
    arms = rng.normal(size=(8, 3))
    theta = rng.normal(size=3)
    best = int(np.argmax(arms @ theta))
    arms[(best + 1) % 8] = arms[best] - theta * ratio + np.cross(theta, arms[best]) * 1e-7
    s = regret(ao.LinearBandit(arms, theta, tie_tolerance=0.0))
    e = s.verify()
    assert s.lower <= e.upper
    assert s.upper >= e.lower
    if answered(s):
        assert s.lower <= e.midpoint <= s.upper
    else:
        assert s.gap > s.tol
        assert math.isfinite(s.value) or s.status is ao.Status.FAILED
