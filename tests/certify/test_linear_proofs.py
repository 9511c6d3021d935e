"""Proof files with linear constraints: what is stored, what a reader and the referee refuse, and what they prove."""

import json
import math

import pytest
from proofs import PROGRAMS, change, modest

import allocopt as ao
from allocopt.certify import referee
from allocopt.certify.proofs.writing import proof_document


@pytest.fixture(scope="module")
def solution():
    found = ao.solve(PROGRAMS["constrained"]())
    assert found.status.name == "CERTIFIED"
    return found


@pytest.fixture
def document(solution):
    return json.loads(json.dumps(proof_document(solution)))


def test_files_with_constraints_have_a_version_of_their_own(solution, document, tmp_path):
    assert document["version"] == 4
    assert document["program"]["constraints"][0] == {"arms": [0, 2, 5], "coefficients": [1.0, 1.0, 0.5], "limit": 9.0}
    assert document["constraint_multipliers"] == solution.constraint_multipliers.tolist()
    assert "constraints" not in proof_document(ao.solve(PROGRAMS["general"]()))["program"]
    solution.save(tmp_path / "proof.json")
    loaded = ao.load_solution(tmp_path / "proof.json")
    assert loaded.status.name == "CERTIFIED" and loaded.program.constraints.limits.tolist() == [9.0, -6.0]
    assert loaded.constraint_multipliers.tolist() == solution.constraint_multipliers.tolist()
    assert loaded.lower <= loaded.verify(exact=True).lower <= loaded.verify(exact=True).upper <= loaded.upper


BAD = [
    (("program", "constraints", 0, "limit"), "x", "limit"),
    (("program", "constraints", 0, "limit"), ..., "limit"),
    (("program", "constraints", 0, "arms", 0), 8, "arms"),
    (("program", "constraints", 0, "arms", 0), 2, "distinct"),
    (("program", "constraints", 0, "arms"), [0, 2], "coefficients"),
    (("program", "constraints", 0, "coefficients", 0), "x", "constraints"),
    (("program", "constraints", 0), 7, "constraints[0]: expected an object, got a int"),
    (("program", "constraints"), 7, "constraints"),
    (("program", "constraints"), ..., "allocation"),
    (("constraint_multipliers",), ..., "constraint_multipliers"),
    (("constraint_multipliers",), [0.5], "constraint_multipliers: expected 2 entries"),
    (("constraint_multipliers", 0), -1e-9, "constraint_multipliers: expected entries >= 0, but entry 0 is -1e-09"),
    (("constraint_multipliers", 0), 1e300, "constraint_multipliers"),
    (("constraint_multipliers", 0), None, "constraint_multipliers"),
    (("allocation", 0), "inf", "allocation"),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD)
def test_files_that_contradict_themselves_are_refused_by_name(document, path, value, words, tmp_path):
    bad = change(modest(document), path, value)
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    with pytest.raises(ao.InvalidProof) as caught:
        ao.load_solution(tmp_path / "bad.json")
    assert words in str(caught.value) and "\n" not in str(caught.value)
    if value != 1e300:  # which is a number like any other to rationals
        assert not referee.judge(bad).proven or path == ("program", "constraints")


CLAIMS = [
    (("program", "constraints", 0, "limit"), lambda x: x / 2),  # the allocation is not feasible any more
    (("program", "constraints", 1, "limit"), lambda x: 2 * x),
    (("program", "constraints", 1, "coefficients", 0), lambda x: x / 2),
    (("constraint_multipliers", 1), lambda x: x + 0.5),  # the lower bound is lost
    (("constraint_multipliers", 1), lambda x: x / 2),
    (("constraint_multipliers", 0), lambda x: x + 1.0),
]


@pytest.mark.parametrize(("path", "changed"), CLAIMS)
def test_claims_that_do_not_follow_any_more_are_not_proven(document, path, changed, tmp_path):
    before = document
    for step in path:
        before = before[step]
    bad = change(document, path, changed(before))
    assert not referee.judge(bad).proven
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    with pytest.raises(ao.NotProven):
        ao.load_solution(tmp_path / "bad.json")


def test_the_referee_knows_rows_exactly(document):
    assert referee.judge(document).proven
    played = document["allocation"]
    first = document["program"]["constraints"][0]
    used = sum(c * played[i] for i, c in zip(first["arms"], first["coefficients"], strict=True))
    tight = change(document, ("program", "constraints", 0, "limit"), math.nextafter(used * (1 - 1e-15), 0.0))
    verdict = referee.judge(tight)
    assert not verdict.proven and verdict.upper is None
    assert verdict.lower > 0  # the dual is as good as it was, up to the smaller limit


def test_the_referee_takes_multipliers_that_prove_nothing_as_zero(document):
    """A row that pays for an arm without bound: nothing but μ = 0 proves anything."""
    paid = change(document, ("program", "constraints", 1, "coefficients"), [-1e6, -1e6, -1e6])
    none = change(paid, ("constraint_multipliers",), [0.0, 0.0])
    assert referee.judge(paid).lower == referee.judge(none).lower


def test_an_arm_in_a_constraint_is_not_free_to_the_referee(document):
    assert document["allocation"][0] != "inf"
    loose = modest(change(document, ("program", "constraints", 0), {"arms": [2], "coefficients": [1.0], "limit": 9.0}))
    assert "allocation: it must be infinite on the free arms only" in referee.judge(loose).problems


def test_multipliers_of_no_constraints_are_refused(tmp_path):
    document = proof_document(ao.solve(PROGRAMS["general"]())) | {"constraint_multipliers": [0.0]}
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(ao.InvalidProof, match="constraint_multipliers: expected none"):
        ao.load_solution(tmp_path / "bad.json")
    assert not referee.judge(document).proven
