"""What used to end in somebody else's exception, or in a warning, ends in one error that names the argument."""

import errno
import warnings

import numpy as np
import pytest

import allocopt as ao
from allocopt.base import compiling
from allocopt.base.atomic_files import file_path, whole_file
from allocopt.base.errors import InvalidFile, InvalidInstance, InvalidOption, InvalidProgram
from allocopt.insight.instances.files import read_instance
from allocopt.insight.study.spec import StudySpec
from allocopt.insight.study.study import study
from allocopt.model.arms import dask_npy
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB
from allocopt.solvers import frank_wolfe

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]]
THETA = [1.0, 0.0]
GAPS = [0.0, 1.0, 0.25]


class Raises:
    """NumPy asks it for an array, and hears something else."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


class Garbage:
    """What it says is its array is none."""

    def __array__(self, dtype=None, copy=None):
        return "no array"


class NoLength(list):
    """A sequence that cannot be counted."""

    def __len__(self):
        raise RuntimeError("how many?")


OBJECTS = {
    "raises ValueError": (Raises(ValueError("mine")), "ValueError: mine"),
    "raises RuntimeError": (Raises(RuntimeError("call .detach()\nfirst")), r"RuntimeError: call \.detach\(\) first"),
    "raises KeyError": (Raises(KeyError("x")), "KeyError: 'x'"),
    "raises MemoryError": (Raises(MemoryError()), "MemoryError"),
    "garbage": (Garbage(), "ValueError|TypeError"),
}
ENTRANCES = {
    "arms of a bandit": (InvalidInstance, "arms", lambda x: ao.LinearBandit(x, THETA)),
    "theta": (InvalidInstance, "theta", lambda x: ao.LinearBandit(ARMS, x)),
    "optimal_arms": (InvalidInstance, "optimal_arms", lambda x: ao.LinearBandit(ARMS, THETA, optimal_arms=x)),
    "arms of a design": (InvalidInstance, "arms", ao.programs.g_optimal),
    "arms of a spanner": (InvalidInstance, "arms", ao.barycentric_spanner),
    "arms of an allocator": (InvalidInstance, "arms", ao.Allocator),
    "arms of many": (InvalidInstance, "arms", lambda x: ao.solve_many(x, [GAPS])),
    "gaps of many": (InvalidInstance, "gaps", lambda x: ao.solve_many(ARMS, x)),
    "gaps": (InvalidInstance, "gaps", lambda x: ao.optimal_pulls(ARMS, x, 100)),
    "pulls of an audit": (InvalidInstance, "pulls", lambda x: ao.audit(ao.LinearBandit(ARMS, THETA), x, 100)),
    "features": (InvalidProgram, "features", lambda x: ao.AllocationProgram(x, GAPS, ARMS, [1.0] * 3)),
    "times": (InvalidOption, "times", lambda x: simulate(UCB(), ao.LinearBandit(ARMS, THETA), 10, 2, times=x)),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("wrong", OBJECTS)
def test_objects_that_cannot_be_made_arrays_are_refused_by_name(entrance, wrong):
    error, name, call = ENTRANCES[entrance]
    value, reason = OBJECTS[wrong]
    with pytest.raises(error, match=f"^{name}: expected") as caught:
        call(value)
    assert "\n" not in str(caught.value)
    if name != "times":
        with pytest.raises(error, match=f"cannot be made an array .*({reason})"):
            call(value)


def test_a_sequence_without_a_length_is_refused_by_name():
    with pytest.raises(InvalidInstance, match="arms: expected"):
        ao.LinearBandit(NoLength(["a", "b"]), THETA)


def test_a_class_may_call_its_module_anything():
    strange = type("Strange", (), {"__module__": None})
    with pytest.raises(InvalidInstance, match="arms: expected"):
        ao.LinearBandit(strange(), THETA)


# Programs


@pytest.mark.parametrize(
    ("target_arms", "words"),
    [
        ([0, 1, 3], "expected indices from 0 to 2, got 3"),
        ([-1, 1, 2], "expected indices from 0 to 2, got -1"),
        ([0, 1], "expected 3 arms, one per target, in increasing order, got 2"),
        ([0, 1, 1], "expected distinct indices"),
        ([1, 0, 2], "in increasing order, got 3 in another order"),
        ([0.0, 1.0, 2.0], "expected a list of whole numbers"),
        ("012", "expected a list of whole numbers"),
        (np.array([0, 1, 2**63], dtype=np.uint64), f"expected indices from 0 to 2, got {2**63}"),
    ],
)
def test_target_arms_are_checked(target_arms, words):
    with pytest.raises(InvalidProgram, match=f"target_arms: .*{words}"):
        ao.AllocationProgram(ARMS, GAPS, ARMS, [1.0] * 3, target_arms=target_arms)


def test_targets_are_the_arms_that_they_are_said_to_be():
    with pytest.raises(
        InvalidProgram, match="target_arms: expected targets that are their arms, but target 1 is not arm 2"
    ):
        ao.AllocationProgram(ARMS, [1.0] * 3, [ARMS[0], ARMS[1]], [1.0] * 2, target_arms=[0, 2])
    program = ao.AllocationProgram(ARMS, [1.0] * 3, [ARMS[0], ARMS[2]], [1.0] * 2, target_arms=[0, 2])
    without = ao.AllocationProgram(ARMS, [1.0] * 3, [ARMS[0], ARMS[2]], [1.0] * 2)
    assert ao.solve(program).value == pytest.approx(ao.solve(without).value)


@pytest.mark.parametrize("bad", [1.0000001, 2, 1e308])
def test_a_tolerance_for_ties_is_at_most_1(bad):
    with pytest.raises(InvalidInstance, match="tie_tolerance: expected a number from 0 to 1, got"):
        ao.LinearBandit(ARMS, THETA, tie_tolerance=bad)
    assert len(ao.LinearBandit(ARMS, THETA, tie_tolerance=1).optimal_arms) == 3


def test_frank_wolfe_takes_any_units_without_a_warning():
    for unit in (1e-45, 1e45):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            s = ao.solve(ao.programs.g_optimal(np.array(ARMS) * unit), "frank-wolfe", tol=1e-4)
        assert s.value == pytest.approx(2.0, rel=1e-3)


def test_frank_wolfe_asks_after_bases_beyond_the_range_of_squares_without_a_warning():
    for sizes, unsuited in (
        ([1, 1e-200], True),
        ([1e200, 1], True),
        ([1, 0], True),
        ([5, 0.2], False),
        ([11, 1], True),
    ):
        assert frank_wolfe._unsuited(np.diag(np.array(sizes, dtype=float))) is unsuited


# Files


NAMES = {"null": "a\0b.json", "surrogate": "a\ud800b.json", "number": 3, "None": None, "bytes": b"a.json"}


@pytest.mark.parametrize("kind", NAMES)
def test_names_that_no_file_can_have_are_refused(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = NAMES[kind]
    bandit = ao.LinearBandit(ARMS, THETA)
    solution = ao.regret_constant(ARMS, THETA)
    result = simulate(UCB(), bandit, 10, 2)
    schedule = ao.Schedule.from_solution(solution, 1000)
    calls = [
        lambda: solution.save(name),
        lambda: ao.load_solution(name),
        lambda: result.save(name),
        lambda: load_simulation(name),
        lambda: read_instance(name),
        lambda: schedule.to_json(name),
        lambda: schedule.to_csv(name),
        lambda: dask_npy(name),
        lambda: StudySpec.from_toml(name),
        lambda: file_path(name),
    ]
    if isinstance(name, str):  # anything else is no option, and None is the default
        calls.append(lambda: simulate(UCB(), bandit, 10, 2, checkpoint=name))
    for call in calls:
        with pytest.raises(InvalidFile, match=r"(path|checkpoint): expected the name of a file or folder") as caught:
            call()
        assert "\0" not in str(caught.value) and str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())


def test_what_is_raised_while_a_file_is_written_is_not_taken_for_a_bad_name(tmp_path):
    with pytest.raises(ValueError, match="mine"), whole_file(tmp_path / "a", overwrite=False):
        raise ValueError("mine")
    assert not list(tmp_path.iterdir())


def test_a_study_refuses_a_folder_that_cannot_be_named():
    pytest.importorskip("pyarrow")
    spec = {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.2]}, "quantities": ["c"]}
    with pytest.raises(InvalidFile, match="folder: expected the name of a file or folder"):
        study(spec, "a\0b")


# Machine code


@pytest.mark.skipif(not compiling.COMPILED, reason="needs numba")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_takes_no_machine_code_does_not_stop_a_call(monkeypatch, code):
    caching = pytest.importorskip("numba.core.caching")
    asked = []

    def full(*_):
        asked.append(True)
        raise OSError(code, "no room")

    def twice(x):
        return 2 * x

    function = compiling.kept_on_disk(twice)
    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    monkeypatch.setattr(caching.IndexDataCacheFile, "load", full)
    assert function(3) == 6
    assert function(1.5) == 3.0
    assert asked
