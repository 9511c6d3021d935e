"""Arms in an array or a mapped file: taken as they are, shared or copied, never changed; what cannot be meant is refused."""

import numpy as np
import pytest
from blocks import (
    agree,
    check_consistency,
    in_blocks,
    never_in_blocks,
    regret,
    same_interval,
    streamed_bandit,
    unit_arms,
)
from hypothesis import given, settings
from strategies import bandits

import allocopt as ao
from allocopt.base.errors import InvalidInstance
from allocopt.model.arms import ListedArms, open_store


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
    assert bandit._store is not None
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


def test_a_set_is_large_from_100000_entries_and_ten_thousand_arms():
    arms, theta = unit_arms(20, 105_000)
    assert isinstance(open_store(arms), ListedArms)
    assert open_store(arms[:9_999]) is None and open_store(arms[:20_000, :4]) is None
    assert open_store(arms.reshape(-1, 20 * 21)) is None
    assert open_store(arms.tolist()[:10]) is None
    s = ao.regret_constant(arms, theta, tol=1e-6)
    assert s.program._blocks is not None
    assert s.status is ao.Status.CERTIFIED
    assert s.stats["passes"] <= 4
    with never_in_blocks():
        dense = ao.LinearBandit(arms, theta)
        assert dense._store is None
        assert agree(s, regret(dense, tol=1e-6))
    check_consistency(s)


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
            (lambda: ao.regret_constant(arms * 0, theta), "every arm is the zero vector"),
            (lambda: ao.solve(ao.programs.g_optimal(arms * 0)), "every arm is the zero vector"),
            (
                lambda: ao.regret_constant(arms, theta[:4]),
                r"theta: expected 5 entries \(the arms have 5 columns\), got 4",
            ),
            (lambda: ao.regret_constant(arms, theta * np.nan), "theta: expected finite numbers"),
            (lambda: ao.regret_constant(arms * 1e60, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (lambda: ao.regret_constant(arms * 1e200, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (lambda: ao.regret_constant(arms * 1e-60, theta), "arms: expected magnitudes between 1e-50 and 1e.50"),
            (lambda: ao.optimal_pulls(arms, np.ones(399), 1000), "gaps: expected 400 entries, one per arm, got 399"),
            (lambda: ao.optimal_pulls(arms, -np.ones(400), 1000), "gaps: expected entries >= 0, but entry 0 is -1.0"),
            (lambda: ao.optimal_pulls(arms, np.full(400, 1e-60), 1000), "gaps: expected magnitudes"),
        ):
            with pytest.raises(InvalidInstance, match=message):
                make()
