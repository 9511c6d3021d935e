"""Laws of action sets made from graphs: every row is what its label says, nothing is missing, nothing explodes."""

from __future__ import annotations

import itertools
import math
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import grid

import allocopt as ao
from allocopt import graphs
from allocopt.actions.labels import label_texts
from allocopt.base.errors import InvalidInstance, MethodUnavailable


@st.composite
def any_graphs(draw, kinds=(nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)):
    """Small graphs of all kinds, with self-loops, parallel edges and unconnected parts."""
    kind = draw(st.sampled_from(kinds))
    n = draw(st.integers(2, 6))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12))
    G = kind()
    G.add_nodes_from(range(n))
    G.add_edges_from(pairs)
    return G


def edge_sets(arms: graphs.GraphArms) -> set[frozenset]:
    return {frozenset(label) for label in arms.labels}


def assert_rows_are_labels(arms: graphs.GraphArms) -> None:
    for row, label in zip(arms.arms, arms.labels, strict=True):
        assert {arms.edges[i] for i in np.flatnonzero(row)} == set(label)
        assert set(row.tolist()) <= {0.0, 1.0}
    assert len(edge_sets(arms)) == len(arms.labels)


@given(any_graphs())
def test_paths_are_those_of_networkx(G):
    # networkx walks each of several parallel self-loop-free edges separately, as we do
    expected = {frozenset(_normal(G, p)) for p in nx.all_simple_edge_paths(G, 0, 1)}
    if not expected:
        with pytest.raises(InvalidInstance, match="no path"):
            graphs.path_arms(G, 0, 1)
        return
    arms = graphs.path_arms(G, 0, 1)
    assert_rows_are_labels(arms)
    assert {frozenset(_normal(G, label)) for label in arms.labels} == expected
    again = graphs.path_arms(G, 0, 1, k_best=1000)
    assert edge_sets(again) == edge_sets(arms)
    lengths = again.arms.sum(axis=1)
    assert (np.diff(lengths) >= 0).all()


def _normal(G, path):
    """Undirected edges have no orientation."""
    return [e if G.is_directed() else (frozenset(e[:2]), *e[2:]) for e in path]


@given(any_graphs((nx.Graph, nx.MultiGraph)))
def test_trees_are_as_many_as_kirchhoff_says(G):
    if not nx.is_connected(G):
        with pytest.raises(InvalidInstance, match="not connected"):
            graphs.spanning_tree_arms(G)
        return
    arms = graphs.spanning_tree_arms(G)
    assert_rows_are_labels(arms)
    assert len(arms.labels) == round(nx.number_of_spanning_trees(G))
    n = G.number_of_nodes()
    assert all(len(t) == n - 1 and nx.is_connected(_of(G, t)) for t in arms.labels)


def _of(G, edges):
    H = nx.MultiGraph()
    H.add_nodes_from(G)
    H.add_edges_from(e[:2] for e in edges)
    return H


