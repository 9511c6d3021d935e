"""Numbers and arrays as JSON can hold them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt.base.json_data import json_data, json_number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_comes_back_as_it_was(x):
    assert json.loads(json.dumps(json_number(x), allow_nan=False)) == x


def test_infinities_are_words_and_nan_is_null():
    assert [json_number(x) for x in (math.inf, -math.inf, math.nan)] == ["inf", "-inf", None]


def test_arrays_and_records_within_each_other_become_plain_data():
    given_data = {"a": (np.array([[1.0, np.inf]]), np.float64(2.5), np.int64(3)), 7: [True, "text", None]}
    assert json_data(given_data) == {"a": [[[1.0, "inf"]], 2.5, 3], "7": [True, "text", None]}
    json.dumps(json_data(given_data), allow_nan=False)


def test_what_is_none_of_these_is_converted_by_the_caller():
    assert json_data([len, 1], lambda x: x.__name__ if callable(x) else x) == ["len", 1]
    with pytest.raises(TypeError):
        json.dumps(json_data([len]))
