"""``allocopt schedule``: a solved allocation as whole pulls in an order of play."""

from __future__ import annotations

import dataclasses
import enum
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.json_data import read_json
from allocopt.certify.proofs.reading import load_solution
from allocopt.certify.proofs.writing import FORMAT
from allocopt.cli.app import Json, NoiseVariance, Theta, app, given_bandit, given_instance, print_json
from allocopt.cli.display import progress_line
from allocopt.cli.shell.outputs import Force, check_output
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.tables import fitted_table
from allocopt.insight.instances.files import Instance, read_vector
from allocopt.model import programs
from allocopt.model.program import AllocationProgram
from allocopt.model.programs import horizon_at_level
from allocopt.model.solution import Solution
from allocopt.model.status_text import usable
from allocopt.policies.schedule.plan import fixed_number_of_rounds
from allocopt.policies.schedule.schedule import Schedule
from allocopt.solving.solve import solve

_MOST_ROWS = 20


class Order(enum.StrEnum):
    """Orders of play."""

    interleaved = "interleaved"
    explore_first = "explore-first"
    tracking = "tracking"


class Rounding(enum.StrEnum):
    """How real-valued pulls become whole ones."""

    ceiling = "ceiling"
    efficient = "efficient"
    listing = "listing"


class Program(enum.StrEnum):
    """What the schedule is for, where the file is an instance."""

    regret = "regret"
    best_arm = "best-arm"
    g_optimal = "g-optimal"


