"""Families of instances whose c is known in closed form (docs/instances.md derives each), with that form.

A closed form is that of the doubles which the arms are made of, not of the real numbers they round, so it can be compared
with a certified interval to the last digits.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from allocopt.base.errors import InvalidInstance
from allocopt.base.spelling import spelled
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, ArrayLike, in_range, positive_number, vector, whole_number
from allocopt.model.bandit import LinearBandit

_LEAST_GAP: Final = 4 * TIE
"""Gaps below this, beside means of size 1, would be taken for ties: the instance would not be the one asked for."""
_MOST_DIMENSIONS: Final = 20
"""Of the hypercube: 2²⁰ arms fill 170 MB."""


MOST_ENTRIES: Final = 125_000_000
"""Of a matrix of arms: 1 GB."""


def check_size(name: str, n_arms: int, dim: int) -> None:
    """Refuse arms that fill the memory, before they are made."""
    if n_arms * dim > MOST_ENTRIES:
        raise InvalidInstance(
            f"{name}: {n_arms} arms of {dim} entries fill {8e-9 * n_arms * dim:.3g} GB, more than 1 GB"
        )


def generator(seed: int) -> np.random.Generator:
    """The random numbers of a seed."""
    return np.random.default_rng(whole_number("seed", seed, InvalidInstance))


@spelled
def counter_example(epsilon: float, a: float = 2.0, dim: int = 2, *, informative: bool = True) -> LinearBandit:
    """The paper's Example 4 and its d-dimensional form: e_1..e_d and (1−ε)e_1 + aε e_i for i >= 2, θ = e_1.

    c = 2(d−1)·max(1, a²)/max(1, a²ε), which is 2a²(d−1) for a >= 1 and ε <= 1/a². Without the ``informative`` arms
    e_2..e_d, c = 2(d−1)/ε.

    Examples
    --------
    >>> counter_example(0.1).arms
    array([[1. , 0. ],
           [0. , 1. ],
           [0.9, 0.2]])
    """
    e, a, d = _counter_example_parameters(epsilon, a, dim, informative)
    basis = np.eye(d)
    close = np.zeros((d - 1, d))
    close[:, 0] = 1.0 - e
    close[np.arange(d - 1), np.arange(1, d)] = a * e
    arms = np.concatenate([basis if informative else basis[:1], close])
    return LinearBandit(arms, basis[0])


def _counter_example_parameters(epsilon: float, a: float, dim: int, informative: bool) -> tuple[float, float, int]:
    e = positive_number("epsilon", epsilon, InvalidInstance)
    scale = positive_number("a", a, InvalidInstance)
    d = whole_number("dim", dim, InvalidInstance, least=2)
    if not _LEAST_GAP <= e <= 1:
        raise InvalidInstance(f"epsilon: expected a number in (0, 1], at least {_LEAST_GAP:g} to be no tie, got {e!r}")
    if not isinstance(informative, bool):
        raise InvalidInstance(f"informative: expected True or False, got {informative!r}")
    in_range("a (times epsilon)", np.array([scale * e]), InvalidInstance)
    check_size("dim", 2 * d - 1, d)
    return e, scale, d


def counter_example_value(epsilon: float, a: float = 2.0, dim: int = 2, *, informative: bool = True) -> float:
    e, a, d = _counter_example_parameters(epsilon, a, dim, informative)
    gap = 1.0 - (1.0 - e)  # of the arms as they were rounded
    arms = [(a * e, gap), (1.0, 1.0)] if informative else [(a * e, gap)]
    return (d - 1) * _line_value(arms)


@spelled
def optimism_example(epsilon: float, a: float = 1.0) -> LinearBandit:
    """Section 8 (`sec:optimism`): {e1, e2, (1−ε, 8aε)}, θ = e1. c = 128a² for small ε; optimism pays 4a + (2 − 1/(16a))/ε at width a.

    Examples
    --------
    >>> optimism_example(0.01).arms[2].round(6).tolist()
    [0.99, 0.08]
    """
    return counter_example(epsilon, 8.0 * positive_number("a", a, InvalidInstance))


def optimism_example_value(epsilon: float, a: float = 1.0) -> float:
    return counter_example_value(epsilon, 8.0 * positive_number("a", a, InvalidInstance))


@spelled
def finite_armed(gaps: ArrayLike) -> LinearBandit:
    """Orthogonal arms with these gaps: c = Σ 2/Δ over the positive ones.

    Examples
    --------
    >>> finite_armed([0, 0.5, 2]).gaps.tolist()
    [0.0, 0.5, 2.0]
    """
    delta = vector("gaps", gaps, InvalidInstance)
    in_range("gaps", delta, InvalidInstance, each=True)
    check_size("gaps", len(delta), len(delta))
    return LinearBandit(np.eye(len(delta)), -delta)


@spelled
def spaced_gaps(n_arms: int, gap: float = 1.0, spacing: float = 0.0) -> LinearBandit:
    """`finite_armed` by three numbers: the gaps are 0, ``gap``, ``gap`` + ``spacing``, ``gap`` + 2·``spacing``, …

    Examples
    --------
    >>> spaced_gaps(4, gap=0.5, spacing=0.25).gaps.tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    return finite_armed(np.concatenate([[0.0], _spaced(n_arms, gap, spacing)]))


