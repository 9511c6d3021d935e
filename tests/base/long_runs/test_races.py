"""Two processes that begin in one folder at the same moment: one works, the other is told which one does."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RACER = """
import sys, time
from pathlib import Path
from allocopt.base.errors import InvalidFile
from allocopt.base.long_runs.store import RunStore
print("ready", flush=True)
for line in sys.stdin:
    folder = Path(line.strip())
    try:
        with RunStore.open(folder, "study") as store:
            store.begin({"seed": 1})
            store.add(0, 1, b"x")
            print("won", flush=True)
            sys.stdin.readline()
    except InvalidFile as error:
        print(error, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.slow
def test_of_two_processes_racing_for_a_folder_exactly_one_wins_two_hundred_times(tmp_path):
    start = [sys.executable, "-c", RACER]
    pair = [subprocess.Popen(start, stdin=-1, stdout=-1, text=True, cwd=ROOT, bufsize=1) for _ in range(2)]
    assert [p.stdout.readline() for p in pair] == ["ready\n"] * 2
    for race in range(200):
        for p in pair if race % 2 else pair[::-1]:
            p.stdin.write(f"{tmp_path / str(race)}\n")
            p.stdin.flush()
        said = [p.stdout.readline().strip() for p in pair]
        assert said.count("won") == 1, said
        winner, loser = pair[said.index("won")], said[1 - said.index("won")]
        assert f"another process is working in this folder: process {winner.pid} on" in loser
        for p in pair:
            p.stdin.write("next\n")
            p.stdin.flush()
    for p in pair:
        p.stdin.close()
        assert p.wait(30) == 0
        p.stdout.close()
