"""``allocopt simulate``: policies on an instance from a file; a table, saved runs, and the picture of regret over time."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from allocopt.base.errors import InvalidOption
from allocopt.base.json_data import json_number
from allocopt.base.long_runs.differences import differences
from allocopt.base.long_runs.store import DATABASE, stored_identity
from allocopt.cli.app import (
    File,
    Json,
    NoiseVariance,
    Theta,
    app,
    given_bandit,
    given_contexts,
    given_instance,
    print_json,
)
from allocopt.cli.insight.bound import WHY_BELOW
from allocopt.cli.shell.late_bars import late
from allocopt.cli.shell.outputs import Force, check_output
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.running import say_interrupted
from allocopt.insight import plots
from allocopt.insight.bounds.bound import FiniteTimeBound, finite_time_bound
from allocopt.insight.bounds.times_optimal import times_optimal
from allocopt.linear.assumptions import sentences
from allocopt.model import programs
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit
from allocopt.model.solution import Solution
from allocopt.model.status_text import caveat
from allocopt.play.simulation.compare import Comparison, compare
from allocopt.play.simulation.identity import bandit_identity
from allocopt.play.simulation.result import SimulationCallback, SimulationResult
from allocopt.policies import NAMES
from allocopt.solving.solve import solve

_QUANTILES = (0.1, 0.5, 0.9)
_PICTURE = "regret.png"
_SCIENTIFIC_FROM = 1e6  # figures from here on are written as 1e+06


@app.command("simulate")
def simulate_command(
    file: File,
    horizon: Annotated[int, typer.Option("--horizon", "-n", help="Rounds of each run.", show_default=False)],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="A policy, with parameters after a colon: UCB, LinUCB:a=2, LinTS:a=1. May be repeated (default: all).",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-r", help="Independent runs of each policy.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same runs, however many workers.")] = 0,
    theta: Theta = None,
    noise_variance: NoiseVariance = None,
    noise: Annotated[
        str, typer.Option(help="Law of the rewards: gaussian, bernoulli, or student-t:ν with ν > 2 degrees of freedom.")
    ] = "gaussian",
    assumed: Annotated[
        float | None,
        typer.Option("--assumed-noise-variance", help="σ² that policies are told instead.", show_default=False),
    ] = None,
    delay: Annotated[int, typer.Option(help="The reward of round t is told after round t + delay.")] = 0,
    batch: Annotated[int, typer.Option(help="Rewards are told after every so many rounds.")] = 1,
    blockwise: Annotated[
        bool,
        typer.Option("--blockwise", help="Draw rounds in which a policy does not look as one sum: n = 10⁹ in seconds."),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes (default: one per core for long simulations).", show_default=False)
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to use.", show_default=False)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for all runs and the plot; stopped simulations go on there.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Regret against log n: .png, .pdf or .svg.", show_default=False)
    ] = None,
    log: Annotated[
        bool | None,
        typer.Option(
            "--log/--linear", help="Scale of the regret in the plot (default: what suits it).", show_default=False
        ),
    ] = None,
    force: Force = False,
    factor: Annotated[
        float | None,
        typer.Option(
            "--times-optimal",
            help="Show what no policy beats at n unless it pays more than this factor times c·log n elsewhere.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate policies: exact pseudo-regret of many independent runs, beside c·log n.

    With --out everything that is finished is kept: the same command goes on where it was stopped. With contexts in the file each round
    draws one by its weight, and pulls are those of pairs (context, arm).
    """
    # here, since both load numba, which takes half a second: the other commands do without
    from allocopt.play.simulation.conditions import Conditions
    from allocopt.play.simulation.simulate import simulate
    from allocopt.policies.parsing import parse

    missing = "simulate needs θ: give it in the file or with --theta (gaps alone say nothing of rewards)"
    instance = given_instance(file, theta)
    contexts = instance.contexts is not None
    bandit = (given_contexts if contexts else given_bandit)(instance, noise_variance, missing)
    if factor is not None and contexts:
        raise InvalidOption(
            "--times-optimal: expected an instance without contexts, for which the bound is; leave it out"
        )
    asked = [parse(text) for text in (policy or NAMES)]
    if contexts and not policy:
        asked = [one for one in asked if one.run_contexts is not None]
    names = [p.name for p in asked]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOption(f"--policy: {name} is given twice")
    _check_targets(out, plot, force, file, theta)
    conditions = Conditions.checked(bandit, noise, assumed, delay, batch, blockwise)
    for one in asked:
        conditions.check_policy(one, one.name, False, contexts)
    _check_folder(out, bandit, horizon, runs, seed, conditions.as_json())
    client = None if dask is None else _client(dask)
    if client is not None and workers is not None:
        raise InvalidOption("--workers: expected nothing beside --dask (the cluster has its own), got both")
    solution = solve(programs.contextual(bandit) if isinstance(bandit, ContextualBandit) else programs.regret(bandit))
    constant = solution.value
    if log and not bandit.gaps.any():
        raise InvalidOption("--log: every arm is optimal, and a regret of zero has no logarithm; leave it out")
    bounds = _bounds(bandit, horizon, factor) if factor is not None and isinstance(bandit, LinearBandit) else []
    results = []
    for one in asked:
        checkpoint = None if out is None else out / _folder_name(one.name)
        try:
            with _bar(one.name, runs) as callback:
                result = simulate(
                    one, bandit, horizon, runs, rng=seed, noise=noise, assumed_noise_variance=assumed, delay=delay,
                    batch=batch, blockwise=blockwise, workers=workers, client=client, checkpoint=checkpoint,
                    callback=callback,
                )  # fmt: skip
        except KeyboardInterrupt:
            if out is None:
                raise
            say_interrupted(f"interrupted: what was finished is kept in {out}; the same command goes on from there")
            raise typer.Exit(130) from None
        if checkpoint is not None:
            ending = ".parquet" if importlib.util.find_spec("pyarrow") else ".json"
            result.save(checkpoint / f"result{ending}", overwrite=True)
        results.append(result)
    pictures = [p for p in (plot, None if out is None else out / _PICTURE) if p is not None]
    for target in pictures:
        figure = plots.regret_curves(
            {r.policy: (r.times, r.regret) for r in results},
            constant=constant if math.isfinite(constant) else None,
            bound=([b.n for b in bounds], [b.value for b in bounds]) if bounds else None,
            log=log,
        )
        plots.save(figure, target, overwrite=force or target != plot)
    if as_json:
        print_json(_document(results, solution, pictures, bounds))
    else:
        _show(results, solution, pictures, out, bounds)


