"""One BLAS thread where it is asked for, and as many as before afterwards."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

import allocopt as ao
from allocopt.base.machine import single_threaded

assert scipy.linalg  # it brings a BLAS of its own


def threads():
    return {x["filepath"]: x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield threads()


def test_every_blas_has_one_thread_inside_and_its_own_number_afterwards(two_threads):
    assert two_threads
    with single_threaded():
        assert set(threads().values()) == {1}
        assert (np.ones((3, 3)) @ np.ones(3)).tolist() == [3.0] * 3
    assert threads() == two_threads


def test_contexts_may_be_nested(two_threads):
    with single_threaded():
        with single_threaded():
            assert set(threads().values()) == {1}
        assert set(threads().values()) == {1}
    assert threads() == two_threads


def test_threads_come_back_after_an_error_too(two_threads):
    with pytest.raises(ZeroDivisionError), single_threaded():
        raise ZeroDivisionError
    assert threads() == two_threads


def test_contexts_that_overlap_in_threads_leave_nothing_behind(two_threads):
    """One begins, another begins, the first ends, the other ends: whoever is last gives back what was there at the beginning."""
    first, second = single_threaded(), single_threaded()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads().values()) == {1}  # somebody still wants it
    second.__exit__(None, None, None)
    assert threads() == two_threads


def test_solves_in_several_threads_leave_blas_as_it_was(two_threads):
    arms = np.random.default_rng(0).normal(size=(200, 5))
    programs = [ao.programs.regret(ao.LinearBandit(arms, np.eye(5)[i])) for i in range(5)] * 4
    with ThreadPoolExecutor(4) as pool:
        statuses = {s.status for s in pool.map(ao.solve, programs)}
    assert statuses == {ao.Status.CERTIFIED}
    assert threads() == two_threads
