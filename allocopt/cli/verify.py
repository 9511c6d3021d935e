"""``allocopt verify``: a proof file checked without any solver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from allocopt.base.errors import InvalidOption, NotProven
from allocopt.base.json_data import json_data
from allocopt.certify.proofs.reading import load_solution
from allocopt.certify.proofs.writing import exact_enclosure
from allocopt.certify.referee import judge, read
from allocopt.cli.app import Json, app, print_json
from allocopt.cli.shell.plain_text import new_console
from allocopt.insight.bounds.reading import load_bound
from allocopt.insight.bounds.writing import FORMAT
from allocopt.insight.documents import enclosure_document, interval

_BALL_BITS = 256  # of the balls that decide where doubles do not
_MOST_WORK_IN_BALLS = 3e6  # k d² up to which they take a minute at most


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(help="A proof file written with --save.", show_default=False)],
    precision: Annotated[
        int | None, typer.Option(help="Bits of the ball arithmetic (default: as many as needed).")
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Ask the referee, which works in rationals and shares no code with the rest (slow)."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a proof file (of a solution or a bound) in exact arithmetic, without any solver."""
    if _of_a_bound(proof):
        if precision is not None or exact:
            raise InvalidOption("--precision, --exact: expected neither for the proof file of a bound")
        _verify_bound(proof, as_json)
        return
    try:
        solution = load_solution(proof)
    except NotProven as reason:
        if as_json:
            print_json(
                {
                    **dict.fromkeys(("proven", "claim", "wider", "assumptions")),
                    "holds": False,
                    "problems": [str(reason)],
                }
            )
        else:
            console = new_console(soft_wrap=True)
            console.print(str(reason), markup=False)
            console.print("the claim is NOT proven: the file was changed or is wrong", markup=False)
        raise typer.Exit(1) from None
    claim = dict(solution.stats["claim"])
    wider = claim.pop("wider")
    if exact:
        if precision is not None:
            raise InvalidOption("--precision: expected none with --exact, which works in rationals")
        enclosure = exact_enclosure(solution)  # which refuses what would take for ever
        proven, problems = _judged(proof)
    else:
        enclosure = solution.verify(precision)
        proven = claim["lower"] <= enclosure.lower and enclosure.upper <= claim["upper"]
        small = solution.program.n_arms * solution.program.dim**2 <= _MOST_WORK_IN_BALLS
        if not proven and precision is None and small:  # the margins of doubles may be all that is missing
            enclosure = solution.verify(_BALL_BITS)
            proven = claim["lower"] <= enclosure.lower and enclosure.upper <= claim["upper"]
        problems = []
    stored = json.loads(proof.read_text(encoding="utf-8-sig"))["assumptions"]
    if as_json:
        print_json(
            {"proven": enclosure_document(enclosure), "claim": json_data(claim), "wider": wider, "assumptions": stored,
             "holds": proven, "problems": problems}
        )  # fmt: skip
    else:
        program = solution.program
        console = new_console()
        console.print(f"program   {program.kind}, {program.n_arms} arms in {program.dim} dimensions", markup=False)
        console.print(f"claimed   [{claim['lower']!r}, {claim['upper']!r}], {claim['status']}", markup=False)
        console.print(f"proven    {interval(enclosure)}   (relative width {enclosure.gap:.2g})", markup=False)
        if program.origin.answer is not None:
            console.print(f"answer    arm {program.origin.answer}, ε = {program.origin.number!r}", markup=False)
        elif program.origin.bandit is not None:
            console.print(f"optimal   arms {program.origin.bandit.optimal_arms.tolist()}", markup=False)
        for problem in enclosure.problems:
            console.print(f"          {problem}", markup=False)
        for assumption in stored:
            console.print(f"assumed   {assumption['text']}", markup=False)
        for problem in problems:
            console.print(f"          {problem}", markup=False)
        if wider:
            console.print("          the claim is wider than what is proven", markup=False)
        holds = "the claim holds" + (", under what is assumed" if stored else "")
        console.print(holds if proven else "the claim is NOT proven: the file was changed or is wrong", markup=False)
    if not proven:
        raise typer.Exit(1)


def _judged(proof: Path) -> tuple[bool, list[str]]:
    """What the referee says of a file, and why not."""
    try:
        verdict = judge(read(proof.read_text(encoding="utf-8-sig")))
    except (ValueError, RecursionError) as error:  # it reads more strictly
        return False, [str(error)]
    return verdict.proven, verdict.problems


def _of_a_bound(proof: Path) -> bool:
    """Whether a file says that it is the proof of a finite-time bound; whatever is wrong with it is for the reader to say."""
    try:
        document = json.loads(proof.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def _verify_bound(proof: Path, as_json: bool) -> None:
    """`load_bound` proves the claim or refuses it."""
    console = new_console(soft_wrap=True)
    try:
        bound = load_bound(proof)
    except NotProven as reason:
        if as_json:
            print_json({"holds": False, **dict.fromkeys(("value", "n", "sentence")), "problems": [str(reason)]})
        else:
            console.print(str(reason), markup=False)
            console.print("the claim is NOT proven: the file was changed or is wrong", markup=False)
        raise typer.Exit(1) from None
    if as_json:
        print_json({"holds": True, "value": bound.value, "n": bound.n, "sentence": bound.sentence, "problems": []})
    else:
        console.print(bound.sentence, markup=False)
        console.print("the claim holds", markup=False)
