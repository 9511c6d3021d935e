"""`finite_time_bound`: what no policy can beat at this n, as a sentence that anyone can test, with its proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidInstance, InvalidOption, SlowWarning, warn_caller
from allocopt.base.machine import check_memory, duration_text
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array, positive_number, vector, whole_number
from allocopt.certify.exact_arithmetic.finite_time import (
    ExactAlternatives,
    Surplus,
    exact_alternatives,
    largest_value,
    nearest_double,
    surplus,
)
from allocopt.insight.bounds.exact_shifts import exact_parameters
from allocopt.insight.bounds.search import instance_at, search, variances_of
from allocopt.insight.bounds.weights import Terms, best_weights, value_of
from allocopt.insight.bounds.writing import save_bound
from allocopt.model.bandit import LinearBandit
from allocopt.model.programs.instead import no_bandit
from allocopt.model.tables import Table, Tabular

__all__ = ["MOST_ROUNDS", "FiniteTimeBound", "PullsProgram", "WorstRegret", "finite_time_bound"]

WorstRegret = float | Callable[[LinearBandit], float]
"""What a policy may pay at an alternative: a number, or a function of the alternative."""

MOST_ROUNDS = 10**100

_MOST_COORDINATES = 6  # of an alternative that a table shows


@dataclass(frozen=True, eq=False)
class PullsProgram:
    """The linear program behind a bound, at V: minimise Σ α_x Δ_x s.t. Σ_x α_x a_j(x) >= K_j, Σ α_x <= n, α >= 0.

    The expected pulls of any policy with R < V and with regret at most B_j at the alternatives are feasible for it.
    """

    gaps: Array
    """Δ_x, rounded to doubles."""
    information: Array
    """a_j(x) = ⟨x, θ'_j − θ⟩²/(2σ²): one row per alternative."""
    levels: Array
    """K_j = kl(1 − V/(nδ_j), B_j/(n g_j)), rounded down."""
    losses: Array
    """g_j: what a round on an arm that is optimal here costs at alternative j, at least."""
    costs: Array
    """δ_j: what a round that is not charged at alternative j costs here, at least."""
    weights: Array
    """λ_j, the dual witness: Σ_j λ_j a_j(x) <= Δ_x + μ for every arm."""
    price: float
    """μ; V <= Σ λ_j K_j − n μ."""


