"""Bad command lines: one helpful line each, exit code 2, JSON where that was asked for, and no file is lost or left behind."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from allocopt.cli import main as cli

INSTANCE = {"arms": [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]], "theta": [1.0, 0.0]}

BAD = [
    ("", "expected a command"),
    ("slove i.json", "did you mean 'solve'?"),
    ("solve", "FILE: expected one"),
    ("solve i.json more.json", "more.json"),
    ("solve none.json", "none.json: no such file"),
    ("solve folder", "folder: expected a .json, .npz, .csv, .csv.gz, .parquet or .npy file, got a folder"),
    ("solve armz.json", "got the entry \"armz\" (did you mean 'arms'?)"),
    ("solve teta.json", "unknown entry \"teta\" (did you mean 'theta'?)"),
    ("constants nothing-at-all", "names that `allocopt constants` lists"),
    ("solve broken.json", "line 1"),
    ("solve i.json --progam regret", "did you mean '--program'?"),
    ("solve i.json --tolerance 1e-4", "did you mean '--tol'?"),
    ("solve i.json --noise-varance 2", "did you mean '--noise-variance'?"),
    ("solve i.json --program regrte", "did you mean 'regret'?"),
    ("solve i.json --program dueling", "did you mean 'duelling'?"),
    ("solve i.json --method interior_pont", "did you mean 'interior-point'?"),
    ("solve i.json --tol tiny", "--tol: expected a number, got 'tiny'"),
    ("solve i.json --tol -1", "tol"),
    ("solve i.json --theta", "--theta"),
    ("solve i.json --theta 1,2,3", "theta: expected 2 entries"),
    ("solve i.json --theta words.txt", "words.txt: line 2: expected numbers, got 'two'"),
    ("solve i.json --theta missing.txt", "--theta: missing.txt: no such file"),
    ("solve arms.csv", "--theta"),
    ("solve i.json --horizon 1.5", "--horizon: expected a whole number, got '1.5'"),
    ("solve i.json -n 100", "only for --program horizon"),
    ("solve i.json --program top-m", "--m: expected a number of arms"),
    ("solve i.json --save i.json --force", "is the input itself"),
    ("solve i.json --save words.txt", "exists already; choose another name or add --force"),
    ("solve i.json --save folder", "folder is a directory"),
    ("solve i.json --save nowhere/p.json", "there is no directory nowhere"),
    ("solve arms.csv --theta theta.txt --save theta.txt --force", "is the input itself"),
    ("verify i.json", "proof"),
    ("verify --exakt p.json", "did you mean '--exact'?"),
    ("methods interior-piont", "did you mean 'interior-point'?"),
    ("spanner i.json -C 0", "C"),
    ("schedule i.json", "--horizon: expected this option"),
    ("schedule i.json -n 100 --save s.txt", ".csv or .json"),
    ("schedule i.json -n 100 --order trakcing", "did you mean 'tracking'?"),
    ("schedule i.json -n 100 --save i.json --force", "is the input itself"),
    ("simulate i.json -n 100 -p LinUBC", "did you mean 'LinUCB'?"),
    ("simulate i.json -n 100 -p UCB:aa=1", "did you mean 'a'?"),
    ("simulate i.json -n 100 -p UCB -p UCB", "given twice"),
    ("simulate i.json -n 100 -p UCB --plot words.txt", ".png, .pdf or .svg"),
    ("simulate i.json -n 100 -p UCB --noise gausian", "gaussian"),
    ("bound i.json -n many --worst-regret 1", "--horizon: expected a whole number"),
    ("bound i.json -n 1000", "--worst-regret, --times-optimal"),
    ("bound i.json -n 1000 --worst-regret 5 --save i.json --force", "is the input itself"),
    ("hardness i.json --html page.html", "exists already"),
    ("hardness i.json --plot i.json --force", ".png, .svg or .pdf"),
    ("constants lai-robins-gaussian", "lai-robbins-gaussian"),
    ("study none.toml", "none.toml"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, text in {
        "i.json": json.dumps(INSTANCE), "more.json": json.dumps(INSTANCE), "broken.json": "{", "words.txt": "1\ntwo\n",
        "theta.txt": "1 0\n", "arms.csv": "1,0\n0,1\n", "page.html": "mine",
        "armz.json": '{"armz": [[1, 0]], "theta": [1, 0]}', "teta.json": '{"arms": [[1, 0]], "a": 1, "teta": [1, 0]}',
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "arms.npy", np.eye(3))
    return tmp_path


def contents(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in Path(folder).rglob("*") if p.is_file()}


def run(monkeypatch, capsys, line):
    monkeypatch.setattr(sys, "argv", ["allocopt", *line.split()])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    return stop.value.code, out, err


@pytest.mark.parametrize(("line", "words"), BAD, ids=lambda x: x[:60])
def test_a_bad_command_line_is_one_helpful_line_and_nothing_is_lost(line, words, folder, monkeypatch, capsys):
    before = contents(folder)
    code, out, err = run(monkeypatch, capsys, line)
    assert code == 2
    assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n")
    assert words in err
    assert out == "" or not line  # without any command the list of commands is shown
    assert contents(folder) == before


@pytest.mark.parametrize("line", ["solve none.json", "solve i.json --tol x", "slove", "solve i.json --save i.json"])
def test_with_json_an_error_is_a_document_too(line, folder, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, f"{line} --json")
    assert code == 2 and err.count("\n") == 1
    document = json.loads(out)
    assert document["schema_version"] == 1
    assert err == f"error: {document['error']['message']}\n" and document["error"]["kind"].startswith("Invalid")


DOCUMENTS = ["solve i.json", "demo", "methods", "methods design", "spanner i.json", "schedule i.json -n 100",
             "hardness i.json", "constants two-gaussian-arms", "bound i.json -n 1000 --worst-regret 5"]  # fmt: skip


@pytest.mark.parametrize("line", DOCUMENTS)
def test_every_document_has_the_version_of_its_schema(line, folder, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, f"{line} --json")
    assert (code, err) == (0, "")
    assert list(json.loads(out).items())[0] == ("schema_version", 1)  # noqa: RUF015


def test_keys_do_not_come_and_go(folder, monkeypatch, capsys):
    (folder / "named.json").write_text(json.dumps({**INSTANCE, "labels": ["a", "b", "c"]}))
    lines = ("i.json", "named.json", "i.json --no-prove", "i.json --program best-arm --epsilon 0.1", "i.json --program top-m --m 1",
             "i.json --program g-optimal", "i.json --theta 1,1",
             "i.json --method frank-wolfe --tol 1e-14 --max-seconds 0.05")  # fmt: skip
    keys = {line: list(json.loads(run(monkeypatch, capsys, f"solve {line} --json")[1])) for line in lines}
    assert len({tuple(k) for k in keys.values()}) == 1, keys


@pytest.mark.parametrize("spelling", ["best-arm", "best_arm", "Best-Arm"])
def test_programs_may_be_spelt_as_in_python(spelling, folder, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, f"solve i.json --program {spelling} --json")
    assert code == 0 and json.loads(out)["program"] == "best_arm"


def test_numbers_of_rounds_may_be_written_1e3(folder, monkeypatch, capsys):
    _, out, _ = run(monkeypatch, capsys, "schedule i.json -n 1e3 --json")
    assert json.loads(out)["horizon"] == 1000


def test_force_replaces_a_file_that_exists(folder, monkeypatch, capsys):
    assert run(monkeypatch, capsys, "solve i.json --save words.txt --force")[0] == 0
    assert json.loads((folder / "words.txt").read_text())["format"] == "allocopt-proof"
