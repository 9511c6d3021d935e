"""Fingerprints of blocks of arms: arms that change while they are in use are noticed."""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance

__all__ = ["Fingerprints", "fingerprint"]

_LANES = 4099  # a prime, so that neither rows nor powers of two of them fall into the same lanes
_WEIGHTS = np.random.default_rng(0).integers(0, 2**63, _LANES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def fingerprint(block: np.ndarray[Any, Any]) -> int:
    """A number that another content of the block would hardly have, and surely not if one entry differs; no proof against malice.

    The words are dealt out to lanes in turn and added up, which takes no longer than to read them (a checksum of zlib takes
    six times as long). A plain sum would miss arms that were negated, doubled or swapped: sums are modulo 2^64, so what
    happens to the top bits of an even number of words is lost.
    """
    data = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    words = data[: len(data) // 8 * 8].view(np.uint64)
    full = len(words) // _LANES * _LANES
    lanes = words[:full].reshape(-1, _LANES).sum(axis=0)
    lanes[: len(words) - full] += words[full:]
    lanes ^= lanes >> np.uint64(29)  # the weights would push the top bits out, of float32 those of both halves
    tail = int.from_bytes(data[8 * len(words) :].tobytes(), "little")
    return (int(np.dot(lanes, _WEIGHTS)) + tail * 0x9E3779B97F4A7C15) % 2**64


class Fingerprints:
    """Those of all blocks, by their first rows: remembered when a block is first seen, compared from then on."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def same(self, start: int, found: int | None) -> bool:
        """Whether a block is what it was; of one that was not looked at nothing is known."""
        return found is None or self._known.setdefault(start, found) == found

    def check(self, start: int, found: int | None) -> None:
        """Refuse a block that has changed."""
        if not self.same(start, found):
            raise InvalidInstance(
                f"arms: expected arms that stay as they are, but those from row {start} on have changed since they were first "
                "looked at; large arrays are used where they are, so pass a copy or build everything anew"
            )
