"""More families for torture: programs other than the regret of a bandit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from torture_exact import exact_rank
from torture_families import (
    Instance,
    Random,
    family,
    plain_arms,
    plain_theta,
    powers_of_two,
    small_integers,
    two_decimals,
)

from allocopt.base.validation import Array


def _dependent_arms(rng: Random, k: int, d: int) -> Array:
    """Plain arms, half of the time with a column that is a copy of another."""
    arms = plain_arms(rng, k, d)
    return np.hstack([arms, arms[:, :1]]) if rng.uniform() < 0.5 else arms


def given_gaps(rng: Random, k: int, far: bool) -> Array:
    """Gaps that need not come from a θ: zeros among them, ordinary or spread over many magnitudes."""
    gaps = 10.0 ** rng.uniform(-6, 2, k) if far else rng.uniform(0.01, 1, k)
    return np.where(rng.uniform(size=k) < 0.3, 0.0, gaps)


def next_gaps(rng: Random, first: Array, far: bool) -> Array:
    """Gaps as a policy asks for them one after the other: near the first ones, with other free arms, or all new."""
    what = rng.uniform()
    if what < 0.2:
        return given_gaps(rng, len(first), far)
    gaps: Array = first * np.exp(rng.normal(size=len(first)) * rng.choice([1e-9, 1e-3, 0.1, 1.0]))
    if what < 0.5:
        gaps[int(rng.integers(len(gaps)))] = 0.0
    return gaps


@family("horizon, given gaps", "horizon", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    gaps = given_gaps(rng, k, far=False)
    return Instance("horizon", _dependent_arms(rng, k, d), gaps=gaps, number=int(rng.integers(3, 10**6)))


@family("horizon, gaps far apart", "horizon")
def _(rng: Random, d: int, k: int) -> Any:
    return Instance("horizon", _dependent_arms(rng, k, d), gaps=given_gaps(rng, k, far=True), number=1000)


@family("best arm identification", "best_arm", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = _dependent_arms(rng, k, d)
    return Instance("best_arm", arms, plain_theta(rng, arms.shape[1]))


@family("optimism", "optimism", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = _dependent_arms(rng, k, d)
    return Instance("optimism", arms, plain_theta(rng, arms.shape[1]), number=float(rng.choice([1.0, 4.0, 100.0])))


@family("optimism, hardly feasible or not", "optimism")
def _(rng: Random, d: int, k: int) -> Any:
    arms = _dependent_arms(rng, k, d)
    return Instance("optimism", arms, plain_theta(rng, arms.shape[1]), number=float(rng.choice([0.05, 0.3, 0.51])))


@family("remaining", "remaining", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = _dependent_arms(rng, k, d)
    pulls = np.floor(10.0 ** rng.uniform(0, 5, k)) * (rng.uniform(size=k) < 0.5)
    return Instance("remaining", arms, plain_theta(rng, arms.shape[1]), number=10**6, pulls=pulls)


def _integers_of_low_rank(rng: Random, d: int, k: int) -> Array:
    r = int(rng.integers(1, d + 2))
    return small_integers(rng, k, r) @ small_integers(rng, r, d + 1)


@family("G-optimal, integers", "g_optimal", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = _integers_of_low_rank(rng, d, k) * powers_of_two(rng, d + 1, 20)
    return Instance("g_optimal", arms, value=Fraction(exact_rank(arms)))


@family("G-optimal, rows scaled", "g_optimal")  # the value is still the rank, but designs over 2^80 are hard to come by
def _(rng: Random, d: int, k: int) -> Any:
    arms = _integers_of_low_rank(rng, d, k) * powers_of_two(rng, (k, 1), 20) * powers_of_two(rng, d + 1, 20)
    return Instance("g_optimal", arms, value=Fraction(exact_rank(arms)))


@family("G-optimal, columns scaled", "g_optimal", determined=True)
def _(rng: Random, d: int, k: int) -> Any:
    arms = _dependent_arms(rng, k, d)
    arms = arms * powers_of_two(rng, arms.shape[1])
    return Instance("g_optimal", arms, value=Fraction(exact_rank(arms)))


def _general(features: Array, costs: Array, targets: Array, radii: Array, **bounds: Array) -> Instance:
    return Instance("general", features, general={"costs": costs, "targets": targets, "radii": radii, **bounds})


@family("targets in the span", "general")
def _(rng: Random, d: int, k: int) -> Any:
    features = small_integers(rng, k, d) @ small_integers(rng, d, d + 1)
    targets = small_integers(rng, int(rng.integers(1, 5)), k) @ features
    costs = rng.uniform(0.1, 2, k) * (rng.uniform(size=k) < 0.9)
    return _general(features, costs, targets, rng.uniform(0.1, 2, len(targets)))


@family("targets outside the span", "general")
def _(rng: Random, d: int, k: int) -> Any:
    features = np.hstack([small_integers(rng, k, d), np.zeros((k, 1))])
    targets = small_integers(rng, int(rng.integers(1, 5)), k) @ features
    targets[0, -1] = 2.0 ** -int(rng.integers(0, 60))
    mixed = np.eye(d + 1)
    mixed[-1, 0] = 1.0  # the direction outside is e_1 + e_last then, with nothing zero about it
    costs = rng.uniform(0.1, 2, k) * (rng.uniform(size=k) < 0.9)
    return _general(features @ mixed, costs, targets @ mixed, rng.uniform(0.1, 2, len(targets)))


@family("bounded", "general")
def _(rng: Random, d: int, k: int) -> Any:
    """Radii that some α meets, within bounds around that α; rows, and so α, over sixteen orders of magnitude."""
    spread = rng.choice([0.0, 2.0, 8.0])
    features = plain_arms(rng, k, d) * 10.0 ** rng.uniform(-spread, spread, (k, 1))
    size = (features**2).sum(axis=1)
    alpha = np.exp(rng.normal(size=k)) / np.where(size > 0, size, 1.0)
    information = features.T @ (alpha[:, None] * features)
    targets = features[rng.uniform(size=k) < 0.7]
    targets = features[:1] if not len(targets) else targets
    norms = np.einsum("ij,jk,ik->i", targets, np.linalg.pinv(information, rcond=1e-14), targets)
    radii = np.maximum(norms, 1e-30) * np.exp(np.abs(rng.normal(size=len(targets))))
    upper = np.where(rng.uniform(size=k) < 0.4, np.inf, alpha * 10.0 ** rng.uniform(0, rng.choice([0.1, 8.0]), k))
    lower = np.where(rng.uniform(size=k) < 0.6, 0.0, alpha * 10.0 ** rng.uniform(-8, 0, k))
    costs = 10.0 ** rng.uniform(-spread, spread, k) * (rng.uniform(size=k) < 0.95)
    return _general(features, costs, targets, radii, lower=lower, upper=upper)


@family("bounded integers, far apart", "general")
def _(rng: Random, d: int, k: int) -> Any:
    features = small_integers(rng, k, d)
    chosen = rng.uniform(size=k) < 0.7
    targets = features[chosen] if chosen.any() else features
    radii = 10.0 ** rng.uniform(-12, 20, len(targets))
    upper = np.where(rng.uniform(size=k) < 0.6, np.inf, 10.0 ** rng.uniform(-20, 12, k))
    return _general(features, np.ones(k), targets, radii, upper=upper)


@family("bounded, two decimals", "general")
def _(rng: Random, d: int, k: int) -> Any:
    features = two_decimals(rng, k, d)
    upper = np.where(rng.uniform(size=k) < 0.5, np.inf, np.round(rng.uniform(0, 20, k), 2))
    lower = np.where(rng.uniform(size=k) < 0.5, 0.0, np.minimum(np.round(rng.uniform(0, 2, k), 2), upper))
    return _general(features, rng.uniform(0.1, 2, k), features, rng.uniform(0.5, 3, k), lower=lower, upper=upper)


_COPIED = np.array([[1, -0.4, 1], [-1.4, -0.6, -1.4], [0.9, 0.6, 0.9]])
_OLD_ERRORS = (
    Instance("regret", _COPIED, np.array([-0.3, 0.9, 0.0])),
    Instance("regret", np.array([[1, 0], [0.5, 1e-16]]), np.array([1.0, 0.0])),
    Instance("regret", np.array([[1, 0], [0.999, 1e-16], [0, 1e-15]]), np.array([1.0, 0.0])),
    _general(np.array([[1.0, 0.0]]), np.ones(1), np.array([[1.0, 1e-10]]), np.ones(1)),
    _general(
        np.array([[1.0, 0.0], [1.0, 6.0]]), np.ones(2), np.array([[1.0, 0.0], [1.0, 6.0]]), np.array([1e20, 1e-12]),
        upper=np.array([2e-20, np.inf]),
    ),
)  # fmt: skip


@family("old errors", "general")
def _(rng: Random, d: int, k: int) -> Any:
    """Programs of which something false was said once."""
    return _OLD_ERRORS[int(rng.integers(len(_OLD_ERRORS)))]