@given(any_graphs((nx.Graph, nx.MultiGraph)))
def test_matchings_are_all_the_largest_ones(G):
    if not G.number_of_edges() or not nx.is_bipartite(G):
        with pytest.raises(InvalidInstance, match=r"at least one edge|bipartite"):
            graphs.matching_arms(G)
        return
    arms = graphs.matching_arms(G)
    assert_rows_are_labels(arms)
    size = max(
        m
        for m in range(1, 7)
        for c in itertools.combinations(arms.edges, m)
        if len({v for e in c for v in e[:2]}) == 2 * m
    )
    expected = [c for c in itertools.combinations(arms.edges, size) if len({v for e in c for v in e[:2]}) == 2 * size]
    assert edge_sets(arms) == {frozenset(c) for c in expected}


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_rank_of_grid_paths_is_edges_minus_nodes_plus_two(k):
    arms = graphs.path_arms(grid(k), (0, 0), (k - 1, k - 1))
    assert len(arms.arms) == math.comb(2 * k - 2, k - 1)
    assert arms.bandit(theta=np.arange(arms.arms.shape[1])).rank == 2 * k * (k - 1) - k * k + 2


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_rank_of_random_dag_paths(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    G = nx.DiGraph([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6 or j == i + 1])
    arms = graphs.path_arms(G, 0, n - 1)
    used = arms.arms.any(axis=0)
    nodes = {v for e, u in zip(arms.edges, used, strict=True) if u for v in e}
    assert np.linalg.matrix_rank(arms.arms) == used.sum() - len(nodes) + 2


@settings(max_examples=50)
@given(any_graphs(), st.integers(0, 10**6))
def test_relabelling_nodes_changes_only_the_order(G, seed):
    assume(nx.has_path(G, 0, 1))
    order = np.random.default_rng(seed).permutation(G.number_of_nodes()).tolist()
    H = type(G)()
    H.add_nodes_from(f"node {i}" for i in order)
    edges = list(G.edges(keys=True) if G.is_multigraph() else G.edges)
    H.add_edges_from((f"node {e[0]}", f"node {e[1]}", *e[2:]) for e in edges[::-1])
    first, second = graphs.path_arms(G, 0, 1), graphs.path_arms(H, "node 0", "node 1")
    assert first.arms.shape == second.arms.shape
    named = {frozenset((frozenset(f"node {v}" for v in e[:2]), *e[2:]) for e in label) for label in first.labels}
    if not G.is_directed():
        assert named == {frozenset((frozenset(e[:2]), *e[2:]) for e in label) for label in second.labels}
    assert sorted(first.arms.sum(axis=1)) == sorted(second.arms.sum(axis=1))
    assert sorted(first.arms.sum(axis=0)) == sorted(second.arms.sum(axis=0))


def test_relabelling_changes_no_regret_constant():
    G = grid(3, np.random.default_rng(0))
    H = nx.relabel_nodes(nx.DiGraph(sorted(G.edges(data=True), reverse=True)), {v: f"<{v}>" for v in G})
    a = graphs.path_arms(G, (0, 0), (2, 2)).bandit()
    b = graphs.path_arms(H, "<(0, 0)>", "<(2, 2)>").bandit()
    assert ao.solve(ao.programs.regret(a)).value == pytest.approx(ao.solve(ao.programs.regret(b)).value, rel=1e-7)


def test_k_best_paths_are_the_best_of_all_and_negative_weights_are_fine_without_cycles():
    rng = np.random.default_rng(3)
    G = grid(4)
    for edge in G.edges:
        G.edges[edge]["weight"] = float(rng.normal())
    every = graphs.path_arms(G, (0, 0), (3, 3))
    some = graphs.path_arms(G, (0, 0), (3, 3), k_best=7)
    assert np.allclose(some.arms @ some.theta, np.sort(every.arms @ every.theta)[::-1][:7])
    assert some.bandit().optimal_arms.tolist() == [0]


def test_k_best_with_a_negative_cycle_is_refused():
    G = nx.Graph()
    G.add_weighted_edges_from([(0, 1, 1.0), (1, 2, -1.0), (2, 3, 1.0)])
    with pytest.raises(MethodUnavailable, match="negative"):
        graphs.path_arms(G, 0, 3, k_best=1)
    assert len(graphs.path_arms(G, 0, 3).arms) == 1


def test_one_path_is_a_bandit_with_one_arm():
    arms = graphs.path_arms(nx.path_graph(4, create_using=nx.DiGraph), 0, 3)
    assert arms.arms.tolist() == [[1, 1, 1]]
    assert arms.bandit([1, 2, 3]).n_arms == 1
    with pytest.raises(InvalidInstance, match="nothing to choose"):
        ao.programs.regret(arms.bandit([1, 2, 3]))


def test_parallel_edges_are_arms_of_their_own_and_self_loops_none():
    G = nx.MultiDiGraph()
    G.add_edge("s", "t", "slow", weight=3.0)
    G.add_edge("s", "t", "fast", weight=1.0)
    G.add_edge("s", "s", "loop", weight=0.1)
    arms = graphs.path_arms(G, "s", "t")
    assert [label[0][2] for label in arms.labels] == ["slow", "fast"]
    assert not arms.arms[:, arms.edges.index(("s", "s", "loop"))].any()
    bandit = arms.bandit()
    assert bandit.gaps.tolist() == [2.0, 0.0]
    assert ao.solve(ao.programs.regret(bandit)).value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.path_arms(nx.DiGraph([(0, 1)]), 0, 7), "target: 7 is not a node"),
        (lambda: graphs.path_arms(nx.DiGraph([(0, 1)]), "s", 1), "source: 's' is not a node"),
        (lambda: graphs.path_arms(nx.DiGraph([(0, 1)]), 1, 0), "no path from 1 to 0"),
        (lambda: graphs.path_arms(nx.DiGraph([(0, 1)]), 0, 0), "is the source too"),
        (lambda: graphs.path_arms([(0, 1)], 0, 1), "expected a networkx graph, got a list"),
        (lambda: graphs.path_arms(nx.DiGraph([(0, 1)]), 0, 1).bandit(), "θ must be given"),
        (lambda: graphs.spanning_tree_arms(nx.DiGraph([(0, 1)])), "undirected"),
        (lambda: graphs.spanning_tree_arms(nx.Graph()), "at least two nodes"),
        (lambda: graphs.matching_arms(nx.cycle_graph(3)), "odd cycle"),
        (lambda: graphs.matching_arms(nx.Graph([(0, 0)])), "odd cycle"),
        (lambda: graphs.spectral_arms(nx.path_graph(3), 4), "at most 3"),
        (lambda: graphs.spectral_arms(nx.DiGraph([(0, 1)]), 1), "undirected"),
        (lambda: graphs.subset_arms(3, 4), "at most n = 3"),
        (lambda: graphs.subset_arms(100, 50), "more than limit"),
    ],
)
def test_bad_input_gets_one_clear_line(make, message):
    with pytest.raises(InvalidInstance, match=message):
        make()


