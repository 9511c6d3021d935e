"""The named programs: against a second writing, by their known values and laws, and what they refuse."""

import json
import math
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

import allocopt as ao

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from programs_peer import KINDS, case, peer_value

ARMS = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.1], [0.5, 0.4, -0.3], [-0.3, 0.2, 0.9], [0.8, 0.1, 0.3]])
THETA = np.array([1.0, 0.5, -0.2])
ITEMS = np.array([[0.9, 0.2, 0.0], [0.1, 0.8, 0.3], [-0.2, 0.1, 0.7]])


def made(arms=ARMS, theta=THETA, items=ITEMS, noise=None):
    """One program of each name."""
    each = np.array([0.5, 1.0, 2.0, 0.75, 1.5]) if noise is None else noise
    bandit, one = ao.LinearBandit(arms, theta, each), ao.LinearBandit(arms, theta, 0.7)
    contexts = ao.ContextualBandit([arms[:2], arms[2:]], theta, noise_variance=each)
    return {
        "contextual": ao.programs.contextual(contexts),
        "best_arm": ao.programs.best_arm(bandit),
        "epsilon": ao.programs.best_arm(bandit, 0.6),
        "answer": ao.programs.best_arm(bandit, 0.6, 4),
        "top_m": ao.programs.top_m(bandit, 2),
        "threshold": ao.programs.threshold(bandit, 0.4),
        "transductive": ao.programs.transductive(arms, items, theta, each),
        "duelling": ao.programs.duelling(one),
    }


NAMES = list(made())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_writing_agrees_and_both_proofs_enclose(kind, seed):
    asked = case(kind, seed, noise=seed % 2 == 0)
    s = ao.solve(asked.program)
    assert s.status is ao.Status.CERTIFIED
    with warnings.catch_warnings(action="ignore"):
        value, sure = peer_value(asked)
    assert not sure or s.value == pytest.approx(value, rel=3e-6, abs=1e-9)
    fast, exact = s.verify(), s.verify(exact=True)
    assert exact.problems == ()
    assert s.lower <= exact.lower <= exact.upper <= s.upper
    assert max(fast.lower, exact.lower) <= min(fast.upper, exact.upper)


@pytest.mark.parametrize("name", NAMES)
def test_proof_files_start_from_the_users_numbers(name, tmp_path):
    s = ao.solve(made()[name])
    s.save(tmp_path / "p.json")
    again = ao.load_solution(tmp_path / "p.json")
    for field in ("features", "costs", "targets", "radii"):
        assert np.array_equal(getattr(again.program, field), getattr(s.program, field))
    assert again.labels == s.labels and again.program.kind == s.program.kind
    document = json.loads((tmp_path / "p.json").read_text())
    assert "radii" not in document["program"] and "targets" not in document["program"]
    assert again.verify(exact=True).problems == ()
    changes = {"m": 3, "tau": 0.45, "epsilon": 0.3, "answer": 2, "contexts": [3, 2], "theta": [1.0, 0.4, -0.2]}
    for key, value in changes.items():
        if key in document["program"]:
            forged = json.loads((tmp_path / "p.json").read_text())
            forged["program"][key] = value
            (tmp_path / "f.json").write_text(json.dumps(forged))
            with pytest.raises(ao.InvalidProof):
                ao.load_solution(tmp_path / "f.json")


@pytest.mark.parametrize("name", NAMES)
def test_units_of_columns_change_no_bit(name):
    units = np.array([2.0**20, 2.0**-7, 2.0])
    first, second = ao.solve(made()[name]), ao.solve(made(ARMS * units, THETA / units, ITEMS * units)[name])
    assert (first.lower, first.upper, first.status) == (second.lower, second.upper, second.status)
    assert np.array_equal(first.allocation, second.allocation)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factors", [[1.0, 0.0, 0.0], [0.0, -2.0, 0.0], [1.0, 1.0, 0.0], [0.5, 1.0, -0.25]])
def test_a_column_that_depends_on_others_changes_nothing(name, factors):
    """Copies, multiples, and sums of columns, in doubles that make these exact."""
    arms, items = np.round(ARMS * 64) / 64, np.round(ITEMS * 64) / 64
    more = [np.column_stack([rows, rows @ factors]) for rows in (arms, items)]
    plain = ao.solve(made(arms, THETA, items)[name])
    wider = ao.solve(made(more[0], np.append(THETA, 0.0), more[1])[name])
    assert wider.status is plain.status is ao.Status.CERTIFIED
    assert max(plain.lower, wider.lower) <= min(plain.upper, wider.upper)
    assert wider.verify(exact=True).problems == ()


