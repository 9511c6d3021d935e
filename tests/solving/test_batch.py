"""solve_many: every row is what it would be on its own, whatever its neighbours and however many workers."""

import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.insight.instances import random_unit
from allocopt.solving.allocator import MOST_ARMS, Allocator
from allocopt.solving.batch import solve_many
from allocopt.solving.roads import batch_input

seeds = st.integers(0, 2**32 - 1)


def random_batch(n, d, k, seed, shared=True):
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(k, d) if shared else (n, k, d))
    means = rng.normal(size=(n, d))[:, None, :] * arms
    means = means.sum(axis=2)
    return arms, means.max(axis=1, keepdims=True) - means


def same(one, other):
    for name in ("lower", "upper", "allocation", "multipliers"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.status.tolist() == other.status.tolist()
    assert dict(one.reasons) == dict(other.reasons)


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(2, 4), st.integers(4, 9), st.booleans(), seeds)
def test_every_row_is_what_a_cold_allocator_says(n, d, k, shared, seed):
    arms, gaps = random_batch(n, d, k, seed, shared)
    batch = solve_many(arms, gaps)
    assert len(batch) == n
    for i in range(n):
        s = Allocator(arms if shared else arms[i]).solve(gaps[i])
        assert (batch.lower[i], batch.upper[i], batch.status[i]) == (s.lower, s.upper, s.status)
        np.testing.assert_array_equal(batch.allocation[i], s.allocation)
        np.testing.assert_array_equal(batch.multipliers[i], s.multipliers)
    assert (batch.gap <= 1e-8).all()
    assert batch.certified.all()


@settings(max_examples=60)
@given(st.lists(bandits(max_dim=3, max_arms=3), min_size=1, max_size=6))
def test_a_list_of_bandits_is_solved_like_each_of_them(members):
    shape = members[0].arms.shape
    members = [b for b in members if b.arms.shape == shape]
    batch = solve_many(members)
    for i, b in enumerate(members):
        s = ao.solve(ao.programs.regret(b))
        assert batch.lower[i] <= s.upper * (1 + 1e-12)
        assert s.lower <= batch.upper[i] * (1 + 1e-12)
        assert batch.status[i] is ao.Status.CERTIFIED or s.status is not ao.Status.CERTIFIED


def test_noise_counts_for_bandits():
    b = random_unit(3, 6, seed=0)
    noisy = ao.LinearBandit(b.arms, b.theta, noise_variance=3.0)
    batch = solve_many([b, noisy])
    assert batch.value[1] == pytest.approx(3 * batch.value[0], rel=1e-7)


@pytest.mark.parametrize("shared", [True, False])
def test_the_number_of_workers_changes_nothing(shared):
    arms, gaps = random_batch(300, 4, 10, 5, shared)
    gaps[17] = np.nan
    gaps[200, 3] = -1.0
    batches = [solve_many(arms, gaps, workers=w) for w in (1, 2, 5, None)]
    for batch in batches[1:]:
        same(batches[0], batch)
    assert batches[0].certified.sum() == 298


def test_bad_rows_fail_by_themselves_with_their_reason():
    arms, gaps = random_batch(8, 3, 7, 1)
    good = solve_many(arms, gaps)
    gaps = gaps.copy()
    gaps[0, 0] = -0.0
    gaps[0, 1] = -1.0
    gaps[2, 4] = -0.5
    gaps[3, 1] = np.nan
    gaps[5, 1] = np.inf
    gaps[6, 0] = 1e-70
    batch = solve_many(arms, gaps)
    bad = [0, 2, 3, 5, 6]
    assert sorted(batch.reasons) == bad
    assert [s is ao.Status.FAILED for s in batch.status] == [i in bad for i in range(8)]
    assert "entry 1 is -1.0" in batch.reasons[0]
    assert "entry 4 is -0.5" in batch.reasons[2]
    assert "entry 1 is nan" in batch.reasons[3]
    assert np.isnan(batch.value[bad]).all()
    assert np.isnan(batch.allocation[bad]).all()
    for i in (1, 4, 7):
        assert batch.value[i] == good.value[i]
    with pytest.raises(ao.InvalidInstance, match="row 2 is no valid instance"):
        batch.solution(2)


