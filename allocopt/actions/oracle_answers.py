"""The answers of an oracle: counted and checked, and remembered together with the best arm and the second-best gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.actions.oracles import Incidence, ListOracle, Oracle
from allocopt.base.errors import InvalidInstance, MethodUnavailable
from allocopt.base.tolerances import TIE
from allocopt.base.validation import Array, vector

__all__ = ["Counted", "Explored"]

_ROUNDING = 1e-13
"""Error of ⟨functional, x⟩ + constant − t Δ_x, relative to the sum of the magnitudes: some hundred roundings of 1e-16 each."""
_REMEMBERED = 4
"""Times the dimension: listed arms of the smallest gaps that are remembered from the beginning."""


class Counted:
    """An oracle that counts its calls, answers for both signs, and is checked on the way."""

    def __init__(self, oracle: Oracle) -> None:
        if not callable(oracle) or not hasattr(oracle, "dim"):
            raise InvalidInstance(f"oracle: expected dim and a call with a direction, got a {type(oracle).__name__}")
        self.oracle, self.dim, self.calls = oracle, int(oracle.dim), 0

    def smallest(self, direction: Array) -> tuple[Array, Any, float]:
        """The arm with the smallest inner product, its label and that product."""
        self.calls += 1
        arm, label = self.oracle(direction)
        x = vector("the oracle's arm", arm, InvalidInstance, length=self.dim)
        return x, label, float(x @ direction)

    def extreme(self, direction: Array) -> tuple[Array, Any, float]:
        """The arm whose inner product is largest in absolute value: two calls."""
        low, high = self.smallest(direction), self.smallest(-direction)
        return low if -low[2] >= -high[2] else (high[0], high[1], -high[2])


class Explored:
    """What is known of the arms: the best one, the second-best gap, and all those that the oracle has shown."""

    def __init__(self, oracle: Oracle, theta: Any) -> None:
        self.counted = Counted(oracle)
        self.theta = vector("theta", theta, InvalidInstance, length=self.counted.dim)
        self.pool: dict[bytes, tuple[Array, Any]] = {}
        self.best, self.label = self.largest(self.theta)
        self.gap_min = self._second(oracle)

    def largest(self, direction: Array) -> tuple[Array, Any]:
        """An arm that maximises ⟨x, direction⟩; it is remembered."""
        x, label, _ = self.counted.smallest(-direction)
        self.pool.setdefault(x.tobytes(), (x, label))
        return x, label

    def gap(self, x: Array) -> float:
        """Δ_x."""
        return float((self.best - x) @ self.theta)

    def _second(self, oracle: Oracle) -> float:
        """The smallest gap of another arm: exactly, by forbidding the edges of the best one in turn (Lawler)."""
        gaps: list[float] = []
        if isinstance(oracle, ListOracle):
            others = np.flatnonzero((oracle.arms != self.best).any(axis=1))
            gaps = ((self.best - oracle.arms[others]) @ self.theta).tolist()
            for i in others[np.argsort(gaps)[: _REMEMBERED * self.counted.dim]].tolist():
                self.pool.setdefault(oracle.arms[i].tobytes(), (oracle.arms[i], i))
        elif isinstance(oracle, Incidence):
            penalty = 2.0 * float(np.abs(self.theta).sum()) + 1.0
            for e in np.flatnonzero(self.best).tolist():
                forbidden = self.theta.copy()
                forbidden[e] -= penalty
                x, label, _ = self.counted.smallest(-forbidden)
                if x[e] == 0:  # else every arm has this edge
                    self.pool.setdefault(x.tobytes(), (x, label))
                    gaps.append(self.gap(x))
        else:
            raise MethodUnavailable(
                "oracle: the second-best arm is needed, and can be found for paths, spanning trees, matchings and listed arms "
                f"only, not for a {type(oracle).__name__}"
            )
        smallest = min(gaps, default=np.inf)
        if smallest <= 2 * TIE * float(np.abs(self.best) @ np.abs(self.theta)):
            raise MethodUnavailable("theta: several arms are optimal; the bounds over an oracle need a single one")
        return float(smallest)

    def ratio(self, functional: Array, constant: float = 0.0) -> tuple[float, Array]:
        """max over arms x != x* of (⟨functional, x⟩ + constant)/Δ_x or 0, padded for rounding; it must vanish at x*."""
        t, found = 0.0, self.best
        size = float(np.abs(functional).sum())
        while True:
            slack = _ROUNDING * (size + t * float(np.abs(self.theta).sum()))
            x, _ = self.largest(functional + t * self.theta)
            value = float(functional @ x) + constant - t * self.gap(x)
            if value <= slack or (x == self.best).all():
                return t + slack / self.gap_min, found
            better = (float(functional @ x) + constant) / self.gap(x)
            if better <= t:  # equal up to rounding
                return t + (slack + value) / self.gap_min, found
            t, found = better, x

    def widths(self, functionals: Array) -> tuple[Array, Array]:
        """R₊ and R₋ of each functional."""
        both = np.array([[self.ratio(p)[0], self.ratio(-p)[0]] for p in functionals])
        return both[:, 0], both[:, 1]

    def others(self) -> tuple[Array, list[Any], Array]:
        """The arms seen so far but the best one, their labels and gaps."""
        seen = [(x, label) for x, label in self.pool.values() if (x != self.best).any()]
        x = np.array([row[0] for row in seen])
        return x, [row[1] for row in seen], (self.best - x) @ self.theta
