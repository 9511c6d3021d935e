"""Running a command so that whatever happens is one line on standard error and an exit code, with ``--json`` also a document."""

from __future__ import annotations

import _thread
import json
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from allocopt.base.errors import AllocoptError
from allocopt.base.validation import did_you_mean
from allocopt.cli.shell.plain_text import readable_everywhere

__all__ = ["SCHEMA_VERSION", "guarded", "interrupt", "run", "say_interrupted"]

SCHEMA_VERSION = 1
"""Of every document that ``--json`` prints (docs/json.md); a key that goes or changes its meaning makes it 2."""

BAD_INPUT, INTERRUPTED = 2, 130
_USAGE: type[Exception] = typer.BadParameter.__bases__[0]  # click's UsageError, wherever typer has click from
_CLICK: type[Exception] = _USAGE.__bases__[0]


class _State:
    """Whether Ctrl-C was pressed, and whether that was said."""

    pressed = False
    said = False


def interrupt(*_: Any) -> None:
    """What Ctrl-C does while a command runs: an exception the first time, the end the second time."""
    _State.pressed = True
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _end(*_: Any) -> None:
    if not _State.said:
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def say_interrupted(what: str = "interrupted") -> None:
    """The one line that an interrupted command leaves."""
    if not _State.said:
        _State.said = True
        _complain(what)


def guarded(command: Callable[[], int], *, as_json: bool) -> int:
    """The exit code of a command; whatever it raises is said in one line."""
    _State.pressed = _State.said = False
    readable_everywhere()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # a cache that cannot be written is no news to users
    sys.unraisablehook = _unraisable
    warnings.showwarning = _note  # type: ignore[assignment]
    try:
        try:
            code = command()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        if not _State.pressed:  # else it is what some library made of the interrupt
            return _told(error, as_json)
        code = INTERRUPTED
    if code == INTERRUPTED or _State.pressed:
        if as_json and not _State.said:
            _print_error("Interrupted", "interrupted")
        say_interrupted()
        return INTERRUPTED
    return code


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """The exit code of the application for these arguments."""
    result = app(args=_in_our_spelling(arguments), prog_name="allocopt", standalone_mode=False)
    return result if isinstance(result, int) else 0


def _told(error: BaseException, as_json: bool) -> int:
    if isinstance(error, SystemExit):
        if isinstance(error.__context__, BrokenPipeError):  # typer makes 1 of a reader that has gone away
            return 0
        return error.code if isinstance(error.code, int) else BAD_INPUT if error.code else 0
    kind, message = _described(error)
    if message is None:
        raise error
    _complain(f"error: {message}")
    if as_json:
        _print_error(kind, message)
    return BAD_INPUT


def _described(error: BaseException) -> tuple[str, str | None]:
    """The kind of an error and its one line; None for what should never happen, whose traceback is wanted."""
    kind = type(error).__name__
    if isinstance(error, AllocoptError):
        return kind, _one_line(str(error))
    if type(error).__name__ == "NoArgsIsHelpError":
        return "InvalidOption", "expected a command, such as `allocopt solve FILE` (allocopt --help lists them)"
    if isinstance(error, _CLICK):
        return "InvalidOption", usage(error)
    if isinstance(error, typer.Abort):
        return "Interrupted", "the input ended"
    if isinstance(error, MemoryError):
        return kind, "not enough memory for this instance"
    if isinstance(error, OSError):
        _give_up_output()
        return kind, f"cannot write the output: {error.strerror or error}"
    return kind, None


def usage(error: Any) -> str:
    """What is wrong with a command line, in one line, with what was probably meant.

    Only what all versions of typer say is relied on: the message, and the parameter's names.
    """
    message = _one_line(error.format_message()).rstrip(".")
    param, context = getattr(error, "param", None), getattr(error, "ctx", None)
    unknown = getattr(error, "option_name", None)
    if unknown is not None and message.startswith("No such option"):
        known = [name for p in context.command.params for name in (*p.opts, *p.secondary_opts)] if context else []
        message = f"{unknown}: no such option{did_you_mean(unknown, [n for n in known if n.startswith('--')])}"
    elif param is not None:
        option = param.param_type_name == "option"
        name = max(param.opts, key=len) if option else str(param.name).upper()
        if type(error).__name__ == "MissingParameter":
            message = f"{name}: expected {'this option' if option else 'one, after the command'}, got none"
        else:
            message = f"{name}: {_expected(_one_line(error.message).rstrip('.'), param.opts)}"
    else:
        message = message.replace("argument(s) (", "arguments: ").replace("argument (", "argument: ").rstrip(")")
        message = message.replace("'. Did you mean", "' (did you mean").replace("'?", "'?)")
        message = message[0].lower() + message[1:]
    command = f"{context.command_path} --help" if context is not None else "allocopt --help"
    return f"{message}; {command} tells more"


def _expected(message: str, names: Sequence[str]) -> str:
    """What was expected of an option and what it was, from what typer says about it."""
    _, listed, choices = message.partition(" is not one of ")
    known = re.findall(r"'([^']*)'", choices)
    given = _given(names)
    got = "" if given is None else f", got {given[:60]!r}"
    if listed:
        return f"expected one of {', '.join(known)}{got}{did_you_mean(given or '', known)}"
    if "integer" in message:
        return f"expected a whole number{got}"
    if "number" in message or "float" in message:
        return f"expected a number{got}"
    return f"{message}{got}"


def _given(names: Sequence[str]) -> str | None:
    """What follows an option on the command line, the last time that it is there."""
    for at in reversed(range(1, len(sys.argv))):
        name, equals, value = sys.argv[at].partition("=")
        if name in names:
            return value if equals else sys.argv[at + 1] if at + 1 < len(sys.argv) else None
    return None


_CHOICES = ("--program", "--method", "--order", "--rounding", "--solver")
"""Options whose values are names: best_arm is best-arm, and Regret is regret."""


_WHOLE_NUMBERS = ("--horizon", "-n", "--runs", "-r")
"""Options of whole numbers, which may be written 1e6."""


def _in_our_spelling(arguments: Sequence[str]) -> list[str]:
    spelt = list(arguments)
    for at, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        after = at > 0 and arguments[at - 1] in _CHOICES
        if (equals and name in _CHOICES) or after:
            value = (argument if after else value).replace("_", "-")
            value = value.upper() if "--solver" in (name, arguments[at - 1]) else value.lower()
            spelt[at] = value if after else f"{name}={value}"
        elif at > 0 and arguments[at - 1] in _WHOLE_NUMBERS and re.fullmatch(r"[0-9]{1,3}e[0-9]{1,2}", argument):
            digits, _, zeros = argument.partition("e")
            spelt[at] = digits + "0" * int(zeros)
    return spelt


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _complain(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # nobody listens


def _note(message: Warning | str, *_: object) -> None:
    """A warning as a user of the command line should see it."""
    _complain(f"note: {message}")


def _print_error(kind: str, message: str) -> None:
    """What ``--json`` prints in place of a result."""
    document = {"schema_version": SCHEMA_VERSION, "error": {"kind": kind, "message": message}}
    try:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        _give_up_output()


def _give_up_output() -> None:
    """Standard output leads nowhere from here on: the interpreter must not complain again at its end."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _unraisable(event: Any) -> None:
    """An interrupt that came in a callback, where no exception can be raised, comes again a moment later."""
    if issubclass(event.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGINT, interrupt)
        again = threading.Timer(0.01, _thread.interrupt_main)
        again.daemon = True
        again.start()
    elif not _State.pressed:  # else it is an object that the interrupt left half made, on its way out
        sys.__unraisablehook__(event)
