"""Who plays, and on what: a fixed list. Instances with ``held_out`` are such that no policy of this package was tuned on them.

Tuned on, or at least looked at while `OptimalTracking` and `AllocationTracking` were made: the instances of REGRET.md and
those that the failures in docs/optimal-tracking.md were found on. Everything else is held out, and stays so: whoever tunes on a
held-out instance moves it to the other half and adds a new one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from allocopt import LinearBandit, instances

__all__ = ["CLAIM_OPTIMALITY", "DRAWN", "INSTANCES", "POLICIES", "Entry"]

POLICIES = (
    "OptimalTracking",
    "AllocationTracking",
    "LinTS",
    "AOIDS",
    "AOIDS:radius=log,correction=ucb",
    "SOLID",
    "OSSB",
    "OAM",
    "E4",
    "E4:exploration=theorem,gamma=0.5",
    "EndOfOptimism",
    "LinUCB",
    "PhasedElimination",
    "UCB",
)

CLAIM_OPTIMALITY = (
    "OptimalTracking",
    "AllocationTracking",
    "AOIDS",
    "SOLID",
    "OSSB",
    "OAM",
    "E4:exploration=theorem,gamma=0.5",
    "EndOfOptimism",
)


DRAWN = tuple(
    p for p in POLICIES if p not in ("EndOfOptimism", "PhasedElimination", "UCB", "E4:exploration=theorem,gamma=0.5")
)
"""In the profiles, which can tell about ten lines apart; the tables have all."""


class Entry(NamedTuple):
    """One instance of the arena."""

    name: str
    group: str
    held_out: bool
    bandit: LinearBandit


def _with_copies(jitter: float, copies: int = 30) -> LinearBandit:
    """The paper's example with so many copies of the rival, moved by random vectors of this size."""
    base = instances.counter_example(0.05)
    moves = jitter * np.random.default_rng(30).standard_normal((copies, 2))
    return LinearBandit(
        np.vstack([base.arms[:2], base.arms[2] - np.abs(moves) * (1.0, 0.0) + moves * (0.0, 1.0)]), base.theta
    )


def _rank_deficient(base: LinearBandit, width: int, seed: int) -> LinearBandit:
    """The same game with the arms in a random subspace of a larger space."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, base.dim)))[0]
    return LinearBandit(base.arms @ basis.T, basis @ base.theta)


def _soare_turned(dim: int, omega: float) -> LinearBandit:
    """Soare's arms with θ towards the last one: the arm that was a near tie is the best."""
    base = instances.soare(dim, omega)
    return LinearBandit(base.arms, base.theta[0] * base.arms[-1])


def _three_best() -> LinearBandit:
    arms = [[1, 0, 0], [1, 0.5, 0], [1, 0, 0.5], [0, 1, 0], [0, 0, 1], [0.8, 0.3, 0.3]]
    return LinearBandit(arms, [1, 0, 0])


def _differences() -> LinearBandit:
    """e_j − e_m in R⁴: rank 3."""
    arms = [np.eye(4)[j] - np.eye(4)[m] for j in range(4) for m in range(j)]
    return LinearBandit(arms, [0.1, 0.25, 0.5, 0.7])


