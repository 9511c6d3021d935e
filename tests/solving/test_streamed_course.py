"""How a solve over blocks goes and ends: screening, progress, time, interrupts, passes that run out."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
from blocks import agree, check_feasible, in_blocks, never_in_blocks, regret, streamed_bandit, unit_arms
from hypothesis import given, settings
from strategies import bandits

import allocopt as ao
from allocopt.base.errors import Interrupted, InvalidOption
from allocopt.certify.by_block.problem import StreamedProblem


def mostly_short(count, seed=0):
    """One arm in fifty is long; the others are so short that the long ones tell all about them."""
    rng = np.random.default_rng(seed)
    arms, theta = unit_arms(4, count, seed)
    short = rng.uniform(0.001, 0.2, (count, 1))
    short[::50] = 1.0
    return arms * short, theta


@contextmanager
def recorded_masks():
    """The arms alive after every pass, and whether the pass looked at all of them."""
    seen = []
    price = StreamedProblem.price

    def recording(self, *arguments, **options):
        found = price(self, *arguments, **options)
        seen.append((self.alive, found.complete))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamedProblem, "price", recording)
        yield seen


def check_screening(bandit, masks, tight):
    """Arms that were screened out carry neither cost nor multipliers at a much sharper solution."""
    share = np.where(np.isfinite(tight.allocation), tight.allocation, 0.0) * bandit.gaps / tight.value
    weight = tight.multipliers / tight.multipliers.sum()
    for mask, _ in masks:
        if mask is not None:
            gone = ~mask
            gone[bandit.optimal_arms] = False
            assert share[gone].max(initial=0.0) < 1e-5
            assert weight[gone].max(initial=0.0) < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_screening_drops_most_arms_and_never_one_that_matters(seed):
    arms, theta = mostly_short(5_000, seed)
    steps = []
    with in_blocks(rows=64, keep=2), recorded_masks() as masks:
        bandit = streamed_bandit(arms, theta)
        s = regret(bandit, callback=steps.append)
    assert s.status is ao.Status.CERTIFIED
    assert masks[-1][1], "the last word is that of all arms"
    assert any(not complete for _, complete in masks), "some pass skipped what was screened out"
    assert masks[-1][0].sum() < 0.2 * len(arms)
    assert steps[0].alive == len(arms) - 1
    assert steps[-1].alive == masks[-1][0].sum()
    with never_in_blocks():
        tight = ao.regret_constant(arms, theta, tol=1e-10)
    assert agree(s, tight)
    check_screening(bandit, masks, tight)


@settings(max_examples=60)
@given(bandits(kinds=("plain", "arm scales", "collinear", "cluster", "tiny gap", "exact ties"), max_arms=150))
def test_screening_is_sound_on_nasty_sets(bandit):
    with in_blocks(), recorded_masks() as masks:
        regret(streamed_bandit(np.array(bandit.arms), bandit.theta))
    tight = regret(bandit, tol=1e-10)
    if tight.gap <= 1e-8 and tight.value > 0:
        check_screening(bandit, masks, tight)


def test_progress_tells_certified_bounds_and_arms_alive():
    arms, theta = unit_arms(5, 400)
    steps = []
    with in_blocks():
        s = ao.regret_constant(arms, theta, callback=steps.append)
    assert len(steps) > 1
    assert [p.iteration for p in steps] == sorted({p.iteration for p in steps})
    assert steps[-1].iteration == s.stats["passes"]
    assert all(p.lower <= s.upper and p.upper >= s.lower and 0 < p.alive < 400 for p in steps)
    assert all(a.gap >= b.gap for a, b in itertools.pairwise(steps))
    # the claim has a little room, so that it holds when it is computed again
    assert s.lower <= steps[-1].lower and steps[-1].upper <= s.upper
    assert (steps[-1].lower, steps[-1].upper) == pytest.approx((s.lower, s.upper), rel=1e-10)


def test_time_that_is_over_at_once_still_gives_certified_bounds():
    arms, theta = unit_arms(10, 210_000)
    exact = ao.regret_constant(arms, theta)
    s = ao.regret_constant(arms, theta, max_seconds=1e-6)
    assert s.status is ao.Status.INACCURATE
    assert s.stats["reason"] == "max_seconds = 1e-06 passed"
    assert np.isfinite(s.upper)
    assert agree(s, exact)
    check_feasible(s)


def test_interrupting_gives_the_best_answer_so_far():
    arms, theta = unit_arms(5, 400)

    def stop(progress):
        raise KeyboardInterrupt

    with in_blocks():
        exact = ao.regret_constant(arms, theta)
        with pytest.raises(Interrupted) as caught:
            ao.regret_constant(arms, theta, callback=stop)
    s = caught.value.solution
    assert s.status is ao.Status.INACCURATE
    assert s.stats["reason"] == "interrupted"
    assert agree(s, exact)


def test_what_a_callback_raises_reaches_the_caller():
    def fail(progress):
        raise ZeroDivisionError("mine")

    with in_blocks(), pytest.raises(ZeroDivisionError, match="mine"):
        ao.regret_constant(*unit_arms(5, 400), callback=fail)


def test_one_pass_is_honest_about_what_it_reached():
    arms, theta = unit_arms(5, 400)
    with in_blocks():
        exact = ao.regret_constant(arms, theta)
        s = ao.regret_constant(arms, theta, method="active-set", max_passes=1)
        with pytest.raises(InvalidOption, match="max_passes"):
            ao.regret_constant(arms, theta, method="active-set", max_passes=0)
        with pytest.raises(InvalidOption, match="max_steps: not an option of method 'active-set'"):
            ao.regret_constant(arms, theta, method="active-set", max_steps=3)
    assert s.stats["passes"] == 1
    assert s.status is ao.Status.INACCURATE
    assert agree(s, exact)


def test_passes_that_run_out_after_screening_still_end_with_a_look_at_all_arms():
    arms, theta = mostly_short(5_000)
    with in_blocks(rows=64, keep=2):
        most = ao.regret_constant(arms, theta).stats["passes"]
        for passes in range(1, most):
            with recorded_masks() as masks:
                s = ao.regret_constant(arms, theta, method="active-set", max_passes=passes)
            assert masks[-1][1]
            assert s.stats["passes"] <= passes + 1


def test_a_tolerance_below_rounding_ends_and_says_so():
    arms, theta = unit_arms(5, 400)
    with in_blocks():
        s = ao.regret_constant(arms, theta, tol=1e-15)
    assert s.status is ao.Status.INACCURATE
    assert "rounding" in s.stats["reason"]
    assert s.gap < 1e-8


def test_copies_of_arms_are_in_the_pool_once():
    """However many copies there are, the pool holds each arm once, and the answer is that of the arms themselves."""
    arms, theta = unit_arms(5, 60, seed=3)
    copies = arms[np.random.default_rng(0).integers(0, 60, 3000)]
    copies = np.concatenate([arms, copies])
    once = ao.solve(ao.programs.regret(ao.LinearBandit(arms, theta)))
    with in_blocks(rows=None, keep=40, enter=12, sample=64):
        many = ao.solve(ao.programs.regret(streamed_bandit(copies, theta)))
        design = ao.solve(ao.programs.g_optimal(copies))
    assert many.stats["arms_in_pool"] <= 59 and design.stats["arms_in_pool"] <= 60
    assert agree(once, many) and design.lower <= 5.0 <= design.upper
    assert many.status is design.status is ao.Status.CERTIFIED


def test_copies_with_gaps_of_their_own_are_different_arms():
    arms, _ = unit_arms(3, 40, seed=4)
    gaps = np.random.default_rng(1).uniform(0.2, 1.0, 80)
    with in_blocks(rows=None, keep=40, enter=12, sample=64):
        streamed = ao.optimal_pulls(np.concatenate([arms, arms]), gaps, 1000)
    assert agree(ao.optimal_pulls(np.concatenate([arms, arms]), gaps, 1000), streamed)
    assert streamed.status is ao.Status.CERTIFIED
