"""Linear constraints as users pass them: what is kept, what is refused, and rows that are decided without error."""

import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import allocopt as ao
from allocopt.model.rows.constraints import LinearConstraints

B = [[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0]]
LIMITS = [1.0, 0.0, -4.0]


def program(constraints, **changes):
    given = {"features": np.eye(3), "costs": [1.0, 0.0, 0.0], "targets": np.eye(3), "radii": [1.0, 1.0, 1.0]}
    return ao.AllocationProgram(**{**given, **changes}, constraints=constraints)


@pytest.mark.parametrize(
    "kind", [list, np.array, scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array]
)
def test_dense_and_sparse_rows_are_the_same(kind):
    found = program((kind(B), LIMITS)).constraints
    assert found.places.tolist() == [0, 0, 2, 2] and found.arms.tolist() == [0, 2, 0, 1]
    assert found.values.tolist() == [1.0, -2.0, 0.5, 3.0] and found.limits.tolist() == LIMITS
    assert (found.n_rows, found.n_arms) == (3, 3) and found.constrained.tolist() == [True, True, True]
    assert not found.values.flags.writeable and not found.limits.flags.writeable
    assert repr(found) == "LinearConstraints(n_rows=3, n_arms=3, entries=4)"


def test_entries_that_sparse_matrices_list_twice_or_as_zero_are_summed_or_dropped():
    twice = scipy.sparse.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 3))
    found = program((twice, [1.0])).constraints
    assert found.arms.tolist() == [1] and found.values.tolist() == [3.0]
    assert twice.nnz == 3  # the user's own matrix is left alone


def test_arms_in_a_row_are_not_free_and_say_so():
    p = program(([[0, 1, 0]], [2.0]))
    assert p.free.tolist() == [2] and p.bounded
    assert repr(p) == "AllocationProgram(general, n_arms=3, n_targets=3, dim=3, n_constraints=1, bounded)"
    assert program(None).constraints is None
    assert pickle.loads(pickle.dumps(p)).constraints.limits.tolist() == [2.0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (7, "expected a pair"), ((B,), "expected a pair"), ((B, LIMITS, 1), "expected a pair"), ("ab", "got a str"),
        ((B, [1.0]), "B has shape"), (([[1, 2]], [1.0]), "there are 3 arms"), ((np.zeros((0, 3)), []), "constraints"),
        (([[1, 2, np.nan]], [1.0]), "finite"), (([[1, 2, 3]], [np.inf]), "finite"), (([[1, 2, "x"]], [1.0]), "constraints: B"),
        (([1, 2, 3], [1.0]), "matrix"), (([[1e60, 0, 0]], [1.0]), "magnitudes"), (([[1e-60, 0, 0]], [1.0]), "magnitudes"),
        (([[1, 0, 0]], [1e60]), "magnitudes"), (([[1, 0, 0]], [-1e-70]), "magnitudes"),
        ((scipy.sparse.csr_matrix([[1.0, np.inf, 0.0]]), [1.0]), "finite"), (([[1, 0, 0]], 3.0), "vector"),
        (LinearConstraints.checked(([[1.0]], [1.0]), 1), "expected columns for 3 arms"),
    ],
)  # fmt: skip
def test_bad_constraints_are_refused_in_one_sentence(given, words):
    with pytest.raises(ao.InvalidProgram, match=words) as caught:
        program(given)
    assert "constraints" in str(caught.value) and "\n" not in str(caught.value)


def test_programs_whose_bounds_are_rounded_take_no_constraints():
    bandit = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    p = ao.programs.optimism(bandit, 1.0)
    with pytest.raises(ao.InvalidProgram, match="constraints: expected none in a program of kind optimism"):
        dataclasses.replace(p, constraints=([[1, 0]], [1.0]))


def test_rows_are_decided_exactly():
    rows = LinearConstraints.checked(([[0.1, 0.2, 0.0]], [0.3]), 3)
    # 0.1 + 0.2 > 0.3 for these doubles, however it is rounded
    assert rows.unmet(np.array([1.0, 1.0, np.inf])).tolist() == [0]
    assert not rows.met_by(np.array([1.0, 1.0, 0.0]))
    assert rows.exact_excess(0, np.ones(3)) == Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert rows.met_by(np.array([1.0, 1.0 - 2.0**-50, 0.0]))
    equal = LinearConstraints.checked(([[1.0, 1.0, 0], [-1.0, -1.0, 0]], [1.0, -1.0]), 3)
    assert equal.met_by(np.array([0.25, 0.75, 0.0])) and not equal.met_by(np.array([0.25, 0.75 + 2.0**-53, 0.0]))
    assert equal.unmet(np.array([0.25, 0.75 - 2.0**-53, 0.0])).tolist() == [1]
    assert LinearConstraints.checked(([[0.0, 0, 0]], [0.0]), 3).met_by(np.ones(3))
    assert LinearConstraints.checked(([[0.0, 0, 0]], [-1.0]), 3).unmet(np.ones(3)).tolist() == [0]


numbers = st.integers(-8, 8).map(float) | st.floats(-4, 4).filter(lambda x: x == 0 or abs(x) > 1e-20)


@given(st.lists(numbers, min_size=3, max_size=3), numbers, st.lists(st.floats(0, 8), min_size=3, max_size=3))
def test_what_counts_as_met_is_met(row, limit, alpha):
    rows = LinearConstraints.checked(([row], [limit]), 3)
    exact = sum(Fraction(c) * Fraction(x) for c, x in zip(row, alpha, strict=True)) <= Fraction(limit)
    assert rows.met_by(np.array(alpha)) == exact
