"""``allocopt study``: a declared sweep over a family of instances, resumed wherever it was stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from allocopt.base.json_data import json_data
from allocopt.cli.app import Json, app, print_json
from allocopt.cli.shell.late_bars import SECONDS_BEFORE_PROGRESS
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.running import say_interrupted
from allocopt.insight.study.spec import StudySpec
from allocopt.insight.study.study import StudyCallback, StudyProgress, StudyResult, study

_MOST_REASONS = 5


@app.command("study")
def study_command(
    spec: Annotated[Path, typer.Argument(help="The study: a TOML file (docs/study.md).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table (default: SPEC-study beside the spec).", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes (default: as many as cores).", show_default=False)
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to use.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Sweep over a family of instances: one Parquet table, every row with its bounds and what they assume, or its reason.

    Stop it whenever you like: the same command goes on where it was. A family given as a function runs that code.
    """
    checked = StudySpec.from_toml(spec)
    folder = out if out is not None else spec.parent / f"{spec.stem}-study"
    last: list[StudyProgress] = []
    try:
        with _bar(checked) as show:

            def callback(progress: StudyProgress) -> None:
                last[:] = [progress]
                show(progress)

            result = study(checked, folder, workers=workers, client=dask, callback=callback)
    except KeyboardInterrupt:
        done = f"{last[0].done} of {last[0].total} instances are" if last else "what was finished is"
        say_interrupted(f"interrupted: {done} kept in {folder}; the same command goes on from there")
        raise typer.Exit(130) from None
    if as_json:
        print_json(_document(result))
    else:
        _show(result)
    if result.failed or result.inaccurate:
        raise typer.Exit(1)


@contextlib.contextmanager
def _bar(spec: StudySpec) -> Iterator[StudyCallback]:
    """A bar with the time left, on a terminal's standard error once two seconds have passed."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        bar: Any = None
        task: Any = None

        def show(progress: StudyProgress) -> None:
            nonlocal bar, task
            if not console.is_terminal or progress.seconds < SECONDS_BEFORE_PROGRESS:
                return
            if bar is None:
                bar = stack.enter_context(Progress(*columns, console=console, transient=True))
                task = bar.add_task(escape(spec.name), total=progress.total, left="")
            left = "" if progress.seconds_left is None else f"{_duration(progress.seconds_left)} left"
            failed = f", {progress.failed} rows failed" if progress.failed else ""
            bar.update(task, completed=progress.done, left=left + failed)

        yield show


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _show(result: StudyResult) -> None:
    console = new_console()
    total = result.spec.n_instances
    if result.computed == 0:
        console.print(f"nothing left to do: all {total} instances were there", markup=False)
    elif result.computed < total:
        console.print(
            f"{result.computed} instances in {result.seconds:.1f} s; {total - result.computed} were there", markup=False
        )
    else:
        console.print(f"{total} instances in {result.seconds:.1f} s", markup=False)
    for name in result.damaged:
        console.print(f"instances {name} were damaged on the disk, and were computed again", markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("quantity", no_wrap=True)
    # narrow enough for 80 columns: a column of zeros would not be
    counted = ("rows", "certified", *(("conditional",) if result.conditional else ()), "inaccurate", "failed")
    for name in (*counted, "min", "median", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in result.summary():
        table.add_row(
            line["quantity"], *(str(line[x]) for x in counted),
            *("-" if line[x] is None else f"{line[x]:.6g}" for x in ("min", "median", "max")),
        )  # fmt: skip
    console.print(table)
    _texts(console, result.reasons(), "{count} rows: {text}", "reasons (column reason)")
    _texts(console, result.assumptions(), "{count} rows assume: {text}", "assumptions (column assumptions)")
    console.print(f"table: {result.path}", markup=False, soft_wrap=True)


def _texts(console: Console, texts: dict[str, int], line: str, others: str) -> None:
    for text, count in list(texts.items())[:_MOST_REASONS]:
        console.print(line.format(count=count, text=text), markup=False, soft_wrap=True)
    if len(texts) > _MOST_REASONS:
        console.print(f"and {len(texts) - _MOST_REASONS} other {others}", markup=False)


def _document(result: StudyResult) -> dict[str, Any]:
    return {
        "name": result.spec.name,
        "table": str(result.path),
        "instances": result.spec.n_instances,
        "computed": result.computed,
        "seconds": result.seconds,
        "counts": result.counts,
        "quantities": json_data(result.summary()),
        "reasons": result.reasons(),
        "assumptions": [{"text": text, "rows": count} for text, count in result.assumptions().items()],
        "damaged_parts": list(result.damaged),
    }
