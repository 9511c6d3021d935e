"""Nothing that is passed in becomes another number in silence: it is taken as it is, rounded as documented, or refused by name."""

import dataclasses
import json
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import dask.array as da
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import bandits

import allocopt as ao
from allocopt.base.conversion import unchanging
from allocopt.base.errors import InvalidFile, InvalidInstance, InvalidProgram
from allocopt.insight.instances.files import read_instance, read_vector
from allocopt.model.arms import ListedArms, blocks, open_store, opening
from allocopt.model.arms.fingerprints import fingerprint

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]]
THETA = [1.0, 0.0]
GAPS = [0.0, 1.0, 0.25]
ODD = 2**53 + 1  # the first whole number that is no double
MASKED = "expected numbers, got a masked array; fill or drop the masked entries first"


@contextmanager
def in_blocks(rows=7):
    """Every array is a large set, in blocks of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LARGE", "SHARED", "MANY"):
            patch.setattr(opening, name, 0)
        patch.setattr(blocks, "block_rows", lambda *shape: rows)
        yield


def unit_arms(dim, count, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dim))
    theta = rng.normal(size=dim)
    return rows / np.linalg.norm(rows, axis=1)[:, None], theta / np.linalg.norm(theta)


class Converts:
    """Something that NumPy asks for an array."""

    def __init__(self, answer):
        self.answer = answer

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


ENTRANCES = {
    "arms of a bandit": (InvalidInstance, "arms", lambda x: ao.LinearBandit(x, THETA)),
    "arms of optimal_pulls": (InvalidInstance, "arms", lambda x: ao.optimal_pulls(x, GAPS, 100)),
    "arms of a design": (InvalidInstance, "arms", ao.programs.g_optimal),
    "arms of a spanner": (InvalidInstance, "arms", ao.barycentric_spanner),
    "arms of an allocator": (InvalidInstance, "arms", ao.Allocator),
    "arms of many": (InvalidInstance, "arms", lambda x: ao.solve_many(x, [GAPS])),
    "features": (InvalidProgram, "features", lambda x: ao.AllocationProgram(x, GAPS, [[1.0, 1.0]], [1.0])),
    "targets": (InvalidProgram, "targets", lambda x: ao.AllocationProgram(ARMS, GAPS, x, [1.0] * 3)),
    "gaps of many": (InvalidInstance, "gaps", lambda x: ao.solve_many(np.eye(2), x)),
}
VECTORS = {
    "theta": (InvalidInstance, "theta", lambda x: ao.LinearBandit(ARMS, x[:2])),
    "gaps": (InvalidInstance, "gaps", lambda x: ao.optimal_pulls(ARMS, x, 100)),
    "gaps of an allocator": (InvalidInstance, "gaps", lambda x: ao.Allocator(ARMS).solve(x)),
    "costs": (InvalidProgram, "costs", lambda x: ao.AllocationProgram(ARMS, x, ARMS, [1.0] * 3)),
    "radii": (InvalidProgram, "radii", lambda x: ao.AllocationProgram(ARMS, GAPS, ARMS, x)),
    "upper": (InvalidProgram, "upper", lambda x: ao.AllocationProgram(ARMS, GAPS, ARMS, [1.0] * 3, upper=x)),
    "pulls": (InvalidInstance, "pulls", lambda x: ao.programs.remaining(ao.LinearBandit(ARMS, THETA), x, 100)),
}
OF_A_MATRIX = pytest.mark.parametrize("entrance", ENTRANCES)
OF_A_VECTOR = pytest.mark.parametrize("entrance", VECTORS)


# Masks


@OF_A_MATRIX
def test_masked_matrices_are_refused_by_name(entrance):
    error, name, call = ENTRANCES[entrance]
    masked = np.ma.masked_array(np.array(ARMS), mask=[[0, 0], [0, 1], [0, 0]])
    for value in (masked, list(masked), Converts(masked), [[1.0, 0.0], [0.0, np.ma.masked], [0.5, 0.5]]):
        with pytest.raises(error, match=f"^{name}: {MASKED}"):
            call(value)


@OF_A_VECTOR
def test_masked_vectors_are_refused_by_name(entrance):
    error, name, call = VECTORS[entrance]
    with pytest.raises(error, match=f"^{name}: {MASKED}"):
        call(np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]))


def test_masked_arrays_with_nothing_masked_are_the_numbers_they_hold():
    bandit = ao.LinearBandit(np.ma.masked_array(ARMS), np.ma.masked_array(THETA, mask=[False, False]))
    assert type(bandit.arms) is np.ndarray
    assert np.array_equal(bandit.arms, ARMS)


def test_masks_of_large_arrays_and_of_dask_chunks_are_not_lost():
    rows, theta = unit_arms(3, 60)
    masked = np.ma.masked_array(rows, mask=np.arange(180).reshape(60, 3) == 100)
    with in_blocks(), pytest.raises(InvalidInstance, match=MASKED):
        ao.LinearBandit(masked, theta)
    assert ao.LinearBandit(da.from_array(np.ma.masked_array(rows), chunks=(20, 3)), theta).n_arms == 60
    for columns in (3, 2):
        array = da.from_array(masked, chunks=(20, columns))
        with pytest.raises(
            InvalidInstance, match=rf"{MASKED}; it is chunk \(1, 0\) of the Dask array \(rows 20 to 39\)"
        ):
            ao.LinearBandit(array, theta)
        with pytest.raises(InvalidInstance, match=MASKED):
            open_store(array).rows(np.array([33]))


# Whole numbers that are no doubles


WHOLE = {
    "a list": lambda x: x.tolist(),
    "beside floats": lambda x: [[*row[:-1], float(row[-1])] for row in x.tolist()],
    "int64": lambda x: x.astype(np.int64),
    "uint64": lambda x: x.astype(np.uint64),
    "big-endian": lambda x: x.astype(">i8"),
    "objects": lambda x: x.astype(object),
    "rows of two types": lambda x: [x[0].astype(np.int64), x[1].astype(np.float64), x[2].astype(np.int64)],
    "Fractions": lambda x: [[Fraction(v) for v in row] for row in x.tolist()],
    "Decimals": lambda x: [[Decimal(v) for v in row] for row in x.tolist()],
}


def whole(entry):
    rows = np.array([[1, 2], [3, 4], [5, 6]], dtype=object)
    rows[2, 0] = entry
    return rows


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("entry", [ODD, 2**60 + 1, 2**63 - 1])
def test_whole_numbers_that_are_no_doubles_are_refused_with_their_place(kind, entry):
    value = WHOLE[kind](whole(entry))
    for make in (lambda: ao.LinearBandit(value, THETA), lambda: ao.programs.g_optimal(value)):
        with pytest.raises(
            InvalidInstance, match=f"arms: expected numbers that are doubles, but row 2, column 0 is .*{entry}"
        ):
            make()


def test_the_refusal_names_the_nearest_double():
    with pytest.raises(
        InvalidInstance, match=f"is {ODD} and the nearest double is {2**53}; use other units or round it"
    ):
        ao.LinearBandit([[ODD, 1], [1, 1]], THETA)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("entry", [2**53, 2**53 + 2, 3 * 2**60, 2**62])
def test_whole_numbers_that_are_doubles_are_kept(kind, entry):
    bandit = ao.LinearBandit(WHOLE[kind](whole(entry)), THETA)
    assert int(bandit.arms[2, 0]) == entry


@pytest.mark.parametrize("entry", [-(2**63), -(2**53), -(2**63) + 2**11])
def test_negative_ones_too(entry):
    assert int(ao.LinearBandit(whole(entry).astype(np.int64), THETA).arms[2, 0]) == entry
    for wrong in (-ODD, -(2**63) + 1):
        with pytest.raises(InvalidInstance, match=f"row 2, column 0 is {wrong}"):
            ao.LinearBandit(whole(wrong).astype(np.int64), THETA)


@OF_A_VECTOR
def test_whole_numbers_of_vectors_are_refused_too(entrance):
    error, name, call = VECTORS[entrance]
    for value in ([1, ODD, 2], np.array([1, ODD, 2]), [1.0, ODD, 2.0]):
        with pytest.raises(error, match=f"^{name}: expected numbers that are doubles, but entry 1 is {ODD}"):
            call(value)


def test_fractions_and_decimals_are_rounded_as_one_tenth_is():
    bandit = ao.LinearBandit([[Fraction(1, 10), 1], [Decimal("0.1"), Fraction(2**60) + Fraction(1, 3)]], [1, 0])
    assert bandit.arms.tolist() == [[0.1, 1.0], [0.1, 2.0**60]]


def test_whole_numbers_of_large_arrays_and_dask_chunks_are_refused_too():
    rows = np.random.default_rng(0).integers(-5, 5, (60, 3))
    rows[33, 1] = ODD
    with in_blocks():
        for make in (lambda: ao.LinearBandit(rows, [1, 0, 0]), lambda: ao.solve_many(rows, np.ones((1, 60)))):
            with pytest.raises(InvalidInstance, match=f"arms: .* row 33, column 1 is {ODD}"):
                make()
        with pytest.raises(InvalidInstance, match=f"row 33, column 1 is {ODD}"):
            list(ListedArms(rows).scan(lambda start, block: None))
        with pytest.raises(InvalidInstance, match=f"row 33, column 1 is {ODD}"):
            ListedArms(rows).rows(np.array([2, 33]))
    for columns in (3, 2):
        with pytest.raises(InvalidInstance, match=f"column 1 is {ODD}"):
            ao.LinearBandit(da.from_array(rows, chunks=(20, columns)), [1, 0, 0])
    with pytest.raises(InvalidInstance, match=f"row 33, column 1 is {ODD}"):
        open_store(da.from_array(rows, chunks=(20, 3))).rows(np.array([33]))


def test_whole_numbers_in_files_are_refused_too(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.json").write_text(json.dumps({"arms": [[1, 0.5], [ODD, 1]], "theta": [1, 0]}))
    (tmp_path / "a.csv").write_text(f"1,0.5\n{ODD},1\n")
    parquet.write_table(pyarrow.table({"x": [1, ODD], "y": [0.5, 1.0]}), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", arms=np.array([[1, 5], [ODD, 1]]))
    for ending in ("json", "csv", "parquet", "npz"):
        with pytest.raises(InvalidFile, match=rf"a\.{ending}: .*expected numbers that are doubles.*{ODD}"):
            read_instance(tmp_path / f"a.{ending}")
    with pytest.raises(InvalidInstance, match=f"theta: expected numbers that are doubles, but entry 1 is {ODD}"):
        read_vector("theta", f"1,{ODD}")
    assert read_vector("theta", f"1e23,{2**60},+9007199254740994").tolist() == [1e23, 2.0**60, 2.0**53 + 2]


# Long doubles


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long doubles are doubles here")
def test_long_doubles_are_refused_where_they_would_be_rounded():
    fine = np.longdouble(1) + np.finfo(np.longdouble).eps
    exact = np.array(ARMS, dtype=np.longdouble)
    assert np.array_equal(ao.LinearBandit(exact, THETA).arms, ARMS)
    for value in ([[fine, 0], [1, 0]], np.array([[fine, 0], [1, 0]]), np.array([[fine, 0], [1, 0]], dtype=object)):
        with pytest.raises(
            InvalidInstance, match=r"arms: expected numbers that are doubles, but row 0, column 0 is 1\.0000"
        ):
            ao.LinearBandit(value, THETA)
    with pytest.raises(InvalidInstance, match=r"theta: expected numbers that are doubles, but entry 0 is 1e\+4000"):
        ao.LinearBandit(ARMS, np.array(["1e4000", "0"], dtype=np.longdouble))
    with pytest.raises(InvalidInstance, match="gaps: expected numbers that are doubles, but row 0, column 1"):
        ao.solve_many(np.eye(2), np.array([[0, fine]]))
    with pytest.raises(InvalidInstance, match="row 1, column 0"):
        ao.LinearBandit(da.from_array(np.array([[1, 0], [fine, 0], [0, 1]]), chunks=(3, 2)), THETA)


# Dask chunks that are not what was declared


def declared(make, dtype=float, rows=(20, 20, 20), columns=(3,)):
    """A Dask array whose second row of chunks is what ``make`` makes of it."""
    whole_array, _ = unit_arms(sum(columns), sum(rows))

    def chunk(block, block_info=None):
        return make(block) if block_info[0]["chunk-location"][0] == 1 else block

    return da.from_array(whole_array, chunks=(rows, columns)).map_blocks(chunk, dtype=dtype, chunks=(rows, columns))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x[:7], r"to have shape \(20, 3\) as declared, got \(7, 3\)"),
        (lambda x: np.concatenate([x, x]), r"to have shape \(20, 3\) as declared, got \(40, 3\)"),
        (lambda x: x[:, :2], r"to have shape \(20, 3\) as declared, got \(20, 2\)"),
        (lambda x: np.hstack([x, x]), r"to have shape \(20, 3\) as declared, got \(20, 6\)"),
        (lambda x: x[0], r"to have shape \(20, 3\) as declared, got \(3,\)"),
        (lambda x: x * 1j, "to hold numbers of type float64 as declared, got complex128"),
        (lambda x: x.astype(object), "to hold numbers of type float64 as declared, got object"),
        (lambda x: x.astype(str), "to hold numbers of type float64 as declared, got <U"),
    ],
)
def test_chunks_that_are_not_what_was_declared_are_refused_by_name(make, words):
    theta = np.array([1.0, 0.0, 0.0])
    array = declared(make)
    for call in (
        lambda: ao.LinearBandit(array, theta),
        lambda: ao.programs.g_optimal(array),
        lambda: ao.programs.horizon(array, np.ones(60), 1000),
        lambda: open_store(array).rows(np.array([25])),
    ):
        with pytest.raises(
            InvalidInstance, match=rf"arms: expected chunk \(1, 0\) of the Dask array \(rows 20 to 39\) {words}"
        ):
            call()


def test_chunks_side_by_side_are_checked_one_by_one():
    array = declared(lambda x: x[:, :1], columns=(2, 2))
    with pytest.raises(InvalidInstance, match=r"chunk \(1, 0\) .* shape \(20, 2\) as declared, got \(20, 1\)"):
        ao.programs.g_optimal(array)
    fine = declared(lambda x: x.astype(np.float32).astype(float), columns=(2, 2))
    assert ao.solve(ao.programs.g_optimal(fine)).value == pytest.approx(4.0)


def test_nan_in_a_chunk_is_refused_with_its_place():
    array = declared(lambda x: np.where(np.arange(60).reshape(20, 3) == 16, np.nan, x))
    with pytest.raises(InvalidInstance, match="expected finite numbers, but row 25, column 1 is not"):
        ao.LinearBandit(array, [1, 0, 0])


# Arrays that are written to after they were passed


CHANGES = {
    "one entry by a hair": lambda x: x.__setitem__((33, 1), np.nextafter(x[33, 1], 2)),
    "one sign": lambda x: x.__setitem__((33, 1), -x[33, 1]),
    "a zero's sign": lambda x: x.__setitem__((0, 0), -0.0),
    "negated": lambda x: np.negative(x, out=x),
    "doubled": lambda x: np.multiply(x, 2, out=x),
    "two rows swapped": lambda x: x.__setitem__([40, 41], x[[41, 40]]),
    "reversed": lambda x: x.__setitem__(slice(None), x[::-1].copy()),
    "shuffled": lambda x: np.random.default_rng(0).shuffle(x),
    "every other row negated": lambda x: np.negative(x[::2], out=x[::2]),
    "zeroed": lambda x: x.fill(0.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "columns", "order"), [(64, 4, "C"), (8192, 20, "C"), (8192, 20, "F"), (20_001, 3, "C")]
)
def test_a_fingerprint_changes_with_what_it_is_of(change, dtype, rows, columns, order):
    array = np.asarray(unit_arms(columns, rows)[0], dtype=dtype, order=order)
    array[0, 0] = 0.0
    before = fingerprint(array)
    assert fingerprint(array.copy()) == before
    if change == "one entry by a hair" and dtype == np.float32:
        array[33, 1] = np.nextafter(array[33, 1], np.float32(2))
    else:
        CHANGES[change](array)
    assert fingerprint(array) != before


@pytest.mark.parametrize("change", CHANGES)
def test_arms_that_change_between_building_and_solving_are_noticed(change):
    arms, theta = unit_arms(4, 300)
    arms[0, 0] = 0.0
    with in_blocks(16):
        bandit = ao.LinearBandit(arms, theta)
        assert np.shares_memory(bandit.arms, arms)
        program, design = ao.programs.regret(bandit), ao.programs.g_optimal(arms)
        value = ao.solve(program).value
        assert not bandit._store.changed()
        bandit.check_unchanged()
        CHANGES[change](arms)
        assert bandit._store.changed()
        for call in (
            lambda: ao.solve(program),
            lambda: ao.solve(design),
            bandit.check_unchanged,
            lambda: ao.solve(program, "interior-point"),
            lambda: ao.programs.best_arm(bandit),
            lambda: bandit.gaps,
        ):
            with (
                np.errstate(all="ignore"),
                pytest.raises(InvalidInstance, match="arms: expected arms that stay as they are, but those from row"),
            ):
                call()
        if change == "negated":
            assert ao.regret_constant(arms, -theta).value == pytest.approx(value)  # built anew: no complaint


def test_a_mapped_file_that_changes_is_noticed(tmp_path):
    arms, theta = unit_arms(4, 300)
    np.save(tmp_path / "arms.npy", arms)
    with in_blocks():
        program = ao.programs.regret(ao.LinearBandit(np.load(tmp_path / "arms.npy", mmap_mode="r"), theta))
        ao.solve(program)
        written = np.load(tmp_path / "arms.npy", mmap_mode="r+")
        written[100] *= 1.5
        with pytest.raises(InvalidInstance, match="stay as they are"):
            ao.solve(program)


def test_chunks_that_come_out_differently_each_time_are_noticed():
    rng = np.random.default_rng(0)
    array = declared(lambda x: x + 1e-3 * rng.normal(size=x.shape))
    with pytest.raises(
        InvalidInstance,
        match=r"the same each time it is computed, but chunk \(1, 0\) of the Dask array \(rows 20 to 39\)",
    ):
        ao.solve(ao.programs.regret(ao.LinearBandit(array, [1, 0, 0])))


def test_read_only_views_of_writeable_arrays_are_copied():
    for count in (3, 150_000):  # in memory as a whole, and in blocks
        mine = np.tile(ARMS, (count // 3, 1))
        view = mine.view()
        view.flags.writeable = False
        bandit = ao.LinearBandit(view, THETA)
        mine[:] = 7.0
        assert np.array_equal(bandit.arms[:3], ARMS)


def test_read_only_arrays_that_own_their_memory_are_shared():
    mine = np.array(ARMS)
    mine.flags.writeable = False
    assert unchanging(mine) and unchanging(mine[1:].T)
    assert np.shares_memory(ao.LinearBandit(mine, THETA).arms, mine)
    buffer = np.frombuffer(bytearray(mine.tobytes()))
    buffer.flags.writeable = False
    assert not unchanging(buffer)


# Small entries


@pytest.mark.parametrize("tiny", [1e-151, -1e-200, 5e-324])
def test_entries_whose_products_would_vanish_are_refused_by_name(tiny):
    arms = [[1.0, 0.0], [0.5, tiny], [0.0, 1.0]]
    words = f"zero or of magnitude 1e-150 at least, but {{}} is {abs(tiny):g}; use other units or 0"
    for error, name, where, call in (
        (InvalidInstance, "arms", "row 1, column 1", lambda: ao.LinearBandit(arms, THETA)),
        (InvalidInstance, "arms", "row 1, column 1", lambda: ao.programs.g_optimal(arms)),
        (InvalidInstance, "arms", "row 1, column 1", lambda: ao.optimal_pulls(arms, GAPS, 100)),
        (InvalidInstance, "theta", "entry 1", lambda: ao.LinearBandit(ARMS, [1.0, tiny])),
        (InvalidProgram, "features", "row 1, column 1", lambda: ao.AllocationProgram(arms, GAPS, ARMS, [1.0] * 3)),
        (InvalidProgram, "targets", "row 1, column 1", lambda: ao.AllocationProgram(ARMS, GAPS, arms, [1.0] * 3)),
    ):
        with pytest.raises(error, match=f"{name}: expected entries that are {words.format(where)}"):
            call()


def test_entries_that_are_small_enough_to_be_odd_are_fine():
    assert ao.LinearBandit([[1.0, 1e-150], [0.0, -0.0], [0.5, 1.0]], THETA).n_arms == 3


@given(bandits(), st.floats(1e-50, 1e50), st.integers(3, 10**12))
def test_what_is_not_checked_again_would_pass_and_stays_as_it_is(bandit, variance, n):
    bandit = ao.LinearBandit(bandit.arms, bandit.theta, variance)
    assume(not (bandit.arms == bandit.arms[0]).all())
    made = (
        lambda: ao.programs.regret(bandit),
        lambda: ao.programs.horizon(np.array(bandit.arms), np.array(bandit.gaps), n),
    )
    for make in made:
        program = make()
        again = dataclasses.replace(program)  # checks all of it
        for name in ("features", "costs", "targets", "radii", "lower", "upper", "target_arms"):
            mine, theirs = getattr(program, name), getattr(again, name)
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)
            assert not mine.flags.writeable
