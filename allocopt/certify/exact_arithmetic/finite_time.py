r"""The finite-time bound in exact arithmetic: which V do alternatives θ'_j and weights λ_j prove? No solver is asked.

Theorem (docs/finite-time.md). Let Δ'_j be the gaps at θ'_j, g_j the smallest of them among the arms that are optimal at θ,
δ_j = min of Δ_x/(1 − Δ'_j(x)/g_j) over the arms with Δ'_j(x) < g_j, and a_j(x) = ⟨x, θ'_j − θ⟩²/(2σ²). A policy whose regret
in n rounds is at most B_j at every θ'_j has regret at least V at θ, for every V with

    Σ_j λ_j kl(1 − V/(n δ_j), B_j/(n g_j)) − n μ >= V,      μ = max_x (Σ_j λ_j a_j(x) − Δ_x)_+ .

Everything but the logarithms is rational, from the doubles that the user passed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpq_mat

from allocopt.base.errors import InvalidProof
from allocopt.base.validation import Array
from allocopt.certify.exact_arithmetic.divergence import divergence_in_balls
from allocopt.certify.exact_arithmetic.rows import rational

__all__ = ["ExactAlternatives", "Surplus", "exact_alternatives", "largest_value", "nearest_double", "surplus"]

Parameter = Sequence[Fraction]
"""θ'_j, exactly."""

_PRECISIONS = (128, 256, 1024)  # bits; the next is tried where balls are too wide to decide
_LEAST_REGRET = fmpq(1, 2**1000)  # stands for a regret of 0, whose relative entropy would be infinite
_DOWNWARDS = 1.0 - 2.0**-50  # two roundings to the nearest double do not undo it
_MARGINS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)  # what V gives up until balls prove it


@dataclass(frozen=True, eq=False)
class ExactAlternatives:
    """What the theorem needs to know of some alternatives, as rationals."""

    n: int
    gaps: list[fmpq]
    """Δ_x of every arm at θ."""
    information: fmpq_mat
    """a_j(x): one row per alternative, one column per arm."""
    loss: list[fmpq]
    """g_j: the smallest gap at θ'_j of an arm that is optimal at θ; 0 where one of them stays optimal."""
    cost: list[fmpq]
    """δ_j: the regret at θ per round that is not charged at θ'_j, at least."""

    def price(self, weights: Sequence[fmpq]) -> fmpq:
        """μ = max_x (Σ_j λ_j a_j(x) − Δ_x)_+."""
        row = fmpq_mat(1, len(weights), list(weights)) * self.information
        return max(fmpq(0), *(row[0, x] - gap for x, gap in enumerate(self.gaps)))

    def paid(self, weights: Sequence[float]) -> float:
        """n μ as a double."""
        return nearest_double(self.price([rational(w) for w in weights]) * self.n)

    def affordable(self, weights: Sequence[float]) -> list[float]:
        """The weights, scaled down until no suboptimal arm has a price: at large n even a price of 1e-16 is too much."""
        row = fmpq_mat(1, len(weights), [rational(w) for w in weights]) * self.information
        shares = [gap / row[0, x] for x, gap in enumerate(self.gaps) if 0 < gap < row[0, x]]
        factor = nearest_double(min(shares)) * _DOWNWARDS if shares else 1.0
        return [w * factor for w in weights]


@dataclass(frozen=True)
class Surplus:
    """Whether V is proven, and by how much: Σ λ_j K_j − n μ − V, with K_j rounded down."""

    holds: bool
    levels: tuple[float, ...]
    """K_j, rounded down."""
    price: float
    """μ."""
    surplus: float
    """Rounded down."""
    precision: int
    """Bits of the balls."""


