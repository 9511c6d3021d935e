"""Regret of all policies on the paper's counter-example and its relatives, against c·log n: writes REGRET.md and pictures.

    python benchmarks/regret.py                 # everything: about 25 minutes on two cores
    python benchmarks/regret.py --scale 0.05    # a look at it
    python benchmarks/regret.py --anew OptimalTracking   # its rows anew in the page as it is; pictures stay as they are

Every horizon is an experiment of its own, because most policies are told n. Runs are kept in --folder as they are finished:
stop it whenever you like, the same command goes on from there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads

import argparse
import math
import platform
import time
from pathlib import Path

import numpy as np
from rich.console import Console

import allocopt as ao
from allocopt import instances, plots
from allocopt.base.long_runs.own_code import code_digest
from allocopt.model.bandit import LinearBandit
from allocopt.model.levels import g_n
from allocopt.play.simulation.result import SimulationResult
from allocopt.play.simulation.simulate import simulate

HERE = Path(__file__).parent
RUNS = {10**3: 1000, 10**4: 1000, 10**5: 200, 10**6: 100, 10**7: 100}
POLICIES = ("OptimalTracking", "EndOfOptimism", "LinTS", "LinUCB:a=2", "UCB", "PhasedElimination")
SEED = 2017  # the year of the paper

INSTANCES: dict[str, tuple[str, LinearBandit]] = {
    "epsilon-0.2": ("{e1, e2, (1−ε, 2ε)}, ε = 0.2", instances.counter_example(0.2)),
    "epsilon-0.05": ("{e1, e2, (1−ε, 2ε)}, ε = 0.05", instances.counter_example(0.05)),
    "epsilon-0.01": ("{e1, e2, (1−ε, 2ε)}, ε = 0.01", instances.counter_example(0.01)),
    "five-dimensional": ("its form in five dimensions, 9 arms, ε = 0.05", instances.counter_example(0.05, dim=5)),
    "random": ("20 random unit vectors in five dimensions", instances.random_unit(5, 20)),
}


def main() -> None:
    arguments = _arguments()
    console = Console(stderr=True, soft_wrap=True)
    started = time.perf_counter()
    horizons = {n: max(2, math.ceil(runs * arguments.scale)) for n, runs in RUNS.items() if n <= arguments.most}
    chosen = {key: INSTANCES[key] for key in arguments.only or INSTANCES}
    if arguments.anew:
        rows_anew(arguments.anew, arguments, horizons)
        return
    speeds = {name: throughput(name) for name in POLICIES}
    work = sum(n * runs for n, runs in horizons.items())
    seconds = sum(work / speeds[name][_like(bandit)] for name in POLICIES for _, bandit in chosen.values())
    console.print(
        f"about {seconds / 60 / arguments.workers:.0f} minutes with {arguments.workers} workers, if nothing is there yet"
    )
    text = [_heading(arguments, horizons)]
    naive: list[str] = []
    for key, (title, bandit) in chosen.items():
        results = {}
        for name in POLICIES:
            results |= played(key, bandit, name, arguments, horizons)
            last = results[name, max(horizons)]
            console.print(f"{key}: {last!r} after {time.perf_counter() - started:.0f} s", markup=False)
        text.append(_section(key, title, bandit, results, horizons))
        naive += [_naive_row(title, bandit, results["EndOfOptimism", n]) for n in horizons]
        _picture(key, bandit, {name: results[name, max(horizons)] for name in POLICIES}, Path(arguments.out))
    text.append(_naive_section(naive))
    text.append(_speed_section(speeds))
    (Path(arguments.out) / "REGRET.md").write_text("\n".join(text), encoding="utf-8")
    console.print(f"{Path(arguments.out) / 'REGRET.md'} after {time.perf_counter() - started:.0f} s", markup=False)


def played(
    key: str, bandit: LinearBandit, name: str, arguments: argparse.Namespace, horizons: dict[int, int]
) -> dict[tuple[str, int], SimulationResult]:
    """One policy on one instance, for every horizon."""
    results = {}
    for n, runs in horizons.items():
        folder = Path(arguments.folder) / f"{key}-{name.replace(':', '-')}-{n}-{runs}"
        results[name, n] = simulate(name, bandit, n, runs, rng=SEED, workers=arguments.workers, checkpoint=folder)
    return results


def rows_anew(name: str, arguments: argparse.Namespace, horizons: dict[int, int]) -> None:
    """Play one policy, and put its rows in the place of those that the page has."""
    page = Path(arguments.out) / "REGRET.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    places = [i for i, line in enumerate(lines) if line.startswith(f"| {name} |")]
    for place, (key, (_, bandit)) in zip(places, INSTANCES.items(), strict=False):  # the last row is that of its speed
        lines[place] = _row(name, played(key, bandit, name, arguments, horizons), horizons)
        print(lines[place], flush=True)
    page.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs to play")
    parser.add_argument("--most", type=int, default=10**7, help="the longest horizon")
    parser.add_argument("--only", action="append", choices=list(INSTANCES), help="an instance; may be repeated")
    parser.add_argument("--anew", choices=POLICIES, help="only this policy, whose rows are replaced in the page")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--folder",
        default=str(HERE.parent / "build" / "regret" / str(code_digest())[:12]),
        help="where finished runs are kept",
    )
    parser.add_argument("--out", default=str(HERE), help="where REGRET.md and the pictures go")
    return parser.parse_args()


def throughput(name: str, rounds: int = 2 * 10**6) -> dict[tuple[int, int], float]:
    """Rounds per second of processor time on one core, for (d, k) = (2, 3) and (5, 20); the best of three."""
    found = {}
    for bandit in (instances.counter_example(0.05), instances.random_unit(5, 20)):
        simulate(name, bandit, 1000, 1, rng=0)  # compiles
        best = math.inf
        for _ in range(3):
            begun = time.process_time()
            simulate(name, bandit, rounds, 1, rng=0, workers=1)
            best = min(best, time.process_time() - begun)
        found[bandit.dim, bandit.n_arms] = rounds / best
    return found


def _like(bandit: LinearBandit) -> tuple[int, int]:
    return (2, 3) if bandit.dim == 2 else (5, 20)


def _heading(arguments: argparse.Namespace, horizons: dict[int, int]) -> str:
    listed = ", ".join(f"{_power(n)}: {runs}" for n, runs in horizons.items())
    return f"""# Regret of all policies

