"""Instances in files: .json, .npz, .csv, .parquet and memory-mapped .npy. Nothing is ever unpickled."""

from __future__ import annotations

import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.atomic_files import file_path
from allocopt.base.errors import InvalidFile, InvalidInstance
from allocopt.base.json_data import read_json
from allocopt.base.validation import Array, did_you_mean, matrix, vector, whole_number
from allocopt.insight.instances.numbers import exact_number, number_or_none
from allocopt.insight.instances.tables import ReadProgress, read_csv_table, read_parquet_table
from allocopt.model.arms import open_store
from allocopt.model.arms.names import checked_labels
from allocopt.model.bandit import arm_matrix, checked_noise

__all__ = ["Instance", "read_instance", "read_vector"]

_KNOWN = ".json, .npz, .csv, .csv.gz, .parquet or .npy"
_MOST_TEXT = 10**8  # bytes of a vector as text


@dataclass(frozen=True, eq=False)
class Instance:
    """What a file holds: arms, and θ or gaps where it has them."""

    arms: Array
    theta: Array | None = None
    gaps: Array | None = None
    noise_variance: float | Array | None = None
    """σ², one number or one per arm."""
    labels: tuple[str, ...] | None = None
    items: Array | None = None
    """What is to be found among, for transductive programs."""
    contexts: tuple[int, ...] | None = None
    """How many arms each context has, one context after the other."""
    weights: Array | None = None
    """How often each context comes."""


def read_instance(path: str | Path, progress: ReadProgress | None = None) -> Instance:
    """Read an instance file; `InvalidFile` says which file and, where it can, which row is wrong.

    Tables (.csv, .csv.gz, .parquet) are read piece by piece, and ``progress`` is told the share that is read. A first column of
    words, or the index that pandas wrote, names the arms.
    """
    source = file_path(path)
    readers: dict[str, Callable[[Path], Any]] = {
        ".json": _read_json,
        ".npz": _read_npz,
        ".csv": lambda file: _table(*read_csv_table(file, progress)),
        ".csv.gz": lambda file: _table(*read_csv_table(file, progress)),
        ".parquet": lambda file: _table(*read_parquet_table(file, progress)),
        ".npy": _read_npy,
    }
    ending = "".join(source.suffixes[-2:]).lower()
    reader = readers.get(ending if ending == ".csv.gz" else source.suffix.lower())
    if reader is None:
        got = "a folder" if source.is_dir() else repr(source.suffix or "no extension")
        raise InvalidFile(f"{source}: expected a {_KNOWN} file, got {got}")
    entries = _read(source, reader)
    try:
        raw = entries.get("arms")
        arms = raw if open_store(raw) is not None else arm_matrix(raw)  # large sets stay where they are
        theta = _optional(entries, "theta", arms.shape[1])
        gaps = _optional(entries, "gaps", len(arms))
        if theta is not None and gaps is not None:
            raise InvalidInstance("expected theta or gaps, got both")
        noise = entries.get("noise_variance")
        if noise is not None:
            noise = checked_noise(noise, len(arms), InvalidInstance)
        labels = checked_labels(entries.get("labels"), len(arms))
        items = None if entries.get("items") is None else matrix("items", entries["items"], InvalidInstance)
        sizes = _sizes(entries.get("contexts"), len(arms))
        if sizes is None and entries.get("weights") is not None:
            raise InvalidInstance("weights: expected contexts beside them, which they are the weights of")
        weights = _optional(entries, "weights", len(sizes or ()))
        return Instance(arms, theta, gaps, noise, labels, items, sizes, weights)
    except InvalidInstance as error:
        raise InvalidFile(f"{source}: {error}") from None


def _table(arms: Any, names: list[str] | None) -> dict[str, Any]:
    """A table's arms, and their names where these say more than 0, 1, 2, …"""
    counted = names is not None and names == [str(i) for i in range(len(names))]
    return {"arms": arms} if names is None or counted else {"arms": arms, "labels": names}


def _sizes(contexts: Any, n_arms: int) -> tuple[int, ...] | None:
    """The numbers of arms of contexts, which must add up to all."""
    if contexts is None:
        return None
    sizes = tuple(whole_number("contexts", n, InvalidInstance, least=1) for n in np.asarray(contexts).tolist())
    if sum(sizes) != n_arms:
        raise InvalidInstance(f"contexts: expected numbers of arms that add up to {n_arms}, got {sum(sizes)}")
    return sizes


