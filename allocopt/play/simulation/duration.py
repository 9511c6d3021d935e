"""How long a simulation would take, said before it starts where that is very long."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from allocopt.base.errors import SlowWarning, warn_caller
from allocopt.base.machine import duration_text
from allocopt.play.simulation.runs import Experiment, play_chunk

__all__ = ["warn_if_long"]

_MANY = 10**10  # rounds in all from which the time is estimated
_TRIED = 20_000  # rounds that are played for it
_LONG = 600.0  # seconds
_OF_A_FUNCTION = (
    2e-6  # seconds that a round with a user's own function or policy takes at least: these are not called for it
)


def warn_if_long(experiment: Experiment, runs: int, processes: int) -> None:
    """Warn with `SlowWarning` where playing the runs would take more than ten minutes, from a short run of the same kind."""
    rounds = experiment.horizon * runs
    if rounds < _MANY or experiment.conditions.blockwise:
        return
    each = _seconds_a_round(experiment) if experiment.compiled else _OF_A_FUNCTION
    seconds = rounds * each / max(processes, 1)
    where = f" in each of {processes} processes" if processes > 1 else ""
    if seconds > _LONG:
        warn_caller(
            f"horizon: {runs} runs of {experiment.horizon} rounds will take about {duration_text(seconds)} "
            f"({1 / each:.2g} rounds a second{where}); a smaller horizon, fewer runs, or "
            "blockwise=True for policies that look seldom take less, and checkpoint= keeps what is done",
            SlowWarning,
        )


def _seconds_a_round(experiment: Experiment) -> float:
    """The time of a round in the second of two short runs; the first may compile."""
    short = replace(experiment, horizon=_TRIED, times=np.array([_TRIED]))
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        play_chunk(short, 0, 1)
        seconds = time.perf_counter() - started
    return seconds / _TRIED
