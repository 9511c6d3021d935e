"""ARENA.md: the figures as tables, and sentences that say what they show, losses included."""

from __future__ import annotations

import math
import platform

import numpy as np

from arena.entries import CLAIM_OPTIMALITY, Entry
from arena.figures import Figures, clopper_pearson
from arena.playing import LEAST_RUNS, Arena, Cell

__all__ = ["page", "power"]


def power(n: int) -> str:
    """10⁴, say."""
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(round(math.log10(n))))


def page(arena: Arena, figures: Figures, pictures: list[str]) -> str:
    """All of ARENA.md."""
    return "\n".join(
        [
            _heading(arena, figures),
            *(f"![performance profiles](arena/{name})" for name in pictures),
            "",
            _overview(figures),
            _sentences(figures),
            _groups(figures),
            _tails(figures),
            _slopes(figures),
            _consistency(figures),
            _speed(figures),
            _instances(arena.entries, figures),
            *(_table_of_means(figures, n) for n in figures.horizons()),
            _left_out(arena),
        ]
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values)))) if values else math.nan


def _number(x: float) -> str:
    if not math.isfinite(x):
        return "–"
    return f"{x:.2f}" if abs(x) < 10 else f"{x:.1f}" if abs(x) < 100 else f"{x:.0f}"


def _heading(arena: Arena, figures: Figures) -> str:
    held = sum(e.held_out for e in arena.entries)
    runs = sum(r.runs for r in figures.rows.values())
    rounds = sum(r.runs * r.n for r in figures.rows.values())
    return f"""# The arena

Made by `make arena` (`python benchmarks/arena.py`; {platform.machine()}, {arena.workers} workers, a budget of
{arena.budget / 60:.0f} minutes). {len(arena.entries)} instances in named groups, {held} of them held out (no policy of this package
was tuned on them), {len(arena.names)} policies, {runs} runs, {rounds:.2g} rounds. Gaussian noise of variance 1. Run i of every policy
on an instance meets the same noise, but for those played block by block (from 10⁶ rounds on, policies that do not look at every
reward), which are other samples of the same law. Every cell is in arena/results.csv: mean, standard error, median, 99 % quantile,
worst run, time. docs/policies.md says how to read this page.

A *performance profile* shows on which share of the instances a policy's mean regret is at most τ times that of the best policy
there: higher is better, the value at τ = 1 is how often it is the best, and where its line stays below 1 it has failed on some, or
had no time to play there.
"""


def _overview(figures: Figures) -> str:
    parts = ["## All instances, and the held-out half\n"]
    for n in figures.horizons():
        rows = []
        for policy in figures.names:
            best = figures.to_the_best(n, policy)
            if not best:
                continue
            worst = max(best, key=lambda i: best[i])
            fresh = list(figures.to_the_best(n, policy, True).values())
            against = [list(figures.ratios(n, policy, "LinTS", half).values()) for half in (False, True)]
            rows.append(
                [
                    policy, str(len(best)), str(sum(x <= 1.0 for x in best.values())), _number(_geometric(list(best.values()))),
                    _number(_geometric(fresh)), *(_number(float(np.median(x)) if x else math.nan) for x in against),
                    f"{_number(best[worst])} ({worst})",
                ]
            )  # fmt: skip
        head = ["policy", "instances", "best on", "to the best", "… held out", "to LinTS, seen", "… held out", "worst"]
        parts += [f"### n = {power(n)}\n", _table(head, rows)]
    parts.append(
        "*To the best*: geometric mean of mean regret over the least mean regret on the same instance; *to LinTS*: median of "
        "the ratio. A policy that did not play the slow instances at a large n is compared on the others only.\n"
    )
    return "\n".join(parts)


def _sentences(figures: Figures) -> str:
    lines = ["## Who wins where\n"]
    for n in figures.horizons():
        for ours in ("OptimalTracking", "AllocationTracking"):
            better, worse = figures.significant(n, ours, "LinTS")
            if not any(c.policy == ours and c.horizon == n for c in figures.rows):
                continue
            listed = f" It loses on: {', '.join(worse)}." if worse else " It loses on none."
            lines.append(
                f"- n = {power(n)}: {ours} has less regret than LinTS on {len(better)} instances and more on {len(worse)} "
                f"(paired runs, signed ranks at 1 %, and the mean).{listed}"
            )
    for n in figures.horizons():
        count = {p: sum(x <= 1.0 for x in figures.to_the_best(n, p).values()) for p in figures.names}
        first = sorted(count, key=lambda p: -count[p])[:3]
        told = ", ".join(f"{p} on {count[p]}" for p in first if count[p])
        lines.append(f"- n = {power(n)}: the least mean regret is that of {told}.")
    return "\n".join([*lines, ""])


def _groups(figures: Figures) -> str:
    parts = [
        "## By group\n",
        "Geometric mean of regret over the best on the instance; the best policy of each group in bold.\n",
    ]
    groups = list(dict.fromkeys(e.group for e in figures.entries.values()))
    for n in figures.horizons():
        table = {}
        for policy in figures.names:
            best = figures.to_the_best(n, policy)
            for group in groups:
                wanted = [i for i, e in figures.entries.items() if e.group == group]
                if best and all(i in best for i in wanted if _somebody_pays(figures, i, n)):
                    table[policy, group] = _geometric([best[i] for i in wanted if i in best])
        least = {g: min((x for (_, h), x in table.items() if h == g), default=math.nan) for g in groups}
        rows = [
            [p, *(_bold(table.get((p, g), math.nan), least[g]) for g in groups)]
            for p in figures.names
            if any((p, g) in table for g in groups)
        ]
        parts += [f"### n = {power(n)}\n", _table(["policy", *groups], rows)]
    return "\n".join(parts)


