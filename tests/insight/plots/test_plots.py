"""Plots: what is drawn is what was computed, nothing is cut off or unreadable, odd input is refused or drawn as it is."""

import os
import subprocess
import sys
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import assume, given, settings
from matplotlib.figure import Figure
from matplotlib.text import Text
from strategies import bandits

import allocopt as ao
from allocopt import instances, plots
from allocopt.insight.plots.instance_pictures.sets import clip, picture_of, set_points
from allocopt.insight.plots.style import arm_names, number, text

ODD = ("$x^*$ <b>best</b>", "[red]a very\nlong label indeed, of many words", "東京", "\\alpha_{ $ }", "_hidden", "")
X3 = [[1, 0], [0, 1], [0.9, 0.2]]


def solved(bandit):
    return ao.solve(ao.programs.regret(bandit))


def odd_bandit():
    arms = [[1, 0], [0, 1], [0.9, 0.2], [0.7, 0.5], [-1, 0.2], [0.1, -1]]
    return ao.LinearBandit(arms, [1, 0], labels=list(ODD))


@dataclass
class Alternative:
    arm: int
    theta: np.ndarray


@pytest.fixture(scope="module")
def figures():
    """One figure of every kind, and geometries of every kind of instance."""
    counter, three = instances.build("counter-example", epsilon=0.01), instances.build("random-unit", dim=3, n_arms=15)
    odd, many = odd_bandit(), instances.build("random-unit", dim=2, n_arms=200, seed=2)
    ties = ao.LinearBandit([[1, 1, 0], [1, -1, 0], [0.5, 0.2, 0.7], [-0.3, 0.6, 1]], [1, 0, 0])
    flat = ao.LinearBandit([[1, 0.5], [0.5, 0.25], [-1, -0.5]], [-1, 0.1])
    zero = ao.LinearBandit([[0, 0], [-1, 0.3], [-0.2, -0.5]], [1, 0.1], noise_variance=0.3)
    needle = instances.build("near-ties", dim=3, n_arms=9, gap=1e-4)
    runs = np.cumsum(np.random.default_rng(0).uniform(0, 9, (20, 30)), axis=1)
    times = np.unique(np.geomspace(10, 1e6, 30).astype(int))
    made = {
        f"geometry of {name}": plots.geometry(bandit, solved(bandit))
        for name, bandit in (("counter", counter), ("three", three), ("odd", odd), ("many", many), ("ties", ties),
                             ("flat", flat), ("zero", zero), ("needle", needle))
    }  # fmt: skip
    return made | {
        "alternatives": plots.geometry(counter, solved(counter), [Alternative(2, np.array([1.0, 0.5]))], horizon=5000),
        "best arm": plots.geometry(three, ao.solve(ao.programs.best_arm(three)), width=6),
        "g-optimal": plots.geometry(many, ao.solve(ao.programs.g_optimal(many.arms))),
        "pulls": plots.geometry(counter, ao.optimal_pulls(counter.arms, counter.gaps, 10**6)),
        "allocation": plots.allocation(solved(instances.build("random-unit", dim=10, n_arms=50)), most=12),
        "odd allocation": plots.allocation(solved(odd)),
        "curve": plots.family_curve([0.01, 0.1, 1], [7, 8, 2], [8, 9, 3], parameter="ε $", reference=8.0, label=ODD[1]),
        "curves": plots.family_curve(
            {label: ([1, 2, 3], [i + 1, np.nan, 3], [i + 2, 3, 4]) for i, label in enumerate(ODD)}, parameter=ODD[0]
        ),
        "heat map": plots.heat_map(
            [1, 2], np.geomspace(1e-6, 1, 12), np.geomspace(1, 1e5, 24).reshape(12, 2), x_name="a", y_name="ε",
            quantity="c",
        ),
        "regret": plots.regret_curves(
            {"LinUCB": (times, runs[:, : len(times)]), ODD[0]: (times, runs[:1, : len(times)])}, constant=8
        ),
    }  # fmt: skip


