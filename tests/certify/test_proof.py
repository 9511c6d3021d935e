"""Proofs: every double survives, no solver is needed to check one, and what is proven contains what is known."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from proofs import BANDIT, EXACT, PROGRAMS, change, holds, modest, reload

import allocopt as ao
from allocopt.certify.proofs.writing import proof_document
from allocopt.insight.instances import counter_example, finite_armed, random_unit


def same_bits(one, other):
    return np.asarray(one, dtype=np.float64).tobytes() == np.asarray(other, dtype=np.float64).tobytes()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_saving_and_loading_keeps_every_double_to_the_bit(solutions, kind, tmp_path):
    s = solutions[kind]
    t = reload(s, tmp_path / "p.json")
    for name in ("features", "costs", "targets", "radii", "lower", "upper"):
        assert same_bits(getattr(s.program, name), getattr(t.program, name)), name
    assert t.program.kind == s.program.kind
    one, other = s.program.origin, t.program.origin
    assert (one.number, one.horizon) == (other.number, other.horizon)
    for name in ("gaps", "pulls"):
        assert (getattr(one, name) is None) == (getattr(other, name) is None)
        if getattr(one, name) is not None:
            assert same_bits(getattr(one, name), getattr(other, name))
    if one.bandit is not None:
        for name in ("arms", "theta", "noise_variance", "tie_tolerance", "gaps", "means", "optimal_arms"):
            assert same_bits(getattr(one.bandit, name), getattr(other.bandit, name)), name
    assert (t.method, t.tol) == (s.method, s.tol)
    assert t.stats["claim"] == {"lower": s.lower, "upper": s.upper, "status": "CERTIFIED", "wider": False}
    # the document of what was loaded is what was saved; what the bounds say is recomputed, so only they may differ
    a, b = proof_document(s), proof_document(t)
    assert a["program"] == b["program"]
    assert t.lower <= s.upper
    assert t.upper >= s.lower


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_loaded_proof_proves_the_same_interval(solutions, kind, tmp_path):
    s = solutions[kind]
    e = s.verify()
    loaded = reload(s, tmp_path / "p.json")
    assert same_bits(loaded.allocation, s.allocation)
    assert same_bits(loaded.multipliers, s.multipliers)
    assert loaded.verify() == e
    assert e.lower <= s.upper
    assert s.lower <= e.upper
    assert e.gap <= 3 * s.tol


@pytest.mark.parametrize("kind", PROGRAMS)
def test_saving_what_was_loaded_gives_the_same_file(solutions, kind, tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    again = reload(reload(solutions[kind], first), second)
    one, other = (json.loads(p.read_text()) for p in (first, second))
    for name in ("program", "allocation", "multipliers", "method", "tol"):
        assert one[name] == other[name], name
    assert again.verify() == solutions[kind].verify()


def test_a_proof_file_is_strict_json(solutions, tmp_path):
    def refuse(token):
        raise AssertionError(token)

    for s in solutions.values():
        s.save(tmp_path / "p.json", overwrite=True)
        json.loads((tmp_path / "p.json").read_text(encoding="utf-8"), parse_constant=refuse)


SOLVERS = ("interior_point", "active_set", "closed_form", "frank_wolfe", "conic")
CHECKER = f"""
import sys
for name in {SOLVERS!r}:
    sys.modules["allocopt.solvers." + name] = None
for name in ("cvxpy", "clarabel", "scs", "mosek"):
    sys.modules[name] = None
import allocopt as ao
for path in sys.argv[1:]:
    e = ao.load_solution(path).verify()
    print(repr((e.lower, e.upper)))