def _somebody_pays(figures: Figures, instance: str, n: int) -> bool:
    return any(r.mean > 0 for c, r in figures.rows.items() if c.instance == instance and c.horizon == n)


def _bold(x: float, least: float) -> str:
    return f"**{_number(x)}**" if x == least else _number(x)


def _tails(figures: Figures) -> str:
    n = max((m for m in figures.horizons() if m <= 10**5), default=0)
    rows = []
    for policy in figures.names:
        cells = [r for c, r in figures.rows.items() if c.policy == policy and c.horizon == n and r.mean > 0]
        if cells:
            spread = [r.quantile_99 / r.median for r in cells if r.median > 0]
            worst = max(cells, key=lambda r: r.worst / max(r.median, 1e-300))
            rows.append(
                [
                    policy, _number(_geometric([r.mean / r.median for r in cells if r.median > 0])), _number(_geometric(spread)),
                    f"{_number(worst.worst)} on {worst.instance}, where its median is {_number(worst.median)}",
                ]
            )  # fmt: skip
    head = ["policy", "mean/median", "99 % quantile/median", "worst run, measured by the median"]
    return f"## Tails, n = {power(n)}\n\n" + _table(head, rows) if n else ""


def _slopes(figures: Figures) -> str:
    rows = []
    for policy in figures.names:
        n, slopes = figures.slopes(policy)
        if slopes:
            low, middle, high = np.quantile(slopes, (0.25, 0.5, 0.75))
            rows.append([policy, power(n), str(len(slopes)), _number(middle), f"{_number(low)} to {_number(high)}"])
    head = ["policy", "n", "instances", "median of slope/c", "middle half"]
    text = "The slope is (R(n) − R(n/10))/log 10 for the largest n that the policy played; it tends to c for an optimal policy.\n"
    return "\n".join(["## Slope against c\n", text, _table(head, rows)])


def _consistency(figures: Figures) -> str:
    ns = sorted({c.horizon for c in figures.rows})
    rows = []
    for policy in (p for p in CLAIM_OPTIMALITY if p in figures.names):
        row = [policy]
        for n in ns:
            found, total, many = figures.linear_runs(policy, n)
            if not total:
                row.append("–")
                continue
            low, high = clopper_pearson(found, total)
            row.append(
                f"{found} of {total} ({many}): {_number(n * found / total)} [{_number(n * low)}, {_number(n * high)}]"
            )
        rows.append(row)
    text = (
        "P(R > .1·n·Δ_min)·n, which must not grow with n for a policy that is optimal: runs found, of how many (on how many "
        "instances), then the estimate times n with the 95 % interval of Clopper and Pearson times n. "
        "Pooled over the instances where c·log n is below half of that threshold. "
        "Where no run is found the upper end says only how many runs there were.\n"
    )
    return "\n".join(["## Runs of linear regret\n", text, _table(["policy", *(power(n) for n in ns)], rows)])


def _speed(figures: Figures) -> str:
    rows = []
    for policy in figures.names:
        few, many, crowd = (
            figures.microseconds(policy, n, arms)
            for n, arms in ((10**5, range(2, 6)), (10**5, range(12, 51)), (10**4, range(90, 300)))
        )
        rows.append([policy, *(f"{x:.3g}" if math.isfinite(x) else "–" for x in (few, many, crowd))])
    head = ["policy", "2 to 5 arms, n = 10⁵", "12 to 50 arms, n = 10⁵", "90 arms or more, n = 10⁴"]
    text = "Microseconds a round, noise and solves included, median over the instances, while all workers were busy.\n"
    return "\n".join(["## Time\n", text, _table(head, rows)])


def _instances(entries: tuple[Entry, ...], figures: Figures) -> str:
    rows = [
        [e.name, e.group, "held out" if e.held_out else "seen", str(e.bandit.n_arms), str(e.bandit.rank), f"{figures.c[e.name]:.4g}",
         f"{figures.gap[e.name]:.3g}"]
        for e in entries
    ]  # fmt: skip
    return "## Instances\n\n" + _table(["instance", "group", "half", "arms", "rank", "c", "Δ_min"], rows)


def _table_of_means(figures: Figures, n: int) -> str:
    names = [p for p in figures.names if any(c.policy == p and c.horizon == n for c in figures.rows)]
    rows = []
    for i in figures.entries:
        cells = [figures.rows.get(Cell(p, i, n)) for p in names]
        least = min((r.mean for r in cells if r is not None), default=math.nan)
        shown = ["–" if r is None else f"{_bold(r.mean, least)} ± {_number(r.standard_error)}" for r in cells]
        if any(r is not None for r in cells):
            rows.append([i, _number(figures.c[i] * math.log(n)), *shown])
    return f"## Mean regret at n = {power(n)}\n\n" + _table(["instance", "c·log n", *names], rows)


def _left_out(arena: Arena) -> str:
    text = ""
    if arena.failed:
        rows = [[c.policy, c.instance, power(c.horizon), reason] for c, reason in arena.failed.items()]
        text = "## Failures\n\nA run of these cells ended with an error.\n\n" + _table(
            ["policy", "instance", "n", "error"], rows
        )
    if not arena.left_out:
        return text
    count: dict[str, int] = {}
    for cell in arena.left_out:
        key = f"{cell.policy} at {power(cell.horizon)}"
        count[key] = count.get(key, 0) + 1
    listed = ", ".join(f"{key}: {many}" for key, many in count.items())
    return (
        text
        + f"## Left out\n\nCells for which the budget had not {LEAST_RUNS} runs, by number of instances. {listed}.\n"
    )