def test_bad_arms_of_one_row_are_that_rows_affair():
    arms, gaps = random_batch(5, 3, 7, 2, shared=False)
    arms[1, 2, 0] = np.nan
    arms[3] = 0.0
    arms[4] = arms[4][:, :1] * np.ones(3)  # rank 1
    batch = solve_many(arms, gaps)
    assert [s.name for s in batch.status] == ["CERTIFIED", "FAILED", "CERTIFIED", "FAILED", "CERTIFIED"]
    assert sorted(batch.reasons) == [1, 3]
    assert 4 in batch.not_compiled


def test_a_row_can_be_proven():
    arms, gaps = random_batch(4, 3, 7, 3)
    batch = solve_many(arms, gaps, level=5.0)
    s = batch.solution(-1)
    e = s.verify()
    assert batch.lower[3] <= e.midpoint <= batch.upper[3]
    assert s.status is ao.Status.CERTIFIED
    assert s.program.origin.number == 5.0


def test_the_result_cannot_be_changed():
    batch = solve_many(*random_batch(2, 3, 5, 0))
    for array in (batch.value, batch.allocation, batch.status):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert "CERTIFIED=2" in repr(batch)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_callback_hears_of_progress_up_to_the_end(workers):
    arms, gaps = random_batch(200, 3, 6, 4)
    gaps[7] = np.nan
    heard = []
    solve_many(arms, gaps, workers=workers, callback=lambda done, total: heard.append((done, total)))
    done = [d for d, _ in heard]
    assert done == sorted(done)
    assert heard[-1] == (200, 200)
    assert len(heard) > 2


def test_what_the_callback_raises_stops_the_batch():
    arms, gaps = random_batch(500, 3, 6, 4)

    def stop(done, total):
        raise KeyError("enough")

    for workers in (1, 2):
        with pytest.raises(KeyError, match="enough"):
            solve_many(arms, gaps, workers=workers, callback=stop)


def test_no_rows_and_many_arms_are_fine():
    assert len(solve_many(np.eye(3), np.zeros((0, 3)))) == 0
    bandit = random_unit(3, MOST_ARMS + 1, seed=0)
    batch = solve_many(bandit.arms, [bandit.gaps])
    assert batch.certified.all()
    assert list(batch.not_compiled) == [0]


@pytest.mark.parametrize(
    ("arms", "gaps", "options", "message"),
    [
        (np.eye(2), None, {}, "gaps: expected a matrix"),
        (np.eye(2), [0, 1], {}, "gaps: expected an array of numbers with 2 dimensions"),
        (np.eye(2), [[0, 1, 2]], {}, "gaps: expected 2 columns, one per arm, got 3"),
        (np.eye(2), [["a", "b"]], {}, "gaps: expected an array of numbers"),
        (np.eye(2), [[0, 1], [1]], {}, "gaps: expected rows of equal length"),
        (np.ones((3, 2, 2)), [[0, 1]], {}, "arms: expected 1 sets of arms"),
        ([[1, np.nan], [0, 1]], [[0, 1]], {}, "arms: expected finite numbers"),
        (np.eye(2), [[0, 1]], {"workers": 0}, "workers"),
        (np.eye(2), [[0, 1]], {"tol": -1}, "tol"),
        (np.eye(2), [[0, 1]], {"callback": 3}, "callback"),
        ([random_unit(2, 3, seed=0), random_unit(2, 4, seed=0)], None, {}, "bandits of equal shape"),
        ([random_unit(2, 3, seed=0)], [[0, 1, 2]], {}, "bandits bring their own"),
    ],
)
def test_a_batch_of_the_wrong_shape_is_refused_in_words(arms, gaps, options, message):
    with pytest.raises(ao.AllocoptError, match=message):
        solve_many(arms, gaps, **options)


# Rows beyond compiled code


@pytest.fixture
def impatient(monkeypatch):
    """Worker processes are asked for at once."""
    monkeypatch.setattr("allocopt.solving.ordinary_rows._ALONE", 0.0)


@pytest.mark.parametrize("shared", [True, False])
def test_many_arms_are_solved_alike_in_this_process_and_in_others(shared, impatient):
    arms, gaps = random_batch(20, 4, MOST_ARMS + 20, 6, shared)
    gaps[3] = np.nan
    alone, helped = solve_many(arms, gaps, workers=1), solve_many(arms, gaps, workers=2)
    same(alone, helped)
    assert list(helped.reasons) == [3]
    assert helped.certified.sum() == 19