def _spaced(n_arms: int, gap: float, spacing: float) -> Array:
    k = whole_number("n_arms", n_arms, InvalidInstance, least=2)
    check_size("n_arms", k, k)
    first = positive_number("gap", gap, InvalidInstance)
    in_range("gap", np.array([first]), InvalidInstance)
    return first + positive_number("spacing", spacing, InvalidInstance, zero=True) * np.arange(k - 1, dtype=np.float64)


def spaced_gaps_value(n_arms: int, gap: float = 1.0, spacing: float = 0.0) -> float:
    return float(np.sum(2.0 / _spaced(n_arms, gap, spacing)))


@spelled
def equal_gaps(dim: int, n_arms: int, gap: float = 1.0, seed: int = 0) -> LinearBandit:
    """One best arm, and n_arms − 1 arms in random directions that all have the same gap.

    x* = e_2, the others are (1, z) with Gaussian z, and θ = −Δ e_1. The geometry does not matter: the program is
    G-optimal design in the quotient by x*, so c = 2(d−1)/Δ (Kiefer–Wolfowitz) if there are at least d arms.

    Examples
    --------
    >>> equal_gaps(3, 6, gap=0.25).gaps.tolist()
    [0.0, 0.25, 0.25, 0.25, 0.25, 0.25]
    """
    d, k, delta = _equal_gaps_parameters(dim, n_arms, gap)
    arms = generator(seed).normal(size=(k, d))
    arms[:, 0] = 1.0
    arms[0] = np.eye(d)[1]
    return LinearBandit(arms, -delta * np.eye(d)[0])


def _equal_gaps_parameters(dim: int, n_arms: int, gap: float) -> tuple[int, int, float]:
    d = whole_number("dim", dim, InvalidInstance, least=2)
    k = whole_number("n_arms", n_arms, InvalidInstance, least=2)
    check_size("n_arms", k, d)
    return d, k, positive_number("gap", gap, InvalidInstance)


def equal_gaps_value(dim: int, n_arms: int, gap: float = 1.0, seed: int = 0) -> float:
    d, k, delta = _equal_gaps_parameters(dim, n_arms, gap)
    generator(seed)
    return 2.0 * min(d - 1, k - 1) / delta


