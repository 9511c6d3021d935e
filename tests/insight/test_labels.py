"""Names of arms travel from the graph or file through the solution to tables, JSON and proofs."""

import copy
import json
import pickle

import networkx as nx
import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli.main import app


@pytest.fixture
def routes():
    g = nx.DiGraph()
    g.add_weighted_edges_from([("s", "a", 1.0), ("a", "t", 1.0), ("s", "b", 1.5), ("b", "t", 1.0), ("a", "b", 0.1)])
    return ao.graphs.path_arms(g, "s", "t")


def test_three_lines_from_a_graph_to_a_certified_constant(routes):
    s = ao.solve(ao.programs.regret(routes.bandit()))
    assert s.status is ao.Status.CERTIFIED
    assert s.labels is not None
    assert sorted(s.labels) == ["s→a→b→t", "s→a→t", "s→b→t"]
    assert s.labels[s.optimal_arms[0]] == "s→a→t"


def test_routes_keep_their_names_in_the_hardness_report_its_page_and_its_pictures(routes):
    from allocopt import plots
    from allocopt.insight.hardness.report import sections
    from allocopt.insight.hardness.report_document import document

    h = ao.hardness(routes.bandit())
    names = {h.label(e.arm) for e in h.informative}
    assert names <= set(routes.bandit().labels)
    shown = {
        cell for section in sections(h) if section.title == "Informative arms" for row in section.rows for cell in row
    }
    assert names <= shown
    assert {entry["label"] for entry in document(h)["informative"]} == names
    page = h.to_html(pictures=False)
    assert all(f"<bdi>{name}</bdi>" in page for name in names)
    ticks = {tick.get_text() for tick in plots.allocation(h.solution).axes[0].get_yticklabels()}
    assert names <= ticks


def test_routes_keep_their_names_on_the_command_line(routes, tmp_path):
    path = tmp_path / "routes.json"
    bandit = routes.bandit()
    path.write_text(
        json.dumps({"arms": bandit.arms.tolist(), "theta": bandit.theta.tolist(), "labels": bandit.labels}),
        encoding="utf-8",
    )
    shown = CliRunner().invoke(app, ["hardness", str(path), "--no-prove", "--html", str(tmp_path / "page.html")])
    assert shown.exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for label in bandit.labels:
        assert label in shown.output
        assert label in page


def test_labels_survive_a_proof_file(routes, tmp_path):
    s = ao.solve(ao.programs.regret(routes.bandit()))
    s.save(tmp_path / "p.json")
    assert ao.load_solution(tmp_path / "p.json").labels == s.labels


def test_labels_of_an_instance_file_are_shown(tmp_path):
    path = tmp_path / "i.json"
    labels = ["left", "[bold]middle", "right"]
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1], [0.75, 0.5]], "theta": [1, 0], "labels": labels}))
    shown = CliRunner().invoke(app, ["solve", str(path)])
    assert "[bold]middle" in shown.output
    printed = CliRunner().invoke(app, ["solve", str(path), "--json"])
    assert json.loads(printed.output)["labels"] == labels


@pytest.mark.parametrize("labels", [["a"], "abc", [1, 2, 3], 5])
def test_labels_must_be_one_string_per_arm(labels):
    with pytest.raises(ao.InvalidInstance, match="labels: expected"):
        ao.LinearBandit([[1, 0], [0, 1], [0.75, 0.5]], [1, 0], labels=labels)


def test_a_spanner_from_an_oracle_needs_no_list(routes):
    g = nx.DiGraph([("s", "a"), ("a", "t"), ("s", "b"), ("b", "t"), ("a", "b")])
    found = ao.barycentric_spanner(ao.graphs.shortest_path_oracle(g, "s", "t"), C=2)
    assert found.C <= 2
    assert found.oracle_calls > 0
    assert len(found.arms) == 3


def test_a_huge_weight_elsewhere_does_not_blur_the_shortest_path():
    g = nx.Graph()
    g.add_weighted_edges_from([(0, 3, 2.5), (0, 1, 1.0), (1, 3, 1.0), (1, 2, 1e12), (2, 3, 1e12)])
    found = ao.graphs.path_arms(g, 0, 3, k_best=2)
    assert (-found.arms @ found.theta).tolist() == [2.0, 2.5]


@pytest.mark.parametrize("scale", [1e-16, 1e-8, 1.0, 1e20])
def test_intervals_of_an_oracle_scale_with_theta(scale):
    g = nx.complete_graph(4)
    theta = [-1, -2, -3.3, -1.2, -0.7, -2.9]
    c = ao.solve(ao.programs.regret(ao.graphs.spanning_tree_arms(g).bandit(theta))).value
    found = ao.oracle_allocation(ao.graphs.spanning_tree_oracle(g), [scale * t for t in theta])
    assert found.lower * scale <= c <= found.upper * scale
    assert found.upper <= 3 * found.lower


@pytest.mark.parametrize(("n", "m"), [(20000, 10000), (10**9, 5 * 10**8), (100_000, 1)])
def test_subsets_beyond_memory_are_refused_at_once(n, m):
    with pytest.raises(ao.InvalidInstance, match=r"limit: there are about|too much for memory"):
        ao.graphs.subset_arms(n, m)


def test_results_can_be_pickled_and_copied(routes):
    s = ao.solve(ao.programs.regret(routes.bandit()))
    again = pickle.loads(pickle.dumps(copy.deepcopy(s)))
    assert again.value == s.value
    assert again.verify() == s.verify() == pickle.loads(pickle.dumps(s.verify()))
    batch = ao.solve_many([[1, 0], [0, 1]], [[0, 1.0], [0, 0.5]])
    assert (copy.deepcopy(batch).value == pickle.loads(pickle.dumps(batch)).value).all()
