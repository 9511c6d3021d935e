"""Results as tables: shown in a notebook, taken as a data frame, printed in a paper.

A result says once what its table is (`Tabular._table`); the notebook's HTML, the data frame and the LaTeX are made of that. Names of
arms are the user's words, and stay text in all of them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from allocopt.base.errors import MethodUnavailable
from allocopt.base.spelling import spell_methods, spelled
from allocopt.base.validation import whole_number

__all__ = ["Table", "Tabular", "drawn"]

_MOST_ROWS = 10  # that a notebook shows
_FRAMES = ("pandas", "polars")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "∞": r"$\infty$", "σ²": r"$\sigma^2$",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """A title, some facts, and columns of equal length (whole numbers, doubles, booleans or strings)."""

    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]] = field(default_factory=dict)
    order: Sequence[int] | None = None
    """Which rows a notebook shows first; by default the first ones."""

    @property
    def length(self) -> int:
        """How many rows there are."""
        return max((len(column) for column in self.columns.values()), default=0)

    def frame(self) -> Any:
        """The columns as a data frame of pandas, or of polars where only that is installed."""
        for name in _FRAMES:
            try:
                package = importlib.import_module(name)
            except ImportError:
                continue
            return package.DataFrame({key: np.asarray(column) for key, column in self.columns.items()})
        raise MethodUnavailable("to_frame: a data frame needs pandas or polars: pip install pandas")

    def html(self, most: int = _MOST_ROWS) -> str:
        """A fragment for a notebook: the facts in a line each, and the first rows."""
        lines = [f"<p><strong>{escape(self.title)}</strong></p>"]
        if self.facts:
            cells = (
                f'<tr><td style="text-align:left">{escape(str(name))}</td><td style="text-align:left">'
                f"<bdi>{escape(_shown(value))}</bdi></td></tr>"
                for name, value in self.facts.items()
            )
            lines.append(f"<table><tbody>{''.join(cells)}</tbody></table>")
        if self.length:
            head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
            lines.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
            for i in self._first(most):
                row = "".join(f"<td><bdi>{escape(_shown(column[i]))}</bdi></td>" for column in self.columns.values())
                lines.append(f"<tr>{row}</tr>")
            lines.append("</tbody></table>")
            if self.length > most:
                lines.append(f"<p>{self.length - most:,} more rows: <code>.to_frame()</code> has all</p>")
        return "\n".join(lines)

    def latex(self, most: int | None = None) -> str:
        """A ``tabular`` with the rules of booktabs."""
        names = list(self.columns) or ["", ""]
        rows: list[list[Any]] = [[name, value] for name, value in self.facts.items()]
        if self.columns:
            rows = [[column[i] for column in self.columns.values()] for i in self._first(most or self.length)]
        words = [any(isinstance(row[c], str) for row in rows) for c in range(len(names))]
        lines = [r"\begin{tabular}{" + "".join("l" if word else "r" for word in words) + "}", r"\toprule"]
        if self.columns:
            lines += [" & ".join(_tex(name) for name in names) + r" \\", r"\midrule"]
        lines += [" & ".join(_tex(_shown(cell)) for cell in row) + r" \\" for row in rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def _first(self, most: int) -> list[int]:
        order = range(self.length) if self.order is None else self.order
        return [int(i) for i in order[:most]]


class Tabular:
    """A result with a table: what a notebook shows, a data frame and LaTeX come from it."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        spell_methods(cls)

    def _table(self) -> Table:
        """What the result says, as a table."""
        raise NotImplementedError

    @spelled
    def to_frame(self) -> Any:
        """The table as a data frame: of pandas, or of polars where only that is installed."""
        return self._table().frame()

    @spelled
    def to_latex(self, most: int | None = None) -> str:
        """The table for a paper, with the rules of the package booktabs; ``most``: so many rows only."""
        return self._table().latex(None if most is None else whole_number("most", most))

    def _repr_html_(self) -> str:
        return self._table().html()


def drawn(name: str, *arguments: Any, **options: Any) -> Any:
    """A figure of ``allocopt.plots``, found by name when somebody asks a result for its picture.

    Rooms do not import those above them; a result that draws itself reaches up here, and nowhere else.
    """
    return getattr(importlib.import_module("allocopt").plots, name)(*arguments, **options)


def _shown(value: Any) -> str:
    """A value as people write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return "–"
        return f"{number:.6g}" if math.isfinite(number) else "∞" if number > 0 else "−∞"
    return str(value)


def _tex(text: str) -> str:
    """Text that stays text in LaTeX."""
    if "σ²" in text:
        return _LATEX["σ²"].join(_tex(part) for part in text.split("σ²"))
    return "".join(_LATEX.get(c, c) for c in text)
