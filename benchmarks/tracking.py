"""OptimalTracking and AllocationTracking beside LinTS, where they were weak, and on instances they were not tuned on: TRACKING.md.

python benchmarks/tracking.py                 # everything: about 6 minutes on two cores
python benchmarks/tracking.py --scale 0.1     # a look at it
python benchmarks/tracking.py --failures 10000  # AllocationTracking at 10⁶, ten thousand runs an instance: half an hour
python benchmarks/tracking.py --misplaced 300   # where AllocationTracking pays on random (5,20), to 10¹⁰: five minutes
python benchmarks/tracking.py --section Speed --section Tails  # these sections anew, the others as they are
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import beta, binom

import allocopt as ao
from allocopt import instances
from allocopt.model.bandit import LinearBandit
from allocopt.play.simulation.result import SimulationResult
from allocopt.play.simulation.simulate import simulate

HERE = Path(__file__).parent
SEED = 2026
OT, AT, TS = "OptimalTracking", "AllocationTracking", "LinTS"
AT_ONCE = "OptimalTracking:patience=0"
PRUDENT = "OptimalTracking:prudence=1.5"


def soare(theta: list[float], omega: float = 0.01, dim: int = 2) -> LinearBandit:
    """Soare's arms with another θ."""
    return ao.LinearBandit(instances.soare(dim, omega).arms, np.array(theta + [0.0] * (dim - len(theta))))


def copies(n_copies: int) -> LinearBandit:
    """The counter-example of ε = .05 with so many copies of the near-optimal arm."""
    base = instances.counter_example(0.05)
    return ao.LinearBandit(np.vstack([base.arms[:2], np.repeat(base.arms[2:], n_copies, axis=0)]), base.theta)


FIVE = {
    "ε = .2": instances.counter_example(0.2),
    "ε = .05": instances.counter_example(0.05),
    "ε = .01": instances.counter_example(0.01),
    "five dimensions, ε = .05": instances.counter_example(0.05, dim=5),
    "random (5,20)": instances.random_unit(5, 20),
}
FINITE = instances.finite_armed([0, 0.1, 0.2, 0.5])
MANY = {
    "circle, k = 30": instances.circle(30),
    "circle, k = 200": instances.circle(200),
    "circle, k = 1000": instances.circle(1000),
    "sphere (3,200)": instances.random_unit(3, 200),
    "sphere (6,200)": instances.random_unit(6, 200),
}
NEAR_TIES = {
    "Soare d = 2, ω = .01": instances.soare(2, 0.01),
    "Soare d = 4, ω = .01": instances.soare(4, 0.01),
    "its arms, θ = (2, ½) (the mirrored instance)": soare([2, 0.5]),
    "d = 2, ω = .03": instances.soare(2, 0.03),
    "its arms, θ = (2, .2)": soare([2, 0.2]),
    "its arms, θ = (2, 1)": soare([2, 1.0]),
    "its arms, θ = (2, −.3)": soare([2, -0.3]),
}
HELD_OUT = {
    "random (4,12), seed 11": instances.random_unit(4, 12, 11),
    "random (8,40), seed 12": instances.random_unit(8, 40, 12),
    "random (3,100), seed 13": instances.random_unit(3, 100, 13),
    "clusters (4,30), seed 14": instances.clustered(4, 30, seed=14),
    "finite-armed (0, .05, .3, .3, .4)": instances.finite_armed([0, 0.05, 0.3, 0.3, 0.4]),
    "optimism_example(.01)": instances.optimism_example(0.01),
    "hypercube(4)": instances.hypercube(4, 0.3),
}


