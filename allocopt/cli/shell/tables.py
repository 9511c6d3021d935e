"""Tables that break no word and cut off no number, however narrow the terminal is."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from rich.markup import escape
from rich.table import Table

from allocopt.cli.shell.plain_text import new_console

__all__ = ["fitted_table"]

_LONGEST_WORD = 14  # letters of a user's word that are kept together


def fitted_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[int] = (),
    *,
    title: str | None = None,
    caption: str | None = None,
) -> Table:
    """A table for the terminal at hand: columns of numbers as wide as they are, columns of words (``left``) in what remains.

    The frame goes where it leaves no room for whole words. What is too wide even then, on very narrow terminals, becomes a list: every
    row in lines of its own, "name value".
    """
    room = new_console().width
    least = [_least(names[i], [row[i] for row in rows], i in left) for i in range(len(names))]
    if sum(least) + 2 * (len(least) - 1) > room and rows:
        return _list(names, rows, title, caption)
    framed = sum(least) + 3 * len(least) + 1 <= room
    spare = room - sum(least) - (3 * len(least) + 1 if framed else 2 * (len(least) - 1))
    table = Table(title=title, caption=caption, caption_justify="left")
    if not framed:
        table = Table(
            box=None, pad_edge=False, title=title, caption=caption, caption_justify="left", padding=(0, 2, 0, 0)
        )
    for i, name in enumerate(names):
        if i in left:
            natural = max(len(name), *(len(row[i]) for row in rows)) if rows else len(name)
            width = min(natural, least[i] + spare)
            spare -= width - least[i]
            table.add_column(name, width=width, overflow="fold")
        else:
            table.add_column(textwrap.fill(name, least[i]), justify="right", no_wrap=True, overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def _least(name: str, cells: Sequence[str], words: bool) -> int:
    """The width at which a column breaks no word and no number."""
    heading = max((len(word) for word in name.split()), default=1)
    if not words:
        return max([heading, *map(len, cells)])
    longest = max((len(word) for cell in cells for word in cell.split()), default=1)
    return max(heading, min(longest, _LONGEST_WORD))


def _list(names: Sequence[str], rows: Sequence[Sequence[str]], title: str | None, caption: str | None) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, title=title, caption=caption, caption_justify="left")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for at, row in enumerate(rows):
        if at:
            table.add_row("", "")
        for name, cell in zip(names, row, strict=True):
            if cell:
                table.add_row(escape(name), escape(cell))
    return table
