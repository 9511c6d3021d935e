"""Torture: random programs of many families, solved on every road, and every claim judged in exact rationals.

    python benchmarks/torture.py [--instances 20000] [--seconds S] [--family NAME] [--road NAME]
    python benchmarks/torture.py --each-road 100000 [--road NAME] [--seconds S]       every road so often; goes on where it stopped
    python benchmarks/torture.py --family NAME --seed N [--road NAME] --show      prints one instance as code, and what is said of it

Writes ``benchmarks/TORTURE.md`` (with ``--each-road`` TORTURE_ROADS.md, whose counts are kept beside it in torture_roads.json) and
exits with 1 if anything false was found. ALLOCOPT_TORTURE sets the number of instances.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import date
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path

import torture_limits  # noqa: F401  (enters its families into the table)
import torture_named  # noqa: F401  (enters its families into the table)
import torture_programs  # noqa: F401  (likewise)
from torture_families import CHUNK, FAMILIES
from torture_judge import FALSE, HAVE_REFEREE, SHARES, STATUSES, Finding, Tally, Task, road_of, roads, run, wrong
from torture_roads import BATCHED, sequence, travel

from allocopt.base.atomic_files import whole_file
from allocopt.solving.roads.machine_code import precompile

REPORT = Path(__file__).parent / "TORTURE.md"
ROADS_REPORT = REPORT.with_name("TORTURE_ROADS.md")
ROADS_COUNTS = REPORT.with_name("torture_roads.json")
WORKERS = 2
ENOUGH = 0.98
"""The share of determined instances that must end as CERTIFIED or CONDITIONAL."""
_FEW = 100  # determined instances below which their share says nothing
_SHOWN = 40  # findings that are printed and written; all are counted
_EVERY = 3.0  # seconds between two lines of progress


class Totals:
    """What was counted so far, per family and road."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.findings: list[Finding] = []
        self.begun: Counter[str] = Counter()
        """How many tasks of each road were begun: where the next run goes on."""
        self.code: dict[str, list[str]] = {}
        """The commits on which each road was taken."""

    @classmethod
    def read(cls, path: Path) -> Totals:
        """What an earlier run has kept."""
        totals = cls()
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            totals.cells.update({(f, r): Counter(counts) for f, r, counts in kept["cells"]})
            totals.seconds.update(kept["seconds"])
            totals.findings = [Finding(*finding) for finding in kept["findings"]]
            totals.begun.update(kept["begun"])
            totals.code = kept["code"]
        return totals

    def keep(self, path: Path) -> None:
        """Write everything for a later run."""
        cells = [[f, r, counts] for (f, r), counts in sorted(self.cells.items())]
        kept = {
            "begun": self.begun,
            "code": self.code,
            "seconds": self.seconds,
            "findings": self.findings,
            "cells": cells,
        }
        with whole_file(path, overwrite=True) as file:
            file.write((json.dumps(kept, indent=0, sort_keys=True) + "\n").encode())

    def add(self, tally: Tally) -> None:
        """The outcome of one more task."""
        self.cells[tally.task.family, tally.task.road].update(tally.counts)
        self.seconds[tally.task.road][0] += tally.solving
        self.seconds[tally.task.road][1] += tally.judging
        self.findings += tally.findings

    @property
    def roads(self) -> list[str]:
        """Those that were taken."""
        return [road for road in SHARES if any(road == r for _, r in self.cells)]

    def of(self, family: str | None = None, road: str | None = None) -> Counter[str]:
        """The sums over a family, a road or everything."""
        total: Counter[str] = Counter()
        for (f, r), counts in self.cells.items():
            if family in (None, f) and road in (None, r):
                total.update(counts)
        return total

    def falling_short(self) -> list[str]:
        """Families whose determined instances were not solved often enough."""
        short = []
        for family in dict.fromkeys(f for f, _ in self.cells):
            total = self.of(family)
            if total["determined"] >= _FEW and total["determined, solved"] < ENOUGH * total["determined"]:
                short.append(f"{family}: {total['determined, solved']} of {total['determined']}")
        return short

    @property
    def sound(self) -> bool:
        """Whether nothing false was found and nothing falls short."""
        return not self.findings and not self.falling_short()


def tasks(families: list[str], road: str | None) -> Iterator[Task]:
    """Chunk after chunk, every family in turn."""
    for chunk in count():
        for name in families:
            family = FAMILIES[name]
            if road is None:
                yield Task(name, road_of(family, chunk), chunk)
            elif road in roads(family):
                yield Task(name, road, chunk)


def _run(task: Task) -> Tally:
    return run(task, FAMILIES[task.family])


