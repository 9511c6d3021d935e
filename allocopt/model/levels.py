r"""Confidence levels of the paper's Theorem 8 (`thm:conc`), and of the lemmas behind it.

    P(∃ t >= t0, x : |μ̂_x(t) − μ_x| >= ||x||_{G_t^-1} √f_{n,δ}) <= δ          for Gaussian noise of variance 1

Logarithms are natural. Every function takes numbers or arrays (broadcast against each other) and returns what it got:
a float for numbers, an array otherwise. The paper's universal constant is an argument, 1 by default. That is a choice,
not a theorem: in simulation 1 is enough for d >= 3, while for d = 1 (and, barely, d = 2 with arms in all directions)
the failure probability is above δ and 2 is enough (docs/schedule.md has the figures).

Two slips of the paper matter to whoever uses the proofs. In the peeling lemma (Lemma 14) k* is the largest k with
ψ_k >= √(2 log(N/δ)/V), not the smallest. And Lemma 15 (`lem:conc-simple`) chooses ε = 1/(n² log³ n), for which N is about
3 log² n: what the peeling lemma proves is `peeling_level`, with log N ≈ 2 log log n, where h_{n,δ} has log log n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from allocopt.base.conversion import NotAnArray, as_array
from allocopt.base.errors import InvalidInstance, InvalidOption
from allocopt.base.tolerances import LARGEST
from allocopt.base.validation import Array, matrix, positive_number, whole_number
from allocopt.linear.information import gram_norms

__all__ = [
    "confidence_widths",
    "f_n",
    "f_n_delta",
    "g_n",
    "h_n_delta",
    "peeling_factor",
    "peeling_level",
    "peeling_steps",
]

Many: TypeAlias = Sequence[Any] | NDArray[Any]
"""Several numbers, where a function takes one or several."""


@overload
def f_n(n: float, dim: int, constant: float = 1.0) -> float: ...
@overload
def f_n(n: Many, dim: int, constant: float = 1.0) -> Array: ...
def f_n(n: float | Many, dim: int, constant: float = 1.0) -> float | Array:
    r"""f_n = 2(1 + 1/log n) log n + c d log(d log n), the level at confidence 1 − 1/n.

    The paper leaves the universal ``constant`` c open; it is 1 unless you say otherwise.

    Examples
    --------
    >>> round(f_n(10**6, 2), 6)
    36.268899
    >>> f_n([10**3, 10**6], 2).round(3)
    array([21.067, 36.269])
    """
    log_n = _log_horizon(n)
    return _plain(_level(log_n, log_n, dim, constant), n)


@overload
def g_n(n: float, dim: int, constant: float = 1.0) -> float: ...
@overload
def g_n(n: Many, dim: int, constant: float = 1.0) -> Array: ...
def g_n(n: float | Many, dim: int, constant: float = 1.0) -> float | Array:
    r"""g_n = f_{n,1/log n}: the level that fails with probability 1/log n, with which the warm-up's ε_n is made.

    Examples
    --------
    >>> round(g_n(10**6, 2), 6)
    12.269584
    """
    log_n = _log_horizon(n)
    return _plain(_level(np.log(log_n), log_n, dim, constant), n)


@overload
def f_n_delta(n: float, delta: float, dim: int, constant: float = 1.0) -> float: ...
@overload
def f_n_delta(n: Many, delta: float | Many, dim: int, constant: float = 1.0) -> Array: ...
@overload
def f_n_delta(n: float, delta: Many, dim: int, constant: float = 1.0) -> Array: ...
def f_n_delta(n: float | Many, delta: float | Many, dim: int, constant: float = 1.0) -> float | Array:
    r"""f_{n,δ} = 2(1 + 1/log n) log(1/δ) + c d log(d log n) of Theorem 8 (`thm:conc`).

    The theorem is stated for δ in [1/n, 1); any δ in (0, 1) is accepted here.

    Examples
    --------
    >>> round(f_n_delta(10**6, 0.05, 2), 6)
    13.063019
    >>> f_n_delta(10**6, 1e-6, 2) == f_n(10**6, 2)
    True
    """
    log_n, log_confidence = _fitting(_log_horizon(n), _log_inverse(delta))
    return _plain(_level(log_confidence, log_n, dim, constant), n, delta)


@overload
def h_n_delta(n: float, delta: float, constant: float = 1.0) -> float: ...
@overload
def h_n_delta(n: Many, delta: float | Many, constant: float = 1.0) -> Array: ...
@overload
def h_n_delta(n: float, delta: Many, constant: float = 1.0) -> Array: ...
def h_n_delta(n: float | Many, delta: float | Many, constant: float = 1.0) -> float | Array:
    r"""h_{n,δ} = 2(1 + 1/log n) log(c log(n)/δ) of Lemma 15 (`lem:conc-simple`), c >= 1: the level of one direction.

    As printed; see the module's text for what its proof yields (`peeling_level`).

    Examples
    --------
    >>> round(h_n_delta(10**6, 0.05), 6)
    12.056847
    """
    log_n, log_confidence = _fitting(_log_horizon(n), _log_inverse(delta))
    c = positive_number("constant", constant, InvalidOption)
    if c < 1:
        raise InvalidOption(f"constant: expected a number >= 1 (as the lemma has it), got {c!r}")
    return _plain(2.0 * (1.0 + 1.0 / log_n) * (math.log(c) + np.log(log_n) + log_confidence), n, delta)


@overload
def peeling_factor(n: float) -> float: ...
@overload
def peeling_factor(n: Many) -> Array: ...
def peeling_factor(n: float | Many) -> float | Array:
    r"""γ_n = 1 + 1/log n: the ratio of neighbouring variances on the peeling lemma's grid.

    Examples
    --------
    >>> round(peeling_factor(10**6), 6)
    1.072382
    """
    return _plain(1.0 + 1.0 / _log_horizon(n), n)


@overload
def peeling_steps(n: float, floor: float | None = None, variance: float = 1.0) -> int: ...
@overload
def peeling_steps(n: Many, floor: float | None = None, variance: float = 1.0) -> NDArray[np.int64]: ...
def peeling_steps(n: float | Many, floor: float | None = None, variance: float = 1.0) -> int | NDArray[np.int64]:
    r"""N = 1 + ⌈log(nσ²/ε)/log γ_n⌉: how many variances the grid from ε to nσ² has.

    Parameters
    ----------
    n : int or array_like
        Rounds.
    floor : float, optional
        ε, the variance below which all are treated alike; 1/(n² log³ n) by default, as in Lemma 15 (`lem:conc-simple`).
    variance : float
        σ², a bound on the variance of each increment.

    Examples
    --------
    >>> peeling_steps(1000), peeling_steps(1000, floor=1.0)
    (198, 53)
    """
    log_n = _log_horizon(n)
    log_variance = math.log(positive_number("variance", variance, InvalidOption))
    if floor is None:
        log_floor: Any = -2.0 * log_n - 3.0 * np.log(log_n)
    else:
        log_floor = math.log(positive_number("floor", floor, InvalidOption))
    # a floor above nσ² leaves one variance only
    steps = 1 + np.ceil(np.maximum(log_n + log_variance - log_floor, 0.0) / np.log1p(1.0 / log_n)).astype(np.int64)
    return steps if _several(n) else int(steps)


@overload
def peeling_level(n: float, delta: float, floor: float | None = None, variance: float = 1.0) -> float: ...
@overload
def peeling_level(n: Many, delta: float | Many, floor: float | None = None, variance: float = 1.0) -> Array: ...
@overload
def peeling_level(n: float, delta: Many, floor: float | None = None, variance: float = 1.0) -> Array: ...
def peeling_level(
    n: float | Many, delta: float | Many, floor: float | None = None, variance: float = 1.0
) -> float | Array:
    r"""2 γ_n log(N/δ), with which P(∃ t <= n : Σ_{s<=t} X_s >= √(V_t · level)) <= δ, V_t = max(ε, Σ_{s<=t} σ_s²).

    X_s are Gaussian given the past, with conditional variances σ_s² <= ``variance`` that may depend on it. This is the
    peeling lemma without a constant left open; ``floor`` is its ε (see `peeling_steps`).

    Examples
    --------
    >>> round(peeling_level(1000, 0.05, floor=1.0), 6)
    15.948919
    """
    log_n, log_confidence = _fitting(_log_horizon(n), _log_inverse(delta))
    factor = 1.0 + 1.0 / log_n
    steps = peeling_steps(cast(Any, n), floor, variance)
    return _plain(2.0 * factor * (np.log(steps) + log_confidence), n, delta)


def confidence_widths(directions: Any, gram: Any, level: float, noise_variance: float = 1.0) -> Array:
    r"""√(σ² · level) · ||x||_{G^-1} for every row x of ``directions``; inf where x is not in the range of G.

    Parameters
    ----------
    directions : array_like, shape (m, d)
        Arms, or differences of arms.
    gram : array_like, shape (d, d)
        G = Σ A_s A_sᵀ, symmetric and positive semidefinite.
    level : float
        f_{n,δ} or another level.
    noise_variance : float
        σ² of the rewards.

    Examples
    --------
    >>> confidence_widths([[1, 0], [0, 1], [1, 1]], [[4, 0], [0, 25]], level=4.0).round(6)
    array([1.      , 0.4     , 1.077033])
    >>> confidence_widths([[1, 0], [0, 1]], [[4, 0], [0, 0]], level=4.0)
    array([ 1., inf])
    """
    x = matrix("directions", directions, InvalidInstance)
    factor = positive_number("level", level, InvalidOption) * positive_number("noise_variance", noise_variance)
    widths: Array = np.sqrt(factor * gram_norms(gram, x))
    return widths


def _log_horizon(n: float | Many) -> Any:
    """log n of a number or an array, once every n is known to be a whole number >= 3."""
    if not _several(n):
        return np.float64(math.log(whole_number("n", n, InvalidOption, least=3)))
    values = _numbers("n", n, "whole numbers >= 3")
    bad = ~((values >= 3) & (values == np.floor(values)) & np.isfinite(values))
    if bad.any():
        raise InvalidOption(f"n: expected whole numbers >= 3, but one is {float(values[bad][0])!r}")
    return np.log(values)


def _log_inverse(delta: float | Many) -> Any:
    """log(1/δ) of a number or an array in (0, 1)."""
    if not _several(delta):
        values: Any = np.float64(positive_number("delta", delta, InvalidOption))
    else:
        values = _numbers("delta", delta, "numbers in (0, 1)")
    bad = ~((values > 0) & (values < 1))
    if bad.any():
        raise InvalidOption(f"delta: expected numbers in (0, 1), got {float(np.ravel(values)[np.ravel(bad)][0])!r}")
    return -np.log(values)


def _fitting(log_n: Any, log_confidence: Any) -> tuple[Any, Any]:
    """Both as they are, once they are known to broadcast."""
    shapes = np.shape(log_n), np.shape(log_confidence)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidOption(f"delta: expected as many as n, whose shape is {shapes[0]}, got {shapes[1]}") from None
    return log_n, log_confidence


def _several(value: object) -> bool:
    """Whether it is an array or a list (anything else is taken as one number, or refused as not being one)."""
    return isinstance(value, np.ndarray | Sequence) and not isinstance(value, str | bytes)


def _numbers(name: str, value: float | Many, wanted: str) -> Array:
    try:
        raw = as_array(value)
    except NotAnArray as problem:
        raise InvalidOption(f"{name}: {problem}") from None
    if raw.dtype.kind not in "fiu":
        raise InvalidOption(f"{name}: expected {wanted}, got a {type(value).__name__} that holds something else")
    return raw.astype(np.float64)


def _level(log_confidence: Any, log_n: Any, dim: int, constant: float) -> Any:
    """2(1 + 1/log n) log(1/δ) + c d log(d log n)."""
    d = whole_number("dim", dim, InvalidOption, least=1)
    c = positive_number("constant", constant, InvalidOption, zero=True)
    if c > LARGEST:
        raise InvalidOption(f"constant: expected at most {LARGEST:g}, got {c!r}")
    return 2.0 * (1.0 + 1.0 / log_n) * log_confidence + c * d * np.log(d * log_n)


def _plain(values: Any, *given: object) -> float | Array:
    """A float where only numbers were given."""
    if not any(_several(g) for g in given):
        return float(values)
    result: Array = values
    return result
