"""``allocopt constants``: the list, one row, and the check of all proof files."""

import json

from typer.testing import CliRunner

from allocopt.cli.main import app
from allocopt.insight.constants import CONSTANTS


def run(*arguments):
    return CliRunner().invoke(app, ["constants", *arguments])


def test_the_list_has_every_row_with_its_verdict():
    out = run("--json")
    rows = json.loads(out.stdout)["constants"]
    assert [row["name"] for row in rows] == [c.name for c in CONSTANTS]
    by_name = {row["name"]: row for row in rows}
    assert by_name["fws-linear-code"]["verdict"] == "differs"
    assert by_name["fws-linear-code"]["lower"] <= 222.2499146 * (1 + 1e-9)
    assert by_name["picos-c-lp"]["printed"]["4"] == "0.0337"
    table = run().stdout
    assert all(c.name in table for c in CONSTANTS)


def test_one_row_shows_its_instance_and_why():
    out = run("ao-ids-counter-example").stdout
    assert "64" in out and "differs" in out and "features" in out and "a² = 32" in out
    assert json.loads(run("ao-ids-counter-example", "--json").stdout)["printed"] == "64"


def test_the_check_ends_with_1_if_a_proof_does_not_hold(monkeypatch):
    good = run("two-gaussian-arms", "--check")
    assert good.exit_code == 0 and good.stdout == "two-gaussian-arms: proven\n"
    monkeypatch.setattr("allocopt.cli.insight.constants.check", lambda constant: ["no"])
    bad = run("--check", "--json")
    assert bad.exit_code == 1 and not any(row["holds"] for row in json.loads(bad.stdout)["checked"])
