"""The lower bound of an optimal design: closed forms, and that any number of steps gives a bound that holds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import allocopt as ao
from allocopt.actions.design_bound import design_bound, matrix_power


@st.composite
def semidefinite(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 5))
    rows = rng.normal(size=(draw(st.integers(1, d + 2)), d))
    return rows.T @ rows


@given(semidefinite())
def test_powers_of_a_matrix_multiply(matrix):
    half = matrix_power(matrix, 0.5)
    np.testing.assert_allclose(half @ half, matrix, atol=1e-9 * np.abs(matrix).max())
    back = matrix_power(matrix, -1.0)
    np.testing.assert_allclose(matrix @ back @ matrix, matrix, atol=1e-6 * np.abs(matrix).max())


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=5), st.integers(0, 60))
def test_orthogonal_targets_have_the_sum_of_squares_as_their_bound(lengths, steps):
    """S = I and b_j = l_j e_j: max over λ of (Σ √λ_j l_j)² is Σ l_j², at λ ∝ l²."""
    value, H = design_bound(np.eye(len(lengths)), np.diag(lengths), steps)
    best = float(np.square(lengths).sum())
    assert value <= best * (1 + 1e-12)
    assert np.trace(H) == pytest.approx(value, rel=1e-9)
    if steps >= 1:  # one multiplicative step from equal weights moves towards λ ∝ l²
        assert value >= design_bound(np.eye(len(lengths)), np.diag(lengths), 0)[0] * (1 - 1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(0, 40))
def test_any_number_of_steps_bounds_the_constant_from_below(seed, d, steps):
    """Features u = e_i with costs Δ_i: S = diag(Δ) is the largest with uᵀSu <= Δ, and c is the program's value."""
    rng = np.random.default_rng(seed)
    costs, targets = rng.uniform(0.1, 2.0, d), rng.normal(size=(d + 3, d))
    s = ao.solve(ao.AllocationProgram(np.eye(d), costs, targets, np.ones(len(targets))), "active-set")
    assert s.status is ao.Status.CERTIFIED
    value, H = design_bound(np.diag(costs), targets, steps)
    assert value <= s.upper * (1 + 1e-9)
    assert float(np.trace(np.diag(costs) @ H)) == pytest.approx(value, rel=1e-7)


def test_enough_steps_reach_the_constant():
    rng = np.random.default_rng(0)
    costs, targets = rng.uniform(0.1, 2.0, 3), rng.normal(size=(6, 3))
    s = ao.solve(ao.AllocationProgram(np.eye(3), costs, targets, np.ones(6)))
    found = [design_bound(np.diag(costs), targets, steps)[0] for steps in (0, 10, 100, 1000)]
    assert all(more >= fewer * (1 - 1e-12) for fewer, more in pairwise(found))  # up to rounding
    # H need not be diagonal there: the bound is that of all H with tr(SH), so it may stay below
    assert found[-1] <= s.upper * (1 + 1e-9)