@pytest.mark.parametrize("name", ["duelling", "transductive", "top_m", "best_arm"])
def test_dependence_is_that_of_exact_differences(name):
    """A column that is the sum of two others exactly, while rounded differences of rows are not."""
    rng = np.random.default_rng(7)
    left, right = (
        np.ldexp(rng.integers(1, 2**26, size=(8, 2)), -40) * 2.0 ** rng.integers(0, 12, size=(8, 1)) for _ in "ab"
    )
    arms = np.column_stack([left, left[:, 0] + right[:, 0] * 0, left.sum(axis=1)])
    assert (arms[:, 0] + arms[:, 1] == arms[:, 3]).all()
    theta = np.array([1.0, 0.5, 0.0, 0.0]) / np.abs(arms).max()
    program = made(arms[:5], theta, arms[5:], noise=1.0)[name]
    differences = program.features if name == "duelling" else program.targets
    s = ao.solve(program, tol=1e-6)
    assert s.status is ao.Status.CERTIFIED and s.assumptions == ()
    assert len(s.coordinates) == 2 and differences.shape[1] == 4
    assert s.verify(exact=True).problems == ()


def test_known_values():
    omega = 0.01
    arms = np.vstack([np.eye(6), [math.cos(omega), math.sin(omega), 0, 0, 0, 0]])
    threshold = ao.solve(ao.programs.threshold(ao.LinearBandit(arms, np.eye(6)[0]), 0.9))
    assert threshold.lower <= 212.8531289 * (1 + 1e-9) and threshold.upper >= 212.8531289 * (1 - 1e-9)
    assert threshold.value == pytest.approx(212.8531289, rel=1e-9)
    b = ao.LinearBandit(ARMS, THETA, 0.7)
    assert ao.solve(ao.programs.top_m(b, 1)).value == pytest.approx(ao.solve(ao.programs.best_arm(b)).value, rel=2e-8)
    one = ao.solve(ao.programs.contextual(ao.ContextualBandit([ARMS], THETA, noise_variance=0.7)))
    c = ao.regret_constant(ARMS, THETA, 0.7)
    assert (one.lower, one.upper) == (c.lower, c.upper) and np.array_equal(one.allocation, c.allocation)
    items = ao.solve(ao.programs.transductive(ARMS, ARMS, THETA, 0.7))
    assert items.value == pytest.approx(ao.solve(ao.programs.best_arm(b)).value, rel=2e-8)


def test_optimal_arms_of_all_contexts_that_span_cost_nothing():
    spanning = ao.ContextualBandit([ARMS, [[0, 1, 0], [0, 0, 0.1]], [[0, 0, -1], [0, 0, 1]]], THETA)
    s = ao.solve(ao.programs.contextual(spanning))
    assert s.value == 0.0 and s.status is ao.Status.CERTIFIED
    assert s.verify(exact=True).upper == 0.0


def test_more_contexts_never_cost_less_targets_but_free_directions_help():
    alone = ao.solve(ao.programs.contextual(ao.ContextualBandit([ARMS], THETA))).value
    parallel = ao.ContextualBandit([ARMS, ARMS[[0]] * 2.0], THETA)  # its optimal arm is known already
    assert ao.solve(ao.programs.contextual(parallel)).value == pytest.approx(alone, rel=1e-7)
    helpful = ao.ContextualBandit([ARMS, [[0.0, 1.0, 0.0]]], THETA)
    assert ao.solve(ao.programs.contextual(helpful)).value < alone


def test_the_least_value_over_correct_answers_is_enclosed():
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(12):
        b = ao.LinearBandit(rng.normal(size=(6, 3)), rng.normal(size=3))
        program = ao.programs.best_arm(b, 0.8)
        s = ao.solve(program)
        answers = program.origin.answers or (program.origin.answer,)
        assert set(answers) == set(np.flatnonzero(b.gaps < 0.8).tolist())
        each = {i: ao.solve(ao.programs.best_arm(b, 0.8, i)) for i in answers}
        assert s.value == min(x.upper for x in each.values())
        assert s.lower == min(x.lower for x in each.values())
        assert s.program.origin.answer == min(each, key=lambda i: each[i].upper)
        seen += s.program.origin.answer != int(b.optimal_arms[0])
    assert seen > 0  # the best arm is not always the cheapest answer


def test_epsilon_at_the_gap_itself_is_not_correct():
    b = ao.LinearBandit([[1, 0], [0.5, 0], [0, 1]], [1, 0])
    assert ao.programs.best_arm(b, 0.5).origin.answers == ()
    assert ao.programs.best_arm(b, math.nextafter(0.5, 1)).origin.answers == (0, 1)


