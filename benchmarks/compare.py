"""``make bench``: allocopt against what a careful user would write, every answer judged in the same way.

Peers (`peers.py`) and our own methods get the same instances. No solver's word is taken for its accuracy: every
allocation is scaled until it is feasible and its cost is compared with one certified lower bound. The tables go to
stdout and to ``benchmarks/RESULTS.md``, progress goes to stderr.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads; `make bench` sets it as well

import argparse
import datetime
import importlib.metadata
import json
import math
import multiprocessing
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS, Answer

import allocopt
from allocopt.certify.canonical import evaluate
from allocopt.certify.reduction import Reduction, reduce
from allocopt.instances import counter_example, random_unit
from allocopt.solution import Solution

INSTANCES = ((5, 20), (10, 50), (10, 200), (20, 200), (20, 500))
QUICK_INSTANCES = ((5, 20), (10, 50))
LARGE = ((20, 10_000), (20, 100_000))
QUICK_LARGE = ((20, 2_000),)
EPSILONS = (0.2, 0.05, 0.01, 1e-4, 1e-6)

CAP = 120.0  # seconds that a peer may take on one instance
REPEAT_BELOW = 2.0  # seconds; a peer that takes longer is timed once
REPEATS = 3
REFERENCE_TOL = 1e-9  # gap of the lower bound that everything is compared with
FLOOR_SPEEDUP = 20.0
FLOOR_GAP = 1e-4
FLOOR_INSTANCES = ((20, 200), (20, 500))
FLOOR_PASSES = 20
FLOOR_LARGE = (20, 100_000)
FLOOR_LARGE_TOL = 1e-8

OURS: dict[str, dict[str, Any]] = {
    "allocopt active-set": {"method": "active-set"},
    "allocopt active-set, tol 1e-4": {"method": "active-set", "tol": 1e-4},
    "allocopt interior-point": {"method": "interior-point"},
    "allocopt frank-wolfe, tol 1e-3": {"method": "frank-wolfe", "tol": 1e-3},
    "allocopt conic (Clarabel)": {"method": "conic", "solver": "CLARABEL"},
}
"""By their names in the tables; what is passed to ``allocopt.solve`` (tol is 1e-8 where it is not named)."""

YARDSTICK = "allocopt active-set"
LIKE_FOR_LIKE = "allocopt active-set, tol 1e-4"


@dataclass
class Row:
    """One method on one instance, as judged by us."""

    dim: int
    arms: int
    name: str
    ours: bool
    seconds: float | None = None
    ratio: float | None = None
    """Seconds in units of our active-set's on the same instance in the same run."""
    true_gap: float | None = None
    violation: float | None = None
    status: str = ""
    """What the method says of itself, or why there is no answer."""
    times: list[float] = field(default_factory=list)


@dataclass
class LargeRow:
    """Active-set where nothing else runs."""

    dim: int
    arms: int
    seconds: float
    passes: int
    evaluations: int
    """Every call of `evaluate` on the whole problem, first guess and final tidying included."""
    one_pass: float
    gap: float
    value: float
    status: str


@dataclass
class ExampleRow:
    """One of our methods on the paper's example."""

    epsilon: float
    name: str
    seconds: float
    value: float
    gap: float
    status: str


@dataclass
class Floor:
    """A promise, what was measured, and whether it was kept."""

    promise: str
    met: bool | None
    """None where this run does not contain the instances."""
    measured: str


@dataclass
class Report:
    """Everything that is written."""

    command: str
    machine: dict[str, str]
    seconds: float
    rows: list[Row]
    large: list[LargeRow]
    example: list[ExampleRow]
    floors: list[Floor]


def say(message: str) -> None:
    """Progress, to stderr."""
    print(f"[{datetime.datetime.now():%H:%M:%S}] {message}", file=sys.stderr, flush=True)


# Judging


