"""The hardness report of arms that are looked at block by block is like any other."""

import dataclasses
import pickle

import numpy as np
import pytest

import allocopt as ao

MANY = 450_000  # arms: more than are listed in a program of their own


@pytest.fixture(scope="module")
def in_the_plane():
    arms = np.random.default_rng(0).normal(size=(MANY, 2))
    return ao.hardness(ao.LinearBandit(arms, [1.0, 0.3]))


def test_one_dimension_has_nothing_to_explore():
    arms = np.random.default_rng(0).uniform(0.1, 1.0, size=(MANY, 1))
    h = ao.hardness(ao.LinearBandit(arms, [1.0]), tol=1e-6)
    assert h.constant == 0.0 and h.status is ao.Status.CERTIFIED and h.solution.tol == 1e-6
    assert h.informative == h.confusing == h.alternatives == ()
    assert len(h.solution.support) == 0 and np.isinf(h.evidence).all()
    assert "n_arms=450000" in repr(h) and h.price_of_optimism(1.0) == 1.0
    assert dataclasses.replace(h.solution, tol=1e-3).value == 0.0
    assert pickle.loads(pickle.dumps(h.solution)).value == 0.0


def test_two_dimensions_have_every_part_of_the_report(in_the_plane):
    h = in_the_plane
    assert h.status is ao.Status.CERTIFIED
    # Σλ = c, and c is homogeneous of degree −1 in θ
    assert sum(entry.multiplier for entry in h.confusing) == pytest.approx(h.constant, rel=1e-6)
    assert h.bandit.theta @ h.gradient == pytest.approx(-h.constant, rel=1e-6)
    for alternative in h.alternatives:
        assert alternative.evidence == pytest.approx(1.0, rel=1e-6)
    assert {row.role for row in h.leave_one_out} >= {"optimal"}


def test_two_dimensions_have_a_price_of_optimism(in_the_plane):
    assert in_the_plane.price_of_optimism(2.0) >= 1.0 - 1e-8
