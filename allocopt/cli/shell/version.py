"""``allocopt --version``, which loads nothing else."""

from __future__ import annotations

import contextlib
import sys

from allocopt.base.version import __version__

__all__ = ["show"]


def show() -> None:
    """Print the version; a reader that has gone away is no error."""
    with contextlib.suppress(OSError, AttributeError):  # AttributeError: there is no standard output at all
        sys.stdout.write(f"allocopt {__version__}\n")
        sys.stdout.flush()
    sys.exit(0)