def _stacked(contexts: Any) -> dict[str, Any]:
    """The arms of contexts one after the other, and how many each has."""
    if not isinstance(contexts, list) or not contexts:
        raise InvalidInstance("contexts: expected a list of lists of arms, with at least one context")
    for m, rows in enumerate(contexts):
        if not isinstance(rows, list) or not rows:
            raise InvalidInstance(f"contexts: expected a list of arms in every context, but context {m} has none")
    return {"arms": [row for rows in contexts for row in rows], "contexts": [len(rows) for rows in contexts]}


def _optional(entries: dict[str, Any], name: str, length: int) -> Array | None:
    value = entries.get(name)
    return None if value is None else vector(name, value, InvalidInstance, length=length)


def _read(source: Path, reader: Callable[[Path], Any]) -> Any:
    """Run a reader; whatever the operating system says becomes one line with the file's name."""
    try:
        if source.is_dir():
            raise InvalidFile(f"{source}: expected a file, but it is a directory")
        if not source.exists():
            raise InvalidFile(f"{source}: no such file")
        return reader(source)
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise InvalidFile(f"{source}: cannot be read: {reason}") from None


def read_vector(name: str, text: str) -> Array:
    """A vector given as "0.5,1,-2", or as a .json or .npy file, or as a text file of numbers with any name."""
    source = file_path(text, name)
    readers = {".json": read_json, ".npy": _load_npy, ".csv": _text_vector, ".txt": _text_vector}
    reader = readers.get(source.suffix.lower(), _text_vector if _is_there(source) else None)
    if reader is not None:
        try:
            return vector(f"{name} ({source})", _read(source, reader), InvalidFile)
        except InvalidFile as error:
            message = str(error)
            raise InvalidFile(message if message.startswith(name) else f"{name}: {message}") from None
    try:
        entries = [exact_number(x) for x in text.split(",")]
    except ValueError:
        raise InvalidInstance(f"{name}: expected numbers separated by commas or a file of them, got {text!r}") from None
    return vector(name, entries, InvalidInstance)


def _is_there(source: Path) -> bool:
    try:
        return source.is_file()
    except OSError:  # numbers may be longer than a name can be
        return False


def _text_vector(source: Path) -> list[float | int]:
    """Numbers of a text file, separated by commas, semicolons, spaces or lines; a first line of words and # comments are left out."""
    if source.stat().st_size > _MOST_TEXT:
        raise InvalidFile(f"{source}: expected a text file of numbers, but it is {source.stat().st_size:,} bytes long")
    try:
        lines = source.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InvalidFile(f"{source}: expected a text file of numbers, but it is not text") from None
    rows = [(at, re.split(r"[,;\s]+", line.partition("#")[0].strip(" \t,;"))) for at, line in enumerate(lines, 1)]
    rows = [(at, cells) for at, cells in rows if cells != [""]]
    if rows and all(number_or_none(cell) is None for cell in rows[0][1]):
        rows = rows[1:]  # a header
    if len(rows) > 1 and any(len(cells) > 1 for _, cells in rows):
        raise InvalidFile(
            f"{source}: expected one row or one column of numbers, got {len(rows)} rows of {len(rows[0][1])}"
        )
    entries: list[float | int] = []
    for at, cells in rows:
        for cell in cells:
            number = number_or_none(cell)
            if number is None:
                raise InvalidFile(f"{source}: line {at}: expected numbers, got {cell[:60]!r}")
            entries.append(number)
    if not entries:
        raise InvalidFile(f"{source}: expected numbers, found none")
    return entries


def _read_json(source: Path) -> dict[str, Any]:
    content = read_json(source)
    unknown = [name for name in sorted(content) if name not in _ENTRIES] if isinstance(content, dict) else []
    near = next(((name, hint) for name in unknown if (hint := did_you_mean(name, _ENTRIES))), None)
    if not isinstance(content, dict) or ("arms" not in content and "contexts" not in content):
        but = f', got the entry "{near[0]}"{near[1]}' if near else ""
        raise InvalidFile(f'{source}: expected a JSON object with "arms" (or "contexts") and "theta" (or "gaps"){but}')
    if unknown:
        name, hint = near or (unknown[0], f" (known: {', '.join(_ENTRIES)})")
        raise InvalidFile(f'{source}: unknown entry "{name}"{hint}')
    if "arms" in content and "contexts" in content:
        raise InvalidFile(f"{source}: expected arms or contexts, got both")
    try:
        return {**content, **_stacked(content["contexts"])} if "contexts" in content else content
    except InvalidInstance as error:
        raise InvalidFile(f"{source}: {error}") from None


