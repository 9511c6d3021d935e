"""Results as tables: in a notebook, as data frames, in LaTeX; names of arms stay text in all of them."""

import importlib
import pickle

import numpy as np
import pytest

import allocopt as ao
from allocopt.model.tables import Table

BANDIT = ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0], labels=["best", "<b>tells & costs</b>", "$x_1$"])


@pytest.fixture(scope="module")
def solution():
    return ao.solve(ao.programs.regret(BANDIT))


@pytest.fixture(scope="module")
def results(solution):
    run = ao.simulate("LinTS", BANDIT, 100, 4, rng=0)
    edges = {("s", "a"): 1.0, ("a", "t"): 1.0, ("s", "t"): 3.0}
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in edges.items())
    return [
        BANDIT, solution, solution.verify(), ao.hardness(BANDIT), run, ao.audit(BANDIT, run.pulls, 100),
        ao.Schedule.from_solution(solution, 1000), ao.barycentric_spanner(BANDIT.arms), ao.graphs.path_arms(graph, "s", "t"),
    ]  # fmt: skip


def test_every_result_shows_itself_in_a_notebook(results):
    for result in results:
        html = result._repr_html_()
        assert html.startswith("<p><strong>") and html.count("<table>") == html.count("</table>") >= 1
        assert "<b>" not in html  # a label that looks like HTML


def test_every_result_is_a_data_frame_and_a_tabular(results):
    for result in results:
        frame = result.to_frame()
        assert len(frame) == result._table().length >= 1
        latex = result.to_latex()
        assert latex.startswith(r"\begin{tabular}") and latex.count(r"\\") == len(frame) + 1
        assert "$x_1$" not in latex


def test_the_frame_of_a_solution_has_the_arms_that_matter_with_their_numbers(solution):
    frame = solution.to_frame()
    assert frame["arm"].tolist() == [0, 1, 2]
    assert frame["allocation"].tolist() == solution.allocation.tolist()
    assert frame["multiplier"].tolist() == solution.multipliers.tolist()
    assert frame["binding"].tolist() == [False, False, True]
    assert frame["share"].sum() == pytest.approx(1)


def test_a_large_set_shows_a_few_rows_only():
    rng = np.random.default_rng(0)
    s = ao.regret_constant(rng.normal(size=(60_000, 8)), rng.normal(size=8), tol=1e-4)
    assert len(s.to_frame()) < 200
    assert s._repr_html_().count("<tr>") <= 20


def test_without_a_package_for_data_frames_the_error_says_what_to_install(solution, monkeypatch):
    import_module, unavailable = importlib.import_module, ao.MethodUnavailable

    def no_frames(name):
        if name in ("pandas", "polars"):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", no_frames)
    with pytest.raises(unavailable, match="pip install pandas"):
        solution.to_frame()


def test_numbers_are_written_as_people_write_them():
    table = Table("t", {"a": np.inf, "b": np.nan, "c": True}, {"x": [1, 2], "y": [0.1 + 0.2, -np.inf]}, [1, 0])
    assert "∞" in table.html() and "–" in table.html() and "0.3" in table.html()
    assert table.latex(1).count(r"\\") == 2


def test_figures_show_in_a_notebook_and_can_be_pickled(solution):
    figure = solution.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    again = pickle.loads(pickle.dumps(figure))
    assert again._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(("dim", "label"), [(2, "x₁"), (3, "x₁"), (5, "gap Δ")])
def test_a_bandit_draws_itself(dim, label):
    bandit = ao.instances.random_unit(dim, 8, seed=1)
    assert bandit.plot().axes[0].get_xlabel() == label
    assert bandit.plot(width="page").get_figwidth() == 7.0