def test_copies_are_one_answer_and_need_not_be_told_apart():
    b = ao.LinearBandit([[1, 0], [1, 0], [0.9, 0.2], [0, 1]], [1, 0])
    plain = ao.LinearBandit([[1, 0], [0.9, 0.2], [0, 1]], [1, 0])
    assert ao.programs.best_arm(b, 0.05).origin.answers == ()
    for make in (lambda x: ao.programs.top_m(x, 1), ao.programs.best_arm, ao.programs.duelling):
        assert ao.solve(make(b)).value == pytest.approx(ao.solve(make(plain)).value, rel=3e-8)


def test_only_differences_of_items_must_lie_in_the_span():
    arms = [[1, 0, 0], [0, 1, 0]]
    s = ao.solve(ao.programs.transductive(arms, [[1, 0, 5], [0.3, 0.7, 5]], [1, 0, 0.1]))
    assert s.status is ao.Status.CERTIFIED
    assert s.verify(exact=True).problems == ()
    with pytest.raises(ao.Infeasible, match="the difference of item 1 to item 0"):
        ao.solve(ao.programs.transductive(arms, [[1, 0, 5], [0.3, 0.7, 4]], [1, 0, 0.1]))
    with pytest.raises(ao.Infeasible):  # by 2^-52, where all arms are exactly 0
        ao.solve(ao.programs.transductive(arms, [[1, 0, 1], [0.3, 0.7, math.nextafter(1, 2)]], [1, 0, 0.1]))


@pytest.mark.parametrize(("last", "status"), [(0.2, "CERTIFIED"), (math.nextafter(0.2, 1), "CONDITIONAL")])
def test_differences_that_lie_in_the_span_up_to_rounding_are_an_assumption_of_exact_size(last, status):
    """The combination of both arms has 0.1 + 0.1 in the last column, which is the double 0.2."""
    s = ao.solve(ao.programs.transductive([[1, 0, 0.1], [0, 1, 0.1]], [[1, 1, last], [0, 0, 0]], [1, 0, 0]))
    assert s.status.name == status
    assert len(s.assumptions) == (status == "CONDITIONAL")
    assert all(0 < a.size < 2.0**-50 for a in s.assumptions)
    assert s.verify(exact=True).problems == ()


def test_rounded_differences_that_are_dependent_do_not_hide_exact_ones_that_are_not():
    """Items differ by 7 − 2^-52 in the first column and by 7 in the second; as doubles by 7 in both. (Torture found this one.)"""
    start = np.array([1.125 + 2.0**-52, 3.0])
    items = np.array([start, start - [7.0, 7.0]])
    exact = [Fraction(x) - Fraction(y) for x, y in zip(*items.tolist(), strict=True)]
    assert exact[0] != exact[1] and (items[0] - items[1] == 7.0).all()
    s = ao.solve(ao.programs.transductive([[1.0, 1.0], [2.0, 2.0]], items, [0.4, -0.1]))
    assert s.status is ao.Status.CONDITIONAL and s.verify(exact=True).problems == ()


@pytest.mark.parametrize("kind", ["best_arm", "top_m"])
def test_assumed_dependence_of_arms_is_one_of_their_differences_too(kind):
    """Columns that are sums up to rounding: differences have smaller terms, and so larger shares. (Torture found this one.)"""
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        arms = rng.normal(size=(6, 2))
        arms = np.column_stack([arms, arms @ [1.0, -1.0]])
        b = ao.LinearBandit(arms, [1.0, 0.3, 0.0])
        s = ao.solve(ao.programs.best_arm(b) if kind == "best_arm" else ao.programs.top_m(b, 2))
        found += s.status is ao.Status.CONDITIONAL
        assert s.verify(exact=True).problems == ()
    assert found > 0


def test_large_contexts_are_certified():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(40, 20, 8))
    contexts[:, :, 6:] *= 0.1
    theta = np.append(rng.normal(size=6), [0.0, 0.0])
    s = ao.solve(ao.programs.contextual(ao.ContextualBandit(list(contexts[:5]), theta)))
    assert s.status is ao.Status.CERTIFIED


