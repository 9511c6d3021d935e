"""Phase: a stretch of rounds in which a policy did one thing (a file of its own, which loads no numba)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Phase"]


@dataclass(frozen=True)
class Phase:
    """A stretch of rounds in which a policy did one thing.

    Attributes
    ----------
    name : str
        What it did.
    start : int
        Its first round, counted from 1.
    length : int
        Its number of rounds.
    ended : str
        Why it ended, where there is more to say than that its work was done.
    """

    name: str
    start: int
    length: int
    ended: str = ""
