r"""The certificate in ball arithmetic: for programs that lose too many digits in doubles.

Any α gives an upper bound and any λ a lower bound (docs/certificates.md), from exact rationals; the only rounding is that of
python-flint's balls, which carry their own error bounds. Every row is looked at in balls, so this is for small programs.
"""

from __future__ import annotations

import math

from flint import arb, arb_mat, ctx, fmpq

from allocopt.base.validation import Array
from allocopt.certify.exact_arithmetic.program import ExactProgram, exact_program
from allocopt.certify.exact_arithmetic.rows import rational
from allocopt.certify.reduction import Reduction

__all__ = ["interval_in_balls"]

_PRECISIONS = (128, 256, 512, 1024, 2048)  # bits; the first that makes the balls' own width negligible is kept
_NEGLIGIBLE = 1e-14  # relative width of the balls, far below the gap of any floating-point solution
_NARROW_PRICES = 1e-6  # relative width of a price beyond which the best scale of the dual cannot be told
_CANDIDATES = 16  # breakpoints of the dual that are tried next to the best one in floating point


def interval_in_balls(
    reduction: Reduction, allocation: Array, multipliers: Array, precision: int | None = None,
    row_multipliers: Array | None = None,
) -> tuple[float, float, int]:  # fmt: skip
    """Lower and upper bound that an allocation and multipliers of the program prove, and the bits that it took."""
    program = reduction.program
    exact = exact_program(program, reduction.quotient)
    # a bound need not be a double: α at a bound means the bound itself
    alpha = [
        _clip(rational(allocation[i]) / variance, low, high)
        for i, variance, low, high in zip(exact.arms, exact.variances, exact.lower, exact.upper, strict=True)
    ]
    arms = program.target_arms
    weights = [rational(x) for x in (multipliers if arms is None else multipliers[arms])]
    rents = [fmpq(0)] * len(exact.limits) if row_multipliers is None else [rational(x) for x in row_multipliers]
    before = ctx.prec
    try:
        for bits in _PRECISIONS if precision is None else (precision,):
            ctx.prec = bits
            proof = _Proof(exact, rents)
            lower, upper = proof.interval(alpha, weights)
            narrow = _width(lower) + _width(upper) < _NEGLIGIBLE and proof.widest_price < _NARROW_PRICES
            if lower.is_finite() and upper.is_finite() and narrow:
                break
        return max(_round_down(lower), 0.0), _round_up(upper), bits
    finally:
        ctx.prec = before


