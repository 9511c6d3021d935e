"""``make bench``: allocopt against what a careful user would write, every answer judged in the same way.

Peers (`comparing/peers.py`) and our own methods get the same instances. No solver's word is taken for its accuracy: every
allocation is scaled until it is feasible and its cost is compared with one certified lower bound. The tables go to
stdout and to ``benchmarks/RESULTS.md``, progress goes to stderr.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads; `make bench` sets it as well

import argparse
import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path

from comparing.floors import pass_floor, speed_floor
from comparing.report import machine, markdown, plain
from comparing.rows import OURS, Report, say
from comparing.tables import compare, example, large

import allocopt
from allocopt.insight.instances import random_unit

INSTANCES = ((5, 20), (10, 50), (10, 200), (20, 200), (20, 500))
QUICK_INSTANCES = ((5, 20), (10, 50))
LARGE = ((20, 10_000), (20, 100_000))
QUICK_LARGE = ((20, 2_000),)
EPSILONS = (0.2, 0.05, 0.01, 1e-4, 1e-6)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        description="Compare allocopt with what a careful user would write; about five minutes, or half a one with --quick."
    )
    result.add_argument("--quick", action="store_true", help="small instances only (the floors are then not measured)")
    result.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="markdown file to write (default: RESULTS.md beside this script; with --quick, none)",
    )
    result.add_argument("--json", type=Path, metavar="PATH", help="also write every number to this JSON file")
    return result


def main() -> None:
    """Run everything, write the report and print it."""
    arguments = parser().parse_args()
    quick: bool = arguments.quick
    output: Path | None = arguments.output or (None if quick else Path(__file__).with_name("RESULTS.md"))
    start = time.perf_counter()
    warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
    say("warming up: imports and one tiny solve by every method")
    allocopt.precompile()
    tiny = allocopt.programs.regret(random_unit(3, 6, seed=1))
    for how in OURS.values():
        allocopt.solve(tiny, **how).verify()
    rows = compare(QUICK_INSTANCES if quick else INSTANCES)
    priced = large(QUICK_LARGE if quick else LARGE)
    paper = example(EPSILONS)
    floors = [speed_floor(rows), pass_floor(priced)]
    command = "python benchmarks/compare.py --quick" if quick else "make bench"
    report = Report(command, machine(), time.perf_counter() - start, rows, priced, paper, floors)
    text = markdown(report)
    if output is not None:
        output.write_text(text, encoding="utf-8")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(plain(asdict(report)), indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
