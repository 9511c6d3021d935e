"""``allocopt spanner``: a barycentric spanner of a file's arms."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from allocopt.actions.spanner import barycentric_spanner
from allocopt.cli.app import File, Json, app, print_json
from allocopt.cli.shell.late_bars import read_with_progress
from allocopt.cli.shell.plain_text import new_console


@app.command()
def spanner(
    file: File,
    c: Annotated[float, typer.Option("--C", "-C", help="Coefficients may be this large (1 is the best).")] = 1.0,
    as_json: Json = False,
) -> None:
    """A barycentric spanner: arms such that every arm is a combination of them with coefficients in [−C, C]."""
    arms = read_with_progress(file).arms
    result = barycentric_spanner(arms, c)
    if as_json:
        print_json({"indices": result.indices.tolist(), "C": result.C, "coefficients": result.coefficients.tolist()})
        return
    console = new_console()
    console.print(
        f"{len(result.indices)} of {len(arms)} arms span the set; largest coefficient {result.C:.6g} (asked: {c:g})"
    )
    table = Table("position", "arm", "vector")
    for position, i in enumerate(result.indices.tolist()):
        vector = ", ".join(f"{x:.6g}" for x in arms[i][:8]) + (", …" if arms.shape[1] > 8 else "")
        table.add_row(str(position), str(i), f"({vector})")
    console.print(table)
