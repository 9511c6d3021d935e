"""Targets that are differences: in the span of the arms exactly, up to rounding, or not at all; against rationals written out here."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import rational

import allocopt as ao
from allocopt.certify.reduction import reduce

THETA = [0.3, 0.5, 0.1]
DEPENDENT = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 2.0, 3.0]])  # the last column is the sum of the others
ROUNDED = np.array(
    [[0.1, 0.2, 0.1 + 0.2], [0.3, 0.7, 1.0], [0.9, 0.1, 1.0], [0.6, 0.1, 0.7]]
)  # is it only up to rounding
UNITS = (1.0, 2.0**-20, 2.0**31)


def share(row, first, second, coordinates):
    """|rest| over the terms of it, for the one column that the coordinates leave out and the rows that span."""
    a, b = coordinates
    (c,) = {0, 1, 2} - {a, b}
    size = first[a] * second[b] - first[b] * second[a]
    one = (row[a] * second[b] - row[b] * second[a]) / size
    two = (row[b] * first[a] - row[a] * first[b]) / size
    rest = row[c] - one * first[c] - two * second[c]
    return abs(rest) / (abs(row[c]) + abs(one * first[c]) + abs(two * second[c])) if rest else Fraction(0)


def differences(items, reference):
    return {
        n: [x - y for x, y in zip(item, items[reference], strict=True)]
        for n, item in enumerate(items)
        if n != reference
    }


def farthest(arms, items, reference, quotient):
    """The largest share of the differences of items to one of them, and whose it is."""
    first, second = (rational(arms[n]) for n in quotient.basis_arms)
    shares = {
        n: share(row, first, second, quotient.coordinates) for n, row in differences(rational(items), reference).items()
    }
    worst = max(shares, key=lambda n: shares[n])
    return worst, shares[worst]


def only(assumptions, count=1):
    assert len(assumptions) == count
    return assumptions[-1]


@pytest.mark.parametrize("unit", UNITS)
def test_items_outside_the_span_whose_differences_lie_in_it_are_no_assumption(unit):
    items = DEPENDENT * 0.5 + [0.0, 0.0, 0.75]
    scale = [1.0, unit, 1.0]
    found = reduce(ao.programs.transductive(DEPENDENT * scale, items * scale, np.array(THETA) / scale))
    assert found.assumptions == ()
    assert len(found.quotient.coordinates) == 2
    # and the value is that of the items moved into the span
    moved = ao.programs.transductive(DEPENDENT, DEPENDENT * 0.5, THETA)
    assert ao.solve(found.program).value == pytest.approx(ao.solve(moved).value, rel=1e-7)


@pytest.mark.parametrize("unit", UNITS)
def test_differences_of_items_up_to_rounding_are_an_assumption_of_exactly_their_size(unit):
    scale = [1.0, 1.0, unit]
    arms, items = DEPENDENT * scale, ROUNDED * scale
    program = ao.programs.transductive(arms, items, np.array(THETA) / scale)
    found = reduce(program)
    worst, size = farthest(arms, items, 1, found.quotient)
    assumption = only(found.assumptions)
    assert assumption.kind == "dependence"
    assert assumption.arms == ()
    assert assumption.size == size > 0
    assert f"the difference of item {worst} to item 1" in assumption.text
    assert ao.solve(program).status == ao.Status.CONDITIONAL


@pytest.mark.parametrize(
    "make",
    [ao.programs.best_arm, lambda bandit: ao.programs.top_m(bandit, 1), lambda bandit: ao.programs.top_m(bandit, 3)],
)
@pytest.mark.parametrize("unit", UNITS)
def test_differences_of_arms_that_are_dependent_up_to_rounding_are_an_assumption_of_exactly_their_size(make, unit):
    scale = [unit, 1.0, 1.0]
    arms = ROUNDED * scale
    program = make(ao.LinearBandit(arms, np.array(THETA) / scale))
    found = reduce(program)
    assumption = only(found.assumptions, 2)
    first, second = (rational(arms[n]) for n in found.quotient.basis_arms)
    exact = rational(arms)
    shares = {
        (j, i): share(
            [x - y for x, y in zip(exact[j], exact[i], strict=True)], first, second, found.quotient.coordinates
        )
        for j, i in program.origin.compared.tolist()
    }
    worst = max(shares, key=lambda pair: shares[pair])
    assert assumption.size == shares[worst] > 0
    assert assumption.arms == (worst[0],)
    assert (
        "the target of arm {0}" if program.target_arms is not None else "the difference of arm {0} to arm {1}"
    ).format(*worst) in assumption.text
    assert found.assumptions[0].arms
    assert found.assumptions[0].size > 0


def test_differences_of_arms_that_are_dependent_exactly_are_none():
    for make in (ao.programs.best_arm, lambda bandit: ao.programs.top_m(bandit, 2)):
        found = reduce(make(ao.LinearBandit(DEPENDENT, THETA)))
        assert found.assumptions == ()
        assert len(found.quotient.coordinates) == 2


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("item", [0, 2])
def test_an_item_whose_difference_cannot_be_estimated_is_named(column, item):
    items = np.array([[0.5, 0.0, 0.5], [8.0, 8.0, 16.0], [0.0, 1.0, 1.0]])
    items[item, column] -= 0.125
    with pytest.raises(ao.Infeasible, match=rf"the difference of item {item} to item 1 is not in the span"):
        reduce(ao.programs.transductive(DEPENDENT, items, THETA))


@pytest.mark.parametrize("place", [0, 1])
def test_the_item_farthest_from_a_span_of_one_dimension_is_named(place):
    items = np.array([[1.0, 0.0, 0.0], [5.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    items[2, 1 + place] = 2.0**-40
    with pytest.raises(ao.Infeasible, match="the difference of item 2 to item 1 is not in the span"):
        reduce(ao.programs.transductive([[1.0, 0.0, 0.0], [3.0, 0.0, 0.0]], items, [1.0, 0.0, 0.0]))


def test_it_is_not_decided_what_lies_outside_a_span_that_is_known_up_to_rounding_only():
    items = DEPENDENT * 0.5
    items[0, 2] -= 0.125
    with pytest.raises(
        ao.SolverFailed, match=r"the difference of item 0 to item 2 is outside the span.*cannot be decided"
    ):
        reduce(ao.programs.transductive(ROUNDED, items, THETA))
    # but it is where no arm comes near that direction
    lifted = np.concatenate([ROUNDED, np.zeros((4, 1))], axis=1)
    items = np.concatenate([items, [[0.0], [1.0], [0.0]]], axis=1)
    items[0, 2] += 0.125
    with pytest.raises(ao.Infeasible, match="the difference of item 1 to item 2 is not in the span"):
        reduce(ao.programs.transductive(lifted, items, [*THETA, 0.0]))


def test_duels_span_what_the_differences_of_arms_do():
    found = reduce(ao.programs.duelling(ao.LinearBandit(DEPENDENT + np.array([0.0, 0.0, 0.75]), THETA)))
    assert found.assumptions == ()
    assert len(found.quotient.coordinates) == len(found.quotient.basis_arms) == 2
    # two duels that are not parallel
    duels = np.array([[0, 1], [0, 2], [1, 2]])
    chosen = [DEPENDENT[i] - DEPENDENT[j] for i, j in duels[list(found.quotient.basis_arms)]]
    assert np.linalg.matrix_rank(np.array(chosen)) == 2
    with pytest.raises(ao.SolverFailed, match="the differences of arms are dependent up to rounding only"):
        reduce(ao.programs.duelling(ao.LinearBandit(ROUNDED, THETA)))
