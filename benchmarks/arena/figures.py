"""What is computed from the played cells: one row each, ratios, slopes, runs of linear regret with their intervals."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, wilcoxon

import allocopt as ao
from arena.entries import Entry
from arena.playing import HORIZONS, Cell, Played

__all__ = ["Figures", "Row", "clopper_pearson"]


class Row(NamedTuple):
    """One cell."""

    group: str
    held_out: bool
    instance: str
    policy: str
    n: int
    runs: int
    mean: float
    standard_error: float
    median: float
    quantile_99: float
    worst: float
    linear_runs: int
    """Runs with regret above .1·n·Δ_min."""
    c_log_n: float
    microseconds: float
    """Of a round."""
    blockwise: bool


class Figures:
    """Tables of one arena."""

    def __init__(self, played: dict[Cell, Played], entries: tuple[Entry, ...], names: tuple[str, ...]) -> None:
        self.entries = {e.name: e for e in entries}
        self.names = names
        self.c = {e.name: float(ao.solve(ao.programs.regret(e.bandit)).value) for e in entries}
        self.gap = {e.name: float(e.bandit.gaps[e.bandit.gaps > 0].min()) for e in entries}
        self.regret = {cell: found.regret for cell, found in played.items()}
        self.rows = {cell: self._row(found) for cell, found in sorted(played.items())}

    def _row(self, found: Played) -> Row:
        cell, regret = found.cell, found.regret
        entry = self.entries[cell.instance]
        n, runs = cell.horizon, len(regret)
        return Row(
            entry.group, entry.held_out, cell.instance, cell.policy, n, runs, float(regret.mean()),
            float(regret.std(ddof=1) / math.sqrt(runs)), float(np.median(regret)), float(np.quantile(regret, 0.99)),
            float(regret.max()), int((regret > 0.1 * n * self.gap[cell.instance]).sum()), self.c[cell.instance] * math.log(n),
            1e6 * found.seconds / n, cell.blockwise,
        )  # fmt: skip

    def csv(self) -> str:
        """All rows."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in self.rows.values():
            writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
        return out.getvalue()

    def horizons(self) -> list[int]:
        """The horizons at which everybody played."""
        return [n for n in HORIZONS if n <= 10**7 and any(c.horizon == n for c in self.rows)]

    def means(self, n: int, held_out: bool | None = None) -> dict[str, dict[str, float]]:
        """Policy → instance → mean regret, at n."""
        found: dict[str, dict[str, float]] = {name: {} for name in self.names}
        for cell, row in self.rows.items():
            if cell.horizon == n and held_out in (None, row.held_out):
                found[cell.policy][cell.instance] = row.mean
        return found

    def scores(self, n: int, held_out: bool | None = None) -> dict[str, list[float]]:
        """For performance profiles: mean regret of each policy on every instance, nan where it did not play."""
        means = self.means(n, held_out)
        listed = [name for name, e in self.entries.items() if held_out in (None, e.held_out)]
        return {p: [means[p].get(i, math.nan) for i in listed] for p in self.names if means[p]}

    def ratios(self, n: int, policy: str, other: str, held_out: bool | None = None) -> dict[str, float]:
        """Instance → mean regret of the one over that of the other; instances where both are positive."""
        means = self.means(n, held_out)
        one, two = means[policy], means.get(other, {})  # it may not be among the policies that were asked for
        return {i: one[i] / two[i] for i in one if two.get(i, 0.0) > 0.0 and one[i] > 0.0}

    def to_the_best(self, n: int, policy: str, held_out: bool | None = None) -> dict[str, float]:
        """Instance → mean regret over the least of all policies that played there."""
        means = self.means(n, held_out)
        best: dict[str, float] = {}
        for of_policy in means.values():
            for i, x in of_policy.items():
                best[i] = min(best.get(i, math.inf), x)
        return {i: x / best[i] for i, x in means[policy].items() if best[i] > 0.0}

    def significant(self, n: int, policy: str, other: str, level: float = 0.01) -> tuple[list[str], list[str]]:
        """Instances on which the first has less, and on which it has more regret: by mean and by signed ranks of paired runs."""
        better, worse = [], []
        for i in self.entries:
            a, b = (self.regret.get(Cell(p, i, n)) for p in (policy, other))
            if a is None or b is None:
                continue
            runs = min(len(a), len(b))
            difference = a[:runs] - b[:runs]
            if runs < 6 or not difference.any() or wilcoxon(difference, method="approx").pvalue > level:
                continue
            error = difference.std(ddof=1) / math.sqrt(runs)
            if abs(difference.mean()) > 2.0 * error and difference.mean() * np.median(difference) > 0:
                (better if difference.mean() < 0 else worse).append(i)
        return better, worse

    def slopes(self, policy: str) -> tuple[int, list[float]]:
        """(R(n) − R(n/10))/(c log 10) on every instance that was played at the largest n of this policy, and this n."""
        largest = max((c.horizon for c in self.rows if c.policy == policy and c.horizon <= 10**7), default=0)
        found = []
        for i, c in self.c.items():
            one, two = (self.rows.get(Cell(policy, i, n)) for n in (largest // 10, largest))
            if one is not None and two is not None and c > 0.0:
                found.append((two.mean - one.mean) / (c * math.log(10)))
        return largest, found

    def linear_runs(self, policy: str, n: int) -> tuple[int, int, int]:
        """Runs above .1·n·Δ_min, all runs, and instances, where c·log n is below half of that."""
        found = total = many = 0
        for cell, row in self.rows.items():
            if cell.policy == policy and cell.horizon == n and row.c_log_n < 0.05 * n * self.gap[cell.instance]:
                found, total, many = found + row.linear_runs, total + row.runs, many + 1
        return found, total, many

    def microseconds(self, policy: str, n: int, arms: Iterable[int]) -> float:
        """Median over the instances with so many arms."""
        times = [
            r.microseconds
            for c, r in self.rows.items()
            if c.policy == policy and c.horizon == n and self.entries[c.instance].bandit.n_arms in arms
        ]
        return float(np.nanmedian(times)) if np.isfinite(times).any() else math.nan


def clopper_pearson(found: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval for a probability."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if found == 0 else float(beta.ppf(tail, found, total - found + 1))
    high = 1.0 if found == total else float(beta.ppf(1.0 - tail, found + 1, total - found))
    return low, high
