"""Schedules of every kind of solution: what was played counts, what does not fit is said, bad arguments are refused by name."""

import dataclasses
import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given
from schedules import EASY, orders, playable, regret, seeds
from strategies import bandits

import allocopt as ao
from allocopt.insight.instances import counter_example, finite_armed, soare
from allocopt.model.levels import f_n
from allocopt.model.programs import horizon_at_level
from allocopt.policies.schedule.play_order import ORDERS
from allocopt.policies.schedule.rounding import LONGEST
from allocopt.policies.schedule.schedule import Schedule


@pytest.mark.parametrize("order", ORDERS)
def test_a_billion_rounds_take_no_time(order):
    s = Schedule.from_solution(regret(ao.LinearBandit(np.eye(4), [1, 0.9, 0.8, 0.95])), 10**9, order=order)
    assert s.complete
    assert sum(s.pulls_at(10**9 - 1)) == 10**9 - 1
    assert len(list(islice(s, 1000))) == 1000
    assert sum(count for _, count in s.runs()) == 10**9
    # the k-th run starts where the counts say
    t = 0
    for arm, count in islice(s.runs(), 50):
        assert (s.pulls_at(t + count) - s.pulls_at(t))[arm] == count
        t += count


@given(bandits(kinds=EASY), seeds, orders)
def test_what_was_played_counts(bandit, seed, order):
    played = np.random.default_rng(seed).integers(0, 30, bandit.n_arms)
    n = 10**9
    s = Schedule.from_solution(playable(bandit), n, played, order=order)
    fresh = Schedule.from_solution(playable(bandit), n, order=order)
    assert s.length == n - played.sum()
    assume(s.complete)
    assert s.check().met
    rest = ~np.isinf(s.required)
    np.testing.assert_array_equal(s.pulls[rest], np.maximum(fresh.pulls - played, 0)[rest])
    assert s.total_regret == pytest.approx(s.regret + bandit.gaps @ played)
    assert s.check(0).t == 0


def test_nothing_is_left_to_play_when_all_rounds_were():
    s = Schedule.from_solution(regret(counter_example(0.1)), 1000, [0, 1000, 0])
    assert (s.length, list(s), list(s.runs()), s.regret) == (0, [], [], 0.0)
    assert s.check().met


def test_remaining_solutions_play_what_remains():
    bandit = ao.LinearBandit(np.eye(3), [1, 0.5, 0.4])
    solution = ao.solve(ao.programs.remaining(bandit, [50, 100, 2], 1000))
    s = Schedule.from_solution(solution, 1000)
    np.testing.assert_array_equal(s.played, [50, 100, 2])
    assert s.scale == math.log(1000)
    assert s.pulls[1] == 0  # 100 are more than enough, and not one more is asked for
    assert s.pulls[2] == math.ceil(2 / 0.36 * math.log(1000)) - 2
    assert s.check().met
    with pytest.raises(ao.InvalidOption, match="horizon: expected 1000"):
        Schedule.from_solution(solution, 1001)
    with pytest.raises(ao.InvalidOption, match='level: expected "log"'):
        Schedule.from_solution(solution, 1000, level="f_n")


def test_levels():
    solution = regret(counter_example(0.1))
    n = 10**6
    by_log = Schedule.from_solution(solution, n, level="log")
    assert by_log.pulls[1] == math.ceil(solution.allocation[1] * math.log(n))
    assert Schedule.from_solution(solution, n, level=10).pulls[1] == math.ceil(solution.allocation[1] * 5)
    assert Schedule.from_solution(solution, n, constant=3).scale == f_n(n, 2, 3) / 2
    optimism = ao.solve(ao.programs.optimism(counter_example(0.1), 2.0))
    assert Schedule.from_solution(optimism, n).scale == math.log(n)
    at_level_7 = ao.solve(horizon_at_level(counter_example(0.1).arms, counter_example(0.1).gaps, 7.0, None))
    assert Schedule.from_solution(at_level_7, n).pulls[1] == Schedule.from_solution(solution, n).pulls[1]
    paper = ao.optimal_pulls(counter_example(0.1).arms, counter_example(0.1).gaps, n, constant=2.5)
    np.testing.assert_array_equal(Schedule.from_solution(paper, n).allocation, paper.allocation)


def test_tied_optimal_arms_share_the_rest_and_it_is_said():
    bandit = ao.LinearBandit([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0.5, 0, 0]], [1, 0, 0])
    for order in ORDERS:
        s = Schedule.from_solution(regret(bandit), 1000, order=order)
        assert np.ptp(s.pulls[:3]) <= 1
        assert any("3 arms have gap 0 (arms 0, 1, 2)" in note for note in s.notes)
        assert s.check().met


def test_an_optimal_zero_arm_takes_the_rest():
    s = Schedule.from_solution(regret(ao.LinearBandit([[0, 0], [-1, 0], [0, -1]], [1, 1])), 1000)
    assert s.complete
    assert s.pulls[0] == 1000 - 2 * math.ceil(f_n(1000, 2))
    assert s.check().finite_met  # x* = 0 carries no information, so counting it changes nothing


