"""``allocopt verify``: a proof file checked without any solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from allocopt.certify.proof import load_solution
from allocopt.commands.app import Json, app, print_json
from allocopt.display import enclosure_document, interval


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(help="A proof file written by allocopt solve --save.", show_default=False)],
    precision: Annotated[
        int | None, typer.Option(help="Bits of the ball arithmetic (default: as many as needed).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a proof file in exact arithmetic, without any solver."""
    solution = load_solution(proof)
    enclosure = solution.verify(precision)
    claim = solution.stats["claim"]
    # the proof may be a little wider than the claim (both carry their own rounding), but not another interval
    slack = (claim["upper"] - claim["lower"]) + 1e-12 * claim["upper"]
    proven = bool(
        np.isfinite(enclosure.upper)
        and claim["lower"] - slack <= enclosure.lower
        and enclosure.upper <= claim["upper"] + slack
    )
    if as_json:
        claimed = {k: v if v != float("inf") else "inf" for k, v in claim.items()}
        print_json({"proven": enclosure_document(enclosure), "claim": claimed, "holds": proven})
    else:
        program = solution.program
        console = Console(highlight=False)
        console.print(f"program   {program.kind}, {program.n_arms} arms in {program.dim} dimensions", markup=False)
        console.print(f"claimed   [{claim['lower']!r}, {claim['upper']!r}]", markup=False)
        console.print(f"proven    {interval(enclosure)}   (relative width {enclosure.gap:.2g})", markup=False)
        if program.origin.bandit is not None:
            console.print(f"optimal   arms {program.origin.bandit.optimal_arms.tolist()}", markup=False)
        for arm, gap in enclosure.tied_gaps.items():
            console.print(f"          arm {arm} is taken as optimal; its exact gap is {gap:.3g}", markup=False)
        for note in enclosure.notes:
            console.print(f"          {note}", markup=False)
        console.print(
            "the claim holds" if proven else "the claim does NOT hold: the file was changed or is wrong", markup=False
        )
    if not proven:
        raise typer.Exit(1)
