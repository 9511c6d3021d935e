"""One Solution, one AllocationProgram, one LinearBandit, wherever the arms are: replaced, pickled and copied alike."""

import copy
import dataclasses
import pickle

import dask.array as da
import numpy as np
import pytest
from blocks import in_blocks

import allocopt as ao
from allocopt.base.lazy import Lazy, lazy_fields, payload
from allocopt.model.solution import SparseVector, arms_in_use

RNG = np.random.default_rng(0)
ARMS, THETA = RNG.normal(size=(60, 3)), RNG.normal(size=3)


def small():
    return ao.solve(ao.programs.regret(ao.LinearBandit(ARMS, THETA)))


def compiled():
    return ao.Allocator(ARMS).solve(ao.LinearBandit(ARMS, THETA).gaps)


def streamed():
    with in_blocks():
        return ao.solve(ao.programs.regret(ao.LinearBandit(ARMS, THETA)))


def on_dask():
    return ao.solve(ao.programs.regret(ao.LinearBandit(da.from_array(ARMS, chunks=(20, 3)), THETA)))


EVERYWHERE = pytest.mark.parametrize("made", [small, compiled, streamed, on_dask])


def same(one, other):
    assert type(one) is type(other) is ao.Solution
    for field in dataclasses.fields(one):
        if field.name == "program":
            assert repr(one.program) == repr(other.program)
        else:
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


@EVERYWHERE
def test_solutions_are_replaced_pickled_and_copied(made):
    s = made()
    assert type(s) is ao.Solution
    assert type(s.program) is ao.AllocationProgram
    same(copy.copy(s), s)
    if made is not on_dask:  # a Dask array would take its graph along
        same(copy.deepcopy(s), s)
        same(pickle.loads(pickle.dumps(s)), s)
    looser = dataclasses.replace(s, tol=1e-3)
    assert looser.tol == 1e-3
    same(dataclasses.replace(looser, tol=s.tol), s)
    half = dataclasses.replace(s, allocation=np.where(np.isinf(s.allocation), np.inf, 0.5 * s.allocation))
    assert np.array_equal(half.support, s.support)
    arms, alpha, lam = arms_in_use(half)
    assert np.array_equal(alpha, 0.5 * arms_in_use(s)[1])
    assert np.array_equal(arms, arms_in_use(s)[0])
    assert np.array_equal(lam, arms_in_use(s)[2])


@EVERYWHERE
def test_every_solution_knows_its_arms(made):
    s = made()
    assert np.array_equal(s.support, np.flatnonzero((s.allocation > 0) & np.isfinite(s.allocation)))
    assert np.array_equal(s.optimal_arms, np.flatnonzero(np.isinf(s.allocation)))
    assert np.array_equal(s.optimal_arms, s.program.free)
    assert len(s.multipliers) == s.program.n_multipliers == 60
    assert set(s.binding) <= set(np.flatnonzero(s.program.costs > 0))
    assert not s.allocation.flags.writeable
    assert not s.multipliers.flags.writeable
    assert s.verify().lower <= s.upper


def test_a_streamed_program_that_is_changed_is_one_of_arrays():
    with in_blocks():
        program = ao.programs.regret(ao.LinearBandit(ARMS, THETA))
        assert program._blocks is not None
        bounded = dataclasses.replace(program, upper=np.where(program.costs > 0, 1e6, np.inf))
    assert bounded._blocks is None
    assert bounded.bounded
    assert not program.bounded
    for name in ("features", "costs", "targets", "radii", "lower", "target_arms"):
        assert np.array_equal(getattr(bounded, name), getattr(program, name))
    restored = pickle.loads(pickle.dumps(program))
    assert restored._blocks is not None
    assert np.array_equal(restored.features, program.features)


@pytest.mark.parametrize("where", ["memory", "blocks", "Dask"])
def test_bandits_are_replaced_and_copied(where):
    arms = da.from_array(ARMS, chunks=(20, 3)) if where == "Dask" else ARMS
    if where == "blocks":
        with in_blocks():
            b = ao.LinearBandit(arms, THETA)
            louder = dataclasses.replace(b, noise_variance=4.0)
    else:
        b = ao.LinearBandit(arms, THETA)
        louder = dataclasses.replace(b, noise_variance=4.0)
    assert louder.noise_variance == 4.0
    assert np.array_equal(louder.gaps, b.gaps)
    assert np.array_equal(copy.copy(b).gaps, b.gaps)
    assert b.rank == 3


@lazy_fields("first", "second")
@dataclasses.dataclass(frozen=True)
class _Pair:
    first: int
    second: int = 7


def test_a_lazy_field_is_made_once_and_only_if_somebody_asks():
    made = []
    pair = _Pair(Lazy(lambda: made.append(1) or 3))
    assert made == []
    assert (pair.first, pair.first, pair.second) == (3, 3, 7)
    assert made == [1]
    assert isinstance(payload(pair, "first"), Lazy)
    assert dataclasses.replace(pair, second=8) == _Pair(3, 8)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.first = 4


def test_a_sparse_vector_in_full():
    vector = SparseVector(5, np.array([1, 3]), np.array([2.0, 4.0]), np.array([0]))
    assert vector.value.tolist() == [np.inf, 2.0, 0.0, 4.0, 0.0]
    assert pickle.loads(pickle.dumps(vector)).value.tolist() == vector.value.tolist()
