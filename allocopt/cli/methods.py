"""``allocopt methods``: every method, what it can do, and what it can be tuned by."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer
from rich.table import Table

from allocopt.base.errors import InvalidOption
from allocopt.base.validation import did_you_mean
from allocopt.cli.app import Json, app, print_json
from allocopt.cli.shell.plain_text import new_console
from allocopt.solvers.methods import METHODS, Method


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Only this method.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """The methods: what each can do, and its settings with defaults and meanings."""
    if name is not None and name not in METHODS:
        raise InvalidOption(f"method: expected one of {', '.join(METHODS)}, got {name!r}{did_you_mean(name, METHODS)}")
    chosen = [METHODS[name]] if name is not None else list(METHODS.values())
    if as_json:
        print_json({"methods": [_document(method) for method in chosen]})
        return
    console = new_console()
    console.print(_capabilities(chosen))
    for method in chosen:
        console.print()
        console.print(f"[bold]{method.name}[/bold]: {method.summary}", highlight=False)
        if method.options:
            console.print(_settings(method))
    console.print("\nIn Python: solve(program, method, name=value), or settings=a record.", highlight=False)


def _capabilities(chosen: list[Method]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("method", "bounds", "rows", "starts", "at most", "arms are"):
        table.add_column(column)
    for method in chosen:
        arms = "in blocks" if method.block_by_block else "in memory"
        arms += f" (in blocks: {method.by_blocks})" if method.by_blocks else ""
        most = "any" if method.most_arms is None else f"{method.most_arms:,}"
        table.add_row(method.name, _yes(method.bounds), _yes(method.constraints), _yes(method.starts), most, arms)
    table.caption = "bounds and rows (linear constraints): on the allocation; starts: from a solution"
    table.caption_justify = "left"
    return table


def _yes(can: bool) -> str:
    return "yes" if can else "no"


def _settings(method: Method) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    for setting in method.settings.listed():
        default = "its own" if dataclasses.is_dataclass(setting.default) else _number(setting.default)
        table.add_row(f"  {setting.name}", default, setting.meaning)
    return table


def _number(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _document(method: Method) -> dict[str, Any]:
    """A row of the table as JSON data."""
    return {
        "name": method.name,
        "summary": method.summary,
        "bounds": method.bounds,
        "constraints": method.constraints,
        "starts": method.starts,
        "most_arms": method.most_arms,
        "block_by_block": method.block_by_block,
        "by_blocks": method.by_blocks,
        "record": method.settings.__name__,
        "settings": [dataclasses.asdict(setting) for setting in method.settings.listed()],
    }
