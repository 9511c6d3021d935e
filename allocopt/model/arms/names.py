"""Names that come with users' data: the labels of arms, and the columns of a data frame that a named θ goes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from allocopt.base.errors import InvalidInstance

__all__ = ["by_column_names", "checked_labels", "index_labels"]


def index_labels(arms: Any) -> tuple[str, ...] | None:
    """The names of a data frame's rows, where it has others than 0, 1, 2, …"""
    names = _names(getattr(arms, "index", None)) if hasattr(arms, "columns") else None
    return None if names is None else tuple(map(str, names))


def checked_labels(labels: Any, n_arms: int) -> tuple[str, ...] | None:
    """Labels as a tuple of one string per arm, or None."""
    if labels is None:
        return None
    given = labels.tolist() if hasattr(labels, "tolist") else labels  # of a data frame's index, or a column of it
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInstance(f"labels: expected a list of {n_arms} strings, got a {type(labels).__name__}")
    wrong = next((i for i, label in enumerate(given) if not isinstance(label, str)), None)
    if wrong is not None:
        raise InvalidInstance(
            f"labels: expected a list of {n_arms} strings, got a {type(labels).__name__} whose entry {wrong} is a "
            f"{type(given[wrong]).__name__}"
        )
    if len(given) != n_arms:
        raise InvalidInstance(f"labels: expected {n_arms} strings, one per arm, got {len(given)}")
    return tuple(given)


def by_column_names(arms: Any, theta: Any) -> Any:
    """θ in the order of the arms' columns, where both have names; as it is where one has none (or just 0, 1, 2, …)."""
    columns, named = _names(getattr(arms, "columns", None)), _names(getattr(theta, "index", None))
    if columns is None or named is None or columns == named or getattr(theta, "ndim", 1) != 1:
        return theta
    known, place = set(columns), {name: i for i, name in enumerate(named)}
    lost, unknown = [name for name in columns if name not in place], [name for name in place if name not in known]
    problem = None
    if lost or unknown:
        problem = f"{lost[0]!r} is not among its names" if lost else f"{unknown[0]!r} is none of them"
    elif len(columns) != len(known) or len(named) != len(place):
        problem = "some are there twice"
    if problem is not None:
        raise InvalidInstance(
            f"theta: expected the names of the arms' columns, but {problem}; write theta.to_numpy() to go by position"
        )
    values = theta.tolist()
    return [values[place[name]] for name in columns]


def _names(index: Any) -> list[Any] | None:
    """The names in an index of a data frame; None where it is none, or merely counts."""
    if not hasattr(index, "tolist") or type(index).__name__ == "RangeIndex":
        return None
    return list(index.tolist())
