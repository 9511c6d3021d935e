"""Norms in the inverse of an information matrix, against rationals; infinite exactly where nothing was learnt."""

from fractions import Fraction

import exactly
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from allocopt.base.errors import InvalidInstance
from allocopt.linear.information import Directions, gram_norms, squared_norms


@st.composite
def played(draw):
    """Arms of small whole numbers, how often each was played, targets."""
    k, d = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arms = rng.integers(-3, 4, (k, d)).astype(float)
    counts = rng.integers(0, 50, k) * (rng.random(k) < 0.8)
    return arms, counts.astype(float), rng.integers(-3, 4, (4, d)).astype(float)


def gram(arms, counts):
    return exactly.weighted(exactly.rational(arms), exactly.rational(counts), arms.shape[1])


def exact_norm(arms, counts, target):
    """tᵀ G⁻¹ t by elimination; G y = t is solved in the coordinates of a basis of the rows that were played."""
    if not target.any():
        return Fraction(0)
    rows = [row for row, n in zip(arms, counts, strict=True) if n and row.any()]
    basis = []
    for row in rows:
        if np.linalg.matrix_rank(np.array([*basis, row])) > len(basis):
            basis.append(row)
    if np.linalg.matrix_rank(np.array([*basis, target])) > len(basis):
        return None
    b = exactly.rational(np.array(basis))  # t = Bᵀ z, and the norm is zᵀ (B G⁺ Bᵀ) z = tᵀ y for any G y = t
    reduced = exactly.product(exactly.product(b, gram(arms, counts)), exactly.transposed(b))
    y = exactly.solved(reduced, [exactly.dot(row, exactly.rational(target)) for row in b])
    return exactly.dot(exactly.rational(target), [exactly.dot(column, y) for column in exactly.transposed(b)])


@given(played())
def test_norms_are_those_of_the_definition_and_infinite_outside_the_range(case):
    arms, counts, targets = case
    for norm, target in zip(squared_norms(arms, counts, targets), targets, strict=True):
        true = exact_norm(arms, counts, target)
        assert np.isinf(norm) if true is None else norm == pytest.approx(float(true), rel=1e-9)


@given(played())
def test_a_gram_matrix_says_the_same_as_the_arms_it_is_made_of(case):
    arms, counts, targets = case
    matrix = (arms * counts[:, None]).T @ arms
    np.testing.assert_allclose(gram_norms(matrix, targets), squared_norms(arms, counts, targets), rtol=1e-8)


@given(played(), st.integers(-40, 40), st.integers(-40, 40))
def test_norms_do_not_depend_on_units_of_the_coordinates(case, first, last):
    arms, counts, targets = case
    units = np.ldexp(1.0, np.linspace(first, last, arms.shape[1]).astype(int))
    np.testing.assert_allclose(
        squared_norms(arms * units, counts, targets * units), squared_norms(arms, counts, targets), rtol=1e-12
    )


@given(played(), st.floats(1e-6, 1e6))
def test_playing_everything_more_often_divides_the_norms(case, factor):
    arms, counts, targets = case
    np.testing.assert_allclose(
        squared_norms(arms, factor * counts, targets) * factor, squared_norms(arms, counts, targets), rtol=1e-9
    )


@given(played())
def test_norms_modulo_free_arms_are_the_limit_of_playing_those_without_end(case):
    arms, counts, targets = case
    assume(arms[0].any())
    directions = Directions.of(arms, targets, np.array([0]))
    counts[0] = 1.0
    now, limit = directions.norms(counts), directions.quotient_norms(counts)
    assert (limit <= now * (1 + 1e-9) + 1e-12).all()
    counts[0] = 1e12
    often = directions.norms(counts)
    assert np.array_equal(np.isinf(often), np.isinf(limit))
    some = np.isfinite(often)
    np.testing.assert_allclose(often[some], limit[some], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.eye(3), r"expected shape \(2, 2\)"),
        ([[1.0, 0.5], [0.0, 1.0]], "expected a symmetric matrix"),
        ([[1.0, 2.0], [2.0, 1.0]], "expected a positive semidefinite matrix"),
        ([[-1.0, 0.0], [0.0, 1.0]], "expected a positive semidefinite matrix"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(matrix, words):
    with pytest.raises(InvalidInstance, match=f"^gram: {words}"):
        gram_norms(matrix, np.eye(2))
