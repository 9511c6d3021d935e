"""``allocopt bound``: what no policy can beat at this n, with the instances on which it would pay for trying."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from allocopt.base.errors import InvalidOption
from allocopt.base.json_data import json_data, json_number
from allocopt.cli.app import File, Json, NoiseVariance, Theta, app, given_bandit, given_instance, print_json
from allocopt.cli.display import progress_line
from allocopt.cli.shell.outputs import Force, check_output
from allocopt.cli.shell.plain_text import new_console
from allocopt.cli.shell.tables import fitted_table
from allocopt.insight.bounds.bound import FiniteTimeBound, WorstRegret, finite_time_bound
from allocopt.insight.bounds.times_optimal import times_optimal
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs import regret
from allocopt.solving.solve import solve

__all__ = ["WHY_BELOW"]

WHY_BELOW = (
    "c·log n is how regret grows as n → ∞, no bound at this n: a policy may lie below it, but not below the bound "
    "without paying more than B at an alternative"
)
"""Why measured regret can be less than c·log n."""
_MOST_ENTRIES = 6  # of θ' that are shown


@app.command("bound")
def bound_command(
    file: File,
    rounds: Annotated[
        str, typer.Option("--horizon", "-n", help="n, up to 10^100: 1000000, 1e6 or 1e100.", show_default=False)
    ],
    worst_regret: Annotated[
        float | None, typer.Option(help="B: what a policy may pay on other instances.", show_default=False)
    ] = None,
    factor: Annotated[
        float | None,
        typer.Option(
            "--times-optimal",
            help="Instead: B = this factor times c(A,θ')·log n at each alternative θ'.",
            show_default=False,
        ),
    ] = None,
    theta: Theta = None,
    noise_variance: NoiseVariance = None,
    save: Annotated[Path | None, typer.Option(help="Write a proof file.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Prove what no policy can beat in n rounds, unless it pays more than B on an instance that is listed."""
    check_output("--save", save, force, file, theta)
    n = read_rounds(rounds)
    missing = "bound needs θ: give it in the file or with --theta"
    bandit = given_bandit(given_instance(file, theta), noise_variance, missing)
    with progress_line("searching"):
        found = finite_time_bound(bandit, n, _allowed(worst_regret, factor, n))
        check = found.verify()
        optimal = _optimal(bandit, n)
    if save is not None:
        found.save(save, overwrite=force)
    if as_json:
        print_json(_document(found, check.holds, optimal))
    else:
        _show(found, check.holds, optimal, save)
    if not check.holds:
        raise typer.Exit(1)


def read_rounds(text: str) -> int:
    """A number of rounds from 1000000, 1e6 or 1e100, exactly (1e100 as a double is another number)."""
    try:
        number = Fraction(text) if len(text) <= 200 and "/" not in text else None
    except (ValueError, ZeroDivisionError):
        number = None
    if number is None or number.denominator != 1 or number < 1:
        raise InvalidOption(f"--horizon: expected a whole number >= 1 such as 1000000 or 1e6, got {text[:60]!r}")
    return int(number)


def _allowed(worst_regret: float | None, factor: float | None, n: int) -> WorstRegret:
    if (worst_regret is None) == (factor is None):
        got = "none" if factor is None else "both"
        raise InvalidOption(f"--worst-regret, --times-optimal: expected one of the two, got {got}")
    if worst_regret is not None:
        return worst_regret
    assert factor is not None
    return times_optimal(factor, n)


def _optimal(bandit: LinearBandit, n: int) -> float:
    """c·log n."""
    return solve(regret(bandit)).value * math.log(n)


def _show(found: FiniteTimeBound, holds: bool, optimal: float, saved: Path | None) -> None:
    console = new_console()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("bound", f"{found.value:.10g}")
    table.add_row("c·log n", f"{optimal:.10g}")
    table.add_row("proven", "yes, in exact arithmetic" if holds else "NO")
    console.print(table)
    if found.regrets:
        console.print(_alternatives(found))
    console.print(found.sentence, markup=False, soft_wrap=True)
    console.print(f"({WHY_BELOW})", markup=False, soft_wrap=True)
    if saved is not None:
        console.print(f"proof written to {saved}", markup=False, soft_wrap=True)


def _alternatives(found: FiniteTimeBound) -> Table:
    levels = found.verify().levels
    worth = [w * k for w, k in zip(found.weights, levels, strict=True)]
    rows = []
    for j, place in enumerate(found.alternatives):
        entries = ", ".join(f"{x:.6g}" for x in place.theta[:_MOST_ENTRIES].tolist())
        more = ", …" if place.dim > _MOST_ENTRIES else ""
        best = ", ".join(str(i) for i in place.optimal_arms[:3].tolist())
        rows.append(
            [str(j), f"({entries}{more})", best, f"{found.regrets[j]:.6g}", f"{worth[j] / (sum(worth) or 1):.0%}"]
        )
    title = "the alternatives: same arms and noise, another θ"
    return fitted_table(("", "θ'", "best arm there", "B", "share of the bound"), rows, {1}, title=title)


def _document(found: FiniteTimeBound, holds: bool, optimal: float) -> dict[str, Any]:
    return {
        "value": found.value,
        "n": found.n,
        "sentence": found.sentence,
        "proven": holds,
        "c_log_n": json_number(optimal),
        "alternatives": [
            {
                "theta": json_data(place.theta),
                "exact": all(Fraction(x) == y for x, y in zip(place.theta.tolist(), exact, strict=True)),
                "optimal_arms": place.optimal_arms.tolist(),
                "regret": json_number(regret),
                "weight": weight,
            }
            for place, exact, regret, weight in zip(
                found.alternatives, found.parameters, found.regrets, found.weights, strict=True
            )
        ],
        "note": WHY_BELOW,
    }
