"""Large sets of arms are looked at block by block; what comes out is what arms in memory give.

Most tests force small sets into blocks of seven rows, with pools of a few arms, so that there are many blocks and many passes.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from blocks import (
    agree,
    check_consistency,
    check_feasible,
    in_blocks,
    never_in_blocks,
    regret,
    same_interval,
    streamed_bandit,
    unit_arms,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import NASTY, answered, bandits

import allocopt as ao
from allocopt.base.errors import MethodUnavailable
from allocopt.model.arms import listed

EASY = (
    "plain", "integers", "duplicates", "collinear", "as many arms as dimensions", "zero is optimal", "exact ties",
)  # fmt: skip


@settings(max_examples=80)
@given(bandits(max_arms=150))
def test_blocks_give_what_the_whole_array_gives(bandit):
    dense = regret(bandit, method="active-set")
    with in_blocks():
        blocks = streamed_bandit(np.array(bandit.arms), bandit.theta)
        assert np.array_equal(blocks.optimal_arms, bandit.optimal_arms)
        np.testing.assert_allclose(blocks.gaps, bandit.gaps, rtol=1e-13, atol=0)
        np.testing.assert_allclose(blocks.means, bandit.means, rtol=0, atol=1e-12 * np.abs(bandit.means).max())
        assert blocks.rank == bandit.rank
        s = regret(blocks)
    assert agree(s, dense)
    assert s.status is dense.status
    if s.value > 0:
        check_consistency(s)


@settings(max_examples=50)
@given(bandits(kinds=EASY, max_arms=60))
def test_designs_over_blocks_have_the_rank_as_their_value(bandit):
    with in_blocks():
        s = ao.solve(ao.programs.g_optimal(np.array(bandit.arms)))
    assert s.program._blocks is not None
    assert agree(s, ao.solve(ao.programs.g_optimal(bandit.arms)))
    assert answered(s)
    assert s.value == pytest.approx(bandit.rank, rel=1e-7)


@settings(max_examples=25)
@given(bandits(kinds=tuple(kind for kind in NASTY if kind not in EASY), max_arms=60))
def test_designs_over_blocks_that_are_hard_for_doubles_have_bounds_that_hold(bandit):
    """Blocks have no ball arithmetic to fall back on: the gap may stay open, but not around another number."""
    with in_blocks():
        s = ao.solve(ao.programs.g_optimal(np.array(bandit.arms)))
    assert s.lower <= bandit.rank * (1 + 1e-12) and bandit.rank <= s.upper * (1 + 1e-12)
    assert answered(s) or s.status is ao.Status.INACCURATE


@settings(max_examples=50)
@given(bandits(max_arms=60), st.floats(0.0, 0.9), st.integers(0, 2**32 - 1))
def test_pulls_for_any_gaps_are_those_of_arms_in_memory(bandit, zeros, seed):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(0.1, 2.0, bandit.n_arms)
    gaps[: int(zeros * bandit.n_arms)] = 0.0
    dense = ao.optimal_pulls(bandit.arms, gaps, 1000)
    with in_blocks():
        s = ao.optimal_pulls(np.array(bandit.arms), gaps, 1000)
    assert agree(s, dense)
    # blocks have no ball arithmetic to fall back on
    assert s.status is dense.status or (s.status is ao.Status.INACCURATE and s.stats["rounding"] > 1e-9)
    assert np.array_equal(s.optimal_arms, np.flatnonzero(gaps == 0))


@pytest.mark.parametrize("count", [6, 7, 8, 13, 14, 15, 21])
def test_any_number_of_rows_fills_the_blocks(count):
    arms, theta = unit_arms(3, count)
    dense = ao.regret_constant(arms, theta)
    with in_blocks():
        assert agree(ao.regret_constant(arms, theta), dense)
    with in_blocks(rows=1):
        assert agree(ao.regret_constant(arms, theta), dense)
    with in_blocks(rows=1000):
        assert agree(ao.regret_constant(arms, theta), dense)


def test_noise_and_labels_come_along():
    arms, theta = unit_arms(3, 40)
    labels = [f"<script>[red]{i}" for i in range(40)]
    with in_blocks():
        quiet = regret(streamed_bandit(arms, theta))
        loud = regret(streamed_bandit(arms, theta, 2.5, labels=labels))
    assert loud.value == pytest.approx(2.5 * quiet.value, rel=1e-7)
    assert loud.labels == tuple(labels)


def test_how_many_threads_look_at_the_blocks_does_not_matter(monkeypatch):
    arms, theta = unit_arms(4, 300)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(listed, "available_cores", lambda: cores)
        with in_blocks():
            found.append(ao.regret_constant(arms, theta))
    assert same_interval(found[0], found[1]) and same_interval(found[0], found[2])


def test_solves_in_several_threads_do_not_disturb_each_other():
    sets = [unit_arms(4, 300, seed) for seed in range(6)]
    sets = [(arms.astype(np.float32), theta) for arms, theta in sets]
    with in_blocks():
        alone = [ao.regret_constant(*each) for each in sets]
        with ThreadPoolExecutor(6) as pool:
            together = list(pool.map(lambda each: ao.regret_constant(*each), sets))
    assert all(same_interval(one, other) for one, other in zip(alone, together, strict=True))


def test_a_pass_makes_no_copy_of_the_arms():
    """What is allocated on the way to a certificate is a small part of the arms."""
    import tracemalloc

    arms, theta = unit_arms(20, 500_000)
    ao.regret_constant(arms[:105_000], theta, tol=1e-6)  # imports and BLAS buffers are not what is measured
    tracemalloc.start()
    try:
        ao.regret_constant(arms, theta, tol=1e-6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * arms.nbytes


def test_bounds_take_a_small_part_of_a_hundred_thousand_arms_and_masters_stay_small():
    """16 MB of arms; masters within upper bounds hold arms that bring constraints down, not hundreds of one direction."""
    import tracemalloc

    arms, theta = unit_arms(20, 100_000)
    arms.flags.writeable = False
    bandit = ao.LinearBandit(arms, theta)
    pulls = np.random.default_rng(1).integers(0, 3, len(arms)).astype(float)
    makes = (
        lambda: ao.programs.optimism(bandit, 1.0),
        lambda: ao.programs.optimism(bandit, 0.55),
        lambda: ao.programs.remaining(bandit, pulls, 10**6),
    )
    for make in makes:
        ao.solve(make(), tol=1e-6)  # imports and BLAS buffers are not what is measured
        tracemalloc.start()
        try:
            solution = ao.solve(make(), tol=1e-6)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert solution.gap <= 1e-6 and solution.stats["passes"] <= 6
        assert peak < 0.25 * arms.nbytes


def test_a_hundred_thousand_exact_ties():
    """Copies of the best arm change nothing, however many there are."""
    arms, theta = unit_arms(10, 110_000)
    best = int(np.argmax(arms @ theta))
    tied = np.concatenate([np.repeat(arms[[best]], 100_000, axis=0), arms])
    bandit = streamed_bandit(tied, theta)
    assert len(bandit.optimal_arms) == 100_001
    s = regret(bandit, tol=1e-6)
    with never_in_blocks():
        assert agree(s, ao.regret_constant(arms, theta, tol=1e-6))
    assert np.isinf(s.allocation).sum() == 100_001
    assert s.status is ao.Status.CERTIFIED


def test_a_face_of_optimal_arms_leaves_nothing_to_explore():
    arms, theta = unit_arms(10, 210_000)[0], np.eye(10)[0]
    arms[:, 0] = np.minimum(arms[:, 0], 0.2)  # thousands of different arms tie: they span everything
    s = ao.regret_constant(arms, theta)
    assert len(s.optimal_arms) > 10_000
    assert s.value == 0.0 and s.status is ao.Status.CERTIFIED
    assert not len(s.support) and not len(s.binding)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_rank_deficient_sets_are_solved_in_their_span(rank):
    rng = np.random.default_rng(rank)
    low = rng.normal(size=(45_000, rank))
    arms, theta = low @ rng.normal(size=(rank, 10)), rng.normal(size=10)
    bandit = streamed_bandit(arms, theta)
    assert bandit.rank == rank
    s = regret(bandit, tol=1e-6)
    assert s.status is ao.Status.CONDITIONAL  # products are rounded: the arms span all dimensions in exact arithmetic
    assert all(a.at_rounding_level for a in s.assumptions)
    assert len(s.coordinates) == rank - 1
    if rank > 1:  # the same means in coordinates of the span
        inner = np.linalg.lstsq(low[:100], arms[:100] @ theta, rcond=None)[0]
        with never_in_blocks():
            assert agree(s, ao.regret_constant(low, inner, tol=1e-6), slack=1e-9)


def test_a_direction_that_only_one_arm_has_is_not_missed():
    """The sample that the rank is guessed from does not see it."""
    arms, theta = unit_arms(10, 210_000)
    arms[:, 9] = 0.0
    arms[123_457, 9] = 0.5
    bandit = streamed_bandit(arms, theta)
    assert bandit.rank == 10
    s = regret(bandit, tol=1e-6)
    assert s.status is ao.Status.CERTIFIED
    assert 123_457 in s.support


def test_lengths_from_a_millionth_to_a_million():
    arms, theta = unit_arms(6, 2_000)
    arms *= 10.0 ** np.random.default_rng(1).uniform(-6, 6, (2_000, 1))
    dense = ao.regret_constant(arms, theta)
    with in_blocks(rows=64):
        s = ao.regret_constant(arms, theta)
    assert s.status is ao.Status.CERTIFIED
    assert agree(s, dense)


@pytest.mark.parametrize("width", [1e-3, 1e-7])
def test_all_arms_within_a_hair_of_the_best(width):
    arms, theta = unit_arms(5, 2_000)
    arms = arms[0] + width * arms
    with in_blocks(rows=64):
        s = ao.regret_constant(arms, theta)
    assert s.status is ao.Status.CERTIFIED
    assert agree(s, ao.regret_constant(arms, theta))


def test_zero_can_be_the_best_arm():
    arms, theta = unit_arms(5, 2_000)
    arms = np.where((arms @ theta > 0)[:, None], -arms, arms)
    arms[1_234] = 0.0
    with in_blocks(rows=64):
        s = ao.regret_constant(arms, theta)
    assert s.optimal_arms.tolist() == [1_234]
    assert agree(s, ao.regret_constant(arms, theta))


def test_the_allocation_meets_every_constraint():
    check_feasible(ao.regret_constant(*unit_arms(10, 210_000), tol=1e-6))


@pytest.mark.parametrize("method", ["frank-wolfe", "interior-point", "conic", "closed-form"])
def test_other_methods_take_large_sets_in_memory_or_say_why_not(method):
    arms, theta = unit_arms(4, 120)
    with in_blocks():
        program = ao.programs.regret(streamed_bandit(arms, theta))
        if method == "closed-form":
            with pytest.raises(MethodUnavailable, match="these can solve it: interior-point"):
                ao.solve(program, method)
            return
        s = ao.solve(program, method, tol=1e-2)
    assert s.method == method
    assert s.status is ao.Status.CERTIFIED
    assert agree(s, ao.regret_constant(arms, theta))


def test_programs_with_bounds_take_large_sets_in_memory():
    arms, theta = unit_arms(4, 120)
    dense = ao.LinearBandit(arms, theta)
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        for make in (
            ao.programs.best_arm,
            lambda b: ao.programs.optimism(b, 1.0),
            lambda b: ao.programs.remaining(b, np.ones(120), 1000),
        ):
            assert agree(ao.solve(make(bandit)), ao.solve(make(dense)))
