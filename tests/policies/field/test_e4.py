"""E4 against a slow reference written from the paper's listing and its authors' parameters, in the arms' own coordinates."""

import math

import numpy as np
import pytest
from playing import histories

import allocopt as ao
from allocopt import instances
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import E4


class Reference:
    """One batch after the other, each a list of arms to play."""

    def __init__(self, bandit, n, exploration, gamma):
        self.arms, self.n, self.exploration, self.gamma = bandit.arms, n, exploration, gamma
        self.variance, self.alive, self.number = bandit.noise_variance, list(range(bandit.n_arms)), 0
        self.k, self.d = bandit.arms.shape

    def design(self, rate):
        arms = self.arms[self.alive]
        alpha = np.asarray(ao.solve(ao.programs.g_optimal(arms), tol=1e-6).allocation)
        rank = np.linalg.matrix_rank(arms)
        wanted = np.zeros(self.k, int)
        wanted[self.alive] = np.ceil(np.minimum(2 * alpha * rate / rank, self.n))
        return wanted

    def estimate(self, history):
        x = self.arms[[a for a, _ in history]]
        gram = x.T @ x
        theta = np.linalg.solve(gram, x.T @ [y for _, y in history])
        return theta, np.linalg.inv(gram)

    def rate(self, number):
        log_n = math.log(self.n)
        return log_n ** (1 + self.gamma) if number == 3 else self.n ** (1 - 2.0 ** -(number - 3))

    def next_batch(self, history):
        log_n, loglog = math.log(self.n), math.log(math.log(self.n))
        theory = self.exploration == "theorem"
        first = math.sqrt(log_n if theory else self.n)
        if self.number == 2:
            theta, inverse = self.estimate(history)
            means = self.arms @ theta
            best = int(means.argmax())
            others = [i for i in range(self.k) if i != best]
            steps = self.arms[others] - self.arms[best]
            z = (means[best] - means[others]) ** 2 / (
                2 * self.variance * np.einsum("ij,jk,ik->i", steps, inverse, steps)
            )
            if z.min() > (1.0 if theory else 0.5) * math.log(len(history) ** (self.d / 2) * self.n):
                self.alive = [best]
        elif self.number > 2:
            means = self.arms @ self.estimate(history)[0]
            width = math.sqrt(self.variance * self.d * math.log(self.k * self.n**2) / self.rate(self.number))
            top = means[self.alive].max()
            self.alive = [i for i in self.alive if means[i] > top - 2 * width]
        self.number += 1
        if len(self.alive) == 1:
            return np.eye(self.k, dtype=int)[self.alive[0]] * self.n
        if self.number == 1:
            return self.design(first)
        if self.number > 2:
            return self.design(self.rate(self.number))
        theta, _ = self.estimate(history)
        w = np.asarray(ao.regret_constant(self.arms, theta, self.variance).allocation)
        factor = (1 + 1 / loglog) * (1 + self.d * loglog / log_n) * log_n
        cap = min(log_n ** (1 + self.gamma), self.n if theory else self.n / (2 * self.k))
        wanted = np.ceil(np.minimum(w * factor, cap)).astype(int)
        return wanted + (self.design(first) if theory else 0)


@pytest.mark.parametrize(
    ("exploration", "gamma"), [("experiments", 10.0), ("experiments", 0.3), ("theorem", 0.3), ("theorem", 1.0)]
)
@pytest.mark.parametrize("bandit", [instances.counter_example(0.2), instances.random_unit(3, 6)], ids=["d=2", "d=3"])
@pytest.mark.parametrize("scale", [1, 4])
def test_it_plays_the_batches_of_the_listing(bandit, scale, exploration, gamma):
    bandit = ao.LinearBandit(bandit.arms, scale * bandit.theta, 0.5)
    n = 6000
    reference = Reference(bandit, n, exploration, gamma)
    player = E4(exploration, gamma).start(bandit.arms, n, 0.5, rng=0)
    queue, seen = [], 0
    for _, arm, arms, rewards in histories(player, bandit, n, np.random.default_rng(2)):
        while not queue:
            wanted = reference.next_batch(list(zip(arms, rewards, strict=True)))
            seen += 1
            own = player.state.batch.due
            np.testing.assert_allclose(own, np.minimum(wanted, n), atol=2, rtol=2e-4)  # two solvers, whole pulls
            queue = np.repeat(np.arange(bandit.n_arms), own).tolist()
        assert arm == queue.pop(0)
    assert seen == player.state.number[0]
    assert seen >= 3


def test_a_third_batch_that_cannot_end_is_stated():
    bandit = instances.counter_example(0.2)
    assert "no arm is ever dropped" in simulate(E4(), bandit, 1000, 1, rng=0).notes[0]
    assert simulate(E4(gamma=0.5), bandit, 1000, 1, rng=0).notes == ()


def test_block_by_block_it_has_the_same_law():
    bandit = instances.counter_example(0.2)
    one, two = (simulate("E4", bandit, 10_000, 300, rng=s, blockwise=b) for s, b in ((0, False), (1, True)))
    assert abs(one.mean[-1] - two.mean[-1]) < 4 * math.hypot(one.standard_error[-1], two.standard_error[-1])


def test_the_published_figure_is_that_of_a_program_solved_to_a_hundredth():
    """The authors' code had 156 ± 2 at ε = .01, where an exact w of e2 is 8 and theirs 2.4: the difference is its regret."""
    n, bandit = 10_000, instances.counter_example(0.01)
    r = simulate(E4(), bandit, n, 60, rng=0)
    factor = (1 + 1 / math.log(math.log(n))) * (1 + 2 * math.log(math.log(n)) / math.log(n)) * math.log(n)
    assert abs(np.median(r.final_regret) - (100 + 8 * factor)) < 60
    assert abs(156 - (100 + 2.44 * factor)) < 15