BANDIT = ao.LinearBandit(ARMS, THETA)
TIED = ao.LinearBandit([[1, 0], [0, 1], [0.5, 0.2]], [1, 1])


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ao.InvalidOption, ["m:", "1 to 4", "got 5"], lambda: ao.programs.top_m(BANDIT, 5)),
        (ao.InvalidOption, ["m:", "0"], lambda: ao.programs.top_m(BANDIT, 0)),
        (ao.InvalidOption, ["m:", "2.5"], lambda: ao.programs.top_m(BANDIT, 2.5)),
        (ao.InvalidInstance, ["arms 0 and 1 tie across the boundary"], lambda: ao.programs.top_m(TIED, 1)),
        (ao.InvalidInstance, ["tau:", "mean of arm 1 is 0.48"], lambda: ao.programs.threshold(BANDIT, BANDIT.means[1])),
        (ao.InvalidOption, ["tau:", "nan"], lambda: ao.programs.threshold(BANDIT, math.nan)),
        (ao.InvalidOption, ["tau:", "'x'"], lambda: ao.programs.threshold(BANDIT, "x")),
        (ao.InvalidInstance, ["zero vector"], lambda: ao.programs.threshold(ao.LinearBandit([[0, 0]], [1, 1]), 1)),
        (ao.InvalidOption, ["epsilon:", "-1"], lambda: ao.programs.best_arm(BANDIT, -1)),
        (ao.InvalidOption, ["answer:", "arm 3"], lambda: ao.programs.best_arm(BANDIT, 0.3, 3)),
        (ao.InvalidOption, ["answer:", "0 to 4"], lambda: ao.programs.best_arm(BANDIT, 0.3, 9)),
        (ao.InvalidOption, ["answer:", "best arm, 0"], lambda: ao.programs.best_arm(BANDIT, answer=2)),
        (ao.InvalidInstance, ["unique best arm"], lambda: ao.programs.best_arm(TIED)),
        (ao.InvalidInstance, ["unique best arm"], lambda: ao.programs.duelling(TIED)),
        (ao.InvalidInstance, ["one number for duels"], lambda: ao.programs.duelling(ao.LinearBandit(ARMS, THETA, [1, 2, 3, 4, 5]))),
        (ao.InvalidInstance, ["items:", "3 columns"], lambda: ao.programs.transductive(ARMS, [[1, 0], [0, 1]], [1, 0])),
        (ao.InvalidInstance, ["items:", "at least two"], lambda: ao.programs.transductive(ARMS, [[1, 0, 0]], THETA)),
        (ao.InvalidInstance, ["unique best arm"], lambda: ao.programs.transductive(np.eye(2), [[1, 0], [0, 1]], [1, 1])),
        (ao.InvalidInstance, ["bandit:", "ContextualBandit"], lambda: ao.programs.contextual(BANDIT)),
        (ao.InvalidInstance, ["bandit:", "LinearBandit"], lambda: ao.programs.top_m(ao.ContextualBandit([ARMS], THETA), 1)),
        (ao.InvalidOption, ["budget:", "-3"],
         lambda: ao.programs.contextual(ao.ContextualBandit([ARMS], THETA), budget=-3.0)),
        (ao.InvalidInstance, ["contexts:", "context 1 has none"], lambda: ao.ContextualBandit([ARMS, []], THETA)),
        (ao.InvalidInstance, ["contexts:", "at least one"], lambda: ao.ContextualBandit([], THETA)),
        (ao.InvalidInstance, ["contexts:", "context 0", "nan"], lambda: ao.ContextualBandit([[[math.nan, 0, 0]]], THETA)),
        (ao.InvalidInstance, ["contexts:", "2 and 3"], lambda: ao.ContextualBandit([ARMS, [[1, 0]]], THETA)),
        (ao.InvalidInstance, ["theta:", "3 entries"], lambda: ao.ContextualBandit([ARMS], [1, 0])),
        (ao.InvalidInstance, ["weights:", "entry 1 is 0.0"], lambda: ao.ContextualBandit([ARMS, ARMS], THETA, [1, 0])),
        (ao.InvalidInstance, ["weights:"], lambda: ao.ContextualBandit([ARMS, ARMS], THETA, [1])),
        (ao.InvalidInstance, ["noise_variance:", "10 arms"], lambda: ao.ContextualBandit([ARMS, ARMS], THETA, None, [1, 2])),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(error, words, call):
    refused(error, words, call)


def test_a_mean_at_the_threshold_is_found_exactly():
    b = ao.LinearBandit([[0.1, 0.2], [1, 0]], [1, 1], tie_tolerance=0.0)
    exact = 0.1 + 0.2  # rounded: not the mean of the doubles 0.1 and 0.2
    s = ao.programs.threshold(b, exact)
    assert 0 < s.radii[0] < 1e-30
    with pytest.raises(ao.InvalidInstance, match=r"mean of arm 1 is 1\.0; no amount"):
        ao.programs.threshold(b, 1.0)
    near = float(np.nextafter(0.5, 1))
    with pytest.raises(ao.InvalidInstance, match=f"mean of arm 1 is 0.5, {near!r} up to rounding"):
        ao.programs.threshold(ao.LinearBandit(np.eye(2), [1, 0.5]), near)
