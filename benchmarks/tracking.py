"""OptimalTracking and AllocationTracking beside LinTS, where they were weak, and on instances they were not tuned on: TRACKING.md.

python benchmarks/tracking.py                 # everything: about 6 minutes on two cores
python benchmarks/tracking.py --scale 0.1     # a look at it
python benchmarks/tracking.py --failures 10000  # AllocationTracking at 10⁶, ten thousand runs an instance: half an hour
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import math
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import beta

import allocopt as ao
from allocopt import instances
from allocopt.model.bandit import LinearBandit
from allocopt.play.simulation.result import SimulationResult
from allocopt.play.simulation.simulate import simulate

HERE = Path(__file__).parent
SEED = 2026
OT, AT, TS = "OptimalTracking", "AllocationTracking", "LinTS"
WAITING = "OptimalTracking:patience=1"


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
    "held out: d = 2, ω = .03": instances.soare(2, 0.03),
    "held out: θ = (2, .2)": soare([2, 0.2]),
    "held out: θ = (2, 1)": soare([2, 1.0]),
    "held out: θ = (2, −.3)": soare([2, -0.3]),
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
            begun = time.process_time()
            simulate(policy, bandit, rounds, 1, rng=0, workers=1, keep_pulls=False)
            seconds = time.process_time() - begun
            cells.append(f"{rounds / seconds / 1e6:.3g} million a second")
        lines.append(f"| {title} | {_power(n)} | {cells[0]} | {cells[1]} |")
    return "\n".join([*lines, ""])


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
    arguments = parser.parse_args()
    bench = Bench(arguments.scale, arguments.workers)
    if arguments.failures:
        print(failures(bench, {AT: arguments.failures}, 10**6))
        return
    to_1e5 = [10**3, 10**4, 10**5]
    crowd = {f"{m} copies": copies(m) for m in (1, 30, 300)}
    text = f"""# The tracking policies

Made by `make tracking` (`python benchmarks/tracking.py --scale {arguments.scale:g}`). σ² = 1, seed {SEED}; mean regret
± standard error, in brackets the ratio to LinTS. Where the noise is common to the policies (round by round), it is the same
in the same rounds; block by block it is not.

## Copies of a rival

{{e1, e2, (.95, .1)}}, the last arm so many times.

{bench.table(crowd, [OT, TS], [10**3, 10**4], 400, False)}
## Many arms

{bench.table(MANY, [OT, TS], to_1e5, 60, False)}
## Near ties: a trade

What is saved where a near tie is worth nothing is paid where it is worth much; `patience` chooses.

{bench.table(NEAR_TIES, [OT, WAITING, TS], [*to_1e5, 10**6], 60, True)}
## The instances of REGRET.md

{bench.table(FIVE, [OT, AT, TS], [*to_1e5, 10**6], 40, True)}
## Held out

Instances that nothing was tuned on.

{bench.table(HELD_OUT, [OT, AT, TS], to_1e5, 60, True)}
## Slope and place of regret, to 10⁸

{slopes(bench)}
## Runs that go wrong

Runs with R > .1·n·Δ_min at each n, and the 95 % interval (Clopper & Pearson) of their probability; consistency asks that
it falls like 1/n.

{failures(bench, {OT: 4000, AT: 400})}
## Speed

One core, processor time, one run.

{speed()}"""
    Path(arguments.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
