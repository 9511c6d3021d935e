"""Checkpoints of long simulations: a folder with a manifest and one file per finished chunk of runs.

Every file is written whole or not at all, so a process may be killed at any moment: what was finished stays, and the
same call goes on from there. The manifest says which experiment the folder belongs to; another one is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from allocopt.base.atomic_files import whole_file
from allocopt.base.errors import InvalidFile, InvalidOption
from allocopt.base.json_data import read_json
from allocopt.base.validation import Array, IntArray
from allocopt.model.bandit import LinearBandit
from allocopt.play.simulation.result import phase_rows, phases_from_rows

__all__ = ["Chunk", "Store", "digest"]

FORMAT = "allocopt-simulation-checkpoint"
_MANIFEST = "manifest.json"


class Chunk(NamedTuple):
    """What some consecutive runs came to."""

    first: int
    regret: Array
    pulls: IntArray
    phases: tuple[Any, ...]


def digest(bandit: LinearBandit) -> str:
    """A fingerprint of everything in a bandit that a simulation depends on."""
    sha = hashlib.sha256()
    for array in (bandit.arms, bandit.theta, bandit.gaps):
        sha.update(repr(array.shape).encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    sha.update(repr(np.asarray(bandit.noise_variance).tolist()).encode())
    return sha.hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """A checkpoint folder that is known to belong to the experiment at hand."""

    folder: Path
    shape: tuple[int, int]
    """Number of times, number of arms."""

    @staticmethod
    def seed_of(folder: Path) -> dict[str, Any] | None:
        """The seed of the experiment in a folder, if there is one."""
        manifest = _manifest(folder)
        return None if manifest is None else manifest["seed"]

    @classmethod
    def open(cls, folder: Path, experiment: dict[str, Any], shape: tuple[int, int]) -> Store:
        """Open the folder, or begin one; `InvalidOption` if it belongs to another experiment or to something else."""
        manifest = _manifest(folder)
        if manifest is not None:
            for key in (*experiment, *manifest):
                if key != "format" and manifest.get(key) != experiment.get(key):
                    raise InvalidOption(
                        f"checkpoint: {folder} holds another experiment: its {key} is {_short(manifest.get(key))}, not "
                        f"{_short(experiment.get(key))}; nothing was changed, give another folder"
                    )
            return cls(folder, shape)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            other_files = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
        except OSError as error:
            raise InvalidFile(f"checkpoint: {folder}: {error.strerror or error}") from None
        if other_files:
            raise InvalidOption(
                f"checkpoint: expected a new or empty folder or one of this experiment, but {folder} holds "
                f"{sorted(other_files)[0]!r}; nothing was changed, give another folder"
            )
        text = json.dumps({"format": FORMAT, **experiment}, indent=2, allow_nan=False)
        _write(folder / _MANIFEST, (text + "\n").encode())
        return cls(folder, shape)

    def save(self, chunk: Chunk) -> None:
        """Keep a finished chunk."""
        buffer = io.BytesIO()
        phases = np.array(json.dumps(phase_rows(chunk.phases)))
        np.savez(buffer, regret=chunk.regret, pulls=chunk.pulls, phases=phases)
        _write(self._file(chunk.first), buffer.getvalue())

    def load(self, first: int, runs: int) -> Chunk | None:
        """The chunk of ``runs`` runs from run ``first`` on, if it was finished before."""
        source = self._file(first)
        if not source.exists():
            return None
        try:
            with np.load(io.BytesIO(source.read_bytes()), allow_pickle=False) as content:
                chunk = Chunk(
                    first, content["regret"], content["pulls"], phases_from_rows(json.loads(str(content["phases"])))
                )
            if chunk.regret.shape != (runs, self.shape[0]) or chunk.pulls.shape != (runs, self.shape[1]):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error):
            raise InvalidFile(f"{source}: damaged; delete it, and these runs are played again") from None
        return chunk

    def _file(self, first: int) -> Path:
        return self.folder / f"runs-from-{first:08d}.npz"


def _manifest(folder: Path) -> dict[str, Any] | None:
    source = folder / _MANIFEST
    if folder.exists() and not folder.is_dir():
        raise InvalidOption(f"checkpoint: expected a folder, but {folder} is a file")
    if not source.exists():
        return None
    content = read_json(source)
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("seed"), dict):
        raise InvalidOption(
            f"checkpoint: expected a folder of a simulation, but {source} is something else; nothing was changed"
        )
    return content


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _write(target: Path, content: bytes) -> None:
    with whole_file(target, overwrite=True, what="a checkpoint") as out:
        out.write(content)