def _check_targets(out: Path | None, plot: Path | None, force: bool, *inputs: Path | str | None) -> None:
    """Refuse names that could not be written, or must not be, before the work begins."""
    check_output("--plot", plot, force, *inputs, endings=(".png", ".pdf", ".svg"))
    if out is not None and out.exists():
        if not out.is_dir():
            raise InvalidOption(f"--out: expected a folder, but {out} is a file")
        if not any(out.glob(f"*/{DATABASE}")) and not all(_just_begun(p) for p in out.iterdir()):
            raise InvalidOption(
                f"--out: expected a new or empty folder or one of simulations, but {out} holds other files"
            )


def _just_begun(path: Path) -> bool:
    """Whether it is what a simulation leaves that was killed before its first file was whole."""
    return path.is_dir() and all(p.name.startswith(".") for p in path.iterdir())


def _check_folder(
    out: Path | None,
    bandit: LinearBandit | ContextualBandit,
    horizon: int,
    runs: int,
    seed: int,
    conditions: dict[str, Any],
) -> None:
    """A folder is of one experiment: its plot holds all policies on one instance, and would be lost to another's."""
    asked = {
        "horizon": horizon,
        "runs": runs,
        "seed": {"entropy": seed, "spawn_key": []},
        "bandit": bandit_identity(bandit),
        "conditions": conditions,
    }
    for source in sorted(out.glob(f"*/{DATABASE}")) if out is not None else []:
        there = stored_identity(source.parent, "simulation")
        if there is not None and (differ := differences({key: there[key] for key in asked}, asked)):
            raise InvalidOption(
                f"--out: {out} holds another experiment: {source.parent.name}: {'; '.join(differ)}; nothing was changed, give "
                "another folder"
            )


def _client(address: str) -> Any:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InvalidOption("--dask: needs dask.distributed: pip install 'allocopt[dask]'") from None
    try:
        return distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InvalidOption(f"--dask: no scheduler at {address!r}: {str(error) or type(error).__name__}") from None


def _bounds(bandit: LinearBandit, horizon: int, factor: float) -> list[FiniteTimeBound]:
    """What no policy can beat, at some n up to the horizon (the last one)."""
    rounds = sorted({max(round(horizon / 10.0**step), 3) for step in np.arange(0.0, 3.1, 0.5)})
    return [finite_time_bound(bandit, n, times_optimal(factor, n)) for n in rounds]


def _folder_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=_+-]+", "-", name)  # with +, or 1e+9 and 1e-9 would have one folder


