"""Which arms are optimal, over blocks: the same rule for ties as in memory."""

import numpy as np
import pytest
from blocks import in_blocks, regret, streamed_bandit, unit_arms
from hypothesis import given
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.base.errors import InvalidInstance


def test_ties_are_found_across_blocks_of_different_lengths():
    """A long arm whose mean is a difference of large terms ties for the best by the same rule as in memory."""
    arms = np.random.default_rng(0).normal(size=(40, 3)) * 0.1
    arms[3] = 1.0, 0.0, 0.0
    arms[30] = 1e6, 1.0 - 1e6 - 1e-10, 0.3
    theta = [1.0, 1.0, 0.0]
    assert ao.LinearBandit(arms, theta).optimal_arms.tolist() == [3, 30]
    with in_blocks():
        assert streamed_bandit(arms, theta).optimal_arms.tolist() == [3, 30]
        assert streamed_bandit(arms[::-1], theta).optimal_arms.tolist() == [9, 36]
        assert streamed_bandit(arms, theta, tie_tolerance=0).optimal_arms.tolist() == [3]
    # the long arm is the best one: it makes ties of short arms that are no ties among themselves
    arms[30, 1] = 1.0 - 1e6 + 1e-9
    arms[4] = 1.0 - 1e-9, 0.0, 0.2
    assert ao.LinearBandit(arms, theta).optimal_arms.tolist() == [3, 4, 30]
    with in_blocks():
        assert streamed_bandit(arms, theta).optimal_arms.tolist() == [3, 4, 30]


@given(bandits(kinds=("arm scales", "exact ties", "near tie"), max_arms=60), st.sampled_from([0.0, 1e-14, 1e-9, 1e-2]))
def test_ties_follow_the_same_rule_for_every_tolerance(bandit, tolerance):
    dense = ao.LinearBandit(bandit.arms, bandit.theta, tie_tolerance=tolerance)
    with in_blocks():
        blocks = streamed_bandit(np.array(bandit.arms), bandit.theta, tie_tolerance=tolerance)
    assert np.array_equal(blocks.optimal_arms, dense.optimal_arms)


def test_optimal_arms_can_be_given():
    arms, theta = unit_arms(3, 50)
    best = int(np.argmax(arms @ theta))
    with in_blocks():
        bandit = streamed_bandit(arms, theta, optimal_arms=[best, (best + 1) % 50])
        assert regret(bandit).optimal_arms.tolist() == sorted([best, (best + 1) % 50])
        with pytest.raises(InvalidInstance, match=f"arm {best} is optimal too"):
            streamed_bandit(arms, theta, optimal_arms=[(best + 1) % 50])
