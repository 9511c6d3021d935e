r"""compare(): whether one policy had less regret than another, with a band for the difference and a test by ranks.

Two results with one seed met the same noise in the same rounds, so their difference is taken run by run, which removes most of the
noise. The mean is what theorems are about, but a few runs that settle on a wrong arm can make it: ranks do not feel by how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, IntArray, frozen, positive_number
from allocopt.model.tables import Table, Tabular, drawn
from allocopt.play.simulation.result import SimulationResult

__all__ = ["Comparison", "compare"]

_REPEATS = 2000  # of the bootstrap for the band: its width is then known to about 2 %
_MOST_NUMBERS = 2**22  # of the bootstrap at a time


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """What `compare` found; differences are the first policy's regret minus the second's, so negative is good for the first.

    Attributes
    ----------
    first, second : str
        The policies.
    times : array of int, shape (m,)
        The times that both have.
    runs : (int, int)
        How many runs each had.
    paired : bool
        Whether the runs had the same noise and were compared one by one.
    confidence : float
        Of the band, and of the verdict.
    difference : array, shape (m,)
        Mean difference at each of the times.
    standard_error : array, shape (m,)
        Its standard error.
    lower, upper : array, shape (m,)
        A band that holds the expected differences at all the times together.
    wins : float
        Share of the runs in which the first had less regret at the last time; a tie counts half.
    p_value : float
        That neither is better at the last time, two-sided, by ranks.
    median_difference : float
        Median of the differences at the last time.
    """

    first: str
    second: str
    times: IntArray
    """The times that both have."""
    runs: tuple[int, int]
    paired: bool
    """Whether the runs had the same noise and were compared one by one."""
    confidence: float
    difference: Array
    """Mean difference at each of the times."""
    standard_error: Array
    lower: Array
    upper: Array
    """A band that holds the expected differences at all the times together with this confidence (bootstrap of the largest t)."""
    wins: float
    """Share of the runs (pairs of runs) in which the first had less regret at the last time; a tie counts half."""
    p_value: float
    """That neither is better at the last time, two-sided: Wilcoxon's signed ranks; Mann and Whitney's if not paired."""
    median_difference: float
    """Median of the differences at the last time (of the medians, if not paired)."""

    @property
    def verdict(self) -> str:
        """One sentence.

        Examples
        --------
        >>> import allocopt as ao
        >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.95, 0.1]], [1, 0])
        >>> r1, r2 = (ao.simulate(name, bandit, 2000, 60, rng=0) for name in ("LinTS", "UCB"))
        >>> ao.compare(r1, r2).verdict
        'LinTS has less regret than UCB after 2000 rounds: by its mean and by ranks'
        """
        level = 1.0 - self.confidence
        by_mean = int(self.upper[-1] < 0) - int(self.lower[-1] > 0)
        by_rank = 0 if self.p_value >= level or self.wins == 0.5 else (1 if self.wins > 0.5 else -1)
        after = f"after {int(self.times[-1])} rounds"
        if not by_mean and not by_rank:
            return f"no difference between {self.first} and {self.second} is seen {after}"
        if by_mean and by_rank and by_mean != by_rank:
            better, other = (self.first, self.second) if by_mean > 0 else (self.second, self.first)
            return f"{better} has the smaller mean {after}, {other} the smaller regret in most runs"
        better, other = (self.first, self.second) if by_mean + by_rank > 0 else (self.second, self.first)
        seen = "by its mean and by ranks" if by_mean and by_rank else "by its mean" if by_mean else "by ranks"
        return f"{better} has less regret than {other} {after}: {seen}"

    def plot(self, **options: Any) -> Any:
        """`allocopt.plots.regret_difference`: the difference and its band against n. Returns a matplotlib Figure."""
        return drawn("regret_difference", self, **options)

    def _table(self) -> Table:
        """The difference at each of the times, the last ones first."""
        facts = {
            "verdict": self.verdict, "runs": f"{self.runs[0]} and {self.runs[1]}, {'paired' if self.paired else 'not paired'}",
            "wins": f"{self.wins:.0%}", "p-value": f"{self.p_value:.2g}", "band": f"{self.confidence:.0%}, for all times together",
        }  # fmt: skip
        columns = {
            "n": self.times, "difference": self.difference, "standard error": self.standard_error,
            "lower": self.lower, "upper": self.upper,
        }  # fmt: skip
        return Table(
            f"Regret of {self.first} minus that of {self.second}", facts, columns, range(len(self.times))[::-1]
        )

    def __repr__(self) -> str:
        return (
            f"Comparison({self.first!r} − {self.second!r}: {self.difference[-1]:.4g} in [{self.lower[-1]:.4g}, {self.upper[-1]:.4g}], "
            f"wins {self.wins:.0%}, p={self.p_value:.2g}, {'paired' if self.paired else 'not paired'}, runs={self.runs})"
        )


@spelled
def compare(first: SimulationResult, second: SimulationResult, *, confidence: float = 0.95) -> Comparison:
    r"""Compare the regret of two simulations on the same bandit.

    Parameters
    ----------
    first, second : SimulationResult
        Of the same bandit. With the same seed, and neither played block by block, they are paired run by run (as many as both
        have); else they are taken as independent.
    confidence : float
        Of the band, between 0 and 1.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.LinearBandit([[1, 0], [0, 1], [0.95, 0.1]], [1, 0])
    >>> r1, r2 = (ao.simulate(name, bandit, 2000, 60, rng=0) for name in ("LinTS", "UCB"))
    >>> c = ao.compare(r1, r2)
    >>> c.paired, bool(c.upper[-1] < 0), c.wins > 0.9
    (True, True, True)
    """
    for name, result in (("first", first), ("second", second)):
        if not isinstance(result, SimulationResult):
            raise InvalidOption(f"{name}: expected a SimulationResult, got a {type(result).__name__}")
        if result.runs < 2:
            raise InvalidOption(f"{name}: expected at least 2 runs, got {result.runs}")
    level = positive_number("confidence", confidence)
    if level >= 1:
        raise InvalidOption(f"confidence: expected a number between 0 and 1, got {confidence!r}")
    if not (
        np.array_equal(first.bandit.arms, second.bandit.arms) and np.array_equal(first.bandit.gaps, second.bandit.gaps)
    ):
        raise InvalidInstance("second: expected a simulation of the same bandit as the first, got one of another")
    times = np.intersect1d(first.times, second.times)
    if not len(times):
        raise InvalidOption("second: expected times in common with the first, got none")
    one, two = (r.regret[:, np.searchsorted(r.times, times)] for r in (first, second))
    paired = _same_noise(first, second)
    if paired:
        runs = min(len(one), len(two))
        samples: tuple[Array, ...] = (one[:runs] - two[:runs],)
        difference, error = samples[0].mean(axis=0), _error(samples[0])
    else:
        samples = one, two
        difference = one.mean(axis=0) - two.mean(axis=0)
        error = np.hypot(_error(one), _error(two))
    width = _width(samples, error, level) * error
    wins, p_value, median = _by_ranks(samples)
    return Comparison(
        first.policy, second.policy, times, (len(one), len(two)) if not paired else (runs, runs), paired, level,
        frozen(difference), frozen(error), frozen(difference - width), frozen(difference + width), wins, p_value, median,
    )  # fmt: skip


def _same_noise(first: SimulationResult, second: SimulationResult) -> bool:
    laws = {str(r.conditions.get("noise", "gaussian")) for r in (first, second)}
    return (
        first.seed == second.seed and len(laws) == 1 and not any(r.conditions.get("blockwise") for r in (first, second))
    )


def _error(sample: Array) -> Array:
    """Standard error of the mean at each time."""
    error: Array = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
    return error


def _width(samples: tuple[Array, ...], error: Array, level: float) -> float:
    """The quantile of max_t |deviation|/error, from means of the centred runs with random normal weights (multiplier bootstrap).

    Never below the quantile of Student's t with the runs that there are, which is what one time alone needs.
    """
    from scipy.stats import t as student  # here: it takes a second to load

    one_time = float(student.ppf(0.5 + level / 2, min(len(s) for s in samples) - 1))
    moving = error > 0
    if not moving.any():
        return one_time
    rng = np.random.default_rng(0)  # the same band each time it is asked for
    centred = [(s[:, moving] - s[:, moving].mean(axis=0)) / (len(s) * error[moving]) for s in samples]
    largest = []
    step = max(1, _MOST_NUMBERS // max(len(s) for s in samples))
    for begin in range(0, _REPEATS, step):
        size = min(step, _REPEATS - begin)
        parts: Any = sum(rng.standard_normal((size, len(c))) @ c for c in centred)
        largest.append(np.abs(parts).max(axis=1))
    return max(one_time, float(np.quantile(np.concatenate(largest), level)))


def _by_ranks(samples: tuple[Array, ...]) -> tuple[float, float, float]:
    """Share of wins, p-value, median difference, at the last time."""
    from scipy.stats import mannwhitneyu, wilcoxon

    if len(samples) == 1:
        last = samples[0][:, -1]
        wins = float(((last < 0) + 0.5 * (last == 0)).mean())
        p_value = float(wilcoxon(last, method="approx").pvalue) if (last != 0).any() else 1.0
        return wins, p_value, float(np.median(last))
    one, two = (s[:, -1] for s in samples)
    found = mannwhitneyu(one, two, method="asymptotic")
    wins = 1.0 - float(found.statistic) / (len(one) * len(two))
    p_value = float(found.pvalue) if np.ptp(np.concatenate([one, two])) > 0 else 1.0
    return wins, p_value, float(np.median(one) - np.median(two))