@dataclass(frozen=True, eq=False)
class FiniteTimeBound(Tabular):
    """A proven statement: a policy with regret below ``value`` here has regret above ``regrets[j]`` at an alternative.

    Made by `finite_time_bound`. The noise is Gaussian, the horizon ``n`` is fixed, regrets are expected ones.

    Attributes
    ----------
    bandit : LinearBandit
        The instance that the bound is for.
    n : int
        The number of rounds.
    value : float
        V: no policy that keeps to ``regrets`` at the alternatives has less regret here.
    parameters : tuple of tuples of Fraction
        θ'_j of the alternatives, exactly.
    regrets : tuple of float
        B_j: what a policy may pay at alternative j.
    weights : tuple of float
        λ_j, the dual witness of the proof.
    alternatives : tuple of LinearBandit
        The same arms and noise at each θ'_j.

    Examples
    --------
    >>> import allocopt as ao
    >>> bound = ao.finite_time_bound(ao.instances.counter_example(0.2), 10**6, 500)
    >>> print(bound)
    in 1e+06 rounds, a policy with regret below 24.76 here has regret above 500 at the alternative
    >>> bound.verify().holds
    True
    """

    bandit: LinearBandit
    n: int
    value: float
    """V: no policy that keeps to ``regrets`` at the alternatives has less regret here. Proven, not estimated."""
    parameters: tuple[tuple[Fraction, ...], ...]
    """θ'_j, exactly. These are doubles unless n is so large that rounding them would show (from about 10^20 on)."""
    regrets: tuple[float, ...]
    """B_j: what a policy may pay at alternative j."""
    weights: tuple[float, ...]
    """λ_j, the dual witness of the proof."""
    alternatives: tuple[LinearBandit, ...] = field(init=False)
    """The same arms and noise at each θ'_j (rounded to doubles where it is none, see ``parameters``)."""

    def __post_init__(self) -> None:
        places = tuple(instance_at(self.bandit, parameter) for parameter in self.parameters)
        object.__setattr__(self, "alternatives", places)

    @property
    def sentence(self) -> str:
        """What is proven, in words."""
        rounds = f"in {_short(self.n)} round{'s' if self.n > 1 else ''}"
        if self.value == 0:
            return f"{rounds}, nothing is proven: the bound is 0"
        if len(self.regrets) == 1:
            where = f"has regret above {_number(self.regrets[0])} at the alternative"
        elif len(set(self.regrets)) == 1:
            where = f"has regret above {_number(self.regrets[0])} at one of {len(self.regrets)} alternatives"
        else:
            listed = ", ".join(_number(b) for b in self.regrets)
            where = f"has regret above B_j at one of {len(self.regrets)} alternatives, B = ({listed})"
        return f"{rounds}, a policy with regret below {_number(self.value)} here {where}"

    def _table(self) -> Table:
        """The alternatives, those with the largest weight in the proof first."""
        order = sorted(range(len(self.regrets)), key=lambda j: -self.weights[j])
        columns: dict[str, Any] = {"alternative": list(range(len(self.regrets)))}
        rows = np.array([[float(x) for x in parameter] for parameter in self.parameters])
        columns |= {f"θ'{i}": rows[:, i] for i in range(rows.shape[1])} if rows.shape[1] <= _MOST_COORDINATES else {}
        columns |= {"best arm": [int(b.optimal_arms[0]) for b in self.alternatives], "regret allowed": list(self.regrets),
                    "weight": list(self.weights)}  # fmt: skip
        return Table(
            "Finite-time bound", {"bound": self.value, "rounds": self.n, "proven": self.sentence}, columns, order
        )

    def verify(self) -> Surplus:
        """Prove ``value`` anew from the numbers of the instance: rationals, and balls for the logarithms; no solver.

        ``holds`` says whether it is proven, ``surplus`` by how much.
        """
        return surplus(self._exact(), self.regrets, self.weights, self.value)

    def given(self, regrets: Any) -> FiniteTimeBound:
        """The bound for a policy that pays ``regrets`` at the alternatives (measured, say): a number, or one for each.

        The alternatives stay, the weights and the value are found and proven anew.

        Examples
        --------
        >>> import allocopt as ao
        >>> bound = ao.finite_time_bound(ao.instances.counter_example(0.2), 10**6, 500)
        >>> bound.given(100).value > bound.value > bound.given(10_000).value
        True
        """
        allowed = self._given(regrets)
        exact = self._exact()
        weights, value = _proven(exact, _terms(exact, np.array(allowed)))
        return FiniteTimeBound(self.bandit, self.n, value, self.parameters, allowed, tuple(weights))

    def _given(self, regrets: Any) -> tuple[float, ...]:
        count = len(self.parameters)
        if np.ndim(regrets) == 0:
            return (positive_number("regrets", regrets, InvalidOption, zero=True, infinite=True),) * count
        values = vector("regrets", regrets, InvalidOption, length=count, infinite=True)
        if (values < 0).any():
            raise InvalidOption(f"regrets: expected numbers >= 0, got {float(values.min())!r}")
        return tuple(values.tolist())

    @property
    def program(self) -> PullsProgram:
        """The linear program over expected pulls, and the witness that proves its bound."""
        exact, check = self._exact(), self.verify()
        terms = _terms(exact, np.array(self.regrets))
        return PullsProgram(
            terms.gaps, terms.information, np.array(check.levels), terms.loss, terms.cost, np.array(self.weights), check.price
        )  # fmt: skip

    def save(self, path: str | PathLike[str], overwrite: bool = False) -> None:
        """Write a JSON proof file, which ``load_bound(path)`` reads as a claim and proves without a solver.

        A file that exists is kept, with an error, unless ``overwrite``.
        """
        save_bound(self, path, overwrite=overwrite)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"FiniteTimeBound(value={self.value:.6g}, n={_short(self.n)}, alternatives={len(self.alternatives)})"

    def _exact(self) -> ExactAlternatives:
        bandit = self.bandit
        return exact_alternatives(bandit.arms_in_memory, bandit.theta, variances_of(bandit), self.n, self.parameters)


_SECONDS_AN_ENTRY = 2e-4  # of the arms: measured from 10³ to 4·10⁴ arms
_BYTES_AN_ENTRY = 5e3  # likewise, rationals of every alternative included
_LONG = 10.0  # seconds


