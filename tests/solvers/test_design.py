"""G-optimal designs by way of D-optimal ones: the equivalence theorem, screening, starts, and arms block by block."""

import numpy as np
import pytest
from blocks import in_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

import allocopt as ao
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import random_unit
from allocopt.solvers import design
from allocopt.solvers.methods import METHODS
from allocopt.solvers.settings import DesignSettings


def canonical(arms):
    return reduce(ao.programs.g_optimal(arms)).canonical


def away_steps(arms, tol):
    """A referee: weights of the D-optimal design by away-step Frank–Wolfe (Todd and Yıldırım 2007)."""
    n, d = arms.shape
    w = np.full(n, 1 / n)
    while True:
        inverse = np.linalg.inv(arms.T @ (w[:, None] * arms))
        g = np.einsum("ij,jk,ik->i", arms, inverse, arms)
        top, low = int(g.argmax()), int(np.where(w > 0, g, np.inf).argmin())
        if g[top] <= d * (1 + tol):
            return w
        i = top if g[top] - d > d - g[low] else low
        step = (g[i] / d - 1) / (g[i] - 1) if g[i] > 1 else -np.inf
        step = max(step, -w[i] / (1 - w[i]))
        w *= 1 - step
        w[i] += step


@pytest.mark.parametrize("k", [5, 30, 200])
def test_the_design_is_that_of_away_steps(k):
    arms = np.random.default_rng(k).normal(size=(k, 4))
    s = ao.solve(ao.programs.g_optimal(arms), "design", tol=1e-9)
    assert s.method == "design"
    assert s.status is ao.Status.CERTIFIED
    assert s.value == pytest.approx(4.0, rel=1e-9)
    w = away_steps(arms, 1e-6)
    mine = arms.T @ (s.allocation[:, None] * arms) / s.allocation.sum()
    assert mine == pytest.approx(arms.T @ (w[:, None] * arms), rel=1e-2, abs=2e-3)  # M of an optimal design is unique


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(-3, 3))
@settings(max_examples=60)
def test_every_set_of_arms_has_a_design_whose_value_is_its_rank(seed, d, scale):
    rng = np.random.default_rng(seed)
    arms = rng.integers(-2, 3, size=(int(rng.integers(1, 40)), d)) * 10.0**scale
    arms = np.concatenate([arms, arms[: len(arms) // 2], rng.normal(size=(d, d)) * 10.0**scale])
    s = ao.solve(ao.programs.g_optimal(arms), "design")
    assert s.status is ao.Status.CERTIFIED
    assert s.lower <= np.linalg.matrix_rank(arms) <= s.upper
    assert s.gap <= 1e-8


def test_equal_gaps_are_a_design_and_auto_finds_it():
    arms = np.vstack([np.zeros(3), np.random.default_rng(3).normal(size=(40, 3))])
    gaps = np.r_[0.0, np.full(40, 0.25)]
    s = ao.solve(ao.programs.horizon(arms, gaps, 1000))
    again = ao.solve(ao.programs.horizon(arms, gaps, 1000), "active-set")
    assert s.stats["formula"] == "equal gaps" and "products" in s.stats
    assert s.value == pytest.approx(s.stats["formula_value"], rel=1e-8)
    assert s.value == pytest.approx(again.value, rel=2e-8)
    with pytest.raises(ao.MethodUnavailable, match="features times one number"):
        ao.solve(ao.programs.regret(random_unit(3, 20)), "design")


def test_screening_keeps_every_point_of_the_support():
    """Of very different points nearly all leave, and what is left is optimal for all."""
    arms = np.random.default_rng(0).normal(size=(3000, 5))
    s = ao.solve(ao.programs.g_optimal(arms), "design")
    assert s.stats["candidates"] < 100 and s.status is ao.Status.CERTIFIED
    assert set(s.support) <= set(np.argsort(-np.linalg.norm(arms, axis=1))[:300])


def test_the_screening_bound_is_that_of_harman_and_pronzato():
    """For any weights, no optimal design uses a point that leaves; here the optimum is known: the corners of a square."""
    rng = np.random.default_rng(1)
    corners = np.array([[1.0, 1.0], [1.0, -1.0]])
    arms = np.vstack([corners, rng.uniform(-1, 1, size=(50, 2))])
    left = []
    for _ in range(20):
        w = rng.dirichlet(np.r_[5.0, 5.0, np.full(50, 0.02)])
        basis = np.linalg.inv(np.linalg.cholesky(arms.T @ (w[:, None] * arms))).T
        images = arms @ basis
        g = (images**2).sum(axis=1)
        kept = design._candidates(design._Seen(images, g, g.max() / 2 - 1), 1.0, 0.99)
        left.append(0 if kept is None else 52 - len(kept))
        assert kept is None or {0, 1} <= set(kept)
    assert max(left) > 20


def test_more_arms_on_a_sphere_than_matrices_have_dimensions_are_no_difficulty():
    arms = np.random.default_rng(5).normal(size=(2000, 6))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    s = ao.solve(ao.programs.g_optimal(arms), "design")
    assert s.status is ao.Status.CERTIFIED and "finished_by" not in s.stats and s.stats["iterations"] <= 20


def test_a_known_design_is_a_start():
    arms = np.random.default_rng(6).normal(size=(300, 8))
    program = ao.programs.g_optimal(arms)
    first = ao.solve(program, "design")
    assert ao.solve(program, "design", start=first).stats["iterations"] == 0
    near = ao.programs.g_optimal(arms * (1 + 1e-4 * np.random.default_rng(7).normal(size=arms.shape)))
    warm, cold = ao.solve(near, "design", start=first), ao.solve(near, "design")
    assert warm.status is cold.status is ao.Status.CERTIFIED
    assert warm.stats["iterations"] < cold.stats["iterations"]


@pytest.mark.parametrize("most", [1, 3])
def test_where_steps_run_out_active_set_goes_on(most):
    arms = np.random.default_rng(8).normal(size=(60, 5))
    s = ao.solve(ao.programs.g_optimal(arms), "design", max_iterations=most)
    assert s.stats["finished_by"] == "active-set"
    assert s.status is ao.Status.CERTIFIED


def test_systems_are_solved_alike_with_and_without_a_factor():
    """The preconditioner decides how many products a step takes, not where it leads."""
    rng = np.random.default_rng(9)
    images = np.linalg.qr(rng.normal(size=(80, 6)))[0] * rng.uniform(0.5, 2.0, size=(80, 1))
    g = (images**2).sum(axis=1)
    diagonal = g * g * 10.0 ** rng.uniform(-4, 6, 80)
    right = rng.normal(size=80)
    exact = np.linalg.solve((images @ images.T) ** 2 + np.diag(diagonal), right)
    used = []
    for most in (0, 80):
        x, products = design._System(images, g, diagonal, most).solved(right, 1e-10, 500)
        assert x == pytest.approx(exact, rel=1e-6, abs=1e-9 * np.abs(exact).max())
        used.append(products)
    assert used[1] < 0.5 * used[0]


def test_a_common_ratio_is_seen_with_and_without_ratios():
    arms = np.random.default_rng(10).normal(size=(20, 3))
    with_ratios = canonical(arms)
    assert with_ratios.ratios is not None and design.common_ratio(with_ratios) == 1.0
    plain = ao.AllocationProgram(arms, np.ones(20), arms, np.full(20, 0.25))
    assert design.common_ratio(reduce(plain).canonical) == pytest.approx(2.0)
    assert METHODS["design"].lacks(reduce(plain).canonical) is None
    for other in (
        ao.AllocationProgram(arms, np.ones(20), arms[:5], np.ones(5)),
        ao.AllocationProgram(arms, np.linspace(1, 2, 20), arms, np.ones(20)),
        ao.AllocationProgram(arms, np.ones(20), arms, np.ones(20), upper=np.full(20, 9.0)),
    ):
        assert design.common_ratio(reduce(other).canonical) is None


@pytest.mark.parametrize("method", ["auto", "design", "active-set", "streaming"])
def test_designs_of_arms_in_blocks(method):
    arms = np.random.default_rng(11).normal(size=(400, 4))
    with in_blocks():
        s = ao.solve(ao.programs.g_optimal(arms), method)
        assert s.program._blocks is not None
    assert s.method == ("active-set" if method == "active-set" else "design")
    assert s.status is ao.Status.CERTIFIED and s.lower <= 4.0 <= s.upper
    inside = ao.solve(ao.programs.g_optimal(arms), "design")
    mine, theirs = (arms.T @ (x.allocation[:, None] * arms) for x in (s, inside))
    assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-3)


def test_other_gaps_in_blocks_are_no_design():
    arms = np.random.default_rng(12).normal(size=(400, 4))
    with in_blocks():
        bandit = ao.LinearBandit(arms, np.ones(4))
        assert ao.solve(ao.programs.regret(bandit)).method == "active-set"
        with pytest.raises(ao.MethodUnavailable, match=r"method 'design' needs .* 'active-set'"):
            ao.solve(ao.programs.regret(bandit), "design")
        streamed = ao.solve(ao.programs.g_optimal(arms), "design", settings=DesignSettings(max_iterations=200))
        assert streamed.status is ao.Status.CERTIFIED