def _list() -> tuple[Entry, ...]:
    i = instances
    seen, new = False, True
    rows = (
        ("example ε=.2", "paper", seen, i.counter_example(0.2)),
        ("example ε=.05", "paper", seen, i.counter_example(0.05)),
        ("example ε=.01", "paper", seen, i.counter_example(0.01)),
        ("example ε=.1", "paper", new, i.counter_example(0.1)),
        ("example ε=.02, a=4", "paper", new, i.counter_example(0.02, 4.0)),
        ("optimism ε=.02", "paper", new, i.optimism_example(0.02)),
        ("example d=5, ε=.05", "paper in R^d", seen, i.counter_example(0.05, dim=5)),
        ("example d=3, ε=.03", "paper in R^d", seen, i.counter_example(0.03, dim=3)),
        ("example d=3, ε=.15", "paper in R^d", new, i.counter_example(0.15, dim=3)),
        ("example d=8, ε=.1", "paper in R^d", new, i.counter_example(0.1, dim=8)),
        ("random (5, 20)", "random", seen, i.random_unit(5, 20)),
        ("random (3, 6)", "random", seen, i.random_unit(3, 6)),
        ("random (2, 5)", "random", new, i.random_unit(2, 5, seed=17)),
        ("random (4, 12)", "random", new, i.random_unit(4, 12, seed=18)),
        ("random (8, 30)", "random", new, i.random_unit(8, 30, seed=19)),
        ("random (10, 50)", "random", new, i.random_unit(10, 50, seed=20)),
        ("circle 30", "many arms", seen, i.circle(30)),
        ("circle 200", "many arms", seen, i.circle(200)),
        ("sphere (3, 200)", "many arms", seen, i.random_unit(3, 200)),
        ("sphere (6, 200)", "many arms", seen, i.random_unit(6, 200)),
        ("circle 90", "many arms", new, i.circle(90)),
        ("sphere (4, 150)", "many arms", new, i.random_unit(4, 150, seed=21)),
        ("30 copies of a rival", "clusters and copies", seen, _with_copies(0.0)),
        ("30 jittered copies", "clusters and copies", seen, _with_copies(0.01)),
        ("cluster of 31 in R³", "clusters and copies", seen, i.clustered(3, 31, 1, 0.1)),
        ("clusters (4, 24)", "clusters and copies", new, i.clustered(4, 24, 4, 0.05, seed=22)),
        ("clusters (5, 40)", "clusters and copies", new, i.clustered(5, 40, 3, 0.2, seed=23)),
        ("12 jittered copies", "clusters and copies", new, _with_copies(0.03, 12)),
        ("Soare d=2, ω=.01", "Soare", seen, i.soare(2, 0.01)),
        ("Soare d=4, ω=.01", "Soare", seen, i.soare(4, 0.01)),
        ("Soare d=2, ω=.1", "Soare", new, i.soare(2, 0.1)),
        ("Soare d=5, ω=.05", "Soare", new, i.soare(5, 0.05)),
        ("Soare d=3, ω=.05, turned", "Soare", new, _soare_turned(3, 0.05)),
        ("paths 3 × 3", "graphs", seen, i.grid_paths(3, 3)),
        ("paths 2 × 4", "graphs", new, i.grid_paths(2, 4, seed=24)),
        ("spectral grid 16", "graphs", new, i.spectral(16, 4, "grid", seed=25)),
        ("spectral path 24", "graphs", new, i.spectral(24, 5, "path", seed=26)),
        ("two best of four", "ties", seen, LinearBandit([[1, 0], [1, 1], [0, 1], [0.9, 0.2]], [1, 0])),
        ("square, two best", "ties", new, LinearBandit([[1, 1], [1, -1], [-1, 1], [-1, -1]], [0.5, 0.0])),
        ("three best in R³", "ties", new, _three_best()),
        ("example in R⁵", "rank-deficient", seen, _rank_deficient(i.counter_example(0.1), 5, 1)),
        ("random (3, 8) in R⁹", "rank-deficient", new, _rank_deficient(i.random_unit(3, 8, seed=27), 9, 28)),
        ("differences of four", "rank-deficient", new, _differences()),
        ("orthogonal 0, .1, .2, .5", "tiny gaps", seen, i.finite_armed([0, 0.1, 0.2, 0.5])),
        ("orthogonal 0, .01, .4", "tiny gaps", new, i.finite_armed([0, 0.01, 0.4])),
        ("near ties (4, 10), .02", "tiny gaps", new, i.near_ties(4, 10, 0.02, seed=29)),
        ("near ties (3, 8), .001", "tiny gaps", new, i.near_ties(3, 8, 0.001, seed=30)),
        ("hypercube 4", "others", new, i.hypercube(4, 0.2)),
        ("equal gaps (4, 12)", "others", new, i.equal_gaps(4, 12, 0.3, seed=31)),
    )  # fmt: skip
    return tuple(Entry(*row) for row in rows)


INSTANCES = _list()
assert len({entry.name for entry in INSTANCES}) == len(INSTANCES) >= 40
assert math.isclose(sum(e.held_out for e in INSTANCES) / len(INSTANCES), 0.5, abs_tol=0.1)
