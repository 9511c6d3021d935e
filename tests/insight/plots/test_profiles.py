"""Performance profiles: what the lines say, and what is refused."""

import math

import numpy as np
import pytest

from allocopt.base.errors import InvalidOption
from allocopt.insight import plots


def test_a_line_is_the_share_of_instances_within_a_factor_of_the_best():
    figure = plots.performance_profiles({"a": [1, 10, 4], "b": [2, 5, math.nan], "c": [1, 50, 4]}, most=20)
    for line, within in zip(
        figure.axes[0].lines, ([2 / 3, 1, 1], [1 / 3, 2 / 3, 2 / 3], [2 / 3, 2 / 3, 1]), strict=True
    ):
        x, y = line.get_xdata(), line.get_ydata()
        assert (np.diff(y) >= 0).all()
        for factor, share in zip((1.0, 2.0, 10.0), within, strict=True):
            assert y[np.searchsorted(x, factor * (1 + 1e-12), side="right") - 1] == pytest.approx(share)


def test_an_instance_that_costs_nobody_anything_is_one_on_which_all_are_best():
    figure = plots.performance_profiles({"a": [0, 1], "b": [0, 2], "c": [1, 4]})
    assert [float(line.get_ydata()[0]) for line in figure.axes[0].lines] == [1.0, 0.5, 0.0]


def test_instances_that_nobody_played_do_not_count():
    figure = plots.performance_profiles({"a": [math.nan, 1], "b": [math.nan, 2]})
    assert figure.axes[0].lines[0].get_ydata()[0] == 1.0


@pytest.mark.parametrize(
    ("scores", "options", "words"),
    [
        ({}, {}, "scores: expected a mapping"),
        ({"a": "x"}, {}, "scores['a']: expected a list of numbers"),
        ({"a": [1, -1]}, {}, "scores['a']: expected a list of numbers"),
        ({"a": [1, 2], "b": [1]}, {}, "expected as many numbers of each name"),
        ({"a": [math.nan]}, {}, "got nan everywhere"),
        ({"a": [1]}, {"most": 1}, "most: expected a number above 1"),
    ],
)
def test_bad_scores_are_named(scores, options, words):
    with pytest.raises(InvalidOption) as caught:
        plots.performance_profiles(scores, **options)
    assert words in str(caught.value)
