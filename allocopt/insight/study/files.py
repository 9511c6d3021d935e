"""Files as a source of instances: a folder of instance files, or a file of JSON lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from allocopt.base.errors import InvalidFile, InvalidInstance, InvalidOption
from allocopt.insight.instances.files import Instance, read_instance
from allocopt.insight.study.design import Design, Point
from allocopt.insight.study.source import Source, encodable, reason_of

__all__ = ["InstanceFiles", "instance_files"]

_READABLE = (".json", ".npz", ".csv", ".parquet", ".npy")
_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class InstanceFiles(Source):
    """Instances that are listed: a folder of instance files, or a file of JSON lines."""

    path: Path = Path()
    digest: str = ""
    listed: tuple[str, ...] = field(default=(), repr=False)
    lines: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(encodable(name) for name in self.listed)

    def identity(self) -> dict[str, Any]:
        return {"instances": {"name": self.path.name, "sha256": self.digest}}

    def entry(self, index: int, point: Point) -> Any:
        """The instance as read, or the reason why it could not be."""
        try:
            if self.lines is None:
                return read_instance(self.path / self.listed[index])
            return _from_line(self.lines[index])
        except InvalidFile as error:
            return reason_of(error)
        except InvalidInstance as error:
            return f"{self.names[index]}: {reason_of(error)}"

    def make(self, entry: Any) -> Any:
        if isinstance(entry, str):
            raise InvalidFile(entry)
        return entry

    def for_workers(self) -> Source:
        return InstanceFiles()

    def check(self, design: Design) -> None:
        for key in ("fixed", "grid", "random", "repeats"):
            if getattr(design, key):
                raise InvalidOption(f"{key}: instances from files have no parameters, so there is nothing to vary")


def _from_line(line: str) -> Instance:
    """One line of a file of JSON lines, as a .json file would hold it."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInstance(f"not valid JSON: {reason_of(error)}") from None
    if not isinstance(content, dict) or "arms" not in content:
        raise InvalidInstance('expected a JSON object with "arms" and "theta" (or "gaps")')
    known = ("arms", "theta", "gaps", "noise_variance", "labels", "name", "description")
    for key in content:
        if key not in known:
            raise InvalidInstance(f'unknown entry "{key}" (known: {", ".join(known)})')
    # not validated here: the worker does that, as with what a function returns
    return Instance(**{key: content.get(key) for key in known[:5]})  # type: ignore[arg-type]


def instance_files(path: Path) -> InstanceFiles:
    """The instances of a folder, in the order of their names, or of a file, in the order of its lines."""
    digest = hashlib.sha256()
    try:
        if path.is_dir():
            files = sorted(
                p
                for p in path.iterdir()
                if p.suffix.lower() in _READABLE and not p.name.startswith(".") and p.is_file()
            )
            for file in files:
                digest.update(f"{file.name}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape"))
                with file.open("rb") as content:
                    while piece := content.read(1 << 20):
                        digest.update(piece)
            if not files:
                raise InvalidOption(
                    f"family.instances: {path}: expected {', '.join(_READABLE)} files in it, found none"
                )
            return InstanceFiles(path, digest.hexdigest(), tuple(file.name for file in files))
        if not path.exists():
            raise InvalidOption(f"family.instances: {path}: no such file or folder")
        if path.suffix.lower() not in _LINES:
            raise InvalidOption(
                f"family.instances: {path}: expected a folder or a file of JSON lines ({' or '.join(_LINES)})"
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidOption(f"family.instances: {path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidOption(f"family.instances: {path}: expected JSON lines, but it is not UTF-8 text") from None
    numbered = [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not numbered:
        raise InvalidOption(f"family.instances: {path}: expected one JSON object per line, found none")
    digest.update(text.encode())
    names = tuple(f"{path.name}:{i}" for i, _ in numbered)
    return InstanceFiles(path, digest.hexdigest(), names, tuple(line for _, line in numbered))