@contextlib.contextmanager
def _bar(name: str, runs: int) -> Iterator[SimulationCallback]:
    """A bar with the time left, on a terminal's standard error once two seconds have passed."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    if not console.is_terminal:
        yield lambda done, of, seconds: None
        return
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(escape(name), total=runs)
    with late(bar):  # not at the first report: a chunk may take minutes
        yield lambda done, of, seconds: bar.update(task, completed=done)


def _recoveries(result: SimulationResult) -> int | None:
    """Runs that came to a recovery phase; None for policies that have none."""
    return int((result.phase_lengths("recovery") > 0).sum()) if result.policy.startswith("EndOfOptimism") else None


def _figure(x: float, digits: int = 1) -> str:
    """So many decimals; three significant digits where these would show nothing but zeros, or a long row of digits."""
    return f"{x:.{digits}f}" if x == 0 or 10.0**-digits <= abs(x) < _SCIENTIFIC_FROM else f"{x:.3g}"


def _show(
    results: list[SimulationResult],
    solution: Solution,
    pictures: list[Path],
    out: Path | None,
    bounds: list[FiniteTimeBound],
) -> None:
    first = results[0]
    constant = solution.value
    log_n = math.log(first.horizon)
    console = new_console()
    table = Table(title=f"regret after {first.horizon} rounds, {first.runs} run{'s' if first.runs > 1 else ''}")
    table.add_column("policy", overflow="fold")  # figures are never cut off, long names are
    for name in ("mean", "± s.e.", *(f"{q:.0%}" for q in _QUANTILES), "mean/log n"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        error = float(r.standard_error[-1])
        table.add_row(
            escape(r.policy), _figure(r.mean[-1]), _figure(error) if math.isfinite(error) else "-",
            *(_figure(x) for x in r.quantiles(_QUANTILES)[:, -1]), _figure(r.mean[-1] / log_n, 2),
        )  # fmt: skip
    table.add_section()
    table.add_row("c·log n", _figure(constant * log_n), "", "", "", "", _figure(constant, 2))
    if bounds:
        value = bounds[-1].value
        table.add_row("finite-time bound", _figure(value), "", "", "", "", _figure(value / log_n, 2))
    console.print(table)
    if bounds:
        console.print(f"{bounds[-1].sentence} ({WHY_BELOW})", markup=False, soft_wrap=True)
    if caveat(solution):
        console.print(f"c is {caveat(solution)}", markup=False, soft_wrap=True)
        for sentence in sentences(solution.assumptions):
            console.print(f"  {sentence}", markup=False, soft_wrap=True)
    for r in results:
        recovered = _recoveries(r)
        if recovered is not None:
            console.print(f"{r.policy}: {recovered} of {r.runs} runs came to the recovery phase", markup=False)
    for found in _comparisons(results):
        console.print(found.verdict, markup=False, soft_wrap=True)
    for note in dict.fromkeys(note for r in results for note in r.notes):
        concerned = [r.policy for r in results if note in r.notes]
        which = "" if len(concerned) == len(results) else f"{', '.join(concerned)}: "
        console.print(f"{which}{note}", markup=False, soft_wrap=True)
    for target in pictures:
        console.print(f"plot written to {target}", markup=False, soft_wrap=True)
    if out is not None:
        console.print(f"runs kept in {out}", markup=False, soft_wrap=True)


def _comparisons(results: list[SimulationResult]) -> list[Comparison]:
    """The first policy against every other one, where there are runs enough."""
    return [compare(results[0], other) for other in results[1:]] if results[0].runs > 1 else []


def _document(
    results: list[SimulationResult], solution: Solution, pictures: list[Path], bounds: list[FiniteTimeBound]
) -> dict[str, Any]:
    first = results[0]
    constant = solution.value
    return {
        "horizon": first.horizon,
        "runs": first.runs,
        "seed": dict(first.seed),
        "c": json_number(constant),
        "c_log_n": json_number(constant * math.log(first.horizon)),
        "c_status": solution.status.name,
        "assumptions": [a.as_json() for a in solution.assumptions],
        "optimal_arms": first.bandit.optimal_arms.tolist(),
        "times": first.times.tolist(),
        "bounds": [{"n": b.n, "value": b.value, "sentence": b.sentence} for b in bounds],
        "conditions": dict(first.conditions),
        "policies": [_policy_document(r) for r in results],
        "comparisons": [_comparison_document(c) for c in _comparisons(results)],
        "plots": [str(p) for p in pictures],
    }


def _comparison_document(found: Comparison) -> dict[str, Any]:
    return {
        "first": found.first,
        "second": found.second,
        "paired": found.paired,
        "difference": float(found.difference[-1]),
        "interval": [float(found.lower[-1]), float(found.upper[-1])],
        "confidence": found.confidence,
        "wins": found.wins,
        "p_value": found.p_value,
        "verdict": found.verdict,
    }


def _policy_document(result: SimulationResult) -> dict[str, Any]:
    error = result.standard_error
    return {
        "policy": result.policy,
        "parameters": dict(result.parameters),
        "final_regret": {
            "mean": float(result.mean[-1]),
            "standard_error": float(error[-1]) if math.isfinite(error[-1]) else None,
            "quantiles": {
                str(q): float(x) for q, x in zip(_QUANTILES, result.quantiles(_QUANTILES)[:, -1], strict=True)
            },
        },
        "mean_regret": result.mean.tolist(),
        "standard_error": error.tolist() if np.isfinite(error).all() else None,
        "mean_pulls": result.pulls.mean(axis=0).tolist(),
        "runs_with_recovery": _recoveries(result),
        "notes": list(result.notes),
    }
