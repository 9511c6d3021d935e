"""A folder that keeps the finished parts of a long run: one SQLite file, one process at a time, one experiment for ever.

    results.sqlite       what the results depend on, and every finished part with its digest
    .allocopt-lock       which process is working here

A part is a range of rows (instances of a study, runs of a simulation) and the bytes of their results. It is there completely or
not at all, whenever the process, or the machine, stops: it is one transaction. How the rows are cut into parts says nothing.
The manifest, and every part, holds the digest of everything that determines the results (`allocopt.base.long_runs.identity`).
Going on with anything else is refused with what differs, and a part of another origin is not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from allocopt.base.errors import InvalidFile
from allocopt.base.long_runs.differences import canonical_text, differences
from allocopt.base.long_runs.lock import LOCK, locked

__all__ = ["DATABASE", "RunStore", "stored_identity"]

DATABASE = "results.sqlite"
_APPLICATION = 0x616C6C6F  # "allo": how the file says whose it is
_VERSION = 1
_EARLIER = {"manifest.json": "a simulation", "study.json": "a study"}  # of folders that earlier versions wrote
_MOST_BYTES = 900_000_000  # of a part: SQLite holds a billion in one place

_SCHEMA = """
CREATE TABLE manifest (kind TEXT NOT NULL, digest TEXT NOT NULL, identity TEXT NOT NULL);
CREATE TABLE parts (
    first INTEGER PRIMARY KEY, after INTEGER NOT NULL, digest TEXT NOT NULL, checksum TEXT NOT NULL, content BLOB NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class RunStore:
    """An open folder; made by `RunStore.open`."""

    def __init__(self, folder: Path, kind: str, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.damaged: list[str] = []
        """Ranges of rows whose part could not be read, and which are computed again."""
        self._kind = kind
        self._connection = connection
        self._digest = ""
        self._file = (folder / DATABASE).stat()

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path, kind: str, tolerated: tuple[str, ...] = ()) -> Iterator[RunStore]:
        """Make the folder, or open one of this ``kind`` ("study", "simulation"); nobody else works in it meanwhile.

        A folder that holds other files and no database is the user's own and refused, ``tolerated`` names aside.
        """
        with contextlib.ExitStack() as stack:
            try:
                if folder.exists() and not folder.is_dir():
                    raise InvalidFile(f"{folder}: expected a folder for the {kind}, but it is a file")
                folder.mkdir(parents=True, exist_ok=True)
                _check_others(folder, kind, tolerated)
                stack.enter_context(locked(folder))
                _check_others(folder, kind, tolerated)
            except OSError as error:
                raise InvalidFile(f"{folder}: cannot keep the {kind} there: {error.strerror or error}") from None
            with _said(folder, kind):
                connection = sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30.0)
                stack.callback(connection.close)
                _prepare(connection, folder, kind)
                store = cls(folder, kind, connection)
            yield store

    @property
    def identity(self) -> dict[str, Any] | None:
        """What the results in the folder depend on; None if it is a new one."""
        with _said(self.folder, self._kind):
            return _identity(self._connection)

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Say what the results depend on: written into a new folder, compared with what an old one holds."""
        text = canonical_text(identity)
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        there = self.identity
        if there is not None and canonical_text(there) != text:
            what = "; ".join(differences(there, json.loads(text)))
            raise InvalidFile(
                f"{self.folder}: holds another {self._kind}: {what}; nothing was changed (use another folder)"
            )
        if there is not None:
            return
        with self._transaction():
            for statement in _SCHEMA.split(";"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            self._connection.execute("INSERT INTO manifest VALUES (?, ?, ?)", (self._kind, self._digest, text))

    def parts(self) -> Iterator[tuple[range, bytes]]:
        """The finished parts, in the order of their rows. Damaged ones are removed, and listed in ``damaged``."""
        for rows in self._ranges():
            content = self._content(rows)
            if content is not None:
                yield rows, content

    def missing(self, total: int) -> list[range]:
        """The ranges of rows, out of ``total``, that are not finished."""
        found, after = [], 0
        for rows in [*self._ranges(), range(total, total)]:
            if rows.start < after or rows.stop > total:
                raise InvalidFile(f"{self.folder / DATABASE}: expected parts of rows 0 to {total - 1} that do not overlap, got "
                                  f"rows {rows.start} to {rows.stop - 1}; nothing was changed")  # fmt: skip
            if rows.start > after:
                found.append(range(after, rows.start))
            after = rows.stop
        return found

    def add(self, first: int, count: int, content: bytes) -> None:
        """Keep the results of some consecutive rows; they are on the disk when this returns."""
        if len(content) > _MOST_BYTES:
            raise InvalidFile(
                f"{self.folder}: rows {first} to {first + count - 1} hold {len(content)} bytes, more than one part can ({_MOST_BYTES})"
            )
        rows = range(first, first + count)
        with self._transaction():
            overlap = "SELECT first FROM parts WHERE first < ? AND after > ?"
            if self._connection.execute(overlap, (rows.stop, rows.start)).fetchone() is not None:
                raise InvalidFile(
                    f"{self.folder}: rows {first} to {rows.stop - 1} are there already; nothing was changed"
                )
            entry = (first, rows.stop, self._digest, self._checksum(rows, content), content)
            self._connection.execute("INSERT INTO parts VALUES (?, ?, ?, ?, ?)", entry)

    def fact(self, name: str) -> str | None:
        """Something that was noted about the whole run."""
        with _said(self.folder, self._kind):
            found = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def conclude(self, facts: Mapping[str, str]) -> None:
        """Note facts, and drop the parts in the same step: what they held is elsewhere now."""
        with self._transaction():
            self._connection.execute("DELETE FROM parts")
            self._connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", sorted(facts.items()))

    def reopen(self) -> None:
        """Forget the facts: the rows have to be computed again."""
        with self._transaction():
            self._connection.execute("DELETE FROM facts")

    @property
    def digest(self) -> str:
        """Of everything that determines the results."""
        return self._digest

    def _ranges(self) -> list[range]:
        with _said(self.folder, self._kind):
            found = self._connection.execute("SELECT first, after FROM parts ORDER BY first").fetchall()
        return [range(first, after) for first, after in found]

    def _content(self, rows: range) -> bytes | None:
        """The bytes of a part, if it is whole and of this very run."""
        with _said(self.folder, self._kind):
            query = "SELECT digest, checksum, content FROM parts WHERE first = ?"
            digest, checksum, content = self._connection.execute(query, (rows.start,)).fetchone()
        if digest != self._digest:
            raise InvalidFile(
                f"{self.folder / DATABASE}: rows {rows.start} to {rows.stop - 1} are of another {self._kind}; nothing was changed "
                "(use another folder)"
            )
        if isinstance(content, bytes) and checksum == self._checksum(rows, content):
            return content
        self.discard(rows)
        return None

    def discard(self, rows: range) -> None:
        """Remove a part that is damaged."""
        with self._transaction():
            self._connection.execute("DELETE FROM parts WHERE first = ?", (rows.start,))
        self.damaged.append(f"{rows.start}-{rows.stop - 1}")

    def _checksum(self, rows: range, content: bytes) -> str:
        sha = hashlib.sha256(f"{self._digest} {rows.start} {rows.stop} ".encode())
        sha.update(content)
        return sha.hexdigest()

    def _check_still_there(self) -> None:
        """Refuse to write into a file that nobody will find: the folder may have been moved or removed."""
        try:
            now = os.stat(self.folder / DATABASE)
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != (self._file.st_dev, self._file.st_ino):
            raise InvalidFile(f"{self.folder}: {DATABASE} was removed or replaced while the {self._kind} was running")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with _said(self.folder, self._kind):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_still_there()
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def stored_identity(folder: Path, kind: str) -> dict[str, Any] | None:
    """What the results in a folder depend on; None if nothing was begun there, `InvalidFile` if somebody is working in it."""
    if not (folder / DATABASE).exists():
        return None
    with (
        locked(folder),
        _said(folder, kind),
        contextlib.closing(sqlite3.connect(folder / DATABASE, timeout=30.0)) as connection,
    ):
        _prepare(connection, folder, kind)
        return _identity(connection)


def _is_new(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)  # type: ignore[no-any-return]


def _identity(connection: sqlite3.Connection) -> dict[str, Any] | None:
    if _is_new(connection):
        return None
    identity: dict[str, Any] = json.loads(connection.execute("SELECT identity FROM manifest").fetchone()[0])
    return identity


def _check_others(folder: Path, kind: str, tolerated: tuple[str, ...]) -> None:
    names = sorted(p.name for p in folder.iterdir() if p.name != LOCK)
    if DATABASE in names:
        return
    for name, earlier in _EARLIER.items():
        if name in names:
            raise InvalidFile(
                f"{folder}: holds {earlier} that an earlier allocopt kept in another format ({name}), which cannot be gone on with; "
                "nothing was changed: finish it with that version, or use another folder"
            )
    others = [name for name in names if name not in tolerated and not name.startswith(".")]
    if others:
        raise InvalidFile(
            f"{folder}: expected a new or empty folder or one of this {kind}, but it holds {others[0]!r} and no {DATABASE}; "
            "nothing was changed"
        )


def _prepare(connection: sqlite3.Connection, folder: Path, kind: str) -> None:
    """Refuse a database of something else; and the settings, which SQLite does not keep."""
    # exclusive: without memory that is shared with other processes, which network file systems lack
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA synchronous = FULL")  # a part that was added survives a power cut
    if _is_new(connection):
        connection.execute("PRAGMA auto_vacuum = FULL")  # parts that are dropped leave no empty space
        connection.execute("PRAGMA journal_mode = WAL")  # one wait for the disk a part instead of four
        return
    (owner,), (version,) = (connection.execute(f"PRAGMA {x}").fetchone() for x in ("application_id", "user_version"))
    if owner != _APPLICATION:
        raise InvalidFile(
            f"{folder / DATABASE}: expected a database of allocopt's, got another one; nothing was changed"
        )
    if version != _VERSION:
        raise InvalidFile(
            f"{folder / DATABASE}: expected format {_VERSION}, got {version}, of another version of allocopt; nothing was changed: "
            "finish it with that version, or use another folder"
        )
    held = connection.execute("SELECT kind FROM manifest").fetchone()
    if held != (kind,):
        raise InvalidFile(
            f"{folder}: expected a {kind}, but it holds a {held[0]}; nothing was changed (use another folder)"
        )


@contextlib.contextmanager
def _said(folder: Path, kind: str) -> Iterator[None]:
    """SQLite's errors in words."""
    try:
        yield
    except sqlite3.Error as error:
        _raise(folder, kind, error)


def _raise(folder: Path, kind: str, error: sqlite3.Error) -> NoReturn:
    source = folder / DATABASE
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kept = f"what is finished is kept in {folder}, and the next start goes on from there"
    if code == sqlite3.SQLITE_FULL:
        raise InvalidFile(f"{source}: cannot be written: No space left on device; {kept}") from None
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        raise InvalidFile(
            f"{source}: expected a {kind}, but the file is damaged or something else; nothing was changed (move it away to begin anew)"
        ) from None
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        raise InvalidFile(f"{folder}: cannot keep the {kind} there: {error}") from None
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise InvalidFile(f"{source}: another program has the file open for writing; {kept}") from None
    raise InvalidFile(f"{source}: cannot be read or written: {error}; {kept}") from None
