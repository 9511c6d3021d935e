"""Finite-time bounds against simulated policies: the theorem, tried out. Writes FINITE_TIME.md.

For each policy, instance and horizon: measure the regret here, find alternatives for it, measure the regret there, and ask
whether the bound for these regrets (upper confidence limits) is below the regret here (upper confidence limit), as it must be.

    python benchmarks/finite_time.py                 # n up to 10⁵: some minutes
    python benchmarks/finite_time.py --most 1000000  # an hour or so; what was interrupted goes on where it stopped
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

import allocopt as ao
from allocopt import LinearBandit, SimulationResult, instances
from allocopt.play.simulation.simulate import simulate

HERE = Path(__file__).parent
FINISHED = "finite_time.jsonl"  # a line for each trial, so that an interrupted run loses only the one it was in
SEED = 20260
RUNS = {10**3: 200, 10**4: 100, 10**5: 30, 10**6: 10}
STANDARD_ERRORS = 3.0  # above the mean: the upper confidence limit
POLICIES = ao.policies.NAMES
TABLE = {"10·c·log n": lambda n, c: 10 * c * math.log(n), "100·log n": lambda n, c: 100 * math.log(n),
         "√(2n)": lambda n, c: math.sqrt(2 * n)}  # fmt: skip
PROTOTYPE = {4: (1.98, 1.57, 6.96), 5: (8.89, 7.91, 12.33), 6: (20.0, 18.7, 18.6), 7: (33.4, 31.9, 25.5),
             12: (112, 110, 64)}  # fmt: skip


def thirty_instances() -> dict[str, LinearBandit]:
    """The paper's, finite-armed, structured and random ones."""
    found = {f"counter-example, ε = {e}": instances.counter_example(e) for e in (0.3, 0.2, 0.1, 0.05, 0.01)}
    found["counter-example, ε = 0.1, five dimensions"] = instances.counter_example(0.1, dim=5)
    found |= {f"optimism example, ε = {e}": instances.optimism_example(e) for e in (0.05, 0.01)}
    for gaps in (
        [0, 1],
        [0, 0.2],
        [0, 0.05],
        [0, 0.5, 0.5],
        [0, 0.1, 0.5, 1],
        [0, 0.2, 0.2, 0.2, 0.2],
        [0, 0, 0.3, 0.6],
    ):
        found[f"finite-armed, gaps {gaps}"] = instances.finite_armed(gaps)
    found["circle of 8"] = instances.circle(8)
    found["hypercube, three dimensions"] = instances.hypercube(3)
    found["equal gaps, three dimensions, 8 arms"] = instances.equal_gaps(3, 8, 0.5)
    found["soare, three dimensions"] = instances.soare(3, 0.5)
    for d, k, seeds in ((2, 5, 3), (3, 8, 4), (4, 12, 3), (5, 20, 1)):
        for seed in range(seeds):
            found[f"random, {k} unit vectors in {d} dimensions, seed {seed}"] = instances.random_unit(d, k, seed=seed)
    return found


class Trial(NamedTuple):
    """One policy on one instance at one horizon."""

    instance: str
    policy: str
    n: int
    bound: float
    mean: float
    limit: float
    alternatives: int


def limit(result: SimulationResult) -> float:
    """The upper confidence limit of the mean regret."""
    return float(result.mean[-1] + STANDARD_ERRORS * result.standard_error[-1])


def trial(name: str, bandit: LinearBandit, policy: str, n: int, runs: int) -> Trial:
    """The alternatives are those for policies that pay there what this one pays here."""
    here = simulate(policy, bandit, n, runs, rng=SEED, times=[n], workers=1)
    allowed = max(limit(here), 1.0)
    found = ao.finite_time_bound(bandit, n, allowed)
    there = [
        simulate(policy, b, n, runs, rng=SEED + 1 + j, times=[n], workers=1) for j, b in enumerate(found.alternatives)
    ]
    measured = found.given([limit(r) for r in there]) if there else found
    if not measured.verify().holds:
        raise AssertionError(f"{name}, {policy}, n = {n}: verify() does not prove {measured!r}")
    return Trial(name, policy, n, measured.value, float(here.mean[-1]), limit(here), len(there))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10**5, help="the longest horizon")
    parser.add_argument("--instances", type=int, default=30, help="how many of the instances")
    parser.add_argument("--out", default=str(HERE), help="where FINITE_TIME.md and the finished trials go")
    parser.add_argument("--fresh", action="store_true", help="begin again, without the finished trials")
    arguments = parser.parse_args()
    console = Console(stderr=True, soft_wrap=True)
    started = time.perf_counter()
    chosen = dict(list(thirty_instances().items())[: arguments.instances])
    horizons = {n: runs for n, runs in RUNS.items() if n <= arguments.most}
    console.print(
        f"{len(chosen)} instances, {len(POLICIES)} policies, n = {list(horizons)}: some minutes", markup=False
    )
    finished = Path(arguments.out) / FINISHED
    if arguments.fresh:
        finished.unlink(missing_ok=True)
    known = {(t.instance, t.policy, t.n): t for t in _finished(finished)}
    trials = []
    for name, bandit in chosen.items():
        for n, runs in horizons.items():
            for policy in POLICIES:
                if (done := known.get((name, policy, n))) is None:
                    done = trial(name, bandit, policy, n, runs)
                    with finished.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done._asdict(), ensure_ascii=False) + "\n")
                trials.append(done)
        worst = max(t.bound / t.limit for t in trials if t.instance == name)
        console.print(f"{name}: bound/limit at most {worst:.3f}, {time.perf_counter() - started:.0f} s", markup=False)
    text = "\n".join([_heading(arguments, chosen, horizons), _summary(trials), _table(), _growth()])
    target = Path(arguments.out) / "FINITE_TIME.md"
    target.write_text(text, encoding="utf-8")
    console.print(f"{target} after {time.perf_counter() - started:.0f} s", markup=False)


