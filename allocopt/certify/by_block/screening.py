r"""Screening: constraints that bind at no optimum and arms that no optimum plays, so that later passes may skip them.

Take the basis in which M(α) = I, λ that sums to 1, P = Σ λ_j b_j b_jᵀ, and τ the largest price. Let c be the value,
L <= c <= U, and M* the matrix of an optimal allocation. Then tr(P M*) <= τ c <= τ U, because every arm's price is at most τ,
and tr(P M*^-1) <= 1, because its constraints hold. With s = √(τU), N = M*/s: tr P(N + N^-1 − 2I) <= 2 (s − tr P) =: η, so with
π the least eigenvalue of P all eigenvalues of N lie in [1/κ, κ], κ + 1/κ = 2 + η/π. Hence g_j(α*) <= κ/s g_j(α): a constraint
for which that is below 1 binds at no optimum.

An arm with Σα |a_i|² < 1 lies inside the convex hull of the arms ±a that α plays (Cauchy and Schwarz on
a_i = Σ_l α_l ⟨a_l, a_i⟩ a_l), so its price is below 1 at every dual optimum: it is played at none.

Nothing that is certified rests on this: the last pass looks at every arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allocopt.base.validation import Array
from allocopt.certify.canonical import Canonical
from allocopt.certify.frame import Frame

__all__ = ["Screening"]

_SAFETY = 1e-9  # relative: more than the rounding of an eigenvalue


@dataclass(frozen=True, eq=False)
class Screening:
    """What one pass tells about the optimum."""

    kappa: float
    """κ: how far M*/s can be from M(α) at most."""
    scale: float
    """s."""
    cost: float
    """Σα."""
    root: Array
    """The rows √α_i a_i that are played."""

    @classmethod
    def of(cls, frame: Frame, part: Canonical, alpha: Array, top_price: float, upper: float) -> Screening:
        """From the frame of a pass, the largest price and the upper bound that it found."""
        scale = float(np.sqrt(top_price * upper))
        spread = 2.0 * max(scale - frame.strength, 0.0) / max(float(frame.spectrum.min()), 1e-300)
        kappa = float(1.0 + 0.5 * spread + np.sqrt(0.25 * spread * spread + spread))
        used = alpha > 0
        return cls(kappa, scale, float(alpha.sum()), part.features[used] * np.sqrt(alpha[used])[:, None])

    def factors(self, frame: Frame) -> tuple[float, float] | None:
        """What g and |a|² of another frame are multiplied with before they are compared with 1; None where nothing is known.

        If M_old >= ω M_new then |a|²_old <= |a|²_new/ω.
        """
        images = self.root @ frame.basis
        least = float(np.linalg.eigvalsh(images.T @ images)[0]) * (1.0 - _SAFETY)
        if least <= 0:
            return None
        return self.kappa / self.scale / least * (1.0 + _SAFETY), self.cost / least * (1.0 + _SAFETY)
