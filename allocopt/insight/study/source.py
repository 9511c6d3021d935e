"""The interface of a source of instances, and errors as one line of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allocopt.base.errors import AllocoptError
from allocopt.insight.study.design import Design, Point

__all__ = ["NO_MEMORY", "Source", "encodable", "reason_of"]

NO_MEMORY = "not enough memory"


@dataclass(frozen=True)
class Source:
    """A family of instances. ``entry`` is asked in the main process, ``make`` in the workers."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The instances, where they are listed (files) instead of made from parameters."""
        return None

    def identity(self) -> dict[str, Any]:
        """What the instances depend on besides the parameters."""
        raise NotImplementedError

    def entry(self, index: int, point: Point) -> Any:
        """What a worker needs in order to make instance ``index``."""
        return point

    def make(self, entry: Any) -> Any:
        """The instance, or whatever the user's code says is one."""
        raise NotImplementedError

    def for_workers(self) -> Source:
        """This source without what only the main process needs."""
        return self

    @property
    def harmless(self) -> bool:
        """Whether instances are made without users' code, which may end the process, never end itself, or fill the memory."""
        return True

    @property
    def takes_seed(self) -> bool:
        """Whether an instance depends on a parameter called seed."""
        return False

    def check(self, design: Design) -> None:
        """Refuse a design whose parameters this family does not have."""


def encodable(text: str) -> str:
    r"""Text as UTF-8 can hold it: bytes of a file's name that are no text, and broken Unicode, are spelled out.

    Examples
    --------
    >>> print(encodable("a\udcff.json"))
    a\udcff.json
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def reason_of(error: BaseException) -> str:
    """An exception in one line, whatever its text is."""
    try:
        text = encodable(" ".join(str(error).split()))
    except Exception:  # the user's own class, whose text cannot even be made
        text = ""
    if isinstance(error, AllocoptError) and text:
        return text
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if len(text) > 300:
        text = text[:297] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