class Bench:
    """Plays with the runs scaled, and says what it does."""

    def __init__(self, scale: float, workers: int) -> None:
        self.scale, self.workers = scale, workers
        self.console = Console(stderr=True, soft_wrap=True)
        self.started = time.perf_counter()

    def play(self, policy: str, bandit: LinearBandit, times: list[int], runs: int, blocks: bool) -> SimulationResult:
        """Of LinTS round by round; of the others block by block, where asked."""
        count = max(4, math.ceil(runs * self.scale))
        blockwise = blocks and policy != TS
        r = simulate(policy, bandit, times[-1], count, rng=SEED, times=times, workers=self.workers, blockwise=blockwise)
        self.console.print(f"{time.perf_counter() - self.started:4.0f} s  {r!r}", markup=False)
        return r

    def table(
        self, rows: dict[str, LinearBandit], policies: list[str], times: list[int], runs: int, blocks: bool
    ) -> str:
        """Mean regret ± standard error, and in brackets the ratio to the last policy's."""
        lines = [
            "| instance | policy | " + " | ".join(_power(t) for t in times) + " |",
            "|---|---|" + "---|" * len(times),
        ]
        for title, bandit in rows.items():
            results = {p: self.play(p, bandit, times, runs, blocks) for p in policies}
            reference = results[policies[-1]]
            for i, (policy, r) in enumerate(results.items()):
                cells = [_cell(r, reference if r is not reference else None, j) for j in range(len(times))]
                lines.append(f"| {title if i == 0 else ''} | {policy} | " + " | ".join(cells) + " |")
        return "\n".join([*lines, ""])


def _cell(r: SimulationResult, reference: SimulationResult | None, j: int) -> str:
    ratio = f" ({r.mean[j] / reference.mean[j]:.2f})" if reference is not None else ""
    return f"{r.mean[j]:.1f} ± {r.standard_error[j]:.1f}{ratio}"


def _power(n: int) -> str:
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(round(math.log10(n))))


def misplaced(bandit: LinearBandit, pulls: np.ndarray) -> tuple[float, float]:
    """Half the distance between the shares of regret on each arm and those of α: of the mean pulls, and its mean over runs."""
    solution = ao.solve(ao.programs.regret(bandit))
    optimal = bandit.gaps * np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    paid = pulls * bandit.gaps
    one = np.abs(paid.mean(axis=0) / paid.mean(axis=0).sum() - optimal / optimal.sum()).sum() / 2
    each = np.abs(paid / paid.sum(axis=1, keepdims=True) - optimal / optimal.sum()).sum(axis=1).mean() / 2
    return float(one), float(each)


def misplaced_over_time(bench: Bench, runs: int) -> str:
    """AllocationTracking on random (5,20): misplaced at every power of ten, in all rounds so far and in those since the last."""
    bandit = FIVE["random (5,20)"]
    times = [10**i for i in range(3, 11)]
    r = bench.play(AT, bandit, times, runs, True)
    lines = ["| n | regret | misplaced, mean pulls | of what was added since n/10 |", "|---|---|---|---|"]
    rng = np.random.default_rng(SEED)
    before = None
    for j, n in enumerate(times):
        pulls = r.pulls_at(n)
        samples = [misplaced(bandit, pulls[rng.integers(0, r.runs, r.runs)])[0] for _ in range(100)]
        added = "" if before is None else f"{misplaced(bandit, pulls - before)[0]:.1%}"
        lines.append(
            f"| {_power(n)} | {_cell(r, None, j)} | {misplaced(bandit, pulls)[0]:.1%} ± {np.std(samples):.1%} | {added} |"
        )
        before = pulls
    return "\n".join([*lines, ""])


