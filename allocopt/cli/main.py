"""The command ``allocopt``. Exit codes: 0 certified, conditional or proven, 1 not so, 2 bad input, 130 interrupted."""

from __future__ import annotations

import os
import sys
import warnings

import typer

from allocopt.base.errors import AllocoptError
from allocopt.cli import (  # noqa: F401  # each adds its command to the application
    demo,
    methods,
    precompile,
    schedule,
    simulate,
    solve,
    spanner,
    verify,
)
from allocopt.cli.app import app
from allocopt.cli.insight import bound, constants, hardness, study  # noqa: F401  # as above


def _one_line(message: Warning | str, *_: object) -> None:
    """A warning as a user of the command line should see it."""
    typer.echo(f"note: {message}", err=True)


def main() -> None:
    """Entry point: errors and warnings become one line on standard error, never a traceback."""
    warnings.showwarning = _one_line  # type: ignore[assignment]
    try:
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()
    except AllocoptError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        typer.echo(f"error: cannot write the output: {error.strerror or error}", err=True)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # or the interpreter complains again at exit
        sys.exit(2)
    except MemoryError:
        typer.echo("error: not enough memory for this instance", err=True)
        sys.exit(2)


__all__ = ["app", "main"]

if __name__ == "__main__":
    main()