def _finished(file: Path) -> list[Trial]:
    """What an earlier run has measured; a last line that was cut off is measured again."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        file.write_text("".join(whole), encoding="utf-8")
    return [Trial(**json.loads(line)) for line in whole]


def _heading(arguments: argparse.Namespace, chosen: dict[str, LinearBandit], horizons: dict[int, int]) -> str:
    listed = ", ".join(f"{_power(n)}: {runs}" for n, runs in horizons.items())
    return f"""# Finite-time bounds, tried out

Made by `python benchmarks/finite_time.py --most {arguments.most}` ({platform.machine()}), seed {SEED}.
{len(chosen)} instances; runs per horizon {listed}. A limit is the mean regret plus {STANDARD_ERRORS:g} standard errors.

## Simulated policies never lie below their bound

For each policy: its regret here is measured; `finite_time_bound` lists alternatives for policies that pay as much there as this one
pays here; the policy is simulated there, and `given(limits there)` is compared with its limit here. The bound must never be above.
"""


def _summary(trials: list[Trial]) -> str:
    lines = [
        "| policy | n | trials | bound above limit | bound/limit, median | largest | where |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for policy in POLICIES:
        for n in sorted({t.n for t in trials}):
            some = [t for t in trials if t.policy == policy and t.n == n]
            ratios = [t.bound / t.limit for t in some]
            worst = some[int(np.argmax(ratios))]
            above = sum(t.bound > t.limit for t in some)
            lines.append(
                f"| {policy} | {_power(n)} | {len(some)} | {above} | {np.median(ratios):.3f} | {max(ratios):.3f} | {worst.instance} |"
            )
    above, listed = sum(t.bound > t.limit for t in trials), [t.alternatives for t in trials]
    sure = sum(t.bound > t.mean for t in trials)
    lines += ["", f"In all: {len(trials)} trials, {above} with the bound above the limit, {sure} with the bound above the mean; "
              f"{np.mean(listed):.1f} alternatives each ({max(listed)} at most)."]  # fmt: skip
    return "\n".join(lines)


def _table() -> str:
    bandit = instances.counter_example(0.2)
    c = ao.solve(ao.programs.regret(bandit)).value
    lines = ["", "## {e1, e2, (1−ε, 2ε)}, ε = 0.2: the proven V for a common B", "",
             "| n | " + " | ".join(f"B = {name}" for name in TABLE) + " | prototype, unproven | c·log n |",
             "|---|" + "--:|" * (len(TABLE) + 2)]  # fmt: skip
    for exponent, old in PROTOTYPE.items():
        n = 10**exponent
        values = [ao.finite_time_bound(bandit, n, b(n, c)).value for b in TABLE.values()]
        shown = " | ".join(f"{v:.2f}" for v in values)
        lines.append(f"| {_power(n)} | {shown} | {' / '.join(f'{v:g}' for v in old)} | {c * math.log(n):.1f} |")
    return "\n".join(lines)


def _growth() -> str:
    exponents = (3, 4, 6, 8, 12, 20, 50, 100)
    chosen = {"counter-example, ε = 0.2": instances.counter_example(0.2), "counter-example, ε = 0.01": instances.counter_example(0.01),
              "3 arms, gaps 0, 0.5, 0.5": instances.finite_armed([0, 0.5, 0.5]),
              "random, 20 unit vectors in 5 dimensions": instances.random_unit(5, 20)}  # fmt: skip
    lines = ["", "## V/(c·log n) for B = 10·c·log n tends to 1", "",
             "| instance | " + " | ".join(f"10^{e}" for e in exponents) + " |", "|---|" + "--:|" * len(exponents)]  # fmt: skip
    for name, bandit in chosen.items():
        c = ao.solve(ao.programs.regret(bandit)).value
        bounds = [ao.finite_time_bound(bandit, 10**e, 10 * c * e * math.log(10)) for e in exponents]
        assert all(b.verify().holds for b in bounds)
        ratios = [b.value / (c * e * math.log(10)) for b, e in zip(bounds, exponents, strict=True)]
        lines.append(f"| {name} | " + " | ".join(f"{r:.3f}" for r in ratios) + " |")
    return "\n".join([*lines, ""])


def _power(n: int) -> str:
    digits = str(len(str(n)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


if __name__ == "__main__":
    main()
