"""Names of arms travel from the graph or file through the solution to tables, JSON and proofs."""

import json

import networkx as nx
import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli import app


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
