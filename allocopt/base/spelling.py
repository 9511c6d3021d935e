"""Calls whose arguments do not fit are told which argument was meant; Python itself names the wrong one only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from allocopt.base.validation import did_you_mean

__all__ = ["spelled", "spelled_constructor"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_OTHER_WORDS = {
    "seed": ("rng",), "random_state": ("rng", "seed"), "rng": ("seed",), "noise": ("noise_variance",),
    "sigma": ("noise_variance",), "sigma2": ("noise_variance",), "variance": ("noise_variance",),
    "variances": ("noise_variance",), "rounds": ("n", "horizon"), "horizon": ("n",), "n": ("horizon",), "t": ("n", "horizon"),
    "n_rounds": ("n", "horizon"),
    "n_jobs": ("workers",), "jobs": ("workers",), "repetitions": ("runs",), "n_runs": ("runs",), "k": ("m", "n_arms"),
    "d": ("dim",), "eps": ("epsilon",), "threshold": ("tau",), "names": ("labels",), "solver": ("method",),
    "accuracy": ("tol",), "rtol": ("tol",), "output": ("path", "out", "folder"), "bandits": ("bandit",),
}  # fmt: skip
"""What other libraries call an argument, and what it may be called here."""


def spelled(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose TypeError over an unknown or missing argument says what would have fitted."""

    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            problem = misfit(function, given, named)
            if problem is None:  # raised further down
                raise
            raise TypeError(problem) from None

    misfit = _misfit
    # With the globals of the function: doctest looks there to see whose it is.
    made = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.wraps(function)(made)


def spelled_constructor(made: type[C]) -> type[C]:
    """The same class, whose constructor is `spelled`."""
    made.__init__ = spelled(made.__init__)  # type: ignore[method-assign]
    return made


def _misfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """What is wrong with these arguments; nothing where they fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
        return None
    except TypeError as error:
        problem = str(error)
    name = function.__qualname__.removesuffix(".__init__")
    known = [p for p in signature.parameters if p != "self"]
    unknown = next((word for word in named if word not in known), None)
    if unknown is not None:
        hint = next(_meant(unknown, known, named), None) or did_you_mean(unknown, known)
        return f"{name}: unknown argument {unknown!r}" + (hint or f" (known: {', '.join(known)})")
    if known[:2] in (["arms", "theta"], ["arms", "gaps"]) and given and hasattr(given[0], "theta"):
        asked = [
            p.name
            for p in list(signature.parameters.values())[2:]
            if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        call = f"{name}({', '.join(['bandit.arms', f'bandit.{known[1]}', *asked])})"
        got = type(given[0]).__name__
        return f"{name}: arms: expected a matrix of numbers and {known[1]} beside it, got a {got}; write {call}"
    return f"{name}: {problem}; call it as {name}({', '.join(known)})"


def _meant(word: str, known: list[str], named: dict[str, Any]) -> Iterator[str]:
    for other in _OTHER_WORDS.get(word.lower(), ()):
        if other in known and other not in named:
            yield f" (did you mean {other!r}?)"
