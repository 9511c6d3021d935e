"""Named families: closed forms lie in certified intervals, names and numbers are checked, random ones repeat."""

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import allocopt as ao
from allocopt import instances
from allocopt.insight.instances import FAMILIES, REQUIRED, build, known_value

GRID = [
    *(("counter-example", {"epsilon": e, "a": a, "dim": d, "informative": i})
      for e in (1.0, 0.3, 0.01, 1e-9) for a in (0.5, 1.0, 2.0, 8.0) for d in (2, 4) for i in (True, False)),
    *(("optimism-example", {"epsilon": e, "a": a}) for e in (0.1, 1e-3, 1e-7) for a in (0.5, 1.0, 3.0)),
    *(("finite-armed", {"n_arms": k, "gap": g, "spacing": s}) for k in (2, 7) for g in (1e-4, 1.0) for s in (0, 0.5)),
    *(("equal-gaps", {"dim": d, "n_arms": k, "gap": g, "seed": 3})
      for d, k in ((2, 2), (2, 9), (4, 3), (5, 30)) for g in (1e-5, 1.0, 40.0)),
    *(("circle", {"n_arms": k}) for k in (3, 4, 5, 24, 1001)),
    *(("soare", {"dim": d, "omega": w}) for d in (2, 5) for w in (1e-4, 0.1, 1.0, 2.0, math.pi)),
    *(("hypercube", {"dim": d, "scale": s}) for d in (2, 3, 6, 9) for s in (1.0, 0.02)),
    *(("spectral", {"n_nodes": 16, "n_vectors": 16, "graph": g}) for g in ("path", "cycle", "grid", "small-world")),
    *(("grid-paths", {"rows": r, "columns": c}) for r, c in ((2, 2), (2, 6), (5, 2))),
    *((name, {"dim": 5, "n_arms": k, "seed": 1}) for name in ("random-unit", "clustered", "near-ties") for k in (4, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), GRID, ids=lambda x: str(x))
def test_the_closed_form_lies_in_the_certified_interval(name, parameters):
    known = known_value(name, **parameters)
    s = ao.solve(ao.programs.regret(build(name, **parameters)))
    assert s.status is ao.Status.CERTIFIED
    assert s.lower * (1 - 1e-13) <= known <= s.upper * (1 + 1e-13)


@pytest.mark.parametrize("omega", [1e-6, 1e-5])
def test_the_closed_form_is_proven_where_floating_bounds_are_wide(omega):
    """Gaps of 1e-12 beside gaps of 2: the floating interval may be wide, the exact one is not."""
    proven = ao.solve(ao.programs.regret(build("soare", dim=5, omega=omega))).verify()
    assert proven.lower * (1 - 1e-13) <= known_value("soare", dim=5, omega=omega) <= proven.upper * (1 + 1e-13)


def test_every_family_is_in_the_grid():
    assert {name for name, _ in GRID} == set(FAMILIES)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("random-unit", {"dim": 3, "n_arms": 4}),
        ("clustered", {"dim": 3, "n_arms": 9}),
        ("near-ties", {"dim": 3, "n_arms": 9}),
        ("spectral", {"n_nodes": 9, "n_vectors": 4}),
        ("grid-paths", {"rows": 3, "columns": 3}),
    ],
)
def test_no_value_is_claimed_where_none_is_known(name, parameters):
    assert known_value(name, **parameters) is None


@given(st.floats(1e-6, 1.0), st.floats(0.1, 10.0), st.integers(2, 5), st.booleans())
def test_the_counter_example_has_its_formula_for_all_parameters(epsilon, a, dim, informative):
    gap = 1 - (1 - epsilon)
    formula = 2 * (dim - 1) * max(1, a**2) / max(1, a**2 * gap) if informative else 2 * (dim - 1) / gap
    known = known_value("counter-example", epsilon=epsilon, a=a, dim=dim, informative=informative)
    assert known == pytest.approx(formula, rel=1e-9)


@given(st.floats(0.5, 4.0), st.floats(-6, -3))
def test_the_price_of_optimism_is_the_papers(a, exponent):
    epsilon = 10.0**exponent
    s = ao.solve(ao.programs.optimism(build("optimism-example", epsilon=epsilon, a=a), a))
    assert s.value == pytest.approx(4 * a + (2 - 1 / (16 * a)) / epsilon, rel=1e-6)


def test_near_ties_have_the_gap_they_were_given_however_small():
    bandit = build("near-ties", dim=4, n_arms=6, gap=1e-15, ties=3)
    assert bandit.gaps.tolist() == [0, 1e-15, 1e-15, 1e-15, 1, 1]
    assert bandit.optimal_arms.tolist() == [0]


def test_clusters_have_their_radius():
    bandit = build("clustered", dim=50, n_arms=400, n_clusters=4, radius=0.01)
    centres = np.array([bandit.arms[i::4].mean(axis=0) for i in range(4)])
    distances = np.linalg.norm(bandit.arms - centres[np.arange(400) % 4], axis=1)
    assert distances.mean() == pytest.approx(0.01, rel=0.05)
    assert np.linalg.norm(centres, axis=1) == pytest.approx(np.ones(4), abs=0.01)


