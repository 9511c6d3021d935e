"""Proof files of version 2: what they rest on is checked or refused, each with its own message."""

import copy
import json
import math

import numpy as np
import pytest
from proofs import PROGRAMS as MORE
from typer.testing import CliRunner

import allocopt as ao
from allocopt.certify.proofs.writing import proof_document
from allocopt.certify.referee import judge, read
from allocopt.cli.main import app
from allocopt.insight.instances import random_unit
from allocopt.insight.instances.files import read_instance

EXACT = ao.LinearBandit([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])  # c = 8 exactly
BANDIT = random_unit(3, 8, seed=1)
TIED = ([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.1]], [0.1, 0.2, 0.3])  # 0.1 + 0.2 is not 0.3

PROGRAMS = {
    "exact": lambda: ao.programs.regret(EXACT),
    "regret": lambda: ao.programs.regret(ao.LinearBandit(BANDIT.arms, BANDIT.theta, noise_variance=0.3)),
    "tied": lambda: ao.programs.regret(ao.LinearBandit(*TIED)),
    "horizon": lambda: ao.programs.horizon(BANDIT.arms, BANDIT.gaps, 1000, constant=1.5),
    "best_arm": lambda: ao.programs.best_arm(BANDIT),
    "g_optimal": lambda: ao.programs.g_optimal(BANDIT.arms),
    "optimism": lambda: ao.programs.optimism(BANDIT, 0.9),
    "remaining": lambda: ao.programs.remaining(BANDIT, [3, 0, 7.5, 1, 0, 0, 2, 100], 1000),
    "general": lambda: ao.AllocationProgram(
        BANDIT.arms, [0, 1, 0.5, 1, 1, 1, 0, 2], BANDIT.arms[:3], [0.1, 0.2, 0.3], upper=[math.inf] * 6 + [0.5, 3]
    ),
}

PROGRAMS |= {name: made for name, made in MORE.items() if name not in PROGRAMS}


@pytest.fixture(scope="module")
def documents():
    return {name: proof_document(ao.solve(program())) for name, program in PROGRAMS.items()}


def changed(document, path, value):
    result = copy.deepcopy(document)
    place = result
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