@pytest.mark.parametrize("value", [None, float("nan"), "heavy"])
def test_bad_weights_are_named(value):
    G = nx.DiGraph()
    G.add_edge(0, 1, weight=1.0)
    G.add_edge(1, 2, weight=value)
    with pytest.raises(InvalidInstance, match="weight"):
        graphs.path_arms(G, 0, 2)


def dead_ends() -> nx.Graph:
    """Two complete graphs joined by one edge: most walks in the first can no longer leave it."""
    return nx.barbell_graph(11, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: graphs.path_arms(grid(40), (0, 0), (39, 39)),
        lambda: graphs.path_arms(nx.complete_graph(40), 0, 1, limit=1000),
        lambda: graphs.path_arms(dead_ends(), 0, 21, limit=1000),
        lambda: graphs.spanning_tree_arms(nx.complete_graph(60)),
        lambda: graphs.matching_arms(nx.complete_bipartite_graph(30, 30), limit=200),
        lambda: graphs.path_arms(grid(4), (0, 0), (3, 3), limit=19),
        lambda: graphs.spanning_tree_arms(nx.complete_graph(4), limit=15),
    ],
)
def test_more_than_the_limit_is_refused_soon(make):
    start = time.perf_counter()
    with pytest.raises(InvalidInstance, match="more than limit"):
        make()
    assert time.perf_counter() - start < 5


def test_exactly_the_limit_is_listed():
    assert len(graphs.path_arms(grid(4), (0, 0), (3, 3), limit=20).arms) == 20
    assert len(graphs.spanning_tree_arms(nx.complete_graph(4), limit=16).arms) == 16
    assert len(graphs.matching_arms(nx.complete_bipartite_graph(4, 4), limit=24).arms) == 24
    assert len(graphs.subset_arms(6, 3, limit=20).arms) == 20


def test_spectral_arms_are_orthonormal_columns_and_do_not_depend_on_names():
    G = nx.karate_club_graph()
    arms = graphs.spectral_arms(G, 5)
    assert np.allclose(arms.arms.T @ arms.arms, np.eye(5))
    assert np.allclose(nx.laplacian_matrix(G).toarray() @ arms.arms, arms.arms * np.array(arms.edges))
    order = list(G)[::-1]
    H = nx.Graph()
    H.add_nodes_from(order)
    H.add_edges_from(G.edges(data=True))
    other = graphs.spectral_arms(H, 5)
    rows = [other.labels.index(v) for v in arms.labels]
    assert np.allclose(np.abs(other.arms[rows]), np.abs(arms.arms), atol=1e-8)


def test_graph_arms_are_frozen():
    arms = graphs.subset_arms(4, 2, theta=[1, 2, 3, 4])
    assert arms.bandit().optimal_arms.tolist() == [5]
    with pytest.raises(ValueError, match="read-only"):
        arms.arms[0, 0] = 2