class Judge:
    """Recomputes what any allocation is worth on one instance, from the program alone."""

    def __init__(self, dim: int, arms: int) -> None:
        self.bandit = random_unit(dim, arms, seed=0)
        self.program = allocopt.programs.regret(self.bandit)
        self.reduction: Reduction = reduce(self.program)
        self.reference = allocopt.solve(self.program, method="active-set", tol=REFERENCE_TOL)

    def judge(self, row: Row, allocation: np.ndarray) -> None:
        """Fill in the true gap and the raw violation of an allocation in the program's own units."""
        with np.errstate(invalid="ignore"):
            alpha = self.reduction.canonical_allocation(allocation)
        if not np.all(np.isfinite(alpha)):
            row.true_gap = row.violation = math.inf
            return
        bounds = evaluate(self.reduction.canonical, alpha, np.ones(len(self.reduction.targets)))
        row.true_gap = bounds.upper / self.reference.lower - 1.0
        row.violation = float(bounds.constraints.max()) - 1.0


# Peers, each in a process of its own


def _peer_process(pipe: Connection, name: str, dim: int, arms: int) -> None:
    """Warm up on a tiny instance, then answer until the parent has enough."""
    warnings.simplefilter("ignore")  # solvers' doubts about themselves are in their status
    peer = PEERS[name]
    try:
        tiny = random_unit(3, 6, seed=1)
        peer(tiny.arms, tiny.theta)
        bandit = random_unit(dim, arms, seed=0)
        pipe.send("ready")
        while pipe.recv() == "run":
            pipe.send(tuple(peer(bandit.arms, bandit.theta)))
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception as error:  # whatever a peer dies of is its result
        pipe.send(f"{type(error).__name__}: {error}")


def skipped(name: str, dim: int, arms: int) -> str | None:
    """Why a peer is not even started, or None."""
    if name.startswith("cvxpy matrix_frac") and (arms >= 500 or dim >= 20):
        return "not run (> 2 min)"
    return None


def run_peer(name: str, dim: int, arms: int) -> tuple[list[float], Answer | str]:
    """Its times and its (last) answer, or what went wrong instead."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_peer_process, args=(theirs, name, dim, arms), daemon=True)
    process.start()
    theirs.close()
    times: list[float] = []
    answer: Answer | str = f"no answer in {CAP:g} s"
    try:
        first = ours.recv() if ours.poll(CAP) else answer  # imports and warming up
        if first != "ready":
            return times, str(first)
        for _ in range(REPEATS):
            ours.send("run")
            if not ours.poll(CAP):
                break
            message = ours.recv()
            if isinstance(message, str):
                answer = message
                break
            answer = Answer(*message)
            times.append(answer.seconds)
            if answer.seconds > REPEAT_BELOW:
                break
        return times, answer
    except EOFError:
        return times, "its process died"
    finally:
        ours.close()
        process.kill()
        process.join()


# The tables


def timed(solve: Callable[[], Solution], repeats: int) -> tuple[list[float], Solution]:
    """Wall-clock seconds of each call, and the last solution."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        solution = solve()
        times.append(time.perf_counter() - start)
    return times, solution


def compare(instances: Iterable[tuple[int, int]]) -> list[Row]:
    """First table: ours and theirs on random instances."""
    rows: list[Row] = []
    for dim, arms in instances:
        judge = Judge(dim, arms)
        say(f"(d, k) = ({dim}, {arms}): c = {judge.reference.value:.9g}, certified gap {judge.reference.gap:.1e}")
        here: list[Row] = []
        for name, how in OURS.items():
            row = Row(dim, arms, name, ours=True)
            row.times, solution = timed(partial(allocopt.solve, judge.program, **how), REPEATS)
            row.seconds = statistics.median(row.times)
            row.status = f"{solution.status.name}, gap {solution.gap:.1e}"
            judge.judge(row, solution.allocation)
            here.append(row)
            say(f"  {name}: {row.seconds:.3g} s, true gap {_small(row.true_gap)}")
        for name in PEERS:
            row = Row(dim, arms, name, ours=False)
            here.append(row)
            row.status = skipped(name, dim, arms) or ""
            if not row.status:
                row.times, answer = run_peer(name, dim, arms)
                if isinstance(answer, Answer):
                    row.seconds, row.status = statistics.median(row.times), answer.status
                    judge.judge(row, answer.allocation)
                else:
                    row.status = answer
            taken = "" if row.seconds is None else f"{row.seconds:.3g} s, true gap {_small(row.true_gap)}, "
            say(f"  {name}: {taken}{row.status}")
        unit = next(row.seconds for row in here if row.name == YARDSTICK)
        for row in here:
            row.ratio = None if row.seconds is None or unit is None else row.seconds / unit
        rows += here
    return rows


