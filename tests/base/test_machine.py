"""One BLAS thread where it is asked for, and as many as before afterwards."""

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

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
