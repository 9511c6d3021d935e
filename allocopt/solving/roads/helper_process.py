"""A second process that compiles a part of the kernel while this one compiles the rest: where there are two cores, in half the time.

This module does not need numba: loading that takes half a second, in which the other process can start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from allocopt.base.machine import available_cores

__all__ = ["Helper", "start_helper"]

_CODE = "import sys; from allocopt.solving import kernel; kernel.compile_in_helper(*sys.argv[1:])"


class Helper:
    """A process that runs `kernel.compile_in_helper`; what it compiles is then found on disk. If it fails nothing is lost."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, seconds: float) -> None:
        """Wait until it is done, or for so long."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.wait()


def start_helper(*forms: str) -> Helper | None:
    """Start one, for these forms of the kernel; None where it would not help."""
    if available_cores() < 2 or getattr(sys, "frozen", False) or not sys.executable:
        return None
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    try:
        return Helper(
            subprocess.Popen(
                [sys.executable, "-P", *["-O"] * sys.flags.optimize, "-c", _CODE, *forms],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
    except OSError:
        return None
