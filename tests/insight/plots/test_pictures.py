"""Pictures of gaps, pulls, audits, graphs and profiles: what is drawn is what the numbers say; and every plot takes axes."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from matplotlib.text import Text

import allocopt as ao
from allocopt.insight.plots.charts.performance_profiles import profile_factors
from allocopt.insight.plots.instance_pictures.gap_information import _numbers
from allocopt.insight.plots.style import number

plt = pytest.importorskip("matplotlib.figure")
plots = ao.plots
BANDIT = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0], labels=["best", "tells", "$close$"])
SOLUTION = ao.solve(ao.programs.regret(BANDIT))
MANY = ao.instances.random_unit(5, 40, seed=2)


@pytest.fixture(scope="module")
def run():
    return ao.simulate("LinUCB", BANDIT, 1000, 6, rng=0)


@pytest.fixture(scope="module")
def paths():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 3.0), ("s", "b", 1.5), ("b", "t", 1.0)])
    return ao.graphs.path_arms(graph, "s", "t")


def axes(count, **how):
    found = plt.Figure(layout="constrained").subplots(1, count, **how)
    return found if count > 1 else (found,)


def pictures(run, paths):
    bound = ao.finite_time_bound(BANDIT, 1000, 50.0)
    other = ao.simulate("LinTS", BANDIT, 1000, 6, rng=0)
    return {
        "allocation": (2, lambda **how: plots.allocation(SOLUTION, **how)),
        "audit_bars": (2, lambda **how: plots.audit_bars(ao.audit(BANDIT, run.pulls, 1000), **how)),
        "bound_curve": (1, lambda **how: plots.bound_curve([bound], constant=8, **how)),
        "edge_allocation": (1, lambda **how: plots.edge_allocation(paths, ao.solve(ao.programs.regret(paths.bandit())), **how)),
        "family_curve": (1, lambda **how: plots.family_curve([1, 2], [1, 2], [2, 3], parameter="x", **how)),
        "gap_information": (1, lambda **how: plots.gap_information(SOLUTION, **how)),
        "geometry": (2, lambda **how: plots.geometry(BANDIT, SOLUTION, **how)),
        "heat_map": (1, lambda **how: plots.heat_map([1], [1], [[1]], x_name="x", y_name="y", quantity="q", **how)),
        "intervals": (1, lambda **how: plots.intervals(SOLUTION, **how)),
        "performance_profiles": (1, lambda **how: plots.performance_profiles({"a": [1, 2], "b": [2, 1]}, **how)),
        "pulls_over_time": (1, lambda **how: plots.pulls_over_time(run, solution=SOLUTION, **how)),
        "regret_curves": (1, lambda **how: plots.regret_curves({"LinUCB": run}, constant=8, **how)),
        "regret_difference": (1, lambda **how: plots.regret_difference(ao.compare(run, other), **how)),
        "schedule_plan": (1, lambda **how: plots.schedule_plan(ao.Schedule.from_solution(SOLUTION, horizon=1000), **how)),
        "spanner_coefficients": (1, lambda **how: plots.spanner_coefficients(ao.barycentric_spanner(MANY.arms), **how)),
    }  # fmt: skip


def test_every_plot_draws_into_given_axes_or_on_a_column_or_a_page(run, paths):
    drawn = pictures(run, paths)
    # charts of studies are `family_curve` and `heat_map`, and have tests of their own
    assert sorted(drawn) == sorted(set(plots.__all__) - {"save", "study_chart"})
    for name, (count, draw) in drawn.items():
        mine = axes(count)
        figure = draw(ax=mine if count > 1 else mine[0])
        assert figure is mine[0].figure and all(one.has_data() for one in mine), name
        assert draw().get_figwidth() == draw(width="column").get_figwidth() == 3.4
        assert draw(width="page").get_figwidth() == 7.0
        with pytest.raises(ao.InvalidOption, match="width: expected none beside ax"):
            draw(ax=mine if count > 1 else mine[0], width=4)
        with pytest.raises(ao.InvalidOption, match="ax: expected"):
            draw(ax="here")


def test_no_legend_is_cut_off(run, paths):
    for name, (_, draw) in pictures(run, paths).items():
        for width in ("column", "page"):
            figure = draw(width=width)
            renderer = figure.canvas.get_renderer()
            legends = [*figure.legends, *(legend for part in figure.subfigs for legend in part.legends)]
            for legend in legends:
                box = legend.get_window_extent(renderer)
                inside = box.x0 >= -1 and box.x1 <= figure.bbox.width + 1 and box.y0 >= -1
                assert inside, (name, width, box)


def test_arms_lie_below_the_curve_and_binding_ones_on_it():
    solution = ao.solve(ao.programs.regret(MANY))
    arms, gaps, norms, radii = _numbers(solution)
    assert (norms <= radii * (1 + 1e-6)).all()
    on = np.isin(arms, solution.binding)
    np.testing.assert_allclose(norms[on], gaps[on] ** 2 / 2, rtol=1e-5)
    assert on.any()
    figure = plots.gap_information(solution)
    (line,) = (one for one in figure.axes[0].lines if one.get_label() == "Δ²/2")
    np.testing.assert_allclose(line.get_ydata(), line.get_xdata() ** 2 / 2)
    with pytest.raises(ao.InvalidOption, match="program with gaps"):
        plots.gap_information(ao.solve(ao.programs.g_optimal(MANY.arms)))
    noisy = ao.LinearBandit(MANY.arms, MANY.theta, noise_variance=np.linspace(1, 3, 40))
    *_, norms, radii = _numbers(ao.solve(ao.programs.regret(noisy)))
    assert (norms <= radii * (1 + 1e-6)).all()


def test_pulls_stand_beside_alpha_log_n(run):
    figure = plots.pulls_over_time(run, [1], solution=SOLUTION)
    measured, wanted = figure.axes[0].lines[:2]
    np.testing.assert_allclose(measured.get_ydata(), run.pulls_at_times[:, :, 1].mean(axis=0))
    np.testing.assert_allclose(wanted.get_ydata(), SOLUTION.allocation[1] * np.log(wanted.get_xdata()))
    for bad, words in (([7], "from 0 to 2"), ([], "1 to 7 arms"), (range(3, 20), "from 0 to 2")):
        with pytest.raises(ao.InvalidOption, match=words):
            plots.pulls_over_time(run, list(bad))


def test_an_audit_shows_the_arms_without_evidence_first():
    found = ao.audit(BANDIT, [990, 1, 9], 1000)
    figure = found.plot()
    names = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert names == [{1: "tells", 2: r"\$close\$"}[row.arm] for row in found.table() if row.arm]
    assert "too little" in figure.axes[1].get_xlabel()


def test_the_width_of_an_edge_is_what_the_arms_that_use_it_are_played(paths):
    solution = ao.solve(ao.programs.regret(paths.bandit()))
    alpha = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    flow = alpha @ paths.arms
    figure = paths.plot(solution)
    written = {t.get_text() for t in figure.axes[0].texts}
    assert {"s", "a", "b", "t"} <= written
    assert {number(x) for x in flow if x > 0} <= written
    with pytest.raises(ao.InvalidOption, match="columns are edges"):
        plots.edge_allocation(ao.graphs.GraphArms(np.eye(2), ("a", "b"), ("x", "y"), None), SOLUTION)


def test_profiles_are_the_shares_within_a_factor_of_the_best():
    given = {"a": [1.0, 4.0, 0.0], "b": [2.0, float("nan"), 1.0]}
    names, factors = profile_factors(given)
    assert names == ["a", "b"]
    np.testing.assert_array_equal(factors, [[1, 1, 1], [2, np.inf, np.inf]])
    first, second = plots.performance_profiles(given, most=10).axes[0].lines
    assert first.get_ydata()[0] == 1.0 and second.get_ydata()[0] == 0.0
    assert second.get_ydata()[-1] == pytest.approx(1 / 3)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 4.0], "b": [2.0, 2.0]})
    np.testing.assert_array_equal(profile_factors(frame)[1], [[1, 2], [2, 1]])
    for bad in ({}, {"a": [-1.0]}, {"a": ["x"]}, 3, {"a": []}, {"a": [1], "b": [1, 2]}, {"a": [None]}):
        with pytest.raises(ao.InvalidOption, match="scores"):
            plots.performance_profiles(bad)


def test_one_curve_that_flattens_the_others_makes_the_scale_logarithmic():
    near = {"a": ([1, 10], [[1, 5]]), "b": ([1, 10], [[1, 20]])}
    far = {"a": ([1, 10], [[1, 5]]), "b": ([1, 10], [[1, 500]])}
    assert plots.regret_curves(near).axes[0].get_yscale() == "linear"
    assert plots.regret_curves(far).axes[0].get_yscale() == "log"
    assert plots.regret_curves(far, log=False).axes[0].get_yscale() == "linear"


def test_a_bound_far_below_the_curves_makes_the_scale_logarithmic():
    curves = {"a": ([1, 10], [[1, 100]])}

    def scale(top, **how):
        return plots.regret_curves(curves, bound=([1, 10], [0, top]), **how).axes[0].get_yscale()

    assert [scale(4), scale(6), scale(0)] == ["log", "linear", "linear"]
    assert scale(6, constant=100) == "log"  # it is the line c·log n that takes the height then
    assert scale(4, log=False) == "linear"
    nothing = {"a": ([1, 10], [[0, 0]])}  # which no logarithm shows
    assert plots.regret_curves(nothing, constant=100, bound=([10], [1])).axes[0].get_yscale() == "linear"


def test_a_closed_form_is_drawn_as_a_curve_not_as_a_polygon():
    figure = plots.family_curve(
        [0.1, 0.5, 1.0], [9, 1, 1], [11, 3, 2], parameter="x", reference=lambda x: 1 / x, log=""
    )
    (line,) = (one for one in figure.axes[0].lines if one.get_label() == "closed form")
    assert len(line.get_xdata()) > 100
    np.testing.assert_allclose(line.get_ydata(), 1 / line.get_xdata())
    whole = plots.family_curve(
        [2, 4, 9], [2, 4, 9], [2, 4, 9], parameter="d", reference=lambda d: d if d == int(d) else 1 / 0
    )
    (line,) = (one for one in whole.axes[0].lines if one.get_label() == "closed form")
    assert line.get_xdata().tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_the_index_of_a_data_frame_names_the_arms():
    pandas = pytest.importorskip("pandas")
    rows = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]]
    named = pandas.DataFrame(rows, index=["best", "tells", "close"], columns=["x", "y"])
    assert (
        ao.LinearBandit(named, [1, 0]).labels == ao.regret_constant(named, [1, 0]).labels == ("best", "tells", "close")
    )
    assert ao.LinearBandit(named, [1, 0], labels=["a", "b", "c"]).labels == ("a", "b", "c")
    assert ao.LinearBandit(pandas.DataFrame(rows), [1, 0]).labels is None


@pytest.mark.parametrize("width", ["column", "page"])
def test_no_node_of_a_graph_is_cut_off(width):
    cities = nx.Graph([("Zürich", "Bern"), ("Bern", "Genf"), ("Zürich", "Basel"), ("Basel", "Bern"), ("Genf", "Sion")])
    for tower in (cities, nx.cycle_graph(["Zürich", "Genf", "Basel"])):
        paths = ao.graphs.path_arms(tower, "Zürich", "Genf")
        figure = plots.edge_allocation(
            paths, ao.solve(ao.programs.regret(paths.bandit(-np.ones(tower.size())))), width=width
        )
        (axes,) = figure.axes
        (nodes,) = axes.collections
        radius = np.sqrt(nodes.get_sizes()[0]) / 2 * figure.dpi / 72
        centres, frame = axes.transData.transform(nodes.get_offsets()), axes.get_window_extent()
        assert (centres - radius >= frame.min).all()
        assert (centres + radius <= frame.max).all()


def bars(values, tol=1e-8):
    """The allocation plot of a solution whose α are these."""
    arms = np.vstack([np.eye(len(values)), np.ones(len(values))])
    found = ao.regret_constant(arms, np.r_[1.0, np.zeros(len(values) - 1)])
    alpha = np.r_[values, np.inf]
    support = np.flatnonzero(np.isfinite(alpha) & (alpha > 0))
    given = dataclasses.replace(found, allocation=alpha, tol=tol)
    given.__dict__["support"] = support
    return plots.allocation(given).axes[0]


@pytest.mark.parametrize(
    ("values", "tol", "scale"),
    [
        ([3.0, 2.0, 1.0], 1e-8, "linear"),
        ([3.0, 2.0, 3e-9], 1e-8, "linear"),  # what a solver leaves of a zero
        ([4.09, 3.0, 2e-5], 1e-6, "linear"),  # the same at a wider tolerance
        ([0.673, 0.261, 0.117, 0.15, 0.009], 1e-8, "linear"),  # one small bar beside others that can be seen
        ([112.0, 1.83], 1e-8, "log"),
        ([102.0, 0.36, 0.17, 0.13], 1e-8, "log"),  # one bar flattens the rest
    ],
)
def test_bars_are_logarithmic_only_where_most_of_them_would_be_lines(values, tol, scale):
    assert bars(values, tol).get_xscale() == scale


def test_noise_of_the_solver_does_not_make_pulls_logarithmic():
    from allocopt.insight.plots.style import above_noise, flattened

    assert not flattened(above_noise([5e-8, 30.0, 40.0, np.inf, 0.0], 1e-8).tolist())
    assert flattened(above_noise([1.0, 30.0], 1e-8).tolist())
    assert above_noise([]).size == 0


def written(drawn):
    """The boxes of all words beside points, and those of the numbers at the ticks of each axis."""
    drawn.get_figure(root=True).draw_without_rendering()
    ticks = [
        [t.get_window_extent() for t in axis.get_ticklabels(which="both") if t.get_text() and t.get_visible()]
        for axis in (drawn.xaxis, drawn.yaxis)
    ]
    return [[Text.get_window_extent(t) for t in drawn.texts], *ticks]  # without the lines that lead to the points


@pytest.mark.parametrize("seed", range(2))
def test_words_do_not_cover_each_other_in_crowded_pictures(seed):
    rng = np.random.default_rng(seed)
    labels = [f"treatment {i}, dose {3 * i}" for i in range(60)]
    flat = ao.LinearBandit(rng.normal(size=(60, 2)), [1, 0.2], labels=labels)
    deep = ao.LinearBandit(rng.normal(size=(60, 6)), rng.normal(size=6), labels=labels)
    graph = nx.gnp_random_graph(10, 0.4, seed=3 + seed)
    for i, edge in enumerate(graph.edges):
        graph.edges[edge]["weight"] = 1.0 + (i * 0.37) % 1.0
    for figure in (flat.plot(), deep.plot(), plots.gap_information(flat), ao.graphs.path_arms(graph, 0, 7).plot()):
        for drawn in figure.axes:
            for boxes in written(drawn):
                for i, one in enumerate(boxes):
                    assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_a_name_far_from_its_point_has_a_line_that_leads_there():
    rng = np.random.default_rng(0)
    bandit = ao.LinearBandit(rng.normal(size=(60, 6)), rng.normal(size=6), labels=[f"treatment {i}" for i in range(60)])
    for note in plots.gap_information(bandit).axes[0].texts:
        away = np.hypot(*note.xyann)
        assert (note.arrow_patch is not None) == (away > 2.9 * 6.0) or away < 40
