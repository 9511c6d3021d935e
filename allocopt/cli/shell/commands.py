"""The application with all its commands."""

from __future__ import annotations

from allocopt.cli import (  # noqa: F401  # each adds its command to the application
    demo,
    methods,
    precompile,
    schedule,
    simulate,
    solve,
    verify,
)
from allocopt.cli.app import app
from allocopt.cli.insight import bound, constants, hardness, spanner, study  # noqa: F401  # as above

__all__ = ["app"]
