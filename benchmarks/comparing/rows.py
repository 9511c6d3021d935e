"""What is measured and promised: instances, methods, floors, and a record for every row of the report."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass, field
from typing import Any

CAP = 120.0  # seconds that a peer may take on one instance
REPEAT_BELOW = 2.0  # seconds; a peer that takes longer is timed once
REPEATS = 3
REFERENCE_TOL = 1e-9  # gap of the lower bound that everything is compared with
FLOOR_SPEEDUP = 20.0
FLOOR_GAP = 1e-4
FLOOR_INSTANCES = ((20, 200), (20, 500))
FLOOR_PASSES = 20
FLOOR_LARGE = (20, 100_000)
FLOOR_LARGE_TOL = 1e-8
OURS: dict[str, dict[str, Any]] = {
    "allocopt active-set": {"method": "active-set"},
    "allocopt active-set, tol 1e-4": {"method": "active-set", "tol": 1e-4},
    "allocopt interior-point": {"method": "interior-point"},
    "allocopt frank-wolfe, tol 1e-3": {"method": "frank-wolfe", "tol": 1e-3},
    "allocopt conic (Clarabel)": {"method": "conic", "solver": "CLARABEL"},
}
"""By their names in the tables; what is passed to ``allocopt.solve`` (tol is 1e-8 where it is not named)."""
YARDSTICK = "allocopt active-set"
LIKE_FOR_LIKE = "allocopt active-set, tol 1e-4"


@dataclass
class Row:
    """One method on one instance, as judged by us."""

    dim: int
    arms: int
    name: str
    ours: bool
    seconds: float | None = None
    ratio: float | None = None
    """Seconds in units of our active-set's on the same instance in the same run."""
    true_gap: float | None = None
    violation: float | None = None
    status: str = ""
    """What the method says of itself, or why there is no answer."""
    times: list[float] = field(default_factory=list)


@dataclass
class LargeRow:
    """Active-set where nothing else runs."""

    dim: int
    arms: int
    seconds: float
    passes: int
    evaluations: int
    """Every call of `evaluate` on the whole problem, first guess and final tidying included."""
    one_pass: float
    gap: float
    value: float
    status: str


@dataclass
class ExampleRow:
    """One of our methods on the paper's example."""

    epsilon: float
    name: str
    seconds: float
    value: float
    gap: float
    status: str


@dataclass
class Floor:
    """A promise, what was measured, and whether it was kept."""

    promise: str
    met: bool | None
    """None where this run does not contain the instances."""
    measured: str


@dataclass
class Report:
    """Everything that is written."""

    command: str
    machine: dict[str, str]
    seconds: float
    rows: list[Row]
    large: list[LargeRow]
    example: list[ExampleRow]
    floors: list[Floor]


def say(message: str) -> None:
    """Progress, to stderr."""
    print(f"[{datetime.datetime.now():%H:%M:%S}] {message}", file=sys.stderr, flush=True)
