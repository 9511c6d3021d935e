"""A study as a picture: a quantity against the parameters that vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import InvalidOption
from allocopt.base.spelling import spelled
from allocopt.base.validation import Array
from allocopt.insight.plots.charts.heat_maps import heat_map
from allocopt.insight.plots.charts.parameter_curves import family_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from allocopt.insight.study.study import StudyResult

__all__ = ["study_chart"]


@spelled
def study_chart(
    result: StudyResult, quantity: str | None = None, *, parameters: str | tuple[str, str] | None = None, **options: Any
) -> Figure:
    """A quantity of a study along one parameter, as a curve with its certified band, or over two, as a heat map.

    Where several instances share a point (seeds, or other parameters), the median is shown, of the values and of both bounds.

    Parameters
    ----------
    result : StudyResult
        A finished study.
    quantity : str, optional
        One of the study's quantities; by default the first.
    parameters : str or pair of str, optional
        What the axes show; by default the one or two parameters that take several numbers.
    **options
        Those of `family_curve` or `heat_map`: ``log``, ``ax``, ``width``, and ``reference`` for curves.
    """
    if not hasattr(result, "spec"):
        raise InvalidOption(f"result: expected a StudyResult, got a {type(result).__name__}")
    quantity = result.spec.quantities[0] if quantity is None else quantity
    rows = result.rows(quantity)
    numeric = {name: column for name in result.spec.design.names if (column := _numbers(rows[name])) is not None}
    chosen = _chosen(numeric, parameters)
    lower, upper, value = (_numbers(rows[name]) for name in ("lower", "upper", "value"))
    assert lower is not None and upper is not None and value is not None
    if len(chosen) == 1:
        points, low, high = _medians(numeric[chosen[0]], lower, upper)
        return family_curve(points, low, high, parameter=chosen[0], quantity=quantity, **options)
    x, y = (np.unique(numeric[name]) for name in chosen)
    cells = np.full((len(y), len(x)), np.nan)
    at_x, at_y = (np.searchsorted(axis, numeric[name]) for axis, name in zip((x, y), chosen, strict=True))
    for i, j in set(zip(at_y.tolist(), at_x.tolist(), strict=True)):
        cells[i, j] = _median(value[(at_y == i) & (at_x == j)])
    return heat_map(x, y, cells, x_name=chosen[0], y_name=chosen[1], quantity=quantity, **options)


def _chosen(numeric: dict[str, Array], parameters: str | tuple[str, str] | None) -> tuple[str, ...]:
    """The parameters of the axes, one or two."""
    if parameters is None:
        varying = tuple(name for name, column in numeric.items() if name != "seed" and len(np.unique(column)) > 1)
        if len(varying) in (1, 2):
            return varying
        known = ", ".join(varying) or "none"
        raise InvalidOption(f"parameters: expected one or two names, for {len(varying)} take several numbers ({known})")
    chosen = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    unknown = [name for name in chosen if name not in numeric]
    if unknown or len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
        raise InvalidOption(f"parameters: expected one or two of {', '.join(numeric)}, got {parameters!r}")
    return chosen


def _numbers(column: Any) -> Array | None:
    """A column of a table as doubles, nan where it has none; None where it holds something else than numbers."""
    import pyarrow.types

    if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
        return None
    return np.array([np.nan if x is None else float(x) for x in column.to_pylist()])


def _median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _medians(points: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """The points, each once, and the medians of both bounds there."""
    found = np.unique(points)
    both = [[_median(bound[points == point]) for point in found] for bound in (lower, upper)]
    return found, np.array(both[0]), np.array(both[1])
