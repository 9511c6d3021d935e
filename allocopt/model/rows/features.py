"""What arms show, as rows: vectors and matrices F_i become one array of rows, and the arm that each row belongs to.

An arm that shows several things adds Σ f fᵀ over the rows f of F_i to the information: everything about it is a sum over its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array
from allocopt.base.errors import InvalidProgram
from allocopt.base.validation import Array, IntArray, frozen, matrix

__all__ = ["feature_rows", "row_variances"]

_ARM = "a vector of numbers, or a matrix with a row for each thing that the arm shows"


def feature_rows(features: Any, owners: Any) -> tuple[Array, IntArray | None]:
    """All rows, arm after arm, and the arm of each; None where every arm has one row.

    ``features`` are vectors and matrices, one for each arm, or rows already, whose arms ``owners`` are. A matrix without rows
    shows nothing: it becomes one row of zeros.

    Examples
    --------
    >>> feature_rows([[1, 0], [[0, 1], [1, 1]]], None)
    (array([[1., 0.],
           [0., 1.],
           [1., 1.]]), array([0, 1, 1]))
    """
    if owners is not None:
        rows = matrix("features", features, InvalidProgram)
        return rows, _checked_owners(owners, len(rows))
    if not _has_matrices(features):
        return matrix("features", features, InvalidProgram), None
    arms = [_arm_rows(i, given) for i, given in enumerate(features)]
    widths = {rows.shape[1]: i for i, rows in reversed(list(enumerate(arms))) if rows.size}
    if not widths:
        raise InvalidProgram("features: expected at least one row and one column, got none")
    if len(widths) > 1:
        (width, first), (other, second) = sorted(widths.items(), key=lambda item: item[1])[:2]
        raise InvalidProgram(
            f"features: expected rows of {width} entries, as arm {first} has, but those of arm {second} have {other}"
        )
    nothing = np.zeros((1, next(iter(widths))))
    arms = [rows if rows.size else nothing for rows in arms]
    counts = [len(rows) for rows in arms]
    stacked = frozen(np.concatenate(arms))
    return stacked, None if max(counts) == 1 else frozen_owners(np.repeat(np.arange(len(arms)), counts))


def frozen_owners(owners: IntArray) -> IntArray:
    """The same array, read-only."""
    owners.flags.writeable = False
    return owners


def _has_matrices(features: Any) -> bool:
    """Whether some arm is given by a matrix."""
    if not isinstance(features, list | tuple):
        return bool(getattr(features, "ndim", 2) == 3)
    return any(_depth(arm) == 2 for arm in features)


def _depth(arm: Any) -> int:
    """2 for a matrix, 1 for whatever else."""
    if hasattr(arm, "ndim"):
        return 2 if arm.ndim == 2 else 1
    return 2 if isinstance(arm, list | tuple) and any(_is_listed(row) for row in arm) else 1


def _is_listed(value: Any) -> bool:
    """Whether a value is a sequence of numbers rather than one."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict) and getattr(value, "ndim", 1) > 0


def _arm_rows(number: int, given: Any) -> Array:
    """The rows of one arm; its zero rows stay, they do no harm."""
    name = f"features: arm {number}"
    try:
        raw = as_array([given] if _depth(given) == 1 else given)
    except NotAnArray:
        raw = None
    if raw is not None and raw.ndim == 2 and raw.size == 0:
        return np.zeros((0, raw.shape[1]))
    try:
        return matrix(name, [given] if _depth(given) == 1 else given, InvalidProgram)
    except InvalidProgram as error:
        text = str(error).replace("expected a matrix of numbers (one row per vector)", f"expected {_ARM}")
        raise InvalidProgram(text) from None


def _checked_owners(owners: Any, n_rows: int) -> IntArray | None:
    """The arm of each row, from 0 on, none left out; None where every arm has one row."""
    wanted = f"expected {n_rows} whole numbers, the arm of each row, from 0 on and in increasing order"
    try:
        raw = as_array(owners)
    except NotAnArray as problem:
        raise InvalidProgram(f"owners: {problem}") from None
    if raw.ndim != 1 or raw.dtype.kind not in "iu" or len(raw) != n_rows:
        raise InvalidProgram(f"owners: {wanted}, got an array of shape {raw.shape} and type {raw.dtype}")
    own = raw.astype(np.int64)
    steps = np.diff(own, prepend=-1)
    wrong = np.flatnonzero((steps < 0) | (steps > 1) | ((np.arange(n_rows) == 0) & (own != 0)))
    if len(wrong):
        i = int(wrong[0])
        raise InvalidProgram(f"owners: {wanted}, none of them left out, but entry {i} is {int(own[i])}")
    return None if n_rows and own[-1] == n_rows - 1 else frozen_owners(own)


def row_variances(given: Any, owners: IntArray | None, n_arms: int) -> Any:
    """``noise_variance`` of arms that may show several things, as one number or as one per row.

    It may be a number, one for each arm, one for each row, or a list with one or the other for each arm.
    """
    if not isinstance(given, list | tuple) or not any(_is_listed(each) for each in given):
        of_arms = owners is not None and _is_listed(given) and len(given) == n_arms
        return np.asarray(given)[owners] if of_arms else given
    counts = [1] * n_arms if owners is None else np.bincount(owners).tolist()
    if len(given) != len(counts):
        raise InvalidProgram(
            f"noise_variance: expected numbers or lists of numbers for {len(counts)} arms, got {len(given)}"
        )
    flat: list[Any] = []
    for i, (each, count) in enumerate(zip(given, counts, strict=True)):
        if _is_listed(each) and len(each) != count:
            raise InvalidProgram(
                f"noise_variance: expected a number or {count} for arm {i}, one for each of its rows, got {len(each)}"
            )
        flat += list(each) if _is_listed(each) else [each] * count
    return flat