def torture(
    families: list[str],
    road: str | None,
    instances: int,
    seconds: float | None,
    totals: Totals,
    workers: int = WORKERS,
    keep: Path | None = None,
) -> None:
    """Run tasks until there are enough instances (on this road, if one is named), or the time is over."""
    started = said = time.monotonic()
    under_way: dict[Future[Tally], int] = {}
    stream = islice(tasks(families, road), totals.begun[road] if road else 0, None)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        while True:
            late = seconds is not None and time.monotonic() - started > seconds
            while not late and len(under_way) < 2 * workers:
                if totals.of(road=road)["instances"] + sum(under_way.values()) >= instances:
                    break  # those a method does not take are not counted: what is under way may turn out to be fewer
                task = next(stream)
                totals.begun[task.road] += 1
                under_way[pool.submit(_run, task)] = len(task.seeds)
            if not under_way:
                break
            for future in wait(under_way, timeout=_EVERY, return_when=FIRST_COMPLETED).done:
                del under_way[future]
                tally = future.result()
                totals.add(tally)
                for finding in tally.findings:  # at once: a long run should not keep them to itself
                    print(_text(finding), flush=True)
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                _say_progress(totals, road, instances, said - started)
                if keep is not None:
                    totals.keep(keep)


def each_road(families: list[str], road: str | None, instances: int, seconds: float | None, workers: int) -> Totals:
    """Every road, or the one that is named, until it was taken so often; earlier runs count."""
    totals = Totals.read(ROADS_COUNTS)
    revision = ["git", "-C", str(REPORT.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(revision, capture_output=True, text=True, check=True).stdout.strip()
    started = time.monotonic()
    for one in [road] if road else SHARES:
        left = None if seconds is None else seconds - (time.monotonic() - started)
        if totals.of(road=one)["instances"] >= instances or (left is not None and left <= 0):
            continue
        if commit not in totals.code.setdefault(one, []):
            totals.code[one].append(commit)
        torture(families, one, instances, left, totals, workers, ROADS_COUNTS)
        totals.keep(ROADS_COUNTS)
    return totals


def _say_progress(totals: Totals, road: str | None, instances: int, seconds: float) -> None:
    total = totals.of(road=road)
    per = 1e3 * seconds / max(1, total["instances"])
    false = ", ".join(f"{total[name]} {name}" for name in FALSE if total[name]) or "nothing false"
    print(
        f"{seconds:6.0f} s  {total['instances']:>8} of {instances}  {per:.1f} ms each  {false}"
        + (f"  ({road})" if road else ""),
        file=sys.stderr,
        flush=True,
    )


def report(totals: Totals, command: str, how_long: str) -> str:
    """The tables, in Markdown."""
    total = totals.of()
    lines = [
        "# Torture", "",
        "Random programs of many families, solved on every road; every claim is judged by `allocopt/certify/referee.py` in exact",
        "rationals, every `Infeasible` by an exact check, and values that have a formula by that formula.", "",
        f"    {command}", "",
        f"{date.today()}: {total['instances']:,} instances{how_long}; {sum(total[name] for name in FALSE):,} findings.", "",
    ]  # fmt: skip
    if totals.code:
        lines += [
            "On these commits: " + "; ".join(f"{road} {', '.join(code)}" for road, code in totals.code.items()) + ".",
            "",
        ]
    lines += _table(
        "Family", [f for f in FAMILIES if any(f == g for g, _ in totals.cells)], lambda name: totals.of(family=name)
    )
    lines += _table("Road", totals.roads, lambda name: totals.of(road=name))
    lines += ["Milliseconds for an instance, solving and judging:", "", "| Road | solving | judging |", "|---|--:|--:|"]
    for road in totals.roads:
        solving, judging = totals.seconds[road]
        n = max(1, totals.of(road=road)["instances"])
        lines.append(f"| {road} | {1e3 * solving / n:.2f} | {1e3 * judging / n:.2f} |")
    lines += ["", "Instances per family and road (of these false):", ""]
    names = totals.roads
    lines += ["| Family | " + " | ".join(names) + " |", "|---" + "|--:" * len(names) + "|"]
    for family in FAMILIES:
        cells = [totals.cells.get((family, road), Counter()) for road in names]
        if any(cells):
            lines.append(f"| {family} | " + " | ".join(_cell(c) for c in cells) + " |")
    lines.append("")
    for text in totals.falling_short():
        lines += [f"Too few determined instances solved: {text}.", ""]
    if totals.findings:
        lines += ["## Findings", ""]
        lines += [f"- {_text(f)}" for f in _some(totals.findings)] + [""]
    return "\n".join(lines)


def _table(title: str, names: list[str], sums: Callable[[str], Counter[str]]) -> list[str]:
    heads = ["instances", *STATUSES, "Infeasible", "refused", "gave up", *FALSE, "determined solved"]
    lines = [f"| {title} | " + " | ".join(heads) + " |", "|---" + "|--:" * len(heads) + "|"]
    for name in names:
        counts = sums(name)
        share = f"{counts['determined, solved'] / counts['determined']:.1%}" if counts["determined"] else ""
        cells = [f"**{counts[h]}**" if h in FALSE and counts[h] else f"{counts[h] or ''}" for h in heads[:-1]]
        lines.append(f"| {name} | " + " | ".join([*cells, share]) + " |")
    return [*lines, ""]


def _cell(counts: Counter[str]) -> str:
    false = sum(counts[name] for name in FALSE)
    return f"{counts['instances'] or ''}" + (f" (**{false}**)" if false else "")


def _some(findings: list[Finding]) -> list[Finding]:
    """A few of each sort first, so that no sort hides another."""
    seen: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, Finding]] = []
    for finding in findings:
        seen[finding.what, finding.family] += 1
        ranked.append((seen[finding.what, finding.family], len(ranked), finding))
    return [finding for _, _, finding in sorted(ranked)[:_SHOWN]]