def test_all_words_can_be_read_and_nothing_is_cut_off(figures):
    for name, figure in figures.items():
        words = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
        assert min(t.get_fontsize() for t in words) >= 7, name
        renderer = figure.canvas.get_renderer()
        width, height = figure.get_size_inches()
        box = figure.get_tightbbox(renderer)
        assert box.x0 >= -0.01 and box.y0 >= -0.01 and box.x1 <= width + 0.01 and box.y1 <= height + 0.01, name


def test_figures_are_a_column_wide_unless_asked_otherwise(figures):
    assert {f.get_size_inches()[0] for name, f in figures.items() if name != "best arm"} == {3.4}
    assert figures["best arm"].get_size_inches()[0] == 6


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
@pytest.mark.parametrize(
    "name", ["geometry of odd", "geometry of three", "odd allocation", "curves", "heat map", "regret"]
)
def test_figures_can_be_saved_in_every_format(figures, name, ending, tmp_path):
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    path = plots.save(figures[name], tmp_path / f"a.{ending}")
    assert path.read_bytes().startswith(starts[ending])


def test_users_words_are_not_taken_for_mathematics_or_markup(figures, tmp_path):
    with mpl.rc_context({"svg.fonttype": "none"}):
        figures["odd allocation"].savefig(tmp_path / "odd.svg")
    drawn = (tmp_path / "odd.svg").read_text()
    assert "$x^*$ &lt;b&gt;best&lt;/b&gt;" in drawn
    shown = [t.get_text() for t in figures["curves"].legends[0].get_texts()]
    assert len(shown) == len(ODD)  # one that begins with an underscore is not dropped
    assert " _hidden" in shown


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("plain", "plain"),
        ("a$b", r"a\$b"),
        ("two\nlines", "two lines"),
        ("\x00", "�"),
        ("x" * 30, "x" * 14 + "…" + "x" * 7),
    ],
)
def test_text_is_one_short_line(label, shown):
    assert text(label) == shown


def test_arms_that_would_look_alike_are_numbered():
    alike = ["s→" + "a→" * 20 + end + "a→" * 20 for end in ("t", "u")]
    one, two = arm_names(alike, [0, 1])
    assert one != two and one.startswith("0: ") and two.startswith("1: ")
    assert arm_names(None, [4]) == ["arm 4"]
    assert arm_names(["大阪"], [0]) == ["0: □□"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(8, "8"), (0.05, "0.05"), (1234.5, "1234"), (-2, "−2"), (3e-7, "3·10⁻⁷"), (1e12, "10¹²"), (np.inf, "∞"), (0, "0"),
     (99999.9, "100000")],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value, shown):
    assert number(value) == shown


# geometry


@settings(max_examples=60)
@given(bandits(max_dim=3))
def test_the_drawn_set_lies_where_x_star_stays_best_and_touches_every_binding_arm(bandit):
    assume(bandit.dim in (2, 3) and bandit.rank == bandit.dim)
    s = solved(bandit)
    assume(s.status is ao.Status.CERTIFIED and len(s.support))
    picture = picture_of(bandit, s, None, None)
    assume(picture.slice is not None)  # else x* = 0 in three dimensions: an ellipsoid
    points = set_points(picture, picture.slice)
    best = bandit.arms[bandit.optimal_arms[0]]
    normals = (bandit.arms - best) @ picture.slice.basis
    size = np.linalg.norm(points, axis=1).max()
    reached = (points @ normals.T).max(axis=0)
    # the sampled boundary and the projection of arms of very different lengths leave some rounding
    slack = 2e-4 * bandit.gaps + 1e-9 * size * np.linalg.norm(bandit.arms, axis=1).max()
    assert (reached <= bandit.gaps + slack)[bandit.suboptimal_arms].all()
    tight = s.binding[s.multipliers[s.binding] > 1e-3 * s.multipliers.max()]
    if not picture.unbounded and size * np.linalg.norm(bandit.arms, axis=1).max() < 1e5 * bandit.gap_min:
        assert (reached[tight] >= 0.99 * bandit.gaps[tight]).all()


def test_the_set_of_the_counter_example_is_the_segment_up_to_the_alternative():
    bandit = instances.build("counter-example", epsilon=0.2)
    picture = picture_of(bandit, solved(bandit), None, None)
    ends = set_points(picture, picture.slice)[[0, -1]]
    assert np.sort(ends[:, 1]) == pytest.approx([-0.5, 0.5])
    assert ends[:, 0] == pytest.approx([0, 0], abs=1e-12)


