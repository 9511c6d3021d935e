"""The paper's story as one command: studies, their tables and figures, and ``benchmarks/STORY.md``.

    python benchmarks/story.py [--sample 30] [--work FOLDER]

The specs are in ``benchmarks/story/``, and their tables and figures go there. The studies are computed anew each time, in a
temporary folder; with ``--work`` they are kept in that folder and a second run goes on where the first one was.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from comparing.peers import Answer, compact_sdp, matrix_frac

import allocopt as ao
from allocopt import plots
from allocopt.insight.instances import random_unit
from allocopt.insight.plots.style import BLACK, COLOURS, GREY, MARKERS, drawing, finish, legend_below, new_figure
from allocopt.insight.study.study import StudyProgress, StudyResult, study

HERE = Path(__file__).parent / "story"
WIDTH = 4.6
"""Inches of every figure."""
PEERS: dict[str, Callable[[Any, Any], Answer]] = {
    "cvxpy, one `matrix_frac` per arm, Clarabel": matrix_frac,
    "cvxpy, compact SDP, Clarabel": compact_sdp,
}


def main() -> None:
    """Compute, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sample", type=int, default=30, help="instances for the loop over cvxpy")
    parser.add_argument("--work", type=Path, default=None, help="keep the studies in this folder, and resume them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        example, optimism, random = (computed(name, work) for name in ("example", "optimism", "random"))
        speed = computed("speed", Path(temporary) / "speed")  # always from scratch: it is measured
        loop = {name: cvxpy_loop(peer, speed, options.sample) for name, peer in PEERS.items()}
    draw_example(example)
    draw_price(optimism)
    draw_ratio(random)
    page = "\n\n".join(
        [HEAD, example_table(example), price_table(optimism), ratio_table(random), speed_table(speed, loop)]
    )
    (HERE.parent / "STORY.md").write_text(page + "\n", encoding="utf-8")
    say(f"written: {HERE.parent / 'STORY.md'}")


def say(line: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(line + "\n")


def computed(name: str, work: Path) -> StudyResult:
    """Run one study; its table is copied beside its spec (but not that of the measurement, which has none to show)."""
    said = time.perf_counter()

    def progress(now: StudyProgress) -> None:
        nonlocal said
        if time.perf_counter() - said > 10:
            said = time.perf_counter()
            say(f"{name}: {now.done} of {now.total}, {now.seconds_left or 0:.0f} s left")

    result = study(HERE / f"{name}.toml", work / name, callback=progress)
    say(f"{result} in {result.seconds:.1f} s")
    if result.certified < result.table.num_rows:
        say(f"{name}: not every row is certified: {result.reasons()}")
    if name != "speed":
        shutil.copyfile(result.path, HERE / f"{name}.parquet")
    return result


def columns(result: StudyResult, quantity: str, **where: Any) -> dict[str, Any]:
    """The columns of one quantity, at those instances, as arrays."""
    rows = result.rows(quantity).to_pydict()
    keep = np.ones(len(rows["instance"]), dtype=bool)
    for name, value in where.items():
        keep &= np.array(rows[name]) == value
    return {name: np.array(values)[keep] for name, values in rows.items()}


def draw_example(result: StudyResult) -> None:
    """c against ε, with and without e2, and what UCB pays."""
    c = {informative: columns(result, "c", informative=informative) for informative in (True, False)}
    curves = {
        "c with e₂ (closed form: 8)": (c[True]["epsilon"], c[True]["lower"], c[True]["upper"]),
        "c without e₂ (closed form: 2/ε)": (c[False]["epsilon"], c[False]["lower"], c[False]["upper"]),
    }
    figure = plots.family_curve(curves, parameter="ε", quantity="regret / log n", log="xy", width=WIDTH)
    with drawing():
        ucb = columns(result, "ucb", informative=True)
        figure.axes[0].plot(ucb["epsilon"], ucb["value"], color=BLACK, linestyle=":", label="UCB with e₂: 2 + 2/ε")
        renew_legend(figure)
    plots.save(figure, HERE / "example.png", overwrite=True)


def draw_price(result: StudyResult) -> None:
    """The price of optimism against ε, beside lines of slope −1."""
    widths = result.spec.design.grid["a"]
    curves = {}
    for a in widths:
        price = columns(result, "price", a=a)
        curves[f"a = {a:g}"] = (price["epsilon"], price["lower"], price["upper"])
    figure = plots.family_curve(
        curves, parameter="ε", quantity="price of optimism: optimism / c", log="xy", width=WIDTH
    )
    with drawing():
        axes = figure.axes[0]
        axes.set_ylim(bottom=0.4)
        epsilon = np.geomspace(1e-6, 1e-2, 400)
        for i, a in enumerate(widths):
            line = (2 - 1 / (16 * a)) / (128 * a**2) / epsilon
            axes.plot(
                epsilon[line > 1], line[line > 1], color=BLACK, linewidth=0.9, linestyle=":",
                label="Ω(1/ε)" if i == 0 else None,
            )  # fmt: skip
        axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
        axes.annotate("price 1: the bound does not rule optimism out", (1.1e-6, 0.55), fontsize=7, color="#555555")
        renew_legend(figure)
    plots.save(figure, HERE / "price.png", overwrite=True)


def renew_legend(figure: Any) -> None:
    """The legend again, once lines were added."""
    for legend in list(figure.legends):
        legend.remove()
    legend_below(figure, figure.axes[0])
    finish(figure)


def quantiles(result: StudyResult, dim: int, n_arms: int) -> Any:
    """5, 25, 50, 75 and 95 % of UCB's constant over c."""
    return np.quantile(columns(result, "ratio", dim=dim, n_arms=n_arms)["value"], [0.05, 0.25, 0.5, 0.75, 0.95])


def draw_ratio(result: StudyResult) -> None:
    """The distribution of UCB/c against k for every d: one panel each, so that the bands do not hide each other."""
    dims, arms = result.spec.design.grid["dim"], result.spec.design.grid["n_arms"]
    with drawing():
        figure = new_figure(7.0, 2.6)
        panels = figure.subplots(1, len(dims), sharey=True)
        for i, (axes, d) in enumerate(zip(panels, dims, strict=True)):
            q = np.array([quantiles(result, d, k) for k in arms])
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.fill_between(arms, q[:, 0], q[:, 4], color=COLOURS[i], alpha=0.15, linewidth=0)
            axes.fill_between(arms, q[:, 1], q[:, 3], color=COLOURS[i], alpha=0.35, linewidth=0)
            axes.plot(arms, q[:, 2], color=COLOURS[i], marker=MARKERS[i], markersize=3.2)
            axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
            axes.set_xticks(arms, [str(k) for k in arms])
            axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
            axes.minorticks_off()
            axes.set_title(f"d = {d}")
            axes.set_xlabel("arms k")
            axes.grid(which="major")
        panels[0].set_ylabel("UCB's constant / c")
        repeats = result.spec.design.repeats
        figure.suptitle(
            f"median, 25 % to 75 % and 5 % to 95 % of {repeats} random instances", fontsize=7, color="#555555"
        )
        finish(figure)
    plots.save(figure, HERE / "ratio.png", overwrite=True)


def cvxpy_loop(peer: Callable[[Any, Any], Answer], speed: StudyResult, sample: int) -> dict[str, Any]:
    """What a plain loop takes per instance, on the first instances of the study, and how far from c it ends up."""
    c = columns(speed, "c")
    seconds, errors = [], []
    for i in range(sample):
        bandit = random_unit(5, 20, int(c["seed"][i]))
        answer = peer(bandit.arms, bandit.theta)
        seconds.append(answer.seconds)
        finite = np.isfinite(answer.allocation)
        cost = float(answer.allocation[finite] @ bandit.gaps[finite])
        errors.append(abs(cost / c["value"][i] - 1))
    say(f"{peer.__name__}: {statistics.mean(seconds):.3f} s each")
    return {"sample": sample, "seconds": statistics.mean(seconds), "error": max(errors)}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


HEAD = """# The paper's story, computed

`make story` (`python benchmarks/story.py`) writes this page, the figures and the tables in `benchmarks/story/`. Every number
comes from `allocopt study` with a spec in that folder, and every row of the tables carries certified bounds (to a relative gap
of 1e-8, but where it is said otherwise)."""


def example_table(result: StudyResult) -> str:
    """Every fifth ε of the example."""
    rows = []
    c, without, ratio = (
        columns(result, quantity, informative=informative)
        for quantity, informative in (("c", True), ("c", False), ("ratio", True))
    )
    for i in range(0, len(c["epsilon"]), 5):
        rows.append([f"{c['epsilon'][i]:.3g}", f"{c['lower'][i]:.9f}", f"{c['upper'][i]:.9f}", f"{without['value'][i]:.8g}",
                     f"{ratio['value'][i]:.6g}"])  # fmt: skip
    return (
        "## An arm that nobody would play\n\nA = {e₁, e₂, (1 − ε, 2ε)}, θ = e₁. The arm e₂ has the largest gap, and is the only "
        "one worth exploring with: with it c = 8 for every ε, without it c = 2/ε. UCB, which ignores that arms inform about "
        "each other, pays 2 + 2/ε.\n\n"
        + table(["ε", "c ≥", "c ≤", "c without e₂", "UCB / c"], rows)
        + "\n\n![c against ε](story/example.png)"
    )


def price_table(result: StudyResult) -> str:
    """Every fourth ε of the failure of optimism, for a = 1."""
    rows = []
    c, optimism, price = (columns(result, quantity, a=1.0) for quantity in ("c", "optimism", "price"))
    for i in range(0, len(c["epsilon"]), 4):
        epsilon = c["epsilon"][i]
        rows.append([f"{epsilon:.3g}", f"{c['value'][i]:.8g}", f"{optimism['value'][i]:.8g}", f"{price['value'][i]:.6g}",
                     f"{price['value'][i] * epsilon:.6f}"])  # fmt: skip
    return (
        "## The price of optimism\n\nA = {e₁, e₂, (1 − ε, 8aε)}: *optimism* is the least that any optimistic algorithm of width a "
        "pays (a certified lower bound on its regret / log n), the price is that over c. Shown for a = 1; the last column, "
        "price · ε, tends to (2 − 1/16)/128 = 0.015137: the price is Ω(1/ε).\n\n"
        + table(["ε", "c", "optimism", "price", "price · ε"], rows)
        + "\n\n![price of optimism against ε](story/price.png)"
    )


def ratio_table(result: StudyResult) -> str:
    """Median and 5 to 95 % of UCB/c."""
    dims, arms = result.spec.design.grid["dim"], result.spec.design.grid["n_arms"]
    rows = []
    for d in dims:
        cells = [quantiles(result, d, k) for k in arms]
        rows.append([str(d), *(f"{q[2]:.2f} ({q[0]:.2f} to {q[4]:.2f})" for q in cells)])
    n = result.spec.n_instances
    c = columns(result, "c")
    rough = ~np.isin(c["status"], ["CERTIFIED", "CONDITIONAL"])
    conditional = int((c["status"] == "CONDITIONAL").sum())
    status = "c certified to 1e-8 for all of them"
    if rough.any():
        widest = float(np.max(c["upper"][rough] / c["lower"][rough] - 1))
        status = (
            f"c certified to 1e-8 for all but {rough.sum()}, where rounding stands in the way; their bounds are at most "
            f"{widest:.0e} apart"
        )
    if conditional:
        status += f"; {conditional} of them under assumptions that the table names"
    return (
        f"## Random instances\n\n{n:,} instances ({status}): unit arms and θ, uniform on the sphere. UCB's constant over c: median "
        "(5 % to 95 %). With k ≤ d the arms are independent and the structure is worth nothing; with many arms in few "
        "dimensions it is worth most.\n\n"
        + table(["d", *(f"k = {k}" for k in arms)], rows)
        + "\n\n![UCB's constant over c](story/ratio.png)"
    )


def speed_table(speed: StudyResult, loop: dict[str, dict[str, Any]]) -> str:
    """The measured study beside a loop over cvxpy."""
    n = speed.spec.n_instances
    certified = f"{speed.certified:,} of {speed.table.num_rows:,} rows certified"
    rows = [[f"`allocopt study`, {os.cpu_count()} cores, {certified}", f"{speed.seconds / n * 1e3:.2f} ms",
             f"{speed.seconds:.1f} s", "1", "1e-08 (certified)"]]  # fmt: skip
    for name, one in loop.items():
        total = one["seconds"] * n
        rows.append([f"{name}, loop on one core, measured on {one['sample']}", f"{one['seconds'] * 1e3:.1f} ms",
                     f"{total:.0f} s (extrapolated)", f"{total / speed.seconds:.0f}",
                     f"{one['error']:.0e} (not certified)"])  # fmt: skip
    return (
        f"## How long it takes\n\n{n:,} random instances with 20 arms in 5 dimensions, from the spec to the table on disk "
        f"(allocopt {ao.__version__}, processes included).\n\n"
        + table(["", "per instance", "10⁴ instances", "times as long", "worst relative error of c"], rows)
    )


if __name__ == "__main__":
    main()
