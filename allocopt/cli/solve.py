"""``allocopt solve``: an instance from a file, solved, proven and saved."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from allocopt.base.errors import Interrupted, InvalidInstance, InvalidOption
from allocopt.base.validation import Array
from allocopt.cli.app import (
    File,
    Json,
    NoiseVariance,
    Theta,
    Verify,
    app,
    given_bandit,
    given_contexts,
    given_instance,
    print_json,
)
from allocopt.cli.display import progress_line, solution_tables
from allocopt.cli.shell.outputs import Force, check_output
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.running import say_interrupted
from allocopt.insight.documents import solution_document
from allocopt.insight.instances.files import Instance, read_side_observations
from allocopt.model import programs
from allocopt.model.bandit import LinearBandit
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import at_level
from allocopt.model.solution import Status
from allocopt.model.status_text import confirmed, usable
from allocopt.solving.solve import solve


class Program(enum.StrEnum):
    """Which program to solve."""

    regret = "regret"
    best_arm = "best-arm"
    g_optimal = "g-optimal"
    horizon = "horizon"
    optimism = "optimism"
    contextual = "contextual"
    top_m = "top-m"
    threshold = "threshold"
    transductive = "transductive"
    duelling = "duelling"
    semi_bandit = "semi-bandit"
    side_observations = "side-observations"


@app.command("solve")
def solve_command(
    file: File,
    program: Annotated[
        Program, typer.Option(metavar="NAME", help=f"What to compute: {', '.join(Program)}.")
    ] = Program.regret,
    theta: Theta = None,
    noise_variance: NoiseVariance = None,
    horizon: Annotated[int | None, typer.Option("--horizon", "-n", help="n, for --program horizon.")] = None,
    width: Annotated[float | None, typer.Option(help="Confidence width a, for --program optimism (default 1).")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="ε, for --program best-arm: any arm within ε of the best will do.")
    ] = None,
    m: Annotated[int | None, typer.Option("--m", help="How many arms to find, for --program top-m.")] = None,
    tau: Annotated[float | None, typer.Option(help="The threshold τ, for --program threshold.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="z, for --program contextual: at most z times its share of plays in each context."),
    ] = None,
    method: Annotated[str, typer.Option(help="auto, or one of those that `allocopt methods` lists.")] = "auto",
    solver: Annotated[str | None, typer.Option(help="CLARABEL, SCS or MOSEK, for --method conic.")] = None,
    tol: Annotated[float, typer.Option(help="Relative gap to certify.")] = 1e-8,
    max_seconds: Annotated[float | None, typer.Option(help="Stop then with the best answer so far.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write a proof file.")] = None,
    force: Force = False,
    verify: Verify = True,
    as_json: Json = False,
) -> None:
    """Solve an instance, certify the answer and prove it."""
    check_output("--save", save, force, file, theta)
    side = program is Program.side_observations
    instance = None if side else given_instance(file, theta)
    options: dict[str, Any] = {} if solver is None else {"solver": solver}
    interrupted = False
    with progress_line("solving", tol) as callback:
        asked = {"horizon": horizon, "width": width, "epsilon": epsilon, "m": m, "tau": tau, "budget": budget}
        built = (
            _side_observations(file, asked) if instance is None else _build(instance, program, noise_variance, asked)
        )
        try:
            solution = solve(built, method, tol, max_seconds, callback, **options)
        except Interrupted as stop:
            if stop.solution is None:
                raise
            say_interrupted("interrupted: what follows is the best answer so far")
            solution, interrupted = stop.solution, True
    enclosure = None
    if verify and not interrupted and solution.status is not Status.FAILED:
        try:
            with progress_line("proving"):
                enclosure = solution.verify()
        except KeyboardInterrupt:
            say_interrupted("interrupted: the answer is there, its proof is left out")
            interrupted = True
    if save is not None:
        solution.save(save, overwrite=force)
    if as_json:
        print_json(solution_document(solution, enclosure))
    else:
        console = new_console()
        for table in solution_tables(solution, enclosure, name=program.value):
            console.print(table)
        if save is not None:
            console.print(f"proof written to {save}", highlight=False, markup=False, soft_wrap=True)
    if interrupted:
        raise typer.Exit(130)
    if not usable(solution.status) or (enclosure is not None and not confirmed(solution, enclosure)):
        raise typer.Exit(1)


_NO_THETA = "theta: expected θ, got none"
_OPTIONS = {
    "horizon": Program.horizon, "width": Program.optimism, "epsilon": Program.best_arm, "m": Program.top_m,
    "tau": Program.threshold, "budget": Program.contextual,
}  # fmt: skip
"""The program that each option belongs to."""
_NEEDED = {"horizon": "a number of rounds", "m": "a number of arms", "tau": "a number"}


def _check_options(program: Program, asked: Mapping[str, Any]) -> None:
    """Options belong to programs."""
    for name, owner in _OPTIONS.items():
        if asked[name] is not None and owner is not program:
            raise InvalidOption(f"--{name}: only for --program {owner.value}, got --program {program.value}")
        if asked[name] is None and owner is program and name in _NEEDED:
            raise InvalidOption(f"--{name}: expected {_NEEDED[name]} for --program {program.value}, got none")


def _side_observations(file: Path, asked: Mapping[str, Any]) -> AllocationProgram:
    """Means and variances of what each arm shows, instead of arms."""
    _check_options(Program.side_observations, asked)
    means, variances, labels = read_side_observations(file)
    return programs.side_observations(means, variances, labels)


def _build(
    instance: Instance, program: Program, noise_variance: float | None, asked: Mapping[str, Any]
) -> AllocationProgram:
    """The program that was asked for, from what the file holds."""
    _check_options(program, asked)
    if program is Program.g_optimal:
        return programs.g_optimal(instance.arms)
    if instance.theta is None and instance.gaps is None:
        raise InvalidInstance("the file has arms only: give θ with --theta (or gaps in a .json or .npz file)")
    noise = noise_variance if noise_variance is not None else instance.noise_variance
    if instance.theta is None:
        return _build_from_gaps(instance.arms, instance.gaps, program, noise, asked["horizon"])
    if program is Program.contextual:
        return programs.contextual(given_contexts(instance, noise_variance, _NO_THETA), asked["budget"])
    if program is Program.transductive:
        if instance.items is None:
            raise InvalidInstance('the file has no items: --program transductive needs "items" in a .json or .npz file')
        given = instance.arms, instance.items, instance.theta
        return programs.transductive(*given, 1.0 if noise is None else noise, labels=instance.labels)
    bandit = given_bandit(instance, noise_variance, _NO_THETA)
    makers: dict[Program, Callable[[], AllocationProgram]] = {
        Program.regret: lambda: programs.regret(bandit),
        Program.horizon: lambda: _horizon(bandit, asked["horizon"]),
        Program.optimism: lambda: programs.optimism(bandit, 1.0 if asked["width"] is None else asked["width"]),
        Program.best_arm: lambda: programs.best_arm(bandit, 0.0 if asked["epsilon"] is None else asked["epsilon"]),
        Program.top_m: lambda: programs.top_m(bandit, asked["m"]),
        Program.threshold: lambda: programs.threshold(bandit, asked["tau"]),
        Program.duelling: lambda: programs.duelling(bandit),
        Program.semi_bandit: lambda: programs.semi_bandit(
            bandit.arms_in_memory, bandit.theta, bandit._one_variance("--program semi-bandit"), bandit.labels
        ),
    }
    return makers[program]()


def _horizon(bandit: LinearBandit, n: int) -> AllocationProgram:
    if bandit.variances is not None:
        bandit._one_variance("--program horizon")
    return programs.horizon(bandit.arms, bandit.gaps, n)


def _build_from_gaps(arms: Array, gaps: Any, program: Program, noise: Any, n: int | None) -> AllocationProgram:
    """Gaps that need not come from a θ: T_n(Δ), or the regret program itself (which is the level f_n = 2)."""
    if program not in (Program.horizon, Program.regret):
        raise InvalidOption(f"--program: {program.value} needs θ, but the file has gaps only")
    if not (noise is None or (isinstance(noise, float) and noise == 1.0)):
        raise InvalidOption("--noise-variance: only with θ; with gaps, multiply the result by it")
    if program is Program.regret:
        return at_level(arms, gaps, 2.0)
    assert n is not None
    return programs.horizon(arms, gaps, n)
