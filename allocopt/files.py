"""Instances in files: .json, .npz, .csv, .parquet and memory-mapped .npy. Nothing is ever unpickled."""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.bandit import arm_matrix
from allocopt.errors import InvalidFile, InvalidInstance, MethodUnavailable
from allocopt.proof import read_json
from allocopt.validation import Array, vector

__all__ = ["Instance", "read_instance", "read_vector"]

_KNOWN = ".json, .npz, .csv, .parquet or .npy"


@dataclass(frozen=True, eq=False)
class Instance:
    """What a file holds: arms, and θ or gaps where it has them."""

    arms: Array
    theta: Array | None = None
    gaps: Array | None = None
    noise_variance: float | None = None


def read_instance(path: str | Path) -> Instance:
    """Read an instance file; `InvalidFile` says which file and, where it can, which row is wrong."""
    source = Path(path)
    readers = {".json": _read_json, ".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet, ".npy": _read_npy}
    reader = readers.get(source.suffix.lower())
    if reader is None:
        raise InvalidFile(f"{source}: expected a {_KNOWN} file, got {source.suffix or 'no extension'!r}")
    if not source.is_file():
        raise InvalidFile(f"{source}: no such file")
    try:
        entries = reader(source)
        arms = arm_matrix(entries.get("arms"))
        theta = None if entries.get("theta") is None else vector("theta", entries["theta"], InvalidInstance)
        gaps = None if entries.get("gaps") is None else vector("gaps", entries["gaps"], InvalidInstance)
        return Instance(arms, theta, gaps, entries.get("noise_variance"))
    except OSError as error:
        raise InvalidFile(f"{source}: cannot be read: {error.strerror or error}") from None
    except InvalidInstance as error:
        raise InvalidFile(f"{source}: {error}") from None


def read_vector(name: str, text: str) -> Array:
    """A vector given as "0.5,1,-2" or as a .json, .npy or one-column/one-row .csv file."""
    if Path(text).suffix.lower() in (".json", ".npy", ".csv"):
        source = Path(text)
        if not source.is_file():
            raise InvalidFile(f"{name}: {source}: no such file")
        entries = {".json": _json_vector, ".npy": _npy_vector, ".csv": _csv_vector}[source.suffix.lower()](source)
        return vector(f"{name} ({source})", entries, InvalidFile)
    try:
        return vector(name, [float(x) for x in text.split(",")], InvalidInstance)
    except ValueError as error:
        if isinstance(error, InvalidInstance):
            raise
        raise InvalidInstance(f"{name}: expected numbers separated by commas or a file of them, got {text!r}") from None


def _json_vector(source: Path) -> Any:
    return read_json(source)


def _npy_vector(source: Path) -> Any:
    return _load_numpy(source)


def _csv_vector(source: Path) -> Any:
    return np.asarray(_read_csv(source)["arms"]).ravel()


def _read_json(source: Path) -> dict[str, Any]:
    content = read_json(source)
    if not isinstance(content, dict) or "arms" not in content:
        raise InvalidFile(f'{source}: expected a JSON object with "arms" and "theta" (or "gaps")')
    unknown = set(content) - {"arms", "theta", "gaps", "noise_variance", "name", "description"}
    if unknown:
        raise InvalidFile(
            f'{source}: unknown entry "{sorted(unknown)[0]}" (known: arms, theta, gaps, noise_variance, name, description)'
        )
    return content


def _load_numpy(source: Path) -> Any:
    try:
        return np.load(source, mmap_mode="r" if source.suffix.lower() == ".npy" else None, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = "it holds Python objects" if "pickle" in str(error) else "it is damaged or not a NumPy file"
        raise InvalidFile(f"{source}: expected a NumPy file of numbers, but {reason}") from None


def _read_npz(source: Path) -> dict[str, Any]:
    content = _load_numpy(source)
    if "arms" not in content:
        raise InvalidFile(f'{source}: expected an array "arms" in the .npz file, found: {", ".join(content) or "none"}')
    try:
        entries = {name: content[name] for name in ("arms", "theta", "gaps") if name in content}
        if "noise_variance" in content:
            entries["noise_variance"] = float(content["noise_variance"])
        return entries
    except (ValueError, TypeError, zipfile.BadZipFile):
        raise InvalidFile(f"{source}: expected arrays of numbers, but one of them cannot be read as that") from None


def _read_npy(source: Path) -> dict[str, Any]:
    return {"arms": _load_numpy(source)}


def _read_csv(source: Path) -> dict[str, Any]:
    rows: list[list[float]] = []
    try:
        with source.open(newline="", encoding="utf-8-sig") as lines:
            for number, cells in enumerate(csv.reader(lines), start=1):
                if not any(cell.strip() for cell in cells):
                    continue
                try:
                    row = [float(cell) for cell in cells]
                except ValueError:
                    if number == 1:
                        continue  # a header
                    raise InvalidFile(
                        f"{source}: row {number}: expected numbers, got {','.join(cells)[:60]!r}"
                    ) from None
                if rows and len(row) != len(rows[0]):
                    raise InvalidFile(f"{source}: row {number}: expected {len(rows[0])} numbers, got {len(row)}")
                rows.append(row)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidFile(f"{source}: expected CSV text, but it is not text") from None
    if not rows:
        raise InvalidFile(f"{source}: expected at least one row of numbers, found none")
    return {"arms": np.array(rows)}


def _read_parquet(source: Path) -> dict[str, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MethodUnavailable(f"{source}: reading Parquet needs pyarrow: pip install 'allocopt[files]'") from None
    try:
        table = parquet.read_table(source)
    except pyarrow.ArrowException:
        raise InvalidFile(f"{source}: expected a Parquet file, but it is damaged or something else") from None
    columns = []
    for name in table.column_names:
        column = table.column(name)
        if column.null_count or not (pyarrow.types.is_floating(column.type) or pyarrow.types.is_integer(column.type)):
            raise InvalidFile(f"{source}: column {name!r}: expected numbers without gaps, got {column.type}")
        columns.append(column.to_numpy())
    if not columns:
        raise InvalidFile(f"{source}: expected one column per coordinate, found none")
    return {"arms": np.column_stack(columns)}
