"""Allocator: the compiled path proves what it claims, agrees with `solve`, and never does worse than it."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import answered, bandits

import allocopt as ao
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import reduce
from allocopt.certify.verdict import recertify
from allocopt.insight.instances import random_unit
from allocopt.model.programs import horizon_at_level
from allocopt.solving import kernel
from allocopt.solving.allocator import MOST_ARMS, Allocator, compiled_kernel
from allocopt.solving.compiled_rows import in_units

EASY = ("plain", "integers", "collinear", "as many arms as dimensions", "exact ties")
seeds = st.integers(0, 2**32 - 1)


def ordinary(allocator, gaps):
    return ao.solve(horizon_at_level(allocator.arms, np.array(gaps), allocator.level, None), tol=allocator.tol)


def agree(one, other, slack=1e-12):
    """Two certified intervals for the same number have it in common; [0, inf] is no answer."""
    assert answered(one)
    assert answered(other)
    return one.lower <= other.upper * (1 + slack) and other.lower <= one.upper * (1 + slack)


@st.composite
def instances(draw):
    """Arms and gaps that need not come from any θ: none, one or several of them zero."""
    bandit = draw(bandits())
    gaps = np.array(bandit.gaps)
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(("bandit", "no zero", "many zeros", "unrelated")))
    if kind == "no zero":
        gaps += rng.uniform(0.01, 1) * gaps.max()
    elif kind == "many zeros":
        gaps[rng.random(len(gaps)) < 0.3] = 0.0
    elif kind == "unrelated":
        gaps = 10.0 ** rng.uniform(-3, 1, len(gaps))
        gaps[rng.integers(len(gaps))] = 0.0
    return bandit.arms, gaps if gaps.any() else gaps + 1.0


@given(instances(), st.integers(4, 11))
def test_the_floating_interval_encloses_what_its_own_allocation_and_multipliers_prove(instance, digits):
    arms, gaps = instance
    s = Allocator(arms, tol=10.0**-digits).solve(gaps)
    e = s.verify(exact=True)
    assert e.lower <= e.upper and not e.problems
    if s.stats["compiled"]:
        assert answered(s)
        assert s.gap <= s.tol
    if not e.notes and answered(s):
        assert s.lower <= e.lower
        assert e.upper <= s.upper


@given(instances())
def test_it_agrees_with_solve_and_both_are_certified(instance):
    arms, gaps = instance
    allocator = Allocator(arms)
    assert agree(allocator.solve(gaps), ordinary(allocator, gaps))


@given(instances())
def test_the_certificate_is_that_of_canonical_evaluate(instance):
    """The compiled bounds are no tighter than rounding allows, and hardly wider than those of the reference."""
    arms, gaps = instance
    s = Allocator(arms).solve(gaps)
    assume(s.stats["compiled"])
    reduction = reduce(s.program)
    bounds = evaluate(
        reduction.canonical,
        reduction.canonical_allocation(s.allocation),
        reduction.canonical_multipliers(s.multipliers),
    )
    slack = 10 * (bounds.rounding + s.stats["rounding"])
    assert s.upper == pytest.approx(bounds.upper, rel=slack)
    assert s.lower == pytest.approx(bounds.lower, rel=slack)


def walk(arms, start, end, points):
    """Solutions along a segment of θ, each held against `solve`; how many optimal arms and supports were met."""
    allocator = Allocator(arms)
    best, supports = set(), set()
    for t in np.linspace(0, 1, points):
        bandit = ao.LinearBandit(arms, start + t * (end - start))
        s = allocator.solve(bandit.gaps)
        o = ordinary(allocator, bandit.gaps)
        assert agree(s, o)
        assert s.optimal_arms.tolist() == bandit.optimal_arms.tolist()
        best.add(int(bandit.optimal_arms[0]))
        supports.add(tuple(s.support.tolist()))
    return len(best), len(supports)


@settings(max_examples=15)
@given(st.integers(2, 5), st.integers(6, 15), seeds)
def test_every_point_of_a_path_of_gaps_is_certified(d, k, seed):
    rng = np.random.default_rng(seed)
    walk(rng.normal(size=(k, d)), *rng.normal(size=(2, d)), 10)


def test_the_optimal_arm_may_change_and_arms_may_enter_or_leave_the_support_along_a_path():
    rng = np.random.default_rng(5)
    best, supports = walk(rng.normal(size=(12, 4)), *rng.normal(size=(2, 4)), 40)
    assert best > 1
    assert supports > best


@settings(max_examples=60)
@given(bandits(kinds=EASY), seeds)
def test_a_warm_start_changes_the_steps_and_not_the_answer(bandit, seed):
    rng = np.random.default_rng(seed)
    allocator = Allocator(bandit.arms)
    allocator.solve(bandit.gaps)
    for size in (0.0, 1e-6, 0.01, 0.5):
        gaps = bandit.gaps * (1 + size * rng.uniform(-1, 1, bandit.n_arms))
        warm, cold = allocator.solve(gaps), Allocator(bandit.arms).solve(gaps)
        assert agree(warm, cold)
        assert warm.status is cold.status


def test_a_small_move_is_warm_started_in_fewer_steps():
    steps = {True: 0, False: 0}
    rng = np.random.default_rng(0)
    for seed in range(20):
        bandit = random_unit(5, 20, seed=seed)
        allocator = Allocator(bandit.arms)
        allocator.solve(bandit.gaps)
        gaps = bandit.gaps * (1 + 0.01 * rng.uniform(-1, 1, 20))
        for one in (allocator, Allocator(bandit.arms)):
            s = one.solve(gaps)
            assert s.stats["compiled"]
            assert s.stats["warm"] is (one is allocator)
            steps[one is allocator] += s.stats["iterations"]
    assert steps[True] < 0.6 * steps[False]


@given(bandits(), seeds)
def test_duplicated_arms_and_the_order_of_the_arms_change_nothing(bandit, seed):
    order = np.random.default_rng(seed).permutation(2 * bandit.n_arms)
    arms = np.concatenate([bandit.arms, bandit.arms])[order]
    gaps = np.concatenate([bandit.gaps, bandit.gaps])[order]
    assert agree(Allocator(arms).solve(gaps), Allocator(bandit.arms).solve(bandit.gaps), 1e-11)


@settings(max_examples=50)
@given(bandits(kinds=EASY), st.floats(0.1, 100), st.floats(1e-3, 1e3))
def test_the_value_is_proportional_to_the_level_and_inversely_to_the_gaps(bandit, level, factor):
    s = Allocator(bandit.arms).solve(bandit.gaps)
    t = Allocator(bandit.arms, level=level).solve(factor * bandit.gaps)
    assert answered(s)
    assert answered(t)
    assert t.value == pytest.approx(s.value * level / 2 / factor, rel=3e-8)


@settings(max_examples=40)
@given(bandits(kinds=("rank-deficient",)))
def test_rank_deficient_arms_take_the_ordinary_path_and_say_so(bandit):
    s = Allocator(bandit.arms).solve(bandit.gaps)
    assert s.stats["compiled"] is False
    assert s.stats["not_compiled"] in kernel.REASONS.values()
    assert agree(s, ao.solve(ao.programs.regret(bandit)))


def test_more_arms_than_the_compiled_method_takes_are_solved_all_the_same():
    bandit = random_unit(4, MOST_ARMS + 1, seed=0)
    s = Allocator(bandit.arms).solve(bandit.gaps)
    assert answered(s)
    assert s.stats["compiled"] is False


def test_without_numba_everything_is_solved_by_the_ordinary_path(monkeypatch):
    monkeypatch.setattr("allocopt.solving.allocator.compiled_kernel", lambda road: None)
    s = Allocator([[1, 0], [0, 1], [0.99, 0.02]]).solve([0, 1, 0.01])
    assert s.value == pytest.approx(8)
    assert s.stats["not_compiled"] == "numba does not work here"


def test_the_solution_is_a_solution(tmp_path):
    bandit = random_unit(4, 12, seed=3)
    s = Allocator(bandit.arms, level=5.0).solve(bandit.gaps)
    o = ao.solve(horizon_at_level(bandit.arms, bandit.gaps, 5.0, None))
    assert isinstance(s, ao.Solution)
    assert s.stats["compiled"]
    assert s.method == "interior-point"
    assert s.value == s.upper
    assert 0 <= s.gap <= 1e-8
    assert s.support.tolist() == o.support.tolist()
    assert s.binding.tolist() == o.binding.tolist()
    assert s.optimal_arms.tolist() == o.optimal_arms.tolist()
    assert s.coordinates == o.coordinates
    np.testing.assert_allclose(s.allocation[s.support], o.allocation[o.support], rtol=1e-3)
    assert "CERTIFIED" in repr(s)
    s.save(tmp_path / "proof.json")
    again = ao.load_solution(tmp_path / "proof.json").verify()
    assert s.lower <= again.lower * (1 + 1e-11) and again.upper <= s.upper * (1 + 1e-11)
    for copy in (pickle.loads(pickle.dumps(s)), dataclasses.replace(s, tol=1e-7)):
        assert copy.value == s.value
        assert copy.program.kind == "horizon"
    with pytest.raises(ValueError, match="read-only"):
        s.allocation[0] = 1.0


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ([0, 1], "gaps: expected 3 entries, one per arm, got 2"),
        (np.array([0.0, 1.0]), "gaps: expected 3 entries, one per arm, got 2"),
        ([0, -1, 1], "gaps: expected entries >= 0, but entry 1 is -1.0"),
        (np.array([0, np.nan, 1]), "gaps: expected finite numbers, but entry 1 is nan"),
        (np.array([0, np.inf, 1]), "gaps: expected finite numbers, but entry 1 is inf"),
        ([0, 1e-60, 1], "gaps: expected magnitudes between"),
        ("abc", "gaps: expected a vector of numbers"),
        ([[0, 1, 1]], "gaps: expected a vector of numbers"),
    ],
)
def test_bad_gaps_are_refused_in_words(gaps, message):
    allocator = Allocator([[1, 0], [0, 1], [0.5, 0.5]])
    allocator.solve([0, 1, 0.5])
    with pytest.raises(ao.InvalidInstance, match=message):
        allocator.solve(gaps)
    assert answered(allocator.solve([0, 1, 0.5]))


@pytest.mark.parametrize(
    "arms", [[], [[1, 2]], [[0, 0], [0, 0]], [[1, 0], [1, 0]], [[1, np.nan], [0, 1]], [[1, 2], [3]]]
)
def test_bad_arms_are_refused_when_the_allocator_is_made(arms):
    with pytest.raises(ao.InvalidInstance, match="arms"):
        Allocator(arms)


@pytest.mark.parametrize("option", [{"tol": 0}, {"tol": "x"}, {"level": -1}, {"level": np.inf}])
def test_bad_options_are_refused(option):
    with pytest.raises(ao.InvalidOption, match=next(iter(option))):
        Allocator(np.eye(2), **option)


def test_the_callers_array_is_neither_kept_nor_changed():
    gaps = np.array([0.0, 1.0, 0.3])
    s = Allocator([[1, 0], [0, 1], [0.5, 0.5]]).solve(gaps)
    gaps[:] = 7.0
    assert s.program.costs.tolist() == [0.0, 1.0, 0.3]


def test_numba_is_loaded_by_the_first_solve_and_not_before():
    code = (
        "import sys, allocopt, allocopt.solving.allocator, allocopt.solving.batch; print('numba' in sys.modules); "
        "a = allocopt.solving.allocator.Allocator([[1, 0], [0, 1]]); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert compiled_kernel() is kernel


def test_the_certificate_allows_for_errors_in_the_direction_where_they_weigh_most():
    """Long arms that are nearly parallel, and a short one across: far from optimal pairs, whose prices are mostly rounding."""
    checked = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        length, share = 10.0 ** rng.uniform(4, 12), 10.0 ** rng.uniform(-14, -2)
        long = length * rng.uniform(0.5, 1, 3)
        arms = np.vstack([[0, 1.0], np.column_stack([long, long + rng.uniform(-1, 1, 3)])])
        gaps = rng.uniform(0.9, 1.1, 4)
        alpha = np.array([1.0, share, share * rng.uniform(0.1, 1), 0.0])
        lam = np.array([1.0, 10.0 ** rng.uniform(-20, -2), 0, 0.0])
        rows = np.empty_like(arms)
        rank = kernel.quotient(in_units(arms[None])[0], gaps, rows)
        which, unit, columns, ratios, start, _, _ = kernel.prepare(
            rows, rank, gaps, np.ones(len(gaps)), gaps, 2.0, True, alpha, lam
        )
        found = np.concatenate([np.ones(4), start]), np.ones(8), lam[which], np.ones(4)
        info, allocation, multipliers = np.empty(kernel.INFO), np.zeros(4), np.zeros(4)
        kernel.certify(
            (which, which, unit, columns, ratios, None), found, False, gaps, 0.0, allocation, multipliers, info
        )
        if not info[0] > 0:
            continue
        program = horizon_at_level(arms, gaps, 2.0, None)
        proven = recertify(program, allocation, multipliers, "interior-point", 1e-8, {}).verify()
        if not proven.notes:
            checked += 1
            assert info[0] <= proven.lower
            assert proven.upper <= info[1]
    assert checked > 20


INTERRUPTED = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with it ignored
from allocopt.solving.allocator import Allocator
from allocopt.insight.instances import random_unit
bandit = random_unit(5, 20, seed=0)
allocator = Allocator(bandit.arms)
value = allocator.solve(bandit.gaps).value
caught = 0
for _ in range(10):
    threading.Timer(0.03, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        for _ in range(50_000):  # seconds: an interrupt may be lost where Python ignores exceptions, but then only one
            allocator.solve(bandit.gaps)
    except KeyboardInterrupt:
        caught += 1
assert caught >= 9, caught
assert abs(allocator.solve(bandit.gaps).value - value) <= 1e-7 * value
"""


def test_ctrl_c_in_compiled_code_is_a_keyboard_interrupt():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
