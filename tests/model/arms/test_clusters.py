"""Dask as people use it: any client, again and again, with workers, clients and users that come and go."""

import cProfile
import os
import threading
import time
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from blocks import BLOCK, agree, in_blocks, same_interval, unit_arms

import allocopt as ao
from allocopt.model.arms import DaskArms, dask_chunks, dask_npy, on_dask
from allocopt.model.arms.dask_chunks import groups

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what distributed's own sockets and loops have to say at their end
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as local:
            yield local


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as mine:
        yield mine


def lazily(arms, chunk=20):
    """A Dask array that is made on the workers."""
    return da.from_array(arms, chunks=(chunk, arms.shape[1])).map_blocks(np.array, dtype=arms.dtype)


def test_one_client_argument_for_solve_pulls_study_and_simulate(client, tmp_path):
    arms, theta = unit_arms(4, 90)
    array = lazily(arms)
    bandit = ao.LinearBandit(arms, theta)
    listed = ao.regret_constant(arms, theta)
    assert agree(ao.regret_constant(array, theta, client=client), listed)
    assert agree(ao.optimal_pulls(array, bandit.gaps, 1000, client=client), ao.optimal_pulls(arms, bandit.gaps, 1000))
    spread = ao.LinearBandit(DaskArms(array, client), theta)
    assert agree(ao.solve(ao.programs.regret(spread), client=client), listed)
    spec = {"family": {"name": "random-unit"}, "fixed": {"dim": 2, "n_arms": 5}, "repeats": 10, "quantities": ["c"]}
    remote, local = (ao.study(spec, tmp_path / name, **how) for name, how in (("r", {"client": client}), ("l", {})))
    assert remote.path.read_bytes() == local.path.read_bytes()
    runs = [ao.simulate("LinTS", bandit, 100, 8, rng=0, **how).regret for how in ({"client": client}, {})]
    np.testing.assert_array_equal(*runs)


def test_work_is_done_where_the_client_says(client, tmp_path):
    folder = str(tmp_path)

    def noting(rows):
        open(os.path.join(folder, threading.current_thread().name), "w", encoding="utf-8").close()
        return rows

    arms, theta = unit_arms(4, 90)
    array = da.from_array(arms, chunks=(30, 4)).map_blocks(noting, dtype=arms.dtype, meta=np.empty((0, 0)))
    s = ao.regret_constant(array, theta, client=client)
    s.verify()  # the solution knows the client, too
    names = os.listdir(folder)
    assert names and all("-Dask-" in name for name in names), names


def test_the_same_call_may_be_made_again_and_again(client, tmp_path):
    arms, theta = unit_arms(5, 211)
    np.save(tmp_path / "arms.npy", arms)
    bandit = ao.LinearBandit(arms[:5], theta)
    with in_blocks():
        found = [
            ao.regret_constant(dask_npy(tmp_path / "arms.npy", chunk_rows=BLOCK), theta, client=client)
            for _ in range(6)
        ]
    assert all(same_interval(s, found[0]) for s in found)
    played = [ao.simulate("LinUCB", bandit, 50, 6, rng=3, client=client).regret for _ in range(6)]
    assert all(np.array_equal(regret, played[0]) for regret in played)


def test_a_persisted_array_is_looked_at_where_it_is(client):
    arms, theta = unit_arms(4, 90)
    persisted = client.persist(lazily(arms))
    assert agree(ao.regret_constant(persisted, theta), ao.regret_constant(arms, theta))


def test_workers_that_are_all_lost_and_come_back_cost_time_only():
    arms, theta = unit_arms(4, 200)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        gone = []

        def lose(progress):
            if not gone:
                gone.append(True)
                local.scale(0)
                threading.Timer(1.0, lambda: local.scale(1)).start()

        s = ao.regret_constant(lazily(arms), theta, client=client, callback=lose)
        assert gone and agree(s, ao.regret_constant(arms, theta))
        lost = []

        def lose_again(done, runs, seconds):
            if not lost:
                lost.append(True)
                local.scale(0)
                threading.Timer(1.0, lambda: local.scale(1)).start()

        bandit = ao.LinearBandit(arms[:6], theta)
        remote = ao.simulate("LinTS", bandit, 200, 40, rng=1, client=client, callback=lose_again)
        np.testing.assert_array_equal(remote.regret, ao.simulate("LinTS", bandit, 200, 40, rng=1).regret)


