"""Names of rows in CSV text: a first column of words, or the index that a data frame wrote there."""

from __future__ import annotations

import csv
import io
import re

from allocopt.insight.instances.numbers import number_or_none

__all__ = ["named_rows", "without_names"]

_LINE_ENDS = re.compile(r"\r\n|\r|\n")  # a name may hold what else splits lines


def named_rows(piece: str) -> bool:
    """Whether the first column holds names, as the first rows of a file tell: its head is empty, or a word stands before numbers.

    pandas writes its index under an empty head, and names are what it means even where these are numbers.
    """
    first, second = _first_rows(piece)
    if len(first) > 1 and not first[0].strip():
        return True
    before, *after = second if _is_header(first) else first
    if not (before.strip() and after) or number_or_none(before) is not None or None in map(number_or_none, after):
        return False
    if first[1:] == [str(i) for i in range(len(after))]:
        raise ValueError(
            f"row 1: expected a header or an arm, but {','.join(first)[:60]!r} may be either; put a row of words above it"
        )
    return True


def without_names(piece: str, begins: bool) -> tuple[str, list[str]]:
    """The piece without its first column, and the names in it; where it ``begins`` the file its header is left empty."""
    if '"' in piece:
        rows = list(csv.reader(io.StringIO(piece, newline="")))
        split = [(cells[0], ",".join(cells[1:])) if cells else ("", "") for cells in rows]
    else:
        split = [(name, rest) for name, _, rest in (line.partition(",") for line in _LINE_ENDS.split(piece))]
    filled = [at for at, (name, rest) in enumerate(split) if name.strip() or rest.strip(" \t,")]
    if begins and filled:
        name, rest = split[filled[0]]
        if not name.strip() or (number_or_none(name) is None and _is_header(rest.split(","))):
            if _is_header(rest.split(",")):
                split[filled[0]] = ("", rest)
            else:
                split[filled[0]] = ("", "")
            filled = filled[1:]
    return "".join(rest + "\n" for _, rest in split), [split[at][0].strip() for at in filled]


def _first_rows(piece: str) -> tuple[list[str], list[str]]:
    """The first two rows that are not empty."""
    try:
        rows = csv.reader(io.StringIO(piece, newline=""))
        filled = (cells for cells in rows if any(cell.strip() for cell in cells))
        return next(filled, [""]), next(filled, [""])
    except csv.Error:
        return [""], [""]  # whoever reads the rows says what is wrong with them


def _is_header(cells: list[str]) -> bool:
    return all(number_or_none(cell) is None for cell in cells)
