"""How the plots look: sizes for a paper's column, colour-blind safe colours, and text that mathtext cannot misread.

Nothing here touches pyplot or the user's settings: figures are made with the object-oriented interface and the Agg canvas, and
matplotlib's parameters are changed only while a figure is being drawn.
"""

from __future__ import annotations

import functools
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption, MethodUnavailable
from allocopt.base.validation import Array, positive_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN: Final = 3.4
"""Inches: one column of a two-column paper."""
PAGE: Final = 7.0
"""Inches: both columns."""
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart with every kind of colour vision; the order keeps neighbours far apart in grey too."""
BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, BLACK = COLOURS
GREY: Final = "#8C8C8C"
PALE: Final = "#E8F1F8"
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
DASHES: Final = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 2)), (0, (3, 1, 1, 1)))
LONGEST: Final = 22
"""Characters of a label; longer ones keep their two ends."""
UNITS: Final = {
    "regret": "pulls / log n",
    "optimism": "pulls / log n",
    "remaining": "pulls / log n",
    "horizon": "pulls",
    "contextual": "pulls / log n",
    "duelling": "duels / log n",
    "semi_bandit": "pulls / log n",
    "side_observations": "pulls / log n",
    "best_arm": "pulls / log(1/δ)",
    "top_m": "pulls / log(1/δ)",
    "threshold": "pulls / log(1/δ)",
    "transductive": "pulls / log(1/δ)",
    "g_optimal": "weight",
    "general": "α",
}
"""What an allocation counts, per kind of program."""
WIDE: Final = 30.0
"""Values are shown on a logarithmic scale when the largest is so many times the smallest."""
NOTE: Final[dict[str, Any]] = {"fontsize": 7, "color": "#555555", "loc": "left"}
"""The line above a plot that says what its bands are."""
_FLATTENS: Final = 10.0
_NARROWEST, _WIDEST = 2.0, 20.0
_STYLE: Final[dict[str, Any]] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so that figures look alike everywhere
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "grid.linewidth": 0.4,
    "grid.color": "#D9D9D9",
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.2,
    "legend.borderaxespad": 0.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "pdf.fonttype": 42,  # text stays text in PDFs
    "svg.hashsalt": "allocopt",  # the same figure gives the same file
    "savefig.facecolor": "white",
}


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib with our parameters instead of the user's, which are restored afterwards."""
    try:
        from matplotlib import style
    except ImportError:
        raise MethodUnavailable("plots need matplotlib: pip install matplotlib") from None
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # `text` has replaced what it could not show
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure of that many inches that belongs to the caller alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = _figure_class()(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03))
    FigureCanvasAgg(figure)
    return figure


@functools.lru_cache(maxsize=1)
def _figure_class() -> type[Figure]:
    """matplotlib's Figure, which a notebook shows as a picture although pyplot knows nothing of it."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A Figure that a notebook shows without any magic."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi=150)
            return picture.getvalue()

        def __reduce__(self) -> tuple[Any, ...]:
            """Pickled without naming its class, which is made when it is first needed."""
            return _blank_figure, (), self.__getstate__()

    return NotebookFigure


def _blank_figure() -> Figure:
    """A figure to put a pickled one's state into."""
    return _figure_class()()


def checked_width(width: float | str) -> float:
    """Inches between what is still readable and what is still a figure; "column" and "page" are such numbers too."""
    if isinstance(width, str):
        if width not in ("column", "page"):
            raise InvalidOption(f"width: expected 'column', 'page' or inches, got {width!r}")
        return COLUMN if width == "column" else PAGE
    inches = positive_number("width", width)
    if not _NARROWEST <= inches <= _WIDEST:
        raise InvalidOption(f"width: expected {_NARROWEST:g} to {_WIDEST:g} inches, got {inches:g}")
    return inches


def finish(figure: Figure) -> Figure:
    """Fix what matplotlib would otherwise decide later, with the user's parameters: tick sizes, fonts, layout."""
    for axes in figure.axes:
        set_ticks(axes)
    figure.draw_without_rendering()
    return figure


def flattened(ends: Sequence[float]) -> bool:
    """Whether one curve would flatten the others on a linear scale: they end more than a factor of ten apart."""
    return len(ends) > 1 and min(ends) > 0 and max(ends) > _FLATTENS * min(ends)


def set_ticks(axes: Axes) -> None:
    """The sizes of ticks, which matplotlib would otherwise take from the user's parameters later."""
    for axis in (axes.xaxis, axes.yaxis):
        length = axis.get_tick_params().get("length", _STYLE["xtick.major.size"])
        axis.set_tick_params(which="major", labelsize=_STYLE["xtick.labelsize"], length=length, width=0.6)
    if not hasattr(axes, "get_zlim"):
        axes.tick_params(axis="both", which="minor", length=1.5, width=0.4)


