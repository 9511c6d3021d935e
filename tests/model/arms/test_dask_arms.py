"""Arms in a Dask array: any chunks, any scheduler, a worker that dies; the same bits as in memory."""

import os
import signal
import threading
import time
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import threadpoolctl
from blocks import BLOCK, agree, in_blocks, regret, same_interval, unit_arms

import allocopt as ao
from allocopt.base.errors import InvalidFile, InvalidInstance, InvalidOption, MethodUnavailable
from allocopt.model.arms import DaskArms, dask_npy, open_store


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
            assert isinstance(bandit._store, DaskArms)
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
    with pytest.raises(MethodUnavailable, match=r"best_arm and others need.*array\.compute"):
        ao.programs.best_arm(bandit)
    with pytest.raises(MethodUnavailable):
        regret(bandit, method="interior-point")
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


@pytest.mark.slow
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
                        open(dead, "x", encoding="utf-8").close()  # one of the workers only, even if both are here
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