def test_without_a_zero_gap_the_schedule_ends():
    s = Schedule.from_solution(ao.optimal_pulls(np.eye(2), [1.0, 2.0], 1000), 1000)
    assert s.length == s.pulls.sum() == np.ceil(s.allocation).sum() < 1000
    assert any("no arm has gap 0" in note for note in s.notes)


@pytest.mark.parametrize("order", ORDERS)
def test_what_does_not_fit_is_said(order):
    solution = regret(finite_armed([0.0, 1e-7, 0.5, 1e-3]))
    s = Schedule.from_solution(solution, 1000, order=order)
    assert not s.complete
    assert s.pulls.sum() == 1000
    assert s.missing.sum() > 1e15
    note = s.notes[-1]
    assert "does not fit" in note
    assert "in the 1000 rounds left" in note
    assert "explore-first" not in note  # that would not fit either
    tight = Schedule.from_solution(regret(counter_example(0.1)), 60, order=order)
    assert tight.complete is (order != "interleaved")
    assert tight.complete or "explore-first or tracking would play them all" in tight.notes[0]


def test_general_programs():
    free = ao.AllocationProgram([[1, 0], [0, 1]], [0, 1], [[1, 1]], [0.3])
    s = Schedule.from_solution(ao.solve(free), 100)
    assert s.pulls.tolist() == [96, 4]
    assert s.check().met
    design = ao.AllocationProgram([[1, 0], [0, 1]], [1, 1], [[1, 2]], [0.3])
    s = Schedule.from_solution(ao.solve(design), 90)
    assert s.pulls.tolist() == [30, 60]
    assert s.regret == 90


def failed(bandit):
    return dataclasses.replace(regret(bandit), status=ao.Status.FAILED, stats={"reason": "because"})


BAD = [
    ("horizon", {"horizon": 2}), ("horizon", {"horizon": 10.5}), ("horizon", {"horizon": "ten"}),
    ("horizon", {"horizon": math.inf}), ("horizon", {"horizon": LONGEST + 1}), ("horizon", {"horizon": True}),
    ("played", {"played": [1, 2]}), ("played", {"played": [1, -1, 0]}), ("played", {"played": [0.5, 0, 0]}),
    ("played", {"played": [math.nan, 0, 0]}), ("played", {"played": "abc"}), ("played", {"played": [1000, 1, 0]}),
    ("played", {"played": [1e300, 0, 0]}), ("played", {"played": [[1, 2, 3]]}), ("order", {"order": "random"}),
    ("order", {"order": ["x"]}), ("rounding", {"rounding": "floor"}), ("level", {"level": "f"}), ("level", {"level": 0}),
    ("level", {"level": -1.0}), ("level", {"level": True}), ("level", {"level": np.ones(2)}), ("constant", {"constant": -1}),
    ("exploration", {"exploration": 5}), ("exploration", {"exploration": 0, "rounding": "efficient"}),
    ("exploration", {"exploration": 2.5, "rounding": "efficient"}), ("solution", {"solution": "x"}),
    ("solution", {"solution": failed(counter_example(0.1))}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "what"), BAD)
def test_bad_arguments_are_refused_by_name(name, what):
    arguments = {"solution": regret(counter_example(0.1)), "horizon": 1000, **what}
    with pytest.raises(ao.InvalidOption, match=f"^{name}: ") as refused:
        Schedule.from_solution(**arguments)
    assert "\n" not in str(refused.value)


def test_what_does_not_go_together_is_refused():
    best = ao.solve(ao.programs.best_arm(soare()))
    horizon = ao.optimal_pulls(np.eye(2), [0, 1.0], 1000)
    for words, solution, n, options in (
        ("horizon: expected 1000, the n that the horizon solution was made for, got 999", horizon, 999, {}),
        ("level: not for this horizon solution", horizon, 1000, {"level": "log"}),
        ("level: not for best_arm", best, 1000, {"level": 3.0}),
        ('rounding: expected "efficient" for a best_arm', best, 1000, {"rounding": "ceiling"}),
        ("exploration: only with", best, 1000, {"exploration": 5}),
        ("horizon: expected at least", ao.solve(ao.programs.g_optimal(np.eye(9))), 5, {}),
    ):
        with pytest.raises(ao.InvalidOption, match=words):
            Schedule.from_solution(solution, n, **options)


@pytest.mark.parametrize("t", [-1, 1001, 0.5, math.nan, "1"])
def test_rounds_outside_the_schedule_are_refused(t):
    s = Schedule.from_solution(regret(counter_example(0.1)), 1000)
    for ask in (s.pulls_at, s.regret_at, s.check):
        with pytest.raises(ao.InvalidOption, match="t: expected"):
            ask(t)


def test_an_inaccurate_solution_is_played_and_said():
    solution = dataclasses.replace(regret(counter_example(0.1)), status=ao.Status.INACCURATE, stats={"reason": "slow"})
    assert "INACCURATE" in Schedule.from_solution(solution, 1000).notes[0]
