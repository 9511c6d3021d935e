"""Tables at any width: no word is broken, no number is cut off."""

import json
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from allocopt.cli.main import app
from allocopt.cli.shell.tables import fitted_table

INSTANCE = {
    "arms": [[1, 0, 0], [0, 1, 0], [0.75, 0.5, 0], [0.2, 0.3, 0.9], [0.9, 0.05, 0.3]],
    "theta": [1, 0.1, 0.2],
    "labels": ["the best choice", "an informative one", "a close competitor", "something else", "another one"],
}
WORDS = ("informative", "competitor", "allocation", "multiplier", "confusing", "0.035")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "line", ["solve i.json", "hardness i.json", "schedule i.json -n 1000", "bound i.json -n 1e6 --worst-regret 9"]
)
def test_no_word_is_broken_and_no_number_cut_off(line, width, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "i.json").write_text(json.dumps(INSTANCE))
    shown = CliRunner().invoke(app, line.split(), env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert shown.exit_code == 0
    tables = [
        row for row in shown.output.splitlines() if not row.startswith(("in 1e", "(c·log", "note:"))
    ]  # sentences to copy
    assert max(map(cell_len, tables)) <= width
    assert "…" not in shown.output.replace(", …", "")
    wide = CliRunner().invoke(app, line.split(), env={"COLUMNS": "400", "NO_COLOR": "1"}).output
    words = re.compile(r"[A-Za-z0-9.+-]+")
    missing = set(words.findall(wide)) - set(words.findall(shown.output))
    assert {w for w in missing if "." not in w or w in WORDS} == set()


def test_a_users_very_long_word_is_folded_not_lost():
    name = "x" * 50
    console = Console(width=40, record=True)
    console.print(fitted_table(("arm", "label"), [("1", name)], {1}))
    assert console.export_text().count("x") == 50
