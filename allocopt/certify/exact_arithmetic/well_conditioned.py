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
    owners = range(len(exact.arms)) if exact.owners is None else exact.owners  # the place in ``arms`` of each row
    noise = [1 / v for v in exact.variances] if exact.weights is None else exact.weights  # 1/σ² of each row
    telling = [n for n, row in enumerate(exact.features) if any(row)]  # as in the reduction: rows of zeros tell nothing
    played, fixed = set(reduction.variables.tolist()), reduction.fixed
    variable = [n for n in telling if exact.arms[owners[n]] in played]
    known = [n for n in telling if 0 < fixed[exact.arms[owners[n]]] < np.inf]
    rows = [exact.features[n] for n in (*variable, *known)]
    # costs are κσ² where every arm has one row, and κ where rows have weights
    units = [exact.costs[owners[n]] / (noise[n] if exact.weights is not None else 1) for n in variable]
    pulls = np.array([fixed[exact.arms[owners[n]]] * _nearest(noise[n]) for n in known])
    weights = np.concatenate([1.0 / np.sqrt([_nearest(x) for x in units]), np.sqrt(pulls)])
    rounded = _doubles(rows) * weights[:, None]
    scale = column_units(rounded)
    shares = np.concatenate([problem.by_row(alpha), np.ones(len(known))])
    regular, basis = dense.whitener((rounded * scale).T, shares, None)
    if not regular:
        return None
    basis = basis * scale[:, None]
    images = _images(rows, basis) * weights[:, None]
    radii = np.sqrt([_nearest(exact.radii[j]) for j in reduction.targets.tolist()])
    targets = _images([exact.targets[j] for j in reduction.targets.tolist()], basis) / radii[:, None]
    if not (np.isfinite(images).all() and np.isfinite(targets).all()):
        return None
    return dataclasses.replace(problem, features=images[: len(variable)], base=images[len(variable) :], targets=targets)


def _images(rows: list[Row], basis: Array) -> Array:
    """Rows times a matrix of doubles, exactly, then rounded."""
    product = fmpq_mat(rows) * fmpq_mat([[rational(x) for x in row] for row in basis.tolist()])
    return _doubles(product.tolist())


def _doubles(rows: list[Row]) -> Array:
    return np.array([[_nearest(x) for x in row] for row in rows])


def _nearest(number: object) -> float:
    """A rational rounded to the nearest double."""
    return int(number.p) / int(number.q)  # type: ignore[attr-defined]
