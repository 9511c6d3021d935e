"""Small sets of arms forced into blocks of a few rows, so that there are many blocks and many passes; and what answers must have."""

from contextlib import contextmanager

import numpy as np
import pytest

import allocopt as ao
from allocopt.model.arms import blocks, opening, spanning, survey
from allocopt.solvers import streaming
from allocopt.solvers.settings import StreamingSettings

BLOCK = 7


@contextmanager
def in_blocks(rows=BLOCK, enter=1, keep=1, sample=2):
    """Every array is a large set, in blocks of a few rows; ``rows=None`` keeps the ordinary size of blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "LARGE", 0)
        patch.setattr(opening, "SHARED", 0)
        patch.setattr(opening, "MANY", 0)
        if rows is not None:
            patch.setattr(blocks, "block_rows", lambda *shape: rows)
        patch.setattr(survey, "KEEP", keep)
        patch.setattr(spanning, "SAMPLE", sample)
        patch.setattr(streaming, "DEFAULT", StreamingSettings(entering=enter))
        yield


@contextmanager
def never_in_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "LARGE", 10**15)
        yield


def unit_arms(dim, arms, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(arms, dim))
    theta = rng.normal(size=dim)
    return rows / np.linalg.norm(rows, axis=1)[:, None], theta / np.linalg.norm(theta)


def streamed_bandit(arms, theta, *more, **options):
    bandit = ao.LinearBandit(arms, theta, *more, **options)
    assert bandit._store is not None
    return bandit


def regret(bandit, **how):
    return ao.solve(ao.programs.regret(bandit), **how)


def same_interval(one, other):
    return (one.lower, one.upper) == (other.lower, other.upper)


def agree(one, other, slack=1e-12):
    """Two certified intervals for the same number intersect."""
    return one.lower <= other.upper * (1 + slack) and other.lower <= one.upper * (1 + slack)


def check_consistency(solution):
    """Allocation, multipliers, support and binding arms tell one story, and the value is the cost of the allocation."""
    program = solution.program
    finite = np.isfinite(solution.allocation)
    assert solution.allocation.shape == solution.multipliers.shape == (program.n_arms,)
    assert np.array_equal(np.flatnonzero(~finite), solution.optimal_arms)
    finite_alpha = np.where(finite, solution.allocation, 0.0)
    left = np.setdiff1d(np.flatnonzero(finite_alpha), solution.support)
    assert (finite_alpha[left] <= 1e-3 * finite_alpha.max()).all() and (finite_alpha[solution.support] > 0).all()
    assert (np.diff(solution.support) > 0).all() and (np.diff(solution.binding) > 0).all()
    assert np.isin(np.flatnonzero(solution.multipliers > 1e-6 * solution.multipliers.max()), solution.binding).all()
    cost = program.costs[finite] @ solution.allocation[finite]  # the value allows for the rounding of what was scaled
    assert cost * (1 - 1e-12) <= solution.value <= cost * (1 + 1e-10 + solution.stats["rounding"])
    # λ is scaled for its own allocation, the best over the two bounds: Σλ lies between them
    total = solution.multipliers.sum()
    assert solution.lower * (1 - 1e-9) <= total <= solution.upper * (1 + 1e-9)


def check_feasible(solution):
    """The allocation meets every constraint, computed here from the arms alone (one best arm, divided out by projection)."""
    bandit = solution.program.origin.bandit
    best = bandit.arms[bandit.optimal_arms[0]]
    others = np.linalg.svd(best[None, :])[2][1:]
    rows = bandit.arms @ others.T
    used = np.flatnonzero((solution.allocation > 0) & np.isfinite(solution.allocation))
    information = (rows[used] * solution.allocation[used, None]).T @ rows[used]
    norms = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
    gaps = bandit.gaps
    some = gaps > 0
    assert (norms[some] <= gaps[some] ** 2 / 2 * (1 + 1e-9)).all()
