"""ArmStore: what is asked of a set of arms, one row each, that need not be in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from allocopt.base.validation import Array, IntArray

__all__ = ["ArmStore", "Task"]

Task = Callable[..., Any]
"""Called with the index of a block's first row, the block as float64, and the block's part of each aligned array.

The block is valid during the call only; the next one may be written over it.
"""


class ArmStore(Protocol):
    """A set of arms, one row each, that need not be in memory."""

    @property
    def shape(self) -> tuple[int, int]:
        """(k, d)."""

    def rows(self, indices: IntArray) -> Array:
        """Some rows, as float64."""

    def scan(self, task: Task, aligned: Sequence[Any] = ()) -> Iterator[Any]:
        """What ``task`` returns for every block, in the order of the rows; ``aligned`` arrays have one entry per arm.

        The first scan remembers a fingerprint of every block, and later ones raise `InvalidInstance` where a block is no
        longer the same. A scan with a mask (an aligned array of truth values) need not look at every block, so it is exempt.
        """

    def check_unchanged(self) -> None:
        """`InvalidInstance` if arms in memory, or in a mapped file, differ from what they were at the first scan."""

    def array(self) -> Array:
        """All arms as one float64 array, where that is possible."""
