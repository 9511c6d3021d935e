"""Laws of oracles: they minimise, their spanners span with bounded coefficients, their intervals contain c(A, θ)."""

from __future__ import annotations

import dataclasses
import importlib
import math
import time
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import grid

import allocopt as ao
from allocopt import graphs
from allocopt.actions.oracle_allocation import oracle_allocation
from allocopt.actions.oracle_spanner import OracleSpanner, oracle_spanner
from allocopt.actions.oracles import Oracle
from allocopt.base.errors import InvalidInstance, InvalidOption, MethodUnavailable, SolverFailed


def random_dag(rng, n=None):
    """Parallel edges and useless nodes included."""
    n = n or int(rng.integers(3, 8))
    G = nx.MultiDiGraph()
    G.add_nodes_from(rng.permutation(n + 2).tolist())
    for i in range(n):
        for j in range(i + 1, n):
            for _ in range(int(rng.integers(0, 3)) if j > i + 1 else 1):
                G.add_edge(i, j, weight=float(rng.normal()))
    G.add_edge(0, n, weight=0.3)
    G.add_edge(n + 1, 1, weight=0.2)
    return G, 0, n - 1


def families(seed):
    """An oracle and the list that it stands for, of each kind."""
    rng = np.random.default_rng(seed)
    G, s, t = random_dag(rng)
    yield graphs.shortest_path_oracle(G, s, t), graphs.path_arms(G, s, t)
    n = int(rng.integers(3, 6))
    T = nx.MultiGraph(nx.gnp_random_graph(n, 0.8, seed=seed % 1000))
    T.add_edges_from((i, i + 1) for i in range(n - 1))
    yield graphs.spanning_tree_oracle(T), graphs.spanning_tree_arms(T)
    M = nx.bipartite.random_graph(3, 4, 0.7, seed=seed % 1000)
    if M.number_of_edges():
        yield graphs.assignment_oracle(M), graphs.matching_arms(M)
    points = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 4))
    yield graphs.list_oracle(points), graphs.GraphArms(points, tuple(range(12)), (), None)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_oracles_minimise_over_the_listed_arms(seed):
    rng = np.random.default_rng(seed)
    for oracle, listed in families(seed):
        assert isinstance(oracle, Oracle)
        rows = {row.tobytes(): label for row, label in zip(listed.arms, listed.labels, strict=True)}
        for direction in (rng.normal(size=oracle.dim), rng.integers(-2, 3, oracle.dim), np.zeros(oracle.dim)):
            x, label = oracle(direction)
            assert label == rows[x.tobytes()]
            assert x @ direction == pytest.approx((listed.arms @ direction).min(), abs=1e-9)


def assert_spans(s: OracleSpanner, arms: np.ndarray, C: float) -> None:
    assert s.dim == np.linalg.matrix_rank(arms)
    coefficients = arms @ s.functionals.T
    assert np.allclose(coefficients @ s.arms, arms, atol=1e-8)
    assert np.abs(coefficients).max() <= C * (1 + 1e-8)
    assert np.isclose(np.abs(coefficients).max(), s.C, rtol=1e-8)
    d, r = arms.shape[1], s.dim
    assert s.oracle_calls <= 2 * d + 2 * r + r * r * math.log(max(r, 2)) / math.log(C)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from([1.1, 2.0, 3.0]))
def test_spanner_of_an_oracle_spans_the_listed_arms_with_coefficients_at_most_C(seed, C):
    for oracle, listed in families(seed):
        s = oracle_spanner(oracle, C)
        assert_spans(s, listed.arms, C)
        rows = {row.tobytes() for row in np.asarray(listed.arms)}
        assert all(x.tobytes() in rows for x in s.arms)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7])
def test_grid_spanners(k):
    G = grid(k)
    listed = graphs.path_arms(G, (0, 0), (k - 1, k - 1))
    s = oracle_spanner(graphs.shortest_path_oracle(G, (0, 0), (k - 1, k - 1)), 2)
    assert_spans(s, listed.arms, 2)
    assert s.dim == 2 * k * (k - 1) - k * k + 2
    assert ao.barycentric_spanner(listed.arms, C=2).dim == s.dim


def test_a_billion_paths_take_seconds():
    start = time.process_time()
    oracle = graphs.shortest_path_oracle(grid(18), (0, 0), (17, 17))
    s = oracle_spanner(oracle, 2)
    assert oracle.count() == math.comb(34, 17) > 10**9
    assert s.dim == 290 and s.C <= 2 * (1 + 1e-8)
    assert time.process_time() - start < 20


