"""General programs with bounds, fixed arms and awkward scales: instances that once gave a wrong or poor answer."""

import numpy as np
import pytest

import allocopt as ao
from allocopt import AllocationProgram

INF = np.inf


def proven(program, value, tol=1e-7, **how):
    s = ao.solve(program, **how)
    assert s.status is ao.Status.CERTIFIED
    e = s.verify()
    assert not e.notes
    assert s.lower <= e.upper
    assert s.upper >= e.lower
    assert e.lower * (1 - tol) - 1e-20 <= value <= e.upper * (1 + tol) + 1e-20
    assert e.upper - e.lower <= tol * value + 1e-20
    return s


@pytest.mark.parametrize("epsilon", [1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("how", ["huge cost", "never playable", "undemanding target"])
def test_an_irrelevant_row_does_not_hide_cancellation_in_the_others(epsilon, how):
    """Equal costs and radii in a quotient of rank 2: the value is 2, whatever is added that does not matter."""
    x = np.array([1, 0.3, 0.7])
    rows = np.array([x, 0.9 * x + [0, 1, epsilon], -0.4 * x + [0, -0.7, 1.3 * epsilon], 0.77 * x + [0, 0.2, -epsilon]])
    more = np.vstack([rows, [0, 0, 1.0]])
    program = {
        "huge cost": lambda: AllocationProgram(more, [0, 1, 1, 1, 1e25], rows[1:], [1] * 3),
        "never playable": lambda: AllocationProgram(more, [0, 1, 1, 1, 1], rows[1:], [1] * 3, None, [INF] * 4 + [0]),
        "undemanding target": lambda: AllocationProgram(rows, [0, 1, 1, 1], more[1:], [1, 1, 1, 1e30]),
    }[how]()
    proven(program, 2.0)


def test_duplicated_arms_with_different_bounds_are_proven():
    proven(AllocationProgram([[1, 0], [1, 0], [0, 1]], [1, 1, 1], np.eye(2), [1, 1], None, [0.3, INF, INF]), 2.0)


def test_unequal_costs_with_upper_bounds_are_proven_tightly():
    program = AllocationProgram([[1, 0], [0, 1], [1, 1]], [1, 1000, 0.001], np.eye(2), [1, 1], None, [5, 5, 0.4])
    s = ao.solve(program)
    assert s.verify().gap <= 1e-7


@pytest.mark.parametrize("method", ["interior-point", "active-set"])
@pytest.mark.parametrize("seed", range(6))
def test_many_arms_at_their_upper_bounds(seed, method):
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(150, 4))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    costs, upper = 10 ** rng.uniform(-2, 2, 150), 10 ** rng.uniform(-1, 1, 150)
    program = AllocationProgram(arms, costs, rng.normal(size=(20, 4)), [0.2] * 20, None, upper)
    s = ao.solve(program, method)
    assert s.status is ao.Status.CERTIFIED
    assert np.isclose(s.allocation, upper).sum() > 5
    assert s.verify().gap <= 1e-7


def test_what_costs_nothing_may_be_enough():
    proven(AllocationProgram(np.eye(2), [0, 1], [[1, 0]], [1], None, [10, INF]), 0.0)
    program = AllocationProgram([[1, 0], [0, 1], [1, 1]], [0, 0, 1], [[1, 0], [1, 1]], [1, 1], None, [10, 10, INF])
    proven(program, 0.0)


def test_mixed_scales_are_not_called_infeasible():
    program = AllocationProgram([[10, 10], [0.1, -0.1]], [1, 1], [[0.1, -0.1]], [1e13], None, [1e12, 1e-12])
    assert ao.solve(program).value == pytest.approx(1e-13, rel=1e-6)


def test_a_program_that_is_infeasible_by_a_hair_is_proven_to_be():
    with pytest.raises(ao.Infeasible):
        ao.solve(AllocationProgram([[1.0]], [1], [[1]], [1 - 5e-13], [1], [1]))


def test_constraints_that_hold_only_with_equality_are_reported_honestly():
    """At width 1/2 only α = u is feasible, which floating point cannot prove."""
    s = ao.solve(ao.programs.optimism(ao.LinearBandit(np.eye(3), [1, 0.3, 0.7]), 0.5))
    assert s.status is ao.Status.FAILED
    assert "barely" in s.stats["reason"]
    assert s.lower == pytest.approx(2 / 0.7 + 2 / 0.3, rel=1e-8)


def test_arms_that_may_not_be_played_do_not_spoil_the_proof():
    program = AllocationProgram(
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], [1] * 4, [[1, 1, 0]], [1], None, [INF, INF, 0, 0]
    )
    proven(program, 4.0)


def test_lower_bounds_count():
    """α_0 >= 3 is paid for and used: 1/α_0 + 1/α_1 <= 1 then needs α_1 = 3/2."""
    proven(AllocationProgram(np.eye(2), [1, 1], [[1, 1]], [1], [3, 0], None), 4.5)


@pytest.mark.parametrize("seed", range(12))
def test_arms_that_leave_a_master_leave_it_feasible_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    arms = np.sign(rng.normal(size=(160, 6)))  # many ties in everything: masters change a lot
    program = ao.programs.optimism(ao.LinearBandit(arms, rng.normal(size=6)), 1.0)
    one, other = (ao.solve(program, method=method) for method in ("active-set", "interior-point"))
    assert one.status is other.status is ao.Status.CERTIFIED
    assert one.lower <= other.upper * (1 + 1e-12)
    assert other.lower <= one.upper * (1 + 1e-12)