def test_the_dashed_ellipse_counts_every_round_once():
    bandit = instances.build("counter-example", epsilon=0.2)
    picture = picture_of(bandit, solved(bandit), None, 5000)
    assert picture.rounds == 5000
    # in units of log n: trace of H is the number of rounds, since both arms that are played have length 1
    assert np.trace(picture.rounds_information) * np.log(5000) == pytest.approx(5000)
    pulls = picture_of(bandit, ao.optimal_pulls(bandit.arms, bandit.gaps, 10**6), None, None)
    assert np.trace(pulls.rounds_information) == pytest.approx(10**6)


def test_noise_widens_the_set_and_the_allocation_compensates():
    sets = []
    for variance in (1.0, 1e-3, 7.0):
        bandit = ao.LinearBandit(X3, [1, 0], noise_variance=variance)
        picture = picture_of(bandit, solved(bandit), None, None)
        sets.append(np.abs(set_points(picture, picture.slice)).max())
    assert sets == pytest.approx([0.5, 0.5, 0.5])


def test_the_allocation_is_drawn_as_area():
    bandit = instances.build("random-unit", dim=3, n_arms=15, seed=2)
    s = solved(bandit)
    figure = plots.geometry(bandit, s)
    sizes = next(c.get_sizes() for c in figure.axes[0].collections if "area" in c.get_label())
    played = s.allocation[s.support]
    assert np.sort(sizes / sizes.max()) == pytest.approx(np.sort(played / played.max()))


def test_arms_that_hide_each_other_get_a_closer_look():
    assert len(plots.geometry(*_with_solution("counter-example", epsilon=0.2)).axes[0].child_axes) == 0
    assert len(plots.geometry(*_with_solution("counter-example", epsilon=0.01)).axes[0].child_axes) == 1


def _with_solution(name, **parameters):
    bandit = instances.build(name, **parameters)
    return bandit, solved(bandit)


def test_alternatives_off_the_plane_are_marked_as_projected():
    bandit, s = _with_solution("random-unit", dim=3, n_arms=15, seed=2)
    best = bandit.arms[bandit.optimal_arms[0]]
    across = np.cross(best, [1.0, 2.0, 3.0])
    inside, outside = Alternative(0, bandit.theta + 0.1 * across), Alternative(1, bandit.theta + 0.1 * best)
    figure = plots.geometry(bandit, s, [inside, outside])
    words = [t.get_text() for t in figure.subfigs[1].legends[0].get_texts()]
    assert "alternative θ′" in words and "alternative θ′, projected" in words


def test_a_set_without_an_end_says_so():
    bandit = ao.LinearBandit([[1, 0.5], [0.5, 0.25], [-1, -0.5]], [-1, 0.1])
    figure = plots.geometry(bandit, solved(bandit))
    assert any("unbounded" in t.get_text() for t in figure.subfigs[1].legends[0].get_texts())


