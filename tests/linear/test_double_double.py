"""Double-double arithmetic against rationals: what is called exact is exact, the rest is right to about 32 digits."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from allocopt.linear import double_double as precise

PAIR = Fraction(1, 2**100)  # a few units in the last place of a pair of doubles
numbers = st.floats(-1e80, 1e80).filter(lambda x: x == 0 or abs(x) > 1e-80)


@st.composite
def pairs(draw):
    """A double and a rest below half a unit in its last place."""
    high = draw(numbers)
    return high, high * 2.0**-53 * draw(st.floats(-0.99, 0.99))


def arrays(pair):
    return np.array([pair[0]]), np.array([pair[1]])


def exact(pair):
    """The number that a pair stands for; pairs of arrays have one entry here."""
    return sum((Fraction(float(np.ravel(part)[0])) for part in pair), Fraction(0))


def in_order(pair):
    """Whether the second double is below a unit in the last place of the first."""
    return abs(float(pair[1][0])) <= np.spacing(abs(float(pair[0][0])))


@given(numbers, numbers)
def test_the_sum_of_two_doubles_is_exact(a, b):
    found = precise.two_sum(np.array([a]), np.array([b]))
    assert exact(found) == Fraction(a) + Fraction(b)
    assert found[0][0] == a + b


@given(numbers, numbers)
def test_the_product_of_two_doubles_is_exact(a, b):
    found = precise.two_product(np.array([a]), np.array([b]))
    assert exact(found) == Fraction(a) * Fraction(b)
    assert found[0][0] == a * b


@given(pairs(), pairs())
def test_sums_of_pairs_are_right_to_a_pair_even_where_they_cancel(x, y):
    true = exact(x) + exact(y)
    found = precise.add(arrays(x), arrays(y))
    assert abs(exact(found) - true) <= PAIR * abs(true)
    assert in_order(found)


@given(pairs())
def test_a_pair_and_its_negative_cancel_to_nothing(x):
    assert exact(precise.add(arrays(x), precise.negative(arrays(x)))) == 0
    assert precise.difference(arrays(x), arrays(x))[0] == 0.0


@given(pairs(), pairs())
def test_products_of_pairs_are_right_to_a_pair(x, y):
    true = exact(x) * exact(y)
    found = precise.multiply(arrays(x), arrays(y))
    assert abs(exact(found) - true) <= PAIR * abs(true)
    assert in_order(found)


@given(pairs(), pairs())
def test_quotients_of_pairs_are_right_to_a_pair(x, y):
    assume(y[0] != 0)
    true = exact(x) / exact(y)
    found = precise.divide(arrays(x), arrays(y))
    assert abs(exact(found) - true) <= PAIR * abs(true)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 5))
def test_products_with_a_vector_are_right_relative_to_their_terms(seed, columns, rows):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(rows, columns)) * 10.0 ** rng.uniform(-8, 8, (rows, columns))
    vector = rng.normal(size=columns)
    if columns > 1:  # the last term takes nearly everything away again
        matrix[:, -1] = -(matrix[:, :-1] @ vector[:-1]) / vector[-1]
    high, low = precise.dot(matrix, vector)
    for i in range(rows):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(matrix[i].tolist(), vector.tolist(), strict=True)]
        error = abs(Fraction(high[i]) + Fraction(low[i]) - sum(terms))
        assert error <= columns * PAIR * sum(map(abs, terms))


def test_a_difference_that_doubles_lose_is_kept():
    rows = np.array([[1e16, 1.0, -1e16], [1e16, 1.0 - 2**-30, -1e16]])
    found = precise.dot(rows, np.ones(3))
    one, other = ((found[0][i : i + 1], found[1][i : i + 1]) for i in range(2))
    assert precise.difference(one, other)[0] == 2**-30
