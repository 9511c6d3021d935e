"""A user's function as a source of instances: found, checked against the design, and recognised when its code changes."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allocopt.base.errors import InvalidOption
from allocopt.base.long_runs.identity import described
from allocopt.insight.study.design import Design, Point
from allocopt.insight.study.source import Source, reason_of

__all__ = ["UserFunction", "check_signature", "has_parameter", "named_function", "passed_function"]


@dataclass(frozen=True)
class UserFunction(Source):
    """A function of the parameters that returns an instance. It is the user's code, and runs as such."""

    label: str
    """As the user named it."""
    description: Any
    """Its code and all that it uses, so that a study is not continued with another function."""
    text: str | None = None
    """The source of its file: workers on other machines need not have the file."""
    function: Callable[..., Any] | None = field(default=None, compare=False)
    """The function itself, where it was passed as one."""

    def identity(self) -> dict[str, Any]:
        return {"function": self.label, "is": self.description}

    def make(self, entry: Point) -> Any:
        return self.loaded()(**entry)

    def loaded(self) -> Callable[..., Any]:
        """The function; imported or compiled once per process."""
        return self.function if self.function is not None else _load_function(self.label, self.text)

    @property
    def harmless(self) -> bool:
        return False

    @property
    def takes_seed(self) -> bool:
        return has_parameter(self.loaded(), "seed")

    def check(self, design: Design) -> None:
        check_signature(f"function {self.label}", self.loaded(), design)


@functools.cache
def _load_function(label: str, text: str | None) -> Callable[..., Any]:
    """From "module:function", or from the text of "file.py:function"."""
    place, _, name = label.rpartition(":")
    try:
        if text is None:
            module = importlib.import_module(place)
        else:
            # a name of its own, known to sys.modules because dataclasses and pickles look there
            module = types.ModuleType(f"_allocopt_study_{hashlib.sha256(text.encode()).hexdigest()[:16]}")
            module.__file__ = place
            sys.modules[module.__name__] = module
            exec(compile(text, place, "exec"), module.__dict__)
    except ModuleNotFoundError as error:
        hint = "" if text is not None else " (a file is given as path/to/file.py:function)"
        raise InvalidOption(f"family.function: {label}: {error}{hint}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # even SystemExit: it is the user's code
        raise InvalidOption(f"family.function: {label}: importing it raises {reason_of(error)}") from None
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        kind = "there is no such name in it" if function is None else f"{name} is a {type(function).__name__}"
        raise InvalidOption(f"family.function: {label}: expected a function, but {kind}")
    return function  # type: ignore[no-any-return]


def passed_function(function: Callable[..., Any]) -> UserFunction:
    """A function that was passed as one."""
    return UserFunction(_callable_label(function), described("family", function), function=function)


def named_function(label: str, folder: Path) -> UserFunction:
    """From "module:function" or "path/to/file.py:function"."""
    place, colon, name = label.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidOption(f'family.function: expected "module:function" or "path/to/file.py:function", got {label!r}')
    if place.endswith(".py"):
        try:
            text = (folder / place).read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidOption(
                f"family.function: {folder / place}: cannot be read: {error.strerror or error}"
            ) from None
        except UnicodeDecodeError:
            raise InvalidOption(
                f"family.function: {folder / place}: expected Python source, but it is not text"
            ) from None
        loaded = described("family", _load_function(label, text))
        return UserFunction(label, {"file": hashlib.sha256(text.encode()).hexdigest(), **loaded}, text)
    if not all(part.isidentifier() for part in place.split(".")):
        raise InvalidOption(f'family.function: expected "module:function" or "path/to/file.py:function", got {label!r}')
    return UserFunction(label, described("family", _load_function(label, None)))


def _callable_label(function: Any) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    return f"{getattr(inner, '__module__', '?')}:{getattr(inner, '__qualname__', type(inner).__qualname__)}"


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False  # built in


def check_signature(what: str, function: Callable[..., Any], design: Design) -> None:
    """Every parameter of the design must be one of the function's, and none that it needs may be missing."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return  # built in; a call with wrong parameters is then a failed row
    named = {p.name: p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = f"it has: {', '.join(named) or 'none'}"
    for name in design.names:
        if name not in named and not open_ended:
            if name == "seed" and design.repeats is not None:
                raise InvalidOption(
                    f"repeats: {what} takes no parameter seed, so every repeat would be the same ({known})"
                )
            place = next(k for k in ("fixed", "grid", "random") if name in getattr(design, k))
            raise InvalidOption(f"{place}.{name}: {what} has no such parameter ({known})")
    missing = [p.name for p in named.values() if p.default is p.empty and p.name not in design.names]
    if missing:
        raise InvalidOption(
            f"{missing[0]}: {what} needs this parameter: give it in [fixed], [grid] or [random] ({known})"
        )