def test_clipping_keeps_the_half_plane():
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    assert clip(square, np.array([1.0, 0.0]), 0.5)[:, 0].max() == 0.5
    assert len(clip(square, np.array([1.0, 0.0]), -2.0)) == 0
    assert (clip(square, np.array([1.0, 0.0]), 5.0) == square).all()


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("bandit: expected 2 or 3 dimensions to draw, got 5", lambda b, s: plots.geometry(*_with_solution("hypercube", dim=5))),
        ("solution: expected the solution of a program with this bandit's arms",
         lambda b, s: plots.geometry(instances.build("counter-example", epsilon=0.3), s)),
        ("bandit: expected a LinearBandit, got a list", lambda b, s: plots.geometry([1], s)),
        ("solution: expected a Solution, got a float", lambda b, s: plots.geometry(b, 8.0)),
        ("horizon: exploration takes 30 rounds, more than n = 40|horizon: exploration takes",
         lambda b, s: plots.geometry(b, s, horizon=20)),
        ("horizon: expected a whole number", lambda b, s: plots.geometry(b, s, horizon=2.5)),
        ("horizon: the set does not depend on it", lambda b, s: plots.geometry(b, ao.solve(ao.programs.best_arm(b)), horizon=9)),
        ("alternatives: expected objects with arm and theta, got a int", lambda b, s: plots.geometry(b, s, [3])),
        ("alternatives: expected arms from 0 to 2, got 7",
         lambda b, s: plots.geometry(b, s, [Alternative(7, np.zeros(2))])),
        ("alternatives: theta: expected 2 entries, got 3",
         lambda b, s: plots.geometry(b, s, [Alternative(1, np.zeros(3))])),
        ("width: expected 2 to 20 inches, got 0.5", lambda b, s: plots.geometry(b, s, width=0.5)),
        ("width: expected 'column', 'page' or inches", lambda b, s: plots.allocation(s, width="x")),
        ("most: expected a whole number >= 1, got 0", lambda b, s: plots.allocation(s, most=0)),
        ("most: expected at most 200", lambda b, s: plots.allocation(s, most=201)),
        ("solution: expected a Solution", lambda b, s: plots.allocation(b)),
        ("a general one", lambda b, s: plots.geometry(b, ao.solve(ao.AllocationProgram(b.arms, b.gaps + 1, [[1, 1]], [1])))),
        ("lower, upper: expected both bounds", lambda b, s: plots.family_curve([1], parameter="a")),
        ("lower, upper: expected none beside a mapping", lambda b, s: plots.family_curve({"a": ([1], [1], [1])}, [1], parameter="a")),
        ("at least one curve", lambda b, s: plots.family_curve({}, parameter="a")),
        ("at least one point", lambda b, s: plots.family_curve([], [], [], parameter="a")),
        ("lower: expected 2 numbers, one per point", lambda b, s: plots.family_curve([1, 2], [1], [1, 2], parameter="a")),
        ("lower: expected 2 numbers, got a str", lambda b, s: plots.family_curve([1, 2], "ab", [1, 2], parameter="a")),
        ("lower 3 is above upper 2 at 1", lambda b, s: plots.family_curve([1], [3], [2], parameter="a")),
        (r"expected \(points, lower, upper\)", lambda b, s: plots.family_curve({"a": [1]}, parameter="a")),
        ("log: expected '', 'x'", lambda b, s: plots.family_curve([1], [1], [2], parameter="a", log="z")),
        ("log: expected positive values on the x axis, got -1",
         lambda b, s: plots.family_curve([-1], [1], [2], parameter="a", log="x")),
        ("reference: expected a number or a function",
         lambda b, s: plots.family_curve({i: ([1], [1], [1]) for i in "ab"}, parameter="a", reference=[1])),
        ("values: expected shape .2, 3., y by x, got .3, 2.; transpose it",
         lambda b, s: plots.heat_map([1, 2, 3], [1, 2], np.ones((3, 2)), x_name="", y_name="", quantity="")),
        ("values: expected at least one finite", lambda b, s: plots.heat_map([1], [1], [[np.nan]], x_name="", y_name="", quantity="")),
        ("values: expected 1 rows", lambda b, s: plots.heat_map([1], [1], 3, x_name="", y_name="", quantity="")),
        ("x, y: expected at least one", lambda b, s: plots.heat_map([], [1], [[]], x_name="", y_name="", quantity="")),
        ("log: expected positive values, got -1",
         lambda b, s: plots.heat_map([1], [1], [[-1]], x_name="", y_name="", quantity="", log=True)),
        ("curves: expected a mapping", lambda b, s: plots.regret_curves([])),
        ("expected .times, regret., got a list", lambda b, s: plots.regret_curves({"a": [1, 2, 3]})),
        ("expected regret of shape .runs, 2.", lambda b, s: plots.regret_curves({"a": ([1, 2], [[1, 2, 3]])})),
        ("increasing times from 1 on", lambda b, s: plots.regret_curves({"a": ([0, 2], [[1, 2]])})),
        ("increasing times", lambda b, s: plots.regret_curves({"a": ([3, 2], [[1, 2]])})),
        ("regret: expected finite numbers", lambda b, s: plots.regret_curves({"a": ([1, 2], [[1, np.nan]])})),
        ("constant: expected a non-negative", lambda b, s: plots.regret_curves({"a": ([1, 2], [[1, 2]])}, constant=-1)),
        ("horizon: expected at most 1e300", lambda b, s: plots.geometry(b, s, horizon=10**400)),
        ("horizon: expected at least 10", lambda b, s: plots.regret_curves({"a": ([10, 20], [[1, 2]])}, horizon=5)),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_gets_one_clear_line(words, call):
    bandit = ao.LinearBandit(X3, [1, 0])
    with pytest.raises(ao.AllocoptError, match=words) as caught:
        call(bandit, solved(bandit))
    assert "\n" not in str(caught.value)