class _Proof:
    """A program in balls of the current precision."""

    def __init__(self, exact: ExactProgram, rents: list[fmpq]) -> None:
        self.exact = exact
        charges, self.rent = _charged(exact, rents)
        """What the linear constraints cost at least, μᵀb."""
        self.rank = len(exact.features[0]) if exact.features else 0
        self.asked = [j for j, row in enumerate(exact.targets) if any(x != 0 for x in row)]
        self.features = _balls(exact.features, self.rank)
        self.targets = _balls([exact.targets[j] for j in self.asked], self.rank)
        self.radii = [arb(exact.radii[j]) for j in self.asked]
        self.costs = [arb(c) for c in charges]
        """Costs, and what a unit takes of the linear constraints: κ + Bᵀμ."""
        self.reduced = sum((c * x for c, x in zip(charges, exact.lower, strict=True)), fmpq(0)) - self.rent
        self.widest_price = 0.0
        bounded = any(u is not None for u in exact.upper) or any(x != 0 for x in exact.lower)
        self.bounded = bounded or bool(exact.limits)

    def interval(self, alpha: list[fmpq], weights: list[fmpq]) -> tuple[arb, arb]:
        """Balls whose lower and upper ends enclose the value."""
        exact = self.exact
        least = sum((c * x for c, x in zip(exact.costs, exact.lower, strict=True)), fmpq(0))
        if not self.asked:
            if not exact.limits:
                return arb(least), arb(least)
            lower = self._best([arb(0)] * len(self.costs), arb(0), arb(least))
            return lower, arb(self._cost(alpha)) if self._within(alpha) else arb("inf")
        inverse = self._inverse(alpha)
        lower = arb(least) if inverse is None else self._lower_bound(inverse, weights, arb(least))
        return lower, self._upper_bound(alpha, inverse)

    def _within(self, alpha: list[fmpq]) -> bool:
        """Whether the linear constraints hold: in rationals, there is nothing to round."""
        return all(sum((c * alpha[i] for i, c in row), fmpq(0)) <= limit for row, limit in self.exact.limits)

    def _inverse(self, alpha: list[fmpq]) -> arb_mat | None:
        by_row = self.exact.by_row(alpha)
        used = [i for i, x in enumerate(by_row) if x > 0]
        if len(used) < self.rank:
            return None
        rows = _balls([self.exact.features[i] for i in used], self.rank)
        weighted = arb_mat([[arb(by_row[i]) * rows[n, c] for c in range(self.rank)] for n, i in enumerate(used)])
        try:
            return (rows.transpose() * weighted).inv()
        except ZeroDivisionError:
            return None

    def _by_arm(self, prices: list[arb]) -> list[arb]:
        """Prices of arms from those of rows."""
        exact = self.exact
        if exact.owners is None or exact.weights is None:
            return prices
        sums = [arb(0)] * len(exact.arms)
        for i, w, price in zip(exact.owners, exact.weights, prices, strict=True):
            sums[i] += arb(w) * price
        return sums

    def _ratios(self, inverse: arb_mat) -> list[arb]:
        """||t_j||²_{H^-1} / ρ_j."""
        norms = _quadratic_forms(self.targets, inverse)
        return [g / radius for g, radius in zip(norms, self.radii, strict=True)]

    def _upper_bound(self, alpha: list[fmpq], inverse: arb_mat | None) -> arb:
        if not self.bounded:
            if inverse is None:
                return arb("inf")
            return arb(self._cost(alpha)) * _maximum(self._ratios(inverse))
        if inverse is None or not self._within(alpha) or not all(ratio <= 1 for ratio in self._ratios(inverse)):
            return arb("inf")
        return arb(self._cost(alpha))

    def _cost(self, alpha: list[fmpq]) -> fmpq:
        return sum((c * x for c, x in zip(self.exact.costs, alpha, strict=True)), fmpq(0))

    def _lower_bound(self, inverse: arb_mat, weights: list[fmpq], least: arb) -> arb:
        """max over q of q(B²/Λ − Σ l_i p_i) + Σ l_i κ_i − Σ (u_i − l_i)(q p_i − κ_i)_+ for y_j = H^-1 t_j."""
        on = [n for n, j in enumerate(self.asked) if weights[j] > 0]
        if not on:
            return self._best([arb(0)] * len(self.costs), arb(0), least) if self.exact.limits else least
        lam = [arb(weights[self.asked[n]]) / self.radii[n] for n in on]
        rows = arb_mat([[self.targets[n, c] for c in range(self.rank)] for n in on])
        directions = rows * inverse
        scaled = arb_mat([[lam[i] * directions[i, c] for c in range(self.rank)] for i in range(len(on))])
        prices = self._by_arm(_quadratic_forms(self.features, directions.transpose() * scaled))
        self.widest_price = max(_width(p) for p in prices)
        strength = sum((scaled[i, c] * rows[i, c] for i in range(len(on)) for c in range(self.rank)), arb(0))
        total = sum((arb(weights[self.asked[n]]) for n in on), arb(0))
        slope = strength * strength / total
        if not self.bounded:
            return slope / _maximum([p / c for p, c in zip(prices, self.costs, strict=True)])
        slope -= sum((arb(x) * p for x, p in zip(self.exact.lower, prices, strict=True) if x != 0), arb(0))
        return self._best(prices, slope, least)

    def _best(self, prices: list[arb], slope: arb, least: arb) -> arb:
        """The best scale of the dual; ``least`` is what the lower bounds cost, which is a bound in any case."""
        rooms = [None if u is None else arb(u - x) for u, x in zip(self.exact.upper, self.exact.lower, strict=True)]
        start, best, scales = arb(self.reduced), arb(0), self._scales(prices, slope)
        if self.exact.limits:
            best, scales = least - start, [arb(0), *scales]
        for q in scales:
            gain = q * slope
            for p, c, room in zip(prices, self.costs, rooms, strict=True):
                excess = q * p - c
                if not excess <= 0:
                    gain = gain - arb("inf") if room is None else gain - room * _maximum([excess, arb(0)])
            if gain.is_finite() and gain > best:
                best = gain
        return start + best

    def _scales(self, prices: list[arb], slope: arb) -> list[arb]:
        """Candidates for the best q: breakpoints κ_i/p_i around the one where the slope changes sign, a little smaller."""
        left = float(slope.mid())
        breakpoints = []
        cap = math.inf
        for p, c, u, x in zip(prices, self.costs, self.exact.upper, self.exact.lower, strict=True):
            price, cost = _round_up(p), float(c.mid())
            if price <= 0:
                continue
            if u is None:
                cap = min(cap, max(cost, 0.0) / price)
            elif cost <= 0:
                left -= float(u - x) * price  # costs nothing: its term is linear from q = 0 on
            else:
                breakpoints.append((cost / price, float(u - x) * price))
        breakpoints.sort()
        best = cap
        for q, drop in breakpoints:
            left -= drop
            if left <= 0:
                best = min(best, q)
                break
        candidates = [q for q, _ in breakpoints if 0.5 * best <= q <= min(2.0 * best, cap)]
        candidates = sorted(candidates, key=lambda q: abs(q - best))[:_CANDIDATES]
        if math.isfinite(best):
            candidates.append(best)
        shrink = arb(rational(1.0 - 2.0**-48))
        return [arb(rational(q)) * shrink for q in candidates if math.isfinite(q)]  # κ/p may leave the range of doubles


