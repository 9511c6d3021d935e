"""``allocopt precompile``: make the machine code of the compiled road now, so that nobody waits for it later."""

from __future__ import annotations

import time

import typer

from allocopt.cli.app import Json, app, print_json
from allocopt.cli.display import progress_line
from allocopt.solving.roads.machine_code import precompile as make


@app.command()
def precompile(as_json: Json = False) -> None:
    """Compile what small programs are solved by, once per installation; without it they take the slower numpy road."""
    started = time.perf_counter()
    with progress_line("compiling"):
        make()
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"seconds": round(seconds, 3)})
        return
    typer.echo(f"machine code is in place ({seconds:.1f} s)")
