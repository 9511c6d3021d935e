"""Conversion to doubles: an entry that would become another number is found, and exactly those; masks are never dropped."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt.base.conversion import NotAnArray, as_array, as_doubles, entries, first_changed, place, unchanging
from allocopt.base.errors import InvalidOption

near_doubles = st.builds(lambda m, e, c: m * 2**e + c, st.integers(1, 2**10), st.integers(43, 53), st.integers(-3, 3))


def is_a_double(x):
    return int(float(x)) == x


def first_that_is_none(values):
    return next(((i,) for i, x in enumerate(values) if not is_a_double(x)), None)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), near_doubles, near_doubles.map(lambda x: -x)), min_size=1))
def test_the_first_whole_number_that_is_no_double_is_found_and_no_other(values):
    values = [x for x in values if -(2**63) <= x < 2**63] or [0]
    signed = np.array(values, dtype=np.int64)
    assert first_changed(signed, signed.astype(np.float64)) == first_that_is_none(values)
    objects = np.array(values, dtype=object)
    assert first_changed(objects, signed.astype(np.float64)) == first_that_is_none(values)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_unsigned_numbers_too(values):
    unsigned = np.array(values, dtype=np.uint64)
    assert first_changed(unsigned, unsigned.astype(np.float64)) == first_that_is_none(values)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float16, np.float32, np.float64, np.bool_])
def test_types_within_doubles_change_nothing(dtype):
    values = np.array([[0, 1], [1, 0]], dtype=dtype)
    doubles = as_doubles("x", values, InvalidOption)
    assert doubles.dtype == np.float64
    assert np.array_equal(doubles, values)
    assert (doubles is values) == (dtype is np.float64)


@given(st.integers(2**53, 2**62), st.booleans())
def test_lists_are_looked_at_before_numpy_rounds_them(large, beside_a_float):
    given_list = [0.5, large] if beside_a_float else [0, large]
    raw = as_array(given_list)
    if is_a_double(large):
        assert as_doubles("x", raw, InvalidOption, given=given_list)[1] == large
    else:
        with pytest.raises(InvalidOption, match=f"^x: expected numbers that are doubles, but entry 1 is {large} and"):
            as_doubles("x", raw, InvalidOption, given=given_list)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long doubles are doubles here")
def test_long_doubles_that_are_no_doubles_are_found():
    values = np.array([1.0, np.nan, np.inf, 0.5], dtype=np.longdouble)
    assert first_changed(values, values.astype(np.float64)) is None
    values[3] += np.finfo(np.longdouble).eps
    assert first_changed(values, values.astype(np.float64)) == (3,)


@given(st.lists(st.fractions(), min_size=1, max_size=5))
def test_fractions_become_the_nearest_double(values):
    small = [Fraction(x.numerator % 1000, x.denominator % 997 + 1) for x in values]
    found = entries("x", np.array(small, dtype=object), InvalidOption, "numbers")
    assert found.tolist() == [float(x) for x in small]


@pytest.mark.parametrize("bad", ["1", b"1", None, 1j, np.complex128(1), np.ma.masked, object(), [1.0]])
def test_objects_that_are_no_numbers_are_refused_with_their_place(bad):
    raw = np.empty((2, 2), dtype=object)
    raw[:] = Decimal("0.5")
    raw[1, 0] = bad
    with pytest.raises(InvalidOption, match=r"^x: expected numbers, but row 1, column 0 is "):
        entries("x", raw, InvalidOption, "numbers")


class Converting:
    def __init__(self, result):
        self.result = result

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize("depth", range(4))
def test_a_mask_is_found_however_deep_it_is(depth):
    masked, open_one = np.ma.array([1.0, 2.0], mask=[False, True]), np.ma.array([1.0, 2.0])
    for _ in range(depth):
        masked, open_one = [masked], (open_one,)
    with pytest.raises(NotAnArray, match="masked array"):
        as_array(masked)
    assert as_array(open_one).ravel().tolist() == [1.0, 2.0]
    assert type(as_array(open_one)) is np.ndarray
    with pytest.raises(NotAnArray, match="masked array"):
        as_array(Converting(np.ma.array([1.0], mask=[True])))


def test_whatever_an_object_raises_becomes_one_line():
    with pytest.raises(NotAnArray) as caught:
        as_array(Converting(ZeroDivisionError("two\n lines")))
    assert (
        str(caught.value)
        == "expected numbers, got a Converting that cannot be made an array (ZeroDivisionError: two lines)"
    )


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((), "it"),
        ((3,), "entry 3"),
        ((3, 1), "row 13, column 1"),
        ((2, 3, 1), "set 2, row 13, column 1"),
        ((1, 2, 3, 4), "entry (1, 2, 3, 4)"),
    ],
)
def test_places_are_words_and_rows_are_counted_from_the_first(index, words):
    assert place(index, first_row=10) == words


def test_memory_is_unchanging_only_if_nobody_can_write_to_it(tmp_path):
    own = np.ones(3)
    assert not unchanging(own)
    view = own[1:]
    view.flags.writeable = False
    assert not unchanging(view)  # its owner can still be written to
    own.flags.writeable = False
    assert unchanging(own) and unchanging(own[1:])
    assert unchanging(np.frombuffer(bytes(16)))
    np.save(tmp_path / "x.npy", own)
    assert not unchanging(np.load(tmp_path / "x.npy", mmap_mode="r"))
