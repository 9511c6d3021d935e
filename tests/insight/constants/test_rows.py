"""Published constants: every shipped proof holds without a solver, and verdicts follow from what is proven."""

import dataclasses
import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import allocopt as ao
from allocopt.certify.referee import judge, read
from allocopt.insight.constants import CONSTANTS, Number, Shares, Verdict, check, finding, named, proof_file, proven
from allocopt.insight.constants.page import GROUPS, page

ROOT = Path(__file__).parents[3]
NAMES = [constant.name for constant in CONSTANTS]
EXPECTED = {
    Verdict.DIFFERS: {"ao-ids-counter-example", "fws-linear-code", "fws-linear-text", "graves-lai-matchings-5"},
    Verdict.ROUNDING: {"tensorzero-asymmetric", "tensorzero-close"},
    Verdict.OTHER_INSTANCE: {"picos-c-lp-as-named"},
    Verdict.UNPRINTED: {"fws-linear-threshold"},
}


def test_names_are_different_and_groups_are_those_of_the_page():
    assert len(set(NAMES)) == len(NAMES)
    assert {constant.group for constant in CONSTANTS} == set(GROUPS)


@pytest.mark.parametrize("name", NAMES)
def test_the_referee_proves_every_row_in_rationals(name):
    """With the standard library alone: the referee's file, read from its own source, and the row's proof file."""
    verdict = judge(read(proof_file(named(name)).read_text(encoding="utf-8")))
    assert verdict.proven and not verdict.assumed
    assert verdict.upper is not None and verdict.upper <= verdict.lower * (1 + Fraction(1, 10**10))


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_certified_again_from_its_file(name):
    row = proven(named(name))
    assert row.solution.status is ao.Status.CERTIFIED
    assert row.solution.gap <= 1e-10
    assert row.finding.verdict is next((v for v, names in EXPECTED.items() if name in names), Verdict.AGREES)
    assert check(row.constant) == []


@pytest.mark.parametrize(
    ("third", "verdict"),
    [("0.010000000211085", "rounding"), ("0.009900000000000", "differs"), ("0.020000000000000", "differs")],
)
def test_shares_with_floors_are_judged_by_what_they_cost_and_whether_they_keep_them(third, verdict):
    row = named("tensorzero-close")
    other = dataclasses.replace(row, printed=Shares({**row.printed.digits, 2: third}))
    assert finding(other, proven(row).solution).verdict.value == verdict


def test_every_proof_file_belongs_to_a_row():
    folder = ROOT / "allocopt" / "insight" / "constants" / "proofs"
    assert sorted(p.stem for p in folder.glob("*/*.json")) == sorted(NAMES)


def test_the_page_in_docs_is_the_page_of_these_rows():
    assert (ROOT / "docs" / "constants.md").read_text(encoding="utf-8") == page(map(proven, CONSTANTS))


def test_no_solver_is_asked_for_a_check(monkeypatch):
    for module in [m for name, m in sys.modules.items() if name.startswith("allocopt.solvers.")]:
        if hasattr(module, "solve"):
            monkeypatch.setattr(module, "solve", None)
    assert [problem for constant in CONSTANTS for problem in check(constant)] == []


def test_a_changed_file_is_noticed(tmp_path, monkeypatch):
    row = named("fws-linear-code")
    document = json.loads(proof_file(row).read_text(encoding="utf-8"))
    document["claim"]["lower"] *= 1.001
    (tmp_path / "p.json").write_text(json.dumps(document))
    monkeypatch.setattr("allocopt.insight.constants.shipped.proof_file", lambda constant: tmp_path / "p.json")
    assert check(row)


def test_a_file_about_another_instance_is_noticed(monkeypatch):
    other = proof_file(named("fws-linear-text"))
    monkeypatch.setattr("allocopt.insight.constants.shipped.proof_file", lambda constant: other)
    assert any("another program" in problem for problem in check(named("fws-linear-code")))


@pytest.mark.parametrize(
    ("digits", "exact", "verdict"),
    [
        ("8", True, Verdict.AGREES),
        ("8.00", False, Verdict.AGREES),
        ("8.3", False, Verdict.DIFFERS),
        ("8.3", True, Verdict.DIFFERS),
        ("8", False, Verdict.AGREES),
        ("8.001", False, Verdict.ROUNDING),
        ("7.999999", False, Verdict.ROUNDING),
        ("8.0000001", True, Verdict.ROUNDING),
    ],
)
def test_a_number_is_judged_by_its_digits(digits, exact, verdict):
    row = proven(named("end-of-optimism-example"))
    changed = dataclasses.replace(row.constant, printed=Number(digits, exact))
    assert finding(changed, row.solution).verdict is verdict


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({0: "0.8", 1: "0.2"}, Verdict.AGREES),
        ({0: "0.8000", 1: "0.2000"}, Verdict.AGREES),
        ({0: "0.801000", 1: "0.199000"}, Verdict.ROUNDING),
        ({0: "0.5000", 1: "0.5000"}, Verdict.DIFFERS),
        ({0: "1.00"}, Verdict.DIFFERS),
    ],
)
def test_shares_are_judged_by_their_cost(shares, verdict):
    """Two Gaussian arms with σ = 1, 1/4: w = 0.8, and w costs (1/w + 1/(16(1 − w)))/(25/16) times the optimum."""
    row = proven(named("two-gaussian-arms"))
    found = finding(dataclasses.replace(row.constant, printed=Shares(shares)), row.solution)
    assert found.verdict is verdict
    w = float(shares[0])
    cost = (1 / w + 1 / (16 * (1 - w))) / (25 / 16) if w < 1 else math.inf
    assert found.difference == pytest.approx(cost - 1, rel=1e-6, abs=1e-10)


def test_what_rounding_of_shares_can_cost_is_an_upper_bound():
    rng = np.random.default_rng(0)
    row = proven(named("fws-linear-threshold"))
    shares = row.solution.allocation / row.solution.allocation.sum()
    for _ in range(20):
        digits = int(rng.integers(3, 6))
        texts = {i: f"{x:.{digits}f}" for i, x in enumerate(shares) if x > 0.5 * 10**-digits}
        if len(texts) == np.count_nonzero(shares > 1e-12):
            printed = Shares(texts)
            found = finding(dataclasses.replace(row.constant, printed=printed), row.solution)
            assert found.verdict is Verdict.AGREES


def test_a_number_of_another_row_is_said_to_be_that():
    row = named("picos-c-lp-as-named")
    assert proven(named(row.belongs_to)).finding.verdict is Verdict.AGREES


def test_an_unknown_row_is_refused_by_name():
    with pytest.raises(ao.InvalidOption, match=r"name: expected one of the \d+ names that `allocopt constants` lists"):
        named("no-such-row")
