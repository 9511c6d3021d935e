"""The two roads of `solve`: they say the same, each obeys the laws by itself, and nobody waits for a compiler unasked."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from strategies import bandits

import allocopt as ao
from allocopt.insight.instances import random_unit
from allocopt.solving.roads import compiled_answer
from allocopt.solving.roads import machine_code as roads
from allocopt.solving.roads.machine_code import pinned_road

pytest.importorskip("numba", reason="needs the compiled road")

ROADS = ("numpy", "compiled")


def programs(seed):
    rng = np.random.default_rng(seed)
    d = 2 + seed % 4
    bandit = random_unit(d, d + 3 + seed % 11, seed=seed)
    arms, theta = np.array(bandit.arms), bandit.theta
    yield ao.programs.regret(bandit)
    yield ao.programs.regret(ao.LinearBandit(arms, theta, 2.5))
    yield ao.programs.regret(ao.LinearBandit(arms, theta, rng.uniform(0.3, 3.0, len(arms))))
    yield ao.programs.horizon(arms, bandit.gaps, 10**5)
    yield ao.programs.contextual(ao.ContextualBandit([arms[: d + 1], arms[d:]], theta))
    yield ao.programs.threshold(bandit, 0.037)
    yield ao.programs.best_arm(bandit)
    yield ao.programs.best_arm(ao.LinearBandit(arms, theta, rng.uniform(0.3, 3.0, len(arms))))
    yield ao.programs.top_m(bandit, 2)
    yield ao.programs.transductive(arms, rng.normal(size=(d + 2, d)), theta)
    yield ao.programs.duelling(ao.LinearBandit(arms[: d + 3], theta))
    targets, radii = rng.normal(size=(5, d)), rng.uniform(0.1, 2.0, 5)
    yield ao.AllocationProgram(arms, rng.uniform(0.1, 2.0, len(arms)), targets, radii)


@pytest.mark.parametrize("seed", range(12))
def test_both_roads_say_the_same(seed):
    for program in programs(seed):
        one, other = (ao.solve(program, road=road) for road in ROADS)
        if one.stats.get("formula") == "nothing to explore":
            assert one.value == other.value == 0.0
            continue
        assert (one.stats["road"], other.stats["road"]) == ROADS
        assert one.status is other.status is ao.Status.CERTIFIED
        assert one.method == other.method
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert one.coordinates == other.coordinates
        assert set(one.binding) == set(other.binding)
        assert one.program is other.program is program
        proven = other.verify()
        assert other.lower <= proven.lower <= proven.upper <= other.upper


@given(bandits())
def test_the_compiled_road_is_right_about_difficult_instances(bandit):
    program = ao.programs.regret(bandit)
    s = ao.solve(program, road="compiled")
    other = ao.solve(program, road="numpy")
    assert s.assumptions == other.assumptions
    if s.stats["road"] == "compiled":
        assert s.status is (ao.Status.CONDITIONAL if s.assumptions else ao.Status.CERTIFIED)
        assert s.gap <= s.tol
    assert s.lower <= other.upper
    assert other.lower <= s.upper


@pytest.mark.parametrize("road", ROADS)
def test_units_of_the_columns_change_no_bit_on_either_road(road):
    for seed in range(20):
        bandit = random_unit(3 + seed % 4, 9 + seed, seed=seed)
        powers = 2.0 ** np.random.default_rng(seed).integers(-10, 11, bandit.dim)
        one = ao.regret_constant(bandit.arms, bandit.theta, road=road)
        two = ao.regret_constant(bandit.arms * powers, bandit.theta / powers, road=road)
        assert one.stats["road"] == road
        assert (one.lower, one.upper) == (two.lower, two.upper)
        assert np.array_equal(one.allocation, two.allocation)
        assert np.array_equal(one.multipliers, two.multipliers)


def test_ties_are_assumptions_on_both_roads():
    arms = [[0.1 + 0.2, 0.0], [0.3, 0.0], [0.0, 1.0], [0.2, 0.3]]
    one, other = (ao.regret_constant(arms, [1.0, 0.01], road=road) for road in ROADS)
    assert other.stats["road"] == "compiled"
    assert one.status is other.status is ao.Status.CONDITIONAL
    assert one.assumptions == other.assumptions != ()


def test_a_formula_is_a_formula_on_both_roads():
    independent = np.array([[1.0, 0, 0], [0, 2.0, 0], [0, 0, 3.0], [0, 0, 1.5]])
    for arms, theta in ((independent, [1.0, 0.2, 0.1]), ([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])):
        one, other = (ao.regret_constant(arms, theta, road=road) for road in ROADS)
        assert one.method == other.method == "closed-form"
        assert other.stats["road"] == "compiled"
        assert one.stats["formula"] == other.stats["formula"] == "independent directions"
        assert max(one.gap, other.gap) < 1e-11
        np.testing.assert_allclose(one.allocation, other.allocation, rtol=1e-11)
    equal = ao.solve(ao.programs.g_optimal(random_unit(3, 9, seed=0).arms), road="compiled")
    assert equal.stats["formula"] == "equal gaps"
    assert equal.stats["road"] == "numpy"


def test_a_compiled_answer_is_a_solution_like_any_other(tmp_path):
    bandit = random_unit(4, 15, seed=2)
    labelled = ao.LinearBandit(bandit.arms, bandit.theta, labels=[f"arm {i}" for i in range(15)])
    s = ao.solve(ao.programs.regret(labelled), road="compiled")
    assert s.labels == labelled.labels
    s.save(tmp_path / "proof.json")
    loaded = ao.load_solution(tmp_path / "proof.json")
    assert loaded.status is s.status
    assert np.array_equal(loaded.allocation, s.allocation)
    for other in (pickle.loads(pickle.dumps(s)), copy.copy(s), dataclasses.replace(s, tol=1e-6)):
        assert (other.lower, other.upper, other.status) == (s.lower, s.upper, s.status)
        assert np.array_equal(other.allocation, s.allocation)
        assert other.binding.tolist() == s.binding.tolist()
    assert not s.allocation.flags.writeable
    assert "road" in s.stats


def test_the_program_that_is_solved_is_the_one_that_was_given():
    """Its arrays count, not where they once came from."""
    program = ao.programs.regret(random_unit(3, 8, seed=1))
    other = dataclasses.replace(
        program, radii=program.radii / 4.0, origin=dataclasses.replace(program.origin, kind="general")
    )
    for road in ROADS:
        assert ao.solve(other, road=road).value == pytest.approx(4.0 * ao.solve(program, road=road).value, rel=1e-7)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (lambda b: ao.programs.optimism(b, 2.0), "bounds on the allocation"),
        (lambda b: ao.AllocationProgram([[1, 1], [0, 0]], [1, 1], [[2, 2]], [1]), "rank-deficient"),
        (lambda b: ao.AllocationProgram([[1, 1], [2, 2], [1, 1.0]], [1, 1, 1], [[1, 1]], [1]), "singular"),
        (lambda b: ao.AllocationProgram(np.eye(2), [1, 2], [[1, 0], [0, 3]], [1, 1]), "formula"),
        (lambda b: ao.AllocationProgram(np.eye(2) + 1, [1, 0], [[1, 0]], [1]), "cost nothing"),
        (lambda b: ao.programs.top_m(random_unit(3, 90, seed=0), 40), "more than 100000 pairs"),
        (lambda b: ao.AllocationProgram([[1, 0], [[1, 0], [0, 1]]], [1, 1], [[1, 0], [0, 1]], [0.5, 1]), "several things"),
        (lambda b: ao.programs.regret(random_unit(3, compiled_answer.MOST_ARMS + 1, seed=0)), "more than 100 arms"),
        (lambda b: ao.AllocationProgram(np.eye(2), [1, 1], [[1, 0]], [1], target_arms=[0]), "arms without a target"),
        (lambda b: ao.programs.regret(ao.LinearBandit([[1, 0, 1], [0, 1, 1], [0.5, 0.4, 0.9]], [1, 0, 0])), "singular"),
    ],
)  # fmt: skip
def test_what_does_not_fit_goes_the_other_way_and_says_why(program, why):
    s = ao.solve(program(random_unit(3, 7, seed=0)), road="compiled")
    assert s.stats["road"] == "numpy"
    assert why in s.stats["not_compiled"]


def test_whoever_asks_for_a_course_of_events_gets_one():
    seen = []
    program = ao.programs.regret(random_unit(4, 12, seed=0))
    s = ao.solve(program, callback=seen.append)
    assert seen and s.stats["road"] == "numpy"
    assert ao.solve(program, max_seconds=60.0).stats["road"] == "numpy"
    assert ao.solve(program, start=s).stats["road"] == "numpy"
    assert ao.solve(program, "interior-point").stats["road"] == "numpy"


def test_the_road_is_pinned_by_argument_or_environment(monkeypatch):
    bandit = random_unit(3, 8, seed=0)
    monkeypatch.setenv("ALLOCOPT_ROAD", "numpy")
    assert ao.regret_constant(bandit.arms, bandit.theta).stats["road"] == "numpy"
    assert ao.Allocator(bandit.arms).solve(bandit.gaps).stats["not_compiled"] == "ALLOCOPT_ROAD is numpy"
    assert ao.regret_constant(bandit.arms, bandit.theta, road="compiled").stats["road"] == "compiled"
    monkeypatch.setenv("ALLOCOPT_ROAD", "fast")
    with pytest.raises(ao.InvalidOption, match="ALLOCOPT_ROAD: expected one of auto, numpy, compiled, got 'fast'"):
        ao.regret_constant(bandit.arms, bandit.theta)
    monkeypatch.delenv("ALLOCOPT_ROAD")
    assert pinned_road() == "auto"
    with pytest.raises(ao.InvalidOption, match="road: expected one of auto, numpy, compiled, got 'quick'"):
        ao.regret_constant(bandit.arms, bandit.theta, road="quick")


def test_an_allocator_keeps_the_road_that_it_was_made_with(monkeypatch):
    bandit = random_unit(3, 8, seed=0)
    free = ao.Allocator(bandit.arms)
    monkeypatch.setenv("ALLOCOPT_ROAD", "numpy")
    pinned = ao.Allocator(bandit.arms)
    assert free.solve(bandit.gaps).stats["road"] == "compiled"
    monkeypatch.delenv("ALLOCOPT_ROAD")
    stats = pinned.solve(bandit.gaps).stats
    assert (stats["road"], stats["not_compiled"]) == ("numpy", "ALLOCOPT_ROAD is numpy")


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


FRESH = """
import sys, time
import numpy as np
import allocopt as ao
ao.regret_constant
started = time.perf_counter()
s = ao.regret_constant(np.random.default_rng(0).normal(size=(20, 5)), np.ones(5))
spent = time.perf_counter() - started
assert "numba" not in sys.modules
assert s.stats["road"] == "numpy" and "precompile" in s.stats["not_compiled"], s.stats
print(spent)
"""


def test_on_a_fresh_install_the_first_call_waits_for_no_compiler(tmp_path):
    done = run(FRESH, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert float(done.stdout) < 2.0  # 0.03 s on a machine with nothing else to do
    assert not list(tmp_path.iterdir())


WITHOUT = """
import sys, warnings
{how}
import numpy as np
import allocopt as ao
b = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.3]], [1, 0])
for name, call in (
    ("Allocator", lambda: ao.Allocator(b.arms).solve(b.gaps).value),
    ("solve_many", lambda: ao.solve_many(b.arms, b.gaps[None]).value[0]),
    ("simulate", lambda: ao.simulate("UCB", b, 50, 2, rng=0).final_regret.mean()),
):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        value = call()
    assert [w.category for w in said] == [ao.SlowWarning], [str(w.message) for w in said]
    assert name in str(said[0].message) and "numba" in str(said[0].message), said[0].message
    assert np.isfinite(value)