def tails(bench: Bench) -> str:
    """Quantiles of regret at 10³ with the 95 % interval of their order statistics."""
    lines = ["| instance | policy | runs | mean | 99 % | 99.9 % |", "|---|---|---|---|---|---|"]
    cases = {"circle, k = 30": MANY["circle, k = 30"], "four orthogonal arms": FINITE}
    for title, bandit in cases.items():
        for policy in (OT, PRUDENT):
            r = bench.play(policy, bandit, [10**3], 40_000, True)
            regret = np.sort(r.regret[:, 0])
            cells = []
            for q in (0.99, 0.999):
                low, high = (int(binom.ppf(p, r.runs, q)) for p in (0.025, 0.975))
                cells.append(
                    f"{np.quantile(regret, q):.0f}: {regret[max(low - 1, 0)]:.0f} … {regret[min(high, r.runs - 1)]:.0f}"
                )
            lines.append(f"| {title} | {policy} | {r.runs} | {_cell(r, None, 0)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def slopes(bench: Bench) -> str:
    """Of both policies between 10⁶ and 10⁸, against c, and where regret is paid."""
    lines = [
        "| instance | c | policy | 10⁶ | 10⁸ | slope/c | misplaced, mean pulls | misplaced, mean over runs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, bandit in {**FIVE, "four orthogonal arms": FINITE}.items():
        c = ao.solve(ao.programs.regret(bandit)).value
        for policy in (AT, OT):
            r = bench.play(policy, bandit, [10**6, 10**8], 150, True)
            slope = (r.regret[:, 1] - r.regret[:, 0]) / math.log(100) / c
            error = slope.std(ddof=1) / math.sqrt(r.runs)
            one, each = misplaced(bandit, r.pulls)
            cells = (
                f"{_cell(r, None, 0)} | {_cell(r, None, 1)} | {slope.mean():.2f} ± {error:.2f} | {one:.1%} | {each:.1%}"
            )
            lines.append(f"| {title} | {c:.4g} | {policy} | {cells} |")
    return "\n".join([*lines, ""])


def failures(bench: Bench, counts: dict[str, int], longest: int = 10**8) -> str:
    """Runs above .1·n·Δ_min at several n, with the 95 % interval of their probability, and quantiles."""
    times = [n for n in (10**4, 10**5, 10**6, 10**7, 10**8) if n <= longest]
    lines = [
        "| instance | policy | runs | " + " | ".join(_power(t) for t in times) + " | 99.9 % quantiles |",
        "|---|---|---|" + "---|" * (len(times) + 1),
    ]
    chosen = {**FIVE, "four orthogonal arms": FINITE}
    for policy, runs in counts.items():
        for title, bandit in chosen.items():
            r = bench.play(policy, bandit, times, runs, True)
            cells = []
            for j, n in enumerate(times):
                bad = int((r.regret[:, j] > 0.1 * n * bandit.gap_min).sum())
                upper = float(beta.ppf(0.975, bad + 1, r.runs - bad)) if bad < r.runs else 1.0
                lower = float(beta.ppf(0.025, bad, r.runs - bad + 1)) if bad else 0.0
                cells.append(f"{bad}: {lower:.1g} … {upper:.1g}")
            tail = ", ".join(f"{np.quantile(r.regret[:, j], 0.999):.0f}" for j in range(len(times)))
            lines.append(f"| {title} | {policy} | {r.runs} | " + " | ".join(cells) + f" | {tail} |")
    return "\n".join([*lines, ""])


def speed() -> str:
    """Rounds per second of processor time."""
    lines = ["| arms | n | OptimalTracking | LinTS |", "|---|---|---|---|"]
    cases = [
        ("counter-example, k = 3", instances.counter_example(0.05), 10**6),
        ("circle, k = 1000", instances.circle(1000), 10**3),
        ("circle, k = 1000", instances.circle(1000), 10**4),
        ("circle, k = 1000", instances.circle(1000), 10**5),
        ("circle, k = 1000", instances.circle(1000), 10**6),
        ("random (5, 1000)", instances.random_unit(5, 1000), 10**5),
        ("random (5, 100,000)", instances.random_unit(5, 100_000), 10**4),
        ("random (10, 100,000)", instances.random_unit(10, 100_000), 10**4),
    ]
    for title, bandit, n in cases:
        cells = []
        for policy in (OT, TS):
            rounds = n if policy == OT else min(n, 2000 if bandit.n_arms > 1000 else 10**5)
            simulate(policy, bandit, 20, 1, rng=0, keep_pulls=False)
            seconds = math.inf
            for _ in range(3):
                begun = time.process_time()
                simulate(policy, bandit, rounds, 1, rng=0, workers=1, keep_pulls=False)
                seconds = min(seconds, time.process_time() - begun)
            cells.append(f"{rounds / seconds / 1e6:.3g} million a second")
        lines.append(f"| {title} | {_power(n)} | {cells[0]} | {cells[1]} |")
    return "\n".join([*lines, ""])


HEADING = """# The tracking policies

Made by `make tracking` (`python benchmarks/tracking.py --scale {scale:g}`). σ² = 1, seed 2026; mean regret
± standard error, in brackets the ratio to LinTS. Where the noise is common to the policies (round by round), it is the same
in the same rounds; block by block it is not.
"""
TO_1E5 = [10**3, 10**4, 10**5]
SECTIONS: dict[str, Callable[[Bench], str]] = {
    "Copies of a rival": lambda bench: (
        "{e1, e2, (.95, .1)}, the last arm so many times.\n\n"
        + bench.table({f"{m} copies": copies(m) for m in (1, 30, 300)}, [OT, TS], [10**3, 10**4], 400, False)
    ),
    "Many arms": lambda bench: bench.table(MANY, [OT, TS], TO_1E5, 60, False),
    "Near ties: a trade": lambda bench: (
        "What is saved where a near tie is worth nothing is paid where it is worth much; `patience` chooses "
        "([NEAR_TIES.md](NEAR_TIES.md)).\n\n" + bench.table(NEAR_TIES, [OT, AT_ONCE, TS], [*TO_1E5, 10**6], 60, True)
    ),
    "The instances of REGRET.md": lambda bench: bench.table(FIVE, [OT, AT, TS], [*TO_1E5, 10**6], 40, True),
    "Held out": lambda bench: (
        "Instances that nothing was tuned on.\n\n" + bench.table(HELD_OUT, [OT, AT, TS], TO_1E5, 60, True)
    ),
    "Slope and place of regret, to 10⁸": slopes,
    "Tails": lambda bench: (
        "Quantiles of regret at 10³, and the 95 % interval of each from its order statistics.\n\n" + tails(bench)
    ),
    "Runs that go wrong": lambda bench: (
        "Runs with R > .1·n·Δ_min at each n, and the 95 % interval (Clopper & Pearson) of their probability; consistency asks that\n"
        "it falls like 1/n.\n\n" + failures(bench, {OT: 4000, AT: 400})
    ),
    "Speed": lambda bench: "One core, processor time, one run; the best of three.\n\n" + speed(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs to play")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", default=str(HERE / "TRACKING.md"))
    parser.add_argument(
        "--failures",
        type=int,
        metavar="RUNS",
        help="only count runs of AllocationTracking that go wrong to 10⁶, and print",
    )
    parser.add_argument("--misplaced", type=int, metavar="RUNS", help="only where AllocationTracking pays, and print")
    parser.add_argument(
        "--section", action="append", choices=list(SECTIONS), help="only this one, in the page as it is"
    )
    arguments = parser.parse_args()
    bench = Bench(arguments.scale, arguments.workers)
    if arguments.failures:
        print(failures(bench, {AT: arguments.failures}, 10**6))
        return
    if arguments.misplaced:
        print(misplaced_over_time(bench, arguments.misplaced))
        return
    page = Path(arguments.out)
    if arguments.section:
        text = page.read_text(encoding="utf-8")
        for title in arguments.section:
            text = with_section(text, title, SECTIONS[title](bench))
    else:
        text = HEADING.format(scale=arguments.scale)
        for title, make in SECTIONS.items():
            text += f"\n## {title}\n\n{make(bench)}"
    page.write_text(text, encoding="utf-8")


def with_section(text: str, title: str, content: str) -> str:
    """The page with this section replaced; what else stands under its heading from a third-level heading on is kept."""
    start = text.index(f"## {title}\n")
    ends = [place for mark in ("\n## ", "\n### ") if (place := text.find(mark, start)) >= 0]
    return text[:start] + f"## {title}\n\n{content}" + text[min(ends, default=len(text)) :]


if __name__ == "__main__":
    main()