def load(document, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return ao.load_solution(path)


def refusal(document, tmp_path):
    with pytest.raises(ao.InvalidProof) as caught:
        load(document, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'p.json'}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_referee_proves_what_is_saved(documents, kind, tmp_path):
    document = documents[kind]
    verdict = judge(document)
    assert verdict.problems == []
    loaded = load(document, tmp_path)
    assert judge(read((tmp_path / "p.json").read_text())) == verdict
    assert loaded.stats["claim"]["status"] == document["claim"]["status"]
    e = loaded.verify(exact=True)
    assert e.lower <= verdict.lower <= verdict.upper <= e.upper
    assert e.upper - e.lower <= float(verdict.upper - verdict.lower) + 4e-16 * e.upper
    assert e.precision == 0
    balls = loaded.verify()
    assert balls.lower <= e.upper
    assert e.lower <= balls.upper
    assert proof_document(loaded)["program"] == document["program"]


def test_the_exact_proof_of_an_exact_instance_has_no_width():
    s = ao.solve(ao.programs.regret(EXACT))
    e = s.verify(exact=True)
    assert (e.lower, e.upper, e.notes) == (8.0, 8.0, ())
    with pytest.raises(ao.InvalidOption, match="precision"):
        s.verify(128, exact=True)


def test_a_tie_up_to_rounding_is_listed_with_its_exact_size(documents, tmp_path):
    document = documents["tied"]
    assert document["claim"]["status"] == "CONDITIONAL"
    (tie,) = document["assumptions"]
    assert (tie["kind"], tie["arms"]) == ("tie", [1])
    assert list(load(document, tmp_path).verify(exact=True).tied_gaps) == [1]
    assert "no such assumption" in refusal(
        changed(changed(document, ("assumptions",), []), ("claim", "status"), "FAILED"), tmp_path
    )
    assert "no assumption is listed" in refusal(changed(document, ("assumptions",), []), tmp_path)
    assert "would be CONDITIONAL" in refusal(changed(document, ("claim", "status"), "CERTIFIED"), tmp_path)
    for path, value, words in (
        (("size",), "1/100", "more than rounding"),
        (("size",), "-1/100", "more than rounding"),
        (("size",), "1" + "0" * 400, "more than rounding"),
        (("size",), "1e999999999", "p/q"),
        (("size",), "1/0", "p/q"),
        (("size",), "1/2/3", "p/q"),
        (("size",), 0.5, "size"),
        (("size",), "1/1" + "0" * 60, "no such assumption"),
        (("kind",), "luck", "luck"),
        (("kind",), "dependence", "no such assumption"),
        (("arms",), [2], "no such assumption"),
        (("arms",), [4], "from 0 to 3"),
        (("arms",), [1, 1], "distinct"),
        (("text",), ..., "text"),
    ):
        assert words in refusal(changed(document, ("assumptions", 0, *path), value), tmp_path)


def test_a_forged_tie_tolerance_makes_no_arm_optimal(tmp_path):
    """Found by an outside check: tie_tolerance 1e300 in the file, and the claim held."""
    honest = ao.regret_constant([[1, 0, 0], [0.9, 1, 0], [0, 0, 1]], [1, 0, 0])
    loose = ao.regret_constant([[1, 0, 0], [0.9, 1, 0], [0, 0, 1]], [1, 0, 0], tie_tolerance=0.2)
    assert honest.value > 2 * loose.value
    document = proof_document(loose)
    for tolerance in (0.2, 1.0):
        forged = changed(document, ("program", "tie_tolerance"), tolerance)
        assert "more than rounding" in refusal(forged, tmp_path)
        forged["assumptions"] = []
        forged["claim"]["status"] = "CERTIFIED"
        assert "more than rounding" in refusal(forged, tmp_path)


@pytest.mark.parametrize(
    ("kind", "path", "value", "words"),
    [
        ("horizon", ("program", "f_n"), 0.001, "does not follow"),
        ("horizon", ("program", "n"), 1001, "does not follow"),
        ("horizon", ("program", "constant"), 1.0, "does not follow"),
        ("horizon", ("program", "constant"), 1e308, "constant: expected at most 1e+50"),  # else f_n is inf
        ("horizon", ("program", "constant"), ..., "constant"),
        ("horizon", ("program", "constant"), -1.0, "constant"),
        ("remaining", ("program", "log_n"), 6.9, "does not follow"),
        ("remaining", ("program", "n"), 999, "does not follow"),
        ("exact", ("version",), 1, "older version"),
        ("exact", ("program", "arms", 1, 1), True, "program.arms[1][1]: expected a number, got true"),
        ("exact", ("program", "optimal_arms", 0), False, "expected a number, got false"),
        ("exact", ("multipliers", 2), True, "multipliers[2]"),
        ("exact", ("claim", "lower"), True, "claim.lower"),
        ("exact", ("program", "arms", 1, 1), 2**53 + 1, "9007199254740993"),
        ("exact", ("program", "theta", 0), 2**64 + 1, "expected a double"),
        ("exact", ("allocation", 1), 10**400, "expected a double"),
        ("exact", ("multipliers",), [0.0, 0.0, 1e-320], "multipliers"),
        ("exact", ("allocation", 1), 1e308, "allocation"),
        ("exact", ("program", "noise_variance"), ..., "noise_variance"),
        ("exact", ("program", "tie_tolerance"), ..., "tie_tolerance"),
        ("exact", ("claim", "lower"), 8.5, "claim"),
        ("exact", ("claim", "lower"), -1.0, "claim"),
        ("exact", ("claim", "lower"), "inf", "claim"),
        ("exact", ("claim", "lower"), 8.0 + 1e-9, "claim"),
        ("exact", ("claim", "upper"), 8.0 - 1e-9, "claim"),
        ("exact", ("claim", "upper"), 9.0, "above tol"),
        ("exact", ("claim", "upper"), "inf", "above tol"),
        ("exact", ("claim", "status"), "PROVEN", "PROVEN"),
        ("exact", ("claim", "status"), ["CERTIFIED"], "status"),
        ("exact", ("claim", "status"), ..., "status"),
        ("exact", ("quotient",), ..., "quotient"),
        ("exact", ("quotient", "pivot_arms"), [1], "not free"),
        ("exact", ("quotient", "pivot_arms"), [0, 0], "distinct"),
        ("exact", ("quotient", "pivot_arms"), [-1], "from 0 to 2"),
        ("exact", ("quotient", "basis_arms"), [0.5], "from 0 to 2"),
        ("exact", ("quotient", "coordinates"), [0], "both"),
        ("exact", ("assumptions",), ..., "assumptions"),
        ("exact", ("assumptions",), [3], "assumptions"),
        ("exact", ("allocation", 1), 4.0 * 8.0, None),
    ],
    ids=lambda x: str(x)[:40],
)
def test_each_forgery_has_its_own_message(documents, kind, path, value, words, tmp_path):
    document = changed(documents[kind], path, value)
    if words is None:  # without bounds α may be scaled: another witness for the same claim
        load(document, tmp_path)
    else:
        assert words in refusal(document, tmp_path)
        assert not judge(document).proven or words in ("multipliers", "allocation", "both", "distinct", "tie_tolerance")


def test_no_key_may_be_there_twice(documents, tmp_path):
    text = json.dumps(documents["exact"])
    assert "'theta' is there twice" in refusal(text.replace('"theta":', '"theta": [1.0, 0.25], "theta":'), tmp_path)
    assert "'tol' is there twice" in refusal(text.replace('"tol":', '"tol": 1, "tol":'), tmp_path)


def test_instance_files_have_no_key_twice_either(tmp_path):
    path = tmp_path / "i.json"
    path.write_text('{"arms": [[1, 0], [0, 1]], "theta": [1, 0], "theta": [0, 1]}')
    with pytest.raises(ao.InvalidFile, match="'theta' is there twice"):
        read_instance(path)


def test_a_claim_that_is_true_but_wide_is_accepted_and_says_so(documents, tmp_path):
    wide = changed(documents["exact"], ("claim",), {"lower": 4.0, "upper": 10.0, "status": "INACCURATE"})
    assert load(wide, tmp_path).stats["claim"]["wider"] is True
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "p.json")])
    assert result.exit_code == 0
    assert "wider" in result.output
    nothing = changed(documents["exact"], ("claim",), {"lower": 0.0, "upper": "inf", "status": "FAILED"})
    assert load(nothing, tmp_path).stats["claim"]["wider"] is True
    assert load(documents["exact"], tmp_path).stats["claim"]["wider"] is False


