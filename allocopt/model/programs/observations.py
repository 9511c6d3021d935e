r"""Programs in which playing an arm shows more, or other things, than its own reward: side observations and semi-bandits.

Both are programs whose features are matrices F_i, with costs Δ_i and targets x_j − x*: what x* shows of itself may be less than x*.
Rows are unit vectors, so H is diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, ArrayLike, IntArray, frozen, in_range, positive_number, vector
from allocopt.model.arms.names import checked_labels
from allocopt.model.bandit import LinearBandit, arm_matrix, checked_noise
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.programs.learnable import check_learnable, half_precision
from allocopt.model.rows.sightings import SightedArray, Sightings

__all__ = ["observed_sightings", "semi_bandit", "side_observations"]

_MOST_ENTRIES = 10**6  # of the array of all rows of side observations, beyond which none is made
_MOST_SHOWN = 10**8  # of the array of all rows of a semi-bandit: 0.8 GB


@spelled
def side_observations(means: ArrayLike, variances: Any, labels: Sequence[str] | None = None) -> AllocationProgram:
    r"""Regret where playing arm i shows arm j with variance σ²_ij (Wu, György & Szepesvári, NeurIPS 2015).

    Minimise Σ α_i Δ_i subject to ||e_j − e_*||²_{H^-1} <= Δ_j²/2 for the suboptimal arms j, H = diag(Σ_i α_i/σ²_ij). Where the best
    arm shows itself that is the linear program Σ_i α_i/σ²_ij >= 2/Δ_j².

    Parameters
    ----------
    means : array_like, shape (k,)
        The mean of every arm; the best one must be unique.
    variances : array_like, shape (k, k), or a matrix of `scipy.sparse`
        σ²_ij > 0, inf (not stored, in a sparse matrix) where playing i does not show j. What arms show is kept as a list: 10⁴ arms
        that show a few others each are solved in a second.
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
    return observed_sightings(Sightings.checked(means, variances), labels)


def observed_sightings(seen: Sightings, labels: Sequence[str] | None = None) -> AllocationProgram:
    """`side_observations` of what arms show as a list: with arrays of rows where these are small, and without where they are not."""
    k = seen.n_arms
    names = None if labels is None else checked_labels(labels, k)
    if len(seen.owners) * k > _MOST_ENTRIES:
        return _without_arrays(seen, names)
    bandit = LinearBandit(np.eye(k), seen.means)  # its gaps are exact to the last bits
    check_learnable(bandit.arms, bandit.gaps)
    _one_best(bandit.optimal_arms)
    in_range("gaps", bandit.gaps, InvalidInstance, each=True)
    compared = np.column_stack([seen.others, np.full(k - 1, seen.best)])
    return AllocationProgram(
        seen.features(), bandit.gaps, seen.targets(), bandit.gaps[seen.others] ** 2 / 2, target_arms=seen.others,
        noise_variance=seen.variances, owners=seen.owners,
        origin=Origin("side_observations", bandit, compared=compared, labels=names, sightings=seen),
    )  # fmt: skip


def _without_arrays(seen: Sightings, names: tuple[str, ...] | None) -> AllocationProgram:
    """The program of very many sightings, whose features and targets are made if somebody asks for them."""
    k, best = seen.n_arms, seen.best
    gaps = seen.means[best] - seen.means
    _one_best(np.flatnonzero(gaps <= TIE * (np.abs(seen.means) + abs(seen.means[best]))))
    in_range("gaps", gaps, InvalidInstance, each=True)
    checked_noise(seen.variances, len(seen.owners), InvalidInstance, "rows")
    in_range("gaps · variances", gaps[seen.owners] * seen.variances, InvalidInstance, each=True)
    origin = Origin("side_observations", compared=np.column_stack([seen.others, np.full(k - 1, best)]), labels=names,
                    sightings=seen)  # fmt: skip
    arrays: dict[str, Any] = {name: SightedArray(seen, name) for name in ("features", "targets")}
    return AllocationProgram(
        **arrays, costs=frozen(gaps), radii=frozen(gaps[seen.others] ** 2 / 2), lower=frozen(np.zeros(k)),
        upper=frozen(np.full(k, np.inf)), target_arms=seen.others, origin=origin, noise_variance=seen.variances, owners=seen.owners,
    )  # fmt: skip


@spelled
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
    bandit = LinearBandit(sets, theta, noise, labels=checked_labels(labels, len(sets)))
    check_learnable(sets, bandit.gaps)
    best = _one_best(bandit.optimal_arms, sets)
    in_range("gaps", bandit.gaps, InvalidInstance, each=True)
    owners, columns = np.nonzero(sets)
    blind = np.flatnonzero(~sets.any(axis=1))  # arms that show nothing have one row, of zeros
    entries = (len(owners) + len(blind)) * sets.shape[1]
    if entries > _MOST_SHOWN:
        raise InvalidInstance(
            f"arms: expected at most {_MOST_SHOWN:,} entries in the rows of all that arms show, got {entries:,}; list fewer arms"
        )
    features = np.zeros((len(owners) + len(blind), sets.shape[1]))
    features[np.arange(len(owners)), columns] = 1.0
    every = np.concatenate([owners, blind])
    order = np.argsort(every, kind="stable")
    asked = bandit.suboptimal_arms
    return AllocationProgram(
        features[order], bandit.gaps, sets[asked] - sets[best], bandit.gaps[asked] ** 2 * half_precision(noise), target_arms=asked,
        owners=every[order], origin=Origin("semi_bandit", bandit, compared=np.column_stack([asked, np.full(len(asked), best)])),
    )  # fmt: skip


def _one_best(tied: IntArray, sets: Array | None = None) -> int:
    """The best arm; arms that tie are refused unless they are copies: which of them is to be told from the others is not clear."""
    if len(tied) > 1 and (sets is None or not (sets[tied] == sets[tied[0]]).all()):
        which = ", ".join(map(str, tied[:5].tolist())) + (", …" if len(tied) > 5 else "")
        raise InvalidInstance(
            f"means: expected a unique best arm, but {len(tied)} arms tie ({which}); leave all but one of them out"
        )
    return int(tied[0])
