"""Follower: a schedule played round by round, by whatever algorithm asks for the next arm; can be saved and resumed."""

from __future__ import annotations

import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.base.json_data import json_number, read_json
from allocopt.base.validation import Array, IntArray, whole_number
from allocopt.policies.schedule.cursor import NOTHING_LEFT, Cursor, next_due
from allocopt.policies.schedule.files import new_file
from allocopt.policies.schedule.play_order import ORDERS
from allocopt.policies.schedule.rounding import LONGEST

if TYPE_CHECKING:
    from allocopt.policies.schedule.schedule import Schedule

__all__ = ["Follower"]

_FORMAT, _VERSION = "allocopt-followed-schedule", 1
_MOST_ARMS = 10**8  # a file must not be able to ask for more memory than it could ever need
_ENTRIES = ("format", "version", "n_arms", "order", "arms", "shares", "counts", "place", "left", "pulls")


class Follower:
    """Made by ``schedule.follow()`` or ``Schedule.resume(file)``.

    Whoever follows it exactly plays ``list(schedule)``. One may also play something else: `update` takes what was really
    played, counts it towards what is wanted of that arm, and `next` goes on from there.

    Examples
    --------
    >>> import allocopt as ao
    >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
    >>> follower = ao.Schedule.from_solution(solution, 1000, order="explore-first").follow()
    >>> follower.next()
    1
    >>> follower.update(2)  # something else was played
    >>> follower.update(1, count=5)
    >>> follower.pulls.tolist(), follower.left
    ([0, 5, 1], 994)
    """

    def __init__(self, cursor: Cursor, pulls: IntArray) -> None:
        self.cursor = cursor
        """What compiled code follows."""
        self._pulls = pulls
        self._place = {int(arm): i for i, arm in enumerate(cursor.arms[: cursor.size[0]])}

    @classmethod
    def of(cls, schedule: Schedule) -> Follower:
        """At the first round of a schedule."""
        cursor = Cursor.blank(len(schedule.allocation))
        cursor.begin(schedule.order, schedule.wanted, schedule.free_arms, schedule.length)
        return cls(cursor, np.zeros(len(schedule.allocation), np.int64))

    @property
    def pulls(self) -> IntArray:
        """How often each arm was played since this schedule began."""
        return self._pulls.copy()

    @property
    def left(self) -> int:
        """Rounds left."""
        return int(self.cursor.left[0])

    @property
    def wanted(self) -> Array:
        """Pulls that are still wanted of every arm; inf where an arm takes whatever is left."""
        size = int(self.cursor.size[0])
        result = np.zeros(len(self._pulls))
        result[self.cursor.arms[:size]] = np.maximum(self.cursor.shares[:size] - self.cursor.counts[:size], 0.0)
        return result

    @property
    def done(self) -> bool:
        """Whether nothing is left to play."""
        return bool(next_due(self.cursor) == NOTHING_LEFT)

    def next(self) -> int:
        """The arm to play now; the same one until `update` says that something was played."""
        place = int(next_due(self.cursor))
        if place == NOTHING_LEFT:
            raise InvalidOption(f"schedule: nothing is left to play after {int(self._pulls.sum())} rounds")
        return int(self.cursor.arms[place])

    def update(self, arm: int, count: int = 1) -> None:
        """What was played: usually the arm that ``next()`` said, once."""
        k = len(self._pulls)
        if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < k:
            raise InvalidOption(f"arm: expected a number from 0 to {k - 1}, got {arm!r}")
        times = whole_number("count", count, InvalidOption, least=1)
        if times > self.left:
            raise InvalidOption(f"count: expected at most the {self.left} rounds that are left, got {times}")
        place = self._place.get(int(arm))
        self._pulls[arm] += times
        self.cursor.left[0] -= times
        if place is not None:
            self.cursor.counts[place] += times
            self.cursor.place[0] = place + 1

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write all that is needed to go on later, as JSON; an existing file is kept unless ``force``.

        Examples
        --------
        >>> import tempfile, pathlib, allocopt as ao
        >>> solution = ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0])
        >>> follower = ao.Schedule.from_solution(solution, 1000).follow()
        >>> follower.update(follower.next())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     follower.save(pathlib.Path(folder) / "place.json")
        ...     again = ao.Schedule.resume(pathlib.Path(folder) / "place.json")
        >>> follower.next() == again.next(), again.left
        (True, 999)
        """
        size = int(self.cursor.size[0])
        entries: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "n_arms": len(self._pulls),
            "order": ORDERS[int(self.cursor.order[0])],
            "arms": self.cursor.arms[:size].tolist(),
            "shares": [json_number(x) for x in self.cursor.shares[:size]],
            "counts": self.cursor.counts[:size].tolist(),
            "place": int(self.cursor.place[0]),
            "left": self.left,
            "pulls": {str(i): int(self._pulls[i]) for i in np.flatnonzero(self._pulls)},
        }
        with new_file(path, force=force) as out:
            out.write(json.dumps(entries, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Follower:
        """Read what `save` wrote, or raise `InvalidFile` with what is wrong."""
        source = file_path(path)
        content = read_json(source)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InvalidFile(f"{source}: expected a followed schedule (the format {_FORMAT!r})")
        if content.get("version") != _VERSION:
            raise InvalidFile(f"{source}: expected version {_VERSION}, got {content.get('version')!r}")
        missing = [name for name in _ENTRIES if name not in content]
        if missing:
            raise InvalidFile(f"{source}: {missing[0]!r} is missing")
        try:
            return cls._from(content)
        except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise InvalidFile(f"{source}: {error}") from None

    @classmethod
    def _from(cls, content: dict[str, Any]) -> Follower:
        k = _whole("n_arms", content["n_arms"], 1, _MOST_ARMS)
        arms = [_whole("arms", arm, 0, k - 1) for arm in content["arms"]]
        if len(set(arms)) < len(arms):
            raise ValueError("arms: expected each arm once")
        if content["order"] not in ORDERS:
            raise ValueError(f"order: expected one of {', '.join(ORDERS)}, got {content['order']!r}")
        shares = [float(share) for share in content["shares"]]
        counts = [_whole("counts", count, 0) for count in content["counts"]]
        if not (len(arms) == len(shares) == len(counts) and all(share >= 0.0 for share in shares)):
            raise ValueError(f"shares, counts: expected {len(arms)} numbers >= 0 each, one per arm of the list")
        cursor, size = Cursor.blank(k), len(arms)
        cursor.order[0], cursor.size[0] = ORDERS.index(content["order"]), size
        cursor.arms[:size], cursor.shares[:size], cursor.counts[:size] = arms, shares, counts
        cursor.place[0] = _whole("place", content["place"], 0, size)
        cursor.left[0] = _whole("left", content["left"], 0)
        pulls = np.zeros(k, np.int64)
        for arm, count in content["pulls"].items():
            pulls[_whole("pulls", int(arm), 0, k - 1)] = _whole("pulls", count, 0)
        if (pulls[arms] != counts).any():
            raise ValueError("counts: expected those of pulls")
        return cls(cursor, pulls)


def _whole(name: str, value: Any, least: int, most: int = LONGEST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")
    return value
