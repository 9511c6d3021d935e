"""``allocopt constants``: published constants, the proven interval of each, and a verdict."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from allocopt.cli.app import Json, app, print_json
from allocopt.cli.shell.plain_text import new_console
from allocopt.insight.constants.constant import Constant, Verdict
from allocopt.insight.constants.page import GROUPS, comparison, document, interval_text
from allocopt.insight.constants.shipped import CONSTANTS, Proven, check, named, proof_file, proven

_COLOURS = {
    Verdict.AGREES: "green", Verdict.ROUNDING: "yellow", Verdict.DIFFERS: "red", Verdict.OTHER_INSTANCE: "red",
    Verdict.UNPRINTED: "cyan",
}  # fmt: skip
_MOST_ROWS = 16  # of an instance that are printed


@app.command()
def constants(
    name: Annotated[str | None, typer.Argument(help="Only this row, in detail.", show_default=False)] = None,
    check_proofs: Annotated[
        bool, typer.Option("--check", help="Prove every shipped proof file again, in rationals; no solver runs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Published constants, computed again: what is printed, the proven interval, and a verdict."""
    chosen = CONSTANTS if name is None else (named(name),)
    if check_proofs:
        _check(chosen, as_json)
        return
    rows = [proven(constant) for constant in chosen]
    if as_json:
        print_json({"constants": [document(row) for row in rows]} if name is None else document(rows[0]))
    elif name is not None:
        _show(rows[0])
    else:
        _list(rows)


def _check(chosen: tuple[Constant, ...], as_json: bool) -> None:
    problems = {constant.name: check(constant) for constant in chosen}
    if as_json:
        found = [{"name": name, "holds": not wrong, "problems": wrong} for name, wrong in problems.items()]
        print_json({"checked": found})
    else:
        for name, wrong in problems.items():
            typer.echo(f"{name}: {'; '.join(wrong) or 'proven'}")
    if any(problems.values()):
        raise typer.Exit(1)


def _list(rows: list[Proven]) -> None:
    console = new_console()
    for group, title in GROUPS.items():
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        table.add_column("printed", no_wrap=True)
        table.add_column("proven", no_wrap=True)
        table.add_column("verdict")
        for row in rows:
            if row.constant.group == group:
                verdict = row.finding.verdict
                coloured = f"[{_COLOURS[verdict]}]{verdict.value}[/]"
                table.add_row(row.constant.name, escape(row.constant.brief), escape(interval_text(row)), coloured)
        console.print(table)
        console.print()
    console.print("allocopt constants NAME shows a row and why; --check proves every file again.")


def _show(row: Proven) -> None:
    constant, console = row.constant, new_console(soft_wrap=True)
    for title, text in (
        ("source", f"{constant.source}; {constant.place}"), ("quantity", constant.quantity), ("printed", constant.text),
        ("proven", interval_text(row)), ("verdict", comparison(row)), ("instance", constant.instance),
        ("check", constant.remark), ("proof", str(proof_file(constant))),
    ):  # fmt: skip
        console.print(f"{title:<9} {text}", markup=False)
    program = row.solution.program
    if max(program.n_arms, program.n_targets) > _MOST_ROWS:
        return
    with np.printoptions(precision=17, linewidth=200):
        for title, array in (
            ("features", program.features), ("costs", program.costs), ("variances", program.noise_variance),
            ("targets", program.targets), ("radii", program.radii), ("α", row.solution.allocation),
        ):  # fmt: skip
            if array is not None:
                console.print(f"{title}\n{array}", markup=False)
