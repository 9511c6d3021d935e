"""allocopt study: the table is written and shown, failed rows are counted, errors are one line."""

import json

import pyarrow.parquet as parquet
import pytest
from studies import FAMILY, toml
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli.app import app
from allocopt.cli.insight import study as command


def invoke(*arguments):
    runner = CliRunner()
    return runner.invoke(app, ["study", *map(str, arguments)], env={"COLUMNS": "100", "NO_COLOR": "1"})


SPEC = """
quantities = ["c", "ratio"]
[family]
name = "counter-example"
[grid]
epsilon = { logspace = [1e-3, 1e-1], n = 3 }
"""


def test_the_command_writes_the_table_and_says_where(tmp_path):
    spec = toml(tmp_path / "paper.toml", SPEC)
    first = invoke(spec)
    assert first.exit_code == 0
    assert "3 instances in" in first.stdout and "ratio" in first.stdout
    path = tmp_path / "paper-study" / "table.parquet"
    assert f"table: {path}" in first.stdout
    assert parquet.read_table(path).num_rows == 6
    again = invoke(spec)
    assert "nothing left to do: all 3 instances were there" in again.stdout
    document = json.loads(invoke(spec, "--json").stdout)
    assert document["counts"] == {"CERTIFIED": 6} and document["computed"] == 0
    assert document["quantities"][0]["median"] == pytest.approx(8)


def test_failed_rows_are_counted_by_reason_and_the_exit_code_is_1(tmp_path):
    toml(tmp_path / "f.py", FAMILY)
    spec = toml(tmp_path / "s.toml", 'quantities = ["c"]\nrepeats = 2\n[family]\nfunction = "f.py:family"\n'
                '[grid]\nkind = ["fine", "raises"]\n')  # fmt: skip
    result = invoke(spec, "--out", tmp_path / "o")
    assert result.exit_code == 1
    assert "2 rows: ValueError: no such thing" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quantities = [", "not valid TOML"),
        (SPEC.replace("counter-example", "nothing"), "family.name: 'nothing' is unknown"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    spec = tmp_path / "s.toml"
    if text is not None:
        toml(spec, text)
    result = invoke(spec)
    assert isinstance(result.exception, ao.InvalidFile)
    assert message in str(result.exception) and str(spec) in str(result.exception)


def test_ctrl_c_says_that_the_next_start_goes_on(tmp_path, monkeypatch):
    def interrupted(*_, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "study", interrupted)
    result = invoke(toml(tmp_path / "s.toml", SPEC))
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.stderr
