"""Progress of commands: shown on a terminal once something takes long, and nowhere else."""

import re
import time

import pytest
from rich.console import Console

from allocopt.cli import display
from allocopt.cli.app import given_instance
from allocopt.cli.shell import late_bars
from allocopt.insight.instances import tables
from allocopt.model.progress import Progress


@pytest.mark.parametrize("terminal", [True, False])
def test_a_progress_line_appears_on_terminals_even_before_there_is_news(terminal, monkeypatch, capsys):
    monkeypatch.setattr(late_bars, "SECONDS_BEFORE_PROGRESS", 0.02)
    monkeypatch.setattr(display, "Console", lambda stderr: Console(stderr=stderr, force_terminal=terminal, width=200))
    with display.progress_line("looking", 1e-6) as callback:
        time.sleep(0.3)
        seen = capsys.readouterr().err
        assert ("looking" in seen) is terminal
        callback(Progress("active-set", 3, 7.5, 8.5, 0.1333, 0.2, 1234))
        time.sleep(0.3)
    seen = capsys.readouterr().err
    assert (
        "step 3, 1,234 arms alive: value in [7.5, 8.5], gap 1.3e-01" in re.sub(r"\x1b\[[\d;]*m", "", seen)
    ) is terminal


def test_a_large_file_shows_how_much_of_it_is_read(tmp_path, monkeypatch, capsys):
    """Read in pieces of a few lines, each of which takes a moment; `solve` and its relatives read files in this way."""
    file = tmp_path / "[bold]arms.csv"
    file.write_text("1,2\n" * 3000)
    monkeypatch.setattr(tables, "_PIECE", 1000)
    monkeypatch.setattr(late_bars, "SECONDS_BEFORE_PROGRESS", 0.01)
    monkeypatch.setattr(late_bars, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True, width=200))
    plain, told = late_bars.read_instance, []

    def slowly(path, progress):
        return plain(path, lambda share: (told.append(share), progress(share), time.sleep(0.05)))

    monkeypatch.setattr(late_bars, "read_instance", slowly)
    assert given_instance(file, None).arms.shape == (3000, 2)
    seen = re.sub(r"\x1b\[[\d;]*[mA-Z]", "", capsys.readouterr().err)
    assert "reading [bold]arms.csv" in seen and re.search(r"\b[1-9]\d? %", seen)
    assert told == sorted(told) and told[-1] == 1.0


def test_a_quick_answer_leaves_no_progress_line_behind(monkeypatch, capsys):
    monkeypatch.setattr(display, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True))
    with display.progress_line("looking", 1e-6) as callback:
        callback(Progress("active-set", 3, 7.5, 8.5, 0.1333, 0.2))
    assert "looking" not in capsys.readouterr().err