@contextmanager
def counted_evaluations(arms: int) -> Iterator[list[int]]:
    """Counts the calls of `evaluate` on problems of at least ``arms`` features, whichever module makes them."""
    count = [0]

    def counting(problem: Any, *arguments: Any) -> Any:
        count[0] += len(problem.features) >= arms
        return evaluate(problem, *arguments)

    users = [
        m for n, m in sys.modules.items() if n.startswith("allocopt.") and getattr(m, "evaluate", None) is evaluate
    ]
    for module in users:
        module.evaluate = counting  # type: ignore[attr-defined]
    try:
        yield count
    finally:
        for module in users:
            module.evaluate = evaluate  # type: ignore[attr-defined]


def large(instances: Iterable[tuple[int, int]]) -> list[LargeRow]:
    """Second table: active-set in units of one pricing pass."""
    rows = []
    for dim, arms in instances:
        program = allocopt.programs.regret(random_unit(dim, arms, seed=0))
        solve = partial(allocopt.solve, program, method="active-set", tol=FLOOR_LARGE_TOL)
        times, solution = timed(solve, REPEATS)
        reduction = reduce(program)
        with counted_evaluations(len(reduction.variables)) as count:
            solve()
        alpha = reduction.canonical_allocation(solution.allocation)
        multipliers = reduction.canonical_multipliers(solution.multipliers)
        passes = []
        for _ in range(5):
            start = time.perf_counter()
            evaluate(reduction.canonical, alpha, multipliers)
            passes.append(time.perf_counter() - start)
        row = LargeRow(
            dim, arms, statistics.median(times), int(solution.stats["passes"]), count[0], statistics.median(passes),
            solution.gap, solution.value, solution.status.name,
        )  # fmt: skip
        rows.append(row)
        say(f"(d, k) = ({dim}, {arms}): {row.seconds:.3g} s, {row.passes} passes, gap {row.gap:.1e}")
    return rows


def example(epsilons: Iterable[float]) -> list[ExampleRow]:
    """Third table: {e1, e2, (1−ε, 2ε)}, whose value is 8."""
    rows = []
    for epsilon in epsilons:
        program = allocopt.programs.regret(counter_example(epsilon))
        for name, how in OURS.items():
            if name == LIKE_FOR_LIKE:
                continue
            times, solution = timed(partial(allocopt.solve, program, **how), REPEATS)
            rows.append(
                ExampleRow(epsilon, name, statistics.median(times), solution.value, solution.gap, solution.status.name)
            )
        say(f"epsilon = {epsilon:g}: {', '.join(f'{row.value:.8g}' for row in rows if row.epsilon == epsilon)}")
    return rows


# The floors


def speed_floor(rows: list[Row]) -> Floor:
    """Is active-set at least 20 times as fast as the fastest peer that is accurate enough?"""
    where = " and ".join(f"({d},{k})" for d, k in FLOOR_INSTANCES)
    promise = (
        f"active-set at least {FLOOR_SPEEDUP:g}x faster than the fastest peer that reaches a true gap of "
        f"{FLOOR_GAP:g} at {where}"
    )
    met: bool | None = True
    parts = []
    for dim, arms in FLOOR_INSTANCES:
        here = [row for row in rows if (row.dim, row.arms) == (dim, arms)]
        if not here:
            return Floor(promise, None, "not part of this run")
        able = [row for row in here if not row.ours and row.true_gap is not None and row.true_gap <= FLOOR_GAP]
        if not able:
            parts.append(f"({dim},{arms}): no peer reached it")
            continue
        fastest = min(able, key=lambda row: row.seconds or math.inf)
        us = next(row for row in here if row.name == YARDSTICK)
        like = next(row for row in here if row.name == LIKE_FOR_LIKE)
        assert fastest.seconds and fastest.ratio and us.true_gap is not None and like.seconds
        met = met and us.true_gap <= FLOOR_GAP and fastest.ratio >= FLOOR_SPEEDUP
        parts.append(
            f"({dim},{arms}): {fastest.ratio:.3g}x against {fastest.name} "
            f"({fastest.seconds / like.seconds:.3g}x with tol 1e-4 for us too)"
        )
    return Floor(promise, met, "; ".join(parts))


