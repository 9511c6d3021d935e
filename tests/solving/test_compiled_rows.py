"""Sets of arms in units for compiled code: scaled by powers of two, without copies of columns, nan where out of range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt.solving.compiled_rows import in_units


@st.composite
def sets(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, k, d = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return rng.normal(size=(n, k, d)) * 10.0 ** rng.uniform(-12, 12, (n, 1, d))


@given(sets())
def test_columns_are_multiplied_by_powers_of_two_until_they_are_about_one(arms):
    before = arms.copy()
    found = in_units(arms)
    assert np.array_equal(arms, before)
    mantissa, _ = np.frexp(found / arms)
    assert (np.abs(mantissa) == 0.5).all()
    assert (np.ptp(found / arms, axis=1) == 0).all()
    top = np.abs(found).max(axis=1)
    assert ((top >= 0.5) & (top < 1.0)).all()


@given(sets(), st.integers(-30, 30), st.sampled_from([1.0, -1.0]))
def test_copies_of_a_column_become_zero_whatever_their_unit_and_sign(arms, exponent, sign):
    copied = np.concatenate([arms, sign * np.ldexp(arms[:, :, :1], exponent)], axis=2)
    found = in_units(copied)
    assert not found[:, :, -1].any()
    assert np.array_equal(found[:, :, :-1], in_units(arms))


@pytest.mark.parametrize("bad", [1e51, 1e-151, np.inf, np.nan])
def test_a_set_out_of_range_is_nan_all_over_and_the_others_are_not(bad):
    arms = np.ones((3, 2, 2)) * np.array([1.0, 0.5])
    arms[1, 0, 1] = bad
    found = in_units(arms)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()


def test_zero_columns_stay_zero():
    found = in_units(np.array([[[1.0, 0.0], [2.0, 0.0]]]))
    assert not found[:, :, 1].any()
    assert np.isfinite(found).all()
