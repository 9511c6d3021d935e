r"""Programs in which playing an arm shows more, or other things, than its own reward: side observations and semi-bandits.

Both are programs whose features are matrices F_i, with costs Δ_i and targets x_j − x*: what x* shows of itself may be less than x*.
Rows are unit vectors, so H is diagonal. Costs and radii are gaps, rounded to doubles: these doubles are what is proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array
from allocopt.base.errors import InvalidInstance
from allocopt.base.validation import Array, ArrayLike, in_range, positive_number, vector
from allocopt.model.bandit import LinearBandit, arm_matrix, checked_labels
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.programs.learnable import check_learnable

__all__ = ["semi_bandit", "side_observations"]

_MOST_ENTRIES = 10**8  # of the array of all rows: 0.8 GB


def side_observations(means: ArrayLike, variances: ArrayLike, labels: Sequence[str] | None = None) -> AllocationProgram:
    r"""Regret where playing arm i shows arm j with variance σ²_ij (Wu, György & Szepesvári, NeurIPS 2015).

    Minimise Σ α_i Δ_i subject to ||e_j − e_*||²_{H^-1} <= Δ_j²/2 for the suboptimal arms j, H = diag(Σ_i α_i/σ²_ij). Where the best
    arm shows itself that is the linear program Σ_i α_i/σ²_ij >= 2/Δ_j².

    Parameters
    ----------
    means : array_like, shape (k,)
        The mean of every arm; the best one must be unique.
    variances : array_like, shape (k, k)
        σ²_ij > 0, inf where playing i does not show j.
    labels : sequence of str, optional
        A name for each arm.

    Examples
    --------
    Arm 2 shows everything at the price of its gap, 1/2; without it arm 1 has to be played itself.

    >>> import allocopt as ao, numpy as np
    >>> alone = np.where(np.eye(3) > 0, 1.0, np.inf)
    >>> round(ao.solve(ao.programs.side_observations([1, 0.75, 0.5], alone)).value, 6)
    12.0
    >>> alone[2] = 1.0
    >>> round(ao.solve(ao.programs.side_observations([1, 0.75, 0.5], alone)).value, 6)
    10.0
    """
    means = vector("means", means, InvalidInstance)
    k = len(means)
    seen = _checked_variances(variances, k)
    bandit = LinearBandit(np.eye(k), means)  # its gaps are exact to the last bits
    check_learnable(bandit.arms, bandit.gaps)
    best = _one_best(bandit)
    return _program(bandit, best, np.isfinite(seen), seen, np.eye(k), labels)


def semi_bandit(
    arms: ArrayLike, theta: ArrayLike, noise_variance: float = 1.0, labels: Sequence[str] | None = None
) -> AllocationProgram:
    r"""Regret of a combinatorial semi-bandit: arms are sets (0/1 vectors), and playing x shows the reward of each of its elements.

    Minimise Σ_x η_x Δ_x subject to Σ_e (x_e − x*_e)²/t_e <= Δ_x²/(2σ²) for all suboptimal x, with t_e = Σ_{x∋e} η_x. The elements
    of x* are seen for nothing, so Σ is over e ∈ x∖x* (Combes, Talebi, Proutière & Lelarge 2015).

    Parameters
    ----------
    arms : array_like, shape (k, d)
        Rows of zeros and ones.
    theta : array_like, shape (d,)
        The mean reward of every element.
    noise_variance : float
        σ² of the noise of every element.
    labels : sequence of str, optional
        A name for each arm.

    Examples
    --------
    Perfect matchings of K_{2,2}, 1 for the edges of one of them (a known value, for σ² = 1/2):

    >>> import allocopt as ao
    >>> p = ao.programs.semi_bandit([[1, 0, 0, 1], [0, 1, 1, 0]], [1, 0, 0, 1], noise_variance=0.5)
    >>> round(ao.solve(p).value, 6)
    1.0
    """
    sets = arm_matrix(arms)
    wrong = np.argwhere((sets != 0) & (sets != 1))
    if len(wrong):
        i, e = wrong[0].tolist()
        raise InvalidInstance(
            f"arms: expected zeros and ones, the elements of each arm, but entry [{i}, {e}] is {float(sets[i, e])!r}"
        )
    noise = positive_number("noise_variance", noise_variance, InvalidInstance)
    bandit = LinearBandit(sets, theta, noise)
    check_learnable(sets, bandit.gaps)
    best = _one_best(bandit)
    return _program(bandit, best, sets > 0, np.full(sets.shape, noise), sets, labels)


def _program(
    bandit: LinearBandit, best: int, shown: Any, variances: Array, rows: Array, labels: Sequence[str] | None
) -> AllocationProgram:
    """Costs Δ, targets x_j − x*, radii Δ_j²/2 (noise is that of what is shown), and a unit vector for each thing that an arm shows."""
    gaps = bandit.gaps
    in_range("gaps", gaps, InvalidInstance, each=True)
    owners, columns = np.nonzero(shown)
    entries = (len(owners) + len(gaps)) * rows.shape[1]
    if entries > _MOST_ENTRIES:
        raise InvalidInstance(
            f"arms: expected at most {_MOST_ENTRIES:,} entries in the rows of all that arms show, got {entries:,}; list fewer arms"
        )
    blind = np.setdiff1d(np.arange(len(gaps)), owners)  # arms that show nothing have one row, of zeros
    order = np.argsort(np.concatenate([owners, blind]), kind="stable")
    features = np.zeros((len(owners) + len(blind), rows.shape[1]))
    features[np.arange(len(owners)), columns] = 1.0
    noise = np.concatenate([variances[owners, columns], np.ones(len(blind))])
    asked = np.flatnonzero((gaps > 0) & (rows != rows[best]).any(axis=1))
    names = None if labels is None else checked_labels(labels, len(gaps))
    return AllocationProgram(
        features[order], gaps, rows[asked] - rows[best], gaps[asked] ** 2 / 2, noise_variance=noise[order],
        owners=np.concatenate([owners, blind])[order], origin=Origin(labels=names),
    )  # fmt: skip


def _one_best(bandit: LinearBandit) -> int:
    """The best arm; arms that tie are refused, since which of them is to be told from the others is not clear."""
    tied = bandit.optimal_arms
    if len(tied) > 1 and not (bandit.arms[tied] == bandit.arms[tied[0]]).all():
        raise InvalidInstance(
            f"means: expected a unique best arm, but arms {tied.tolist()} tie; leave all but one of them out"
        )
    return int(tied[0])


def _checked_variances(given: Any, k: int) -> Array:
    """σ²_ij > 0, inf where j is not seen."""
    try:
        raw = as_array(given)
    except NotAnArray as problem:
        raise InvalidInstance(f"variances: {problem}") from None
    if raw.shape != (k, k) or raw.dtype.kind not in "fiu":
        raise InvalidInstance(
            f"variances: expected numbers of shape ({k}, {k}), one row for each arm played, got shape {raw.shape}"
        )
    seen = raw.astype(np.float64)
    if not (seen > 0).all():
        i, j = np.argwhere(~(seen > 0))[0].tolist()
        raise InvalidInstance(
            f"variances: expected entries > 0, inf where an arm is not seen, but entry [{i}, {j}] is {float(seen[i, j])!r}"
        )
    return seen