def pass_floor(rows: list[LargeRow]) -> Floor:
    """Does active-set certify the largest instance in fewer than 20 pricing passes?"""
    d, k = FLOOR_LARGE
    promise = f"certified {FLOOR_LARGE_TOL:g} at ({d},1e{round(math.log10(k))}) in under {FLOOR_PASSES} pricing passes"
    for row in rows:
        if (row.dim, row.arms) == FLOOR_LARGE:
            met = row.gap <= FLOOR_LARGE_TOL and max(row.passes, row.evaluations) < FLOOR_PASSES
            measured = (
                f"gap {row.gap:.1e} in {row.passes} passes; "
                f"the whole solve takes as long as {row.seconds / row.one_pass:.3g} passes"
            )
            return Floor(promise, met, measured)
    return Floor(promise, None, "not part of this run")


# Writing


def _small(value: float | None) -> str:
    """A gap or violation, in two digits; what is below zero by rounding stays visible."""
    return "–" if value is None else f"{value:.1e}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(header), "|" + "|".join("-" * (w + 2) for w in widths) + "|", *map(line, rows)])


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "cvxpy", "clarabel", "allocopt")}
    return {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "cores": str(os.cpu_count()),
        "CPU": model,
        "BLAS threads": os.environ["OPENBLAS_NUM_THREADS"],
        "python": platform.python_version(),
        **versions,
    }


def markdown(report: Report) -> str:
    """The report as RESULTS.md."""
    verdict = {True: "met", False: "NOT met", None: "not measured"}
    compared = _table(
        ["d", "k", "method", "seconds", "x active-set", "true gap", "raw violation", "its own word"],
        [
            [str(r.dim), str(r.arms), r.name, _seconds(r.seconds), _seconds(r.ratio), _small(r.true_gap),
             _small(r.violation), r.status]
            for r in report.rows
        ],
    )  # fmt: skip
    priced = _table(
        ["d", "k", "seconds", "passes", "evaluations in all", "one pass, s", "seconds in passes", "certified gap", "c"],
        [
            [str(r.dim), str(r.arms), _seconds(r.seconds), str(r.passes), str(r.evaluations), _seconds(r.one_pass),
             f"{r.seconds / r.one_pass:.3g}", f"{r.gap:.1e} {r.status}", f"{r.value:.10g}"]
            for r in report.large
        ],
    )  # fmt: skip
    paper = _table(
        ["ε", "method", "value", "value − 8", "certified gap", "status", "seconds"],
        [
            [f"{r.epsilon:g}", r.name, f"{r.value:.10g}", f"{r.value - 8:+.1e}", f"{r.gap:.1e}", r.status,
             _seconds(r.seconds)]
            for r in report.example
        ],
    )  # fmt: skip
    floors = "\n".join(f"- {f.promise}: **{verdict[f.met]}**. {f.measured}." for f in report.floors)
    facts = " · ".join(f"{name} {value}" for name, value in report.machine.items())
    return f"""# Benchmark results

Written by `{report.command}` in {report.seconds:.0f} s. {facts}.

Times depend on what else the machine does; ratios within one table were measured in the same run.

## Floors

{floors}

## Against what a careful user would write

`programs.regret(random_unit(d, k, seed=0))`. Seconds are wall-clock from arrays to allocation, imports excluded: the median
of {REPEATS}, or one run for a peer that takes more than {REPEAT_BELOW:g} s; each peer has {CAP:g} s.
*True gap*: the allocation is scaled until it is feasible and its cost compared with
the lower bound certified by active-set at tol {REFERENCE_TOL:g}, whoever found it.
*Raw violation*: max_j g_j/ρ_j − 1 of the allocation as returned. Only allocopt's own rows come with a gap; its tol is
1e-8 unless named.

{compared}

## Many arms

Active-set at tol {FLOOR_LARGE_TOL:g}. One pass is one `certify.canonical.evaluate` over all arms at the solution, measured in the
same run; *passes* is `solution.stats["passes"]`, *evaluations in all* counts every such call of one
solve (0 where arms are looked at block by block).

{priced}

## The paper's example

{{e1, e2, (1−ε, 2ε)}}, θ = e1: c = 8 for every ε below 1/4. (1−ε, 2ε) is rounded to doubles first, which moves the value of
the instance by about 1e-16/ε relatively: what is left of *value − 8* at small ε is that, not an error of the methods.

{paper}
"""


def plain(value: Any) -> Any:
    """The same data without infinities and nans, which JSON does not have: they become strings."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
