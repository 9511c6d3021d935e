"""Laws of semi-bandits, side observations, arms of several rows and budgets, over instances that hypothesis chooses."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import answered

import allocopt as ao

INF = np.inf
SEEDS = st.integers(0, 2**32 - 1)


def alike(one, other, factor=1.0):
    """Two answers that prove intervals with a common number, once the first is multiplied."""
    assert answered(one) and answered(other)
    assert factor * one.lower <= other.upper * (1 + 1e-12) and other.lower <= factor * one.upper * (1 + 1e-12)


def made(maker, *given):
    try:
        return maker(*given)
    except ao.InvalidInstance:
        assume(False)


# --- semi-bandits


@st.composite
def semi_bandits(draw):
    """Sets of at most five elements, and a mean reward of each; integers are exact and tie often."""
    rng = np.random.default_rng(draw(SEEDS))
    k, d = draw(st.integers(2, 8)), draw(st.integers(2, 5))
    arms = (rng.random((k, d)) < draw(st.sampled_from([0.3, 0.6]))).astype(float)
    theta = rng.integers(-5, 9, d).astype(float) if draw(st.booleans()) else rng.normal(size=d)
    return arms, theta, draw(st.sampled_from([1.0, 0.5, 3.0]))


def semi(arms, theta, noise=1.0):
    return ao.solve(made(ao.programs.semi_bandit, arms, theta, noise))


@given(semi_bandits(), st.randoms(use_true_random=False))
def test_neither_the_order_of_sets_nor_of_elements_matters(instance, random):
    arms, theta, noise = instance
    rows, columns = (random.sample(range(n), n) for n in arms.shape)
    alike(semi(arms, theta, noise), semi(arms[rows][:, columns], theta[columns], noise))


@given(semi_bandits(), st.data())
def test_a_copy_of_a_set_changes_nothing(instance, data):
    arms, theta, noise = instance
    which = data.draw(st.integers(0, len(arms) - 1))
    alike(semi(arms, theta, noise), semi(np.vstack([arms, arms[which]]), theta, noise))


@given(semi_bandits(), st.sampled_from([0.01, 0.5, 7.0]))
def test_rewards_in_other_units_divide_the_value(instance, scale):
    arms, theta, noise = instance
    alike(semi(arms, theta, noise), semi(arms, scale * theta, noise), 1.0 / scale)


@given(semi_bandits(), st.sampled_from([0.25, 3.0]))
def test_the_noise_of_elements_multiplies_the_value(instance, factor):
    arms, theta, noise = instance
    alike(semi(arms, theta, noise), semi(arms, theta, factor * noise), factor)


@given(semi_bandits())
def test_a_best_set_of_all_elements_leaves_nothing_to_explore(instance):
    arms, theta, noise = instance
    arms = np.unique(np.vstack([arms, np.ones(len(theta))]), axis=0)
    found = semi(arms, np.abs(theta) + 1.0, noise)
    assert answered(found) and (found.lower, found.upper) == (0.0, 0.0)


@given(semi_bandits(), st.integers(0, 4))
def test_an_element_that_is_in_every_set_changes_nothing(instance, reward):
    arms, theta, noise = instance
    alike(semi(arms, theta, noise), semi(np.column_stack([arms, np.ones(len(arms))]), np.append(theta, reward), noise))


# --- side observations


@st.composite
def side_observations(draw):
    """Means, and variances such that every arm is seen: by itself, but for the best one half of the time."""
    rng = np.random.default_rng(draw(SEEDS))
    k = draw(st.integers(2, 7))
    means = rng.integers(-9, 9, k).astype(float) if draw(st.booleans()) else rng.normal(size=k)
    variances = np.where(rng.random((k, k)) < 0.4, 10.0 ** rng.uniform(-2, 2, (k, k)), INF)
    np.fill_diagonal(variances, 1.0)
    if draw(st.booleans()):
        best = int(np.argmax(means))
        variances[best, best] = INF
        variances[(best + 1) % k, best] = 2.0
    return means, variances


def side(means, variances):
    return ao.solve(made(ao.programs.side_observations, means, variances))


@given(side_observations(), st.randoms(use_true_random=False))
def test_the_order_of_arms_does_not_matter(instance, random):
    means, variances = instance
    order = random.sample(range(len(means)), len(means))
    alike(side(means, variances), side(means[order], variances[order][:, order]))


@given(side_observations(), st.sampled_from([0.01, 7.0]), st.sampled_from([0.25, 3.0]))
def test_other_units_of_means_and_variances_scale_the_value(instance, scale, factor):
    means, variances = instance
    alike(side(means, variances), side(scale * means, factor * variances), factor / scale)


@given(side_observations(), st.data())
def test_seeing_more_never_costs_more(instance, data):
    means, variances = instance
    k = len(means)
    sharper = variances.copy()
    sharper[data.draw(st.integers(0, k - 1)), data.draw(st.integers(0, k - 1))] = 0.5 * variances.min()
    one, other = side(means, variances), side(means, sharper)
    assert answered(one) and answered(other) and other.lower <= one.upper * (1 + 1e-12)


@given(side_observations())
def test_arms_that_show_themselves_only_are_a_bandit(instance):
    means, _ = instance
    own = 1.0 + np.arange(len(means)) % 3
    alone = np.where(np.eye(len(means)) > 0, own, INF)
    bandit = made(ao.LinearBandit, np.eye(len(means)), means, own)
    alike(side(means, alone), ao.solve(made(ao.programs.regret, bandit)))


# --- arms of several rows


@st.composite
def general_programs(draw):
    """Features, costs, targets that are some of the features, and radii."""
    rng = np.random.default_rng(draw(SEEDS))
    k, d = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    features = rng.normal(size=(k, d)) if draw(st.booleans()) else rng.integers(-3, 4, (k, d)).astype(float)
    assume(features[0].any())
    targets = features[: draw(st.integers(1, k))]
    assume(targets.any(axis=1).all())
    return features, rng.uniform(0.1, 2.0, k), targets, rng.uniform(0.1, 2.0, len(targets))


@given(general_programs())
def test_matrices_of_one_row_are_vectors_to_the_bit(parts):
    features, *rest = parts
    one, other = (
        ao.solve(ao.AllocationProgram(features, *rest)),
        ao.solve(ao.AllocationProgram(features[:, None], *rest)),
    )
    assert (one.lower, one.upper, one.status) == (other.lower, other.upper, other.status)
    assert np.array_equal(one.allocation, other.allocation) and np.array_equal(one.multipliers, other.multipliers)


@given(general_programs(), st.data())
def test_a_row_that_is_shown_twice_is_one_of_half_the_variance(parts, data):
    features, *rest = parts
    twice = data.draw(st.integers(0, len(features) - 1))
    shown = [np.vstack([row, row]) if i == twice else row for i, row in enumerate(features)]
    noise = np.where(np.arange(len(features)) == twice, 0.5, 1.0)
    one = ao.solve(ao.AllocationProgram(shown, *rest))
    alike(one, ao.solve(ao.AllocationProgram(features, *rest, noise_variance=noise)))


@given(general_programs(), st.data())
def test_showing_something_more_never_costs_more(parts, data):
    features, *rest = parts
    which, other = (data.draw(st.integers(0, len(features) - 1)) for _ in range(2))
    shown = [np.vstack([row, features[other]]) if i == which else row for i, row in enumerate(features)]
    plain, more = ao.solve(ao.AllocationProgram(features, *rest)), ao.solve(ao.AllocationProgram(shown, *rest))
    assert answered(plain) and answered(more) and more.lower <= plain.upper * (1 + 1e-12)


# --- budgets


@st.composite
def contexts(draw):
    """Two or three contexts of a few arms in two or three dimensions, with weights."""
    rng = np.random.default_rng(draw(SEEDS))
    d, m = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    offered = [rng.normal(size=(int(rng.integers(2, 5)), d)) for _ in range(m)]
    return ao.ContextualBandit(offered, rng.normal(size=d), rng.uniform(0.5, 2.0, m))


def within(bandit, budget):
    try:
        return ao.solve(ao.programs.contextual(bandit, budget=budget))
    except ao.Infeasible:
        return None


@given(contexts(), st.floats(1.0, 6.0))
def test_a_larger_budget_never_costs_more_and_none_costs_least(bandit, exponent):
    small, large = (within(bandit, 10.0**e) for e in (exponent, exponent + 0.5))
    without = ao.solve(ao.programs.contextual(bandit))
    assert answered(without) and not (small is not None and large is None)
    for tight, loose in ((small, large), (large, without)):
        if tight is not None and loose is not None:
            assert loose.lower <= tight.upper * (1 + 1e-12)


@given(contexts(), st.floats(2.0, 5.0), st.sampled_from([0.1, 8.0]))
def test_weights_in_other_units_change_nothing(bandit, exponent, scale):
    same = ao.ContextualBandit(bandit.contexts, bandit.theta, scale * bandit.weights)
    one, other = within(bandit, 10.0**exponent), within(same, 10.0**exponent)
    assume(one is not None and other is not None)  # limits are rounded: at the edge one may be infeasible
    assert one.lower <= other.upper * (1 + 1e-9) and other.lower <= one.upper * (1 + 1e-9)
