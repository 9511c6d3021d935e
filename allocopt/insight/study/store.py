"""A study's folder: the finished rows (`allocopt.base.long_runs.store`), and the table in the end, complete or absent.

results.sqlite       what the study is, and the rows that are finished; they go when the table is there
table.parquet        all rows; its digest stays in results.sqlite
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allocopt.base.atomic_files import whole_file
from allocopt.base.errors import InvalidFile, MethodUnavailable
from allocopt.base.long_runs.store import RunStore

__all__ = ["StudyFolder", "needs_pyarrow"]

_ROW_GROUP = 1 << 17  # rows; fixed, so that the bytes of the table do not depend on how the parts were cut
_DIGEST_KEY = b"allocopt-study"  # the key under which a Parquet file says which study it is of
_TABLE = "table.parquet"


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

    run: RunStore
    columns: Mapping[str, type]
    """The parameters and the type of their values."""
    rows_each: int
    """Rows per instance."""
    n_instances: int

    @property
    def table_path(self) -> Path:
        """Where the table is, or will be."""
        return self.run.folder / _TABLE

    @property
    def damaged(self) -> list[str]:
        """Instances whose part could not be read, and which are computed again."""
        return self.run.damaged

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, path: Path, identity: Mapping[str, Any], columns: Mapping[str, type], rows_each: int, n_instances: int
    ) -> Iterator[StudyFolder]:
        """Make the folder, or go on with it if it is of this very study; one process at a time."""
        with RunStore.open(path, "study") as run:
            run.begin(identity)
            folder = cls(run, columns, rows_each, n_instances)
            folder._look_through()
            yield folder

    def _look_through(self) -> None:
        """Refuse a table that is not this study's, and parts that are damaged."""
        for leftover in self.run.folder.glob(f".{_TABLE}.*"):  # of a process that was killed while it wrote the table
            leftover.unlink(missing_ok=True)
        if self.finished:
            if self.table_path.exists():
                self.read_table()
            else:
                self.run.reopen()
            return
        for rows, content in self.run.parts():
            if not self._readable(content, len(rows)):
                self.run.discard(rows)
        if self.table_path.exists() and self.run.missing(self.n_instances):
            raise InvalidFile(
                f"{self.table_path}: was not written by this study, which is not finished; nothing was changed (move it away)"
            )

    @property
    def finished(self) -> bool:
        """Whether the table was written."""
        return self.run.fact(_TABLE) is not None

    def _readable(self, content: bytes, instances: int) -> bool:
        import pyarrow

        try:
            table = _read(content)
        except (pyarrow.ArrowException, OSError, ValueError):
            return False
        return bool(table.num_rows == instances * self.rows_each and table.schema.equals(self._schema()))

    def missing(self) -> list[range]:
        """Ranges of instances that are still to be computed."""
        return [] if self.finished else self.run.missing(self.n_instances)

    def add(self, first: int, columns: Mapping[str, Sequence[Any]]) -> None:
        """Keep the rows of some consecutive instances."""
        import pyarrow

        table = pyarrow.table(dict(columns), schema=self._schema())
        self.run.add(first, len(columns["instance"]) // self.rows_each, _parquet(table))

    def assemble(self) -> Any:
        """The table of a finished study: written if it is not there yet."""
        import pyarrow

        if self.finished:
            return self.read_table()
        table = pyarrow.concat_tables([_read(content) for _, content in self.run.parts()]).combine_chunks()
        if table["instance"].to_pylist()[:: self.rows_each] != list(range(self.n_instances)):
            raise InvalidFile(f"{self.run.folder}: expected the rows of all {self.n_instances} instances, but some are damaged; "
                              "the next start computes them")  # fmt: skip
        content = _parquet(table)
        # one that is there was written by a process that was killed before it could say so, or it is the user's own
        if not self.table_path.exists():
            about = "the table; what is finished is kept"
            with whole_file(self.table_path, overwrite=False, what=about, remedy="move it away") as out:
                out.write(content)
        elif _sha256(self.table_path) != hashlib.sha256(content).hexdigest():
            raise InvalidFile(f"{self.table_path}: was not written by this study; nothing was changed (move it away)")
        self.run.conclude({_TABLE: hashlib.sha256(content).hexdigest()})
        return table

    def read_table(self) -> Any:
        """The finished table, which must be the one that was written."""
        try:
            if _sha256(self.table_path) != self.run.fact(_TABLE):
                raise InvalidFile(f"{self.table_path}: expected this study's table, but the file is damaged or something else; "
                                  "nothing was changed (move it away to compute it again)")  # fmt: skip
            return _read(self.table_path.read_bytes())
        except OSError as error:
            raise InvalidFile(f"{self.table_path}: cannot be read: {error.strerror or error}") from None

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
        return pa.schema(fields, metadata={_DIGEST_KEY: self.run.digest.encode()})


def _parquet(table: Any) -> bytes:
    import pyarrow
    import pyarrow.parquet as parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=_ROW_GROUP, compression="snappy", store_schema=True)
    return bytes(sink.getvalue())


def _read(content: bytes) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(io.BytesIO(content)).read()


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
