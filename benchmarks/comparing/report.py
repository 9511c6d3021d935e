"""The report as RESULTS.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import platform
from pathlib import Path
from typing import Any

from comparing.rows import CAP, FLOOR_LARGE_TOL, REFERENCE_TOL, REPEAT_BELOW, REPEATS, Report


def small(value: float | None) -> str:
    """A gap or violation, in two digits; what is below zero by rounding stays visible."""
    return "–" if value is None else f"{value:.1e}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(header), "|" + "|".join("-" * (w + 2) for w in widths) + "|", *map(line, rows)])


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text(encoding="utf-8").splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "cvxpy", "clarabel", "allocopt")}
    return {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "cores": str(os.cpu_count()),
        "CPU": model,
        "BLAS threads": os.environ["OPENBLAS_NUM_THREADS"],
        "python": platform.python_version(),
        **versions,
    }


def markdown(report: Report) -> str:
    """The report as RESULTS.md."""
    verdict = {True: "met", False: "NOT met", None: "not measured"}
    compared = _table(
        ["d", "k", "method", "seconds", "x active-set", "true gap", "raw violation", "its own word"],
        [
            [str(r.dim), str(r.arms), r.name, _seconds(r.seconds), _seconds(r.ratio), small(r.true_gap),
             small(r.violation), r.status]
            for r in report.rows
        ],
    )  # fmt: skip
    priced = _table(
        ["d", "k", "seconds", "passes", "evaluations in all", "one pass, s", "seconds in passes", "certified gap", "c"],
        [
            [str(r.dim), str(r.arms), _seconds(r.seconds), str(r.passes), str(r.evaluations), _seconds(r.one_pass),
             f"{r.seconds / r.one_pass:.3g}", f"{r.gap:.1e} {r.status}", f"{r.value:.10g}"]
            for r in report.large
        ],
    )  # fmt: skip
    paper = _table(
        ["ε", "method", "value", "value − 8", "certified gap", "status", "seconds"],
        [
            [f"{r.epsilon:g}", r.name, f"{r.value:.10g}", f"{r.value - 8:+.1e}", f"{r.gap:.1e}", r.status,
             _seconds(r.seconds)]
            for r in report.example
        ],
    )  # fmt: skip
    floors = "\n".join(f"- {f.promise}: **{verdict[f.met]}**. {f.measured}." for f in report.floors)
    facts = " · ".join(f"{name} {value}" for name, value in report.machine.items())
    return f"""# Benchmark results

Written by `{report.command}` in {report.seconds:.0f} s. {facts}.

Times depend on what else the machine does; ratios within one table were measured in the same run.

## Floors

{floors}

## Against what a careful user would write

`programs.regret(random_unit(d, k, seed=0))`. Seconds are wall-clock from arrays to allocation, imports excluded: the median
of {REPEATS}, or one run for a peer that takes more than {REPEAT_BELOW:g} s; each peer has {CAP:g} s.
*True gap*: the allocation is scaled until it is feasible and its cost compared with
the lower bound certified by active-set at tol {REFERENCE_TOL:g}, whoever found it.
*Raw violation*: max_j g_j/ρ_j − 1 of the allocation as returned. Only allocopt's own rows come with a gap; its tol is
1e-8 unless named.

{compared}

## Many arms

Active-set at tol {FLOOR_LARGE_TOL:g}. One pass is one `certify.certificate.evaluate` over all arms at the solution, measured in the
same run; *passes* is `solution.stats["passes"]`, *evaluations in all* counts every such call of one
solve (0 where arms are looked at block by block).

{priced}

## The paper's example

{{e1, e2, (1−ε, 2ε)}}, θ = e1: c = 8 for every ε below 1/4. (1−ε, 2ε) is rounded to doubles first, which moves the value of
the instance by about 1e-16/ε relatively: what is left of *value − 8* at small ε is that, not an error of the methods.

{paper}
"""


def plain(value: Any) -> Any:
    """The same data without infinities and nans, which JSON does not have: they become strings."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
