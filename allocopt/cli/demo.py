"""``allocopt demo``: the paper's examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from allocopt.cli.app import Json, app, print_json
from allocopt.cli.shell.plain_text import new_console
from allocopt.insight import instances
from allocopt.insight.documents import short_interval
from allocopt.model import programs
from allocopt.model.solution import Solution, Status
from allocopt.solving.solve import solve

_INTRODUCTION = (
    "In a linear bandit, playing the arm x shows ⟨x, θ⟩ plus noise, and costs its gap Δ to the best arm. No reasonable policy "
    "has less regret than c(A,θ)·log n in the end. c is the value of a convex program, which allocopt solves and proves.",
    "The paper's example has three arms: e1 is the best one, (1−ε, aε) is hardly worse, and e2 looks hopeless, but tells the "
    "two apart. Optimal play uses e2, at the price c = 2a² whatever ε is. Whoever stops playing e2 because it looks bad, as "
    "optimism does, pays about 2/ε instead.",
)


@app.command()
def demo(as_json: Json = False) -> None:
    """The paper's examples: c with its proven interval, beside what UCB and optimism pay."""
    console = new_console()
    if not as_json:
        console.print("\n\n".join(_INTRODUCTION), highlight=False, markup=False)
    rows = [
        _demo_row(epsilon, a) for a in (2.0, 5.0) for epsilon in (0.2, 0.05, 0.01, 1e-4, 1e-6) if epsilon < 1 / a**2
    ]
    prices = [_price_row(epsilon, a) for a in (1.0, 2.0) for epsilon in (1e-3, 1e-4, 1e-5, 1e-6)]
    if as_json:
        print_json({"counter_example": rows, "price_of_optimism": prices})
        return
    console.print("\n1. Arms {e1, e2, (1−ε, aε)}, θ = e1: c, and what others pay per log n", highlight=False)
    table = Table()
    for name in ("a", "ε", "c", "proven interval", "c, no e2", "UCB", "UCB/c"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row['a']:g}", f"{row['epsilon']:g}", f"{row['c']:.8g}", escape(short_interval(row["lower"], row["upper"])),
            f"{row['without_e2']:.8g}", f"{row['ucb']:.8g}", f"{row['ratio']:.4g}",
        )  # fmt: skip
    console.print(table)
    console.print("\n2. Price of optimism of squared width a·log n: arms {e1, e2, (1−ε, 8aε)}", highlight=False)
    table = Table()
    for name in ("a", "ε", "c", "optimism", "proven interval", "over c"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in prices:
        table.add_row(
            f"{row['a']:g}", f"{row['epsilon']:g}", f"{row['c']:.8g}", f"{row['optimism']:.8g}",
            escape(short_interval(row["lower"], row["upper"])), f"{row['price']:.6g}",
        )  # fmt: skip
    console.print(table)
    console.print(
        "Every interval is proven in exact arithmetic from an allocation and multipliers.\n"
        "Next: allocopt solve --help, and the README.",
        highlight=False,
    )
    for row in (*rows, *prices):
        if row["status"] != Status.CERTIFIED.name:
            said = "; ".join(a["text"] for a in row["assumptions"])
            console.print(f"a = {row['a']:g}, ε = {row['epsilon']:g} is {row['status']}: {said}", markup=False)


def _demo_row(epsilon: float, a: float) -> dict[str, Any]:
    bandit = instances.counter_example(epsilon, a)
    solution = solve(programs.regret(bandit))
    proven = solution.verify()
    without = solve(programs.regret(instances.counter_example(epsilon, a, informative=False)))
    ucb = float(np.sum(2.0 / bandit.gaps[bandit.suboptimal_arms]))
    return {
        "a": a, "epsilon": epsilon, "c": solution.value, "lower": proven.lower, "upper": proven.upper,
        "without_e2": without.value, "ucb": ucb, "ratio": ucb / solution.value, **_standing(solution, without),
    }  # fmt: skip


def _price_row(epsilon: float, a: float) -> dict[str, Any]:
    bandit = instances.optimism_example(epsilon, a)
    least = solve(programs.regret(bandit))
    c = least.value
    optimistic = solve(programs.optimism(bandit, a))
    proven = optimistic.verify()
    return {
        "a": a, "epsilon": epsilon, "c": c, "optimism": optimistic.value,
        "lower": proven.lower, "upper": proven.upper, "price": optimistic.value / c, **_standing(least, optimistic),
    }  # fmt: skip


def _standing(*solutions: Solution) -> dict[str, Any]:
    """The status of the least certain of them, and what they assume together."""
    order = list(Status)  # the most certain first
    return {
        "status": max((s.status for s in solutions), key=order.index).name,
        "assumptions": [a.as_json() for s in solutions for a in s.assumptions],
    }
