"""The checkpoint of a simulation: finished chunks of runs in a folder (`allocopt.base.long_runs.store`)."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.long_runs.store import RunStore
from allocopt.base.validation import Array, IntArray
from allocopt.play.simulation.result import phase_rows, phases_from_rows

__all__ = ["Chunk", "Store"]


class Chunk(NamedTuple):
    """What some consecutive runs came to."""

    first: int
    regret: Array
    pulls: IntArray
    phases: tuple[Any, ...]


@dataclass(frozen=True)
class Store:
    """A checkpoint folder; nobody else works in it meanwhile."""

    run: RunStore

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path | None) -> Iterator[Store | None]:
        """Open the folder, or begin one; None where there is to be none."""
        if folder is None:
            yield None
            return
        with RunStore.open(folder, "simulation") as run:
            yield cls(run)

    @property
    def seed(self) -> dict[str, Any] | None:
        """The seed of the experiment in the folder; None if it is a new one."""
        identity = self.run.identity
        return None if identity is None else dict(identity["seed"])

    def save(self, chunk: Chunk) -> None:
        """Keep a finished chunk."""
        buffer = io.BytesIO()
        phases = np.array(json.dumps(phase_rows(chunk.phases)))
        np.savez(buffer, regret=chunk.regret, pulls=chunk.pulls, phases=phases)
        self.run.add(chunk.first, len(chunk.regret), buffer.getvalue())

    def chunks(self) -> Iterator[Chunk]:
        """The chunks that were finished before."""
        for rows, stored in self.run.parts():
            with np.load(io.BytesIO(stored), allow_pickle=False) as content:
                phases = phases_from_rows(json.loads(str(content["phases"])))
                yield Chunk(rows.start, content["regret"], content["pulls"], phases)
