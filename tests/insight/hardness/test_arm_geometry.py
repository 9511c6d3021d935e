"""Gaps and directions in numbers: closed forms, and units of coordinates that change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.hardness.arm_geometry import NEAR_TIE, geometry
from allocopt.insight.hardness.optimum import optimum


def geometry_of(arms, theta):
    at = optimum(ao.LinearBandit(arms, theta), 1e-8)
    assert answered(at.solution)
    return geometry(at)


@given(st.integers(2, 5), st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5))
def test_orthogonal_arms_are_as_far_from_each_other_as_can_be(dim, lengths):
    g = geometry_of(np.diag(lengths[:dim]), -np.arange(1.0, dim + 1) / lengths[:dim])
    assert g.condition == pytest.approx(1.0, rel=1e-9)
    assert g.least_sine == pytest.approx(1.0, rel=1e-9)
    assert (g.rank, g.quotient_rank, g.near_ties) == (dim, dim - 1, 0)


@given(st.floats(1e-6, 0.5))
def test_the_closest_directions_are_found_with_their_sine(angle):
    """e1, e2 and both turned by an angle: Σxxᵀ is a multiple of the identity, so angles stay what they are."""
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    arms = np.vstack([np.eye(2), turned])
    g = geometry_of(arms, [1.0, 0.0])
    assert g.least_sine == pytest.approx(np.sin(angle), rel=1e-6)
    assert g.closest_arms in {(0, 2), (1, 3)}
    assert g.condition == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=60)
@given(bandits(kinds=("plain", "integers", "near tie", "exact ties", "zero is optimal")), st.integers(0, 2**32 - 1))
def test_units_of_the_coordinates_change_nothing(bandit, seed):
    units = np.ldexp(1.0, np.random.default_rng(seed).integers(-20, 20, bandit.dim))
    one, other = geometry_of(bandit.arms, bandit.theta), geometry_of(bandit.arms * units, bandit.theta / units)
    for name in ("rank", "quotient_rank", "optimal_arms", "near_ties"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("gap_min", "gap_median", "gap_max", "condition"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6)


@given(st.floats(1e-9, 1e-1))
def test_a_near_tie_is_a_gap_below_a_thousandth_of_the_largest(share):
    g = geometry_of([[1, 0, 0], [1 - share, 1, 0], [0, 0, 1]], [1, 0, 0])
    assert g.gap_min == pytest.approx(share, rel=1e-6)
    assert g.gap_max == 1.0
    assert g.near_ties == (1 if 1 - (1 - share) < NEAR_TIE else 0)