def test_the_means_of_a_spectral_instance_do_not_depend_on_the_choice_of_eigenvectors():
    """A cycle's eigenvalues come in pairs: with whole pairs the signal on the nodes is the same in any basis."""
    bandit = build("spectral", n_nodes=12, n_vectors=5, graph="cycle", seed=4)
    angles = 2 * np.pi * np.arange(12) / 12
    basis = [np.full(12, 12**-0.5)]
    for frequency in (1, 2):
        basis += [np.sqrt(2 / 12) * np.cos(frequency * angles), np.sqrt(2 / 12) * np.sin(frequency * angles)]
    eigenvalues = 2 - 2 * np.cos(2 * np.pi * np.array([0, 1, 1, 2, 2]) / 12)
    noise = np.random.default_rng(4).normal(size=12)
    assert bandit.means == pytest.approx((np.array(basis) @ noise / (1 + eigenvalues)) @ np.array(basis), abs=1e-12)
    assert bandit.labels == tuple(map(str, range(12)))


def test_the_best_grid_path_is_the_cheapest_one():
    import networkx as nx

    bandit = build("grid-paths", rows=3, columns=4, seed=7)
    assert bandit.n_arms == math.comb(5, 2)
    graph, column = nx.DiGraph(), 0
    for r in range(3):
        for c in range(4):
            for end in [(r, c + 1)] * (c < 3) + [(r + 1, c)] * (r < 2):
                graph.add_edge((r, c), end, weight=-bandit.theta[column])
                column += 1
    path = nx.shortest_path(graph, (0, 0), (2, 3), weight="weight")
    moves = "".join("→" if b[1] > a[1] else "↓" for a, b in itertools.pairwise(path))
    assert bandit.labels[bandit.optimal_arms[0]] == moves


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if "seed" in f.parameters])
def test_a_seed_repeats_and_another_does_not(name):
    parameters = next(dict(p) for n, p in GRID if n == name)
    parameters.pop("seed", None)
    one, again, other = (build(name, **parameters, seed=seed) for seed in (1, 1, 2))
    assert (one.arms == again.arms).all() and (one.theta == again.theta).all()
    assert not ((one.arms == other.arms).all() and (one.theta == other.theta).all()) or one.arms.shape == (2, 2)


def test_random_unit_is_the_instance_that_published_figures_were_measured_on():
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(20, 5))
    theta = rng.normal(size=5)
    bandit = build("random-unit", dim=5, n_arms=20)
    assert (bandit.arms == arms / np.linalg.norm(arms, axis=1)[:, None]).all()
    assert (bandit.theta == theta / np.linalg.norm(theta)).all()
    assert ao.solve(ao.programs.regret(bandit)).value == pytest.approx(61.409067, abs=1e-6)


def test_parameters_come_from_the_signature():
    parameters = FAMILIES["counter-example"].parameters
    assert parameters == {
        "epsilon": (REQUIRED, float), "a": (2.0, float), "dim": (2, int), "informative": (True, bool)
    }  # fmt: skip
    assert FAMILIES["spectral"].parameters["graph"] == ("path", str)
    for family in FAMILIES.values():
        assert all(p.annotation in (int, float, bool, str) for p in family.parameters.values())
        assert family.summary and "\n" not in family.summary


def test_families_travel_to_other_processes():
    for family in FAMILIES.values():
        again = pickle.loads(pickle.dumps(family))
        assert again.name == family.name and again.build is family.build
    closed_form = pickle.loads(pickle.dumps(FAMILIES["random-unit"])).closed_form
    assert closed_form(dim=4, n_arms=3) == known_value("random-unit", dim=4, n_arms=3)