@spelled
def finite_time_bound(bandit: LinearBandit, n: float, worst_regret: WorstRegret) -> FiniteTimeBound:
    r"""What no policy can beat in n rounds, unless it pays more than ``worst_regret`` at an instance that is listed.

    c(A,θ)·log n is a bound as n → ∞ only; at horizons that people have, good policies lie below it. This one holds at n itself:
    every policy with regret at most B_j at each of a few alternatives θ'_j has regret at least ``value`` at θ. It is the best V with

        V <= min Σ α_x Δ_x   s.t.   Σ_x α_x ⟨x, θ'_j − θ⟩²/(2σ²) >= kl(1 − V/(nδ_j), B_j/(n g_j)),   Σ α_x <= n,   α >= 0,

    over alternatives that the dual of an allocation program proposes; docs/finite-time.md has the theorem and its proof.

    Parameters
    ----------
    bandit : LinearBandit
        The instance; its noise is Gaussian.
    n : int
        Rounds, at most 10^100.
    worst_regret : float or callable
        B: what a policy may pay at the alternatives. A number, or a function that takes an alternative (a `LinearBandit`) and
        returns a number (inf: no demand), for instance
        ``lambda b: 10 * ao.regret_constant(b.arms, b.theta, b.noise_variance).value * math.log(n)``.

    Returns
    -------
    FiniteTimeBound
        ``value``, ``alternatives``, ``sentence``, ``given(regrets)``, ``verify()``, ``save(path)``. A value of 0 says that nothing
        is proven, as where every arm is optimal.

    Examples
    --------
    >>> import allocopt as ao
    >>> bandit = ao.instances.counter_example(0.2)
    >>> [round(ao.finite_time_bound(bandit, 10**k, (2 * 10**k) ** 0.5).value, 2) for k in (4, 6, 12)]
    [6.96, 18.59, 64.41]
    """
    if not isinstance(bandit, LinearBandit):
        raise no_bandit(bandit, n, "finite_time_bound(bandit, n, worst_regret)")
    rounds = whole_number("n", n, InvalidOption, least=1)
    if rounds > MOST_ROUNDS:
        raise InvalidOption(f"n: expected at most 10^100 rounds, got about 10^{len(str(rounds)) - 1}")
    allowed = _checked(worst_regret)
    if not len(bandit.suboptimal_arms):
        return FiniteTimeBound(bandit, rounds, 0.0, (), (), ())
    _check_size(bandit)
    found = search(bandit, rounds, allowed)
    parameters = exact_parameters(bandit, rounds, found)
    exact = exact_alternatives(bandit.arms_in_memory, bandit.theta, variances_of(bandit), rounds, parameters)
    terms = _terms(exact, found.terms.regrets)
    weights, value = _proven(exact, terms)
    used = [j for j, w in enumerate(weights) if w > 0]
    return FiniteTimeBound(
        bandit, rounds, value, tuple(parameters[j] for j in used), tuple(float(terms.regrets[j]) for j in used),
        tuple(weights[j] for j in used),
    )  # fmt: skip


def _check_size(bandit: LinearBandit) -> None:
    """Say so before it starts where looking at every arm in exact arithmetic takes long, and refuse what does not fit."""
    what = f"bandit: the bound of {bandit.n_arms:,} arms in {bandit.dim} dimensions"
    check_memory(_BYTES_AN_ENTRY * bandit.n_arms * bandit.dim, what, InvalidInstance)
    seconds = _SECONDS_AN_ENTRY * bandit.n_arms * bandit.dim
    if seconds > _LONG:
        warn_caller(
            f"finite_time_bound: {bandit.n_arms:,} arms in {bandit.dim} dimensions, each in exact arithmetic, will take about "
            f"{duration_text(seconds)}",
            SlowWarning,
        )


def _proven(exact: ExactAlternatives, terms: Terms) -> tuple[list[float], float]:
    """The LP's weights as they are, or scaled down to what suboptimal arms afford: the better ones, and the V they prove."""
    weights = best_weights(terms)[0].tolist()
    regrets = terms.regrets.tolist()
    tried = []
    for candidate in (weights, exact.affordable(weights)) if weights else ():
        root = value_of(terms, np.array(candidate), exact.paid(candidate))
        tried.append((largest_value(exact, regrets, candidate, root), candidate))
    value, weights = max(tried, default=(0.0, weights))
    return (weights if value > 0 else [0.0] * len(weights)), value  # with λ = 0, V = 0 is proven


def _terms(exact: ExactAlternatives, regrets: Array) -> Terms:
    """Exact terms rounded to doubles, for the LP."""
    rows, columns = exact.information.nrows(), exact.information.ncols()
    information = [[nearest_double(exact.information[j, x]) for x in range(columns)] for j in range(rows)]
    return Terms(
        float(exact.n), np.array([nearest_double(g) for g in exact.gaps]),
        np.array(information).reshape(rows, columns), np.array([nearest_double(g) for g in exact.loss]),
        np.array([nearest_double(g) for g in exact.cost]), regrets,
    )  # fmt: skip


def _checked(worst_regret: Any) -> WorstRegret:
    """A number, or the function with its answers checked."""
    if not callable(worst_regret):
        return positive_number("worst_regret", worst_regret, InvalidOption)

    def allowed(alternative: LinearBandit) -> float:
        answer = worst_regret(alternative)
        return positive_number("worst_regret(alternative)", answer, InvalidOption, zero=True, infinite=True)

    return allowed


def _number(x: float) -> str:
    """Four digits, never above what is proven."""
    if x == 0 or not math.isfinite(x):
        return f"{x:g}"
    digits = 3 - math.floor(math.log10(abs(x)))
    scaled = Fraction(x) * Fraction(10) ** digits
    return f"{float(math.floor(scaled) / Fraction(10) ** digits):.6g}"


def _short(n: int) -> str:
    return str(n) if n < 10**5 else f"{n:.6g}"
