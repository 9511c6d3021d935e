"""SOLID against a slow reference written from the paper's definitions, with the same uniform draws."""

import math

import numpy as np
import pytest
from playing import histories

import allocopt as ao
from allocopt import instances
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import SOLID


class Reference:
    """The paper's Algorithm 1 for one context, everything computed afresh in the arms' own coordinates."""

    def __init__(self, arms, n, variance, width, first_phase, scale):
        self.arms, self.variance, self.width, self.z0, self.scale = arms, variance / scale**2, width, first_phase, scale
        self.k, self.d = arms.shape
        self.slack = self.d * math.log(math.log(n))
        self.omega, self.multiplier, self.s, self.phase, self.in_phase = np.full(self.k, 1 / self.k), 0.0, 0, 0, 0

    def nearest(self, means, theta, matrix):
        """Squared distance in this matrix to, and the parameter of, the closest alternative."""
        best = int(means.argmax())
        found = (math.inf, theta)
        for z in range(self.k):
            step = self.arms[z] - self.arms[best]
            image = np.linalg.solve(matrix, step)
            if z != best and step @ image > 0:
                distance = (means[best] - means[z]) ** 2 / (step @ image)
                if distance < found[0]:
                    found = distance, theta + (means[best] - means[z]) * image / (step @ image)
        return found

    def choose(self, t, history, rng):
        x = self.arms[[a for a, _ in history]]
        v = np.eye(self.d) + x.T @ x
        theta = np.linalg.solve(v, x.T @ np.array([y / self.scale for _, y in history]))
        means = self.arms @ theta
        if self.nearest(means, theta, v)[0] > self.width * self.variance * (math.log(t) + self.slack):
            return int(means.argmax()), False
        arm = int(np.searchsorted(np.cumsum(self.omega), rng.random(), side="right"))
        self.s += 1
        self.in_phase += 1
        design = self.arms.T @ (self.omega[:, None] * self.arms)
        design += 1e-9 * np.trace(design) * np.eye(self.d)
        _, other = self.nearest(means, theta, design)
        gamma = self.width * self.variance * (math.log(self.s) + self.slack)
        doubt = math.sqrt(gamma) * np.sqrt(np.einsum("ij,jk,ik->i", self.arms, np.linalg.inv(v), self.arms))
        gain = (self.arms @ (other - theta)) ** 2 / (2 * self.variance) + 2 * doubt / self.variance
        g = self.omega @ gain - 1 / (self.z0 * math.exp(self.phase))
        q = means + doubt + self.multiplier * gain
        self.omega = self.omega * np.exp(0.5 * (q - q.max()))
        self.omega /= self.omega.sum()
        self.multiplier = min(max(self.multiplier - 0.1 * g, 0.0), 10.0)
        if self.in_phase == math.floor(self.z0 * math.exp(3 * self.phase)):
            self.in_phase, self.phase, self.multiplier = 0, self.phase + 1, 0.0
            self.omega = np.full(self.k, 1 / self.k)
        return arm, True


@pytest.mark.parametrize(
    ("bandit", "scale"), [(instances.counter_example(0.2), 6), (instances.random_unit(3, 5), 12)], ids=["d=2", "d=3"]
)
@pytest.mark.parametrize("width", [1.0, 2.0])
def test_it_plays_the_listing_round_by_round(bandit, scale, width):
    bandit = ao.LinearBandit(bandit.arms, scale * bandit.theta, 2.0)  # large gaps: both kinds of rounds come soon
    policy = SOLID(width, first_phase=2.0, scale=float(scale))
    player = policy.start(bandit.arms, 10_000, 2.0, rng=5)
    reference, rng = Reference(bandit.arms, 10_000, 2.0, width, 2.0, float(scale)), np.random.default_rng(5)
    explored = 0
    for t, arm, arms, rewards in histories(player, bandit, 700, np.random.default_rng(1)):
        wanted, exploring = reference.choose(t, list(zip(arms, rewards, strict=True)), rng)
        assert arm == wanted, t
        explored += exploring
        np.testing.assert_allclose(player.state.weights, reference.omega, rtol=1e-6, atol=1e-9)
    assert player.state.explored[0] == explored == reference.s
    assert reference.phase >= 1
    assert bandit.dim == 3 or explored < 600  # both kinds of rounds were seen


def test_arms_that_cannot_be_told_apart_are_played():
    same = ao.LinearBandit([[1.0, 0], [1.0, 0]], [1, 0])
    assert (simulate(SOLID(), same, 300, 2, rng=0).pulls.sum(axis=1) == 300).all()


def test_a_wider_confidence_explores_more():
    bandit = instances.counter_example(0.2)
    one, two = (simulate(SOLID(width=w), bandit, 3000, 60, rng=0).mean[-1] for w in (1.0, 4.0))
    assert two > one
