"""One BLAS thread where it is asked for, and as many as before afterwards."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

import allocopt as ao
from allocopt.base import machine
from allocopt.base.errors import InvalidInstance
from allocopt.base.machine import check_memory, duration_text, free_memory, single_threaded, size_text, threads_of_numpy

assert scipy.linalg  # it brings a BLAS of its own


def threads():
    return {x["filepath"]: x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield threads()


def numpys(found):
    return {path: n for path, n in found.items() if "numpy" in path.rpartition("/")[0].rpartition("/")[2]}


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


def test_contexts_of_different_threads_that_are_alive_hold_and_leave_nothing_behind(two_threads):
    """threadpoolctl itself listens to one thread only, as long as that lives."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as another:
        first, second = single_threaded(), single_threaded()
        one.submit(first.__enter__).result()
        assert set(threads().values()) == {1}
        another.submit(second.__enter__).result()
        one.submit(first.__exit__, None, None, None).result()
        assert set(threads().values()) == {1}
        another.submit(second.__exit__, None, None, None).result()
        assert threads() == two_threads
        with single_threaded():
            assert set(threads().values()) == {1}
        assert threads() == two_threads
    with threadpoolctl.threadpool_limits(1, user_api="blas"):  # nor do they keep others from limits of their own
        assert set(threads().values()) == {1}
    assert threads() == two_threads


def test_solves_in_several_threads_leave_blas_as_it_was(two_threads):
    arms = np.random.default_rng(0).normal(size=(200, 5))
    programs = [ao.programs.regret(ao.LinearBandit(arms, np.eye(5)[i])) for i in range(5)] * 4
    with ThreadPoolExecutor(4) as pool:
        statuses = {s.status for s in pool.map(ao.solve, programs)}
    assert statuses == {ao.Status.CERTIFIED}
    assert threads() == two_threads


def test_large_masters_use_all_threads_and_leave_their_number_as_it_was(two_threads, monkeypatch):
    from allocopt.solvers import interior_point

    rng = np.random.default_rng(0)
    arms, theta = rng.normal(size=(300, 12)), rng.normal(size=12)
    seen, minimise = [], interior_point.minimise

    def watched(*given, **how):
        found = {library: now for library, now in threads().items() if two_threads.get(library) == 2}
        seen.append(
            set((numpys(found) or found).values())
        )  # where scipy has one of its own, it has one thread throughout
        return minimise(*given, **how)

    monkeypatch.setattr(interior_point, "minimise", watched)
    for threads_from, inside in ((1.0, {2}), (1e30, {1})):
        seen.clear()
        program = ao.programs.regret(ao.LinearBandit(np.tile(arms, (8, 1)) * rng.uniform(0.5, 1, (2400, 1)), theta))
        ao.solve(program, method="active-set", tol=1e-6, threads_from=threads_from)
        assert seen and all(found == inside for found in seen)
        assert threads() == two_threads
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: ao.solve(program, method="active-set", tol=1e-6, threads_from=1e30**n), range(3)))
    assert threads() == two_threads


def test_what_does_not_fit_into_free_memory_is_refused_with_its_size(monkeypatch, tmp_path):
    assert free_memory() is None or free_memory() > 0
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    assert free_memory() is None
    check_memory(1e30, "n", InvalidInstance)  # nobody says how much there is
    (tmp_path / "meminfo").write_text("MemTotal: 9999 kB\nMemAvailable:    2000 kB\nSwapFree: 1000 kB\n")
    assert free_memory() == 3_072_000
    check_memory(2_700_000, "n", InvalidInstance)
    with pytest.raises(InvalidInstance, match=r"^n: so many would take 2\.8 MB of memory, but 3\.07 MB are free$"):
        check_memory(2_800_000, "n: so many", InvalidInstance)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("500000\n")
    assert free_memory() == 3_072_000
    (tmp_path / "memory.max").write_text("1500000\n")
    assert free_memory() == 1_000_000
    (tmp_path / "memory.max").write_text("100\n")
    assert free_memory() == 0


def test_sizes_and_times_are_said_in_units_that_suit_them():
    assert [size_text(x) for x in (0, 999, 1e3, 2.5e15, 4e18)] == ["0 bytes", "999 bytes", "1 kB", "2.5 PB", "4e+03 PB"]
    assert [duration_text(x) for x in (0.5, 89, 90, 3e4, 2e5, 1e8)] == [
        "0.5 seconds", "89 seconds", "1.5 minutes", "8.3 hours", "2.3 days", "3.2 years",
    ]  # fmt: skip


def test_where_numpy_and_scipy_have_a_blas_each_only_that_of_numpy_keeps_its_threads(two_threads):
    import scipy.linalg  # noqa: F401  # its BLAS

    before = threads()
    with threads_of_numpy():
        if numpys(before) and len(before) > 1:
            assert numpys(threads()) == numpys(before)
            assert {n for path, n in threads().items() if path not in numpys(before)} == {1}
        else:  # they share one
            assert threads() == before
    assert threads() == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_contexts_of_both_kinds_may_overlap_in_any_order(two_threads, order):
    """As in two threads, of which the one that came first also goes first: afterwards everything is as it was."""
    before = threads()
    one, many = single_threaded, threads_of_numpy
    contexts = [(one, many)[i]() for i in order]
    for context in contexts:
        context.__enter__()
    assert (numpys(threads()) or threads()) == (numpys(before) or before)  # a large product inside a small solve
    contexts[0].__exit__(None, None, None)
    if order == (1, 0):
        assert set(threads().values()) == {1}
    else:
        assert numpys(threads()) == numpys(before)
    contexts[1].__exit__(None, None, None)
    assert threads() == before


def test_a_limit_of_the_process_itself_counts_too(monkeypatch):
    if machine.resource is None or not machine._OWN.exists():
        pytest.skip("no such limits here")
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (10**15, 10**15))
    some = free_memory()
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (1, 1))
    assert some is not None and some > 0 and free_memory() == 0