def _text(finding: Finding) -> str:
    where = f'--family "{finding.family}" --road "{finding.road}" --seed {finding.seed}'
    return f"{finding.what}: `{where}`: {finding.text[:300]}"


def show(name: str, road: str | None, seed: int) -> bool:
    """Print one instance as code, and what is said of it; whether that is true."""
    family = FAMILIES[name]
    road = road or road_of(family, seed // CHUNK)
    print(f"# {name}, {road}, seed {seed}")
    start = seed - seed % CHUNK if road in BATCHED else seed  # what came before in the sequence of gaps matters
    if road in ("Allocator", "solve_many, shared arms"):
        arms, gaps = sequence(family, range(start, seed + 1))
        listed = ",\n    ".join(repr(row.tolist()) for _, row in gaps)
        print(f"import allocopt as ao\narms = {arms.tolist()!r}\ngaps = [\n    {listed},\n]")
        print("allocator = ao.Allocator(arms)\nfor row in gaps:\n    solution = allocator.solve(row)")
    else:
        print(family.instance(seed).code())
    outcome = next(o for o in travel(family, road, range(start, seed + 1)) if o.seed == seed)
    claim = outcome.document["claim"] if outcome.document else ""
    print(f"# {outcome.what} {claim} {outcome.text}")
    found = wrong(outcome)
    for what, text in found:
        print(f"# {what}: {text}")
    return not found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Random programs on every road, judged in exact rationals.")
    parser.add_argument("--instances", type=int, default=int(os.environ.get("ALLOCOPT_TORTURE") or 20_000))
    parser.add_argument(
        "--each-road", type=int, metavar="N", help="take every road until it was taken N times, earlier runs included"
    )
    parser.add_argument("--seconds", type=float, help="start nothing new after this time")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--family", choices=list(FAMILIES), metavar="NAME", help="; ".join(FAMILIES))
    parser.add_argument("--road", choices=list(SHARES), metavar="NAME", help="; ".join(SHARES))
    parser.add_argument("--seed", type=int, help="one instance of the family")
    parser.add_argument("--show", action="store_true", help="print the instance of --family and --seed as code")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if not HAVE_REFEREE:
        print("torture: allocopt/certify/referee.py is not there; nothing can be judged", file=sys.stderr)
        return 2
    if options.seed is not None or options.show:
        if options.family is None or options.seed is None:
            parser.error("--show needs --family and --seed")
        return 0 if show(options.family, options.road, options.seed) else 1
    precompile()
    started = time.monotonic()
    chosen = list(FAMILIES) if options.family is None else [options.family]
    if options.road is not None and not any(options.road in roads(FAMILIES[name]) for name in chosen):
        parser.error(f"no program of this family can take the road {options.road!r}")
    if options.each_road is not None:
        totals = each_road(chosen, options.road, options.each_road, options.seconds, options.workers)
        output, how_long = options.output or ROADS_REPORT, ""
    else:
        totals = Totals()
        torture(chosen, options.road, options.instances, options.seconds, totals, options.workers)
        output = options.output or REPORT
        how_long = f" in {time.monotonic() - started:,.0f} s with {options.workers} processes"
    output.write_text(report(totals, " ".join(["python", *sys.argv]), how_long), encoding="utf-8")
    for text in totals.falling_short():
        print(f"too few determined instances solved: {text}")
    _say_progress(totals, options.road, options.each_road or options.instances, time.monotonic() - started)
    return 0 if totals.sound else 1


if __name__ == "__main__":
    sys.exit(main())
