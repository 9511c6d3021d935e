"""Orders of play do what their rules say, round by round."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedules import EASY, counted, orders, passes, playable, seeds
from strategies import bandits

from allocopt.policies.schedule.play_order import Tracking, even_split, merged, order_of_play
from allocopt.policies.schedule.schedule import Schedule


def largest_deficit(weights, rounds):
    """Play by play: the arm that is furthest behind its share."""
    played, sequence = np.zeros(len(weights)), []
    for _ in range(rounds):
        due = [(played[i] + 0.5) / w if w > 0 else np.inf for i, w in enumerate(weights)]
        sequence.append(int(np.argmin(due)))
        played[sequence[-1]] += 1
    return sequence


@st.composite
def quotas(draw):
    quota = np.array(draw(st.lists(st.integers(0, 12), min_size=1, max_size=7)), dtype=float)
    free = np.array(sorted(draw(st.sets(st.integers(0, len(quota) - 1), max_size=3))), dtype=np.int64)
    quota[free] = np.inf
    most = 60 if len(free) else int(quota.sum())
    return quota, free, draw(st.integers(0, most))


def sequence_of(order, rounds):
    out = []
    for arm, count in order.runs():
        out += [arm] * min(count, rounds - len(out))
        if len(out) == rounds:
            break
    return out


@given(quotas())
def test_interleaved_is_the_papers_passes(case):
    quota, free, rounds = case
    assert sequence_of(order_of_play("interleaved", quota, free, rounds), rounds) == passes(quota, free, rounds)


@given(quotas())
def test_tracking_plays_the_largest_deficit(case):
    quota, free, rounds = case
    order = order_of_play("tracking", quota, free, rounds)
    assert isinstance(order, Tracking)
    assert sequence_of(order, rounds) == largest_deficit(order.weights, rounds)


@given(quotas())
def test_explore_first_has_one_run_an_arm(case):
    quota, free, rounds = case
    sequence = sequence_of(order_of_play("explore-first", quota, free, rounds), rounds)
    runs = [arm for arm, _ in merged(((a, 1) for a in sequence), rounds)]
    assert len(set(runs)) == len(runs)
    explored = [a for a in runs if a not in free]
    assert runs[: len(explored)] == sorted(explored)


@given(quotas(), orders)
def test_counts_at_any_round_are_those_of_the_sequence(case, name):
    quota, free, rounds = case
    order = order_of_play(name, quota, free, rounds)
    sequence = sequence_of(order, rounds)
    assert len(sequence) == rounds
    for t in range(rounds + 1):
        np.testing.assert_array_equal(order.pulls_at(t), counted(sequence[:t], len(quota)))
    if name != "interleaved" and quota[np.isfinite(quota)].sum() <= rounds:
        finite = np.isfinite(quota)
        assert (order.pulls_at(rounds)[finite] == quota[finite]).all()
        rest = order.pulls_at(rounds)[free]
        assert not len(rest) or rest.max() - rest.min() <= 1


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=8), st.floats(0, 1))
def test_tracking_never_strays_from_the_shares(weights, fraction):
    w = np.array(weights, dtype=float)
    total = sum(weights)
    t = int(fraction * total)
    played = Tracking(w).pulls_at(t)
    assert played.sum() == t
    assert (np.abs(played - w * (t / total)) <= 0.5 + len(w) * w / (2 * total) + 1e-3).all()
    np.testing.assert_array_equal(Tracking(w).pulls_at(total), weights)


@given(bandits(kinds=EASY), st.integers(3, 3000), orders, seeds)
def test_iteration_runs_and_counts_agree(bandit, n, order, seed):
    s = Schedule.from_solution(playable(bandit), n, order=order)
    rounds = list(s)
    assert len(rounds) == len(s) == s.length
    runs = list(s.runs())
    assert [a for a, count in runs for _ in range(count)] == rounds
    assert all(a[0] != b[0] for a, b in pairwise(runs))
    for t in np.random.default_rng(seed).integers(0, n + 1, 5).tolist():
        np.testing.assert_array_equal(s.pulls_at(t), counted(rounds[:t], bandit.n_arms))
        assert s.regret_at(t) == pytest.approx(bandit.gaps[rounds[:t]].sum(), rel=1e-9, abs=1e-12)


@given(st.integers(0, 10**15), st.integers(1, 50))
def test_an_even_split_differs_by_one_at_most_and_begins_with_the_larger_parts(total, parts):
    found = even_split(total, parts)
    assert found.sum() == total
    assert len(found) == parts
    assert found.max() - found.min() <= 1
    assert (np.diff(found) <= 0).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5))), st.integers(0, 40))
def test_merged_runs_are_the_same_rounds_in_fewer_runs(runs, rounds):
    found = list(merged(iter(runs), rounds))
    sequence = [arm for arm, count in runs for _ in range(count)]
    assert [arm for arm, count in found for _ in range(count)] == sequence[:rounds]
    assert all(one[0] != other[0] for one, other in pairwise(found))
    assert all(count > 0 for _, count in found)