def test_listing_that_would_take_minutes_is_refused_after_a_moment(monkeypatch):
    from allocopt.actions import graphs

    monkeypatch.setattr(graphs, "_LOOK_AFTER", 0.0)
    whole = nx.complete_bipartite_graph(4, 4)  # 24 matchings, which is known before one is listed
    monkeypatch.setattr(graphs, "PATIENCE", 1e-9)
    with pytest.raises(
        InvalidInstance, match=r"limit: listing up to 24 matchings .* would take about .* a second\); set a limit"
    ):
        graphs.matching_arms(whole)
    with pytest.raises(
        InvalidInstance, match=r"k_best: listing up to 9 paths .* a second\); ask for 1 or use an oracle"
    ):
        graphs.path_arms(nx.grid_2d_graph(4, 4), (0, 0), (3, 3), k_best=9)
    monkeypatch.setattr(graphs, "PATIENCE", 1e9)
    monkeypatch.setattr(graphs, "_LONG", 1e9)
    assert len(graphs.matching_arms(whole).arms) == 24
    monkeypatch.setattr(graphs, "_LONG", 0.0)
    with pytest.warns(
        ao.SlowWarning, match=r"limit: listing up to 24 matchings of this graph takes up to about .* a second"
    ):
        assert len(graphs.matching_arms(whole).arms) == 24
    with pytest.raises(InvalidInstance, match=r"there are about 10\^\d+ spanning trees, more than"):
        graphs.spanning_tree_arms(nx.grid_2d_graph(30, 30))


@pytest.mark.parametrize(("left", "right"), [(1, 1), (2, 5), (5, 2), (4, 4), (3, 6)])
def test_the_number_of_matchings_of_a_complete_graph_is_known_beforehand(left, right):
    oracle = graphs.assignment_oracle(nx.complete_bipartite_graph(left, right))
    assert oracle.at_most() == pytest.approx(math.perm(max(left, right), min(left, right)), rel=1e-12)


@given(st.integers(1, 5), st.integers(1, 5), st.floats(0.1, 1.0), st.integers(0, 10**6))
def test_no_bipartite_graph_has_more_matchings_than_is_said_beforehand(left, right, share, seed):
    G = nx.bipartite.random_graph(left, right, share, seed)
    assume(G.number_of_edges())
    count = len(graphs.matching_arms(G).arms)
    assert count <= math.ceil(graphs.assignment_oracle(G).at_most())
    doubled = nx.MultiGraph(G)
    doubled.add_edge(*next(iter(G.edges)))
    assert graphs.assignment_oracle(doubled).at_most() == math.inf


def test_paths_over_parallel_edges_have_labels_of_their_own():
    G = nx.MultiDiGraph()
    G.add_edge("s", "a", key="bus", weight=1.0)
    G.add_edge("s", "a", key="train", weight=2.0)
    G.add_edge("a", "t", weight=1.0)
    G.add_edge("s", "t", weight=3.0)
    labels = graphs.path_arms(G, "s", "t").bandit().labels
    assert len(set(labels)) == 3
    assert set(labels) == {"s→a[bus]→t[0]", "s→a[train]→t[0]", "s→t"}
    doubled = nx.MultiGraph([("a", "b", 0), ("a", "b", 1)])
    trees = label_texts(graphs.spanning_tree_arms(doubled).labels)
    assert len(set(trees)) == 2


@given(any_graphs((nx.Graph, nx.MultiGraph)))
def test_the_words_for_a_path_begin_at_its_source(G):
    source, target = sorted(G, key=str)[:2]
    for start, end in ((source, target), (target, source)):
        if nx.has_path(G, start, end):
            paths = graphs.path_arms(G, start, end)
            for label, words in zip(paths.labels, label_texts(paths.labels, start), strict=True):
                nodes = [word.split("[")[0] for word in words.split("→")]
                assert (nodes[0], nodes[-1]) == (str(start), str(end))
                walked = [{a, b} for a, b in itertools.pairwise(nodes)]
                assert walked == [{str(edge[0]), str(edge[1])} for edge in label]


def test_an_undirected_path_is_read_from_its_source_in_either_direction():
    G = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")])
    assert set(graphs.path_arms(G, "d", "a").bandit(-np.ones(4)).labels) == {"d→c→a", "d→c→b→a"}
    assert set(graphs.path_arms(G, "a", "d", k_best=2).bandit(-np.ones(4)).labels) == {"a→c→d", "a→b→c→d"}
    assert graphs.path_arms(nx.Graph([("a", "b")]), "b", "a").bandit([-1.0]).labels == ("b→a",)
