"""JSON data: strict JSON from any numbers and arrays, and files that are read whole or refused in one line."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt.base.errors import InvalidFile, InvalidProof
from allocopt.base.json_data import json_data, json_number, read_json

leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(), st.text(max_size=5))
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
)


def refuse(token):
    raise AssertionError(f"not strict JSON: {token}")


@given(st.floats())
def test_a_number_comes_back_or_is_named(x):
    found = json.loads(json.dumps(json_number(x), allow_nan=False), parse_constant=refuse)
    if math.isnan(x):
        assert found is None
    else:
        assert float(found) == x


@given(nested)
def test_whatever_is_nested_becomes_strict_json(value):
    text = json.dumps(json_data(value), allow_nan=False)
    assert json.loads(text, parse_constant=refuse) == json_data(value)


@given(st.lists(st.floats(allow_nan=False), max_size=6))
def test_arrays_are_lists_of_the_same_doubles(values):
    found = json_data({"x": np.array(values), "y": tuple(values)})
    assert [float(x) for x in found["x"]] == [float(x) for x in found["y"]] == values
    assert json_data(np.array([[1, 2]])) == [[1, 2]]
    assert json_data(np.bool_(True)) is True


@given(nested.filter(lambda value: not isinstance(value, float)))
def test_what_was_written_is_read(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "x.json"
    path.write_text(json.dumps(json_data(value)), encoding="utf-8")
    assert read_json(path) == json_data(value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON: Expecting value at line 1, column 1"),
        (b'{"a": 1,\n "b" 2}', "not valid JSON: Expecting ':' delimiter at line 2, column 6"),
        (b"\xff\xfe", "expected JSON text, but it is not UTF-8 text"),
        (b"[" * 100_000, "not valid JSON: nested too deeply"),
        (b"1" * 100_000, "not valid JSON: it holds a number of thousands of digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' is there twice; which one is meant?"),
        (b'[{"x": {"b": 1, "b": 1}}]', "the key 'b' is there twice"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_that_names_the_file(tmp_path, content, words):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.json"):
        with pytest.raises(InvalidFile, match="cannot be read: "):
            read_json(path)


def test_a_key_that_is_there_twice_is_refused_as_the_caller_says(tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1, "a": 1}')
    with pytest.raises(InvalidProof):
        read_json(tmp_path / "x.json", InvalidProof)


def test_a_byte_order_mark_is_no_obstacle(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "x.json") == [1]


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