@app.command("schedule")
def schedule_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Instance (.json, .npz, .csv, .parquet, .npy) or a proof file of allocopt solve --save.",
            show_default=False,
        ),
    ],
    horizon: Annotated[int, typer.Option("--horizon", "-n", help="n, all rounds in all.", show_default=False)],
    order: Annotated[Order, typer.Option(help="Order of play.")] = Order.interleaved,
    program: Annotated[Program, typer.Option(help="What an instance is solved for.")] = Program.regret,
    theta: Theta = None,
    noise_variance: NoiseVariance = None,
    played: Annotated[str | None, typer.Option(help="Pulls so far, one per arm: 3,0,5 or a file.")] = None,
    level: Annotated[
        str | None,
        typer.Option(help="f_n (the paper's T_n, default), log (α·log n) or a number f (α·f/2).", show_default=False),
    ] = None,
    constant: Annotated[float, typer.Option(help="The universal constant in f_n.")] = 1.0,
    rounding: Annotated[
        Rounding | None,
        typer.Option(help="ceiling keeps every constraint, efficient the number of rounds.", show_default=False),
    ] = None,
    exploration: Annotated[
        int | None, typer.Option(help="Pulls of suboptimal arms, for --rounding efficient.", show_default=False)
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the schedule as .csv (runs) or .json.")] = None,
    per_round: Annotated[bool, typer.Option("--per-round", help="One line per round in the .csv.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Whole pulls and an order of play for n rounds, from an instance or a saved solution."""
    _check_save(save, force, per_round, file, played, theta)
    solution, labels = _solution(file, program, theta, noise_variance)
    schedule = Schedule.from_solution(
        solution,
        horizon,
        None if played is None else read_vector("--played", played),
        order=order.value,
        rounding=None if rounding is None else rounding.value,
        level=_level(level),
        constant=constant,
        exploration=exploration,
    )
    schedule = dataclasses.replace(schedule, labels=labels)
    if save is not None and save.suffix.lower() == ".json":
        schedule.to_json(save, force=force)
    elif save is not None:
        schedule.to_csv(save, per_round=per_round, force=force)
    if as_json:
        print_json(schedule.document())
    else:
        _show(schedule, save)
    if not usable(solution.status):
        raise typer.Exit(1)


def _check_save(save: Path | None, force: bool, per_round: bool, *sources: Path | str | None) -> None:
    """Refuse before anything is solved; not even --force may destroy what the schedule is made from."""
    check_output("--save", save, force, *sources, endings=(".csv", ".json"))
    if per_round and (save is None or save.suffix.lower() != ".csv"):
        raise InvalidOption("--per-round: only with --save and a .csv file")


def _level(text: str | None) -> str | float | None:
    if text is None or text in ("f_n", "log"):
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidOption(f"--level: expected f_n, log or a positive number, got {text!r}") from None


def _solution(
    file: Path, program: Program, theta: str | None, noise_variance: float | None
) -> tuple[Solution, tuple[str, ...] | None]:
    if _is_proof(file):
        for name, given in (("--theta", theta), ("--noise-variance", noise_variance)):
            if given is not None:
                raise InvalidOption(f"{name}: not with a proof file, which has its own")
        if program is not Program.regret:
            raise InvalidOption("--program: not with a proof file, which has its own")
        solution = load_solution(file)
        return solution, solution.labels
    instance = given_instance(file, theta)
    built = _build(instance, program, noise_variance)
    with progress_line("solving") as callback:
        return solve(built, callback=callback), instance.labels


def _is_proof(file: Path) -> bool:
    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    content: Any = read_json(file)
    return isinstance(content, dict) and content.get("format") == FORMAT


def _build(instance: Instance, program: Program, noise_variance: float | None) -> AllocationProgram:
    if program is Program.g_optimal:
        return programs.g_optimal(instance.arms)
    noise = noise_variance if noise_variance is not None else instance.noise_variance
    if instance.theta is not None:
        bandit = given_bandit(instance, noise_variance, "theta: expected θ, got none")
        return programs.best_arm(bandit) if program is Program.best_arm else programs.regret(bandit)
    if instance.gaps is None:
        raise InvalidInstance("the file has arms only: give θ with --theta (or gaps in a .json or .npz file)")
    if program is Program.best_arm:
        raise InvalidOption("--program: best-arm needs θ, but the file has gaps only")
    if not (noise is None or (isinstance(noise, float) and noise == 1.0)):
        raise InvalidOption("--noise-variance: only with θ; with gaps, use --level with f_n times it")
    checked = programs.horizon(instance.arms, instance.gaps, 3)
    return horizon_at_level(checked.features, checked.costs, 2.0, None)  # the level of the regret program


def _show(schedule: Schedule, save: Path | None) -> None:
    console = new_console()
    console.print(_arms_table(schedule))
    console.print(_totals(schedule))
    for note in schedule.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if save is not None:
        console.print(f"schedule written to {save}", markup=False, soft_wrap=True)


def _arms_table(schedule: Schedule) -> Table:
    shown = np.flatnonzero((schedule.allocation > 0) | (schedule.played > 0))
    regret = schedule.losses * schedule.pulls
    order = shown[np.lexsort((-schedule.pulls[shown], -regret[shown], np.isfinite(schedule.allocation[shown])))]
    rest = len(order) - _MOST_ROWS
    unit, labels = _unit(schedule), schedule.labels
    earlier = bool(schedule.played.any())
    names = ["arm", "gap" if unit == "regret" else "cost", "T", *(["played"] if earlier else []), "pulls", unit]
    rows = [
        [
            str(i),
            f"{schedule.losses[i]:.6g}",
            f"{schedule.allocation[i]:.6g}",
            *([str(schedule.played[i])] if earlier else []),
            str(schedule.pulls[i]),
            f"{regret[i]:.6g}",
            *(() if labels is None else (labels[i],)),
        ]
        for i in order[:_MOST_ROWS].tolist()
    ]
    if labels is not None:
        names.append("label")
    return fitted_table(
        names,
        rows,
        {len(names) - 1} if labels is not None else (),
        title=f"{schedule.order} schedule of {schedule.length} rounds",
        caption=f"and {rest} more (--json has all)" if rest > 0 else None,
    )


def _unit(schedule: Schedule) -> str:
    """Programs without gaps have costs."""
    origin = schedule.solution.program.origin
    return "regret" if origin.bandit is not None or origin.gaps is not None else "cost"


def _totals(schedule: Schedule) -> Table:
    solution, unit = schedule.solution, _unit(schedule)
    table = Table(show_header=False, box=None, pad_edge=False)
    free = schedule.pulls[schedule.free_arms].sum()
    table.add_row("rounds", f"{schedule.length}, of which exploration {schedule.pulls.sum() - free}")
    table.add_row(unit, f"{schedule.total_regret:.8g}" + (" (with what was played)" if schedule.played.any() else ""))
    c = _constant(solution)
    if c is not None:
        log_n = math.log(schedule.horizon)
        table.add_row("regret/log n", f"{schedule.total_regret / log_n:.8g}   (c = {c:.8g})")
    check = schedule.check()
    if fixed_number_of_rounds(solution.program):
        table.add_row("rounding", f"norms at most {check.worst:.6g} times those of the real-valued design")
        return table
    table.add_row("constraints", f"{_met(check.met)}, largest norm/radius {check.worst:.6g}")
    if len(schedule.free_arms):
        table.add_row(
            "", f"{_met(check.finite_met)} with finitely many plays of the optimal arms: {check.finite_worst:.6g}"
        )
    return table


def _met(met: bool) -> str:
    return "met" if met else "not met"


def _constant(solution: Solution) -> float | None:
    """c(A,θ), where the solution tells it."""
    origin = solution.program.origin
    if origin.kind == "regret":
        return solution.value
    return solution.value * 2.0 / origin.number if origin.kind == "horizon" and origin.number else None


__all__ = ["schedule_command"]
