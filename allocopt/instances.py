"""Named instances with known answers (math.md section 6); tests, the demo and the benchmarks share them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allocopt.bandit import LinearBandit
from allocopt.errors import InvalidInstance
from allocopt.validation import positive_number, vector, whole_number

__all__ = ["counter_example", "finite_armed", "optimism_example", "random_unit", "soare"]


def counter_example(epsilon: float, a: float = 2.0, dim: int = 2, *, informative: bool = True) -> LinearBandit:
    """The paper's second example and its d-dimensional form: e_1..e_d and (1−ε)e_1 + aε e_i for i >= 2, θ = e_1.

    c = 2a²(d−1) for ε < 1/a². Without the ``informative`` arms e_2..e_d, c = 2(d−1)/ε.

    Examples
    --------
    >>> counter_example(0.1).arms
    array([[1. , 0. ],
           [0. , 1. ],
           [0.9, 0.2]])
    """
    e = positive_number("epsilon", epsilon, InvalidInstance)
    a = positive_number("a", a, InvalidInstance)
    d = whole_number("dim", dim, InvalidInstance, least=2)
    if e > 1:
        raise InvalidInstance(f"epsilon: expected a number in (0, 1], got {e!r}")
    basis = np.eye(d)
    close = np.zeros((d - 1, d))
    close[:, 0] = 1.0 - e
    close[np.arange(d - 1), np.arange(1, d)] = a * e
    arms = np.concatenate([basis if informative else basis[:1], close])
    return LinearBandit(arms, basis[0])


def optimism_example(epsilon: float, a: float = 1.0) -> LinearBandit:
    """Section `sec:optimism`: {e1, e2, (1−ε, 8aε)}, θ = e1. c = 128a² for small ε; optimism pays 4a + (2 − 1/(16a))/ε at width a."""
    return counter_example(epsilon, 8.0 * positive_number("a", a, InvalidInstance))


def finite_armed(gaps: Any) -> LinearBandit:
    """Orthogonal arms with these gaps: c = Σ 2/Δ over the positive ones."""
    delta = vector("gaps", gaps, InvalidInstance)
    return LinearBandit(np.eye(len(delta)), -delta)


def soare(dim: int = 2, omega: float = 0.1) -> LinearBandit:
    """Soare's best-arm family: e_1..e_d and (cos ω, sin ω, 0..), θ = 2e_1. T* = 220.150 (d=2, ω=.1), 222.250 (d=6)."""
    d = whole_number("dim", dim, InvalidInstance, least=2)
    arms = np.concatenate([np.eye(d), np.zeros((1, d))])
    arms[-1, :2] = math.cos(omega), math.sin(omega)
    return LinearBandit(arms, 2.0 * np.eye(d)[0])


def random_unit(dim: int, n_arms: int, seed: int = 0) -> LinearBandit:
    """Gaussian unit-norm arms and a unit θ.

    With seed 0 the values of c for (d, k) are: (5,20) 61.409067, (10,50) 57.313610, (10,200) 282.795995,
    (20,200) 198.493814, (20,500) 517.59653.
    """
    d = whole_number("dim", dim, InvalidInstance, least=1)
    k = whole_number("n_arms", n_arms, InvalidInstance, least=1)
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(k, d))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    theta = rng.normal(size=d)
    arms.flags.writeable = False  # so that LinearBandit shares it
    return LinearBandit(arms, theta / np.linalg.norm(theta))