def legend_below(figure: Figure, axes: Axes) -> None:
    """A legend below the axes, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    fitting_legend(figure, figure, handles, labels, 3)


def fitting_legend(figure: Any, place: Any, handles: Sequence[Any], labels: Sequence[Any], most: int) -> None:
    """A legend at the lower edge of a figure or part of one, in as many columns as fit into its width."""
    available = place.bbox.width
    for columns in range(min(most, len(labels)), 0, -1):
        legend = place.legend(handles, labels, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent(figure.canvas.get_renderer()).width <= 0.98 * available:
            return
        legend.remove()


def text(label: str, longest: int = LONGEST) -> str:
    """A user's words as matplotlib text: one line, shortened, nothing in it taken for mathematics or a private label."""
    line = " ".join(str(label).split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    line = "".join(c if _drawable(c) else "□" for c in line)
    if len(line) > longest:
        head = (longest - 1) * 2 // 3
        line = line[:head] + "…" + line[len(line) - (longest - 1 - head) :]
    if line.startswith("_"):
        line = " " + line  # matplotlib drops legend entries that begin with an underscore
    return line.replace("$", r"\$")


def arm_names(labels: Sequence[str] | None, arms: Sequence[int], longest: int = LONGEST) -> list[str]:
    """What to call these arms: their labels, with the number where a label is missing, not drawable, or not unique."""
    if labels is None:
        return [f"arm {i}" for i in arms]
    shown = [text(labels[i], longest) for i in arms]
    count = Counter(shown)
    unclear = [not s.strip() or "□" in s or count[s] > 1 for s in shown]
    return [
        f"{i}: {text(labels[i], longest - len(str(i)) - 2).strip()}" if bad else s
        for i, s, bad in zip(arms, shown, unclear, strict=True)
    ]


@functools.lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    font = FT2Font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())


def _drawable(character: str) -> bool:
    return ord(character) in _glyphs()


def place_labels(
    axes: Axes, points: Array, names: Sequence[str], distance: Sequence[float], avoid: Array, radii: Array | None = None
) -> None:
    """Write names beside points, each where it covers the fewest other things.

    ``distance`` is how far from its point each name stands, ``avoid`` are points not to be covered, of these ``radii``; lengths
    in typographic points.

    Call it last: it measures in the final limits of the axes.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    to_points = 72.0 / figure.dpi
    obstacles = axes.transData.transform(avoid) * to_points
    if radii is not None:
        turn = np.linspace(0, 2 * np.pi, 25)[:-1]
        rims = np.column_stack([np.cos(turn), np.sin(turn)])
        obstacles = np.vstack(
            [obstacles, *(o + 0.7 * r * rims for o, r in zip(obstacles, radii, strict=True) if r > 4)]
        )
    frame = axes.get_window_extent()
    left, bottom, right, top = (v * to_points for v in (frame.x0, frame.y0, frame.x1, frame.y1))
    boxes: list[tuple[float, float, float, float]] = []
    here = axes.transData.transform(points) * to_points
    for row, ((x, y), place, name, gap) in enumerate(zip(here, points, names, distance, strict=True)):
        wide, high = 4.4 * len(name), 8.0  # about the size of 7 point text
        best: tuple[float, float, float, str, str] | None = None
        chosen = (0.0, 0.0, 0.0, 0.0)
        for order, (dx, dy) in enumerate(_AROUND):
            cx, cy = x + dx * gap, y + dy * gap
            x0 = cx - (0.0 if dx > 0 else wide if dx < 0 else wide / 2)
            y0 = cy - (0.0 if dy > 0 else high if dy < 0 else high / 2)
            box = (x0, y0, x0 + wide, y0 + high)
            outside = max(0, left - x0) + max(0, x0 + wide - right) + max(0, bottom - y0) + max(0, y0 + high - top)
            inside = (obstacles > (x0 - 2, y0 - 2)) & (obstacles < (x0 + wide + 2, y0 + high + 2))
            hidden = int(inside.all(axis=1).sum())
            crossed = sum(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes)
            reach = np.maximum(np.abs(here - (x0 + wide / 2, y0 + high / 2)) - (wide / 2, high / 2), 0.0)
            apart = np.hypot(reach[:, 0], reach[:, 1])
            nearer_to_another = int((apart < apart[row] - 1e-6).sum())  # points that it would seem to name
            penalty = 20.0 * outside + 100.0 * (crossed + nearer_to_another) + 10.0 * min(hidden, 4) + 0.1 * order
            if best is None or penalty < best[0]:
                anchor = "left" if dx > 0 else "right" if dx < 0 else "center"
                level = "bottom" if dy > 0 else "top" if dy < 0 else "center"
                best, chosen = (penalty, dx * gap, dy * gap, anchor, level), box
        assert best is not None
        boxes.append(chosen)
        axes.annotate(
            name, (float(place[0]), float(place[1])), xytext=(best[1], best[2]), textcoords="offset points", fontsize=7,
            ha=best[3], va=best[4], zorder=8,
        )  # fmt: skip


_NEAR: Final = ((0.8, 0.8), (0.8, -0.8), (-0.8, 0.8), (-0.8, -0.8), (0.0, 1.1), (0.0, -1.1), (1.1, 0.0), (-1.1, 0.0))
_AROUND: Final = (*_NEAR, *((1.8 * dx, 1.8 * dy) for dx, dy in _NEAR))
"""Directions in which a name may stand from its point, best first."""


def number(value: float) -> str:
    """A number in three digits, as a human writes it: 0.05, 8, 1200, 3·10⁻⁷."""
    value = float(value)  # NumPy knows no whole numbers beyond 64 bits
    if not np.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "?"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        shown = f"{value:.3g}"
        return (f"{value:.0f}" if "e" in shown else shown).replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    digits = mantissa.rstrip("0").rstrip(".").replace("-", "−")
    return f"10{power}" if digits == "1" else f"{digits}·10{power}"
