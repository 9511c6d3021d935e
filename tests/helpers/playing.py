"""What tests of policies share: all policies, and a play with its history."""

import math

import numpy as np

from allocopt.policies import (
    AOIDS,
    E4,
    OAM,
    OSSB,
    SOLID,
    UCB,
    AllocationTracking,
    EndOfOptimism,
    LinTS,
    LinUCB,
    OptimalTracking,
    PhasedElimination,
)

ALL = (
    EndOfOptimism(),
    UCB(),
    LinUCB(),
    LinUCB(radius="theoretical"),
    LinTS(),
    PhasedElimination(),
    OptimalTracking(),
    AllocationTracking(),
    AOIDS(),
    OSSB(),
    E4(),
    SOLID(),
    OAM(),
)
LINEAR = (EndOfOptimism(), LinUCB(), LinTS(), PhasedElimination(), OptimalTracking(), OSSB(), E4(), OAM())


def by_name(policy):
    return policy.name


def histories(player, bandit, rounds, rng):
    """Play and yield (t, arm, reward, arms so far, rewards so far) before every update."""
    arms, rewards = [], []
    for t in range(1, rounds + 1):
        arm = player.choose()
        yield t, arm, arms, rewards
        reward = bandit.means[arm] + math.sqrt(bandit.noise_variance) * rng.standard_normal()
        player.update(arm, reward)
        arms.append(arm)
        rewards.append(reward)


def is_the_largest(index, arm):
    """Ties and rounding may go either way."""
    assert index[arm] >= index.max() - 1e-7 * max(1.0, np.abs(index).max())
