"""The command ``allocopt``. Exit codes: 0 certified, conditional or proven, 1 not so, 2 bad input, 130 interrupted.

Only what every start of Python has loaded is imported here: Ctrl-C ends in one line from the first moment, also while the rest is
loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from allocopt.cli.shell.commands import app as app

__all__ = ["app", "main"]

_INTERRUPTED = 130


def main() -> None:
    """Entry point: errors become one line on standard error, never a traceback."""
    if sys.argv[1:] == ["--version"]:
        importlib.import_module("allocopt.cli.shell.version").show()
        return
    _on_interrupt(_stop_at_once)  # nothing has begun: there is nothing to keep
    running = importlib.import_module("allocopt.cli.shell.running")
    arguments = sys.argv[1:]
    code = running.guarded(lambda: _run(arguments), as_json="--json" in arguments)
    _on_interrupt(signal.SIG_IGN)  # all is written and the code decided: what is left is Python's own end
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    running = importlib.import_module("allocopt.cli.shell.running")
    commands = importlib.import_module("allocopt.cli.shell.commands")
    _on_interrupt(running.interrupt)
    code: int = running.run(commands.app, arguments)
    return code


def _on_interrupt(handler: Any) -> None:
    with contextlib.suppress(ValueError):  # in a thread Python takes no handlers: then its own stays
        signal.signal(signal.SIGINT, handler)


def _stop_at_once(*_: Any) -> None:
    """No exception, which a callback of the import system or of a library could swallow."""
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


def __getattr__(name: str) -> Any:
    if name == "app":
        return importlib.import_module("allocopt.cli.shell.commands").app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    main()