# bars, curves, maps


def test_bars_have_the_lengths_of_the_solution():
    s = solved(ao.LinearBandit(X3, [1, 0]))
    left, right = plots.allocation(s).axes
    assert sorted(p.get_width() for p in left.patches[:2]) == pytest.approx([0, 8])
    assert any(t.get_text() == "∞" for t in left.texts)
    assert [p.get_width() for p in right.patches] == pytest.approx([0, 0, 8], abs=1e-6)


def test_bars_left_out_are_counted():
    s = solved(instances.build("finite-armed", n_arms=11))
    figure = plots.allocation(s, most=6)
    assert figure.get_supxlabel() == "and 5 more arms with 50.0% of the cost"


def test_targets_that_are_no_arms_have_rows_of_their_own():
    s = ao.solve(ao.AllocationProgram([[1, 0], [0, 1]], [1, 2], [[1, 1], [0, 1]], [0.5, 0.1]))
    right = plots.allocation(s).axes[1]
    assert all(label.get_text().startswith("target ") for label in right.get_yticklabels())


def test_a_curve_shows_the_bounds_and_what_is_missing():
    figure = plots.family_curve(
        [3, 1, 2], [2.0, 1.0, None], [2.5, 1.5, 9.0], parameter="a", reference=[2, 1, 3], log=""
    )
    axes = figure.axes[0]
    shown = {line.get_label(): line for line in axes.lines}
    assert shown["upper bound"].get_xdata().tolist() == [1, 2, 3]
    assert shown["upper bound"].get_ydata()[[0, 2]].tolist() == [1.5, 2.5] and np.isnan(
        shown["upper bound"].get_ydata()[1]
    )
    assert shown["not solved"].get_xdata().tolist() == [2]
    assert shown["closed form"].get_xydata().tolist() == [[1, 1], [2, 3], [3, 2]]
    assert "at most 50 % apart" in axes.get_title(loc="left")


def test_scales_are_logarithmic_where_values_span_much():
    axes = plots.family_curve([1e-4, 1], [1, 2], [1, 2], parameter="a").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    axes = plots.family_curve([-1, 1], [1, 200], [1, 200], parameter="a").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert plots.family_curve([1e-4, 1], [1, 2], [1, 2], parameter="a", log=False).axes[0].get_xscale() == "linear"


def test_a_heat_map_puts_values_in_their_cells_and_hatches_the_rest():
    figure = plots.heat_map([2, 1], [10, 20], [[1, 2], [None, np.inf]], x_name="a", y_name="b", quantity="c")
    axes = figure.axes[0]
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert shown[0].tolist() == [2, 1] and np.isnan(shown[1]).all()  # columns sorted by x
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1", "2"]
    assert sum(p.get_hatch() is not None for p in axes.patches) == 2
    assert plots.heat_map([1], [1], [[5.0]], x_name="a", y_name="b", quantity="c").axes[0].images


def test_regret_is_drawn_as_mean_and_quantiles():
    rng = np.random.default_rng(0)
    times, regret = np.array([10, 100, 1000, 10_000]), rng.exponential(size=(50, 4)).cumsum(axis=1)
    figure = plots.regret_curves({"a": (times, regret)}, constant=3.0, horizon=1000)
    axes = figure.axes[0]
    mean, line = axes.lines
    assert mean.get_ydata() == pytest.approx(regret[:, :3].mean(axis=0))
    assert line.get_ydata() == pytest.approx(3 * np.log(line.get_xdata()))
    assert "c = 3" in line.get_label()
    band = axes.collections[0].get_paths()[0].vertices
    for t, low, high in zip(times[:3], *np.quantile(regret[:, :3], (0.1, 0.9), axis=0), strict=True):
        heights = band[band[:, 0] == t, 1]
        assert heights.min() == pytest.approx(low) and heights.max() == pytest.approx(high)
    assert axes.get_xlim()[1] == 1000