def read_side_observations(path: Path) -> tuple[Any, Any, Any]:
    """Means, variances and labels from a JSON file, checked by `allocopt.programs.side_observations`.

    Variances are rows of k numbers (null or "inf": not seen), or, beside "shown", one for each arm that is shown.
    """
    source = Path(path)
    content = _read(source, read_json)
    if not isinstance(content, dict) or not {"means", "variances"} <= set(content):
        raise InvalidFile(f'{source}: expected a JSON object with "means" and "variances" for side observations')
    known = ("means", "variances", "shown", "labels", "name", "description")
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise InvalidFile(f'{source}: unknown entry "{unknown[0]}" (known: {", ".join(known)})')
    variances = content["variances"]
    if "shown" in content:
        return content["means"], _shown_only(source, content), content.get("labels")
    if isinstance(variances, list) and all(isinstance(row, list) for row in variances):
        variances = [[math.inf if x is None or x == "inf" else x for x in row] for row in variances]
    return content["means"], variances, content.get("labels")


def _shown_only(source: Path, content: dict[str, Any]) -> Any:
    """Variances of what arms show, as a sparse matrix."""
    from scipy.sparse import coo_matrix  # takes a while to load

    means, shown, variances = (content[name] for name in ("means", "shown", "variances"))
    lists = all(isinstance(x, list) for x in (means, shown, variances)) and len(means) == len(shown) == len(variances)
    for i in range(len(means) if lists else 0):
        own, values = shown[i], variances[i]
        fits = isinstance(own, list) and isinstance(values, list) and len(own) == len(values)
        fits = fits and all(type(j) is int and 0 <= j < len(means) for j in own) and len(set(own)) == len(own)
        if not fits or not all(type(x) in (int, float) for x in values):
            raise InvalidFile(
                f'{source}: expected distinct arms from 0 to {len(means) - 1} in entry {i} of "shown", '
                'and a number for each in "variances"'
            )
    if not lists:
        raise InvalidFile(f'{source}: expected "means", and as many lists in "shown" and in "variances"')
    rows = np.array([i for i, own in enumerate(shown) for _ in own], dtype=np.int64)
    columns = np.array([j for own in shown for j in own], dtype=np.int64)
    values = np.array([x for own in variances for x in own], dtype=np.float64)
    return coo_matrix((values, (rows, columns)), shape=(len(means), len(means)))


_ENTRIES = ("arms", "theta", "gaps", "noise_variance", "labels", "name", "description", "items", "contexts", "weights")


_DAMAGED = (ValueError, TypeError, EOFError, KeyError, OverflowError, NotImplementedError, SyntaxError, zipfile.BadZipFile,
            zlib.error, tokenize.TokenError)  # fmt: skip
"""What NumPy and zipfile raise on files that are not what their name says."""


def _not_numpy(source: Path, error: Exception) -> InvalidFile:
    objects = "Python objects" in str(error) or "Object arrays" in str(error)
    reason = "it holds Python objects" if objects else "it is damaged or something else"
    return InvalidFile(f"{source}: expected a NumPy file of numbers, but {reason}")


def _load_npy(source: Path) -> Any:
    with source.open("rb") as opened:
        if opened.read(6) != b"\x93NUMPY":
            raise InvalidFile(f"{source}: expected a NumPy file of numbers, but it is damaged or something else")
    try:
        return np.load(source, mmap_mode="r", allow_pickle=False)
    except _DAMAGED as error:
        raise _not_numpy(source, error) from None


def _read_npz(source: Path) -> dict[str, Any]:
    known = ("arms", "theta", "gaps", "noise_variance", "items", "contexts", "weights")
    entries: dict[str, Any] = {}
    try:
        with source.open("rb") as opened, zipfile.ZipFile(opened) as archive:
            for member in archive.namelist():
                name = member.removesuffix(".npy")
                if name not in known:
                    raise InvalidFile(f'{source}: unknown entry "{name}" (known: {", ".join(known)})')
                with archive.open(member) as content:
                    entries[name] = np.lib.format.read_array(content, allow_pickle=False)
    except _DAMAGED as error:
        if isinstance(error, InvalidFile):
            raise
        raise _not_numpy(source, error) from None
    if "arms" not in entries:
        raise InvalidFile(f'{source}: expected an array "arms" in the .npz file, found: {", ".join(entries) or "none"}')
    if "noise_variance" in entries:
        noise = entries["noise_variance"]
        if noise.ndim > 1 or noise.dtype.kind not in "fiu":
            raise InvalidFile(
                f"{source}: noise_variance: expected a number or one per arm, got an array of {noise.dtype} and shape {noise.shape}"
            )
        entries["noise_variance"] = noise if noise.ndim else float(noise)
    return entries


def _read_npy(source: Path) -> dict[str, Any]:
    return {"arms": _load_npy(source)}
