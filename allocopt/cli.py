"""The command ``allocopt``. Exit codes: 0 certified or proven, 1 not so, 2 bad input, 130 interrupted."""

from __future__ import annotations

import enum
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from allocopt import __version__, instances, programs
from allocopt.bandit import LinearBandit
from allocopt.display import (
    enclosure_document,
    interval,
    progress_line,
    short_interval,
    solution_document,
    solution_tables,
)
from allocopt.errors import AllocoptError, Interrupted, InvalidInstance, InvalidOption
from allocopt.files import Instance, read_instance, read_vector
from allocopt.program import AllocationProgram, horizon_at_level
from allocopt.proof import load_solution
from allocopt.solution import Status
from allocopt.solve import solve
from allocopt.spanner import barycentric_spanner
from allocopt.validation import Array

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Optimal allocations in linear bandits: computed, proven, used.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
File = Annotated[Path, typer.Argument(help="Instance: .json, .npz, .csv, .parquet or .npy.", show_default=False)]


class Program(enum.StrEnum):
    """Which program to solve."""

    regret = "regret"
    best_arm = "best-arm"
    g_optimal = "g-optimal"
    horizon = "horizon"
    optimism = "optimism"


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"allocopt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(as_json: Json = False) -> None:
    """The paper's examples: c with its proven interval, beside what UCB and optimism pay."""
    rows = [
        _demo_row(epsilon, a) for a in (2.0, 5.0) for epsilon in (0.2, 0.05, 0.01, 1e-4, 1e-6) if epsilon < 1 / a**2
    ]
    prices = [_price_row(epsilon, a) for a in (1.0, 2.0) for epsilon in (1e-3, 1e-4, 1e-5, 1e-6)]
    if as_json:
        _print_json({"counter_example": rows, "price_of_optimism": prices})
        return
    console = Console()
    table = Table(title="A = {e1, e2, (1−ε, aε)}, θ = e1: regret c·log n, UCB pays Σ2/Δ, ratio = UCB/c")
    for name in ("a", "ε", "c", "proven interval", "no e2", "Σ2/Δ", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row['a']:g}", f"{row['epsilon']:g}", f"{row['c']:.8g}", escape(short_interval(row["lower"], row["upper"])),
            f"{row['without_e2']:.8g}", f"{row['ucb']:.8g}", f"{row['ratio']:.4g}",
        )  # fmt: skip
    console.print(table)
    table = Table(title="Price of optimism on {e1, e2, (1−ε, 8aε)}: what it pays at least, over c")
    for name in ("a", "ε", "c", "optimism", "proven interval", "price"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in prices:
        table.add_row(
            f"{row['a']:g}", f"{row['epsilon']:g}", f"{row['c']:.8g}", f"{row['optimism']:.8g}",
            escape(short_interval(row["lower"], row["upper"])), f"{row['price']:.6g}",
        )  # fmt: skip
    console.print(table)
    console.print(
        "Every interval is proven in exact arithmetic from an allocation and multipliers; see allocopt solve --save."
    )


def _demo_row(epsilon: float, a: float) -> dict[str, float]:
    bandit = instances.counter_example(epsilon, a)
    solution = solve(programs.regret(bandit))
    proven = solution.verify()
    without = solve(programs.regret(instances.counter_example(epsilon, a, informative=False)))
    ucb = float(np.sum(2.0 / bandit.gaps[bandit.suboptimal_arms]))
    return {
        "a": a, "epsilon": epsilon, "c": solution.value, "lower": proven.lower, "upper": proven.upper,
        "without_e2": without.value, "ucb": ucb, "ratio": ucb / solution.value,
    }  # fmt: skip


def _price_row(epsilon: float, a: float) -> dict[str, float]:
    bandit = instances.optimism_example(epsilon, a)
    c = solve(programs.regret(bandit)).value
    optimistic = solve(programs.optimism(bandit, a))
    proven = optimistic.verify()
    return {
        "a": a, "epsilon": epsilon, "c": c, "optimism": optimistic.value,
        "lower": proven.lower, "upper": proven.upper, "price": optimistic.value / c,
    }  # fmt: skip


@app.command("solve")
def solve_command(
    file: File,
    program: Annotated[Program, typer.Option(help="What to compute.")] = Program.regret,
    theta: Annotated[str | None, typer.Option(help="θ as 1,0,-2 or a file; overrides the instance's.")] = None,
    noise_variance: Annotated[float | None, typer.Option(help="σ² of the rewards (default 1).")] = None,
    horizon: Annotated[int | None, typer.Option("--horizon", "-n", help="n, for --program horizon.")] = None,
    width: Annotated[float, typer.Option(help="Confidence width a, for --program optimism.")] = 1.0,
    method: Annotated[
        str, typer.Option(help="auto, closed-form, interior-point, active-set, frank-wolfe or conic.")
    ] = "auto",
    solver: Annotated[str | None, typer.Option(help="CLARABEL, SCS or MOSEK, for --method conic.")] = None,
    tol: Annotated[float, typer.Option(help="Relative gap to certify.")] = 1e-8,
    max_seconds: Annotated[float | None, typer.Option(help="Stop then with the best answer so far.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write a proof file.")] = None,
    prove: Annotated[bool, typer.Option(help="Prove the interval in exact arithmetic.")] = True,
    as_json: Json = False,
) -> None:
    """Solve an instance and certify the answer."""
    instance = read_instance(file)
    if theta is not None:
        instance = Instance(
            instance.arms, read_vector("--theta", theta), None, instance.noise_variance, instance.labels
        )
    built = _build(instance, program, noise_variance, horizon, width)
    options = {} if solver is None else {"solver": solver}
    interrupted = False
    with progress_line("solving") as callback:
        try:
            solution = solve(built, method, tol, max_seconds, callback, **options)
        except Interrupted as stop:
            if stop.solution is None:
                raise
            solution, interrupted = stop.solution, True
    enclosure = solution.verify() if prove and not interrupted and solution.status is not Status.FAILED else None
    if save is not None:
        solution.save(save)
    if as_json:
        _print_json(solution_document(solution, enclosure))
    else:
        console = Console()
        for table in solution_tables(solution, enclosure):
            console.print(table)
        if save is not None:
            console.print(f"proof written to {save}", highlight=False, markup=False, soft_wrap=True)
    if interrupted:
        raise typer.Exit(130)
    if solution.status is not Status.CERTIFIED:
        raise typer.Exit(1)


def _build(
    instance: Instance, program: Program, noise_variance: float | None, n: int | None, width: float
) -> AllocationProgram:
    if program is Program.g_optimal:
        return programs.g_optimal(instance.arms)
    if instance.theta is None and instance.gaps is None:
        raise InvalidInstance("the file has arms only: give θ with --theta (or gaps in a .json or .npz file)")
    noise = noise_variance if noise_variance is not None else instance.noise_variance
    if program is Program.horizon and n is None:
        raise InvalidOption("--horizon: expected a number of rounds for --program horizon, got none")
    if instance.theta is None:
        return _build_from_gaps(instance.arms, instance.gaps, program, noise, n)
    bandit = LinearBandit(instance.arms, instance.theta, 1.0 if noise is None else noise, labels=instance.labels)
    if program is Program.horizon:
        assert n is not None
        return programs.horizon(bandit.arms, bandit.gaps, n)
    if program is Program.optimism:
        return programs.optimism(bandit, width)
    return programs.regret(bandit) if program is Program.regret else programs.best_arm(bandit)


def _build_from_gaps(arms: Array, gaps: Any, program: Program, noise: float | None, n: int | None) -> AllocationProgram:
    """Gaps that need not come from a θ: T_n(Δ), or the regret program itself (which is the level f_n = 2)."""
    if program not in (Program.horizon, Program.regret):
        raise InvalidOption(f"--program: {program.value} needs θ, but the file has gaps only")
    if noise not in (None, 1.0):
        raise InvalidOption("--noise-variance: only with θ; with gaps, multiply the result by it")
    checked = programs.horizon(arms, gaps, 3 if n is None else n)
    return checked if program is Program.horizon else horizon_at_level(checked.features, checked.costs, 2.0, None)


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(help="A proof file written by allocopt solve --save.", show_default=False)],
    precision: Annotated[
        int | None, typer.Option(help="Bits of the ball arithmetic (default: as many as needed).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a proof file in exact arithmetic, without any solver."""
    solution = load_solution(proof)
    enclosure = solution.verify(precision)
    claim = solution.stats["claim"]
    # the proof may be a little wider than the claim (both carry their own rounding), but not another interval
    slack = (claim["upper"] - claim["lower"]) + 1e-12 * claim["upper"]
    proven = bool(
        np.isfinite(enclosure.upper)
        and claim["lower"] - slack <= enclosure.lower
        and enclosure.upper <= claim["upper"] + slack
    )
    if as_json:
        claimed = {k: v if v != float("inf") else "inf" for k, v in claim.items()}
        _print_json({"proven": enclosure_document(enclosure), "claim": claimed, "holds": proven})
    else:
        program = solution.program
        console = Console(highlight=False)
        console.print(f"program   {program.kind}, {program.n_arms} arms in {program.dim} dimensions", markup=False)
        console.print(f"claimed   [{claim['lower']!r}, {claim['upper']!r}]", markup=False)
        console.print(f"proven    {interval(enclosure)}   (relative width {enclosure.gap:.2g})", markup=False)
        if program.origin.bandit is not None:
            console.print(f"optimal   arms {program.origin.bandit.optimal_arms.tolist()}", markup=False)
        for arm, gap in enclosure.tied_gaps.items():
            console.print(f"          arm {arm} is taken as optimal; its exact gap is {gap:.3g}", markup=False)
        for note in enclosure.notes:
            console.print(f"          {note}", markup=False)
        console.print(
            "the claim holds" if proven else "the claim does NOT hold: the file was changed or is wrong", markup=False
        )
    if not proven:
        raise typer.Exit(1)


@app.command()
def spanner(
    file: File,
    c: Annotated[float, typer.Option("--C", "-C", help="Coefficients may be this large (1 is the best).")] = 1.0,
    as_json: Json = False,
) -> None:
    """A barycentric spanner: arms such that every arm is a combination of them with coefficients in [−C, C]."""
    arms = read_instance(file).arms
    result = barycentric_spanner(arms, c)
    if as_json:
        _print_json({"indices": result.indices.tolist(), "C": result.C, "coefficients": result.coefficients.tolist()})
        return
    console = Console()
    console.print(
        f"{len(result.indices)} of {len(arms)} arms span the set; largest coefficient {result.C:.6g} (asked: {c:g})"
    )
    table = Table("position", "arm", "vector")
    for position, i in enumerate(result.indices.tolist()):
        vector = ", ".join(f"{x:.6g}" for x in arms[i][:8]) + (", …" if arms.shape[1] > 8 else "")
        table.add_row(str(position), str(i), f"({vector})")
    console.print(table)


def main() -> None:
    """Entry point: errors become one line on standard error, never a traceback."""
    try:
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()
    except AllocoptError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        typer.echo(f"error: cannot write the output: {error.strerror or error}", err=True)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # or the interpreter complains again at exit
        sys.exit(2)
    except MemoryError:
        typer.echo("error: not enough memory for this instance", err=True)
        sys.exit(2)


__all__ = ["app", "main"]

if __name__ == "__main__":
    main()
