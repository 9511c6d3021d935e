"""Every error that allocopt raises on purpose; each message names the argument, what it was and what was expected."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allocopt.model.solution import Solution

__all__ = [
    "AllocoptError",
    "CompilingWarning",
    "Infeasible",
    "Interrupted",
    "InvalidFile",
    "InvalidInstance",
    "InvalidOption",
    "InvalidProgram",
    "InvalidProof",
    "LicenseMissing",
    "MethodUnavailable",
    "NotProven",
    "SlowWarning",
    "SolverFailed",
]


class AllocoptError(Exception):
    """Base class: ``except allocopt.AllocoptError`` catches all of them."""


class InvalidInstance(AllocoptError, ValueError):
    """The arms, θ or gaps do not describe a linear bandit."""


class InvalidProgram(AllocoptError, ValueError):
    """The arrays do not describe an allocation program."""


class InvalidOption(AllocoptError, ValueError):
    """An option (tolerance, method name, method option) is unknown or out of range."""


class InvalidFile(AllocoptError, ValueError):
    """A file cannot be read, or does not hold what was expected."""


class InvalidProof(InvalidFile):
    """A proof file is not consistent with itself, so nothing is proven by it."""


class NotProven(InvalidProof):
    """A proof file is well-formed, but claims more than its allocation, multipliers and assumptions prove."""


class Infeasible(AllocoptError, ValueError):
    """No allocation meets the constraints; the message says which target cannot be met, and why."""


class MethodUnavailable(AllocoptError, RuntimeError):
    """The method cannot solve this program, or a package that it needs is not installed."""


class LicenseMissing(MethodUnavailable):
    """A commercial solver is installed but has no licence."""


class SolverFailed(AllocoptError, RuntimeError):
    """A back end could not go on. ``solve`` turns it into ``Status.FAILED`` or ``Status.INACCURATE``."""


class CompilingWarning(UserWarning):
    """Said before machine code is made, which takes seconds, once; nothing is said where it is on disk already."""


class SlowWarning(UserWarning):
    """Said before something starts that takes very long: many times as long without compiled code, or for minutes."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """A warning that points at the line outside of allocopt from which it was called, however deep it comes from."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "allocopt":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. ``solution`` is the best certified answer of a solve so far (``None`` if there was none yet, or nothing was solved).

    It is a ``KeyboardInterrupt``, so programs that do not ask for it stop as they always did.
    """

    def __init__(self, solution: Solution | None, what_is_known: str | None = None) -> None:
        super().__init__(what_is_known or "interrupted; the best certified answer so far is in .solution")
        self.solution = solution
