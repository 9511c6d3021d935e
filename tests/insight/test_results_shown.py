"""Every result shows itself: in a notebook, as a figure, as a data frame and in LaTeX. One table holds all of them."""

import io
from html.parser import HTMLParser

import numpy as np
import pytest

import allocopt as ao

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

BANDIT = ao.LinearBandit(
    [[1, 0], [0, 1], [0.99, 0.02], [0.5, 0.5]], [1, 0], labels=["best", "<b>tells & costs</b>", "$x_1$", "_d"]
)
DRAWN = "html plot frame latex"
TABLES = "html frame latex"
SHOWN = {
    # named by the issue of this toolkit's figures and tables
    "LinearBandit": DRAWN,
    "Solution": DRAWN,
    "Enclosure": DRAWN,
    "Hardness": DRAWN,
    "SimulationResult": DRAWN,
    "Audit": DRAWN,
    "StudyResult": DRAWN,
    "Schedule": DRAWN,
    "Spanner": DRAWN,
    "GraphArms": DRAWN,
    # and what else is a result
    "Comparison": DRAWN,
    "OracleAllocation": DRAWN,
    "BatchSolution": TABLES,
    "ContextualBandit": TABLES,
    "FiniteTimeBound": TABLES,
    "OracleSpanner": TABLES,
}
"""Class → what it can do."""
PANELS = {"LinearBandit": 2, "Solution": 2, "Hardness": 2, "Audit": 2}
METHODS = {"html": "_repr_html_", "plot": "plot", "frame": "to_frame", "latex": "to_latex"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([("s", "a", 1.0), ("a", "t", 1.0), ("s", "b", 1.5), ("b", "t", 1.0), ("s", "t", 3.0)])
    solution = ao.solve(ao.programs.regret(BANDIT))
    first, second = (ao.simulate(name, BANDIT, 200, 8, rng=0) for name in ("LinTS", "UCB"))
    spec = {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.2, 0.1]}, "quantities": ["c"]}
    oracle = ao.graphs.list_oracle([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return {
        "LinearBandit": BANDIT, "Solution": solution, "Enclosure": solution.verify(), "Hardness": ao.hardness(BANDIT),
        "SimulationResult": first, "Audit": ao.audit(BANDIT, first.pulls, 200),
        "StudyResult": ao.study(spec, tmp_path_factory.mktemp("study") / "s", workers=0),
        "Schedule": ao.Schedule.from_solution(solution, 1000), "Spanner": ao.barycentric_spanner(BANDIT.arms),
        "GraphArms": ao.graphs.path_arms(graph, "s", "t"), "Comparison": ao.compare(first, second),
        "OracleAllocation": ao.oracle_allocation(oracle, [1, 0, 0.5]),
        "BatchSolution": ao.solve_many([BANDIT, BANDIT]),
        "ContextualBandit": ao.ContextualBandit([[[1, 0], [0, 1]], [[0.5, 0], [1, 1]]], [1, 0]),
        "FiniteTimeBound": ao.finite_time_bound(ao.instances.counter_example(0.2), 10**6, 500),
        "OracleSpanner": ao.barycentric_spanner(oracle),
    }  # fmt: skip


class Tags(HTMLParser):
    """Opened and closed tags, and the text between them."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def public_classes():
    return {n: getattr(ao, n) for n in ao.__all__ if isinstance(getattr(ao, n), type)} | {
        "GraphArms": ao.graphs.GraphArms
    }


def test_every_class_that_shows_itself_is_in_the_table_with_all_that_it_can_do():
    found = {
        name: " ".join(what for what, method in METHODS.items() if hasattr(cls, method))
        for name, cls in public_classes().items()
    }
    assert {name: what for name, what in found.items() if what} == SHOWN


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_is_of_the_class_that_it_is_listed_as(results, name):
    assert type(results[name]).__name__ == name


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_a_table_in_which_names_stay_text(results, name):
    page = Tags(results[name]._repr_html_())
    assert page.open == [] and len("".join(page.text).split()) >= 4
    assert "<b>" not in results[name]._repr_html_()


@pytest.mark.parametrize("name", SHOWN)
def test_the_data_frame_and_the_latex_table_have_the_same_rows(results, name):
    result = results[name]
    frame = result.to_frame()
    assert len(frame) >= 1 and len(frame.columns) >= 2 and all(isinstance(c, str) for c in frame.columns)
    latex = result.to_latex()
    assert latex.startswith(r"\begin{tabular}") and latex.rstrip().endswith(r"\end{tabular}")
    head, *rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    columns = head.count("&") - head.count(r"\&") + 1
    assert all(row.count("&") - row.count(r"\&") + 1 == columns for row in rows)
    if name != "StudyResult":  # whose frame has one row per instance, and whose table one per quantity
        assert (len(rows), columns) == (len(frame), len(frame.columns))


@pytest.mark.parametrize("name", [name for name, what in SHOWN.items() if "plot" in what])
def test_a_figure_fits_the_width_and_can_be_drawn_into_given_axes(results, name):
    matplotlib, image = pytest.importorskip("matplotlib.figure"), pytest.importorskip("matplotlib.image")
    result = results[name]
    for width, inches in ((None, 3.4), ("page", 7.0), (5.0, 5.0)):
        figure = result.plot() if width is None else result.plot(width=width)
        assert figure.get_figwidth() == pytest.approx(inches)
        picture = io.BytesIO()
        figure.savefig(picture, format="png")  # plainly: nothing that is drawn may be cut off at an edge
        picture.seek(0)
        pixels = image.imread(picture)
        edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
        assert all((edge == 1.0).all() for edge in edges)
        assert figure._repr_png_().startswith(b"\x89PNG")
    theirs = matplotlib.Figure(figsize=(8, 4))
    axes = theirs.subplots(1, PANELS.get(name, 1))
    assert result.plot(ax=axes) is theirs
    assert all(one.has_data() for one in np.ravel(axes))


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_in_a_terminal_is_a_line_or_two(results, name):
    text = repr(results[name])
    assert text.startswith(name) and len(text) <= 200 and "\n" not in text


class TestIntervals:
    def test_bars_end_where_the_intervals_do(self):
        solution = ao.solve(ao.programs.regret(BANDIT), tol=1e-3)
        proven = solution.verify()
        figure = ao.plots.intervals({"claimed": solution, "proven": proven})
        axes = figure.axes[0]
        unit = 10.0 ** np.floor(np.log10((solution.upper - solution.lower) / solution.lower)) if solution.gap else 1.0
        ends = sorted(
            float(x) * unit * max(solution.lower, proven.lower) for line in axes.lines for x in line.get_xdata()
        )
        assert ends[-1] <= (solution.upper - min(solution.lower, proven.lower)) * (1 + 1e-9) + 1e-12
        assert repr(max(solution.lower, proven.lower)) in axes.get_title(loc="left")

    def test_an_interval_without_an_end_is_an_arrow_and_its_width_infinite(self):
        class Open:
            lower, upper = 1.0, float("inf")

        axes = ao.plots.intervals({"open": Open(), "known": ao.solve(ao.programs.regret(BANDIT))}).axes[0]
        assert any(line.get_marker() == ">" and len(line.get_xdata()) == 1 for line in axes.lines)
        assert "∞" in [text.get_text() for text in axes.texts]

    @pytest.mark.parametrize("bad", [3.0, {}, {"a": "b"}, {str(i): BANDIT for i in range(40)}])
    def test_what_has_no_ends_is_refused(self, bad):
        with pytest.raises(ao.InvalidOption, match="found: expected"):
            ao.plots.intervals(bad)

    def test_ends_in_the_wrong_order_are_refused(self):
        class Wrong:
            lower, upper = 2.0, 1.0

        with pytest.raises(ao.InvalidOption, match="lower <= upper"):
            ao.plots.intervals(Wrong())


class TestSchedulePlan:
    @pytest.mark.parametrize("order", ["interleaved", "explore-first", "tracking"])
    def test_curves_are_the_pulls_of_the_schedule_at_each_round(self, order):
        schedule = ao.Schedule.from_solution(ao.solve(ao.programs.regret(BANDIT)), 10**5, order=order)
        axes = schedule.plot().axes[0]
        curve = next(line for line in axes.lines if line.get_label() == "0: <b>tells & costs</b>"[3:])
        rounds, pulls = curve.get_data()
        assert rounds[0] == 1 and rounds[-1] == schedule.length
        assert pulls.tolist() == [schedule.pulls_at(int(t))[1] for t in rounds]
        rest = next(line for line in axes.lines if line.get_label() == "all best arms")
        assert rest.get_ydata()[-1] == schedule.pulls[schedule.free_arms].sum()

    def test_a_schedule_that_does_not_fit_says_so(self):
        schedule = ao.Schedule.from_solution(ao.solve(ao.programs.regret(BANDIT)), 10)
        assert not schedule.complete
        assert "too few" in schedule.plot().axes[0].get_title(loc="left")

    def test_arms_can_be_chosen_and_wrong_ones_are_refused(self):
        schedule = ao.Schedule.from_solution(ao.solve(ao.programs.regret(BANDIT)), 10**4)
        assert "best" in [line.get_label() for line in schedule.plot(arms=[0]).axes[0].lines]
        for arms in ([4], [], range(9)):
            with pytest.raises(ao.InvalidOption, match="arms"):
                schedule.plot(arms=list(arms))
        with pytest.raises(ao.InvalidOption, match="expected a Schedule, got a int"):
            ao.plots.schedule_plan(3)

    def test_a_schedule_of_a_design_and_one_of_which_nothing_is_left(self):
        design = ao.solve(ao.programs.g_optimal(BANDIT.arms))
        assert "all best arms" not in [
            x.get_label() for x in ao.Schedule.from_solution(design, 50).plot().axes[0].lines
        ]
        done = ao.Schedule.from_solution(ao.solve(ao.programs.regret(BANDIT)), 1000, played=[500, 500, 0, 0])
        with pytest.raises(ao.InvalidOption, match="nothing is left"):
            done.plot()


class TestSpannerCoefficients:
    def test_dots_are_the_coefficients(self):
        spanner = ao.barycentric_spanner(np.random.default_rng(0).normal(size=(40, 3)))
        axes = spanner.plot().axes[0]
        columns = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
        assert [c.tolist() for c in columns] == [np.sort(c).tolist() for c in spanner.coefficients.T]
        assert [label.get_text() for label in axes.get_xticklabels()] == [str(i) for i in spanner.indices]

    def test_of_many_arms_the_extremes_are_shown(self):
        spanner = ao.barycentric_spanner(np.random.default_rng(0).normal(size=(5000, 3)))
        axes = spanner.plot().axes[0]
        for line, column in zip([x for x in axes.lines if x.get_marker() == "o"], spanner.coefficients.T, strict=True):
            assert len(line.get_ydata()) <= 200
            assert (line.get_ydata().min(), line.get_ydata().max()) == (column.min(), column.max())
        assert "some of them shown" in axes.get_title(loc="left")

    def test_another_object_is_refused(self):
        with pytest.raises(ao.InvalidOption, match="expected a Spanner"):
            ao.plots.spanner_coefficients([[1, 0]])


def test_the_difference_of_two_policies_is_drawn_in_its_band():
    found = ao.compare(*(ao.simulate(name, BANDIT, 500, 10, rng=0) for name in ("LinTS", "UCB")))
    axes = found.plot().axes[0]
    curve = max(axes.lines, key=lambda line: len(line.get_xdata()))
    assert curve.get_ydata().tolist() == found.difference.tolist()
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(found.lower.min()) and band.max() == pytest.approx(found.upper.max())
    with pytest.raises(ao.InvalidOption, match="expected a Comparison"):
        ao.plots.regret_difference(3)


def test_a_graph_solves_its_own_regret_program_for_its_picture():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 3.0)])
    paths = ao.graphs.path_arms(graph, "s", "t")
    widths = [[line.get_linewidth() for line in figure.axes[0].lines]
              for figure in (paths.plot(), paths.plot(ao.solve(ao.programs.regret(paths.bandit()))))]  # fmt: skip
    assert widths[0] == widths[1]
    unweighted = ao.graphs.path_arms(networkx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")]), "s", "t")
    with pytest.raises(ao.InvalidInstance, match="theta: the arms come without edge weights"):
        unweighted.plot()
