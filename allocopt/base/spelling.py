"""Calls whose arguments do not fit are told which argument was meant; Python itself names the wrong one only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from allocopt.base.validation import did_you_mean

__all__ = ["parameters_that_do_not_fit", "spell_methods", "spelled", "spelled_constructor"]

_MANY = 7
"""Arguments that a line still shows."""

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


def spell_methods(made: type) -> None:
    """Every public method of a class is `spelled` from now on."""
    for name, member in list(vars(made).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(made, name, spelled(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(made, name, type(member)(spelled(member.__func__)))


def parameters_that_do_not_fit(function: Callable[..., Any], given: int) -> str | None:
    """The parameters of somebody's function, as text, if it cannot be called with so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of functions in C nothing is known
        return None
    try:
        signature.bind(*[None] * given)
    except TypeError:
        return f"({', '.join(signature.parameters)})"
    return None


def _misfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """What is wrong with these arguments; nothing where they fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
        return None
    except TypeError as error:
        problem = str(error)
    name = function.__qualname__.removesuffix(".__init__")
    takes = [p for p in signature.parameters.values() if p.name not in ("self", "cls") and p.name[0] != "_"]
    takes = [p for p in takes if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    known = [p.name for p in takes]
    unknown = next((word for word in named if word not in known), None)
    if unknown is not None and not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        hint = next(_meant(unknown, known, named), None) or did_you_mean(unknown, known)
        return f"{name}: unknown argument {unknown!r}" + (hint or (f" (known: {', '.join(known)})" if known else ""))
    given = given[len(given) and next(iter(signature.parameters), "") in ("self", "cls") :]
    asked = [p.name for p in takes if p.default is p.empty]
    if known[:2] in (["arms", "theta"], ["arms", "gaps"]) and given and hasattr(given[0], "theta"):
        call = f"{name}({', '.join(['bandit.arms', f'bandit.{known[1]}', *asked[2:]])})"
        got = type(given[0]).__name__
        return f"{name}: arms: expected a matrix of numbers and {known[1]} beside it, got a {got}; write {call}"
    by_place = [p for p in takes if p.kind is not p.KEYWORD_ONLY]
    if len(given) <= len(by_place):
        return f"{name}: {problem}; call it as {name}({_shown(takes, asked)})"
    if known[:1] == ["bandit"] and not hasattr(given[0], "theta"):
        call = f"{name}({', '.join(['LinearBandit(arms, theta)', *asked[1:]])})"
        return f"{name}: bandit: expected a LinearBandit, got a {type(given[0]).__name__}; write {call}"
    call = ", ".join([*(p.name for p in by_place), *(f"{p.name}=…" for p in takes if p not in by_place)])
    most = f"at most {len(by_place)}" if by_place else "no"
    word = "argument" if len(by_place) == 1 else "arguments"
    return f"{name}: expected {most} {word} without a name, got {len(given)}; call it as {name}({call})"


def _shown(takes: list[inspect.Parameter], asked: list[str]) -> str:
    """The arguments of a call; of many only those that must be given."""
    return ", ".join([p.name for p in takes] if len(takes) <= _MANY else [*asked, "…"])


def _meant(word: str, known: list[str], named: dict[str, Any]) -> Iterator[str]:
    for other in _OTHER_WORDS.get(word.lower(), ()):
        if other in known and other not in named:
            yield f" (did you mean {other!r}?)"
