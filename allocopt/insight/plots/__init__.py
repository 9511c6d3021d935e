"""Figures for a paper's column or page: geometry, allocations, curves with certified bands, regret, pulls, graphs, profiles.

Every function returns a matplotlib ``Figure`` that belongs to the caller, or draws into the axes given as ``ax``; `save` writes it
as .png, .pdf or .svg. docs/plots.md shows them. matplotlib is loaded when the first figure is drawn.
"""

from __future__ import annotations

from allocopt.insight.plots.charts.allocation_bars import allocation
from allocopt.insight.plots.charts.audit_bars import audit_bars
from allocopt.insight.plots.charts.heat_maps import heat_map
from allocopt.insight.plots.charts.parameter_curves import family_curve
from allocopt.insight.plots.charts.performance_profiles import performance_profiles
from allocopt.insight.plots.charts.proven_intervals import intervals
from allocopt.insight.plots.charts.spanner_coefficients import spanner_coefficients
from allocopt.insight.plots.charts.study_charts import study_chart
from allocopt.insight.plots.files import save
from allocopt.insight.plots.instance_pictures.edge_allocation import edge_allocation
from allocopt.insight.plots.instance_pictures.gap_information import gap_information
from allocopt.insight.plots.instance_pictures.instance_geometry import geometry
from allocopt.insight.plots.over_time.bound_curve import bound_curve
from allocopt.insight.plots.over_time.pulls_over_time import pulls_over_time
from allocopt.insight.plots.over_time.regret_difference import regret_difference
from allocopt.insight.plots.over_time.regret_over_time import regret_curves
from allocopt.insight.plots.over_time.schedule_plan import schedule_plan

__all__ = ["allocation", "audit_bars", "bound_curve", "edge_allocation", "family_curve", "gap_information", "geometry"]
__all__ += ["heat_map", "intervals", "performance_profiles", "pulls_over_time", "regret_curves", "regret_difference"]
__all__ += ["save", "schedule_plan", "spanner_coefficients", "study_chart"]


def __dir__() -> list[str]:
    return sorted(__all__)
