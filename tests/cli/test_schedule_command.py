"""allocopt schedule: what it shows and saves, and errors of one line."""

import json
import math
import sys

import pytest
from schedules import INSTANCE, LABELS, regret

import allocopt as ao
from allocopt.cli import main as cli
from allocopt.cli import schedule as schedule_command
from allocopt.policies.schedule.schedule import Schedule

assert schedule_command  # importing it adds the command


@pytest.fixture
def main(monkeypatch, capsys, tmp_path):
    """``allocopt schedule`` in a directory that has instance.json."""
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", "schedule", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


def test_the_command_shows_pulls_regret_and_c(main):
    code, out, err = main("instance.json", "-n", 10**5)
    assert (code, err) == (0, "")
    s = Schedule.from_solution(regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])), 10**5)
    for text in (
        str(s.pulls[0]),
        str(s.pulls[1]),
        "(c = 8)",
        f"{s.regret / math.log(10**5):.8g}",
        LABELS[1],
        "constraints",
        "met",
    ):
        assert text in out
    code, out, _ = main("instance.json", "-n", 10**5, "--order", "explore-first", "--json")
    assert code == 0
    assert json.loads(out)["runs"] == [[1, s.pulls[1]], [0, s.pulls[0]]]


def test_the_command_reads_proofs_gaps_and_played(main, tmp_path):
    regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])).save(tmp_path / "proof.json")
    (tmp_path / "gaps.json").write_text(json.dumps({"arms": INSTANCE["arms"], "gaps": [0, 1, 0.25], "labels": LABELS}))
    (tmp_path / "played.json").write_text("[10, 20, 5]")
    want = json.loads(main("instance.json", "-n", 1000, "--json")[1])
    for file in ("proof.json", "gaps.json"):
        got = json.loads(main(file, "-n", 1000, "--json")[1])
        assert [a["pulls"] for a in got["arms"]] == [a["pulls"] for a in want["arms"]]
    code, out, _ = main("instance.json", "-n", 1000, "--played", "played.json")
    assert code == 0
    assert "played" in out
    assert "with what was played" in out
    code, out, _ = main("instance.json", "-n", 90, "--program", "g-optimal", "--json")
    assert sum(a["pulls"] for a in json.loads(out)["arms"]) == 90
    code, out, _ = main("instance.json", "-n", 100, "--program", "best-arm", "--theta", "1,0.2")
    assert code == 0
    code, out, _ = main("instance.json", "-n", 30)
    assert code == 0
    assert "does not fit" in out


def test_the_command_saves_and_does_not_overwrite(main, tmp_path):
    assert main("instance.json", "-n", 1000, "--save", "s.csv")[0] == 0
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "first_round,arm,pulls,label"
    before = (tmp_path / "s.csv").read_text()
    code, out, err = main("instance.json", "-n", 2000, "--save", "s.csv")
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert (tmp_path / "s.csv").read_text() == before
    assert main("instance.json", "-n", 20, "--save", "s.csv", "--per-round", "--force")[0] == 0
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 21
    code, _, err = main("instance.json", "-n", 20, "--save", "instance.json", "--force")
    assert code == 2
    assert "is the input itself" in err
    assert json.loads((tmp_path / "instance.json").read_text()) == INSTANCE
    assert main("instance.json", "-n", 1000, "--save", "s.json")[0] == 0
    assert json.loads((tmp_path / "s.json").read_text())["horizon"] == 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["instance.json", "-n", 2], "horizon: expected a whole number >= 3"),
        (["none.json", "-n", 10], "no such file"),
        (["instance.json", "-n", 10, "--played", "1,2"], "played: expected 3 entries"),
        (["instance.json", "-n", 10, "--played", "a"], "--played: expected numbers"),
        (["instance.json", "-n", 10, "--level", "big"], "--level: expected f_n, log or a positive number"),
        (["instance.json", "-n", 10, "--save", "x.txt"], "--save: expected a name that ends in .csv or .json"),
        (["instance.json", "-n", 10, "--per-round"], "--per-round: only with --save"),
        (["instance.json", "-n", 10, "--theta", "1"], "theta: expected 2 entries"),
        (["instance.json", "-n", 10, "--exploration", 5], "exploration: only with"),
        (["proof.json", "-n", 10, "--theta", "1,0"], "--theta: not with a proof file"),
        (["proof.json", "-n", 10, "--program", "best-arm"], "--program: not with a proof file"),
        (["arms.csv", "-n", 10], "the file has arms only"),
        (["gaps.json", "-n", 10, "--noise-variance", 2], "--noise-variance: only with"),
        (["gaps.json", "-n", 10, "--program", "best-arm"], "best-arm needs"),
        (["broken.json", "-n", 10], "not valid JSON"),
    ],
)
def test_the_commands_errors_are_one_line(main, tmp_path, arguments, words):
    regret(ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"])).save(tmp_path / "proof.json")
    (tmp_path / "gaps.json").write_text(json.dumps({"arms": INSTANCE["arms"], "gaps": [0, 1, 0.25]}))
    (tmp_path / "arms.csv").write_text("1,0\n0,1\n")
    (tmp_path / "broken.json").write_text("{")
    code, out, err = main(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