def test_a_claim_without_any_width_is_accepted_where_the_witness_proves_it(documents, tmp_path):
    sharp = changed(documents["exact"], ("claim",), {"lower": 8.0, "upper": 8.0, "status": "CERTIFIED"})
    assert judge(sharp).proven
    load(sharp, tmp_path)
    result = CliRunner().invoke(app, ["verify", "--exact", str(tmp_path / "p.json")])
    assert result.exit_code == 0
    assert "the claim holds" in result.output


def test_the_command_says_what_is_assumed(documents, tmp_path):
    load(documents["tied"], tmp_path)
    for options in ([], ["--exact"]):
        result = CliRunner().invoke(app, ["verify", str(tmp_path / "p.json"), *options])
        assert result.exit_code == 0, result.output
        assert "assumed" in result.output
        assert "under what is assumed" in result.output
        result = CliRunner().invoke(app, ["verify", str(tmp_path / "p.json"), "--json", *options])
        answer = json.loads(result.output)
        assert answer["holds"] is True
        assert answer["assumptions"][0]["kind"] == "tie"
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "p.json"), "--exact", "--precision", "128"])
    assert isinstance(result.exception, ao.InvalidOption)


def test_the_command_exits_with_1_where_the_claim_is_not_proven(documents, tmp_path):
    path = tmp_path / "p.json"
    for place, value in (
        (("claim", "lower"), 8.0 + 2e-13),
        (("claim", "upper"), 9.0),
        (("claim", "status"), "CONDITIONAL"),
        (("allocation", 1), 0.0),
        (("assumptions",), [{"kind": "tie", "arms": [1], "size": "1/2", "text": ""}]),
    ):
        path.write_text(json.dumps(changed(documents["exact"], place, value)))
        for options in ([], ["--exact"]):
            result = CliRunner().invoke(app, ["verify", str(path), *options])
            assert result.exit_code == 1
            assert "NOT proven" in result.output
            result = CliRunner().invoke(app, ["verify", str(path), "--json", *options])
            assert result.exit_code == 1
            assert json.loads(result.output)["holds"] is False
        with pytest.raises(ao.NotProven):
            ao.load_solution(path)


def test_the_referee_has_the_last_word_on_the_quotient(documents, tmp_path):
    """Loading finds its own quotient; the referee needs the one that is stored."""
    document = changed(
        documents["regret"], ("quotient", "coordinates"), documents["regret"]["quotient"]["coordinates"][:1]
    )
    load(document, tmp_path)
    result = CliRunner().invoke(app, ["verify", "--exact", str(tmp_path / "p.json")])
    assert result.exit_code == 1
    assert "NOT proven" in result.output


def test_names_that_no_file_can_have(tmp_path):
    s = ao.solve(ao.programs.regret(EXACT))
    for path in (None, 3, "a\0b", tmp_path / "a\0b", b"p.json"):
        with pytest.raises(ao.InvalidFile, match="path: expected the name of a file"):
            ao.load_solution(path)
        with pytest.raises(ao.InvalidFile, match="path: expected the name of a file"):
            s.save(path)


@pytest.mark.parametrize("precision", [10**20, 100_001, 63, -1, True, 64.0, "64", math.inf])
def test_the_precision_has_a_range(precision):
    s = ao.solve(ao.programs.regret(EXACT))
    with pytest.raises(ao.InvalidOption, match="64 to 100000"):
        s.verify(precision)


def test_a_horizon_of_any_size_is_stored_exactly(tmp_path):
    n = 10**20 + 1
    s = ao.solve(ao.programs.horizon(BANDIT.arms, BANDIT.gaps, n))
    document = proof_document(s)
    assert judge(document).problems == []
    t = load(document, tmp_path)
    assert (t.program.origin.horizon, t.program.origin.constant) == (n, 1.0)
    assert np.array_equal(t.allocation, s.allocation)
