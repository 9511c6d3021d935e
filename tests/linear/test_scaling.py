"""Equilibration rounds nothing, and makes what units the rows and columns had beforehand nearly irrelevant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocopt.linear.scaling import equilibrated


@st.composite
def matrices(draw):
    """Zeros included, but no row of zeros only."""
    k, d = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.normal(size=(k, d)) * (rng.random((k, d)) < draw(st.sampled_from([0.3, 0.7, 1.0])))
    matrix[np.arange(k), rng.integers(0, d, k)] = rng.uniform(0.5, 2.0, k)
    return matrix


@st.composite
def scaled_matrices(draw):
    matrix = draw(matrices())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = rng.integers(-60, 60, (len(matrix), 1)), rng.integers(-60, 60, matrix.shape[1])
    return matrix, np.ldexp(matrix, rows + columns)


@given(scaled_matrices())
def test_every_entry_is_multiplied_by_powers_of_two_of_its_row_and_its_column(case):
    for arms in case:
        before = arms.copy()
        scaled, rows = equilibrated(arms)
        assert np.array_equal(arms, before)
        back = np.ldexp(scaled, rows[:, None])
        assert np.array_equal(back == 0, arms == 0)
        for column in range(arms.shape[1]):
            some = arms[:, column] != 0
            ratio = np.unique(back[some, column] / arms[some, column])
            assert len(ratio) <= 1
            assert not len(ratio) or abs(np.frexp(ratio[0])[0]) == 0.5


@given(scaled_matrices())
def test_the_largest_entry_of_every_row_is_between_a_half_and_one(case):
    for arms in case:
        largest = np.abs(equilibrated(arms)[0]).max(axis=1)
        assert ((largest >= 0.5) & (largest < 1.0)).all()


@given(scaled_matrices())
def test_units_of_rows_and_columns_are_undone_up_to_rounding_of_exponents(case):
    plain, scaled = (equilibrated(arms)[0] for arms in case)
    some = plain != 0
    assert (np.abs(np.log2(np.abs(scaled[some] / plain[some]))) <= 2.0).all()


def test_zero_rows_stay_zero():
    scaled, _ = equilibrated(np.array([[0.0, 0.0], [4.0, 1e-30]]))
    assert not scaled[0].any()
    assert scaled[1].all()