def hard_arms():
    """Arms that take several passes."""
    arms, theta = unit_arms(6, 3000, seed=4)
    return arms, theta


def test_a_client_that_is_closed_loses_no_certified_answer(cluster, monkeypatch):
    arms, theta = hard_arms()
    mine = distributed.Client(cluster, set_as_default=False)
    seen = []

    def close(progress):
        seen.append((progress.lower, progress.upper))
        mine.close()

    s = ao.regret_constant(lazily(arms, 500), theta, client=mine, tol=1e-13, callback=close)
    assert (s.lower, s.upper) == pytest.approx(seen[0], rel=1e-9)
    assert s.status is not ao.Status.FAILED and s.allocation[s.support].all()
    assert "the client was closed" in s.stats["reason"]
    with pytest.raises(ao.InvalidOption, match="client: expected a client that is connected, got one that is closed"):
        ao.regret_constant(lazily(arms, 500), theta, client=mine)
    with pytest.raises(ao.SolverFailed, match="the client was closed, or its scheduler is gone"):
        s.verify()


def test_ctrl_c_in_every_phase_gives_what_is_known(client, monkeypatch):
    arms, theta = hard_arms()
    array = lazily(arms, 500)
    plain = on_dask.results_in_order
    calls = []

    def counting(client, tasks):
        calls.append(len(tasks))
        return plain(client, tasks)

    monkeypatch.setattr(on_dask, "results_in_order", counting)
    ao.regret_constant(array, theta, client=client, tol=1e-9)
    total, known = len(calls), 0
    for moment in range(total):
        left = [moment]

        def interrupted(client, tasks, left=left):
            found = plain(client, tasks)
            if not left[0]:
                next(found)
                found.close()
                raise KeyboardInterrupt
            left[0] -= 1
            return found

        monkeypatch.setattr(on_dask, "results_in_order", interrupted)
        with pytest.raises(ao.Interrupted) as stopped:
            ao.regret_constant(array, theta, client=client, tol=1e-9)
        if stopped.value.solution is not None:
            known += 1
            assert stopped.value.solution.lower <= stopped.value.solution.upper < np.inf
    assert total > 6 and known > 0, (total, known)


def test_a_solution_over_dask_arms_can_be_saved_and_proven(client, tmp_path):
    arms, theta = unit_arms(4, 90)
    bandit = ao.LinearBandit(arms, theta)
    array = lazily(arms)
    spread = ao.LinearBandit(DaskArms(array, client), theta)
    programs = (
        ao.programs.regret,
        lambda b: ao.programs.optimism(b, 1.0),
        lambda b: ao.programs.remaining(b, np.arange(90), 1000),
    )
    for number, s in enumerate(
        (
            *(ao.solve(make(spread)) for make in programs),
            ao.optimal_pulls(array, bandit.gaps, 1000, client=client),
            ao.solve(ao.programs.g_optimal(DaskArms(array, client))),
        )
    ):
        assert s.lower <= s.verify().midpoint <= s.upper
        assert not s.verify(exact=True).problems
        s.save(tmp_path / f"{number}.json")
        again = ao.load_solution(tmp_path / f"{number}.json")
        assert again.program.kind == s.program.kind
        assert again.value == pytest.approx(s.value, rel=1e-7)
        assert again.verify().gap <= 1e-7


def test_an_array_that_is_too_large_for_a_file_is_said_so(client, tmp_path, monkeypatch):
    arms, theta = unit_arms(4, 90)
    s = ao.regret_constant(lazily(arms), theta, client=client)
    monkeypatch.setattr(on_dask, "_MOST_GATHERED", 100)
    with pytest.raises(ao.MethodUnavailable, match=r"90 × 4 numbers on a cluster are too many for a proof file"):
        s.save(tmp_path / "proof.json")
    assert not (tmp_path / "proof.json").exists()


