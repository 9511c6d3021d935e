"""Time against k and against d, with fitted exponents, and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scaling.common import GROWTH_ARMS, GROWTH_DIMS, GROWTH_FIXED, HERE, TOL, Clock, power, say, table, unit_arms

import allocopt as ao
from allocopt.model.arms.opening import LARGE


def section_growth(quick: bool, folder: Path) -> str:
    """Time against k and against d, with fitted exponents, and the picture."""
    fixed_dim, fixed_arms = GROWTH_FIXED
    counts = GROWTH_ARMS[:5] if quick else GROWTH_ARMS
    dims = GROWTH_DIMS[:4] if quick else GROWTH_DIMS
    arms_clocks = [growth_point(fixed_dim, k) for k in counts]
    dim_clocks = [growth_point(d, fixed_arms) for d in dims]
    by_arms, by_dim = ([clock.processor for clock in clocks] for clocks in (arms_clocks, dim_clocks))
    fits = [exponent(sizes, seconds) for sizes, seconds in ((counts, by_arms), (dims, by_dim))]
    ends = [exponent(sizes[-3:], seconds[-3:]) for sizes, seconds in ((counts, by_arms), (dims, by_dim))]
    draw(folder / "growth.png" if quick else HERE / "growth.png", counts, by_arms, dims, by_dim)
    lines = [
        [power(k), f"{c.processor:.3g}", f"{c.wall:.3g}", "", "", ""] for k, c in zip(counts, arms_clocks, strict=True)
    ]
    for line, d, c in zip(lines, dims, dim_clocks, strict=False):
        line[3:] = [str(d), f"{c.processor:.3g}", f"{c.wall:.3g}"]
    seconds = ["processor seconds", "wall clock"]
    head = [f"k (d = {fixed_dim})", *seconds, f"d (k = {power(fixed_arms)})", *seconds]
    return f"""## Growth

Seconds to a certified {TOL:g}, the fastest of 4 (one run where that takes over 5 s); fitted and drawn are processor seconds of
all threads together, which hardly depend on what else the machine does. Fitted: time ~ k^{fits[0]:.2f} and
time ~ d^{fits[1]:.2f} over all sizes, k^{ends[0]:.2f} and d^{ends[1]:.2f} over the three largest. From {LARGE:,} entries on
(k = {LARGE // fixed_dim:,} here) arms are looked at block by block; below, they are an array like any other.

{table(head, lines)}

![time against k and against d](growth.png)
"""


def growth_point(dim: int, arms: int) -> Clock:
    """Seconds of a certified solve."""
    rows, theta = unit_arms(dim, arms)
    clock = Clock()
    for _ in range(4):
        with clock.best():
            solution = ao.regret_constant(rows, theta, tol=TOL)
        assert solution.gap <= TOL, (dim, arms, solution)
        if clock.processor > 5.0:
            break
    say(f"({dim}, {arms:,}): {clock.wall:.3g} s, {clock.processor:.3g} s of processors")
    return clock


def exponent(sizes: Any, seconds: list[float]) -> float:
    """The slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def draw(path: Path, counts: Any, by_arms: list[float], dims: Any, by_dim: list[float]) -> None:
    """The log–log picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    fixed_dim, fixed_arms = GROWTH_FIXED
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axes, sizes, seconds, name, label, title, colour in (
        (left, counts, by_arms, "k", "number of arms k", f"d = {fixed_dim}", "#0072B2"),
        (right, dims, by_dim, "d", "dimension d", f"k = {fixed_arms:,}", "#D55E00"),
    ):
        axes.loglog(sizes, seconds, "o", color=colour, label="measured", zorder=3)
        for part, style, which in ((slice(None), "--", "all"), (slice(-3, None), "-", "three largest")):
            x, y = np.log(sizes[part]), np.log(seconds[part])
            line = np.exp(np.polyval(np.polyfit(x, y, 1), x))
            fit = f"$\\sim {name}^{{{exponent(sizes[part], seconds[part]):.2f}}}$ ({which})"
            axes.loglog(sizes[part], line, style, color="#555555", linewidth=1.2, label=fit)
        axes.set(xlabel=label, ylabel=f"processor seconds to a certified {TOL:g}", title=title)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(True, which="major", alpha=0.3)
    left.axvline(LARGE / fixed_dim, color="#009E73", linestyle=":", label="block by block from here")
    right.xaxis.set_major_formatter(plain)
    right.xaxis.set_minor_locator(NullLocator())
    right.set_xticks(dims)
    for axes in (left, right):
        axes.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=150)
