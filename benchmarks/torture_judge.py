"""The judgement of torture: what of an outcome is false, by the referee and by values that are known exactly."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from torture_exact import feasible
from torture_families import CHUNK, FAMILIES, Family
from torture_roads import BATCHED, SINGLE, Outcome, travel

try:
    from allocopt.certify.referee import judge

    HAVE_REFEREE = True
except ImportError:  # nothing can be judged then, and the command says so
    HAVE_REFEREE = False

STATUSES = ("CERTIFIED", "CONDITIONAL", "INACCURATE", "FAILED")
FALSE = (
    "false CERTIFIED", "false CONDITIONAL", "false bounds", "false Infeasible", "broken law", "uncaught", "warning",
)  # fmt: skip
"""What must not happen; "false bounds" are those of INACCURATE and FAILED."""

SHARES = {
    "solve_many": (50, 20), "solve_many, shared arms": (50, 25), "solve_many, bandits": (50, 10), "Allocator": (50, 60),
    "auto": (10, 20), "numpy": (10, 4), "interior-point": (10, 4), "active-set": (10, 4), "closed-form": (10, 2), "design": (10, 2),
    "frank-wolfe": (5, 2), "conic": (1, 1), "streamed": (10, 4), "Dask": (1, 1), "saved": (5, 3), "recertified": (10, 4),
    "laws": (5, 5), "sightings": (10, 4),
}  # fmt: skip
"""For each road: how many seeds of a chunk take it, and how often a chunk goes that way once every road was taken."""

_PROMISES_TOL = {*BATCHED, "auto", "numpy", "interior-point", "active-set", "streamed", "Dask", "saved", "laws"}
"""The roads on which an instance that is determined must end with a gap within the tolerance."""


def roads(family: Family) -> list[str]:
    """The roads that the programs of a family can take."""
    if family.kind == "regret":
        return [road for road in SHARES if road != "sightings"]
    if family.kind == "horizon":
        apart = {"solve_many, bandits"}
    elif family.kind == "g_optimal":
        apart = set(BATCHED)
    elif family.kind == "variances":  # batches of bandits know them, those of gaps do not
        apart = set(BATCHED) - {"solve_many, bandits"}
    elif family.kind in ("side_observations", "semi_bandit"):  # columns are arms or elements there: they have no units
        apart = {*BATCHED, "streamed", "Dask", "laws"}
    else:
        apart = {*BATCHED, "streamed", "Dask"}
    if family.kind != "side_observations":
        apart |= {"sightings"}
    return [road for road in SHARES if road not in apart]


class Task(NamedTuple):
    """The seeds of a chunk of a family, on one road."""

    family: str
    road: str
    chunk: int

    @property
    def seeds(self) -> range:
        """The first seeds of the chunk: all where road and referee are fast, fewer where they are slow."""
        d, k = FAMILIES[self.family].sizes(self.chunk)
        seeds = SHARES[self.road][0]
        return range(self.chunk * CHUNK, self.chunk * CHUNK + (seeds if d * k <= 60 else -(-seeds // 10)))


def road_of(family: Family, chunk: int) -> str:
    """The road of a chunk: each road once, then by their shares, in an order that is always the same."""
    able = roads(family)
    if chunk < len(able):
        return able[chunk]
    weights = np.array([SHARES[road][1] for road in able], dtype=np.float64)
    turn = np.random.default_rng([list(FAMILIES).index(family.name), chunk])
    return able[int(turn.choice(len(able), p=weights / weights.sum()))]


class Finding(NamedTuple):
    """Something false, and how to see it again."""

    what: str
    family: str
    road: str
    seed: int
    text: str


class Tally(NamedTuple):
    """What became of a task."""

    task: Task
    counts: Counter[str]
    findings: list[Finding]
    solving: float
    judging: float


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _take_cores(task: Task) -> None:
    """Streams on all cores in one task of four: for sets as small as these, starting threads takes longer than they work."""
    if task.road == "streamed" and len(_CORES) > 1:
        os.sched_setaffinity(0, {sorted(_CORES)[os.getpid() % len(_CORES)]} if task.chunk % 4 else _CORES)


def run(task: Task, family: Family, seeds: Sequence[int] | None = None) -> Tally:
    """Solve and judge."""
    started = time.perf_counter()
    _take_cores(task)
    outcomes = travel(family, task.road, task.seeds if seeds is None else seeds)
    between = time.perf_counter()
    counts: Counter[str] = Counter()
    findings = []
    for outcome in outcomes:
        if outcome.what == "unavailable":  # a method that does not take this program was not visited
            counts["unavailable"] += 1
            continue
        counts["instances"] += 1
        state = outcome.document["claim"]["status"] if outcome.document else outcome.what
        counts[state] += 1
        for what, text in wrong(outcome):
            counts[what] += what != state  # counted above if it is the state itself
            findings.append(Finding(what, task.family, task.road, outcome.seed, text))
        if family.determined and task.road in _PROMISES_TOL and outcome.what in ("solved", "gave up"):
            counts["determined"] += 1
            counts["determined, solved"] += state in ("CERTIFIED", "CONDITIONAL")
    return Tally(task, counts, findings, between - started, time.perf_counter() - between)


def wrong(outcome: Outcome) -> list[tuple[str, str]]:
    """Everything that is false about an outcome: one of `FALSE`, and the reason."""
    if outcome.what in ("uncaught", "warning"):
        return [(outcome.what, outcome.text)]
    if outcome.what == "Infeasible":
        can = outcome.program is None or feasible(outcome.program)  # of batches and allocators: they always are
        return [("false Infeasible", outcome.text)] if can else []
    found = [("broken law", outcome.broken)] if outcome.broken else []
    if outcome.document is None:
        return found
    status = outcome.document["claim"]["status"]
    text = _refuted(outcome.document["claim"], outcome.known) if status == "CERTIFIED" else ""
    text = text or _not_proven(outcome.document)
    if text:
        found.append((f"false {status}" if status in STATUSES[:2] else "false bounds", text))
    return found


def _not_proven(document: dict[str, Any]) -> str:
    try:
        verdict = judge(document)
    except Exception as error:  # it must judge whatever it is given
        return f"the referee raised {type(error).__name__}: {error}"
    if verdict.proven:
        return ""
    above = "inf" if verdict.upper is None else f"{float(verdict.upper):.12g}"
    claim = document["claim"]
    claimed = f"claimed [{claim['lower']:.12g}, {float(claim['upper']):.12g}]"
    return f"{claimed}, proven [{float(verdict.lower):.12g}, {above}]: {'; '.join(verdict.problems)}"


def _refuted(claim: dict[str, Any], known: Fraction | None) -> str:
    """Whether a value that a formula gives lies outside the claimed interval."""
    if known is None or Fraction(claim["lower"]) <= known <= Fraction(float(claim["upper"])):
        return ""
    return f"claimed [{claim['lower']!r}, {claim['upper']!r}], but the value is {float(known)!r}"


assert set(SHARES) == {*SINGLE, *BATCHED}
