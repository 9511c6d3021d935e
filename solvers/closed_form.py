"""Programs whose answer is a formula (docs/math.md section 6).

- Independent directions: every feature and target lies along one of r independent directions (finite-armed bandits,
  and every quotient of dimension 1). Each direction is a problem of its own: α = max_j β_j² with b_j = β_j a.
- Equal gaps: targets are the features times one factor β, so c = β² r by Kiefer and Wolfowitz; the allocation is a
  G-optimal design, found by `design` and certified like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocopt.base.errors import MethodUnavailable
from allocopt.base.tolerances import EPS
from allocopt.base.validation import Array, IntArray
from allocopt.certify.canonical import Canonical
from allocopt.solvers import design
from allocopt.solvers.monitor import Monitor
from allocopt.solvers.settings import ClosedFormSettings

__all__ = ["Directions", "EqualGaps", "no_formula", "solve", "structure"]

_MANY = 50  # more than this times r² arms are not searched for directions
_PARALLEL = 64 * EPS  # sine of the angle below which two rows are one direction


@dataclass(frozen=True, eq=False)
class Directions:
    """For each direction: its cheapest feature, its most demanding target (−1 if none), and β."""

    features: IntArray
    targets: IntArray
    ratios: Array


@dataclass(frozen=True)
class EqualGaps:
    """Targets are the features times ``factor``; the value is ``factor``² r."""

    factor: float


def structure(problem: Canonical) -> Directions | EqualGaps | None:
    """The closed form that applies, if one does."""
    if not problem.scalable or problem.owners is not None:  # an arm along several directions couples them
        return None
    return _directions(problem) or _equal_gaps(problem)


def no_formula(problem: Canonical) -> str | None:
    """What a problem without a formula lacks; None where there is one."""
    if structure(problem) is not None:
        return None
    return "needs linearly independent directions (orthogonal arms, a one-dimensional quotient) or equal gaps"


def _unit(rows: Array) -> tuple[Array, Array]:
    """Unit rows with a positive largest entry, and the signed lengths."""
    size = np.abs(rows).max(axis=1)
    length = size * np.sqrt(np.einsum("ij,ij->i", rows / size[:, None], rows / size[:, None]))
    length = length * np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    return rows / length[:, None], length


def _directions(problem: Canonical) -> Directions | None:
    r = problem.rank
    if r > 1 and len(problem.features) > _MANY * r * r:
        return None  # so many arms along so few directions is not worth the search
    features, feature_length = _unit(problem.features)
    axes: list[Array] = []
    members: list[int] = []
    left = np.argsort(-np.abs(feature_length), kind="stable")  # longest first: it is the cheapest of its direction
    while len(left):
        if len(axes) == r:
            return None
        axes.append(features[left[0]])
        members.append(int(left[0]))
        left = left[~_parallel(features, axes[-1], left)]
    if len(axes) < r:
        return None  # directions that differ by less than the tolerance for parallel ones
    targets, target_length = _unit(problem.targets)
    best = np.full(r, -1)
    ratios, placed = np.zeros(r), np.zeros(len(targets), dtype=bool)
    everything = np.arange(len(targets))
    for n, axis in enumerate(axes):
        along = everything[_parallel(targets, axis, everything)]
        if len(along):
            j = int(along[np.argmax(np.abs(target_length[along]))])
            best[n], ratios[n] = j, abs(target_length[j] / feature_length[members[n]])
            placed[along] = True
    return Directions(np.array(members), best, ratios) if placed.all() else None


def _parallel(rows: Array, axis: Array, among: IntArray) -> NDArray[np.bool_]:
    """Which of some unit rows are along an axis; those of which one entry is another's are not looked at further."""
    column = int(np.abs(axis).argmax())
    near = np.abs(np.abs(rows[among, column]) - abs(axis[column])) <= _PARALLEL
    found: NDArray[np.bool_] = near.copy()
    some = rows[among[near]]
    found[near] = np.minimum(np.abs(some - axis).max(axis=1), np.abs(some + axis).max(axis=1)) <= _PARALLEL
    return found


def _equal_gaps(problem: Canonical) -> EqualGaps | None:
    factor = design.common_ratio(problem)
    return None if factor is None else EqualGaps(factor)


def solve(problem: Canonical, monitor: Monitor, settings: ClosedFormSettings | None = None) -> dict[str, float | str]:
    """Apply the formula; `MethodUnavailable` where there is none."""
    form = structure(problem)
    if form is None:
        raise MethodUnavailable("closed-form: no formula is known for this program")
    if isinstance(form, Directions):
        alpha = np.zeros(len(problem.features))
        multipliers = np.zeros(len(problem.targets))
        asked = form.targets >= 0
        alpha[form.features[asked]] = form.ratios[asked] ** 2
        # a direction without a target still needs a little information for M to be invertible
        alpha[form.features[~asked]] = EPS * alpha.sum()
        multipliers[form.targets[asked]] = form.ratios[asked] ** 2
        monitor.report(alpha, multipliers, 1)
        return {"formula": "independent directions"}
    stats = design.solve(problem, monitor)
    return {"formula": "equal gaps", "formula_value": form.factor**2 * problem.rank, **stats}
