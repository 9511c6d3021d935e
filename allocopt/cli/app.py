"""The command line's application object, and what its commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from allocopt.base.version import __version__

__all__ = ["SECONDS_BEFORE_PROGRESS", "File", "Json", "Verify", "app", "print_json"]

SECONDS_BEFORE_PROGRESS = 2.0
"""So long a command works before it shows its progress: what is done by then needs no progress line."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Optimal allocations in linear bandits: computed, proven, used.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        "--prove/--no-prove",
        show_default=False,
        help="Prove the interval from the numbers of the file (default), whatever their size, or leave it out.",
    ),
]
File = Annotated[Path, typer.Argument(help="Instance: .json, .npz, .csv, .parquet or .npy.", show_default=False)]


def print_json(document: Any) -> None:
    """A document on standard output; it must not hold infinities or nan."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"allocopt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
