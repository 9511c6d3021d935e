"""Beginning from the solution of a similar program: a shorter way to the same certified answer, for every size."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.insight.instances import random_unit
from allocopt.model.arms import listed, opening
from allocopt.model.programs import at_level
from allocopt.solving.allocator import MOST_ARMS, Allocator

seeds = st.integers(0, 2**32 - 1)


def moved(gaps, size, seed):
    return np.array(gaps) * (1 + size * np.random.default_rng(seed).uniform(-1, 1, len(gaps)))


def agree(one, other):
    return one.lower <= other.upper * (1 + 1e-12) and other.lower <= one.upper * (1 + 1e-12)


@pytest.mark.parametrize("method", ["interior-point", "active-set"])
@settings(max_examples=60)
@given(bandit=bandits(), seed=seeds, size=st.sampled_from([0.0, 1e-6, 0.01, 0.9]))
def test_any_start_leads_to_the_same_certified_interval(method, bandit, seed, size):
    first = ao.solve(ao.programs.regret(bandit), method=method)
    program = at_level(bandit.arms, moved(bandit.gaps, size, seed), 2.0)
    warm, cold = ao.solve(program, method=method, start=first), ao.solve(program, method=method)
    assert agree(warm, cold)
    assert warm.status is cold.status or answered(warm)


@pytest.mark.parametrize(("method", "dim", "arms"), [("interior-point", 4, 30), ("active-set", 6, 400)])
def test_a_good_start_saves_most_of_the_steps(method, dim, arms):
    steps = {True: 0, False: 0}
    for seed in range(8):
        bandit = random_unit(dim, arms, seed=seed)
        first = ao.solve(ao.programs.regret(bandit), method=method)
        program = at_level(bandit.arms, moved(bandit.gaps, 0.01, seed), 2.0)
        for start in (first, None):
            s = ao.solve(program, method=method, start=start)
            assert answered(s)
            assert s.stats.get("warm", False) is (start is not None)
            steps[start is not None] += s.stats["iterations"]
    assert steps[True] < 0.6 * steps[False]


@pytest.mark.parametrize("method", ["interior-point", "active-set"])
def test_the_solution_itself_as_a_start_needs_no_step(method):
    program = ao.programs.regret(random_unit(4, 30, seed=0))
    first = ao.solve(program, method=method)
    again = ao.solve(program, method=method, start=first)
    assert again.stats["iterations"] == 0
    assert answered(again)


def test_another_level_or_another_best_arm_is_no_obstacle():
    bandit = random_unit(4, 200, seed=1)
    first = ao.solve(ao.programs.regret(bandit))
    scaled = ao.solve(at_level(bandit.arms, bandit.gaps, 2e6), start=first)
    assert scaled.value == pytest.approx(1e6 * first.value, rel=1e-7)
    assert scaled.stats["iterations"] == 0
    turned = ao.LinearBandit(bandit.arms, -bandit.theta)
    assert agree(
        ao.solve(ao.programs.regret(turned), start=first), ao.solve(ao.programs.regret(turned))
    )  # the arm that was free is played now, and the other way round


def test_bounded_programs_begin_from_a_solution_too():
    bandit = random_unit(4, 30, seed=2)
    first = ao.solve(ao.programs.optimism(bandit, 2.0), method="interior-point")
    warm = ao.solve(ao.programs.optimism(bandit, 1.9), method="interior-point", start=first)
    assert agree(warm, ao.solve(ao.programs.optimism(bandit, 1.9)))
    assert answered(warm)


@pytest.mark.parametrize("method", ["interior-point", "active-set"])
@settings(max_examples=60)
@given(seed=seeds)
def test_data_that_come_in_are_no_obstacle(method, seed):
    rng = np.random.default_rng(seed)
    bandit = random_unit(3, 8, seed=seed)
    start = ao.solve(ao.programs.regret(bandit), method=method)
    pulls = np.zeros(8)
    for _ in range(4):
        pulls += rng.integers(0, 60, 8) * (rng.random(8) < 0.5)
        program = ao.programs.remaining(bandit, pulls, 1000)
        warm, cold = ao.solve(program, method=method, start=start), ao.solve(program, method=method)
        assert agree(warm, cold)
        assert warm.status is cold.status or answered(warm)
        start = warm


def test_what_cannot_be_a_start_is_refused_in_words():
    program = ao.programs.regret(random_unit(3, 8, seed=0))
    other = ao.solve(ao.programs.regret(random_unit(3, 9, seed=0)))
    own = ao.solve(program)
    general = ao.AllocationProgram(np.eye(8), np.ones(8), np.eye(8)[:5], np.ones(5))
    for start, method, message in (
        ((1, 2), "auto", "start: expected a Solution, got a tuple"),
        (other, "auto", "start: expected the solution of a program with 8 arms, got one with 9"),
        (ao.solve(general), "auto", r"constraints of arms, got one with constraints of its own \(5\)"),
        (
            own,
            "conic",
            "start: method 'conic' cannot begin from a solution; these can: design, interior-point, active-set",
        ),
    ):
        with pytest.raises(ao.InvalidOption, match=message):
            ao.solve(program, method=method, start=start)


def test_a_start_out_of_which_nothing_follows_is_left_alone():
    program = ao.programs.regret(random_unit(3, 8, seed=0))
    own = ao.solve(program)
    for allocation in (np.zeros(8), np.full(8, np.nan), np.full(8, np.inf)):
        bad = ao.Solution(program, allocation, np.zeros(8), 0.0, np.inf, ao.Status.FAILED, "none", 1e-8, own.binding)
        s = ao.solve(program, start=bad)
        assert s.stats["warm"] is False
        assert agree(s, own)


# Allocators beyond compiled code


@pytest.mark.parametrize("arms", [300, 1200])
@settings(max_examples=40)
@given(rank=st.integers(2, 4), more=st.integers(1, 4), seed=seeds)  # with rank 1, best and worst arm are all there is
def test_sets_that_are_rank_deficient_up_to_rounding_are_solved_wherever_they_are_kept(arms, rank, more, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(arms, rank)) @ rng.normal(size=(rank, rank + more))
    bandit = ao.LinearBandit(rows, rng.normal(size=rank + more))
    s = Allocator(rows).solve(bandit.gaps)
    assert answered(s)
    assert agree(s, ao.solve(ao.programs.regret(bandit)))


@pytest.fixture(params=["array", "store"])
def kept_as(request, monkeypatch):
    """Sets of a few hundred arms as arrays, and as if they were millions."""
    if request.param == "store":
        monkeypatch.setattr(opening, "LARGE", 0)
        monkeypatch.setattr(opening, "MANY", 0)
    return request.param


def test_an_allocator_of_many_arms_begins_from_the_last_solution(kept_as):
    bandit = random_unit(5, 3 * MOST_ARMS, seed=3)
    allocator = Allocator(np.array(bandit.arms))
    steps = []
    for n in range(5):
        gaps = moved(bandit.gaps, 0.01 if n else 0.0, n)
        s = allocator.solve(gaps)
        o = ao.solve(at_level(bandit.arms, gaps, 2.0))
        assert answered(s)
        assert agree(s, o)
        assert s.stats["compiled"] is False
        assert s.stats["not_compiled"] == "more than 100 arms"
        assert s.stats.get("warm", False) is (n > 0)
        assert ("arms_in_pool" in s.stats) is (kept_as == "store")
        steps.append(s.stats["iterations"])
    assert max(steps[1:]) < 0.6 * steps[0]


def test_another_free_arm_means_a_fresh_start(kept_as):
    bandit = random_unit(4, 2 * MOST_ARMS, seed=4)
    allocator = Allocator(np.array(bandit.arms))
    allocator.solve(bandit.gaps)
    turned = ao.LinearBandit(bandit.arms, -bandit.theta)
    s = allocator.solve(turned.gaps)
    assert "warm" not in s.stats
    assert agree(s, ao.solve(ao.programs.regret(turned)))
    assert allocator.solve(moved(turned.gaps, 0.001, 0)).stats["warm"] is True


def test_a_large_set_is_surveyed_once_and_neither_copied_nor_changed(monkeypatch):
    monkeypatch.setattr(opening, "LARGE", 0)
    monkeypatch.setattr(opening, "MANY", 0)
    monkeypatch.setattr(opening, "SHARED", 0)
    arms = np.array(random_unit(4, 500, seed=5).arms, dtype=np.float32)
    allocator = Allocator(arms)
    assert np.shares_memory(allocator.arms, arms)
    assert arms.flags.writeable
    assert repr(allocator) == "Allocator(n_arms=500, dim=4, level=2, tol=1e-08)"
    looks = []
    scan = listed.ListedArms.scan
    monkeypatch.setattr(listed.ListedArms, "scan", lambda *a: looks.append(type(a[1]).__name__) or scan(*a))
    means = arms.astype(float) @ np.ones(4)
    s = allocator.solve(means.max() - means)
    assert answered(s)
    assert set(looks) == {"PriceTask"}
    heard = []
    allocator.solve(moved(means.max() - means, 0.01, 0), callback=heard.append)
    assert heard[-1].gap <= 1e-8


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60])
def test_bad_arms_of_a_large_set_are_refused_when_the_allocator_is_made(bad, monkeypatch):
    monkeypatch.setattr(opening, "LARGE", 0)
    monkeypatch.setattr(opening, "MANY", 0)
    arms = np.array(random_unit(3, 200, seed=0).arms)
    arms[17, 1] = bad
    with pytest.raises(ao.InvalidInstance, match="arms: expected"):
        Allocator(arms)
    with pytest.raises(ao.InvalidInstance, match="every arm is the zero vector"):
        Allocator(np.zeros((200, 3)))


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        (np.ones(3), "gaps: expected 200 entries, one per arm, got 3"),
        (np.full(200, -1.0), "gaps: expected entries >= 0, but entry 0 is -1.0"),
        (np.full(200, np.nan), "gaps: expected finite numbers, but entry 0 is nan"),
        (np.full(200, 1e60), "gaps: expected magnitudes"),
    ],
)
def test_bad_gaps_of_many_arms_are_refused_in_words_and_forgotten(gaps, message, kept_as):
    bandit = random_unit(3, 200, seed=0)
    allocator = Allocator(np.array(bandit.arms))
    allocator.solve(bandit.gaps)
    with pytest.raises(ao.InvalidInstance, match=message):
        allocator.solve(gaps)
    assert answered(allocator.solve(bandit.gaps))


def test_a_start_with_negative_entries_proves_nothing_false(kept_as):
    bandit = random_unit(4, 400, seed=2)
    program = at_level(np.array(bandit.arms), bandit.gaps, 2.0)
    good = ao.solve(program)
    played = np.where(np.isfinite(good.allocation), good.allocation, 0.0)
    for arm in np.flatnonzero(good.multipliers > 0)[:3]:
        wrong = played.copy()
        wrong[arm] = -5 * played.max()
        bad = ao.Solution(
            program, wrong, -good.multipliers + 0.1, 0.0, np.inf, ao.Status.FAILED, "none", 1e-8, good.binding
        )
        assert agree(ao.solve(program, start=bad), good)


def test_a_start_whose_numbers_are_hardly_numbers_is_left_alone():
    program = ao.programs.regret(random_unit(3, 8, seed=0))
    own = ao.solve(program)
    for scale in (1e-200, 1e-300, 1e200):
        allocation = np.where(np.isfinite(own.allocation), scale * own.allocation, np.inf)
        start = ao.Solution(
            program, allocation, own.multipliers.copy(), 0.0, 1.0, own.status, "none", 1e-8, own.binding
        )
        assert agree(ao.solve(program, start=start), own)


@pytest.mark.parametrize("arms", [200, 1001])
@pytest.mark.parametrize("seed", [46, 47])
def test_a_last_solution_that_leads_astray_is_forgotten(arms, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, 6))
    rows = centres[rng.integers(0, 8, arms)] + 1e-6 * rng.normal(size=(arms, 6))
    gaps = np.array(ao.LinearBandit(rows, rng.normal(size=6)).gaps)
    tiny = gaps * np.where(rng.random(arms) < 0.5, 1e-8, 1)
    allocator = Allocator(rows)
    for these in (gaps, tiny, gaps):
        cold = ao.solve(at_level(rows, these, 2.0))
        s = allocator.solve(these)
        assert agree(s, cold)
        assert answered(s) or not answered(cold)


def test_bad_options_of_an_allocator_are_named():
    for arms in (5, 2 * MOST_ARMS):
        bandit = random_unit(3, arms, seed=0)
        with pytest.raises(ao.InvalidOption, match="callback: expected a function, got a int"):
            Allocator(bandit.arms).solve(bandit.gaps, callback=3)
        with pytest.raises(ao.InvalidOption, match="level: expected"):
            Allocator(bandit.arms, level=1e300)


def test_where_blocks_fail_the_array_is_asked(monkeypatch):
    def fail(*_, **__):
        raise ao.SolverFailed("blocks are of no use here")

    bandit = random_unit(3, 1200, seed=0)
    allocator = Allocator(np.array(bandit.arms))
    blocks = allocator.solve(bandit.gaps)
    monkeypatch.setattr(sys.modules["allocopt.solving.solve"], "solve_streamed", fail)  # ao.solve is the function
    s = allocator.solve(bandit.gaps)
    assert answered(s)
    assert "arms_in_pool" in blocks.stats
    assert "arms_in_pool" not in s.stats
    assert agree(s, blocks)
    monkeypatch.setattr("allocopt.solving.allocator.solve", fail)
    with pytest.raises(ao.SolverFailed, match="of no use"):
        allocator.solve(bandit.gaps)
