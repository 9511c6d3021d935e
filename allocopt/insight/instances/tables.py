"""Matrices of numbers in CSV and Parquet files, read piece by piece: memory for the matrix and little else, errors with their place.

CSV goes through NumPy's own reader, a few megabytes at a time. What that refuses, or might have rounded, is looked at again cell by
cell, which finds the row that is wrong, or reads it after all.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.conversion import first_changed
from allocopt.base.errors import InvalidFile, MethodUnavailable
from allocopt.base.validation import Array
from allocopt.insight.instances.numbers import number_or_none
from allocopt.insight.instances.row_names import named_rows, without_names

__all__ = ["ReadProgress", "read_csv_table", "read_parquet_table"]

ReadProgress = Callable[[float], object]
"""Called with the share of the file that is read, from 0 to 1."""

_PIECE = 1 << 23  # characters that are looked at together
_LONGEST_LINE = 1 << 27
_BATCH_ENTRIES = 1 << 20  # of a Parquet file


class _Growing:
    """A matrix that gets longer; the system moves its pages instead of copying it."""

    def __init__(self, columns: int, rows: int) -> None:
        self._array: Array = np.empty((max(rows, 16), columns))
        self._count = 0

    @property
    def columns(self) -> int:
        return int(self._array.shape[1])

    def append(self, rows: Array) -> None:
        after = self._count + len(rows)
        if after > len(self._array):
            self._array.resize((max(after, len(self._array) + len(self._array) // 4), self.columns), refcheck=False)
        self._array[self._count : after] = rows
        self._count = after

    def whole(self) -> Array:
        self._array.resize((self._count, self.columns), refcheck=False)
        return self._array


def read_csv_table(source: Path, progress: ReadProgress | None = None) -> tuple[Array, list[str] | None]:
    """The numbers of a CSV file, of one that gzip has packed as well, and the names of its rows where its first column has them.

    A first row without any number is a header.
    """
    size = source.stat().st_size
    found: _Growing | None = None
    names: list[str] | None = None
    line = 1
    try:
        with source.open("rb") as raw:
            packed = source.suffix.lower() == ".gz"
            content: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
                for piece in _pieces(source, text):
                    if line == 1 and _named(source, piece):
                        names = []
                    if names is not None:
                        piece, more = without_names(piece, begins=line == 1)
                        names += more
                    rows = _rows(source, piece, line, None if found is None else found.columns)
                    line += max(piece.count("\n"), piece.count("\r"))
                    if len(rows):
                        if found is None:
                            share = max(raw.tell(), 1) / max(size, 1)
                            found = _Growing(rows.shape[1], int(1.05 * len(rows) / share))
                        found.append(rows)
                    if progress is not None:
                        progress(min(raw.tell() / max(size, 1), 1.0))
    except UnicodeDecodeError:
        raise InvalidFile(f"{source}: expected CSV text, but it is not text") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidFile(f"{source}: expected a file packed by gzip, but it is damaged or something else") from None
    if found is None:
        raise InvalidFile(f"{source}: expected at least one row of numbers, found none")
    return found.whole(), names


def _named(source: Path, piece: str) -> bool:
    try:
        return named_rows(piece)
    except ValueError as error:
        raise InvalidFile(f"{source}: {error}") from None


def _pieces(source: Path, text: io.TextIOWrapper) -> Iterator[str]:
    """The text in pieces of whole lines."""
    while piece := text.read(_PIECE):
        rest = "" if piece.endswith("\n") else text.readline(_LONGEST_LINE)
        if len(rest) == _LONGEST_LINE and not rest.endswith("\n"):
            raise InvalidFile(f"{source}: expected rows of numbers, but a row has more than {_LONGEST_LINE} characters")
        yield piece + rest


def _rows(source: Path, piece: str, line: int, columns: int | None) -> Array:
    """The rows of a piece that begins at this line of the file."""
    try:
        fast: Array = np.loadtxt(_lines(piece), delimiter=",", comments=None, quotechar='"', ndmin=2)
        plain = fast.size and (columns is None or fast.shape[1] == columns)
        if (
            plain and (np.abs(fast) < 2.0**53).all()
        ):  # beyond, whole numbers may have been rounded; and nan is none of these
            return fast
    except ValueError:
        pass
    return _rows_one_by_one(source, piece, line, columns)


def _lines(piece: str) -> list[str]:
    # at least one, or NumPy warns: an empty line is none
    return [x for x in piece.splitlines() if x.strip()] or [" "]


def _rows_one_by_one(source: Path, piece: str, line: int, columns: int | None) -> Array:
    rows: list[list[float]] = []
    number = line - 1
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(piece, newline="")), start=line):
            if not any(cell.strip() for cell in cells):
                continue
            numbers = [number_or_none(cell) for cell in cells]
            if number == 1 and all(x is None for x in numbers):
                _check_names(source, [cell.strip() for cell in cells])
                continue  # a header: a row without any number
            wanted = columns if columns is not None else len(rows[0]) if rows else None
            rows.append(_checked_row(source, number, cells, numbers, wanted))
    except csv.Error as error:
        if "field larger" in str(error):
            limit = csv.field_size_limit()
            raise InvalidFile(
                f"{source}: row {number + 1}: expected numbers, but a field has more than {limit} characters"
            ) from None
        raise InvalidFile(f"{source}: expected CSV text, but it is not text") from None
    return np.array(rows)


def _checked_row(
    source: Path, number: int, cells: list[str], numbers: list[float | int | None], wanted: int | None
) -> list[float]:
    row = [x for x in numbers if x is not None]
    rounded = [x for x in row if isinstance(x, int)]
    if rounded:
        raise InvalidFile(
            f"{source}: row {number}: expected numbers that are doubles, got {rounded[0]}; use other units or round it"
        )
    if len(row) < len(numbers) or not np.isfinite(row).all():
        raise InvalidFile(f"{source}: row {number}: expected finite numbers, got {','.join(cells)[:60]!r}")
    if wanted is not None and len(row) != wanted:
        raise InvalidFile(f"{source}: row {number}: expected {wanted} numbers, got {len(row)}")
    return row


def _check_names(source: Path, names: list[str]) -> None:
    """Refuse a table with two columns of the same name: one of them is not what it was meant to be."""
    first: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name and name in first:
            raise InvalidFile(
                f"{source}: expected columns of different names, but columns {first[name]} and {place} are both called {name!r}"
            )
        first[name] = place


def read_parquet_table(
    source: Path, progress: ReadProgress | None = None
) -> tuple[np.ndarray[Any, Any], list[str] | None]:
    """The columns of a Parquet file, in their order, and the names of its rows: its one column of text, or the index of pandas."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MethodUnavailable(f"{source}: reading Parquet needs pyarrow: pip install 'allocopt[files]'") from None
    try:
        with source.open("rb") as opened, parquet.ParquetFile(opened) as file:
            return _parquet_rows(source, pyarrow.types, file, progress)
    except pyarrow.ArrowException:
        raise InvalidFile(f"{source}: expected a Parquet file, but it is damaged or something else") from None


