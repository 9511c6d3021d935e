"""Which arms are looked at block by block: those that are large, mapped from a file, or on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from allocopt.base.conversion import NotAnArray, as_array, as_doubles, unchanging
from allocopt.base.errors import InvalidInstance
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array
from allocopt.model.arms import blocks
from allocopt.model.arms.listed import ListedArms
from allocopt.model.arms.on_dask import DaskArms
from allocopt.model.arms.store import ArmStore

__all__ = ["open_store"]

LARGE = 100_000
"""Entries from which a set of arms is seen through a store: from about here a few passes over blocks cost less than whole arrays."""
SHARED = 2_000_000
"""Entries from which an array is used where it is; smaller ones are copied, so that users may change theirs."""
MANY = 10_000  # arms that such a set has at least: a few arms of very many coordinates are another problem


@spelled
def open_store(arms: Any) -> ArmStore | None:
    """A store for arms that are large or live elsewhere; None for all others, which are simply arrays.

    float32 values are taken as exact: every block becomes float64 when it is looked at. Other numbers (whole ones, half
    precision) become float64 once, in a copy.
    """
    if (
        str(type(arms).__module__).partition(".")[0] == "dask"
        and hasattr(arms, "to_delayed")
        and hasattr(arms, "chunks")
    ):
        return DaskArms(arms)
    if isinstance(arms, DaskArms | ListedArms):
        return arms
    if not isinstance(arms, np.ndarray) or arms.ndim != 2 or arms.dtype.kind not in "fiub" or arms.dtype.itemsize > 8:
        return None
    if arms.size < LARGE or len(arms) < MANY:
        return None
    try:
        view = as_array(arms).view()
    except NotAnArray as problem:
        raise InvalidInstance(f"arms: {problem}") from None
    if arms.dtype.newbyteorder("=") not in (np.float32, np.float64):
        view = _converted(view)
    elif arms.size < SHARED and not unchanging(arms):
        view = view.copy()
    view.flags.writeable = False  # of the view: the user's own array stays as it is
    return ListedArms(view)


def _converted(arms: np.ndarray[Any, Any]) -> Array:
    """A copy in float64, made and checked block by block."""
    doubles = np.empty(arms.shape)
    step = blocks.block_rows(*arms.shape)
    for start in range(0, len(arms), step):
        doubles[start : start + step] = as_doubles("arms", arms[start : start + step], InvalidInstance, first_row=start)
    return doubles
