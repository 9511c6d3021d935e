"""Designs: within their ranges, reproducible; a wrong specification is refused with its key before anything is made."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import BASIC, RANDOM

import allocopt as ao
from allocopt.insight.study.design import Design, grid_values, parameter_value, random_values
from allocopt.insight.study.study import StudySpec, study

# Designs


def test_a_random_design_is_within_its_ranges_and_reproducible():
    content = {
        "family": {"name": "counter-example"}, "quantities": ["c"],
        "random": {"n": 500, "epsilon": {"loguniform": [1e-4, 0.1]}, "a": {"uniform": [1, 2]}, "dim": {"integer": [2, 4]},
                   "informative": {"choice": [True, False]}},
    }  # fmt: skip
    spec, again = StudySpec.from_dict(content), StudySpec.from_dict(content)
    points = [spec.design[i] for i in range(500)]
    assert points == [again.design[i] for i in range(500)]
    assert {p["dim"] for p in points} == {2, 3, 4} and {p["informative"] for p in points} == {True, False}
    assert all(1 <= p["a"] <= 2 and 1e-4 <= p["epsilon"] <= 0.1 for p in points)
    assert 0.3 < np.mean([p["epsilon"] < 10**-2.5 for p in points]) < 0.7  # half of them on the log scale
    other = StudySpec.from_dict({**content, "seed": 1})
    assert other.design[0] != points[0]
    del content["random"]["a"]
    fewer = StudySpec.from_dict(content)  # the draws of a parameter do not depend on the others
    assert [fewer.design[i]["epsilon"] for i in range(500)] == [p["epsilon"] for p in points]


def test_the_last_axis_runs_fastest_and_whole_numbers_among_fractions_become_fractions():
    spec = StudySpec.from_dict({**BASIC, "grid": {"epsilon": [0.1, 0.2], "a": [1, 2.5]}})
    assert [tuple(spec.design[i].values()) for i in range(4)] == [(0.1, 1.0), (0.1, 2.5), (0.2, 1.0), (0.2, 2.5)]
    assert dict(spec.parameters) == {"epsilon": float, "a": float}


# Values


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 200))
def test_a_linear_range_has_its_ends_and_equal_steps(low, length, n):
    high = low + length
    found = grid_values("x", {"linspace": [low, high], "n": n})
    assert (len(found), found[0], found[-1]) == (n, low, high)
    np.testing.assert_allclose(found, np.linspace(low, high, n), rtol=1e-14, atol=1e-14 * max(abs(low), abs(high)))


@given(st.integers(-12, 6), st.integers(1, 6), st.integers(1, 4))
def test_a_logarithmic_range_over_powers_of_ten_has_powers_of_ten(low, decades, per_decade):
    found = grid_values("x", {"logspace": [10.0**low, 10.0 ** (low + decades)], "n": decades * per_decade + 1})
    assert found[::per_decade] == [float(f"1e{low + i}") for i in range(decades + 1)]
    assert np.diff(np.log10(found)) == pytest.approx(1 / per_decade, rel=1e-9)


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(1, 9))
def test_a_range_of_whole_numbers_leaves_out_its_stop(low, length, step):
    assert grid_values("x", {"arange": [low, low + length], "step": step}) == list(range(low, low + length, step))


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)),
       st.integers(1, 3), st.integers(0, 100))  # fmt: skip
def test_a_grid_is_the_product_of_its_axes_repeated_with_seeds_of_their_own(grid, repeats, seed):
    design = Design({"fixed": 1.5}, grid, {}, None, repeats, seed)
    points = [design[i] for i in range(len(design))]
    wanted = [values for values in itertools.product(*grid.values()) for _ in range(repeats)]
    assert [tuple(p[name] for name in grid) for p in points] == wanted
    assert [p["seed"] for p in points] == list(range(seed, seed + len(points)))
    assert all(tuple(p) == design.names and p["fixed"] == 1.5 for p in points)
    assert design.points * repeats == len(design)
    assert design[-1] == points[-1]
    with pytest.raises(IndexError):
        design[len(design)]


@given(st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_a_longer_random_design_begins_as_the_shorter_one(n, seed):
    drawn = {"a": random_values("a", {"uniform": [0, 1]}), "b": random_values("b", {"integer": [2, 9]})}
    short, long = (Design({}, {}, drawn, count, None, seed) for count in (n, n + 50))
    assert [short[i] for i in range(n)] == [long[i] for i in range(n)]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), True), ([1, 2.5], [1.0, 2.5]), ((1, 2), [1.0, 2.0]),
        (np.array([1, 2]), [1.0, 2.0]), ("text", "text"), (-(2**63), -(2**63)),
    ],
)  # fmt: skip
def test_values_become_plain_python_data(value, plain):
    found = parameter_value("x", value)
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, None, 2**63, [], [True], ["a"], [[1.0]], {"a": 1}, object(), 1j, b"x", "\ud800"]
)
def test_values_that_no_column_holds_are_refused_by_name(value):
    with pytest.raises(ao.InvalidOption, match=r"^x(\[0\])?: expected"):
        parameter_value("x", value)


# Specs that are refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": {"name": "counter-exampel"}}, "family.name: 'counter-exampel' is unknown (did you mean 'counter-example'?)"),
        ({"family": None}, "family: expected a table with one of"),
        ({"family": {"function": "nowhere.py:f"}}, "family.function: nowhere.py: cannot be read: No such file"),
        ({"family": {"function": "no_such_module:f"}}, "No module named 'no_such_module'"),
        ({"family": {"function": "math:no"}}, "expected a function, but there is no such name in it"),
        ({"family": {"function": "math"}}, 'expected "module:function"'),
        ({"family": {"instances": "nowhere"}}, "family.instances: nowhere: no such file or folder"),
        ({"grid": {"epsilon": [0.1, 2.0]}}, "grid.epsilon: out of range: epsilon: expected a number in (0, 1]"),
        ({"fixed": {"a": -1}}, "fixed.a: out of range: a: expected a positive"),
        ({"grid": {"epsilom": [0.1]}}, "grid.epsilom: family 'counter-example' has no such parameter (it has: epsilon"),
        ({"grid": {}}, "epsilon: family 'counter-example' needs this parameter"),
        ({"grid": {"epsilon": 0.1}}, "grid.epsilon: expected a list of values"),
        ({"grid": {"epsilon": []}}, "grid.epsilon: expected at least one value"),
        ({"grid": {"epsilon": [0.1, "b"]}}, "grid.epsilon: expected values of one kind, got float and str"),
        ({"grid": {"epsilon": [0.1, 0.1]}}, "grid.epsilon: expected different values, got 0.1 twice"),
        ({"grid": {"epsilon": [float("nan")]}}, "grid.epsilon[0]: expected a finite number"),
        ({"grid": {"epsilon": {"logspace": [-3, -1], "n": 3}}}, "not their exponents"),
        ({"grid": {"epsilon": {"linspace": [0.1, 0.2]}}}, "grid.epsilon.n: expected the number of values"),
        ({"grid": {"epsilon": {"linspace": [0.2, 0.1], "n": 2}}}, "in rising order"),
        ({"grid": {"epsilon": {"linspace": [0.1, 0.2], "n": 2, "step": 1}}}, "grid.epsilon.step: unknown key"),
        ({"grid": {"epsilon": {"arange": [0.1, 0.2]}}}, "two whole numbers"),
        ({"grid": {"epsilon": [0.1], "value": [1]}}, "grid.value: the table has a column of its own"),
        ({"fixed": {"epsilon": 0.1}}, "fixed.epsilon: the parameter varies too, in [grid]"),
        ({"random": {"n": 2}}, "expected either [grid] or [random], got both"),
        ({"repeats": 2}, "repeats: family 'counter-example' takes no parameter seed"),
        ({"repeats": 0}, "repeats: expected a whole number >= 1, got 0"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
        ({"quantities": []}, "quantities: expected a list of names"),
        ({"quantities": ["cc"]}, "quantities: 'cc' is unknown (did you mean c?)"),
        ({"quantities": ["c", "c"]}, "quantities: expected each once"),
        ({"quantities": [["c"]]}, "quantities: ['c'] is unknown"),
        ({"method": ["auto"]}, "method: expected auto or one of"),
        ({"fixed": {"a": "\ud800"}}, "fixed.a: expected a text that UTF-8 can hold"),
        ({"quantities": ["price"]}, "width: expected the confidence width of 'price'"),
        ({"quantities": ["price"], "width": "b"}, "width: expected a number or the name of a parameter (epsilon), got 'b'"),
        ({"width": 1.0}, "width: only optimism and price have a width"),
        ({"tol": 0}, "tol: expected a positive"),
        ({"method": "magic"}, "method: expected auto or one of"),
        ({"toll": 1}, "toll: unknown key (did you mean tol?)"),
    ],
)  # fmt: skip
def test_a_wrong_spec_is_refused_with_its_key(tmp_path, change, message):
    with pytest.raises(ao.InvalidOption) as refused:
        study({**BASIC, **change}, tmp_path / "s")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "workers"),
        ({"workers": 2, "client": "tcp://x:1"}, "not both"),
        ({"client": 3}, "client: expected a dask.distributed.Client, got a int"),
        ({"client": "no address"}, "client: expected a Client or an address such as .*port"),
        ({"callback": 3}, "callback"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ao.InvalidOption, match=message):
        study(BASIC, tmp_path / "s", **options)


def test_a_design_too_large_for_memory_is_refused_before_it_is_made():
    with pytest.raises(ao.InvalidOption, match="repeats: expected at most 10000000 instances in all, got 4000000000"):
        StudySpec.from_dict({**RANDOM, "repeats": 10**9})
    with pytest.raises(ao.InvalidOption, match="expected at most 10000000 values"):
        StudySpec.from_dict({**BASIC, "grid": {"epsilon": {"linspace": [0.1, 0.2], "n": 10**12}}})