Made by `python benchmarks/regret.py` ({platform.machine()}, {arguments.workers} workers). Gaussian noise of variance 1, seed {SEED};
runs per horizon {listed}. Entries are mean pseudo-regret ± its standard error.

Every horizon is an experiment of its own: `EndOfOptimism`, `LinUCB` (β = 2 log n in every round) and `PhasedElimination`
(δ = 1/n) use n; `UCB` (log(1 + t log² t)), `LinTS` and `OptimalTracking` do not, so their runs of a shorter horizon are the
beginnings of those of a longer one. The slope is (R(n) − R(n/10))/log 10 for the largest n, from differences of runs with the
same noise. It tends to c for an optimal policy. Where n is used it compares two policies with different parameters.
"""


def _section(
    key: str,
    title: str,
    bandit: LinearBandit,
    results: dict[tuple[str, int], SimulationResult],
    horizons: dict[int, int],
) -> str:
    c = ao.solve(ao.programs.regret(bandit)).value
    largest = max(horizons)
    ns = list(horizons)
    lines = [
        f"## {title}",
        "",
        f"c = {c:.6g}; Σ 2/Δ = {float(np.sum(2 / bandit.gaps[bandit.suboptimal_arms])):.6g}.",
        "",
        "| policy | "
        + " | ".join(_power(n) for n in ns)
        + f" | R/log n at {_power(largest)} | slope | runs in recovery |",
        "|---|" + "---|" * (len(ns) + 3),
        "| c·log n | " + " | ".join(f"{c * math.log(n):.1f}" for n in ns) + f" | {c:.2f} | {c:.2f} | |",
    ]
    lines += [_row(name, results, horizons) for name in POLICIES]
    return "\n".join([*lines, "", f"![regret](regret-{key}.png)", ""])


def _row(name: str, results: dict[tuple[str, int], SimulationResult], horizons: dict[int, int]) -> str:
    """A policy's line in the table of an instance."""
    largest = max(horizons)
    last = results[name, largest]
    cells = [f"{r.mean[-1]:.1f} ± {r.standard_error[-1]:.1f}" for r in (results[name, n] for n in horizons)]
    slope = _slope(results, name, largest)
    recovery = f"{int((last.phase_lengths('recovery') > 0).sum())} of {last.runs}" if "EndOf" in name else ""
    return f"| {name} | " + " | ".join(cells) + f" | {last.mean[-1] / math.log(largest):.2f} | {slope} | {recovery} |"


