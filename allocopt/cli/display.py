"""What the commands draw on the console: tables, and a progress line for anything that takes over two seconds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.certify.enclosure import Enclosure
from allocopt.cli.shell.late_bars import late
from allocopt.cli.shell.tables import fitted_table
from allocopt.insight.documents import interval
from allocopt.linear.assumptions import assuming
from allocopt.model.programs.answer import answer_names, listed
from allocopt.model.progress import Callback, Progress
from allocopt.model.solution import Solution, Status
from allocopt.model.status_text import assumption_sentences, confirmed, why_not

__all__ = ["progress_line", "solution_tables"]

_COLOURS = {
    Status.CERTIFIED: "green", Status.CONDITIONAL: "cyan", Status.INACCURATE: "yellow", Status.FAILED: "red",
}  # fmt: skip


@contextlib.contextmanager
def progress_line(what: str, tol: float = DEFAULT_TOL) -> Iterator[Callback]:
    """A callback that shows how the gap closes, on a terminal's standard error once two seconds have passed.

    The line appears then whether or not there is any news: a first look at millions of arms takes a while.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda progress: None
        return
    bars = _closing_gap(console)
    line = _Line(bars, what, tol)
    with late(bars):
        yield line.show


class _Line:
    """The progress line, which is updated in the solver's thread."""

    def __init__(self, bars: Bars, what: str, tol: float) -> None:
        self._bars = bars
        self._task = bars.add_task(what, total=None, text="")
        self._tol = tol
        self._first = math.inf

    def show(self, progress: Progress) -> None:
        self._first = min(self._first, progress.gap) if math.isinf(self._first) else self._first
        done = _closed(self._first, progress.gap, self._tol)
        self._bars.update(self._task, total=1.0, completed=done, text=_progress_text(progress))


def _closing_gap(console: Console) -> Bars:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[text]}"))
    return Bars(*columns, TimeElapsedColumn(), console=console, transient=True)


def _closed(first: float, gap: float, tol: float) -> float:
    """The share of the way from the first gap to the tolerance that is behind us, in orders of magnitude."""
    if not (math.isfinite(first) and gap > 0.0 and first > tol):
        return 0.0 if gap > tol else 1.0
    return min(max(math.log(first / gap) / math.log(first / tol), 0.0), 1.0)


def _progress_text(progress: Progress) -> str:
    alive = "" if progress.alive is None else f", {progress.alive:,} arms alive"
    return (
        f"{progress.method}, step {progress.iteration}{alive}: "
        f"value in [{progress.lower:.6g}, {progress.upper:.6g}], gap {progress.gap:.1e}"
    )


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{seconds * 1e3:.1f} ms"


def solution_tables(
    solution: Solution, enclosure: Enclosure | None, most: int = 20, *, name: str | None = None
) -> Iterator[Table]:
    """The summary, the allocation and the binding constraints; ``name`` is the program in the user's words."""
    yield _summary(solution, enclosure, name or solution.program.kind)
    yield _allocation(solution, most)
    if solution.program.origin.compared is not None and solution.program.target_arms is None:
        yield _differences(solution, most)
    if solution.constraint_multipliers is not None:
        yield _limits(solution, most)


def _summary(solution: Solution, enclosure: Enclosure | None, name: str) -> Table:
    colour = _COLOURS[solution.status]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("program", f"{name}, {solution.program.n_arms} arms in {solution.program.dim} dimensions")
    table.add_row("value", f"{solution.value:.10g}")
    if len(solution.answer_arms) and not len(solution.optimal_arms):
        table.add_row("answer", escape(_answer(solution)))
    if enclosure is not None:
        table.add_row("proven", interval(enclosure))
        if not confirmed(solution, enclosure):
            table.add_row("", "[red]the proof does not confirm the bounds of the solution[/red]")
    for n, sentence in enumerate(assumption_sentences(solution, enclosure)):
        table.add_row("" if n else "assuming", escape(sentence))
    table.add_row("gap", f"{solution.gap:.2e} (asked: {solution.tol:g})")
    remark = why_not(solution) or assuming(solution.assumptions)
    table.add_row("status", f"[{colour}]{solution.status.name}[/{colour}] {escape(remark)}")
    seconds = duration(solution.stats["seconds"]) if "seconds" in solution.stats else "-"
    table.add_row("method", f"{solution.method}, {seconds}")
    return table