@spelled
def circle(n_arms: int) -> LinearBandit:
    """Arms evenly spaced on the unit circle, one of them θ = e_1: c = 2/(1 − cos(2π/k)), about k²/π².

    Examples
    --------
    >>> circle(4).arms.round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    k = whole_number("n_arms", n_arms, InvalidInstance, least=3)
    if 1.0 - math.cos(2 * math.pi / k) < _LEAST_GAP:
        raise InvalidInstance(f"n_arms: expected fewer arms, got {k}: neighbours would tie in double precision")
    steps = np.arange(k)
    # both neighbours of x* get the same rounding, and cos is as accurate as it can be near 1
    angles = 2 * math.pi / k * np.where(steps <= k // 2, steps, steps - k)
    return LinearBandit(np.column_stack([np.cos(angles), np.sin(angles)]), np.array([1.0, 0.0]))


def circle_value(n_arms: int) -> float:
    k = whole_number("n_arms", n_arms, InvalidInstance, least=3)
    return 2.0 / (1.0 - float(np.cos(2 * math.pi / k)))


@spelled
def soare(dim: int = 2, omega: float = 0.1) -> LinearBandit:
    """Soare's best-arm family: e_1..e_d and (cos ω, sin ω, 0..), θ = 2e_1. T* = 220.150 (d=2, ω=.1), 222.250 (d=6).

    c = d − 2 + 1/(1 − max(cos ω, 0)) for 0 < ω <= π.

    Examples
    --------
    >>> soare(3).gaps.round(4).tolist()
    [0.0, 2.0, 2.0, 0.01]
    """
    d, angle = _soare_parameters(dim, omega)
    arms = np.concatenate([np.eye(d), np.zeros((1, d))])
    arms[-1, :2] = math.cos(angle), math.sin(angle)
    return LinearBandit(arms, 2.0 * np.eye(d)[0])


def _soare_parameters(dim: int, omega: float) -> tuple[int, float]:
    d = whole_number("dim", dim, InvalidInstance, least=2)
    check_size("dim", d + 1, d)
    angle = positive_number("omega", omega, InvalidInstance)
    if angle > math.pi or 1.0 - math.cos(angle) < _LEAST_GAP:
        raise InvalidInstance(f"omega: expected an angle in (0, π], at least 1e-6 to be no tie, got {angle!r}")
    return d, angle


def soare_value(dim: int = 2, omega: float = 0.1) -> float:
    d, angle = _soare_parameters(dim, omega)
    return d - 2 + _line_value([(math.sin(angle), 2.0 - 2.0 * math.cos(angle)), (1.0, 2.0)])


@spelled
def hypercube(dim: int, scale: float = 1.0) -> LinearBandit:
    """All 2^d sign vectors {−1, 1}^d, θ = ``scale`` · (1, …, 1): c = (d−1)/scale.

    Examples
    --------
    >>> hypercube(2).means.tolist()
    [2.0, 0.0, 0.0, -2.0]
    """
    d, size = _hypercube_parameters(dim, scale)
    bits = np.arange(2**d)[:, None] >> np.arange(d - 1, -1, -1) & 1
    arms = 1.0 - 2.0 * bits.astype(np.float64)
    arms.flags.writeable = False
    return LinearBandit(arms, np.full(d, size))


def _hypercube_parameters(dim: int, scale: float) -> tuple[int, float]:
    d = whole_number("dim", dim, InvalidInstance, least=2)
    if d > _MOST_DIMENSIONS:
        raise InvalidInstance(f"dim: expected at most {_MOST_DIMENSIONS} (there are 2^dim arms), got {d}")
    return d, positive_number("scale", scale, InvalidInstance)


def hypercube_value(dim: int, scale: float = 1.0) -> float:
    d, size = _hypercube_parameters(dim, scale)
    return (d - 1) / size


def _line_value(arms: list[tuple[float, float]]) -> float:
    """c on a line, from (x, Δ) of each arm: the hardest target, max 2x²/Δ², by the cheapest information, min Δ/x²."""
    return max(2.0 * (x / gap) ** 2 for x, gap in arms) * min(gap / x**2 for x, gap in arms)
