"""Progress: what a callback is told while a solve goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Callback", "Progress"]


@dataclass(frozen=True)
class Progress:
    """What a callback is told: both bounds are certified for the whole program at this moment.

    Attributes
    ----------
    method : str
        Who is at work.
    iteration : int
        The method's own count of steps.
    lower, upper, gap : float
        Certified bounds of the value, and (upper − lower)/lower.
    seconds : float
        Since the solve began.
    alive : int or None
        Arms that may still matter; the others provably do not. None where nobody counts them.
    """

    method: str
    iteration: int
    lower: float
    upper: float
    gap: float
    seconds: float
    alive: int | None = None
    """Arms that may still matter; the others provably do not. None where nobody counts them."""


Callback = Callable[[Progress], object]
"""Called after every certified step of a solver; what it returns is ignored, what it raises stops the solve."""
