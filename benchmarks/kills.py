"""Kill studies and simulations at random moments, their workers and themselves, here and on a cluster: the tables must stay the same.

make kills                      # writes benchmarks/KILLS.md
python benchmarks/kills.py --kills 20 --seed 7
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
from kept_alive import KeptAlive, kept_alive
from pyarrow.parquet import read_table

import allocopt as ao

HERE = Path(__file__).parent
TARGETS = ("workers", "workers", "workers", "parent", "both")
ROWS, RUNS = 300, 300
PAUSE = (0.0, 1.0)
"""Seconds until the next kill, once something was kept since the last one."""
MOST_ERRORS = 20
"""Starts that may end with an error of their own (the cluster has lost its workers, say) before it is given up."""
AT_WORK = 0.8
"""How often a kill waits until another part of the results was kept; otherwise it may hit processes that still load."""
FAMILY = """
import time
from allocopt.insight.instances import random_unit

def family(seed):
    time.sleep(0.004)
    return random_unit(3, 10, seed)
"""


def study(folder: Path, client: str | None) -> str:
    """A study of a function of one's own; the digest of its table."""
    family = folder.parent / "family.py"
    if not family.exists():
        family.write_text(FAMILY)
    spec = {"family": {"function": f"{family}:family"}, "repeats": ROWS, "quantities": ["c", "ratio"]}
    how: dict[str, Any] = {"workers": 2} if client is None else {"client": client}
    return hashlib.sha256(ao.study(spec, folder, **how).path.read_bytes()).hexdigest()


def simulation(folder: Path, client: str | None) -> str:
    """A simulation; the digest of its saved table: regret and pulls of every run."""
    bandit = ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.2]], [1, 0])
    how: dict[str, Any] = {"workers": 2} if client is None else {"client": client}
    found = ao.simulate("LinTS", bandit, 20_000, RUNS, rng=5, checkpoint=folder, **how)
    table = folder.with_suffix(".parquet")
    found.save(table, overwrite=True)
    return hashlib.sha256(table.read_bytes()).hexdigest()


WORK = {"study": study, "simulation": simulation}


def killable(victim: subprocess.Popen[str], local: KeptAlive | None) -> list[psutil.Process]:
    """The processes that compute."""
    if local is not None:
        return local.computing()
    try:
        return psutil.Process(victim.pid).children(recursive=True)
    except psutil.Error:
        return []


def written(place: Path) -> list[tuple[str, int]]:
    """The files of a run, and when they were written last: another part is another time."""
    try:
        return sorted((p.name, p.stat().st_mtime_ns) for p in place.iterdir())
    except OSError:
        return []


def kill(rng: random.Random, place: Path, victim: subprocess.Popen[str], local: KeptAlive | None) -> str | None:
    """Kill something; what it was, None if it was too late."""
    target = rng.choice(TARGETS)
    if rng.random() < AT_WORK:  # else while it may still load
        before, deadline = written(place), time.monotonic() + 30.0
        while victim.poll() is None and written(place) == before and time.monotonic() < deadline:
            time.sleep(0.02)
    time.sleep(rng.uniform(*PAUSE))
    killed = set()
    try:
        if target in ("workers", "both"):
            there = killable(victim, local)
            for process in rng.sample(there, min(len(there), rng.choice((1, 1, 2)))):
                process.send_signal(signal.SIGKILL)
                killed.add("workers")
        if target in ("parent", "both") and victim.poll() is None:
            victim.kill()
            killed.add("parent")
    except psutil.Error:
        pass
    return "both" if len(killed) == 2 else next(iter(killed), None)


def attack(kind: str, local: KeptAlive | None, kills: int, rng: random.Random, folder: Path) -> dict[str, Any]:
    """Kill until there were so many kills; every run that comes to its end must have the digest of the undisturbed one."""
    expected = WORK[kind](folder / "undisturbed", None)
    counts: Counter[str] = Counter()
    starts = finished = wrong = errors = 0
    started = time.perf_counter()
    while counts.total() < kills or not finished:
        place = folder / f"{finished}"
        command = [
            sys.executable,
            __file__,
            "--victim",
            kind,
            str(place),
            "" if local is None else local.address,
        ]
        with (folder / "errors").open("w") as said_wrong:
            victim = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said_wrong, text=True)
        starts += 1
        assert victim.stdout is not None
        begun = victim.stdout.readline().strip() == "begun"
        while begun and victim.poll() is None and counts.total() < kills:
            target = kill(rng, place, victim, local)
            if target is not None:
                counts[target] += 1
                if counts.total() % 10 == 0:
                    print(f"{counts.total()} kills, {starts} starts, {time.perf_counter() - started:.0f} s", flush=True)
        said = victim.stdout.read().strip()
        victim.wait()
        victim.stdout.close()
        if victim.returncode > 0:  # an error is no wrong table: the folder is kept, and the next start goes on
            errors += 1
            print(f"{kind} ended with an error:", (folder / "errors").read_text().strip().splitlines()[-1], flush=True)
            if errors > MOST_ERRORS:
                sys.exit("given up")
        if victim.returncode == 0:
            finished += 1
            wrong += said != expected
            if said != expected and kind == "study":  # what is different is mostly a row that failed
                print(read_table(place / "table.parquet")["reason"].value_counts(), flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{kind} {'here' if local is None else 'on Dask'}: {dict(counts)}, {starts} starts, {errors} errors, "
        f"{finished} finished, {wrong} wrong",
        flush=True,
    )
    return {
        "counts": counts,
        "starts": starts,
        "errors": errors,
        "finished": finished,
        "wrong": wrong,
        "seconds": seconds,
    }


def main() -> None:
    """Attack all four, and write down what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victim", nargs=3)
    options = parser.parse_args()
    if options.victim:
        kind, folder, address = options.victim
        print("begun", flush=True)
        print(WORK[kind](Path(folder), address or None))
        return
    rng = random.Random(options.seed)
    lines, wrong, total = [], 0, Counter[str]()
    for kind in WORK:
        for on_cluster in (False, True):
            with tempfile.TemporaryDirectory() as folder, kept_alive() if on_cluster else nullcontext() as local:
                found = attack(kind, local, options.kills // 4, rng, Path(folder))
            wrong += found["wrong"]
            total += found["counts"]
            c = found["counts"]
            lines.append(
                f"| {kind} | {'Dask' if on_cluster else '2 processes'} | {c['workers']} | {c['parent']} | {c['both']} | "
                f"{found['starts']} | {found['errors']} | {found['finished']} | {found['finished'] - found['wrong']} | "
                f"{found['seconds']:.0f} |"
            )
    text = f"""# Killed at random moments

`make kills` (seed {options.seed}): {total.total()} kills (SIGKILL) of a study of {ROWS} rows made by a user's function and of a
simulation of {RUNS} runs with a checkpoint; of their workers, of the process itself, of both. {100 * AT_WORK:.0f} of 100 come up to a
second after another part of the results was kept, the others up to a second after the last kill, when processes may still load. A
process that was killed, or ended with an error because its cluster had lost the workers again and again, is started anew with the same
folder. *Identical*: the file of the table (of a simulation: of its saved result, with every run's regret and pulls) has the
bytes of an undisturbed run's.

| | where | kills: workers | the process | both | starts | ended with an error | came to their end | identical | seconds |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}

{"Nothing differed." if not wrong else f"**{wrong} differed.**"}
"""
    (HERE / "KILLS.md").write_text(text)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
