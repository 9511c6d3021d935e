"""Studies as pictures: the axes are the parameters that vary, the curve and the cells the study's own numbers."""

import numpy as np
import pytest

import allocopt as ao

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    specs = {
        "one": {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.05, 0.1, 0.2]}, "quantities": ["c", "ratio"]},
        "two": {
            "family": {"name": "random-unit"}, "grid": {"dim": [2, 3], "n_arms": [5, 6, 8]}, "repeats": 3, "quantities": ["c"],
        },
        "none": {"family": {"name": "counter-example"}, "fixed": {"epsilon": 0.1}, "quantities": ["c"]},
    }  # fmt: skip
    return {name: ao.study(spec, folder / name, workers=1) for name, spec in specs.items()}


def test_one_parameter_is_a_curve_between_the_bounds(results):
    result = results["one"]
    figure = result.plot("ratio")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epsilon", "ratio")
    curve = max(axes.lines, key=lambda line: len(line.get_xdata()))
    assert curve.get_xdata().tolist() == [0.05, 0.1, 0.2]
    assert curve.get_ydata() == pytest.approx(result.rows("ratio")["value"].to_numpy(), rel=1e-7)
    assert result.plot().axes[0].get_ylabel() == "c"
    assert result.plot(width="page").get_figwidth() == pytest.approx(7.0)
    assert result.plot(ax=axes) is figure


def test_two_parameters_are_a_heat_map_of_medians_over_seeds(results):
    result = results["two"]
    frame = result.to_frame()
    axes = result.plot().axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dim", "n_arms")
    cells = np.asarray(axes.images[0].get_array()).reshape(3, 2)
    medians = frame.groupby(["n_arms", "dim"])["value"].median().to_numpy().reshape(3, 2)
    assert cells == pytest.approx(medians)
    # along one of them, medians over the other too
    points = max(result.plot(parameters="dim").axes[0].lines, key=lambda line: len(line.get_xdata()))
    assert points.get_ydata() == pytest.approx(frame.groupby("dim")["value"].median().to_numpy(), rel=1e-7)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("none", {}, "parameters: expected one or two names, for 0 take several numbers .none."),
        ("two", {"parameters": "width"}, "parameters: expected one or two of dim, n_arms, seed, got 'width'"),
        ("two", {"parameters": ("dim", "dim")}, "parameters: expected one or two of dim, n_arms, seed"),
        ("one", {"quantity": "colour"}, "quantity: expected one of c, ratio, got 'colour'"),
    ],
)
def test_what_cannot_be_drawn_is_said(results, name, options, said):
    with pytest.raises(ao.InvalidOption, match=said):
        results[name].plot(**options)
