"""``allocopt hardness``: what makes an instance hard, as tables, JSON, an HTML page and a picture."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from allocopt.base.atomic_files import whole_file
from allocopt.base.errors import InvalidOption, MethodUnavailable
from allocopt.base.tolerances import DEFAULT_TOL
from allocopt.cli.app import (
    File,
    Json,
    NoiseVariance,
    Theta,
    Verify,
    app,
    given_bandit,
    given_instance,
    print_json,
)
from allocopt.cli.shell.late_bars import late
from allocopt.cli.shell.outputs import Force, check_output
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.tables import fitted_table
from allocopt.insight import plots
from allocopt.insight.hardness.hardness import Hardness, StepCallback, hardness
from allocopt.insight.hardness.report import WIDTHS, Section, printable, sections
from allocopt.insight.hardness.report_document import document
from allocopt.insight.hardness.report_page import page
from allocopt.insight.instances.files import Instance, read_vector
from allocopt.model.bandit import LinearBandit
from allocopt.model.progress import Progress
from allocopt.model.status_text import confirmed, usable

_PICTURES = (".png", ".svg", ".pdf")


@app.command("hardness")
def hardness_command(
    file: File,
    theta: Theta = None,
    noise_variance: NoiseVariance = None,
    width: Annotated[
        list[float] | None, typer.Option(help="Confidence width to price; may be repeated (default 1, 2 and 4).")
    ] = None,
    add: Annotated[list[str] | None, typer.Option(help="An arm to add, as 1,0,-2 or a file; may be repeated.")] = None,
    tol: Annotated[float, typer.Option(help="Relative gap to certify.")] = DEFAULT_TOL,
    verify: Verify = True,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the instance (.png, .svg or .pdf).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What makes an instance hard: informative and confusing arms, what c depends on, what optimism costs."""
    _check_outputs(file, theta, html, plot, force)
    instance = given_instance(file, theta)
    bandit = _bandit(instance, noise_variance)
    rows = [read_vector("--add", text) for text in add or []]
    for row in rows:
        if len(row) != bandit.dim:
            raise InvalidOption(f"--add: expected {bandit.dim} entries (as the arms have), got {len(row)}")
    widths = tuple(width) if width else WIDTHS
    for a in widths:
        if not 0 < a < float("inf"):
            raise InvalidOption(f"--width: expected a positive number, got {a!r}")
    with _progress() as (tell, watch):
        tell("solving", 0, 1)
        h = hardness(bandit, tol=tol, callback=watch).compute(tell, prove=verify)
        additions = []
        for n, row in enumerate(rows):
            tell("with one more arm", n, len(rows))
            additions.append(h.with_arm(row))
        tell("price of optimism", 0, 1)
        report = None if as_json else list(sections(h, widths, additions, prove=verify))
        found = document(h, widths, additions, prove=verify) if as_json else None
        if plot is not None:
            tell("drawing", 0, 1)
            _draw(h, plot, force)
        if html is not None:
            tell("writing", 0, 1)
            title = f"Hardness report: {file.name}"
            _write(html, page(h, widths, additions, title=title, prove=verify), force)
    if found is not None:
        print_json(found)
    elif report is not None:
        _show(report, [p for p in (html, plot) if p is not None])
    if not usable(h.status) or (verify and not confirmed(h.solution, h.proven)):
        raise typer.Exit(1)


def _bandit(instance: Instance, noise_variance: float | None) -> LinearBandit:
    has = "arms only" if instance.gaps is None else "gaps only, which no alternative parameter can be compared with"
    missing = f"theta: expected θ for a hardness report, but the file has {has}; give it with --theta"
    return given_bandit(instance, noise_variance, missing)


def _check_outputs(file: Path, theta: str | None, html: Path | None, plot: Path | None, force: bool) -> None:
    """Refuse what cannot be written before anything is computed."""
    check_output("--html", html, force, file, theta)
    check_output("--plot", plot, force, file, theta, endings=_PICTURES)
    if html is not None and plot is not None and html.resolve() == plot.resolve():
        raise InvalidOption(f"--plot: expected another file than --html, got {plot} for both")
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise MethodUnavailable("--plot: drawing needs matplotlib: pip install matplotlib")


def _draw(h: Hardness, path: Path, force: bool) -> None:
    """The geometry where it can be seen (two or three dimensions), else gaps against information."""
    plots.save(h.plot(), path, overwrite=force)


def _write(path: Path, text: str, force: bool) -> None:
    """All of the page or none of it; an existing file only with ``force``, and only once the new one is complete."""
    with whole_file(path, overwrite=force, what="the report") as out:
        out.write(text.encode("utf-8", errors="xmlcharrefreplace"))


@contextlib.contextmanager
def _progress() -> Iterator[tuple[StepCallback, Any]]:
    """What is being done, on a terminal's standard error, once two seconds have passed."""
    console = Console(stderr=True)
    status = console.status("")

    def tell(what: str, done: int, total: int) -> None:
        count = f" ({done + 1} of {total})" if total > 1 else ""
        status.update(escape(f"hardness: {printable(what)}{count}"))

    def watch(progress: Progress) -> None:
        status.update(f"hardness: {progress.method}, step {progress.iteration}, gap {progress.gap:.1e}")

    with late(status) if console.is_terminal else contextlib.nullcontext():
        yield tell, watch


def _show(report: Sequence[Section], written: Sequence[Path]) -> None:
    console = new_console()
    for section in report:
        console.print(f"\n[bold]{escape(section.title)}[/bold]")
        for text in section.text:
            prefix = "! " if section.title == "Warnings" else ""
            console.print(f"{prefix}{text}", markup=False)
        if section.columns:
            console.print(_table(section))
    for path in written:
        console.print(f"written: {path}", markup=False, soft_wrap=True)


def _table(section: Section) -> Table:
    omitted = f"and {section.omitted} more (--json has all)" if section.omitted else None
    if any(section.columns):
        return fitted_table(section.columns, section.rows, section.left, caption=omitted)
    table = Table(show_header=False, box=None, pad_edge=False, caption=omitted, caption_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in section.rows:
        table.add_row(*(escape(cell) for cell in row))
    return table