"""


def test_checking_a_proof_needs_no_solver(solutions, tmp_path):
    paths = []
    for number, s in enumerate(solutions.values()):
        paths.append(str(tmp_path / f"{number}.json"))
        s.save(paths[-1])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECKER, *paths],
        capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.stderr == ""
    intervals = [tuple(float(x) for x in line.strip("()").split(",")) for line in result.stdout.splitlines()]
    assert intervals == [(e.lower, e.upper) for e in (s.verify() for s in solutions.values())]


def test_means_that_tie_up_to_rounding_are_recorded_and_reported(tmp_path):
    """0.1 + 0.2 is not 0.3 in doubles: the means below differ by one unit in the last place."""
    arms = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.1]]
    theta = [0.1, 0.2, 0.3]
    s = ao.regret_constant(arms, theta)
    bandit = s.program.origin.bandit
    assert bandit.optimal_arms.tolist() == [0, 1]
    assert np.isinf(s.allocation[[0, 1]]).all()
    e = s.verify()
    assert list(e.tied_gaps) == [1]
    assert 0 < e.tied_gaps[1] < 1e-16
    document = proof_document(s)
    assert document["program"]["optimal_arms"] == [0, 1]
    assert reload(s, tmp_path / "p.json").verify() == e
    # with a tolerance of 0 the file is the exact instance, whose constant is about 2/gap: something else entirely
    exact = ao.regret_constant(arms, theta, tie_tolerance=0)
    assert exact.program.origin.bandit.optimal_arms.tolist() == [0]
    proven = exact.verify()
    assert not proven.tied_gaps
    assert proven.lower > 1e14
    assert proven.lower <= exact.upper
    assert proven.upper >= exact.lower
    # a tie is taken for granted only where the file lists it
    refusal = holds(change(modest(document), ("assumptions",), []), tmp_path / "q.json")
    assert isinstance(refusal, str)
    assert "tie" in refusal


@pytest.mark.parametrize("ulps", [1, 2, 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_ulp_decides_nothing_by_default_and_everything_at_zero_tolerance(ulps, sign):
    mean = 0.7
    for _ in range(ulps):
        mean = math.nextafter(mean, math.inf * sign)
    arms = [[0.7, 0.0], [mean, 1.0], [0.2, 0.3]]
    tied = ao.LinearBandit(arms, [1, 0])
    assert tied.optimal_arms.tolist() == [0, 1]
    e = ao.solve(ao.programs.regret(tied)).verify()
    assert list(e.tied_gaps) == ([0] if sign > 0 else [1])
    assert sum(e.tied_gaps.values()) == pytest.approx(abs(mean - 0.7), rel=1e-12)
    exact = ao.LinearBandit(arms, [1, 0], tie_tolerance=0)
    assert exact.optimal_arms.tolist() == [1 if sign > 0 else 0]
    assert not ao.solve(ao.programs.regret(exact)).verify().tied_gaps


def test_exact_ties_need_no_mention():
    s = ao.regret_constant([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0.5, 1, 1]], [1, 0, 0])
    assert s.optimal_arms.tolist() == [0, 1]
    e = s.verify()
    assert not e.tied_gaps
    assert not e.notes


def test_arms_that_span_less_up_to_rounding_are_noted(tmp_path):
    """A plane in R^3, rotated: in exact arithmetic the rotated arms span all three dimensions."""
    plane = np.hstack([random_unit(2, 7, seed=3).arms, np.zeros((7, 1))])
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    theta = np.array([0.3, -0.8, 0.0])
    flat = ao.regret_constant(plane, theta)
    s = ao.regret_constant(plane @ rotation, rotation.T @ theta)
    assert s.status is ao.Status.CONDITIONAL
    assert all(a.kind == "dependence" and 0 < a.size < 2**-40 for a in s.assumptions)
    assert s.value == pytest.approx(flat.value, rel=1e-7)
    assert not flat.verify().notes
    e = s.verify()
    assert any("span" in note or "depend" in note for note in e.notes)
    assert e.midpoint == pytest.approx(flat.value, rel=1e-7)
    assert reload(s, tmp_path / "p.json").verify() == e


def test_rows_that_are_dropped_as_rounding_are_noted_too():
    """Nearly parallel arms: what the solver takes as zero, the proof must take as zero and say so, or the gap is honest."""
    arms = [
        [-0.4333828124877164, -0.4333828124877166],
        [-0.4180841374794637, -0.4180841374794637],
        [0.32160944385584206, 0.3216094438558419],
    ]
    bandit = ao.LinearBandit(arms, [-1.1221947784042279, -1.3925469042662353])
    for program in (ao.programs.regret(bandit), ao.programs.optimism(bandit, 0.7)):
        s = ao.solve(program)
        e = s.verify()
        assert s.status is not ao.Status.CERTIFIED or e.notes or e.gap < 1e-6


@pytest.mark.parametrize("n", [10, 50, 881])
def test_a_value_that_is_only_what_was_played_already_allows_for_rounding(n, tmp_path):
    """Parallel arms: nothing is left to decide, and the cost of the pulls is rounded like any other number."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        bandit = ao.LinearBandit(np.outer(rng.normal(size=4), rng.normal(size=2)), rng.normal(size=2))
        s = ao.solve(ao.programs.remaining(bandit, [3, 1, 4, 1], n))
        e = reload(s, tmp_path / "p.json").verify()
        assert s.lower <= e.upper
        assert s.upper >= e.lower


