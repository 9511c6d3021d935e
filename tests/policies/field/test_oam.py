"""OAM against a slow reference written from the paper's listing, with contexts and without."""

import math

import numpy as np
import pytest

import allocopt as ao
from allocopt import instances
from allocopt.model.levels import f_n, f_n_delta
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import OAM
from allocopt.policies.base import PAUSE, Setting

ONE = ao.ContextualBandit([instances.counter_example(0.2).arms], 3 * np.array([1.0, 0.0]))
THREE = ao.ContextualBandit(
    [instances.counter_example(0.2).arms, [[0.5, 0.1], [0.3, 0.9]], [[0.2, 0.2], [0.1, -0.6], [0.6, 0.1]]], [3.0, 0.5]
)


def listing(bandit, context, n, t, s, pulls, gram, vector, exploration):
    """What the paper's Algorithm 1 may play for a context: (arms, kind), or None where the two solvers may differ."""
    theta, inverse = np.linalg.solve(gram, vector), np.linalg.inv(gram)
    means = bandit.arms @ theta
    estimated = ao.ContextualBandit(bandit.contexts, theta)
    gaps, least = estimated.gaps, estimated.gaps[estimated.gaps > 0].min()
    first = bandit.pair(context, 0)
    offered = np.arange(first, first + bandit.sizes[context])
    widths = np.einsum("ij,jk,ik->i", bandit.arms, inverse, bandit.arms)
    level = f_n(n, bandit.dim)
    if (widths[offered] <= np.maximum(least, gaps[offered]) ** 2 / level).all():
        return {int(offered[means[offered].argmax()])}, "exploit"
    wanted = np.minimum(
        np.asarray(ao.solve(ao.programs.contextual(estimated)).allocation) * level / 2, level / least**2
    )[offered]
    mine = pulls[offered]
    if (np.abs(mine - wanted) < 1e-3 * wanted)[wanted > 1e-3].any():
        return None, "unclear"
    if (mine >= wanted - 1e-2).all():
        root = (
            math.sqrt(f_n_delta(n, 1 / (s + 1) ** 2, bandit.dim))
            if s
            else math.sqrt(bandit.dim * math.log(bandit.dim * math.log(n)))
        )
        return {int(offered[(means + root * np.sqrt(widths))[offered].argmax()])}, "wasted"
    epsilon = 0.01 if exploration == "little" else 1.0 if t < 16 else 1 / math.log(math.log(t))
    if mine.min() <= epsilon * s:
        return {int(offered[mine.argmin()])}, "estimated"
    ratio = np.where(wanted > 1e-2, mine / np.maximum(wanted, 1e-12), np.inf)
    return set(offered[ratio <= ratio.min() * (1 + 1e-3)].tolist()), "explored"


@pytest.mark.parametrize("exploration", ["little", "theorem"])
@pytest.mark.parametrize("bandit", [ONE, THREE], ids=["one context", "three contexts"])
def test_with_a_solve_in_every_round_it_plays_the_listing(bandit, exploration):
    n, policy = 1000, OAM(exploration, resolve=0)
    sizes = bandit.sizes if bandit.n_contexts > 1 else ()
    setting = Setting(bandit.arms, n, sizes=sizes)
    state, rng = policy.initial_state(setting), np.random.default_rng(3)
    spanner = ao.barycentric_spanner(bandit.arms, 1.0).indices
    gram, vector = np.zeros((2, 2)), np.zeros(2)
    if sizes:
        gram += bandit.arms[spanner].T @ bandit.arms[spanner]
    pulls, kinds = np.zeros(bandit.n_arms, int), set()
    for t in range(1, 400):
        context = int(rng.integers(bandit.n_contexts))
        state.offered[:] = bandit.pair(context, 0), bandit.pair(context, 0) + bandit.sizes[context]
        s = int(state.explored[0])
        arm = policy.choose(state, t, rng)
        if arm == PAUSE:
            policy.plan(state, t, setting)
            arm = policy.choose(state, t, rng)
        if (sizes and t > 1) or t > len(spanner):
            may, kind = listing(bandit, context, n, t, s, pulls, gram, vector, exploration)
            kinds.add(kind)
            if may is not None:
                assert arm in may, (t, kind)
                assert int(state.explored[0]) == s + (kind != "exploit")
        reward = bandit.means[arm] + rng.standard_normal()
        gram += np.outer(bandit.arms[arm], bandit.arms[arm])
        vector += reward * bandit.arms[arm]
        pulls[arm] += 1
        policy.update(state, t, arm, reward)
    assert "estimated" in kinds
    assert exploration == "theorem" or {"explored", "exploit"} <= kinds


def test_contexts_that_teach_for_free_make_it_greedy():
    """Where the best arms of the contexts span everything, the regret stops growing."""
    free = ao.ContextualBandit([[[1, 0], [0.4, 0.3]], [[0, 1], [0.2, 0.5]]], [1.0, 1.0])
    assert ao.solve(ao.programs.contextual(free)).value == 0.0
    r = simulate(OAM(), free, 50_000, 20, rng=0)
    assert r.mean[-1] - r.mean[r.times == 19_953][0] < 0.02 * r.mean[-1]


def test_without_contexts_it_is_the_policy_of_one_context():
    bandit = instances.counter_example(0.2)
    r = simulate(OAM(), bandit, 2000, 3, rng=0)
    assert (r.pulls.sum(axis=1) == 2000).all()
    assert r.pulls[:, 0].mean() > 1000


def test_the_program_is_solved_again_once_the_determinant_has_grown_by_a_tenth():
    bandit = instances.counter_example(0.2)
    player, rng = OAM().start(bandit.arms, 3000, rng=0), np.random.default_rng(5)
    gram, at_last, solved = np.zeros((2, 2)), 0.0, 0
    for _ in range(1500):
        explored, solves = int(player.state.explored[0]), int(player.state.solves[0])
        arm = player.choose()
        did = int(player.state.solves[0]) - solves
        if player.state.explored[0] > explored:
            grown = np.linalg.det(gram) / at_last if at_last else np.inf
            assert did == (grown > 1.1) or abs(grown - 1.1) < 1e-9
        else:
            assert did == 0
        if did:
            at_last, solved = np.linalg.det(gram), solved + 1
        player.update(arm, bandit.means[arm] + rng.standard_normal())
        gram += np.outer(bandit.arms[arm], bandit.arms[arm])
    assert 20 < solved < 0.5 * player.state.explored[0]
