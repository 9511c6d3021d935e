"""``allocopt precompile``: make the machine code of the compiled road now, so that nobody waits for it later."""

from __future__ import annotations

import sys
import time

import typer

from allocopt.cli.app import Json, app, print_json
from allocopt.cli.display import progress_line
from allocopt.solving.roads.machine_code import precompile as make
from allocopt.solving.roads.machine_code import ready, why_no_machine_code


@app.command()
def precompile(as_json: Json = False) -> None:
    """Compile what small programs are solved by, once per installation; without it they take the slower numpy road.

    Policies are compiled when each is first simulated.
    """
    started = time.perf_counter()
    if not sys.stderr.isatty() and why_no_machine_code() is None and not (ready("arms") and ready("targets")):
        typer.echo("compiling; this takes some seconds", err=True)  # a terminal has a line that moves
    with progress_line("compiling"):
        make()
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"seconds": round(seconds, 3)})
        return
    typer.echo(f"machine code is in place ({seconds:.1f} s)")