def test_negative_cycles_are_refused_and_other_directions_are_exact():
    G = nx.DiGraph([(0, 1), (1, 2), (2, 1), (2, 3), (0, 3)])
    oracle = graphs.shortest_path_oracle(G, 0, 3)
    assert not oracle.acyclic
    order = {e: i for i, e in enumerate(oracle.edges)}
    direction = np.ones(5)
    direction[order[0, 3]] = 5.0
    direction[order[1, 2]] = -0.5
    assert oracle(direction)[1] == ((0, 1), (1, 2), (2, 3))
    with pytest.raises(MethodUnavailable, match="negative"):
        oracle(-np.ones(5))
    with pytest.raises(MethodUnavailable, match="negative"):
        oracle_spanner(oracle, 2)


def test_a_cycle_off_the_way_does_not_matter():
    G = nx.DiGraph([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 3), (5, 6), (6, 5), (5, 1)])
    oracle = graphs.shortest_path_oracle(G, 0, 2)
    assert oracle.acyclic and oracle.count() == 2
    assert oracle_spanner(oracle, 2).dim == 2


@pytest.mark.parametrize("C", [1, 1.0, 0.5, -1, float("nan"), float("inf"), "2", None])
def test_C_must_exceed_one(C):
    with pytest.raises(InvalidOption, match="expected a number > 1"):
        oracle_spanner(graphs.list_oracle(np.eye(2)), C)


def test_bad_oracles_are_named():
    with pytest.raises(InvalidInstance, match="dim"):
        oracle_spanner(42, 2)
    with pytest.raises(InvalidInstance, match="zero"):
        oracle_spanner(graphs.list_oracle(np.zeros((2, 3))), 2)
    with pytest.raises(InvalidInstance, match="expected 3 entries, got 2"):
        graphs.list_oracle(np.eye(3))([1, 2])

    class Wrong:
        dim = 3

        def __init__(self):
            self.calls = 0

        def __call__(self, direction):
            self.calls += 1
            return (np.eye(3)[0] if self.calls < 8 else np.ones(3)), None

    with pytest.raises(SolverFailed, match=r"not exact|do not maximise"):
        oracle_spanner(Wrong(), 2)


