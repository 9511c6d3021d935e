"""A schedule followed round by round: the same rounds as its formula says, whatever happens in between, saved or not."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedules import EASY, orders, playable, seeds
from strategies import bandits

import allocopt as ao
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.policies.schedule.play_order import ORDERS
from allocopt.policies.schedule.schedule import Schedule


def small(order="interleaved", horizon=60, **options):
    solution = ao.regret_constant([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])
    return Schedule.from_solution(solution, horizon, order=order, **options)


def played_out(follower):
    arms = []
    while not follower.done:
        arms.append(follower.next())
        follower.update(arms[-1])
    return arms


@settings(max_examples=60)
@given(bandit=bandits(kinds=EASY), order=orders, seed=seeds, n=st.integers(3, 400))
def test_followed_exactly_it_is_the_schedule(bandit, order, seed, n):
    played = np.random.default_rng(seed).integers(0, 3, bandit.n_arms)
    schedule = Schedule.from_solution(playable(bandit), n + int(played.sum()), played, order=order, level=4.0)
    follower = schedule.follow()
    assert played_out(follower) == list(schedule)
    np.testing.assert_array_equal(follower.pulls, schedule.pulls)
    assert follower.left == 0 or not len(schedule.free_arms)


@pytest.mark.parametrize("order", ORDERS)
def test_a_design_without_free_arms_is_followed_to_its_end(order):
    solution = ao.solve(ao.programs.g_optimal([[1, 0], [0, 1], [1, 1]]))
    schedule = Schedule.from_solution(solution, 20, order=order)
    assert played_out(schedule.follow()) == list(schedule)


@settings(max_examples=40)
@given(order=orders, seed=seeds, share=st.floats(0.0, 1.0))
def test_whatever_is_played_instead_counts_towards_what_is_wanted(order, seed, share):
    schedule = small(order, 200, level=8.0)
    rng = np.random.default_rng(seed)
    follower = schedule.follow()
    mine = np.zeros(3, int)
    for _ in range(schedule.length):
        arm = int(rng.integers(3)) if rng.random() < share else follower.next()
        follower.update(arm)
        mine[arm] += 1
        left = np.maximum(schedule.wanted - mine, 0.0)
        np.testing.assert_array_equal(follower.wanted[1:], left[1:])
    np.testing.assert_array_equal(follower.pulls, mine)
    assert follower.done
    # with time enough for everything, all that is wanted is played (tracking gives the rest its share all along)
    if share < 0.2 and order != "tracking":
        assert (mine >= schedule.wanted).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_saved_one_goes_on_where_it_was(order, tmp_path):
    schedule = small(order)
    whole = list(schedule)
    follower, arms = schedule.follow(), []
    for part in range(6):
        for _ in range(10):
            arms.append(follower.next())
            follower.update(arms[-1])
        path = tmp_path / f"{part}.json"
        follower.save(path)
        follower = Schedule.resume(path)
    assert arms == whole
    assert follower.done
    np.testing.assert_array_equal(follower.pulls, schedule.pulls)


def test_a_batch_of_pulls_is_counted_at_once():
    follower = small("explore-first").follow()
    first = follower.next()
    wanted = int(follower.wanted[first])
    follower.update(first, count=wanted)
    assert follower.next() != first and follower.left == 60 - wanted
    assert follower.next() == follower.next()


def test_what_is_wrong_is_named(tmp_path):
    follower = small(horizon=3).follow()
    for arm in (3, -1, True, "0", 1.0):
        with pytest.raises(InvalidOption, match="arm: expected a number from 0 to 2, got"):
            follower.update(arm)
    with pytest.raises(InvalidOption, match="count: expected at most the 3 rounds that are left, got 4"):
        follower.update(0, count=4)
    with pytest.raises(InvalidOption, match="count: expected a whole number >= 1"):
        follower.update(0, count=0)
    follower.update(0, count=3)
    with pytest.raises(InvalidOption, match="schedule: nothing is left to play after 3 rounds"):
        follower.next()
    path = tmp_path / "place.json"
    follower.save(path)
    with pytest.raises(ao.AllocoptError):
        follower.save(path)
    follower.save(path, force=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "else"}, "expected a followed schedule"),
        ({"version": 2}, "expected version 1, got 2"),
        ({"order": "random"}, "order: expected one of interleaved, explore-first, tracking, got 'random'"),
        ({"arms": [0, 0, 1]}, "arms: expected each arm once"),
        ({"arms": [0, 7]}, "arms: expected a whole number from 0 to 2, got 7"),
        ({"counts": [0]}, "one per arm of the list"),
        ({"shares": ["nan", 1, 1]}, "numbers >= 0"),
        ({"place": 9}, "place: expected a whole number"),
        ({"left": -1}, "left: expected a whole number"),
        ({"left": 1.5}, "left: expected a whole number"),
        ({"pulls": {"0": 5}}, "counts: expected those of pulls"),
        ({"pulls": [1]}, "pulls"),
        ({"n_arms": 10**12}, "n_arms: expected a whole number from 1 to 100000000"),
        ({"counts": None}, "NoneType"),
    ],
)
def test_a_file_that_is_no_followed_schedule_is_refused(change, words, tmp_path):
    path = tmp_path / "place.json"
    small().follow().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidFile) as caught:
        Schedule.resume(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    if words != "pulls":
        assert words in str(caught.value)


def test_a_missing_entry_is_named(tmp_path):
    path = tmp_path / "place.json"
    small().follow().save(path)
    content = json.loads(path.read_text())
    del content["left"]
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match="'left' is missing"):
        Schedule.resume(path)


def test_rounding_as_the_listing_does_plays_whole_targets_once_more():
    solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])  # the third arm has α = 0
    one, other = (Schedule.from_solution(solution, 10**4, rounding=r) for r in ("ceiling", "listing"))
    assert one.allocation[2] == 0.0
    np.testing.assert_array_equal(other.required, np.floor(one.allocation) + 1.0)
    np.testing.assert_array_equal(other.pulls - one.pulls, [-1, 0, 1])
    with pytest.raises(InvalidOption, match='expected "efficient" for a g_optimal program'):
        Schedule.from_solution(ao.solve(ao.programs.g_optimal([[1, 0], [0, 1]])), 10, rounding="listing")