def kill_this_process(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_rows_of_a_worker_that_dies_are_solved_here(impatient, monkeypatch):
    arms, gaps = random_batch(20, 4, MOST_ARMS + 20, 6)
    monkeypatch.setattr("allocopt.solving.ordinary_rows._solved", kill_this_process)
    same(solve_many(arms, gaps, workers=2), solve_many(arms, gaps, workers=1))


def test_what_the_callback_raises_ends_the_worker_processes(impatient):
    arms, gaps = random_batch(40, 4, MOST_ARMS + 20, 6)

    def stop(done, total):
        if done > 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        solve_many(arms, gaps, workers=2, callback=stop)


def test_large_shared_arms_are_used_where_they_are(monkeypatch):
    monkeypatch.setattr("allocopt.model.arms.opening.LARGE", 0)
    monkeypatch.setattr("allocopt.model.arms.opening.MANY", 0)
    monkeypatch.setattr("allocopt.model.arms.opening.SHARED", 0)
    arms, gaps = random_batch(3, 4, MOST_ARMS + 200, 7)
    batch = solve_many(arms, gaps)
    assert np.shares_memory(batch.arms, arms)
    assert batch.certified.all()
    assert batch.solution(1).value == pytest.approx(batch.value[1], rel=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e302, 1e60])
def test_an_arm_that_is_not_a_number_never_disappears(bad):
    arms = np.array([np.eye(3)[[0, 1, 2, 0]]] * 2) + 0.1
    arms[1, 3] = bad
    batch = solve_many(arms, [[0, 1, 1, 1], [0, 1, 1, 1]])
    assert [s.name for s in batch.status] == ["CERTIFIED", "FAILED"]
    assert batch.reasons[1].startswith("arms: expected")


def in_a_daemon(queue):
    arms, gaps = random_batch(20, 4, MOST_ARMS + 20, 6)
    queue.put(solve_many(arms, gaps, workers=2).value.tolist())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("daemon", [True, False])
def test_a_fork_or_a_daemon_has_no_workers_and_does_without(daemon, impatient):
    context = multiprocessing.get_context("fork")
    arms, gaps = random_batch(20, 4, MOST_ARMS + 20, 6)
    here = solve_many(arms, gaps, workers=2)  # there is a pool now, which a fork cannot use
    queue = context.SimpleQueue()
    process = context.Process(target=in_a_daemon, args=(queue,), daemon=daemon)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert queue.get() == here.value.tolist()


WITHOUT_PROCESSES = """
import sys
sys.executable = ""  # Python inside another program
import numpy as np
import allocopt as ao
from allocopt.solving import ordinary_rows
ordinary_rows._ALONE = 0.0
arms = np.random.default_rng(0).normal(size=(120, 4))
means = np.random.default_rng(1).normal(size=(20, 4)) @ arms.T
print(ao.solve_many(arms, means.max(axis=1, keepdims=True) - means, workers=2).certified.all())
"""


def test_where_no_processes_can_be_started_rows_are_solved_all_the_same():
    done = subprocess.run([sys.executable, "-c", WITHOUT_PROCESSES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]


def test_batches_that_do_not_fit_are_refused_and_long_ones_said_before(monkeypatch):
    huge = np.broadcast_to(np.arange(3.0), (10**13, 3))
    with pytest.raises(
        ao.InvalidInstance, match=r"^gaps: solving for 30,000,000,000,000 entries would take 1\.44 PB of"
    ):
        solve_many(np.eye(3), huge)
    with pytest.raises(ao.InvalidInstance, match=r"^arms: solving for 90,000,000,000,000 entries would take"):
        solve_many(np.broadcast_to(np.eye(3), (10**13, 3, 3)), [[0.0, 1.0, 1.0]])
    monkeypatch.setattr(batch_input, "_LONG", 1e-6)
    with pytest.warns(
        ao.SlowWarning, match=r"^solve_many: 2 rows of 3 arms take about .* or more; callback= shows how far it is"
    ):
        solve_many(np.eye(3), [[0, 1, 1], [0, 1, 2]])