def _charged(exact: ExactProgram, rents: list[fmpq]) -> tuple[list[fmpq], fmpq]:
    """κ + Bᵀμ and μᵀb; for μ = 0 where that would pay for playing an arm without bound, which proves nothing."""
    charges, total = list(exact.costs), fmpq(0)
    for (row, limit), rent in zip(exact.limits, rents, strict=True):
        total += rent * limit
        for i, c in row:
            charges[i] += rent * c
    if any(c < 0 and u is None for c, u in zip(charges, exact.upper, strict=True)):
        return exact.costs, fmpq(0)
    return charges, total


def _balls(rows: list[list[fmpq]], width: int) -> arb_mat:
    return arb_mat(len(rows), width, [arb(x) for row in rows for x in row])


def _quadratic_forms(rows: arb_mat, matrix: arb_mat) -> list[arb]:
    """rowᵀ · matrix · row for every row."""
    images = rows * matrix
    width = rows.ncols()
    return [sum((images[i, c] * rows[i, c] for c in range(width)), arb(0)) for i in range(rows.nrows())]


def _maximum(values: list[arb]) -> arb:
    """A ball that contains the maximum."""
    best = values[0]
    for value in values[1:]:
        best = best.max(value)
    return best


def _clip(x: fmpq, low: fmpq, high: fmpq | None) -> fmpq:
    x = max(x, low)
    return x if high is None else min(x, high)


def _width(ball: arb) -> float:
    size = float(abs(ball).mid())
    return float(ball.rad()) / size if size > 0 else 0.0


def _round_down(ball: arb) -> float:
    """The largest double that is provably at most the ball's lower end (up to one ulp)."""
    if not ball.is_finite():
        return -math.inf
    x = float(ball.lower())
    while not arb(x) <= ball.lower():
        x = math.nextafter(x, -math.inf)
    return x


def _round_up(ball: arb) -> float:
    if not ball.is_finite():
        return math.inf
    x = float(ball.upper())
    while not arb(x) >= ball.upper():
        x = math.nextafter(x, math.inf)
    return x
