"""``allocopt methods`` prints the table of methods, all of it."""

import importlib
import json

import pytest
from typer.testing import CliRunner

from allocopt.base.errors import InvalidOption
from allocopt.cli.main import app
from allocopt.solvers.methods import METHODS


def run(*arguments):
    return CliRunner().invoke(app, ["methods", *arguments], env={"COLUMNS": "80", "TERM": "dumb"})


def test_every_method_and_setting_is_shown_within_80_columns():
    text = run().output
    assert all(len(line) <= 80 for line in text.splitlines())
    for method in METHODS.values():
        assert method.name in text
        for setting in method.settings.listed():
            assert setting.name in text
            assert setting.meaning.split()[0] in text


def test_the_first_lines_say_what_each_can_do():
    head = {line.split()[0]: line for line in run().output.splitlines()[: len(METHODS) + 1]}
    assert head["interior-point"].split()[1:5] == ["yes", "yes", "yes", "4,000"]
    assert head["streaming"].split()[1:4] == ["yes", "no", "yes"]
    able = [name for name in METHODS if head[name].split()[2] == "yes"]
    assert able == ["interior-point", "active-set", "conic"]
    assert "in blocks" in head["streaming"]
    assert "streaming" in head["active-set"]


def test_one_method_alone():
    text = run("conic").output
    assert "formulation" in text
    assert "max_passes" not in text


def test_json_is_the_table_as_data():
    rows = json.loads(run("--json").output)["methods"]
    assert [row["name"] for row in rows] == list(METHODS)
    for row in rows:
        method = METHODS[row["name"]]
        assert row["constraints"] is method.constraints
        assert row["bounds"] is method.bounds and row["most_arms"] == method.most_arms
        assert row["record"] == method.settings.__name__
        assert [s["name"] for s in row["settings"]] == list(method.options)
    passes = next(s for row in rows if row["name"] == "streaming" for s in row["settings"] if s["name"] == "max_passes")
    assert passes == {"name": "max_passes", "default": 200, "meaning": "passes over all arms at most"}


def test_an_unknown_method_is_refused_with_those_that_there_are():
    result = run("simplex")
    assert isinstance(result.exception, InvalidOption)
    with pytest.raises(InvalidOption, match=r"method: expected one of closed-form, .*, got 'simplex'"):
        raise result.exception


def test_precompile_says_when_machine_code_is_in_place():
    pytest.importorskip("numba", reason="there is nothing to compile with")
    said = CliRunner().invoke(app, ["precompile"])
    assert said.exit_code == 0, said.output
    assert said.output.startswith("machine code is in place")
    assert json.loads(CliRunner().invoke(app, ["precompile", "--json"]).output)["seconds"] >= 0.0


@pytest.mark.parametrize("there", [True, False])
def test_precompile_says_that_it_compiles_before_it_does_where_there_is_no_terminal(monkeypatch, capsys, there):
    pytest.importorskip("numba", reason="there is nothing to compile with")
    command = importlib.import_module("allocopt.cli.precompile")
    said_before = []
    monkeypatch.setattr(command, "ready", lambda form: there or form == "arms" or None)
    monkeypatch.setattr(command, "make", lambda: said_before.append(capsys.readouterr().err))
    command.precompile(as_json=True)
    assert said_before == ["" if there else "compiling; this takes some seconds\n"]
    assert "seconds" in json.loads(capsys.readouterr().out)
