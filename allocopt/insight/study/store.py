"""A study's folder: what was asked, the parts that are finished, and the table in the end; every file complete or absent.

    study.json                   what the study is; another study is refused
    parts/00000000-00000255      the rows of instances 0 to 255 (Parquet), written once they are complete
    table.parquet                all rows; the parts go when it is there

Every file is written under a temporary name, synced and renamed, so that a file with its own name is complete whenever the
process, or the machine, stops.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allocopt.base.errors import InvalidFile, MethodUnavailable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["StudyFolder", "needs_pyarrow"]

_FORMAT = "allocopt-study"
_VERSION = 2  # 2: the column assumptions
_OWN_PREFIX = ".allocopt-"  # our temporary files and the lock begin so
_PART = re.compile(r"(\d{8})-(\d{8})\.parquet")
_ROW_GROUP = 1 << 17  # rows; fixed, so that the bytes of the table do not depend on how the parts were cut
_DIGEST_KEY = b"allocopt-study"  # the key under which a Parquet file says which study it is of


def needs_pyarrow() -> None:
    """Refuse to begin what could not be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MethodUnavailable(
            "a study's table is a Parquet file, which needs pyarrow: pip install 'allocopt[files]'"
        ) from None


@dataclass
class StudyFolder:
    """An open study folder; made by `StudyFolder.open`."""

    path: Path
    digest: str
    columns: Mapping[str, type]
    """The parameters and the type of their values."""
    rows_each: int
    """Rows per instance."""
    n_instances: int
    finished: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of instances (first, last) whose part is there."""
    damaged: list[str] = field(default_factory=list)
    """Parts that could not be read and are computed again."""

    @property
    def table_path(self) -> Path:
        """Where the table is, or will be."""
        return self.path / "table.parquet"

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, path: Path, identity: Mapping[str, Any], columns: Mapping[str, type], rows_each: int, n_instances: int
    ) -> Iterator[StudyFolder]:
        """Make the folder, or go on with it if it is of this very study; one process at a time."""
        digest = hashlib.sha256(_json(identity).encode()).hexdigest()
        folder = cls(path, digest, columns, rows_each, n_instances)
        with contextlib.ExitStack() as stack:
            try:
                if path.exists() and not path.is_dir():
                    raise InvalidFile(f"{path}: expected a folder for the study, but it is a file")
                path.mkdir(parents=True, exist_ok=True)
                other_files = sorted(p.name for p in path.iterdir() if not p.name.startswith(_OWN_PREFIX))
                if other_files and not (path / "study.json").exists():
                    raise InvalidFile(f"{path}: expected an empty folder or one of this study, but it holds {other_files[0]!r} and no "
                                      "study.json; nothing was changed")  # fmt: skip
                stack.enter_context(_locked(path))
                folder._check_identity(identity)
                folder._remove_leftovers()
                folder._find_finished()
            except OSError as error:
                raise InvalidFile(f"{path}: cannot keep the study there: {error.strerror or error}") from None
            yield folder

    def _check_identity(self, identity: Mapping[str, Any]) -> None:
        """Write study.json, or see that the one which is there says the same."""
        document = {"format": _FORMAT, "version": _VERSION, "digest": self.digest, "study": identity}
        source = self.path / "study.json"
        if not source.exists():
            self.write(source, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
            return
        try:
            there = json.loads(source.read_text(encoding="utf-8"))
            study = there["study"]
            known = there["format"] == _FORMAT and there["version"] == _VERSION
        except (ValueError, KeyError, TypeError):
            raise InvalidFile(f"{source}: expected what this study is, but the file is damaged or something else; nothing was "
                              "changed") from None  # fmt: skip
        if not known:
            raise InvalidFile(f"{source}: expected {_FORMAT} version {_VERSION}, got version {there['version']!r}")
        here = json.loads(json.dumps(identity))  # tuples become lists, as in the file
        if study != here:
            differs = _difference("", study, here)
            raise InvalidFile(f"{self.path}: holds another study: {differs}; nothing was changed (use another folder)")

    def _remove_leftovers(self) -> None:
        """Remove what a killed process left half written."""
        for folder in (self.path, self.path / "parts"):
            if folder.is_dir():
                for leftover in folder.glob(f"{_OWN_PREFIX}*.tmp"):
                    leftover.unlink(missing_ok=True)

    def _find_finished(self) -> None:
        """Which instances are finished."""
        if self.table_path.exists():
            self.read_table()  # refuses what is not this study's
            self._drop_parts()
            self.finished = [(0, self.n_instances - 1)]
            return
        parts = self.path / "parts"
        parts.mkdir(exist_ok=True)
        after = 0
        for file in sorted(parts.iterdir()):
            named = _PART.fullmatch(file.name)
            if named is None:
                continue
            first, last = int(named[1]), int(named[2])
            if first < after or last < first or last >= self.n_instances:
                raise InvalidFile(
                    f"{file}: expected parts that do not overlap, from 0 to {self.n_instances - 1}; was it copied?"
                )
            if self._readable(file, (last - first + 1) * self.rows_each):
                self.finished.append((first, last))
                after = last + 1
            else:
                self.damaged.append(file.name)
                file.unlink()

    def _readable(self, file: Path, rows: int) -> bool:
        """Whether a part is complete; one of another study is refused, a damaged one is not."""
        import pyarrow

        try:
            table = _read(file)
        except (pyarrow.ArrowException, OSError, ValueError):
            return False
        self._check_owner(file, table)
        return bool(table.num_rows == rows and table.schema.equals(self._schema()))

    def _check_owner(self, file: Path, table: Any) -> None:
        owner = (table.schema.metadata or {}).get(_DIGEST_KEY, b"").decode(errors="replace")
        if owner != self.digest:
            raise InvalidFile(f"{file}: holds the table of another study; nothing was changed (use another folder)")

    def missing(self) -> Iterator[range]:
        """Ranges of instances that are still to be computed."""
        after = 0
        for first, last in [*self.finished, (self.n_instances, self.n_instances)]:
            if after < first:
                yield range(after, first)
            after = last + 1

    def add(self, first: int, columns: Mapping[str, Sequence[Any]]) -> None:
        """Keep the rows of some consecutive instances."""
        import pyarrow

        count = len(columns["instance"]) // self.rows_each
        table = pyarrow.table(dict(columns), schema=self._schema())
        file = self.path / "parts" / f"{first:08d}-{first + count - 1:08d}.parquet"
        self.write(file, _parquet(table))

    def assemble(self) -> Any:
        """The table of a finished study: written if it is not there yet."""
        import pyarrow

        if self.table_path.exists():
            return self.read_table()
        parts = sorted(p for p in (self.path / "parts").iterdir() if _PART.fullmatch(p.name))
        table = pyarrow.concat_tables([_read(p) for p in parts]).combine_chunks()
        if table["instance"].to_pylist()[:: self.rows_each] != list(range(self.n_instances)):
            raise InvalidFile(f"{self.path / 'parts'}: expected the parts of all {self.n_instances} instances, but some are gone; "
                              "the next start computes them")  # fmt: skip
        self.write(self.table_path, _parquet(table))
        self._drop_parts()
        return table

    def read_table(self) -> Any:
        """The finished table."""
        import pyarrow

        try:
            table = _read(self.table_path)
        except (pyarrow.ArrowException, ValueError):
            raise InvalidFile(f"{self.table_path}: expected this study's table, but the file is damaged or something else; nothing "
                              "was changed (move it away to compute it again)") from None  # fmt: skip
        self._check_owner(self.table_path, table)
        if table.num_rows != self.n_instances * self.rows_each:
            raise InvalidFile(
                f"{self.table_path}: expected {self.n_instances * self.rows_each} rows, got {table.num_rows}"
            )
        return table

    def _drop_parts(self) -> None:
        parts = self.path / "parts"
        if parts.is_dir():
            for file in parts.iterdir():
                if _PART.fullmatch(file.name):
                    file.unlink()
            with contextlib.suppress(OSError):  # something of the user's is in it: it stays
                parts.rmdir()

    def _schema(self) -> Any:
        import pyarrow as pa

        kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), list: pa.list_(pa.float64())}
        parameters = [pa.field(name, kinds[kind]) for name, kind in self.columns.items()]
        number, text = pa.float64(), pa.string()
        fields = [
            pa.field("instance", pa.int64(), nullable=False),
            *parameters,
            pa.field("quantity", text, nullable=False),
        ]
        fields += [pa.field("value", number), pa.field("lower", number), pa.field("upper", number)]
        fields += [pa.field("status", text, nullable=False), pa.field("reason", text), pa.field("assumptions", text)]
        return pa.schema(fields, metadata={_DIGEST_KEY: self.digest.encode()})

    def write(self, target: Path, content: bytes) -> None:
        """All of it, on the disk, under its own name; or an error and nothing."""
        temporary = target.parent / f"{_OWN_PREFIX}{target.name}.{os.getpid()}.tmp"
        try:
            with temporary.open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(target)
            _sync_folder(target.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise InvalidFile(f"{target}: cannot be written: {error.strerror or error}; what is finished is kept in {self.path}, "
                              "and the next start goes on from there") from None  # fmt: skip


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a power failure as well, where the system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _parquet(table: Any) -> bytes:
    import pyarrow
    import pyarrow.parquet as parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=_ROW_GROUP, compression="snappy", store_schema=True)
    return bytes(sink.getvalue())


def _read(file: Path) -> Any:
    import pyarrow.parquet as parquet

    with file.open("rb") as opened:  # read here, so that what goes wrong is an OSError with a reason
        return parquet.ParquetFile(opened).read()


def _difference(key: str, there: Any, here: Any) -> str:
    """The first thing in which two studies differ."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in (*here, *there):
            if name not in there or name not in here:
                continue
            if there[name] != here[name]:
                return _difference(f"{key}.{name}" if key else name, there[name], here[name])
        names = [set(there) - set(here), set(here) - set(there)]
        return f"{key} has {', '.join(sorted(names[0])) or 'nothing'} there and {', '.join(sorted(names[1])) or 'nothing'} here"
    if key in ("family.code", "family.content"):
        what = "the function's code" if key.endswith("code") else "the content of the instance files"
        return f"{what} has changed since"
    shown = [x if len(x) <= 60 else x[:57] + "..." for x in (json.dumps(v, ensure_ascii=False) for v in (there, here))]
    if shown[0] == shown[1]:
        return f"{key} differs"
    return f"{key} is {shown[0]} there and {shown[1]} here"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process works in a folder; the system lets go of the lock when the process ends, however it does."""
    with (folder / f"{_OWN_PREFIX}lock").open("a+b") as handle:
        try:
            if sys.platform == "win32":
                msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise InvalidFile(f"{folder}: another process is working on this study; wait for it or stop it") from None
        yield
