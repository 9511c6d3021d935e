r"""Programs of pure exploration: what must be pulled, times log(1/δ), before an answer is right with probability 1 − δ.

All are max-min programs (Garivier & Kaufmann 2016; Soare, Lazaric & Munos 2014): with costs 1, an answer is safe once every
parameter that makes it wrong is told apart from θ. The nearest parameter that moves ⟨t, θ⟩ by g is at the squared distance
g²/||t||²_{H^-1}, so every way of being wrong is one target t with the radius g²/(2σ²). Targets are differences of arms; they are
formed exactly where the program is proven, whatever their rounded rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, InvalidProgram, SlowWarning, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, ArrayLike, IntArray, finite_number, in_range, positive_number, whole_number
from allocopt.linear.gaps import exact_gap, magnitudes, plain_mean_error, refined_gaps
from allocopt.model.arms.names import checked_labels
from allocopt.model.bandit import LinearBandit, arm_matrix, checked_noise
from allocopt.model.program import AllocationProgram, Origin
from allocopt.model.programs.learnable import check_bandit, check_different, check_learnable, half_precision

__all__ = ["best_arm", "best_means", "duelling", "leads", "threshold", "top_m", "transductive"]

# Measured for top_m and duelling of 3,000 random arms in ten dimensions, solved to 1e-6.
_BYTES_OF_A_PAIR = 200.0
_BYTES_OF_AN_ENTRY = 65.0  # of its row of features or targets, which is copied some times
_SECONDS_OF_A_PAIR = 5e-6
_LONG = 10.0  # seconds


def leads(rows: Array, theta: Array, best_row: Array, shift: float = 0.0) -> Array:
    """⟨best_row − x, θ⟩ + shift of every row x, as accurately as gaps are: to `GAP_ERROR`, or 0 where it is not positive."""
    if shift:
        rows, best_row, theta = np.pad(rows, ((0, 0), (0, 1))), np.append(best_row, shift), np.append(theta, 1.0)
    plain = float(best_row @ theta) - rows @ theta
    plain_error = plain_mean_error(rows, theta) + float(plain_mean_error(best_row[None], theta)[0])
    ahead = np.zeros(len(rows))
    some = np.flatnonzero(~(plain < -plain_error))  # the others are surely negative
    ahead[some] = np.maximum(refined_gaps(rows[some], theta, best_row, plain[some], plain_error[some]), 0.0)
    return ahead


@spelled
def best_arm(bandit: LinearBandit, epsilon: float = 0.0, answer: int | None = None) -> AllocationProgram:
    r"""The characteristic time T*(θ) of best-arm identification: costs 1, ||x − x*||²_{H^-1} <= Δ_x²/(2σ²).

    With a variance per arm H = Σ α_x x xᵀ/σ_x² and ||x − x*||²_{H^-1} <= Δ_x²/2.

    With ``epsilon`` any arm i of mean above max μ − ε is a correct answer (Degenne & Koolen 2019: several correct answers).
    The answer i is wrong where some μ_j >= μ_i + ε, so its own program has the targets x_j − x_i with radii
    (μ_i − μ_j + ε)²/(2σ²), and T*_ε(θ) is the *least* value over the correct answers. ``answer`` asks for the program of one
    of them. Without it, and where several arms are within ε, ``origin.answers`` lists these arms, the arrays are those of the best
    arm, and `solve` solves for each of them: its ``upper`` is that of the best answer (``solution.program.origin.answer``),
    ``lower`` is the least of all lower bounds, so the interval encloses T*_ε; ``stats["answers"]`` has the interval of each.
    ``verify()`` and a proof file prove the interval for the answer that was found.

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> round(ao.solve(ao.programs.best_arm(b)).value, 6)
    8.0
    >>> round(ao.solve(ao.programs.best_arm(b, epsilon=1.0)).value, 6)
    2.0
    """
    b = check_bandit(bandit)
    epsilon = positive_number("epsilon", epsilon, InvalidOption, zero=True)
    arms = b.arms_in_memory
    if epsilon:
        return _good_arm(b, arms, epsilon, answer)
    check_learnable(arms, b.gaps)
    in_range("gaps", b.gaps, InvalidInstance, each=True)
    best = _unique_best(b, arms)
    if answer is not None and whole_number("answer", answer) not in b.optimal_arms:
        raise InvalidOption(f"answer: expected the best arm, {best}, or a positive epsilon, got {answer!r}")
    suboptimal = b.suboptimal_arms
    radii = b.gaps[suboptimal] ** 2 * half_precision(b.noise_variance)
    compared = np.column_stack([suboptimal, np.full(len(suboptimal), best)])
    return AllocationProgram(
        arms, np.ones(b.n_arms), arms[suboptimal] - arms[best], radii,
        target_arms=suboptimal, origin=Origin("best_arm", b, compared=compared), noise_variance=b.variances,
    )  # fmt: skip


def _unique_best(bandit: LinearBandit, arms: Array) -> int:
    """The best arm, or its first copy; different arms that tie are refused."""
    best = int(bandit.optimal_arms[0])
    if not (arms[bandit.optimal_arms] == arms[best]).all():
        raise InvalidInstance(
            f"bandit: expected a unique best arm, but arms {bandit.optimal_arms.tolist()} tie; no amount of data can tell "
            "them apart (T* is infinite)"
        )
    return best


def _good_arm(bandit: LinearBandit, arms: Array, epsilon: float, answer: int | None) -> AllocationProgram:
    """`best_arm` with an ε: the program of one answer, and the other correct ones where none was asked for."""
    check_different(arms)
    in_range("epsilon", np.array([epsilon]), InvalidOption)
    correct = np.flatnonzero(leads(arms, -bandit.theta, bandit._best_row, epsilon) > 0)  # μ_i + ε > max μ
    first = {arms[i].tobytes(): i for i in reversed(correct.tolist())}  # copies are one answer
    answers = tuple(sorted(first.values())) if answer is None and len(first) > 1 else ()
    chosen = first[bandit._best_row.tobytes()] if answer is None else _checked_answer(answer, correct, bandit, epsilon)
    others = np.flatnonzero((arms != arms[chosen]).any(axis=1))
    distances = leads(arms[others], bandit.theta, arms[chosen], epsilon)
    in_range("gaps", distances, InvalidInstance, each=True)
    compared = np.column_stack([others, np.full(len(others), chosen)])
    return AllocationProgram(
        arms, np.ones(len(arms)), arms[others] - arms[chosen], distances**2 * half_precision(bandit.noise_variance),
        target_arms=others, noise_variance=bandit.variances,
        origin=Origin("best_arm", bandit, number=epsilon, answer=chosen, answers=answers, compared=compared),
    )  # fmt: skip


def _checked_answer(answer: Any, correct: IntArray, bandit: LinearBandit, epsilon: float) -> int:
    chosen = whole_number("answer", answer)
    if chosen >= bandit.n_arms:
        raise InvalidOption(f"answer: expected an arm from 0 to {bandit.n_arms - 1}, got {chosen}")
    if chosen not in correct:
        gap = float(bandit.gaps[chosen])
        raise InvalidOption(
            f"answer: expected an arm whose gap is below epsilon = {epsilon!r}, but that of arm {chosen} is {gap!r}"
        )
    return chosen


@spelled
def top_m(bandit: LinearBandit, m: int) -> AllocationProgram:
    r"""The characteristic time of finding the m best arms (for linear bandits Réda, Kaufmann & Delahaye-Duriez 2021).

    Costs 1, ||x_i − x_j||²_{H^-1} <= (μ_i − μ_j)²/(2σ²) for every i in the top m and every j that is not. ``top_m(bandit, 1)`` is
    `best_arm`. Copies of an arm count as one another: they need not be told apart. Different arms that tie across the
    boundary are refused.

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, 0.5, 0])
    >>> p = ao.programs.top_m(b, 2)
    >>> p.n_targets, round(ao.solve(p).value, 6)
    (2, 34.284883)
    """
    b = check_bandit(bandit)
    m = whole_number("m", m, InvalidOption, least=1)
    if m >= b.n_arms:
        raise InvalidOption(f"m: expected a number from 1 to {b.n_arms - 1}, as there are {b.n_arms} arms, got {m}")
    arms = b.arms_in_memory
    check_different(arms)
    _check_size(f"top_m: {m * (b.n_arms - m):,} pairs of arms", m * (b.n_arms - m), b.dim)
    top = best_means(b, m)
    outside = np.ones(len(arms), dtype=bool)
    outside[top] = False
    rest = np.flatnonzero(outside)
    sizes = magnitudes(arms, b.theta)
    compared, distances = [], []
    for i in top.tolist():
        others = rest[(arms[rest] != arms[i]).any(axis=1)]
        ahead = leads(arms[others], b.theta, arms[i])
        ties = others[ahead <= b.tie_tolerance * (sizes[others] + sizes[i])]
        if len(ties):
            raise InvalidInstance(
                f"bandit: expected {m} arms that are better than all others, but arms {i} and {int(ties[0])} tie across the "
                "boundary; no amount of data can tell which belongs to the top (T* is infinite)"
            )
        compared.append(np.column_stack([others, np.full(len(others), i)]))
        distances.append(ahead)
    pairs, ahead = np.concatenate(compared), np.concatenate(distances)
    if not len(pairs):
        raise InvalidInstance(f"bandit: expected other arms than copies beside the top {m}, got copies only")
    in_range("gaps", ahead, InvalidInstance, each=True)
    return AllocationProgram(
        arms, np.ones(len(arms)), arms[pairs[:, 0]] - arms[pairs[:, 1]], ahead**2 * half_precision(b.noise_variance),
        origin=Origin("top_m", b, count=m, compared=pairs), noise_variance=b.variances,
    )  # fmt: skip


def best_means(bandit: LinearBandit, m: int) -> IntArray:
    """The m arms of the largest means, exactly; the first of those that tie."""
    arms, theta, means = bandit.arms_in_memory, bandit.theta, bandit.means
    last = int(np.lexsort((np.arange(len(means)), -means))[m - 1])
    plain_error = plain_mean_error(arms, theta)
    near = np.abs(means - means[last]) <= plain_error + plain_error[last]
    clear = np.flatnonzero(~near & (means > means[last]))
    close = np.flatnonzero(near).tolist()
    if len(close) > 1:
        exact = {i: exact_gap(arms[i], theta, arms[last]) for i in close}
        close.sort(key=lambda i: (exact[i], i))
    return np.sort(np.concatenate([clear, np.array(close[: m - len(clear)], dtype=np.int64)]))


def _check_size(what: str, pairs: int, dim: int) -> None:
    """Refuse what does not fit into memory, and say so before it starts where it takes long."""
    check_memory(pairs * (_BYTES_OF_A_PAIR + _BYTES_OF_AN_ENTRY * dim), f"{what} in {dim} dimensions", InvalidProgram)
    seconds = pairs * _SECONDS_OF_A_PAIR * max(dim, 10) / 10
    if seconds > _LONG:
        warn_caller(f"{what}: making them and solving takes about {duration_text(seconds)}", SlowWarning)


@spelled
def threshold(bandit: LinearBandit, tau: float) -> AllocationProgram:
    r"""The characteristic time of saying of every arm whether its mean is above τ (Locatelli, Gutzeit & Carpentier 2016).

    Costs 1, ||x||²_{H^-1} <= (μ_x − τ)²/(2σ²) for every arm. A mean that equals τ, up to the bandit's ``tie_tolerance``, can be on
    either side for all that data says, and is refused.

    Examples
    --------
    >>> import allocopt as ao
    >>> b = ao.LinearBandit([[1, 0], [0, 1]], [1, 0])
    >>> round(ao.solve(ao.programs.threshold(b, 0.5)).value, 6)
    16.0
    """
    b = check_bandit(bandit)
    tau = finite_number("tau", tau)
    arms = b.arms_in_memory
    if not arms.any():
        raise InvalidInstance("arms: expected arms that span something, but every arm is the zero vector")
    in_range("tau", np.array([tau]), InvalidOption)
    nothing = np.zeros(b.dim)
    distances = np.maximum(leads(arms, b.theta, nothing, tau), leads(arms, -b.theta, nothing, -tau))  # τ − μ and μ − τ
    ties = np.flatnonzero(distances <= b.tie_tolerance * (magnitudes(arms, b.theta) + abs(tau)))
    if len(ties):
        arm, mean = int(ties[0]), float(b.means[ties[0]])
        near = "" if mean == tau else f", {tau!r} up to rounding"
        raise InvalidInstance(
            f"tau: expected a number that is no arm's mean, but the mean of arm {arm} is {mean!r}{near}; no amount of data can "
            "tell on which side it is (T* is infinite)"
        )
    in_range("gaps", distances, InvalidInstance, each=True)
    moving = np.flatnonzero(arms.any(axis=1))
    return AllocationProgram(
        arms, np.ones(len(arms)), arms[moving], distances[moving] ** 2 * half_precision(b.noise_variance),
        target_arms=moving, origin=Origin("threshold", b, number=tau), noise_variance=b.variances,
    )  # fmt: skip


@spelled
def transductive(
    arms: ArrayLike,
    items: ArrayLike,
    theta: ArrayLike,
    noise_variance: ArrayLike = 1.0,
    *,
    labels: Sequence[str] | None = None,
) -> AllocationProgram:
    r"""The characteristic time of finding the best of some items by playing other arms (Fiez, Jain, Jamieson & Ratliff 2019).

    Costs 1, H = Σ α_x x xᵀ/σ_x² over the arms x, ||z − z*||²_{H^-1} <= ⟨z* − z, θ⟩²/2 over the items z. Only the differences of items
    must lie in the span of the arms, else the program is `Infeasible`. With items that are the arms it is `best_arm`.

    Examples
    --------
    >>> import allocopt as ao
    >>> p = ao.programs.transductive([[1, 0], [0, 1]], [[1, 0], [0.9, 0.2]], [1, 0])
    >>> p.n_arms, p.n_targets, round(ao.solve(p).value, 6)
    (2, 1, 18.0)
    """
    x = arm_matrix(arms)
    in_range("arms", x, InvalidInstance)
    noise = checked_noise(noise_variance, len(x), InvalidInstance)
    found = LinearBandit(items, theta, noise if isinstance(noise, float) else 1.0)
    if x.shape[1] != found.dim:
        raise InvalidInstance(f"items: expected {x.shape[1]} columns, as the arms have, got {found.dim}")
    z = found.arms_in_memory
    check_different(z, "items")
    in_range("gaps", found.gaps, InvalidInstance, each=True)
    best, others = _unique_best(found, z), found.suboptimal_arms
    origin = Origin(
        "transductive", items=found, compared=np.column_stack([others, np.full(len(others), best)]),
        labels=checked_labels(labels, len(x)),
    )  # fmt: skip
    return AllocationProgram(
        x, np.ones(len(x)), z[others] - z[best], found.gaps[others] ** 2 * half_precision(noise),
        origin=origin, noise_variance=None if isinstance(noise, float) else noise,
    )  # fmt: skip


@spelled
def duelling(bandit: LinearBandit) -> AllocationProgram:
    r"""The asymptotic regret of linear duels: playing (i, j) shows ⟨x_i − x_j, θ⟩ plus noise and costs (Δ_i + Δ_j)/2.

    (Average regret as of Yue, Broder, Kleinberg & Joachims 2012, with linear utilities as of Saha 2021 and Gaussian noise.) One
    feature x_i − x_j for every pair i < j of different arms, and ||x_j − x*||²_{H^-1} <= Δ_j²/(2σ²) for every suboptimal j. No
    duel is free: x* against itself shows nothing.

    Examples
    --------
    >>> import allocopt as ao
    >>> p = ao.programs.duelling(ao.LinearBandit([[1, 0], [0, 1]], [1, 0]))
    >>> p, round(ao.solve(p).value, 6)
    (AllocationProgram(duelling, n_arms=1, n_targets=1, dim=2), 1.0)
    """
    b = check_bandit(bandit)
    arms, gaps = b.arms_in_memory, b.gaps
    noise = b._one_variance("duels, whose noise is not that of an arm")
    check_learnable(arms, gaps)
    in_range("gaps", gaps, InvalidInstance, each=True)
    best = _unique_best(b, arms)
    _check_size(f"duelling: {b.n_arms * (b.n_arms - 1) // 2:,} pairs of arms", b.n_arms * (b.n_arms - 1) // 2, b.dim)
    i, j = np.triu_indices(len(arms), 1)
    different = (arms[i] != arms[j]).any(axis=1)
    i, j = i[different], j[different]
    others = b.suboptimal_arms
    names = [f"arm {a}" for a in range(len(arms))] if b.labels is None else b.labels
    origin = Origin(
        "duelling", b, compared=np.column_stack([others, np.full(len(others), best)]), duels=np.column_stack([i, j]),
        labels=tuple(f"{names[a]} against {names[c]}" for a, c in zip(i.tolist(), j.tolist(), strict=True)),
    )  # fmt: skip
    return AllocationProgram(
        arms[i] - arms[j],
        0.5 * (gaps[i] + gaps[j]),
        arms[others] - arms[best],
        gaps[others] ** 2 * (0.5 / noise),
        origin=origin,
    )
