"""Side observations, semi-bandits and budgets over contexts: known values, a second writing, and what is refused."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

import allocopt as ao

INF = np.inf


def value(program, **how):
    solution = ao.solve(program, **how)
    assert solution.status is ao.Status.CERTIFIED
    return solution.value


# --- semi-bandits


def matchings(n):
    """The perfect matchings of K_{n,n}, with reward 1 on the edges of the first and 0 elsewhere."""
    arms = np.zeros((len(list(itertools.permutations(range(n)))), n * n))
    for row, p in enumerate(itertools.permutations(range(n))):
        arms[row, [n * i + j for i, j in enumerate(p)]] = 1.0
    return arms, np.eye(n).ravel()


@pytest.mark.parametrize(
    "n", [2, 3, 4, 5, pytest.param(6, marks=pytest.mark.slow), pytest.param(7, marks=pytest.mark.slow)]
)
def test_matchings_of_complete_bipartite_graphs_have_the_known_value(n):
    assert value(ao.programs.semi_bandit(*matchings(n), noise_variance=0.5)) == pytest.approx(n * (n - 1) / 2, rel=1e-7)


def test_arms_without_common_elements_are_bandits_of_several_parts():
    """Each arm is told by its own elements: η_x = 2σ²|x|/Δ_x²."""
    arms, theta = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], [1.0, 0.25, 0.25, 0.25]
    found = ao.solve(ao.programs.semi_bandit(arms, theta, 2.0))
    assert found.value == pytest.approx(4 * 2 / 0.5 + 4 / 0.75, rel=1e-7)
    assert found.optimal_arms.tolist() == [0] and not found.verify(exact=True).problems


def test_seeing_elements_costs_no_more_than_seeing_their_sum():
    rng = np.random.default_rng(3)
    arms = (rng.random((9, 5)) < 0.5).astype(float)
    arms = np.unique(arms[arms.any(axis=1)], axis=0)
    theta = rng.normal(size=5)
    bandit = ao.LinearBandit(arms, theta)
    # k elements each of variance 1 are at least as good as their sum, of variance k
    sums = ao.LinearBandit(arms, theta, arms.sum(axis=1))
    assert value(ao.programs.semi_bandit(arms, theta)) <= ao.solve(ao.programs.regret(sums)).value * (1 + 1e-7)
    assert bandit.n_arms == ao.programs.semi_bandit(arms, theta).n_arms


def test_paths_of_a_graph_as_a_semi_bandit():
    graph = nx.DiGraph()
    for u, v, w in (("s", "a", 1.0), ("a", "t", 1.0), ("s", "b", 1.5), ("b", "t", 1.0), ("s", "t", 3.0)):
        graph.add_edge(u, v, weight=w)
    paths = ao.graphs.path_arms(graph, "s", "t")
    found = ao.solve(paths.semi_bandit())
    direct = ao.solve(ao.programs.semi_bandit(paths.arms, paths.theta))
    assert found.value == direct.value == pytest.approx(4 / 0.5 + 2 / 1.0, rel=1e-7)
    assert found.labels[0] == "s→a→t"
    with pytest.raises(ao.InvalidInstance, match="theta"):
        ao.graphs.subset_arms(3, 2).semi_bandit()


@pytest.mark.parametrize(
    ("arms", "theta", "noise", "words"),
    [
        ([[1, 0], [0, 2]], [1, 0], 1.0, r"arms: expected zeros and ones.*entry \[1, 1\] is 2.0"),
        ([[1, 0], [0, 1]], [1, 1], 1.0, "positive gap|tie"), ([[1, 0], [0, 1]], [1, 0], -1.0, "noise_variance"),
        ([[1, 0], [0, 1]], [1, 0], [1.0, 2.0], "noise_variance"),
        ([[1, 0, 1], [0, 1, 1], [1, 0, 0]], [1, 1, 0.5], 1.0, "unique best arm"),
        ([[1, 0]], [1, 0], 1.0, "at least two"), ([[1, 0], [0, 1]], [1, 0, 0], 1.0, "theta"),
    ],
)  # fmt: skip
def test_bad_semi_bandits_are_refused(arms, theta, noise, words):
    with pytest.raises(ao.AllocoptError, match=words):
        ao.programs.semi_bandit(arms, theta, noise)


# --- side observations


@pytest.mark.parametrize("seed", range(6))
def test_side_observations_are_a_linear_program_where_the_best_arm_shows_itself(seed):
    rng = np.random.default_rng(seed)
    k = 6
    means = rng.permutation(np.linspace(0, 1, k)) + 0.01 * rng.normal(size=k)
    variances = np.where(rng.random((k, k)) < 0.4, np.exp(rng.normal(size=(k, k))), INF)
    np.fill_diagonal(variances, np.exp(rng.normal(size=k)))
    best, gaps = int(np.argmax(means)), means.max() - means
    others = [j for j in range(k) if j != best]
    seen = np.array([[1 / variances[i, j] for i in range(k)] for j in others])
    free = seen[:, best] > 0  # what the best arm shows costs nothing
    rows = seen[~free][:, others]
    peer = linprog(gaps[others], A_ub=-rows, b_ub=-2 / gaps[np.array(others)[~free]] ** 2) if len(rows) else None
    expected = 0.0 if peer is None else peer.fun
    assert value(ao.programs.side_observations(means, variances)) == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_only_ones_own_reward_is_a_bandit_of_independent_arms():
    means = [1.0, 0.5, 0.25]
    alone = np.where(np.eye(3) > 0, 1.0, INF)
    plain = value(ao.programs.regret(ao.LinearBandit(np.eye(3), means)))
    assert value(ao.programs.side_observations(means, alone)) == pytest.approx(plain, rel=1e-8)
    assert plain == pytest.approx(2 / 0.5 + 2 / 0.75)


def test_a_best_arm_that_does_not_show_itself_must_be_seen_elsewhere():
    """Playing arm 1 shows both: ||e_1 − e_0||² = 2/α, so α = 4/Δ², at Δ each."""
    variances = np.array([[INF, INF], [1.0, 1.0]])
    found = ao.solve(ao.programs.side_observations([1.0, 0.5], variances))
    assert found.value == pytest.approx(8.0, rel=1e-7) and not found.verify(exact=True).problems
    with pytest.raises(ao.Infeasible):
        ao.solve(ao.programs.side_observations([1.0, 0.5], np.array([[1.0, INF], [1.0, INF]])))


@pytest.mark.parametrize(
    ("means", "variances", "words"),
    [
        ([1, 0], [[1, 1]], r"variances: expected numbers of shape \(2, 2\)"), ([1, 0], [[1, 1], [0, 1]], r"entry \[1, 0\] is 0.0"),
        ([1, 0], [[1, 1], [np.nan, 1]], "nan"), ([1, 1], [[1, 1], [1, 1]], "positive gap|tie"), ([1, INF], [[1, 1], [1, 1]], "means"),
        ([1, 1, 0], np.ones((3, 3)), "unique best arm"), ([1], [[1.0]], "at least two"), ([1, 0], "ab", "variances"),
        ([[1, 0]], [[1]], "means"),
    ],
)  # fmt: skip
def test_bad_side_observations_are_refused(means, variances, words):
    with pytest.raises(ao.AllocoptError, match=words):
        ao.programs.side_observations(means, variances)


# --- matrices


def test_rows_that_are_shown_twice_are_a_scaled_row():
    arms, theta = np.array([[1.0, 0.0], [0.3, 0.9], [0.8, 0.3]]), np.array([1.0, 0.1])
    gaps = (arms @ theta).max() - arms @ theta
    twice = ao.AllocationProgram([[x, x] for x in arms], gaps, arms[1:], gaps[1:] ** 2 / 2)
    scaled = ao.AllocationProgram(arms * np.sqrt(2), gaps, arms[1:], gaps[1:] ** 2 / 2)
    assert value(twice) == pytest.approx(value(scaled), rel=1e-7)


# --- budgets


CONTEXTS = [[[1, 0], [0, 1], [0.9, 0.2]], [[0.5, 0], [0.4, 0.1]]]


def test_budgets_decrease_to_the_asymptotic_value_and_small_ones_are_infeasible():
    bandit = ao.ContextualBandit(CONTEXTS, [1, 0], weights=[2, 1])
    limit = value(ao.programs.contextual(bandit))
    found = [ao.solve(ao.programs.contextual(bandit, budget=z)) for z in (1e3, 3e3, 1e4, 1e6)]
    values = [s.value for s in found]
    assert all(s.status is ao.Status.CERTIFIED and not s.verify(exact=True).problems for s in found)
    assert values == sorted(values, reverse=True) and values[-1] >= limit
    assert values[-1] == pytest.approx(limit, rel=1e-3)
    assert all((s.constraint_multipliers >= 0).all() for s in found) and found[0].constraint_multipliers.any()
    used = [s.program.constraints.used(s.allocation) for s in found]
    assert all((u <= [z * 2 / 3, z / 3]).all() for u, z in zip(used, (1e3, 3e3, 1e4, 1e6), strict=True))
    with pytest.raises(ao.Infeasible, match="constraints: no allocation meets all targets within"):
        ao.solve(ao.programs.contextual(bandit, budget=1.0))
    # what one more play is worth: the value's derivative in z
    more = value(ao.programs.contextual(bandit, budget=1e3 * (1 + 1e-5)), tol=1e-11)
    less = value(ao.programs.contextual(bandit, budget=1e3 * (1 - 1e-5)), tol=1e-11)
    price = float(found[0].constraint_multipliers @ [2 / 3, 1 / 3])
    assert (less - more) / 2e-2 == pytest.approx(price, rel=1e-3)


def test_optimal_arms_that_span_cost_nothing_within_a_large_budget():
    bandit = ao.ContextualBandit([CONTEXTS[0], [[0, 0.5], [0.4, 0.1]]], [1, -0.1])
    found = ao.solve(ao.programs.contextual(bandit, budget=1e6))
    assert found.value == 0.0 and found.status is ao.Status.CERTIFIED and not found.verify(exact=True).problems


def test_a_budget_survives_its_proof_file(tmp_path):
    found = ao.solve(ao.programs.contextual(ao.ContextualBandit(CONTEXTS, [1, 0]), budget=1e3))
    found.save(tmp_path / "proof.json")
    loaded = ao.load_solution(tmp_path / "proof.json")
    assert loaded.program.kind == "contextual" and loaded.status is ao.Status.CERTIFIED
    assert loaded.program.constraints.limits.tolist() == [500.0, 500.0]


@pytest.mark.parametrize("budget", [0, -1, np.inf, np.nan, "x", [1]])
def test_bad_budgets_are_refused(budget):
    with pytest.raises(ao.InvalidOption, match="budget"):
        ao.programs.contextual(ao.ContextualBandit(CONTEXTS, [1, 0]), budget=budget)
