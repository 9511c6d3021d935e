"""Large sets of arms are looked at block by block; what comes out is what arms in memory give, wherever the arms live.

Most tests force small sets into blocks of seven rows, with pools of a few arms, so that there are many blocks and many passes.
"""

import copy
import itertools
import os
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.base.errors import Interrupted, InvalidFile, InvalidInstance, InvalidOption, MethodUnavailable
from allocopt.certify.by_block.problem import StreamedProblem
from allocopt.model.arms import DaskArms, ListedArms, blocks, dask_npy, listed, open_store, opening, spanning, survey
from allocopt.solvers import streaming

BLOCK = 7


@contextmanager
def in_blocks(rows=BLOCK, enter=1, keep=1, sample=2):
    """Every array is a large set, in blocks of a few rows; ``rows=None`` keeps the ordinary size of blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "LARGE", 0)
        patch.setattr(opening, "SHARED", 0)
        patch.setattr(opening, "MANY", 0)
        if rows is not None:
            patch.setattr(blocks, "block_rows", lambda columns: rows)
        patch.setattr(survey, "KEEP", keep)
        patch.setattr(spanning, "SAMPLE", sample)
        patch.setattr(streaming, "_ENTER", enter)
        yield


@contextmanager
def never_in_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "LARGE", 10**15)
        yield


def unit_arms(dim, arms, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(arms, dim))
    theta = rng.normal(size=dim)
    return rows / np.linalg.norm(rows, axis=1)[:, None], theta / np.linalg.norm(theta)


def streamed_bandit(arms, theta, *more, **options):
    bandit = ao.LinearBandit(arms, theta, *more, **options)
    assert bandit.store is not None
    return bandit


def regret(bandit, **how):
    return ao.solve(ao.programs.regret(bandit), **how)


def same_interval(one, other):
    return (one.lower, one.upper) == (other.lower, other.upper)


def agree(one, other, slack=1e-12):
    """Two certified intervals for the same number intersect."""
    return one.lower <= other.upper * (1 + slack) and other.lower <= one.upper * (1 + slack)


def check_consistency(solution):
    """Allocation, multipliers, support and binding arms tell one story, and the value is the cost of the allocation."""
    program = solution.program
    finite = np.isfinite(solution.allocation)
    assert solution.allocation.shape == solution.multipliers.shape == (program.n_arms,)
    assert np.array_equal(np.flatnonzero(~finite), solution.optimal_arms)
    assert np.array_equal(np.flatnonzero(finite & (solution.allocation > 0)), solution.support)
    assert (np.diff(solution.support) > 0).all() and (np.diff(solution.binding) > 0).all()
    assert np.isin(np.flatnonzero(solution.multipliers > 1e-6 * solution.multipliers.max()), solution.binding).all()
    assert program.costs[finite] @ solution.allocation[finite] == pytest.approx(solution.value, rel=1e-10)
    # λ is scaled for its own allocation, the best over the two bounds: Σλ lies between them
    total = solution.multipliers.sum()
    assert solution.lower * (1 - 1e-9) <= total <= solution.upper * (1 + 1e-9)


# The same answers as in memory


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
@given(bandits(max_arms=60))
def test_designs_over_blocks_have_the_rank_as_their_value(bandit):
    with in_blocks():
        s = ao.solve(ao.programs.g_optimal(np.array(bandit.arms)))
    assert s.program.blocks is not None
    assert agree(s, ao.solve(ao.programs.g_optimal(bandit.arms)))
    if s.status is ao.Status.CERTIFIED:
        assert s.value == pytest.approx(bandit.rank, rel=1e-7)


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


@settings(max_examples=15)
@given(bandits(kinds=("plain", "tiny gap", "duplicates", "exact ties", "rank-deficient"), max_arms=40))
def test_float32_is_taken_as_exact(bandit):
    """Same bits as the same values in float64, whatever the byte order."""
    single = bandit.arms.astype(np.float32)
    found = []
    with in_blocks():
        for arms in (single, single.astype(np.float64), single.astype(">f4"), single.astype(">f8")):
            try:
                found.append(regret(streamed_bandit(arms, bandit.theta)))
            except InvalidInstance as error:  # rounding to float32 can make all arms tie
                found.append(str(error))
    for other in found[1:]:
        assert other == found[0] if isinstance(other, str) else same_interval(other, found[0])


def test_strides_and_orders_change_nothing():
    arms, theta = unit_arms(4, 100)
    wide = np.zeros((200, 8))
    wide[::2, ::2] = arms
    with in_blocks():
        found = ao.regret_constant(arms, theta)
        for same in (np.asfortranarray(arms), wide[::2, ::2], arms[::-1].copy()[::-1]):
            assert agree(ao.regret_constant(same, theta), found)
            assert ao.regret_constant(same, theta).value == pytest.approx(found.value, rel=1e-7)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float16])
def test_other_numbers_become_doubles_before_anyone_subtracts_them(dtype):
    rng = np.random.default_rng(0)
    arms, theta = rng.integers(0, 5, (200, 4)).astype(dtype), rng.normal(size=4)
    dense = ao.regret_constant(arms, theta)
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        assert bandit.arms.dtype == np.float64
        assert agree(regret(bandit), dense)


# The user's array


def test_a_writeable_array_below_the_size_for_sharing_is_copied():
    arms = np.random.default_rng(0).normal(size=(20_000, 20))
    bandit = ao.LinearBandit(arms, np.ones(20))
    assert bandit.store is not None
    assert not np.shares_memory(bandit.arms, arms)
    before = bandit.means.copy()
    arms[:] = 0.0
    assert (ao.LinearBandit(bandit.arms, np.ones(20)).means == before).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_users_array_is_shared_and_left_alone(dtype):
    arms, theta = unit_arms(3, 50)
    arms = arms.astype(dtype)
    before = arms.copy()
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        regret(bandit)
    assert np.shares_memory(bandit.arms, arms)
    assert arms.flags.writeable and not bandit.arms.flags.writeable
    assert np.array_equal(arms, before)
    with pytest.raises(ValueError, match="read-only"):
        bandit.arms[0, 0] = 1.0


def test_read_only_arrays_stay_read_only():
    arms, theta = unit_arms(3, 50)
    arms.flags.writeable = False
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        regret(bandit)
    assert np.shares_memory(bandit.arms, arms)
    assert not arms.flags.writeable


def test_a_set_is_large_from_400000_entries_and_ten_thousand_arms():
    arms, theta = unit_arms(20, 105_000)
    assert isinstance(open_store(arms), ListedArms)
    assert open_store(arms[:19_999]) is None
    assert open_store(arms.reshape(-1, 20 * 21)) is None
    assert open_store(arms.tolist()[:10]) is None
    s = ao.regret_constant(arms, theta, tol=1e-6)
    assert s.program.blocks is not None
    assert s.status is ao.Status.CERTIFIED
    assert s.stats["passes"] <= 4
    with never_in_blocks():
        dense = ao.LinearBandit(arms, theta)
        assert dense.store is None
        assert agree(s, regret(dense, tol=1e-6))
    check_consistency(s)


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


# Files


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f4"])
def test_a_mapped_file_gives_the_same_bits_as_the_array(tmp_path, order, dtype):
    arms, theta = unit_arms(5, 200)
    path = tmp_path / "arms.npy"
    np.save(path, np.asarray(arms, dtype=dtype, order=order))
    mapped = np.load(path, mmap_mode="r")
    with in_blocks():
        bandit = streamed_bandit(mapped, theta)
        assert np.shares_memory(bandit.arms, mapped)
        assert same_interval(regret(bandit), ao.regret_constant(np.load(path), theta))
        part = regret(streamed_bandit(mapped[1::3], theta))
        assert agree(part, ao.regret_constant(np.load(path)[1::3].copy(), theta))


def test_files_that_are_not_matrices_of_numbers_are_refused_in_one_line(tmp_path):
    path = tmp_path / "arms.npy"
    np.save(path, np.ones((100, 4)))
    whole = path.read_bytes()
    damaged = {"truncated": whole[:-500], "header only": whole[:60], "empty": b"", "text": b"1,2,3\n4,5,6\n"}
    for content in damaged.values():
        path.write_bytes(content)
        with pytest.raises(InvalidFile, match=r"arms\.npy: cannot be mapped") as caught:
            dask_npy(path)
        assert "\n" not in str(caught.value)
    for odd in (np.ones(5), np.ones((2, 2, 2)), np.ones((2, 2), dtype=complex), np.ones((0, 3))):
        np.save(path, odd)
        with pytest.raises(InvalidFile, match="expected a matrix of numbers"):
            dask_npy(path)
    np.save(path, np.array([[None]]), allow_pickle=True)
    with pytest.raises(InvalidFile, match="cannot be mapped"):
        dask_npy(path)
    np.savez(tmp_path / "arms.npz", arms=np.ones((3, 3)))
    with pytest.raises(InvalidFile, match="cannot be mapped"):
        dask_npy(tmp_path / "arms.npz")
    with pytest.raises(InvalidFile, match="No such file"):
        dask_npy(tmp_path / "nothing.npy")


def test_a_file_that_disappears_is_named(tmp_path):
    path = tmp_path / "arms.npy"
    np.save(path, np.ones((100, 4)))
    array = dask_npy(path)
    path.unlink()
    with pytest.raises(InvalidFile, match=r"arms\.npy: cannot be mapped as a NumPy file of numbers: No such file"):
        ao.LinearBandit(array, np.ones(4))


# Dask


def test_a_dask_array_of_whole_blocks_gives_the_same_bits(tmp_path):
    arms, theta = unit_arms(5, 211)
    path = tmp_path / "arms.npy"
    np.save(path, arms.astype(np.float32))
    with in_blocks():
        listed = ao.regret_constant(np.load(path), theta)
        for rows in (BLOCK, 5 * BLOCK, 10**6):
            array = dask_npy(path, chunk_rows=rows)
            assert array.chunks[0][0] == min(rows, 211)
            bandit = ao.LinearBandit(array, theta)
            assert isinstance(bandit.store, DaskArms)
            s = regret(bandit)
            assert same_interval(s, listed)
            assert np.array_equal(s.allocation, ao.regret_constant(np.load(path), theta).allocation)
    assert dask_npy(path).numblocks == (1, 1)
    with pytest.raises(InvalidOption, match="chunk_rows: expected a whole number >= 1, got 0"):
        dask_npy(path, chunk_rows=0)


@pytest.mark.parametrize(
    "chunks",
    [((50, 61), (5,)), ((1,) * 111, (5,)), ((0, 100, 0, 11), (5,)), ((60, 51), (2, 3)), ((111,), (1,) * 5)],
)
def test_any_chunks_give_the_same_answer(chunks):
    arms, theta = unit_arms(5, 111)
    with in_blocks():
        listed = ao.regret_constant(arms, theta)
        s = ao.regret_constant(da.from_array(arms, chunks=chunks), theta)
        assert agree(s, listed)
        assert s.status is ao.Status.CERTIFIED
        assert np.array_equal(s.optimal_arms, listed.optimal_arms)


def test_gaps_and_designs_work_on_dask_too():
    arms, theta = unit_arms(4, 90)
    array = da.from_array(arms, chunks=(30, 4))
    bandit = ao.LinearBandit(arms, theta)
    assert agree(ao.optimal_pulls(array, bandit.gaps, 1000), ao.optimal_pulls(arms, bandit.gaps, 1000))
    assert ao.solve(ao.programs.g_optimal(array)).value == pytest.approx(4, rel=1e-7)
    spread = ao.LinearBandit(array, theta)
    assert spread.rank == 4
    np.testing.assert_allclose(spread.gaps, bandit.gaps, rtol=1e-13)
    assert "streamed" not in repr(spread) and "n_arms=90" in repr(spread)


def test_dask_gives_blas_its_threads_back():
    """Also where the first chunk to begin is the first to end, so that limits set by each of them would overlap."""

    def threads():
        return {x["filepath"]: x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"}

    began = threading.Event()

    def task(start, block):
        if start:
            began.set()
            time.sleep(0.3)  # the other chunk ends meanwhile
        else:
            assert began.wait(30)
        return threads()

    store = open_store(da.from_array(np.ones((20, 2)), chunks=(10, 2)))
    with threadpoolctl.threadpool_limits(2, user_api="blas"), dask.config.set(num_workers=2):
        before = threads()
        inside = list(store.scan(task))
        assert threads() == before
    assert set(inside[0].values()) == {1}


def test_what_cannot_be_done_on_dask_is_said(tmp_path):
    arms, theta = unit_arms(4, 90)
    array = da.from_array(arms, chunks=(30, 4))
    bandit = ao.LinearBandit(array, theta)
    for make in (
        lambda: ao.programs.best_arm(bandit),
        lambda: ao.programs.optimism(bandit, 1.0),
        lambda: ao.programs.remaining(bandit, np.zeros(90), 1000),
        lambda: regret(bandit, method="frank-wolfe"),
    ):
        with pytest.raises(MethodUnavailable, match=r"a Dask array can be used by method 'active-set'.*array\.compute"):
            make()
    s = regret(bandit)
    assert s.lower <= s.verify().midpoint <= s.upper
    with pytest.raises(InvalidInstance, match="known chunk sizes; call compute_chunk_sizes"):
        ao.LinearBandit(array[array[:, 0] > 0], theta)
    with pytest.raises(InvalidInstance, match="2 dimensions, got 1"):
        ao.LinearBandit(array[0], theta)
    with pytest.raises(InvalidInstance, match="of numbers"):
        ao.LinearBandit(array.astype(complex), theta)
    with pytest.raises(InvalidInstance, match="at least one arm"):
        ao.LinearBandit(array[:0], theta)
    arms[77, 2] = np.inf
    with pytest.raises(InvalidInstance, match="row 77, column 2 is not"):
        ao.LinearBandit(da.from_array(arms, chunks=(30, 4)), theta)


def test_a_cluster_gives_the_same_bits_even_if_a_worker_dies_in_the_middle_of_a_pass(tmp_path):
    """Two worker processes; one of them kills itself while it prices, at a moment that is the same in every run."""
    arms, theta = unit_arms(5, 211)
    path = tmp_path / "arms.npy"
    np.save(path, arms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what distributed's own sockets and loops have to say at their end
        from distributed import Client, LocalCluster

        with (
            in_blocks(),
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            listed = ao.regret_constant(arms, theta)
            array = dask_npy(path, chunk_rows=10 * BLOCK)
            assert same_interval(ao.regret_constant(array, theta), listed)

            def fragile(rows, armed, dead):
                if os.path.exists(armed):
                    try:
                        open(dead, "x").close()  # one of the workers only, even if both are here
                    except FileExistsError:
                        return rows
                    os.kill(os.getpid(), signal.SIGKILL)
                return rows

            armed, dead = tmp_path / "armed", tmp_path / "dead"
            breakable = array.map_blocks(fragile, str(armed), str(dead), dtype=array.dtype, meta=np.empty((0, 0)))
            before = set(client.run(os.getpid).values())
            s = ao.regret_constant(breakable, theta, callback=lambda progress: armed.touch())
            client.wait_for_workers(2, timeout=60)
            after = set(client.run(os.getpid).values())
            assert dead.exists()
            assert len(before & after) == 1
            assert s.status is ao.Status.CERTIFIED
            assert same_interval(s, listed)


# Hard sets


def test_ties_are_found_across_blocks_of_different_lengths():
    """A long arm whose mean is a difference of large terms ties for the best by the same rule as in memory."""
    arms = np.random.default_rng(0).normal(size=(40, 3)) * 0.1
    arms[3] = 1.0, 0.0, 0.0
    arms[30] = 1e6, 1.0 - 1e6 - 1e-10, 0.3
    theta = [1.0, 1.0, 0.0]
    assert ao.LinearBandit(arms, theta).optimal_arms.tolist() == [3, 30]
    with in_blocks():
        assert streamed_bandit(arms, theta).optimal_arms.tolist() == [3, 30]
        assert streamed_bandit(arms[::-1], theta).optimal_arms.tolist() == [9, 36]
        assert streamed_bandit(arms, theta, tie_tolerance=0).optimal_arms.tolist() == [3]
    # the long arm is the best one: it makes ties of short arms that are no ties among themselves
    arms[30, 1] = 1.0 - 1e6 + 1e-9
    arms[4] = 1.0 - 1e-9, 0.0, 0.2
    assert ao.LinearBandit(arms, theta).optimal_arms.tolist() == [3, 4, 30]
    with in_blocks():
        assert streamed_bandit(arms, theta).optimal_arms.tolist() == [3, 4, 30]


@given(bandits(kinds=("arm scales", "exact ties", "near tie"), max_arms=60), st.sampled_from([0.0, 1e-14, 1e-9, 1e-2]))
def test_ties_follow_the_same_rule_for_every_tolerance(bandit, tolerance):
    dense = ao.LinearBandit(bandit.arms, bandit.theta, tie_tolerance=tolerance)
    with in_blocks():
        blocks = streamed_bandit(np.array(bandit.arms), bandit.theta, tie_tolerance=tolerance)
    assert np.array_equal(blocks.optimal_arms, dense.optimal_arms)


def test_optimal_arms_can_be_given():
    arms, theta = unit_arms(3, 50)
    best = int(np.argmax(arms @ theta))
    with in_blocks():
        bandit = streamed_bandit(arms, theta, optimal_arms=[best, (best + 1) % 50])
        assert regret(bandit).optimal_arms.tolist() == sorted([best, (best + 1) % 50])
        with pytest.raises(InvalidInstance, match=f"arm {best} is optimal too"):
            streamed_bandit(arms, theta, optimal_arms=[(best + 1) % 50])


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


# Screening


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
        seen.append((self.mask, found.complete))
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


# How a solve goes and ends


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


def check_feasible(solution):
    """The allocation meets every constraint, computed here from the arms alone (one best arm, divided out by projection)."""
    bandit = solution.program.origin.bandit
    best = bandit.arms[bandit.optimal_arms[0]]
    others = np.linalg.svd(best[None, :])[2][1:]
    rows = bandit.arms @ others.T
    used = solution.support
    information = (rows[used] * solution.allocation[used, None]).T @ rows[used]
    norms = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
    gaps = bandit.gaps
    some = gaps > 0
    assert (norms[some] <= gaps[some] ** 2 / 2 * (1 + 1e-9)).all()


def test_the_allocation_meets_every_constraint():
    check_feasible(ao.regret_constant(*unit_arms(10, 210_000), tol=1e-6))


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


# What is done with solutions


def test_a_solution_can_be_proven_saved_and_loaded(tmp_path):
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        for s in (
            ao.regret_constant(arms.astype(np.float32), theta),
            ao.optimal_pulls(arms, np.maximum(0.0, 0.5 - arms @ theta), 1000),
            ao.solve(ao.programs.g_optimal(arms)),
        ):
            proven = s.verify()
            assert s.lower <= proven.midpoint <= s.upper
            s.save(tmp_path / "proof.json")
            again = ao.load_solution(tmp_path / "proof.json")
            assert again.verify().lower == pytest.approx(proven.lower, rel=1e-10)
            assert again.status is ao.Status.CERTIFIED
            with never_in_blocks():
                assert ao.load_solution(tmp_path / "proof.json").verify().upper == pytest.approx(
                    proven.upper, rel=1e-10
                )


def test_solutions_can_be_copied_and_pickled():
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        s = ao.regret_constant(arms, theta)
        design = ao.solve(ao.programs.g_optimal(arms))
    for solution in (s, design):
        for twin in (copy.copy(solution), copy.deepcopy(solution), pickle.loads(pickle.dumps(solution))):
            assert same_interval(twin, solution)
            assert twin.status is solution.status
            assert dict(twin.stats) == dict(solution.stats)
            for name in ("allocation", "multipliers", "support", "binding", "optimal_arms"):
                assert np.array_equal(getattr(twin, name), getattr(solution, name))
            assert twin.program.n_arms == 300
            assert twin.verify() == solution.verify()


def test_texts_say_what_the_things_are():
    arms, theta = unit_arms(4, 300)
    with in_blocks():
        bandit = streamed_bandit(arms, theta)
        assert repr(bandit).endswith("streamed)")
        assert "gap_min" in repr(bandit) or bandit.gap_min  # gaps are worked out when somebody asks
        assert "gap_min" in repr(bandit)
        assert (
            repr(ao.programs.regret(bandit)) == "AllocationProgram(regret, n_arms=300, n_targets=299, dim=4, streamed)"
        )
        assert repr(regret(bandit)).startswith("Solution(value=")
        assert "of 300 arms)" in repr(regret(bandit))


def test_vectors_of_a_solution_cannot_be_changed():
    with in_blocks():
        s = ao.regret_constant(*unit_arms(4, 300))
    for vector in (s.allocation, s.multipliers):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0


# Bad input


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_entry_is_named(bad):
    arms, theta = unit_arms(5, 400)
    arms[301, 2] = bad
    arms[350, 0] = np.nan
    with in_blocks():
        for make in (
            lambda: ao.LinearBandit(arms, theta),
            lambda: ao.programs.g_optimal(arms),
            lambda: ao.programs.horizon(arms, np.ones(400), 1000),
        ):
            with pytest.raises(InvalidInstance, match="arms: expected finite numbers, but row 301, column 2 is not"):
                make()


def test_sets_that_cannot_be_meant_are_refused():
    arms, theta = unit_arms(5, 400)
    with in_blocks():
        for make, message in (
            (lambda: ao.regret_constant(arms * 0, theta), "every arm is optimal|zero vector"),
            (lambda: ao.solve(ao.programs.g_optimal(arms * 0)), "every arm is the zero vector"),
            (lambda: ao.regret_constant(arms, theta * 0), "all 400 are zero; every arm is optimal"),
            (lambda: ao.regret_constant(np.ones((400, 5)), theta), "all 400 are zero|all 400 are equal"),
            (
                lambda: ao.regret_constant(arms, theta[:4]),
                r"theta: expected 5 entries \(the arms have 5 columns\), got 4",
            ),
            (lambda: ao.regret_constant(arms, theta * np.nan), "theta: expected finite numbers"),
            (lambda: ao.regret_constant(arms * 1e60, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (lambda: ao.regret_constant(arms * 1e200, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (lambda: ao.regret_constant(arms * 1e-60, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (
                lambda: ao.optimal_pulls(arms, np.zeros(400), 1000),
                "gaps: expected a positive gap, but all 400 are zero",
            ),
            (lambda: ao.optimal_pulls(arms, np.ones(399), 1000), "gaps: expected 400 entries, one per arm, got 399"),
            (lambda: ao.optimal_pulls(arms, -np.ones(400), 1000), "gaps: expected entries >= 0, but entry 0 is -1.0"),
            (lambda: ao.optimal_pulls(arms, np.full(400, 1e-60), 1000), "gaps: expected magnitudes"),
        ):
            with pytest.raises(InvalidInstance, match=message):
                make()
