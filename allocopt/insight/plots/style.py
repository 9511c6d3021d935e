"""How the plots look: sizes for a paper's column, colour-blind safe colours, and text that mathtext cannot misread.

Nothing here touches pyplot or the user's settings: figures are made with the object-oriented interface and the Agg canvas, and
matplotlib's parameters are changed only while a figure is being drawn.
"""

from __future__ import annotations

import functools
import io
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allocopt.base.errors import InvalidOption, MethodUnavailable
from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array, positive_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

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
_LEAST_SPAN: Final = 1.5
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


def above_noise(values: ArrayLike, tol: float = 0.0) -> Array:
    """The positive, finite values that a solver which stops at this tolerance did not leave where there is a zero."""
    given = np.asarray(values, dtype=np.float64)
    positive = given[np.isfinite(given) & (given > 0)]
    result: Array = positive[positive > max(SUPPORT, 100.0 * tol) * positive.max(initial=0.0)]
    return result


def set_ticks(axes: Axes) -> None:
    """The sizes of ticks, which matplotlib would otherwise take from the user's parameters later, and few numbers on a log scale."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            _few_numbers(axis)
        length = axis.get_tick_params().get("length", _STYLE["xtick.major.size"])
        axis.set_tick_params(which="major", labelsize=_STYLE["xtick.labelsize"], length=length, width=0.6)
    if not hasattr(axes, "get_zlim"):
        axes.tick_params(axis="both", which="minor", length=1.5, width=0.4)


def _few_numbers(axis: Any) -> None:
    """On a logarithmic axis powers of ten where two of them are seen, else a few numbers between; matplotlib's collide."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if not 0 < _LEAST_SPAN * low < high:
        return
    if math.floor(math.log10(high)) > math.ceil(math.log10(low)):
        axis.set_minor_formatter(NullFormatter())
        return
    digits = (1, 2, 5) if high > 4 * low else (1, 2, 3, 4, 6, 8)
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: number(value) if int(f"{value:.0e}"[0]) in digits else ""))


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
