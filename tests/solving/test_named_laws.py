"""Laws of the named programs over instances that are hard to be right on."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao

TOL = 1e-6
EVEN = 1e5  # ratio of the lengths of arms up to which unit costs (not gaps, which shrink with them) leave a program solvable to TOL
SOLVED = (ao.Status.CERTIFIED, ao.Status.CONDITIONAL)


def overlap(one, other):
    lengths = np.linalg.norm(one.program.features, axis=1)
    lengths = lengths[lengths > 0]
    if lengths.max() <= EVEN * lengths.min():
        assert answered(one) and answered(other)
    assert one.lower <= other.upper and other.lower <= one.upper


@given(bandits())
def test_one_context_is_the_bandit(bandit):
    assume(len(bandit.suboptimal_arms))
    context = ao.ContextualBandit([bandit.arms], bandit.theta, noise_variance=bandit.noise_variance)
    assert np.array_equal(context.gaps, bandit.gaps)
    one, other = ao.solve(ao.programs.contextual(context)), ao.solve(ao.programs.regret(bandit))
    assert (one.lower, one.upper, one.status) == (other.lower, other.upper, other.status)


def made(maker, bandit, *more):
    try:
        return maker(bandit, *more)
    except ao.InvalidInstance:
        assume(False)


@given(bandits())
def test_the_top_one_is_the_best_arm(bandit):
    best = made(ao.programs.best_arm, bandit)
    overlap(ao.solve(made(ao.programs.top_m, bandit, 1), tol=TOL), ao.solve(best, tol=TOL))


@given(bandits())
def test_items_that_are_the_arms_make_the_best_arm(bandit):
    best = made(ao.programs.best_arm, bandit)
    same = ao.programs.transductive(bandit.arms, bandit.arms, bandit.theta, bandit.noise_variance)
    overlap(ao.solve(same, tol=TOL), ao.solve(best, tol=TOL))


@given(bandits(), st.sampled_from([0.25, 4.0]))
def test_variances_of_all_arms_times_a_number_multiply_the_value(bandit, factor):
    assume(len(bandit.suboptimal_arms))
    each = 2.0 ** (np.arange(bandit.n_arms) % 3)
    one, other = (
        ao.solve(ao.programs.regret(ao.LinearBandit(bandit.arms, bandit.theta, each * f))) for f in (1.0, factor)
    )
    assert answered(one) and answered(other)
    assert one.lower * factor <= other.upper * (1 + 1e-12) and other.lower <= one.upper * factor * (1 + 1e-12)


@given(bandits(), st.data())
def test_louder_arms_never_cost_less(bandit, data):
    assume(len(bandit.suboptimal_arms))
    which = data.draw(st.integers(0, bandit.n_arms - 1))
    each = np.ones(bandit.n_arms)
    each[which] = 4.0
    quiet = ao.solve(ao.programs.regret(bandit))
    loud = ao.solve(ao.programs.regret(ao.LinearBandit(bandit.arms, bandit.theta, each * bandit.noise_variance)))
    assert answered(quiet) and answered(loud)
    assert quiet.lower <= loud.upper


@given(bandits())
def test_a_larger_epsilon_never_costs_more(bandit):
    assume(len(np.unique(bandit.arms, axis=0)) > 1 and bandit.gap_max > 0)
    small, large = bandit.gap_max / 8, bandit.gap_max / 2
    first, second = (ao.solve(made(ao.programs.best_arm, bandit, e)) for e in (small, large))
    assume(first.status in SOLVED and second.status in SOLVED)
    assert second.lower <= first.upper


@pytest.mark.parametrize("program", [ao.programs.best_arm, lambda b: ao.programs.top_m(b, 2), ao.programs.duelling])
def test_permuted_arms_change_nothing(program):
    rng = np.random.default_rng(1)
    arms, theta = rng.normal(size=(6, 3)), rng.normal(size=3)
    order = rng.permutation(6)
    overlap(ao.solve(program(ao.LinearBandit(arms, theta))), ao.solve(program(ao.LinearBandit(arms[order], theta))))


@given(bandits())
def test_contexts_that_offer_every_arm_alone_leave_nothing_to_explore(bandit):
    """An arm that is alone in its context is optimal there, so it is free: together these arms span everything."""
    assume(len(bandit.suboptimal_arms))
    alone = [row[None] for row in bandit.arms]
    s = ao.solve(ao.programs.contextual(ao.ContextualBandit([bandit.arms, *alone], bandit.theta)))
    assert answered(s) and (s.lower, s.upper) == (0.0, 0.0)


@given(bandits())
def test_a_context_that_comes_twice_changes_nothing(bandit):
    assume(len(bandit.suboptimal_arms))
    twice = ao.ContextualBandit([bandit.arms, bandit.arms], bandit.theta, noise_variance=bandit.noise_variance)
    one, other = ao.solve(ao.programs.contextual(twice)), ao.solve(ao.programs.regret(bandit))
    assert answered(one) and answered(other)
    assert one.lower <= other.upper and other.lower <= one.upper


@given(bandits(), st.sampled_from([-0.75, 0.3]))
def test_a_threshold_from_below_is_one_from_above(bandit, share):
    tau = share * (float(np.abs(bandit.means).max()) or 1.0)
    one = made(ao.programs.threshold, bandit, tau)
    mirrored = ao.LinearBandit(bandit.arms, -bandit.theta, bandit.noise_variance)
    overlap(ao.solve(one, tol=TOL), ao.solve(made(ao.programs.threshold, mirrored, -tau), tol=TOL))


def test_the_threshold_of_rotated_arms_has_its_known_time():
    arms = np.vstack([np.eye(6), [np.cos(0.01), np.sin(0.01), 0, 0, 0, 0]])
    s = ao.solve(ao.programs.threshold(ao.LinearBandit(arms, np.eye(6)[0]), 0.9))
    assert answered(s) and s.lower <= 212.8531290 and s.upper >= 212.8531288


SMALL = st.integers(-4, 4)


@st.composite
def whole_bandits(draw):
    """Bandits of small whole numbers, and a whole vector: their sums and differences are exact."""
    d, k = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    arms = np.array(draw(st.lists(st.lists(SMALL, min_size=d, max_size=d), min_size=k, max_size=k)), dtype=float)
    theta, step = (np.array(draw(st.lists(SMALL, min_size=d, max_size=d)), dtype=float) for _ in range(2))
    assume(arms.any() and theta.any())
    return ao.LinearBandit(arms, theta), step


@given(whole_bandits())
def test_only_differences_of_duellists_and_of_items_matter(given):
    bandit, step = given
    duels = made(ao.programs.duelling, bandit)
    moved = ao.programs.duelling(ao.LinearBandit(bandit.arms + step, bandit.theta))
    overlap(ao.solve(duels, tol=TOL), ao.solve(moved, tol=TOL))
    arms = np.eye(bandit.dim)
    one, other = (ao.programs.transductive(arms, bandit.arms + s, bandit.theta) for s in (0.0 * step, step))
    overlap(ao.solve(one, tol=TOL), ao.solve(other, tol=TOL))


@given(whole_bandits(), st.sampled_from([0.5, 4.0]))
def test_duels_in_other_units_divide_the_value(given, scale):
    bandit, _ = given
    one = ao.solve(made(ao.programs.duelling, bandit), tol=TOL)
    other = ao.solve(ao.programs.duelling(ao.LinearBandit(bandit.arms, scale * bandit.theta)), tol=TOL)
    assert answered(one) and answered(other)
    assert one.lower <= other.upper * scale * (1 + 1e-12) and other.lower * scale <= one.upper * (1 + 1e-12)


@given(whole_bandits())
def test_duels_of_two_arms_cost_what_telling_them_apart_does(given):
    bandit, _ = given
    assume(bandit.gaps[0] != bandit.gaps[1])
    s = ao.solve(ao.programs.duelling(ao.LinearBandit(bandit.arms[:2], bandit.theta)), tol=TOL)
    gap = abs(float((bandit.arms[0] - bandit.arms[1]) @ bandit.theta))
    assert s.lower <= 1 / gap * (1 + 1e-12) and 1 / gap * (1 - 1e-12) <= s.upper  # 2/Δ² duels of Δ/2 each
