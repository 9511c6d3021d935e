"""The tables: every method on every instance, timed and judged."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from comparing.judging import Judge, run_peer, skipped
from comparing.peers import PEERS, Answer
from comparing.report import small
from comparing.rows import (
    FLOOR_LARGE_TOL,
    LIKE_FOR_LIKE,
    OURS,
    REPEATS,
    YARDSTICK,
    ExampleRow,
    LargeRow,
    Row,
    say,
)

import allocopt
from allocopt.certify.certificate import evaluate
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import counter_example, random_unit
from allocopt.model.solution import Solution


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
            say(f"  {name}: {row.seconds:.3g} s, true gap {small(row.true_gap)}")
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
            taken = "" if row.seconds is None else f"{row.seconds:.3g} s, true gap {small(row.true_gap)}, "
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