def _naive_row(title: str, bandit: LinearBandit, r: SimulationResult) -> str:
    """What happened to Algorithm 1: how long its phases were, and whether it ever noticed a wrong estimate."""
    warm_up, success = (int(np.median(r.phase_lengths(name))) for name in ("warm-up", "success"))
    recovering = int((r.phase_lengths("recovery") > 0).sum())
    wrong = float(np.mean(~np.isin(r.pulls.argmax(axis=1), bandit.optimal_arms)))
    spanner = ao.barycentric_spanner(bandit.arms, 1.0)
    pulls = math.ceil(math.sqrt(math.log(r.horizon)))
    widest = float(np.linalg.norm(spanner.coefficients, axis=1).max()) / math.sqrt(pulls)
    epsilon = widest * math.sqrt(g_n(r.horizon, bandit.rank))
    return (
        f"| {title} | {_power(r.horizon)} | {warm_up} | {success} | {recovering} of {r.runs} | {2 * epsilon:.2f} | {wrong:.0%} | "
        f"{np.median(r.final_regret):.0f} | {r.mean[-1]:.0f} |"
    )


NAIVE = """## Why `EndOfOptimism` looks poor here

Its warm-up takes d⌈√log n⌉ rounds, so at these horizons T̂ is made of a handful of rewards per arm. If they call the wrong arm the
best, that arm has gap 0, T̂ = ∞, and is played to the end unless an estimated mean moves by more than 2ε_n; with rewards of
variance 1 and means within [0, 1] it never does. *Wrong arm* is the share of runs whose most played arm is not optimal; they
make the mean (in five dimensions, where it is every second run, the median too), while a run that got the arm right pays about
what the allocation asks for. The warm-up grows with n, but like √log n: the theorem is about horizons at which it is long.

| instance | n | warm-up | success (median) | in recovery | 2ε_n | wrong arm | median regret | mean regret |
|---|---|---|---|---|---|---|---|---|
"""


def _naive_section(rows: list[str]) -> str:
    return NAIVE + "\n".join([*rows, ""])


def _slope(results: dict[tuple[str, int], SimulationResult], name: str, largest: int) -> str:
    if (name, largest // 10) not in results:
        return "-"
    one, two = results[name, largest // 10].final_regret, results[name, largest].final_regret
    both = min(len(one), len(two))
    difference = (two[:both] - one[:both]) / math.log(10)
    return f"{difference.mean():.1f} ± {difference.std(ddof=1) / math.sqrt(both):.1f}"


def _picture(key: str, bandit: LinearBandit, results: dict[str, SimulationResult], folder: Path) -> None:
    c = ao.solve(ao.programs.regret(bandit)).value
    curves = {name: (r.times, r.regret) for name, r in results.items()}
    plots.save(
        plots.regret_curves(curves, constant=c, log=True, width=6.0), folder / f"regret-{key}.png", overwrite=True
    )


def _speed_section(speeds: dict[str, dict[tuple[int, int], float]]) -> str:
    lines = [
        "## Throughput",
        "",
        "Million policy-rounds per second of one core, noise included, single runs of 2·10⁶ rounds.",
        "",
        "| policy | d = 2, k = 3 | d = 5, k = 20 |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {s[2, 3] / 1e6:.1f} | {s[5, 20] / 1e6:.1f} |" for name, s in speeds.items()]
    return "\n".join([*lines, ""])


def _power(n: int) -> str:
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(round(math.log10(n))))


if __name__ == "__main__":
    main()