def _answer(solution: Solution) -> str:
    """The arms that are the right answer, and among how many correct ones."""
    arms, program = solution.answer_arms, solution.program
    named = answer_names(program, arms)
    numbers = [
        f"{i} ({name})" if program.labels is not None else name for i, name in zip(arms.tolist(), named, strict=True)
    ]
    others = len(solution.stats.get("answers", ())) - 1
    return listed(numbers) + (f", the cheapest of {others + 1} correct answers" if others > 0 else "")


def _allocation(solution: Solution, most: int) -> Table:
    program = solution.program
    shown = np.union1d(solution.support, solution.optimal_arms)
    if program.target_arms is not None:
        shown = np.union1d(shown, solution.binding)
    cost = program.costs * np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    order = shown[np.lexsort((-cost[shown], np.isfinite(solution.allocation[shown])))]
    names = ["arm", "cost", "allocation", "share of cost", "multiplier", "binding"]
    labels = solution.labels
    per_arm = program.target_arms is not None
    binding = set(solution.binding.tolist()) if per_arm else set()
    total = float(cost.sum())
    rows = [
        [
            str(i),
            f"{program.costs[i]:.6g}",
            f"{solution.allocation[i]:.6g}",
            f"{cost[i] / total:.1%}" if total > 0 else "-",
            f"{solution.multipliers[i]:.6g}" if per_arm else "-",
            "yes" if i in binding else "",
            *(() if labels is None else (labels[i],)),
        ]
        for i in order[:most].tolist()
    ]
    if labels is not None:
        names.append("label")
    title, caption = "allocation and binding arms", _rest(len(order), most)
    return fitted_table(names, rows, {len(names) - 1} if labels is not None else (), title=title, caption=caption)


def _differences(solution: Solution, most: int) -> Table:
    """The binding constraints of a program whose targets are differences."""
    program, compared = solution.program, solution.program.origin.compared
    assert compared is not None
    what = "item" if program.kind == "transductive" else "arm"
    order = solution.binding[np.argsort(-solution.multipliers[solution.binding], kind="stable")]
    table = Table(title="binding differences", caption=_rest(len(order), most), caption_justify="left")
    for name in (f"better {what}", f"worse {what}", "radius", "multiplier"):
        table.add_column(name, justify="right")
    for t in order[:most].tolist():
        j, i = compared[t].tolist()
        table.add_row(str(i), str(j), f"{program.radii[t]:.6g}", f"{solution.multipliers[t]:.6g}")
    return table


def _limits(solution: Solution, most: int) -> Table:
    """The linear constraints that bind, and what one more unit of each is worth."""
    rows, worth, kind = solution.program.constraints, solution.constraint_multipliers, solution.program.kind
    assert rows is not None and worth is not None
    order = np.argsort(-worth, kind="stable")[: np.count_nonzero(worth)]
    table = Table(title="what limits the allocation", caption=_rest(len(order), most), caption_justify="left")
    for name in ("context" if kind == "contextual" else "row", "limit", "used", "one more is worth"):
        table.add_column(name, justify="right")
    used = rows.used(solution.allocation)
    for r in order[:most].tolist():
        table.add_row(str(r), f"{rows.limits[r]:.6g}", f"{used[r]:.6g}", f"{worth[r]:.6g}")
    return table


def _rest(count: int, most: int) -> str | None:
    return f"and {count - most} more (--json has all)" if count > most else None
