"""ConstraintCheck: the norms after a number of pulls, against the radii of the constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array, IntArray

__all__ = ["ConstraintCheck"]

_ROUNDING = 1e-9
"""Relative excess of a computed norm that is put down to double precision (ill-conditioned arms lose some digits)."""


@dataclass(frozen=True, eq=False)
class ConstraintCheck:
    """Squared norms ||x||²_{G_t^-1} after t rounds against the radii Δ_x²/f_n, one entry per constraint.

    Definition 9 (`def:opt`) lets the free arms (zero gap) be played without end: ``norms`` are those, in the quotient by the free
    arms, and ceilings of T_n meet every radius with them *exactly*. ``finite_norms`` count the free arms as often as they
    were really played. With N plays of a unique free arm x* they are larger by at most v²/N, where v is the coefficient of
    x* when x is written as the combination of arms that attains ``norms``: the excess vanishes like 1/n, the radii like
    1/log n only.
    """

    t: int
    arms: IntArray
    """The arm of each constraint (the target's number, where targets do not belong to arms)."""
    radii: Array
    norms: Array
    """With free arms played without end; inf for directions that nothing played so far can estimate."""
    finite_norms: Array
    """With the free arms' real counts."""

    @property
    def slack(self) -> Array:
        """radii − norms: negative where a constraint is not met yet."""
        return self.radii - self.norms

    @property
    def finite_slack(self) -> Array:
        """radii − finite_norms."""
        return self.radii - self.finite_norms

    @property
    def met(self) -> bool:
        """Whether every constraint of Definition 9 (`def:opt`) holds."""
        return bool((self.norms <= self.radii * (1.0 + _ROUNDING)).all())

    @property
    def finite_met(self) -> bool:
        """Whether they hold with the free arms' real counts too."""
        return bool((self.finite_norms <= self.radii * (1.0 + _ROUNDING)).all())

    @property
    def worst(self) -> float:
        """The largest norm/radius; at most 1 (up to rounding) when all are met."""
        return float((self.norms / self.radii).max(initial=0.0))

    @property
    def finite_worst(self) -> float:
        """The largest finite_norm/radius."""
        return float((self.finite_norms / self.radii).max(initial=0.0))

    @property
    def unmet(self) -> IntArray:
        """The arms (targets) whose constraint is not met, worst first."""
        ratio = self.norms / self.radii
        bad = np.flatnonzero(ratio > 1.0 + _ROUNDING)
        return self.arms[bad[np.argsort(-ratio[bad], kind="stable")]]

    def __repr__(self) -> str:
        return (
            f"ConstraintCheck(t={self.t}, met={self.met}, worst={self.worst:.6g}, finite_met={self.finite_met}, "
            f"finite_worst={self.finite_worst:.6g}, constraints={len(self.radii)})"
        )
