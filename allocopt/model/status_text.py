"""What an answer is worth, in words: whether it can be used, what it assumes, and whether its proof confirms it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allocopt.linear.assumptions import assuming, sentences
from allocopt.model.solution import Solution, Status

if TYPE_CHECKING:
    from allocopt.certify.enclosure import Enclosure

__all__ = ["assumption_sentences", "caveat", "confirmed", "usable", "why_not"]

_ROUNDING = 1e-12  # relative difference between claimed and proven bounds that both sides' own rounding explains


def usable(status: Status) -> bool:
    """Whether the gap is within the tolerance: CERTIFIED, or CONDITIONAL under what is listed."""
    return status in (Status.CERTIFIED, Status.CONDITIONAL)


def why_not(solution: Solution) -> str | None:
    """Why the gap is not within the tolerance; None where it is."""
    return None if usable(solution.status) else str(solution.stats.get("reason", "no reason given"))


def caveat(solution: Solution) -> str:
    """The status with its reason and what is assumed, in one line; empty for what is proven without any assumption."""
    reason, assumed = why_not(solution), assuming(solution.assumptions)
    if solution.status is Status.CERTIFIED and not assumed:
        return ""
    return f"{solution.status.name}: {'; '.join(part for part in (reason, assumed) if part)}"


def assumption_sentences(solution: Solution, enclosure: Enclosure | None, most: int = 5) -> Iterator[str]:
    """What the bounds and their proof assume, a sentence each and none twice."""
    yield from sentences(solution.assumptions, most)
    if enclosure is None:
        return
    known = {arm for a in solution.assumptions if a.kind == "tie" for arm in a.arms}
    tied = [(arm, gap) for arm, gap in enclosure.tied_gaps.items() if arm not in known]
    for arm, gap in tied[:most]:
        yield f"arm {arm} taken as optimal; its exact gap is {gap:.3g}"
    if len(tied) > most:
        yield f"and {len(tied) - most} more arms taken as optimal"
    yield from (note for note in enclosure.notes if all(note != a.text for a in solution.assumptions))


def confirmed(solution: Solution, enclosure: Enclosure) -> bool:
    """Whether the proven interval is that of the solution: at most a little wider, and not another one."""
    if not math.isfinite(solution.upper):
        return False
    slack = (solution.upper - solution.lower) + _ROUNDING * solution.upper
    return solution.lower - slack <= enclosure.lower and enclosure.upper <= solution.upper + slack
