"""The hardness report as one HTML page that needs nothing but itself.

Whatever names the user's arms have, they are text here: every cell is escaped, and the page allows neither scripts nor
anything from outside itself.
"""

from __future__ import annotations

import base64
import importlib.util
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allocopt.base.errors import AllocoptError
from allocopt.base.spelling import spelled
from allocopt.base.version import __version__
from allocopt.insight import plots
from allocopt.insight.hardness.report import WIDTHS, Section, printable, sections

if TYPE_CHECKING:  # hardness.py itself writes the page
    from allocopt.insight.hardness.hardness import Addition, Hardness

__all__ = ["page"]


@spelled
def page(
    h: Hardness, widths: Iterable[float] = WIDTHS, additions: Sequence[Addition] = (), *, title: str = "Hardness report",
    most: int = 200, prove: bool = True, pictures: bool = True,
) -> str:  # fmt: skip
    """The report as one HTML page that needs nothing but itself.

    Examples
    --------
    >>> from allocopt.insight.hardness.hardness import hardness
    >>> from allocopt.insight.instances import counter_example
    >>> page(hardness(counter_example(0.01)), pictures=False)[:15]
    '<!DOCTYPE html>'
    """
    parts = list(sections(h, widths, additions, most=most, prove=prove))
    body = [_section(parts[0]), _pictures(h) if pictures else "", *(_section(part) for part in parts[1:])]
    heading = escape(printable(title))
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">', f"<title>{heading}</title>",
        f"<style>{_STYLE}</style>", "</head>", "<body>", "<main>", f"<h1>{heading}</h1>", *body,
        f"<footer>allocopt {escape(__version__)}: c(A,θ) = min Σ α_x Δ_x subject to ||x||² &lt;= Δ_x²/(2σ²) in the norm of "
        "H(α)^-1, for all suboptimal arms x.</footer>", "</main>", "</body>", "</html>", "",
    ])  # fmt: skip


_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p, li { max-width: 50rem; margin: .3rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }
th, td { padding: .2rem .7rem; text-align: right; vertical-align: top; border-bottom: 1px solid #8885; white-space: nowrap; }
th { font-weight: 600; border-bottom: 2px solid #888; }
td.words, th.words { text-align: left; min-width: 8rem; white-space: normal; overflow-wrap: anywhere; }
td.name { opacity: .7; text-align: left; }
.warning { border-left: 4px solid #d08000; padding-left: .8rem; }
.pictures { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; margin: 1.5rem 0; }
figure { flex: 0 1 24rem; margin: 0; }
img { max-width: 100%; background: #fff; }
figcaption, footer, .more { opacity: .7; font-size: .85rem; }
footer { margin-top: 2rem; }
@media print {
  main { max-width: none; padding: 0; }
  tr, figure { break-inside: avoid; }
  h2 { break-after: avoid; }
  .wide { overflow: visible; }
}
"""


def _section(section: Section) -> str:
    lines = [f"<h2>{escape(section.title)}</h2>"]
    if section.title == "Warnings":
        items = "".join(f"<li>{_text(text)}</li>" for text in section.text)
        return f'<section class="warning">{lines[0]}<ul>{items}</ul></section>'
    lines += [f"<p>{_text(text)}</p>" for text in section.text]
    if section.columns:
        pairs = not any(section.columns)
        kinds = [' class="words"' if i in section.left else "" for i in range(len(section.columns))]
        if pairs:
            kinds[0] = ' class="name"'
        head = "".join(f"<th{kind}>{_text(name)}</th>" for name, kind in zip(section.columns, kinds, strict=True))
        lines += ['<div class="wide"><table>', "" if pairs else f"<thead><tr>{head}</tr></thead>", "<tbody>"]
        for row in section.rows:
            cells = "".join(f"<td{kind}>{_text(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
            lines.append(f"<tr>{cells}</tr>")
        lines.append("</tbody></table></div>")
    if section.omitted:
        lines.append(f'<p class="more">and {section.omitted} more (allocopt hardness --json has all)</p>')
    return "<section>" + "\n".join(lines) + "</section>"


def _text(text: str) -> str:
    """Text that stays text, whatever characters and writing directions it has."""
    return f"<bdi>{escape(text)}</bdi>"


def _pictures(h: Hardness) -> str:
    """The instance and its allocation as embedded pictures, or a line that says why there is none."""
    if importlib.util.find_spec("matplotlib") is None:
        return '<p class="more">No pictures: they need matplotlib (pip install matplotlib).</p>'
    made = []
    try:
        if h.bandit.dim in (2, 3):
            made.append(("The arms, θ and the most confusing alternatives",
                         plots.geometry(h.bandit, h.solution, h.alternatives)))  # fmt: skip
        made.append(("The allocation, and the constraints that it is for", plots.allocation(h.solution)))
    except AllocoptError as error:
        return f'<p class="more">No pictures: {_text(str(error))}</p>'
    return f'<div class="pictures">{"".join(_figure(caption, drawn) for caption, drawn in made)}</div>'


def _figure(caption: str, drawn: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        encoded = base64.b64encode(plots.save(drawn, Path(folder) / "picture.png").read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{encoded}">'
        f"<figcaption>{_text(caption)}</figcaption></figure>"
    )
