"""Every tolerance of the package, once, with its reason."""

from __future__ import annotations

from typing import Final

EPS: Final = 2.0**-52
"""Spacing of doubles at 1."""

DEFAULT_TOL: Final = 1e-8
"""Relative certified gap that ``solve`` aims at: half the digits of a double, reached by second-order methods in a
few extra steps and far below any statistical error."""

LARGEST: Final = 1e50
"""Vectors, costs and gaps may be as large as this and as small as its inverse (their largest entry, where they are
vectors): squares and quotients of them then stay well inside the range of doubles."""

SMALLEST_ENTRY: Final = 1e-150
"""Entries of vectors are zero or at least this large: products of two of them are then doubles with all their digits."""

TIE: Final = 1e-14
"""Two means are a tie when they differ by at most this times the magnitude of the terms they are summed from
(Σ|x_i θ_i|). Arms and θ that were themselves computed carry rounding of a few 1e-16 per term."""

RANK: Final = 1e-13
"""Singular directions below this (rows and columns equilibrated first) are rounding noise of a rank-deficient set."""

SUPPORT: Final = 1e-6
"""Entries of α and λ below this share of the largest are dropped when complementarity says they are zero and the
recomputed certificate does not suffer. `Solution.support` leaves out what brings less than this share of the information."""

BINDING: Final = 1e-6
"""A constraint is called binding when its multiplier is positive or its slack is below this, relatively."""

NOT_ZERO: Final = 1e-300
"""Stands where a divisor might be zero: below everything that is computed from admissible data, so that it changes no number."""