@pytest.mark.parametrize("make", [lazily, lambda arms, chunk: da.from_array(arms, chunks=(chunk, 4))])
def test_thousands_of_small_chunks_are_some_tasks(client, monkeypatch, make):
    arms, theta = unit_arms(4, 20_000)
    tasks = []
    plain = on_dask.results_in_order
    monkeypatch.setattr(on_dask, "results_in_order", lambda c, t: tasks.append(len(t)) or plain(c, t))
    array = make(arms, 5)
    assert array.numblocks == (4000, 1)
    started = time.process_time()
    s = ao.regret_constant(array, theta, client=client, tol=1e-6)
    assert agree(s, ao.regret_constant(arms, theta, tol=1e-6), 1e-6)
    assert max(tasks, default=0) < 50
    assert time.process_time() - started < 60


def test_very_many_chunks_are_announced_and_a_task_of_them_costs_dask_no_more_than_one_of_few(monkeypatch):
    calls = []
    for count in (600, 1200):
        (group,) = groups(lazily(np.ones((2 * count, 2)), 2), 10**6)
        assert len(group.chunks) == count
        profile = cProfile.Profile()
        profile.runcall(dask.delayed(len, pure=False), group.chunks)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] <= calls[0] + 20
    monkeypatch.setattr(dask_chunks, "_VERY_MANY", 599)
    with pytest.warns(
        ao.SlowWarning, match=r"arms: a Dask array of 600 rows of chunks.*arms\.rechunk\(\(320, -1\)\)\.persist"
    ):
        groups(lazily(np.ones((1200, 2)), 2), 10)


def test_small_chunks_that_are_persisted_are_refused_with_what_to_do(client):
    persisted = client.persist(lazily(np.ones((1200, 2)), 2))
    with pytest.raises(
        ao.InvalidInstance, match=r"at most 512 rows of chunks .* got 600.*arms\.rechunk\(\([0-9]+, -1\)\)"
    ):
        ao.LinearBandit(persisted, [1.0, 0.0])


def test_arms_that_differ_each_time_are_named_before_all_are_looked_at(client, tmp_path):
    folder = str(tmp_path)

    def unseeded(rows):
        open(os.path.join(folder, str(time.time_ns())), "w", encoding="utf-8").close()
        return np.random.default_rng().normal(size=rows.shape)

    array = da.zeros((200, 3), chunks=(10, 3)).map_blocks(unseeded, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(
        ao.InvalidInstance, match=r"the same each time it is computed, but chunk \(0, 0\) .*rows 0 to 9\) is not"
    ):
        ao.regret_constant(array, np.ones(3), client=client)
    assert len(os.listdir(folder)) == 2  # the first chunk, twice


def test_a_later_chunk_that_differs_is_named(client):
    arms, theta = unit_arms(3, 200)

    def one_unseeded(rows, block_info=None):
        return rows + (np.random.default_rng().normal() if block_info[0]["chunk-location"][0] == 7 else 0.0)

    array = da.from_array(arms, chunks=(10, 3)).map_blocks(one_unseeded, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ao.InvalidInstance, match=r"chunk \(7, 0\) of the Dask array \(rows 70 to 79\) is not"):
        ao.regret_constant(array, theta, client=client)


def test_a_mapped_file_in_a_graph_is_looked_at_here_and_not_sent(client, tmp_path, monkeypatch):
    arms, theta = unit_arms(4, 600_000)
    np.save(tmp_path / "arms.npy", arms)
    array = da.from_array(np.load(tmp_path / "arms.npy", mmap_mode="r"), chunks=(100_000, 4))
    monkeypatch.setattr(on_dask, "results_in_order", lambda *_: pytest.fail("sent"))
    assert agree(
        ao.regret_constant(array, theta, client=client, tol=1e-6), ao.regret_constant(arms, theta, tol=1e-6), 1e-6
    )


def test_what_is_no_client_is_said(client):
    arms, theta = unit_arms(4, 90)
    with pytest.raises(ao.InvalidOption, match=r"client: expected a dask\.distributed\.Client, got a str"):
        ao.regret_constant(lazily(arms), theta, client="tcp://somewhere:1")
