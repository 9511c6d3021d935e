"""What tests of simulations share: a bandit, a user's own policy, and when two results are the same."""

import numpy as np

from allocopt import instances

BANDIT = instances.counter_example(0.2)


class ExploreThenCommit:
    """A user's policy, as docs/policies.md has it."""

    def __init__(self, rounds=10):
        self.rounds = rounds

    def start(self, arms, horizon, noise_variance, rng):
        return ExploreThenCommit.Player(len(arms), self.rounds)

    class Player:
        def __init__(self, n_arms, rounds):
            self.sums, self.pulls, self.rounds = np.zeros(n_arms), np.zeros(n_arms), rounds

        def choose(self):
            fewest = int(np.argmin(self.pulls))
            return fewest if self.pulls[fewest] < self.rounds else int(np.argmax(self.sums / self.pulls))

        def update(self, arm, reward):
            self.sums[arm] += reward
            self.pulls[arm] += 1


def same(one, two):
    np.testing.assert_array_equal(one.times, two.times)
    np.testing.assert_array_equal(one.regret, two.regret)
    np.testing.assert_array_equal(one.pulls, two.pulls)
    assert one.phases == two.phases
    assert one.seed == two.seed
    assert one.policy == two.policy
    assert one.notes == two.notes


def snapshot(folder):
    """Names, contents and times of all files but the lock."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".allocopt-lock"]
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in files}