def test_what_simulate_returns_can_be_drawn_as_it_is():
    result = ao.simulate(ao.policies.UCB(), instances.build("counter-example", epsilon=0.1), 100, 3, rng=0)
    mean = plots.regret_curves({"UCB": result}).axes[0].lines[0]
    assert mean.get_ydata() == pytest.approx(result.regret.mean(axis=0))


def test_a_single_run_is_a_line_without_a_band():
    assert not plots.regret_curves({"a": ([1, 10], [[0, 2]])}).axes[0].collections


# files


@pytest.fixture
def figure():
    return plots.regret_curves({"a": ([1, 10], [[0, 2], [1, 3]])})


def test_a_png_has_300_dots_per_inch(figure, tmp_path):
    from matplotlib.image import imread

    shape = imread(plots.save(figure, tmp_path / "a.PNG"), format="png").shape
    assert shape[1] == 1020 and shape[0] == int(300 * 0.8 * 3.4)


def test_a_file_that_exists_is_kept_unless_told_otherwise(figure, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_text("mine")
    with pytest.raises(ao.InvalidFile, match="exists already"):
        plots.save(figure, path)
    assert path.read_text() == "mine"
    plots.save(figure, path, overwrite=True)
    assert path.read_bytes().startswith(b"%PDF")
    assert [p.name for p in tmp_path.iterdir()] == ["a.pdf"]


def test_a_file_that_appears_meanwhile_is_kept(figure, tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    original = Figure.savefig

    def slow(self, *args, **how):
        original(self, *args, **how)
        path.write_text("mine")

    monkeypatch.setattr(Figure, "savefig", slow)
    with pytest.raises(ao.InvalidFile, match="exists already"):
        plots.save(figure, path)
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.jpg", "ends in .png, .pdf, .svg, got '.jpg'"), ("a", "got 'none'"), ("no/a.png", "there is no folder"),
     ("dir.png", "expected the name of a file, but it is a folder")],
)  # fmt: skip
def test_places_that_cannot_be_written_get_one_clear_line(figure, tmp_path, name, words):
    (tmp_path / "dir.png").mkdir()
    with pytest.raises(ao.InvalidFile, match=words):
        plots.save(figure, tmp_path / name)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(figure, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ao.InvalidFile, match="cannot write the figure: Permission denied"):
            plots.save(figure, tmp_path / "a.png")
    finally:
        tmp_path.chmod(0o700)


def test_a_failed_write_leaves_nothing_behind(figure, tmp_path, monkeypatch):
    def full(self, *args, **how):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(ao.InvalidFile, match="cannot write the figure: No space left on device"):
        plots.save(figure, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_only_figures_can_be_saved(tmp_path):
    with pytest.raises(ao.InvalidOption, match="figure: expected a matplotlib Figure, got a int"):
        plots.save(3, tmp_path / "a.png")


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_same_figure_gives_the_same_file(tmp_path, ending):
    s = solved(ao.LinearBandit(X3, [1, 0]))
    first, second = (plots.save(plots.allocation(s), tmp_path / f"{i}.{ending}").read_bytes() for i in range(2))
    assert first == second


# the user's matplotlib


def test_the_users_settings_are_neither_used_nor_changed():
    with mpl.rc_context({"font.size": 31.0, "text.usetex": True, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        figure = plots.regret_curves({"a": ([1, 10], [[0, 2]])})
        assert dict(mpl.rcParams) == before
        assert figure.axes[0].xaxis.label.get_fontsize() == 8
        assert not figure.axes[0].xaxis.label.get_usetex()


def test_pyplot_is_never_loaded_and_matplotlib_only_when_something_is_drawn():
    code = (
        "import sys; from allocopt import plots; assert 'matplotlib' not in sys.modules;"
        "plots.regret_curves({'a': ([1, 10], [[0, 2]])}); assert 'matplotlib' in sys.modules;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ao.MethodUnavailable, match="pip install matplotlib"):
        plots.regret_curves({"a": ([1, 10], [[0, 2]])})
