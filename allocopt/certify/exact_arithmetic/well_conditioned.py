"""Canonical arrays in a basis in which M(α) is about I, from exact rows: for sets of arms that are nearly dependent.

Every entry of a canonical row is accurate by itself, but where directions are nearly dependent the *program* of the rounded rows is
another one, and a method can solve it no better than that. A change of basis in doubles would come too late. Here exact rows are
multiplied with a basis of doubles in rationals and rounded afterwards; α and λ do not depend on the basis, so a pair for these
arrays is one for the reduction. Proposals only: the certificate judges the pair as any other.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from flint import fmpq_mat

from allocopt.base.validation import Array
from allocopt.certify.canonical import Canonical
from allocopt.certify.exact_arithmetic.program import exact_program
from allocopt.certify.exact_arithmetic.rows import Row, rational
from allocopt.certify.reduction import Reduction
from allocopt.linear import dense
from allocopt.linear.span import column_units

__all__ = ["well_conditioned"]


def well_conditioned(reduction: Reduction, alpha: Array) -> Canonical | None:
    """The canonical problem of a reduction in a basis made from α; None where M(α) is singular in doubles."""
    problem = reduction.canonical
    exact = exact_program(reduction.program, reduction.quotient)
    place = {arm: i for i, arm in enumerate(exact.arms)}
    variables = [place[i] for i in reduction.variables.tolist()]
    known = [i for i, arm in enumerate(exact.arms) if 0 < reduction.fixed[arm] < np.inf and any(exact.features[i])]
    pulls = np.array([reduction.fixed[exact.arms[i]] / _nearest(exact.variances[i]) for i in known])
    rows = [exact.features[i] for i in (*variables, *known)]
    weights = np.concatenate([1.0 / np.sqrt([_nearest(exact.costs[i]) for i in variables]), np.sqrt(pulls)])
    rounded = _doubles(rows) * weights[:, None]
    scale = column_units(rounded)
    played = np.concatenate([alpha, np.ones(len(known))])
    regular, basis = dense.whitener((rounded * scale).T, played, None)
    if not regular:
        return None
    basis = basis * scale[:, None]
    images = _images(rows, basis) * weights[:, None]
    radii = np.sqrt([_nearest(exact.radii[j]) for j in reduction.targets.tolist()])
    targets = _images([exact.targets[j] for j in reduction.targets.tolist()], basis) / radii[:, None]
    if not (np.isfinite(images).all() and np.isfinite(targets).all()):
        return None
    return dataclasses.replace(
        problem, features=images[: len(variables)], base=images[len(variables) :], targets=targets
    )


def _images(rows: list[Row], basis: Array) -> Array:
    """Rows times a matrix of doubles, exactly, then rounded."""
    product = fmpq_mat(rows) * fmpq_mat([[rational(x) for x in row] for row in basis.tolist()])
    return _doubles(product.tolist())


def _doubles(rows: list[Row]) -> Array:
    return np.array([[_nearest(x) for x in row] for row in rows])


def _nearest(number: object) -> float:
    """A rational rounded to the nearest double."""
    return int(number.p) / int(number.q)  # type: ignore[attr-defined]
