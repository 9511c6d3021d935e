"""Proof files of very many arms: read as arrays, proven block by block, and refused like any other; what takes long says so."""

import json
import re

import numpy as np
import pytest
from blocks import agree, in_blocks, unit_arms

import allocopt as ao
from allocopt.certify.proofs import reading, writing

INF = float("inf")


def solved(kind, dim=4, arms=60):
    rows, theta = unit_arms(dim, arms)
    bandit = ao.LinearBandit(rows, theta)
    program = {
        "regret": lambda: ao.programs.regret(bandit),
        "optimism": lambda: ao.programs.optimism(bandit, 0.7),
        "remaining": lambda: ao.programs.remaining(bandit, np.arange(arms) % 3, 1000),
        "horizon": lambda: ao.programs.horizon(rows, bandit.gaps, 1000),
        "g_optimal": lambda: ao.programs.g_optimal(rows),
    }[kind]()
    return ao.solve(program, tol=1e-6)


@pytest.fixture
def written(tmp_path):
    def write(solution, change=lambda document: None):
        path = tmp_path / "proof.json"
        solution.save(path, overwrite=True)
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.mark.parametrize("kind", ["regret", "optimism", "remaining", "horizon", "g_optimal"])
def test_a_file_is_proven_by_block_and_says_what_the_arms_in_memory_say(kind, written, monkeypatch):
    with in_blocks():
        solution = solved(kind)
        path = written(solution)
        with monkeypatch.context() as patch:
            patch.setattr(reading, "recertify", lambda *given: pytest.fail("all arms at once"))
            loaded = ao.load_solution(path)
    here = ao.load_solution(path)
    assert loaded.program._blocks is not None and here.program._blocks is None
    for one in (loaded, here):
        assert solution.lower <= one.lower <= one.upper <= solution.upper
        assert np.array_equal(one.allocation, solution.allocation)
        assert np.array_equal(one.multipliers, solution.multipliers)
        assert one.status == solution.status == ao.Status.CERTIFIED
        assert agree(one, solution) and agree(one.verify(), solution)


def claims_more(document):
    document["claim"]["upper"] = document["claim"]["lower"]


def plays_less(document):
    document["allocation"] = [x if x == "inf" else 0.9 * x for x in document["allocation"]]


@pytest.mark.parametrize(
    ("kind", "change"), [("regret", claims_more), ("remaining", plays_less), ("remaining", claims_more)]
)
def test_what_is_not_proven_is_refused_by_block_too(kind, change, written):
    with in_blocks():
        path = written(solved(kind), change)
        with pytest.raises(ao.NotProven, match="claims"):
            ao.load_solution(path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d["program"]["arms"][3].__setitem__(1, True), r"arms\[3\]\[1\]: expected a number, got true"),
        (lambda d: d["program"]["arms"][3].__setitem__(1, 2**53 + 1), r"arms\[3\]\[1\]: expected a double"),
        (lambda d: d["program"]["arms"][3].__setitem__(1, "0.5"), "arms"),
        (lambda d: d["program"]["arms"][3].__setitem__(1, None), "arms"),
        (lambda d: d["program"]["arms"][3].pop(), "rows have different lengths"),
        (lambda d: d["program"]["arms"].pop(), "."),
        (lambda d: d["allocation"].__setitem__(2, -1.0), "allocation: expected entries >= 0"),
        (lambda d: d["program"].pop("theta"), '"theta" is missing'),
    ],
)
def test_numbers_are_read_as_strictly_as_ever(change, text, written):
    with in_blocks():
        path = written(solved("regret"), change)
        with pytest.raises(ao.InvalidProof, match=text):
            ao.load_solution(path)


def test_multipliers_of_free_arms_and_dependent_arms_are_left_to_the_arms_in_memory(written, monkeypatch):
    called = []
    recertify = reading.recertify
    monkeypatch.setattr(reading, "recertify", lambda *given: called.append(1) or recertify(*given))
    with in_blocks():
        solution = solved("regret")
        free = int(solution.optimal_arms[0])
        ao.load_solution(written(solution, lambda d: d["multipliers"].__setitem__(free, 1e-3)))
        assert called == [1]
        arms = np.array([[1, 0, 0], [0.5, 0.1, 0.7], [0.3, 0.3, 2.1], [0.2, 0.7, 4.9], [0.4, -0.1, -0.7]] * 3)
        conditional = ao.regret_constant(arms, [1, 0, 0], tol=1e-6)
        assert conditional.status == ao.Status.CONDITIONAL
        assert ao.load_solution(written(conditional)).status == ao.Status.CONDITIONAL
        assert called == [1, 1]


def test_a_proof_in_rationals_says_beforehand_how_long_it_takes_and_what_does_not_fit(monkeypatch):
    solution = solved("regret", arms=30)
    monkeypatch.setattr(writing, "_SECONDS_OF_A_PRODUCT", 1.0)
    asked = []
    judge = writing.referee.judge
    monkeypatch.setattr(writing.referee, "judge", lambda document: asked.append(1) or judge(document))
    with pytest.warns(ao.SlowWarning, match=re.escape("a proof in rationals takes about 8 minutes; verify() proves")):
        assert solution.verify(exact=True).problems == ()
    assert asked == [1]
    monkeypatch.setattr(writing, "_BYTES_OF_A_RATIONAL", 1e15)
    with pytest.raises(ao.InvalidOption, match=r"^exact: 120 numbers as rationals would take 120 PB of memory, but"):
        solution.verify(exact=True)
    assert asked == [1]


def test_balls_that_decide_a_claim_say_beforehand_how_long_they_take_and_what_does_not_fit(monkeypatch, written):
    path = written(solved("regret"), claims_more)
    monkeypatch.setattr(reading, "_SECONDS_OF_A_NUMBER", 1.0)
    with pytest.warns(ao.SlowWarning, match="ball arithmetic takes about 4 minutes"), pytest.raises(ao.NotProven):
        ao.load_solution(path)
    monkeypatch.setattr(reading, "_BYTES_OF_A_NUMBER", 1e15)
    with pytest.raises(ao.InvalidProof, match="240 numbers in balls would take 240 PB of memory"):
        ao.load_solution(path)
