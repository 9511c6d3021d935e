"""Between two looks: what `OptimalTracking` and `AllocationTracking` share of going on with an arm, learning, and telling of it.

Their states have ``sight``, ``leader``, ``arm``, ``until``, ``explored``, ``last_explored`` and ``leader_changes``.
"""

from __future__ import annotations

from typing import Any

from allocopt.policies.base import Phase, compiled
from allocopt.policies.tracking.estimate import hold

__all__ = ["PULLS_PER_REPEAT", "UNDECIDED", "decided", "learn_block", "note_leader", "phases_so_far", "rounds_to_stay"]

PULLS_PER_REPEAT = 100
"""A chosen arm is played for 1/100 of its pulls so far (at least once) before the policy looks again. Reactions come at most
one per cent late, a round is as cheap as its random number, and there are at most about 100·k·(1 + log n) decisions."""
UNDECIDED = -2
"""What `decided` returns where the policy has to look."""


@compiled
def decided(state: Any, t: Any) -> Any:
    """The arm of round t, where it is known without a look: one of the spanner, or what the last look chose."""
    if t <= len(state.sight.estimate.first):
        return state.sight.estimate.first[t - 1]
    return state.arm[0] if t < state.until[0] else UNDECIDED


@compiled
def rounds_to_stay(state: Any, t: Any, arm: Any) -> Any:
    """Before round ``until`` nothing is looked at; the spanner is played once each."""
    return 1 if t <= len(state.sight.estimate.first) else state.until[0] - t


@compiled
def learn_block(state: Any, t: Any, arm: Any, count: Any, total: Any) -> None:
    """So many rounds of an arm, from round t on, with this sum of rewards."""
    hold(state.sight.estimate, t, arm, count, total)
    if t > len(state.sight.estimate.first) and arm != state.leader[0]:
        state.explored[0] += count
        state.last_explored[0] = t + count - 1


@compiled
def note_leader(state: Any, leader: Any) -> None:
    """Who leads as of this look."""
    if leader != state.leader[0]:
        state.leader_changes[0] += state.leader[0] >= 0
        state.leader[0] = leader


def phases_so_far(state: Any, horizon: int, summary: str) -> tuple[Phase, ...]:
    """The spanner; tracking, up to the last round that was spent on exploration; and exploiting since."""
    spanner = min(len(state.sight.estimate.first), horizon)
    found = [Phase("spanner", 1, spanner)]
    last = max(int(state.last_explored[0]), spanner)
    if last > spanner:
        found.append(Phase("tracking", spanner + 1, last - spanner, summary))
    if horizon > last:
        found.append(Phase("exploiting", last + 1, horizon - last))
    return tuple(found)