def exact_alternatives(
    arms: Array, theta: Array, variances: Array, n: int, parameters: Sequence[Parameter]
) -> ExactAlternatives:
    """Gaps, information, g_j and δ_j of alternatives ``parameters``, from the doubles of an instance."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidProof(f"n: expected a whole number >= 1, got {n!r}")
    k, d = arms.shape
    rows = fmpq_mat(k, d, [rational(x) for x in arms.ravel().tolist()])
    here = [rational(x) for x in theta.tolist()]
    there = [[fmpq(*x.as_integer_ratio()) for x in parameter] for parameter in parameters]
    means = _column(rows * fmpq_mat(d, 1, here), 0)
    best = max(means)
    gaps = [best - mean for mean in means]
    optimal = [x for x, gap in enumerate(gaps) if gap == 0]
    halves = [1 / (2 * rational(v)) for v in variances.tolist()]
    information, loss, cost = [], [], []
    for parameter in there:
        shift = fmpq_mat(d, 1, [a - b for a, b in zip(parameter, here, strict=True)])
        change = _column(rows * shift, 0)
        information += [c * c * half for c, half in zip(change, halves, strict=True)]
        moved = [mean + c for mean, c in zip(means, change, strict=True)]
        top = max(moved)
        g = min(top - moved[x] for x in optimal)
        loss.append(g)
        cost.append(_cost(gaps, [top - m for m in moved], g))
    return ExactAlternatives(n, gaps, fmpq_mat(len(there), k, information), loss, cost)


def _cost(gaps: list[fmpq], gaps_there: list[fmpq], g: fmpq) -> fmpq:
    """δ = min of Δ_x/(1 − Δ'_x/g) over the arms with Δ'_x < g; 0 where g is 0, and nothing is proven."""
    if g == 0:
        return fmpq(0)
    return min(gap * g / (g - t) for gap, t in zip(gaps, gaps_there, strict=True) if t < g)


def surplus(
    alternatives: ExactAlternatives, regrets: Sequence[float], weights: Sequence[float], value: float
) -> Surplus:
    """Does the theorem prove ``value`` from these B_j and λ_j?"""
    _check_witness(alternatives, regrets, weights, value)
    exact = [rational(w) for w in weights]
    price = alternatives.price(exact) if exact else fmpq(0)
    target = price * alternatives.n + rational(value)
    before = ctx.prec
    try:
        for bits in _PRECISIONS:
            ctx.prec = bits
            levels = [_level(alternatives, j, b, value) for j, b in enumerate(regrets)]
            left = sum((arb(w) * level for w, level in zip(exact, levels, strict=True)), arb(0)) - arb(target)
            if left >= 0 or left < 0:
                break
        holds = bool(left >= 0)
        return Surplus(holds, tuple(_below(x) for x in levels), nearest_double(price), _below(left), bits)
    finally:
        ctx.prec = before


def _check_witness(
    alternatives: ExactAlternatives, regrets: Sequence[float], weights: Sequence[float], value: float
) -> None:
    """Refuse what the theorem says nothing of: with a negative λ_j it would prove any V."""
    count = alternatives.information.nrows()
    for name, entries in (("regrets", regrets), ("weights", weights)):
        if len(entries) != count:
            raise InvalidProof(f"{name}: expected {count} entries, one per alternative, got {len(entries)}")
        for j, x in enumerate(entries):
            if not x >= 0 or (math.isinf(x) and name == "weights"):
                raise InvalidProof(f"{name}: expected numbers >= 0, but entry {j} is {x!r}")
    if not 0 <= value < math.inf:
        raise InvalidProof(f"value: expected a finite number >= 0, got {value!r}")


def _level(alternatives: ExactAlternatives, j: int, regret: float, value: float) -> arb:
    """K_j = kl(1 − V/(n δ_j), B_j/(n g_j)); 0 for a regret that is not bounded, or an alternative that is none."""
    g, cost, n = alternatives.loss[j], alternatives.cost[j], alternatives.n
    if g == 0 or math.isinf(regret):
        return arb(0)
    return divergence_in_balls(rational(value) / (n * cost), max(rational(regret), _LEAST_REGRET) / (n * g))


def largest_value(
    alternatives: ExactAlternatives, regrets: Sequence[float], weights: Sequence[float], start: float
) -> float:
    """A V that is proven: ``start``, the root in doubles, less the little that balls ask for; 0 if that is not enough."""
    for margin in _MARGINS:
        value = start * (1.0 - margin)
        if value > 0.0 and surplus(alternatives, regrets, weights, value).holds:
            return value
    return 0.0


def _column(matrix: fmpq_mat, c: int) -> list[fmpq]:
    return [matrix[i, c] for i in range(matrix.nrows())]


def nearest_double(x: fmpq) -> float:
    """A rational as a double; ±inf beyond their range."""
    try:
        return int(x.p) / int(x.q)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _below(ball: arb) -> float:
    """A double that is not above the ball."""
    if not ball.is_finite():
        return -math.inf
    x = float(ball.lower())
    while math.isfinite(x) and not arb(x) <= ball:
        x = math.nextafter(x, -math.inf)
    return x