@pytest.mark.parametrize(
    ("error", "words", "name", "parameters"),
    [
        (ao.InvalidOption, "family: expected one of counter-example, .* got 'nonsense'", "nonsense", {}),
        (ao.InvalidOption, "family: expected one of", 3, {}),
        (ao.InvalidOption, "epsilon: the family 'counter-example' needs it, got none", "counter-example", {}),
        (ao.InvalidOption, r"eps: not a parameter .* \(it has: epsilon, a, dim, informative\)", "counter-example",
         {"eps": 0.1}),
        (ao.InvalidInstance, "epsilon: expected a number in", "counter-example", {"epsilon": 1.5}),
        (ao.InvalidInstance, "epsilon: expected .* no tie, got 1e-15", "counter-example", {"epsilon": 1e-15}),
        (ao.InvalidInstance, "epsilon: expected a positive, finite number, got 'x'", "counter-example", {"epsilon": "x"}),
        (ao.InvalidInstance, "epsilon: expected a positive, finite number, got nan", "counter-example",
         {"epsilon": math.nan}),
        (ao.InvalidInstance, "informative: expected True or False", "counter-example",
         {"epsilon": 0.1, "informative": "no"}),
        (ao.InvalidInstance, "dim: expected a whole number >= 2, got 1", "counter-example", {"epsilon": 0.1, "dim": 1}),
        (ao.InvalidInstance, "dim: expected a whole number", "random-unit", {"dim": 2.5, "n_arms": 3}),
        (ao.InvalidInstance, "seed: expected a whole number >= 0, got -1", "random-unit",
         {"dim": 2, "n_arms": 3, "seed": -1}),
        (ao.InvalidInstance, "seed: expected", "equal-gaps", {"dim": 2, "n_arms": 3, "seed": "a"}),
        (ao.InvalidInstance, "gap: expected a positive", "equal-gaps", {"dim": 2, "n_arms": 3, "gap": 0}),
        (ao.InvalidInstance, "n_arms: expected a whole number >= 2", "finite-armed", {"n_arms": 1}),
        (ao.InvalidInstance, "spacing: expected a non-negative", "finite-armed", {"n_arms": 3, "spacing": -1}),
        (ao.InvalidInstance, "n_arms: expected a whole number >= 3", "circle", {"n_arms": 2}),
        (ao.InvalidInstance, "n_arms: expected fewer arms", "circle", {"n_arms": 10**8}),
        (ao.InvalidInstance, "omega: expected an angle", "soare", {"omega": 4}),
        (ao.InvalidInstance, "omega: expected an angle", "soare", {"omega": 1e-8}),
        (ao.InvalidInstance, "omega: expected a positive", "soare", {"omega": [1]}),
        (ao.InvalidInstance, "dim: expected at most 20", "hypercube", {"dim": 21}),
        (ao.InvalidInstance, "scale: expected a positive", "hypercube", {"dim": 3, "scale": -1}),
        (ao.InvalidInstance, "n_clusters: expected at most n_arms = 3", "clustered",
         {"dim": 2, "n_arms": 3, "n_clusters": 4}),
        (ao.InvalidInstance, "radius: expected a positive", "clustered", {"dim": 2, "n_arms": 3, "radius": 0}),
        (ao.InvalidInstance, "ties: expected at most n_arms - 1", "near-ties", {"dim": 2, "n_arms": 3, "ties": 3}),
        (ao.InvalidInstance, r"gap: expected a number in \(0, 1\)", "near-ties", {"dim": 2, "n_arms": 3, "gap": 1}),
        (ao.InvalidInstance, "n_nodes: expected a square number", "spectral",
         {"n_nodes": 8, "n_vectors": 2, "graph": "grid"}),
        (ao.InvalidInstance, "graph: expected 'path'", "spectral", {"n_nodes": 8, "n_vectors": 2, "graph": "tree"}),
        (ao.InvalidInstance, "n_vectors: 2 cuts through a repeated eigenvalue", "spectral",
         {"n_nodes": 8, "n_vectors": 2, "graph": "cycle"}),
        (ao.InvalidInstance, "n_vectors: expected at most n_nodes = 8", "spectral", {"n_nodes": 8, "n_vectors": 9}),
        (ao.InvalidInstance, "n_nodes: expected at most 2000", "spectral", {"n_nodes": 10**6, "n_vectors": 9}),
        (ao.InvalidInstance, "n_nodes: expected at least 5", "spectral",
         {"n_nodes": 4, "n_vectors": 2, "graph": "small-world"}),
        (ao.InvalidInstance, "a grid of 20 × 20 has more than 100000 paths", "grid-paths", {"rows": 20, "columns": 20}),
        (ao.InvalidInstance, "has more than 100000 paths", "grid-paths", {"rows": 10**9, "columns": 10**9}),
        (ao.InvalidInstance, "paths of a grid of 2 × 50000 fill 60.* GB", "grid-paths", {"rows": 2, "columns": 50000}),
    ],
)  # fmt: skip
def test_bad_names_and_numbers_get_one_clear_line(error, words, name, parameters):
    with pytest.raises(error, match=words) as caught:
        build(name, **parameters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("counter-example", {"epsilon": -1}),
        ("optimism-example", {"epsilon": 0.1, "a": 0}),
        ("finite-armed", {"n_arms": 3, "gap": 0}),
        ("equal-gaps", {"dim": 2, "n_arms": 3, "seed": -1}),
        ("circle", {"n_arms": 0}),
        ("soare", {"omega": 0}),
        ("hypercube", {"dim": 40}),
        ("random-unit", {"dim": 0, "n_arms": 1}),
    ],
)
def test_a_closed_form_refuses_what_the_instance_refuses(name, parameters):
    for ask in (build, known_value):
        with pytest.raises(ao.InvalidInstance):
            ask(name, **parameters)


def test_graphs_are_loaded_only_for_the_families_that_need_them():
    code = (
        "import sys; from allocopt import instances; instances.build('hypercube', dim=3);"
        "assert 'networkx' not in sys.modules; instances.build('grid-paths', rows=2, columns=2);"
        "assert 'networkx' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_networkx_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    for name, parameters in (("grid-paths", {"rows": 2, "columns": 2}), ("spectral", {"n_nodes": 4, "n_vectors": 2})):
        with pytest.raises(ao.MethodUnavailable, match="pip install networkx"):
            instances.build(name, **parameters)