def _name_column(types: Any, schema: Any) -> str | None:
    """The column that names the rows."""

    def is_text(kind: Any) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
    text = index or [field.name for field in schema if is_text(field.type)]
    return text[0] if len(text) == 1 and len(schema) > 1 and text[0] in schema.names else None


def _parquet_rows(
    source: Path, types: Any, file: Any, progress: ReadProgress | None
) -> tuple[np.ndarray[Any, Any], list[str] | None]:
    schema, total = file.schema_arrow, file.metadata.num_rows
    if not len(schema):
        raise InvalidFile(f"{source}: expected one column per coordinate, found none")
    _check_names(source, schema.names)
    named = _name_column(types, schema)
    names = None if named is None else file.read([named]).column(named).to_pylist()
    if names is not None and None in names:
        raise InvalidFile(f"{source}: column {named!r}, row {names.index(None)}: expected the name of an arm, got null")
    fields = [field for field in schema if field.name != named]
    for field in fields:
        if not (types.is_floating(field.type) or types.is_integer(field.type)):
            raise InvalidFile(f"{source}: column {field.name!r}: expected numbers without gaps, got {field.type}")
    single = all(types.is_float32(field.type) for field in fields)
    rows = np.empty((total, len(fields)), np.float32 if single else np.float64)
    start, wanted = 0, [field.name for field in fields]
    for batch in file.iter_batches(batch_size=max(1, _BATCH_ENTRIES // len(fields)), columns=wanted):
        for place, field in enumerate(fields):
            column = batch.column(place)
            if column.null_count:
                row = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise InvalidFile(
                    f"{source}: column {field.name!r}, row {row}: expected numbers without gaps, got null ({column.null_count} of "
                    f"these {len(column)} rows are)"
                )
            numbers = column.to_numpy()
            changed = first_changed(numbers, numbers.astype(np.float64))  # columns of several types are rounded to one
            if changed is not None:
                raise InvalidFile(
                    f"{source}: column {field.name!r}: expected numbers that are doubles, but row {start + changed[0]} is "
                    f"{numbers[changed]}; use other units or round it"
                )
            rows[start : start + len(batch), place] = numbers
        start += len(batch)
        if progress is not None:
            progress(start / max(total, 1))
    return rows, None if names is None else [str(name) for name in names]
