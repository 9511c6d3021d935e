"""The page of published constants: docs/constants.md, and the same rows as JSON data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from allocopt.base.json_data import json_number
from allocopt.insight.constants.constant import Number, Shares, Verdict
from allocopt.insight.constants.shipped import Proven
from allocopt.insight.documents import short_interval

__all__ = ["GROUPS", "comparison", "document", "interval_text", "page"]

GROUPS = {
    "regret": "Regret",
    "combinatorial": "Combinatorial bandits",
    "identification": "Pure exploration",
    "designs": "Optimal designs",
}
"""The parts of the page, by the name that rows give."""

_HEAD = """# Published constants

Numbers that papers, packages and their tests print, computed again. Each row has the instance in code, an interval that is
*proven* to hold its value, and a verdict. `make constants` writes this page and the proof files; the tests prove every file
again, with the certificate and with the referee (`certify/referee.py`, the standard library, in rationals). No solver runs then.

    allocopt constants                      # this table
    allocopt constants fws-linear-code      # one row, with its instance
    allocopt constants --check              # prove all of it again

```python
import allocopt as ao

row = ao.constants.proven(ao.constants.named("fws-linear-code"))
assert row.solution.lower > 222.2499 and row.solution.upper < 222.2500
assert row.finding.verdict.value == "differs"
program = row.constant.program()  # the instance, to be solved by whatever you like
assert ao.constants.check(row.constant) == []  # what is wrong with its proof file: nothing
```

Verdicts: **agrees**: every printed digit is right (a closed form: the value is in the interval). **rounding**: last digits are
wrong, by at most 1e-3 relatively. **differs**: it is not the value of this instance. **another instance**: it belongs to another
row. *Shares* of an allocation are judged by what it costs to play them, which the certificate bounds beside the optimum.
"""

_FOOT = """## What was read where

Read in the source itself: The End of Optimism?, CombinatorialBandits.jl, TensorZero, PICOS, SLSEdesign, and the repository of
FWS. Quoted at second hand, so check the source before you rely on what is said to be *printed*: Table 1 of the FWS preprint
(204.27), the text of AO-IDS (64), the β* of TTEI, the figure of Boyd & Vandenberghe, the shares of Atkinson, Donev & Tobias, and
the theorems of older papers. The proven intervals do not depend on it.

## Not on the page

Only numbers whose instance is fully given, with Gaussian noise. Looked at and left out: tests of TensorZero with a regulariser
(`reg0` > 0: another objective); instances with Bernoulli rewards; examples on random data that are not part of the source (JuMP's
tutorial on experiment design); papers and repositories that show curves or stopping times but print no constant (LinBAI.jl,
LinGapE, RAGE, pm-ids, best arms on feedback graphs, fair best arms).

Is a number missing, or one of yours judged wrongly? A row is one entry of a table in `allocopt/insight/constants/`: the source,
what it prints, and a function that makes the program. `make constants` does the rest.
"""


def page(rows: Iterable[Proven]) -> str:
    """The whole page as Markdown."""
    listed = list(rows)
    lines = [_HEAD, _summary(listed), ""]
    for group, title in GROUPS.items():
        own = [row for row in listed if row.constant.group == group]
        lines += [f"## {title}", "", "| | printed | proven | verdict |", "|---|---|---|---|"]
        lines += [_line(row) for row in own]
        lines.append("")
        for row in own:
            lines += _details(row)
    return "\n".join([*lines, _FOOT])


def _summary(rows: list[Proven]) -> str:
    counts = {verdict: sum(row.finding.verdict is verdict for row in rows) for verdict in Verdict}
    parts = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
    return f"{len(rows)} rows: {', '.join(parts)}."


def _line(row: Proven) -> str:
    name, text = row.constant.name, row.constant.text
    return f"| [{name}](#{name}) | {text} | {interval_text(row)} | {_shown(row.finding.verdict)} |"


def _shown(verdict: Verdict) -> str:
    return verdict.value if verdict in (Verdict.AGREES, Verdict.UNPRINTED) else f"**{verdict.value}**"


def _details(row: Proven) -> list[str]:
    constant = row.constant
    return [
        f"### {constant.name}",
        "",
        f"{constant.source}; {constant.place}.",
        "",
        f"- {constant.quantity}: printed {constant.text}; proven {interval_text(row)}; {comparison(row)}",
        f"- {constant.instance}",
        f"- {constant.remark}",
        "",
    ]


def interval_text(row: Proven) -> str:
    """The proven interval, rounded outwards."""
    return short_interval(row.solution.lower, row.solution.upper, digits=11)


def comparison(row: Proven) -> str:
    """The verdict in words, with the size of the difference."""
    printed, found = row.constant.printed, row.finding
    words = found.verdict.value
    if found.difference is None:
        return f"{words}."
    if isinstance(printed, Number):
        return f"{words}." if found.verdict is Verdict.AGREES else f"{words}, by {100 * found.difference:+.3g} %."
    if isinstance(printed, Shares) and printed.partial:
        return f"{words}; the share in the allocation that is proven optimal is {_shares(row)}."
    if math.isinf(found.difference):
        return f"{words}; the printed shares do not determine what is asked for."
    more = max(found.difference, 0.0)
    return f"{words}; the printed shares cost {f'{100 * more:.2g} %' if more > 1e-11 else 'nothing'} more than the optimum."


def _shares(row: Proven) -> str:
    assert isinstance(row.constant.printed, Shares)
    shares = row.solution.allocation / row.solution.allocation.sum()
    return ", ".join(f"{shares[arm]:.6f}" for arm in row.constant.printed.digits)


def document(row: Proven) -> dict[str, Any]:
    """A row as JSON data."""
    constant, found = row.constant, row.finding
    digits = constant.printed.digits if constant.printed is not None else None
    return {
        "name": constant.name,
        "group": constant.group,
        "source": constant.source,
        "place": constant.place,
        "quantity": constant.quantity,
        "printed": digits
        if digits is None or isinstance(digits, str)
        else {str(arm): text for arm, text in digits.items()},
        "instance": constant.instance,
        "program": row.solution.program.kind,
        "lower": row.solution.lower,
        "upper": row.solution.upper,
        "verdict": found.verdict.value,
        "difference": None if found.difference is None else json_number(found.difference),
        "remark": constant.remark,
        "belongs_to": constant.belongs_to,
    }