s = ao.regret_constant(b.arms, b.theta)
assert s.stats["road"] == "numpy" and "numba" in s.stats["not_compiled"]
for call in (lambda: ao.regret_constant(b.arms, b.theta, road="compiled"), ao.precompile):
    try:
        call()
    except ao.MethodUnavailable as error:
        assert "numba" in str(error)
    else:
        raise AssertionError
"""


@pytest.mark.parametrize("how", ["sys.modules['numba'] = None", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'"])
def test_without_compiled_code_everything_works_and_says_that_it_is_slow(how):
    done = run(WITHOUT.format(how=how))
    assert done.returncode == 0, done.stderr


FIRST_COMPILED = """
import warnings
import numpy as np
import allocopt as ao
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    {call}
print([w.category.__name__ for w in said])
print(ao.regret_constant(np.eye(3), [1.0, 0.5, 0.2]).stats["road"])
"""


@pytest.mark.slow
def test_compiling_is_announced_once_and_never_where_machine_code_is_on_disk(tmp_path):
    allocator = FIRST_COMPILED.format(call="ao.Allocator(np.eye(3)).solve([0, 1, 2])")
    batch = FIRST_COMPILED.format(call="ao.solve_many(np.eye(3), [[0, 1, 2]])")
    for code, expected in ((allocator, "['CompilingWarning']\ncompiled\n"), (batch, "[]\ncompiled\n")):
        done = run(code, NUMBA_CACHE_DIR=str(tmp_path))
        assert done.stdout == expected, done.stderr
    rounds = FIRST_COMPILED.format(call="ao.simulate('UCB', ao.LinearBandit(np.eye(2), [1, 0]), 100, 2, rng=0)")
    for expected in ("['CompilingWarning']\ncompiled\n", "[]\ncompiled\n"):
        done = run(rounds, NUMBA_CACHE_DIR=str(tmp_path))
        assert done.stdout == expected, done.stderr


def test_machine_code_of_another_version_is_not_taken(monkeypatch):
    """What is on disk may be of code that has changed since: then nothing is loaded, and nothing is compiled either."""
    from allocopt.solving import kernel

    monkeypatch.setattr(roads, "_loaded", {})
    monkeypatch.setattr(roads, "_stale", set())
    monkeypatch.setattr(kernel, "load", lambda form: False)
    monkeypatch.setattr(kernel, "make", lambda helper, *forms: pytest.fail("it was compiled"))
    bandit = random_unit(3, 8, seed=0)
    for _ in range(2):
        assert ao.regret_constant(bandit.arms, bandit.theta).stats["road"] == "numpy"


def test_numba_may_be_on_its_way_in_in_another_thread(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.core.config", types.ModuleType("numba.core.config"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    assert roads.why_no_machine_code() is None
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert "switched off" in roads.why_no_machine_code()
