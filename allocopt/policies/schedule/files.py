"""Schedules in files: CSV that is written line by line, and a compact JSON document. Nothing is overwritten unasked."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from allocopt.base.atomic_files import whole_file
from allocopt.base.json_data import json_number

if TYPE_CHECKING:
    from allocopt.policies.schedule.schedule import Schedule

__all__ = ["schedule_document", "write_csv", "write_json"]

FORMAT = "allocopt-schedule"
VERSION = 1

MOST_RUNS = 100
"""A JSON document lists the runs themselves up to this many; the rule says what they are in any case."""

_RULES = {
    "explore-first": "one run per arm that is not free, by index; then one run per free arm, of equal lengths",
    "interleaved": "pass after pass, each plays once each, by index, every arm that is not free and was played fewer than "
    "'wanted' times in this schedule, and every free arm",
    "tracking": "always the arm with the smallest (N + 1/2)/w, ties by index: N its pulls in this schedule so far, w its "
    "'wanted' (free arms: an equal part of the rounds that are left)",
}


@contextlib.contextmanager
def new_file(path: str | PathLike[str], *, force: bool) -> Iterator[TextIO]:
    """A text file that appears complete or not at all; an existing one is replaced only with ``force``."""
    with whole_file(path, overwrite=force, what="the schedule", remedy="write force=True (--force)") as out:
        text = io.TextIOWrapper(out, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()


def write_csv(schedule: Schedule, path: str | PathLike[str], *, per_round: bool = False, force: bool = False) -> None:
    """One line per run (first_round, arm, pulls) or per round (round, arm), with the label where arms have them."""
    labels = schedule.labels
    head = ["round", "arm"] if per_round else ["first_round", "arm", "pulls"]
    with new_file(path, force=force) as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head if labels is None else [*head, "label"])
        rows = _rounds(schedule) if per_round else _runs(schedule)
        writer.writerows(rows if labels is None else ((*row, labels[row[1]]) for row in rows))


def _rounds(schedule: Schedule) -> Iterable[tuple[int, ...]]:
    return enumerate(schedule, start=1)


def _runs(schedule: Schedule) -> Iterable[tuple[int, ...]]:
    first = 1
    for arm, count in schedule.runs():
        yield first, arm, count
        first += count


def write_json(schedule: Schedule, path: str | PathLike[str], *, force: bool = False) -> None:
    """The document on one line per entry of the top level."""
    entries = [f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in schedule_document(schedule).items()]
    with new_file(path, force=force) as out:
        out.write("{\n" + ",\n".join(entries) + "\n}\n")


def schedule_document(schedule: Schedule) -> dict[str, Any]:
    """A schedule as JSON data; only arms that matter are listed, infinities are the string "inf"."""
    shown = np.flatnonzero((schedule.allocation > 0) | (schedule.played > 0) | (schedule.pulls > 0))
    free = set(schedule.free_arms.tolist())
    labels = schedule.labels
    check = schedule.check()
    arms = []
    for i in shown.tolist():
        row: dict[str, Any] = {
            "arm": i,
            "gap": float(schedule.losses[i]),
            "T": json_number(schedule.allocation[i]),
            "free": i in free,
            "played": int(schedule.played[i]),
            "wanted": "inf" if i in free else max(int(schedule.required[i]) - int(schedule.played[i]), 0),
            "pulls": int(schedule.pulls[i]),
            "regret": float(schedule.losses[i] * schedule.pulls[i]),
        }
        if labels is not None:
            row["label"] = labels[i]
        arms.append(row)
    few = list(islice(schedule.runs(), MOST_RUNS + 1))
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": schedule.solution.program.kind,
        "horizon": schedule.horizon,
        "length": schedule.length,
        "scale": schedule.scale,
        "rounding": schedule.rounding,
        "complete": schedule.complete,
        "regret": schedule.regret,
        "total_regret": schedule.total_regret,
        "solution": {
            "value": schedule.solution.value,
            "status": schedule.solution.status.name,
            "gap": json_number(schedule.solution.gap),
            "assumptions": [a.as_json() for a in schedule.solution.assumptions],
        },
        "constraints": {
            "met": check.met,
            "worst": json_number(check.worst),
            "finite_met": check.finite_met,
            "finite_worst": json_number(check.finite_worst),
        },
        "notes": list(schedule.notes),
        "order": schedule.order,
        "rule": _RULES[schedule.order],
        "arms": arms,
        "runs": [list(run) for run in few] if len(few) <= MOST_RUNS else None,
    }
