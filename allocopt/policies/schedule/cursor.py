r"""A schedule that compiled code can follow: which arm comes next, after whatever was played so far.

`play_order` answers for every t by a formula; this answers for the next round from the counts, O(1) to O(arms played) a round,
and so can be followed by a policy (`EndOfOptimism`, `AllocationTracking`) or by anybody (`following.Follower`). The rules:

    explore-first   the first arm, in the order of the list, that was played less than its share
    interleaved     going round the list from the last arm played, the first one with pulls left
    tracking        the smallest (N_x + ½)/share_x, the first in the list of several
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from allocopt.base.compiling import compiled, entry
from allocopt.base.validation import Array, IntArray
from allocopt.policies.schedule.play_order import ORDERS, full_shares

__all__ = ["NOTHING_LEFT", "Cursor", "count_pulls", "due", "next_due"]

NOTHING_LEFT = -1
"""What `due` returns when everything that was scheduled has been played."""

_INTERLEAVED, _EXPLORE_FIRST = ORDERS.index("interleaved"), ORDERS.index("explore-first")


class Cursor(NamedTuple):
    """Where one is in a schedule. Only the first ``size`` entries of the arrays are in use: a policy makes room before it knows."""

    order: IntArray
    """Length 1: the place of the order in `ORDERS`."""
    size: IntArray
    """Length 1: how many arms the schedule plays."""
    arms: IntArray
    shares: Array
    """Pulls of each of these in all; inf where an arm takes whatever is left."""
    counts: IntArray
    """Pulls so far."""
    place: IntArray
    """Length 1: where a pass over the list goes on."""
    left: IntArray
    """Length 1: rounds left."""

    @classmethod
    def blank(cls, n_arms: int) -> Cursor:
        """Room for any schedule of so many arms; nothing is scheduled."""
        one, each = np.zeros(1, np.int64), np.zeros(n_arms, np.int64)
        return cls(one, one.copy(), each, np.zeros(n_arms), each.copy(), one.copy(), one.copy())

    def begin(self, order: str, wanted: Array, free: IntArray, rounds: int) -> None:
        """At the first round of the order of that name: ``wanted`` pulls per arm, ``free`` arms for the rest of ``rounds``."""
        exploring, full = full_shares(wanted, free, rounds)
        arms = np.flatnonzero(exploring)
        listed = np.concatenate([arms, free]) if order == "explore-first" else np.union1d(arms, free)
        shares = full[listed]
        if order == "interleaved":
            shares[np.isin(listed, free)] = np.inf
        size = len(listed)
        self.order[0], self.size[0], self.place[0], self.left[0] = ORDERS.index(order), size, 0, rounds
        self.arms[:size], self.shares[:size], self.counts[:] = listed, shares, 0


@compiled
def due(cursor: Any) -> Any:
    """The place in the list of the arm that comes next, or `NOTHING_LEFT`."""
    size, order = cursor.size[0], cursor.order[0]
    shares, counts = cursor.shares, cursor.counts
    if cursor.left[0] <= 0:
        return NOTHING_LEFT
    if order in (_INTERLEAVED, _EXPLORE_FIRST):
        place = cursor.place[0] if order == _INTERLEAVED else 0
        for _ in range(size):
            if place >= size:
                place = 0
            if counts[place] < shares[place]:
                return place
            place += 1
        return NOTHING_LEFT
    best, least = NOTHING_LEFT, 0.0
    for place in range(size):
        if shares[place] > 0.0:
            when = (counts[place] + 0.5) / shares[place]
            if best == NOTHING_LEFT or when < least:
                best, least = place, when
    return best


@compiled
def count_pulls(cursor: Any, place: Any, pulls: Any) -> None:
    """The arm at this place of the list was played so often; `NOTHING_LEFT` for an arm that is not in the list."""
    cursor.left[0] -= pulls
    if place >= 0:
        cursor.counts[place] += pulls
        cursor.place[0] = place + 1


next_due = entry(due)
"""`due` for callers in Python."""