def test_results_are_frozen():
    s = oracle_spanner(graphs.list_oracle(np.eye(2)), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.C = 3
    with pytest.raises(ValueError, match="read-only"):
        s.arms[0, 0] = 3


def assert_encloses(oracle, arms, theta, rounds=6) -> tuple[float, float]:
    bandit = ao.LinearBandit(arms, theta)
    c = ao.solve(ao.programs.regret(bandit))
    a = oracle_allocation(oracle, theta, rounds=rounds)
    assert a.lower <= c.value * (1 + 1e-8) and c.lower <= a.upper * (1 + 1e-8)
    assert a.gap_min == pytest.approx(bandit.gap_min, rel=1e-6)
    # the allocation is feasible for every listed arm, in the quotient by the best one, and costs what it says
    finite = np.isfinite(a.allocation)
    assert float(a.allocation[finite] @ a.gaps[finite]) == pytest.approx(a.upper, rel=1e-6)
    best = a.arms[0]
    project = np.eye(len(best)) - np.outer(best, best) / max(best @ best, 1e-300)
    H = project @ (a.arms[finite].T * a.allocation[finite]) @ a.arms[finite] @ project
    q = np.asarray(arms) @ project
    norms = np.einsum("ij,ij->i", q @ np.linalg.pinv(H, rcond=1e-11, hermitian=True), q)
    assert (norms <= bandit.gaps**2 / 2 * (1 + 1e-5) + 1e-9).all()
    return a.lower / c.value, a.upper / c.value


@settings(max_examples=8)
@given(st.integers(0, 10**9))
def test_intervals_contain_the_regret_constant(seed):
    rng = np.random.default_rng(seed)
    for oracle, listed in families(seed):
        if len(listed.arms) > 1 and np.linalg.matrix_rank(listed.arms) > 1:
            assert_encloses(oracle, listed.arms, rng.uniform(0.2, 1, oracle.dim) * rng.choice([-1, 1]), rounds=2)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_grid_intervals_are_within_a_factor_of_two(k):
    G = grid(k, np.random.default_rng(k))
    arms = graphs.path_arms(G, (0, 0), (k - 1, k - 1))
    low, high = assert_encloses(graphs.shortest_path_oracle(G, (0, 0), (k - 1, k - 1)), arms.arms, arms.theta, 12)
    assert low > 0.9 and high < 2


def test_parallel_links_are_solved_exactly():
    G = nx.MultiDiGraph()
    for i in range(6):
        G.add_edge(0, 1, weight=1.0 + 0.3 * i)
    arms = graphs.path_arms(G, 0, 1)
    a = oracle_allocation(graphs.shortest_path_oracle(G, 0, 1), arms.theta)
    c = sum(2 / (0.3 * i) for i in range(1, 6))
    assert a.lower == pytest.approx(c, rel=1e-6) and a.upper == pytest.approx(c, rel=1e-6)
    assert "exact" in a.how


def test_nothing_to_explore_with_one_path():
    a = oracle_allocation(graphs.shortest_path_oracle(nx.DiGraph([(0, 1), (1, 2)]), 0, 2), [-1, -1])
    assert a.lower == a.upper == 0 and a.labels == (((0, 1), (1, 2)),)


def test_what_cannot_be_bounded_is_refused():
    G = grid(3)
    with pytest.raises(MethodUnavailable, match="several arms are optimal"):
        oracle_allocation(graphs.shortest_path_oracle(G, (0, 0), (2, 2)), -np.ones(12))

    class Sphere:
        dim = 2

        def __call__(self, direction):
            return np.eye(2)[int(np.argmin(direction))], None

    with pytest.raises(MethodUnavailable, match="second-best"):
        oracle_allocation(Sphere(), [1, 0])


def test_an_enclosure_that_takes_long_says_so_first(monkeypatch):
    oracle = graphs.shortest_path_oracle(nx.DiGraph([(0, 1), (1, 2), (0, 2)]), 0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oracle_allocation(oracle, [-1, -1, -1])
    module = importlib.import_module("allocopt.actions.oracle_allocation")
    monkeypatch.setattr(module, "_LONG", 0.0)
    with pytest.warns(
        ao.SlowWarning, match="20 rounds in 3 dimensions will take about .* seconds; rounds= takes fewer"
    ):
        oracle_allocation(oracle, [-1, -1, -1])


@pytest.mark.parametrize(
    ("arms", "theta", "c"),
    [
        ([[1, 0], [0.5, 1e-10]], [1, 0], 4.0),
        ([[1, 0], [0.999, 2.0**-50], [0, 2.0**-40]], [1, 0], 2.0),
        ([[-(2.0**24), -(2.0**-22)], [-(2.0**23), -(2.0**-21)], [2.0**23, -(2.0**-22) * 1.5]], [0, 0.5], 2.0**25),
    ],
)
def test_units_of_the_columns_of_listed_arms_do_not_matter(arms, theta, c):
    """A column whose entries were below 1e-9 of another's did not count: every arm was called a multiple of the best one, and c 0."""
    arms = np.array(arms)
    a, exact = oracle_allocation(graphs.list_oracle(arms), theta), ao.regret_constant(arms, theta)
    assert exact.value == pytest.approx(c)
    assert 0.99 * c < a.lower <= c <= a.upper < 1.01 * c
    assert {row.tobytes() for row in a.arms} <= {row.tobytes() for row in arms}
    s = oracle_spanner(graphs.list_oracle(arms), 2)
    assert s.dim == 2 and np.allclose((arms @ s.functionals.T @ s.arms - arms) / np.abs(arms).max(axis=0), 0)


def test_listed_arms_that_hardly_span_are_refused():
    """Whether 1e-11 of an arm counts is not for this search to say: c is 4 with it, and 0 without."""
    with pytest.raises(ao.SolverFailed, match=r"span 2 dimensions, but only 1 by more than 1e-09"):
        oracle_allocation(graphs.list_oracle([[1, 1], [0.5, 0.5 + 1e-11]]), [1, 0])


def test_costs_that_differ_by_twelve_orders_of_magnitude_come_to_an_end():
    """The largest ratio is padded for rounding, by a thousandth here: an arm was swapped for itself again and again."""
    costs = {
        (0, 1): 5.5e-05, (0, 2): 5.5, (0, 3): 1.0e-3, (0, 4): 6.2e-05, (0, 5): 21.7, (1, 2): 1.6e-3, (1, 3): 1.1e-05,
        (1, 5): 1.2e-06, (2, 3): 45819.5, (2, 4): 8.1e-06, (3, 4): 6.8, (3, 5): 568587.7, (4, 5): 2.2e-06,
    }  # fmt: skip
    G = nx.DiGraph(list(costs))
    theta = -np.array(list(costs.values()))
    a = oracle_allocation(graphs.shortest_path_oracle(G, 0, 5), theta, rounds=3)
    exact = ao.regret_constant(graphs.path_arms(G, 0, 5).arms, theta)
    assert a.lower <= exact.upper and exact.lower <= a.upper