def test_known_values_lie_in_the_proven_interval():
    """Instances whose numbers are doubles, so that the closed form is the exact answer."""
    for epsilon in (0.25 / 2, 2.0**-5, 2.0**-20):
        bandit = ao.LinearBandit([[1, 0], [0, 1], [1 - epsilon, 2 * epsilon]], [1, 0])
        e = ao.solve(ao.programs.regret(bandit)).verify()
        assert 8 in e
        assert e.gap < 1e-9
        e = ao.regret_constant([[1, 0], [1 - epsilon, 2 * epsilon]], [1, 0]).verify()
        assert 2 / epsilon in e
    assert 8 in ao.solve(ao.programs.regret(EXACT)).verify()
    assert 2 + 4 + 1 in ao.solve(ao.programs.regret(finite_armed([0, 1, 0.5, 2]))).verify()
    assert 3 in ao.solve(ao.programs.g_optimal(BANDIT.arms)).verify()
    assert 8 in ao.solve(ao.programs.best_arm(ao.LinearBandit([[1, 0], [0, 1]], [1, 0]))).verify()
    a, epsilon = 1.0, 2.0**-10
    optimistic = ao.programs.optimism(counter_example(epsilon, 8 * a), a)
    assert 4 * a + (2 - 1 / (16 * a)) / epsilon in ao.solve(optimistic).verify()


@pytest.mark.parametrize("method", ["closed-form", "interior-point", "active-set", "frank-wolfe", "conic"])
def test_every_methods_answer_can_be_proven(method):
    s = ao.solve(ao.programs.regret(EXACT), method, tol=1e-6)
    e = s.verify()
    assert 8 in e
    assert e.gap < 1e-5


@pytest.mark.parametrize("precision", [64, 128, 1000])
def test_any_precision_proves_something_true(solutions, precision):
    for s in solutions.values():
        e = s.verify(precision)
        assert e.precision == precision
        usual = s.verify()
        assert e.lower <= usual.upper
        assert e.upper >= usual.lower
    assert 8 in solutions["exact"].verify(precision)


def test_the_same_proof_twice_is_the_same_and_leaves_no_precision_behind(solutions):
    from flint import ctx

    before = ctx.prec
    s = solutions["optimism"]
    assert s.verify(300) == s.verify(300)
    assert ctx.prec == before


def test_answers_that_are_not_certified_can_be_saved_too(tmp_path):
    s = ao.solve(ao.programs.regret(random_unit(10, 100)), "frank-wolfe", tol=1e-12, max_iterations=3)
    assert s.status is ao.Status.INACCURATE
    t = reload(s, tmp_path / "p.json")
    assert t.status is ao.Status.INACCURATE
    e = t.verify()
    assert e.lower <= s.upper
    assert s.lower <= e.upper
