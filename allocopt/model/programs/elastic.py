"""Whether linear constraints leave any allocation at all: a program in which the limits may be exceeded, at a price, decides it.

Its features, targets and bounds are the program's, arms cost nothing, and one more arm, which shows nothing, costs 1 and raises every
limit by its size. That program's value is the part by which limits must be exceeded: a proven lower bound above 0 is a proof that no
allocation meets all constraints, by the same certificate as any other.
"""

from __future__ import annotations

import numpy as np

from allocopt.model.program import AllocationProgram
from allocopt.model.rows.constraints import LinearConstraints

__all__ = ["elastic_program", "shortfall_text", "unlimited_arms"]


def elastic_program(program: AllocationProgram) -> AllocationProgram:
    """Minimise the part of their sizes by which the limits must be exceeded.

    Examples
    --------
    >>> import allocopt as ao
    >>> p = AllocationProgram([[1.0]], [1], [[1.0]], [1], constraints=([[2]], [1]))  # α >= 1, but 2α <= 1
    >>> round(ao.solve(elastic_program(p)).value, 6)
    1.0
    """
    given = _that_can_bind(program)
    k, n = program.n_arms, given.n_rows
    largest = np.zeros(n)
    np.maximum.at(largest, given.places, np.abs(given.values))
    sizes = np.where(given.limits != 0, np.abs(given.limits), np.where(largest > 0, largest, 1.0))
    constraints = LinearConstraints.listed(
        np.concatenate([given.places, np.arange(n)]), np.concatenate([given.arms, np.full(n, k)]),
        np.concatenate([given.values, -sizes]), given.limits, k + 1,
    )  # fmt: skip
    owners = None if program.owners is None else np.append(program.owners, k)
    noise = None if program.noise_variance is None else np.append(program.noise_variance, 1.0)
    # radii that were rounded themselves: a little larger ones, which are met more easily
    radii = program.radii * (1.0 + 2.0**-40) if program.kind != "general" else program.radii
    return AllocationProgram(
        np.concatenate([program.features, np.zeros((1, program.dim))]), np.append(np.zeros(k), 1.0), program.targets, radii,
        np.append(program.lower, 0.0), np.append(program.upper, np.inf), noise_variance=noise, owners=owners, constraints=constraints,
    )  # fmt: skip


def _that_can_bind(program: AllocationProgram) -> LinearConstraints:
    """The rows that no arm can meet by itself: one of negative coefficients only, and without a bound, can.

    Leaving rows out asks for less, so what cannot be met then cannot be met at all. With all rows, such arms are played without
    end, which no finite allocation, and no proof with one, comes near to.
    """
    given = program.constraints
    assert given is not None
    kept = np.ones(given.n_rows, dtype=bool)
    while True:
        at = np.flatnonzero(kept[given.places])
        most = np.full(program.n_arms, -np.inf)
        np.maximum.at(most, given.arms[at], given.values[at])
        easy = (most < 0) & np.isinf(program.upper)
        idle = np.unique(given.places[at[easy[given.arms[at]]]])
        if not len(idle):
            break
        kept[idle] = False
    number = np.cumsum(kept) - 1
    return LinearConstraints.listed(
        number[given.places[at]], given.arms[at], given.values[at], given.limits[kept], program.n_arms
    )


def unlimited_arms(program: AllocationProgram) -> dict[str, str]:
    """The reason why no finite allocation is optimal, where arms that cost nothing can be played without end; else nothing.

    Examples
    --------
    >>> p = AllocationProgram([[1.0], [1.0]], [0, 1], [[1.0]], [1], constraints=([[-1, 1]], [1]))
    >>> unlimited_arms(p)["reason"].split(", so")[0]
    'arms [0] cost nothing and the rows of Bα <= b limit them nowhere'
    """
    given = program.constraints
    assert given is not None
    most = np.full(program.n_arms, -np.inf)
    np.maximum.at(most, given.arms, given.values)
    unlimited = np.flatnonzero((program.costs == 0) & np.isinf(program.upper) & (most < 0) & given.constrained)
    if not len(unlimited):
        return {}
    return {
        "reason": f"arms {unlimited.tolist()} cost nothing and the rows of Bα <= b limit them nowhere, so that no finite allocation "
        "is optimal; leave them out of the rows"
    }


def shortfall_text(shortfall: float) -> str:
    """What a proven shortfall means."""
    return (
        "constraints: no allocation meets all targets within Bα <= b; some limit would have to be exceeded by at least "
        f"{shortfall:.3g} of its size, which is proven"
    )
